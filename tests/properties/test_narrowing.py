"""The law of upgrades: where nothing is found, the new schema keeps and accepts what the former one does."""

from __future__ import annotations

from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from noxu.schema.narrowing import narrowings
from noxu.schema.pruning import prune
from noxu.schema.structural import parse
from noxu.schema.validation import validate
from noxu.values import Json, Object, copy
from tests.properties.structurals import FOR_LISTS, FOR_NUMBERS, FOR_OBJECTS, FOR_TEXTS, junctors, nodes, roots, wholes
from tests.properties.test_fast_path import take_readable_path

KEYWORDS = {**FOR_TEXTS, **FOR_NUMBERS, **FOR_LISTS, **FOR_OBJECTS}
FLAGS = (
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
)


def below(schema: Object) -> list[Object]:
    """The nodes of a schema."""
    found, todo = [], [schema]
    while todo:
        node = todo.pop()
        found.append(node)
        todo += [*node.get("properties", {}).values(), *(node[name] for name in ("items", "additionalProperties") if isinstance(node.get(name), dict))]  # fmt: skip
    return found


@st.composite
def changed(draw: st.DrawFn, schema: Object) -> Object:
    """The schema after a few changes, of which many make it wider."""
    new: Object = copy(schema)
    for _ in range(draw(st.integers(1, 3))):
        node = draw(st.sampled_from(below(new)))
        droppable = sorted(
            node.keys() - {"type", "properties", "items"} - {name for name in node if name.startswith("x-")}
        )
        what = draw(
            st.sampled_from(["drop", "drop", "keyword", "type", "flag", "property", "values", "junctor", "list"])
        )
        if what == "drop" and droppable:
            del node[draw(st.sampled_from(droppable))]
        elif what == "keyword":
            name = draw(st.sampled_from(sorted(KEYWORDS)))
            node[name] = draw(KEYWORDS[name])
        elif what == "type" and node.get("type") in ("integer", "string", "number"):
            kinds = [{"type": "number"}, {"type": "string"}, {"x-kubernetes-int-or-string": True}, {"x-kubernetes-preserve-unknown-fields": True}]  # fmt: skip
            del node["type"]
            node |= draw(st.sampled_from(kinds))
        elif what == "flag" and node.get("type") == "object" and "additionalProperties" not in node:
            toggle(node, draw(st.sampled_from(FLAGS[:3])))
        elif what == "property" and "properties" in node:
            name = draw(st.sampled_from(["a", "b", "c", "new"]))
            if name in node["properties"] and node is not new and draw(st.booleans()):
                del node["properties"][name]
            else:
                node["properties"][name] = draw(added())
        elif what == "values" and "additionalProperties" in node:
            node["additionalProperties"] = draw(st.one_of(st.booleans(), added()))
        elif what == "junctor":
            node |= draw(junctors)
        elif what == "list" and node.get("type") == "array":
            node["x-kubernetes-list-type"] = draw(st.sampled_from(["atomic", "set"]))
            node.pop("x-kubernetes-list-map-keys", None)
    return new


@st.composite
def added(draw: st.DrawFn) -> Object:
    if draw(st.booleans()):
        return {"type": "string", "default": "a"}
    node = draw(nodes(1))
    for each in below(node):
        each.pop("default", None)
    return node


def has_valid_defaults(schema: Object) -> bool:
    """Servers refuse a definition with another one."""
    return all(
        not validate(each["default"], parse(each)) and not prune(copy(each["default"]), parse(each))
        for each in below(schema)
        if "default" in each
    )


def toggle(node: Object, flag: str) -> None:
    if not node.pop(flag, False):
        node[flag] = True


@st.composite
def upgrades(draw: st.DrawFn) -> tuple[Object, Object, Object]:
    old = draw(roots())
    return old, draw(changed(old)), draw(wholes(old))


def read(value: Object, schema: Object) -> tuple[Json, bool]:
    """The object after pruning and defaulting, and whether it was kept and is accepted."""
    found = take_readable_path(value, parse(schema))
    return found.value, not found.errors and not found.removed and not found.nulls


@given(upgrades())
def test_what_the_former_schema_accepts_is_accepted_if_nothing_is_found(case: tuple[Any, Any, Any]) -> None:
    old, new, sent = case
    found = narrowings(old, new)
    stored, _ = read(sent, old)
    is_valid = read(stored, old)[1] if isinstance(stored, dict) and stored else False
    event(f"nothing is found: {not found}, the object is valid: {is_valid}")
    if is_valid and not found and has_valid_defaults(new):
        assert read(stored, new)[1]


@given(roots())
def test_a_schema_is_not_narrower_than_itself(schema: Object) -> None:
    assert narrowings(schema, copy(schema)) == []
