"""The law of the fast path: the readable path does not change an object that it accepts."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from conformance import corpus
from noxu.apply import typed, types
from noxu.schema import conditions, embedded, listtype, validation
from noxu.schema.compiled import Compiled
from noxu.schema.defaulting import default, drop_nulls
from noxu.schema.pruning import prune
from noxu.schema.structural import Structural, parse
from noxu.values import ABSENT, Json, Object, copy, equal
from tests.optional import needs_data
from tests.properties.structurals import kinds, lists, wholes


class Readable(NamedTuple):
    """The result of the readable path."""

    value: Object
    removed: list[str]
    nulls: bool
    errors: list[str]


def take_readable_path(given: Object, schema: Structural) -> Readable:
    value = copy(given)
    removed = prune(value, schema, root=True)
    before = copy(value)
    drop_nulls(value, schema)
    nulls = not equal(value, before)
    try:
        removed += embedded.coerce(value, schema, drop_malformed=False)
    except embedded.MalformedMetadata as malformed:
        return Readable({}, removed, nulls, [str(malformed)])  # refused before defaults are filled in
    default(value, schema)
    errors = validation.validate(value, schema) + embedded.validate(value, schema) + listtype.validate(value, schema)
    return Readable(value, removed, nulls, sorted(map(str, errors)))


def compare(fast: Compiled, given: Object, schema: Structural) -> bool:
    """Whether the fast path accepts the object. Asserts that the readable path agrees with it."""
    value = copy(given)
    accepted = fast.accepts(value)
    readable = take_readable_path(given, schema)
    if accepted and (fast.is_complete is None or fast.is_complete(value)):
        assert readable == Readable(readable.value, [], False, [])
        assert equal(value, readable.value)
        return True
    again = take_readable_path(value, schema)
    assert again._replace(value={}) == readable._replace(value={})
    assert equal(again.value, readable.value)
    return False


@given(kinds(), st.sampled_from([0, conditions.WIDE]))
def test_accepted_objects_are_unchanged_by_the_readable_path(case: tuple[Object, Object], wide: int) -> None:
    raw, value = case
    schema = parse(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditions, "WIDE", wide)
        fast = Compiled(schema, warm_up=0)
        accepted = compare(fast, value, schema)
        event(f"accepted: {accepted}")
        assert compare(fast, value, schema) is accepted
        if accepted:
            assert compare(fast, take_readable_path(value, schema).value, schema)


@st.composite
def changed_objects(draw: st.DrawFn) -> tuple[Object, Object, Object]:
    """A schema, an object that nearly fits it, and one that shares some of its parts."""
    schema, old = draw(kinds())
    other = draw(wholes(schema))
    return schema, old, members_of(draw, old, other)


def mixed(draw: st.DrawFn, old: Json, other: Json) -> Json:
    """A value with parts of two values, in their places, and others."""
    if not isinstance(old, dict) or not isinstance(other, dict) or draw(st.booleans()):
        return draw(st.sampled_from([old, old, other, other, None, True, {"zz": 1}]))
    return members_of(draw, old, other)


def members_of(draw: st.DrawFn, old: Object, other: Object) -> Object:
    members = {name: mixed(draw, old.get(name, ABSENT), other.get(name, ABSENT)) for name in {**old, **other}}
    return {name: item for name, item in members.items() if item is not ABSENT}


@given(changed_objects(), st.sampled_from([0, conditions.WIDE]))
def test_a_change_of_an_accepted_object_is_accepted_like_a_whole_one(
    case: tuple[Object, Object, Object], wide: int
) -> None:
    """What the new object shares with the old one in the same places is not looked at."""
    raw, old, new = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditions, "WIDE", wide)
        fast = Compiled(parse(raw), warm_up=0)
        if not fast.accepts(old):
            return
        whole, before = copy(new), copy(old)
        accepted = fast.accepts(new, old)
        event(f"accepted: {accepted}, shares: {any(new.get(name) is old[name] for name in old)}")
        assert accepted == Compiled(parse(raw), warm_up=0).accepts(whole)
        assert equal(old, before)
        if accepted:
            assert equal(new, whole)


@st.composite
def kinds_of_lists(draw: st.DrawFn) -> tuple[Object, Object]:
    """The schema of a kind whose spec is a list, often a set or a list-map, and an object that nearly fits it."""
    schema = {"type": "object", "properties": {"spec": {"type": "array", **draw(lists(2))}}}
    return schema, draw(wholes(schema))


@given(kinds() | kinds_of_lists())
def test_accepted_objects_are_of_the_type_that_their_schema_implies(case: tuple[Object, Object]) -> None:
    """Field ownership checks only the metadata of objects that the fast path has accepted."""
    raw, value = case
    schema = parse(raw)
    value |= {"apiVersion": "example.com/v1", "kind": "Example"}  # others are refused before (`CustomCodec.accept`)
    accepted, is_implied = Compiled(schema, warm_up=0).accepts(value), types.is_implied_by(schema)
    event(f"accepted: {accepted}, implied: {is_implied}")
    if accepted and is_implied:
        assert typed.validate(value, types.of_schema(schema), duplicates=True) == []


TWINS = {(int, 0): [False, 0.0], (int, 1): [True, 1.0], (bool, False): [0], (bool, True): [1, 1.0]}
"""Values that are equal in Python, but not in JSON."""


def twin(draw: st.DrawFn, value: Json) -> Json:
    """A copy in which some numbers and booleans have become others that are equal to them in Python."""
    if isinstance(value, dict):
        return {name: twin(draw, item) for name, item in value.items()}
    if isinstance(value, list):
        return [twin(draw, item) for item in value]
    if isinstance(value, float):
        return draw(st.sampled_from([value, int(value)])) if value.is_integer() else value
    return draw(st.sampled_from([value, *TWINS.get((type(value), value), [])])) if isinstance(value, int) else value


@st.composite
def twins(draw: st.DrawFn) -> tuple[Object, Object, Object]:
    """A schema, an object that nearly fits it, and its twin."""
    schema, value = draw(kinds() | kinds_of_lists())
    return schema, value, twin(draw, value)


def floats(value: Json) -> bool:
    """Whether there is a float in a value."""
    if isinstance(value, (dict, list)):
        return any(map(floats, value.values() if isinstance(value, dict) else value))
    return isinstance(value, float)


@given(twins(), st.sampled_from([0, conditions.WIDE]))
def test_accepted_objects_of_an_exact_schema_are_equal_if_python_says_so(
    case: tuple[Object, Object, Object], wide: int
) -> None:
    """Field ownership compares them without looking at the types of numbers, and their JSON is not searched for floats."""
    raw, one, other = case
    metadata = {"apiVersion": "example.com/v1", "kind": "Example", "metadata": {}}
    one |= metadata  # apart from the schema, which does not describe them
    other |= metadata
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditions, "WIDE", wide)
        fast = Compiled(parse(raw), warm_up=0)
        accepted = fast.accepts(one) and fast.accepts(other)
    event(f"accepted: {accepted}, exact: {fast.is_exact}")
    if accepted and fast.is_exact:
        assert (one == other) == equal(one, other)
        assert not floats(one)
        assert not floats(other)


@needs_data("crds")
def test_clean_objects_of_real_kinds_are_accepted() -> None:
    """All of them, because the fast path is made for real objects."""
    samples = [(definition, sample) for definition in corpus.definitions() for sample in definition.samples]
    clean, declined = 0, []
    for definition, sample in samples:
        value = sample.value(namespaced=definition.namespaced)
        version = value["apiVersion"].rpartition("/")[2]
        raw = next((served["schema"] for served in definition.spec["versions"] if served["name"] == version), None)
        if raw is None:
            continue
        schema = parse(raw["openAPIV3Schema"])
        accepted = compare(Compiled(schema, warm_up=0), value, schema)
        readable = take_readable_path(value, schema)
        if not (readable.removed or readable.nulls or readable.errors):
            clean += 1
            if not accepted:
                declined.append(sample.name)
    assert declined == []
    assert clean > 0.9 * len(samples)
