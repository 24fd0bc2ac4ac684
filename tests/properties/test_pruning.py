"""Laws of pruning and defaulting, over structural schemas and values that almost fit them."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from noxu.schema.defaulting import default, drop_nulls
from noxu.schema.pruning import META, prune
from noxu.schema.structural import MISSING, Structural, parse
from noxu.values import Json, Object, copy, equal
from tests.properties.structurals import kinds


def pruned(value: Json, schema: Structural) -> Json:
    result = copy(value)
    prune(result, schema, root=True)
    return result


def is_part(smaller: Json, larger: Json, *, nulls_replaced: bool = False) -> bool:
    """Whether the larger value becomes the smaller one by removing fields.

    `nulls_replaced`: where the smaller one has null in a list, the larger one may have any value.
    """
    inner = partial(is_part, nulls_replaced=nulls_replaced)
    if isinstance(smaller, dict) and isinstance(larger, dict):
        return all(name in larger and inner(item, larger[name]) for name, item in smaller.items())
    if isinstance(smaller, list) and isinstance(larger, list):
        return len(smaller) == len(larger) and all(map(inner, smaller, larger))
    return (nulls_replaced and smaller is None) or equal(smaller, larger)


def fields_in(value: Json) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(fields_in, value.values()))
    return sum(map(fields_in, value)) if isinstance(value, list) else 0


@given(kinds())
def test_pruning_only_removes_fields(case: tuple[Object, Object]) -> None:
    schema, value = parse(case[0]), case[1]
    result = pruned(value, schema)
    assert is_part(result, value)
    assert META & result.keys() == META & value.keys()


@given(kinds())
def test_pruning_again_finds_nothing(case: tuple[Object, Object]) -> None:
    schema = parse(case[0])
    result = pruned(case[1], schema)
    assert prune(copy(result), schema, root=True) == []


@given(kinds())
def test_pruning_reports_exactly_the_removed_fields(case: tuple[Object, Object]) -> None:
    schema, value = parse(case[0]), copy(case[1])
    before = fields_in(value)
    removed = prune(value, schema, root=True)
    assert removed == sorted(removed)
    assert fields_in(value) <= before - len(removed)  # what went may have had fields of its own
    assert (removed == []) is equal(value, case[1])


@given(kinds(), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(case: tuple[Object, Object], random: Any) -> None:
    schema = parse(case[0])
    values = case[1], shuffled(case[1], random)
    messages = [
        (prune(value, schema, root=True), drop_nulls(value, schema), default(value, schema)) for value in values
    ]
    assert messages[0] == messages[1]
    assert equal(*values)


def shuffled(value: Json, random: Any) -> Json:
    if isinstance(value, dict):
        names = sorted(value)
        random.shuffle(names)
        return {name: shuffled(value[name], random) for name in names}
    return [shuffled(item, random) for item in value] if isinstance(value, list) else value


@given(kinds())
def test_defaults_are_filled_in_once(case: tuple[Object, Object]) -> None:
    schema = parse(case[0])
    once = pruned(case[1], schema)
    default(once, schema)
    again = copy(once)
    default(again, schema)
    assert equal(again, once)


@given(kinds())
def test_defaulting_adds_and_replaces_nulls(case: tuple[Object, Object]) -> None:
    schema, value = parse(case[0]), copy(case[1])
    default(value, schema)
    assert is_part(without_nulls(case[1]), value, nulls_replaced=True)


def without_nulls(value: Json) -> Json:
    """Nulls in lists stay, for the sake of their places."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return value


@given(kinds())
def test_pruned_and_defaulted_objects_are_unchanged(case: tuple[Object, Object]) -> None:
    """Where defaults are as a definition must have them: pruned."""
    schema = parse(with_pruned_defaults(case[0]))
    value = pruned(case[1], schema)
    default(value, schema)
    again = copy(value)
    assert prune(again, schema, root=True) == []
    default(again, schema)
    assert equal(again, value)


def with_pruned_defaults(raw: Object) -> Object:
    """The schema, with all defaults pruned by their own nodes."""
    schema: Object = dict(raw)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            schema[keyword] = with_pruned_defaults(schema[keyword])
    if "properties" in schema:
        schema["properties"] = {name: with_pruned_defaults(inner) for name, inner in schema["properties"].items()}
    node = parse(schema)
    if node.default is not MISSING:
        schema["default"] = copy(node.default)
        prune(schema["default"], node)
    return schema
