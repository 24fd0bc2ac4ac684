"""The revision of each line: what changes, what moves, and that the lines are those of the YAML."""

from __future__ import annotations

import textwrap
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noxu.api import codec
from noxu.apply.types import Type, of_schema
from noxu.control.blame import MAX_DEPTH, Blame
from noxu.schema.structural import parse
from noxu.values import Json
from tests.rows import rows

_KEYED: Final = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["port", "protocol"],
    "items": {
        "type": "object",
        "properties": {"port": {"type": "integer"}, "protocol": {"type": "string"}, "name": {"type": "string"}},
    },
}
TYPE: Final[Type] = of_schema(
    parse({"type": "object", "properties": {"spec": {"type": "object", "properties": {"ports": _KEYED}, "x-kubernetes-preserve-unknown-fields": True}}})
)  # fmt: skip

PORT: Final = {"port": 1, "protocol": "TCP", "name": "a"}
OTHER: Final = {"port": 1, "protocol": "UDP", "name": "a"}

BLAMED: Final[list[tuple[str, list[Any], str]]] = [
    ("a first state", [{"a": 1, "b": {"c": [1, {"d": 2}]}}], """
        1 a: 1
        1 b:
        1   c:
        1   - 1
        1   - d: 2"""),
    ("a scalar changes", [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 3, "b": 2}], """
        3 a: 3
        2 b: 2"""),
    ("nothing changes", [{"a": {"b": [1]}}, {"a": {"b": [1]}}], """
        1 a:
        1   b:
        1   - 1"""),
    ("another type of the same value for Python", [{"a": 1, "b": 1}, {"a": True, "b": 1}], """
        2 a: true
        1 b: 1"""),
    ("a field comes, another goes", [{"a": 1, "b": 1}, {"a": 1, "c": {"d": 1}}], """
        1 a: 1
        2 c:
        2   d: 1"""),
    ("a field goes and comes again", [{"a": 1, "b": 1}, {"a": 1}, {"a": 1, "b": 1}], """
        1 a: 1
        3 b: 1"""),
    ("a map changes inside", [{"m": {"a": 1, "b": 1}}, {"m": {"a": 1, "b": 2}}], """
        1 m:
        1   a: 1
        2   b: 2"""),
    ("a map becomes empty, and is no longer", [{"m": {"a": 1}}, {"m": {}}, {"m": {"b": 1}}], """
        3 m:
        3   b: 1"""),
    ("a scalar becomes a map", [{"m": 1}, {"m": {"a": 1}}], """
        2 m:
        2   a: 1"""),
    ("an item is put in front", [{"l": ["b", "c"]}, {"l": ["a", "b", "c"]}], """
        1 l:
        2 - a
        1 - b
        1 - c"""),
    ("items move", [{"l": ["a", "b", "c"]}, {"l": ["c", "a", "d"]}], """
        1 l:
        1 - c
        1 - a
        2 - d"""),
    ("an item is added twice", [{"l": ["a"]}, {"l": ["a", "a"]}], """
        1 l:
        1 - a
        2 - a"""),
    ("named maps move and change", [
        {"l": [{"name": "a", "n": 1}, {"name": "b", "n": 1}]}, {"l": [{"name": "b", "n": 2}, {"name": "a", "n": 1}]}], """
        1 l:
        2 - "n": 2
        1   name: b
        1 - "n": 1
        1   name: a"""),
    ("a name that is not unique does not tell", [
        {"l": [{"name": "a", "x": 1}, {"name": "a", "x": 2}]}, {"l": [{"name": "a", "x": 2}, {"name": "a", "x": 3}]}], """
        1 l:
        1 - name: a
        1   x: 2
        1 - name: a
        2   x: 3"""),
    ("conditions are told apart by their type", [
        {"l": [{"status": "False", "type": "Ready"}]},
        {"l": [{"status": "True", "type": "Synced"}, {"status": "True", "type": "Ready"}]}], """
        1 l:
        2 - status: "True"
        2   type: Synced
        2 - status: "True"
        1   type: Ready"""),
    ("the keys of the schema count, not the name", [
        {"spec": {"ports": [PORT, OTHER]}}, {"spec": {"ports": [{**OTHER, "name": "b"}, PORT]}}], """
        1 spec:
        1   ports:
        2   - name: b
        1     port: 1
        1     protocol: UDP
        1   - name: a
        1     port: 1
        1     protocol: TCP"""),
    ("another key is another item", [{"spec": {"ports": [PORT]}}, {"spec": {"ports": [{**PORT, "port": 2}]}}], """
        1 spec:
        1   ports:
        2   - name: a
        2     port: 2
        2     protocol: TCP"""),
    ("lists in lists", [{"l": [[1, 2], [3]]}, {"l": [[1, 2], [4], [3]]}], """
        1 l:
        1 - - 1
        1   - 2
        2 - - 4
        1 - - 3"""),
    ("a text of several lines", [{"t": "a\nb\n", "u": 1}, {"t": "a\nc\n", "u": 1}], """
        2 t: |
        2   a
        2   c
        1 u: 1"""),
]  # fmt: skip


@rows(("states", "expected"), [row[1:] for row in BLAMED], ids=[row[0] for row in BLAMED])
def test_the_revision_of_each_line(states: list[Any], expected: str) -> None:
    blame = Blame(TYPE)
    for revision, state in enumerate(states, 1):
        blame.add(revision, state)
    shown = "\n".join(f"{revision} {text}" for text, revision in blame.lines())
    assert shown == textwrap.dedent(expected).strip("\n")


def test_without_a_state_there_are_no_lines() -> None:
    assert Blame(TYPE).lines() == []


def test_what_is_nested_deeply_has_one_revision() -> None:
    def nested(value: Json) -> Any:
        for _ in range(MAX_DEPTH + 5):
            value = {"a": value, "b": 1}
        return value

    blame = Blame(TYPE)
    blame.add(1, nested(1))
    blame.add(2, nested(2))
    lines = blame.lines()
    assert "\n".join(line.text for line in lines) + "\n" == codec.to_yaml(nested(2)).decode()
    assert [line.revision for line in lines if line.text == "b: 1"] == [1]
    assert {line.revision for line in lines if line.text.startswith("  " * MAX_DEPTH)} == {2}


keys = st.sampled_from(["name", "a", "b", "a-long-name.example.com/which-is-quoted: ", "yes", "spec", "ports"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "a\nb\n", "true", "long " * 30, " x ", "# y", "é\u2028"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
objects = st.dictionaries(keys, values, min_size=1, max_size=4)


@settings(max_examples=100)
@given(st.lists(objects, min_size=1, max_size=4))
def test_the_lines_are_the_yaml_of_the_newest_state(states: list[Any]) -> None:
    blame = Blame(TYPE)
    for revision, state in enumerate(states, 1):
        blame.add(revision, state)
    lines = blame.lines()
    assert "".join(f"{line.text}\n" for line in lines) == codec.to_yaml(states[-1]).decode()
    assert {line.revision for line in lines} <= {*range(1, len(states) + 1)}


@settings(max_examples=50)
@given(objects, st.integers(1, 5))
def test_what_does_not_change_keeps_its_revision(state: Any, times: int) -> None:
    blame = Blame(TYPE)
    for revision in range(1, times + 1):
        blame.add(revision, state)
    assert {line.revision for line in blame.lines()} == {1}


@pytest.mark.parametrize("pairs", [1, 3])
def test_moved_items_keep_what_they_have(pairs: int) -> None:
    items = [{"name": f"n{n}", "value": n} for n in range(pairs * 2)]
    blame = Blame(TYPE)
    blame.add(1, {"l": items})
    blame.add(2, {"l": items[::-1]})
    assert {line.revision for line in blame.lines()} == {1}


maps = st.recursive(
    st.integers(0, 3), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=6
)
ABSENT: Final = object()


def leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """The values that are no maps, or empty ones, by their paths."""
    if isinstance(value, dict) and value:
        return {found: leaf for name, item in value.items() for found, leaf in leaves(item, (*path, name)).items()}
    return {path: value}


@settings(max_examples=100)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), maps, min_size=1, max_size=3), min_size=1, max_size=5))
def test_a_value_has_the_revision_since_which_it_is_what_it_is(states: list[Any]) -> None:
    blame = Blame(TYPE)
    for revision, state in enumerate(states, 1):
        blame.add(revision, state)
    history = [leaves(state) for state in states]
    expected = {}
    for path, leaf in history[-1].items():
        since = len(states)
        while since > 1 and history[since - 2].get(path, ABSENT) == leaf:
            since -= 1
        expected[path] = since
    above: list[str] = []
    found = {}
    for text, revision in blame.lines():
        depth = (len(text) - len(text.lstrip())) // 2
        name, _, value = text.strip().partition(":")
        above = [*above[:depth], name]
        if value:
            found[tuple(above)] = revision
    assert found == expected
