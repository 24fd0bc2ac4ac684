"""Laws of field ownership and of patches."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from noxu.api.errors import ApiError
from noxu.apply.comparison import compare, same
from noxu.apply.fieldset import (
    MEMBER,
    SELF,
    FieldSet,
    contains,
    covers,
    describe,
    difference,
    intersection,
    meets,
    ordered,
    parse,
    paths,
    recursive_difference,
    union,
)
from noxu.apply.manager import apply, keep_times, update
from noxu.apply.merging import merge, remove
from noxu.apply.patch import json_patch, merge_patch
from noxu.apply.typed import Unsure, accept, ensure_named, to_set, validate, whole
from noxu.values import copy
from tests.apply.widgets import BEFORE, MAIN, NOW, STATUS_ONLY, TYPES, V1, owners, widget

KIND = TYPES[V1]

some = settings(max_examples=60, deadline=None)
more = settings(max_examples=300, deadline=None)

# --- values ---

words = st.sampled_from(["a", "b", "c", "<", "é"])
numbers = st.sampled_from([0, 1, 2, 10, 1.5])


def leaves(fields: FieldSet) -> FieldSet:
    """The members that have no members below them."""
    return {
        element: leaves(child) if child else MEMBER for element, child in fields.items() if child or element != SELF
    }


def recursive(leaves: Any) -> Any:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
        max_leaves=4,
    )


open_values = recursive(st.booleans() | numbers | words)
nullable_values = recursive(st.none() | st.booleans() | numbers | words)
items = st.fixed_dictionaries(
    {"k": words}, optional={"v": words, "p": st.integers(1, 2), "o": st.fixed_dictionaries({}, optional={"x": words})}
)
fields: dict[str, Any] = {
    "a": numbers,
    "b": words,
    "m": st.dictionaries(words, words, max_size=3),
    "n": st.fixed_dictionaries({}, optional={"x": st.integers(0, 2), "y": st.integers(0, 2)}),
    "atom": st.fixed_dictionaries({}, optional={"x": words, "y": words}),
    "lat": st.lists(words, max_size=2),
    "lset": st.lists(words, min_size=1, max_size=3, unique=True),
    "lmap": st.lists(items, min_size=1, max_size=3, unique_by=lambda item: item["k"]),
    "lmap2": st.lists(items, min_size=1, max_size=3, unique_by=lambda item: (item["k"], item.get("p", 1))),
    "any": st.dictionaries(words, open_values, max_size=3),
}
specs = st.fixed_dictionaries({}, optional=fields)
labels = st.fixed_dictionaries({}, optional={"labels": st.dictionaries(words, words, min_size=1, max_size=2)})
widgets = st.builds(lambda spec, metadata: widget(spec, **metadata), specs, labels)
empty_specs = st.dictionaries(st.sampled_from(["lset", "lmap", "lat"]), st.just([]))
bad_specs = st.dictionaries(st.sampled_from([*fields, "zz"]), nullable_values | st.lists(items, max_size=2), max_size=3)
names = st.sampled_from(["m1", "m2", "m3"])
writes = st.lists(st.tuples(names, st.sampled_from(["apply", "force", "update"]), widgets), min_size=1, max_size=4)

# --- sets ---

elements = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"k":"a"}', 'k:{"k":"b","p":1}', 'v:"a"', "v:1", "i:0"])
loose_elements = elements | st.sampled_from(["v:1.0", 'k:{"p":1,"k":"b"}', "x:y", "i:+0", 'v: "a"', "v:2e0"])
sets = st.recursive(st.just({}), lambda inner: st.dictionaries(elements | st.just("."), inner, max_size=3), max_leaves=12).map(
    lambda fields: parse(copy(fields))
)  # fmt: skip
loose_sets = st.recursive(
    st.just({}) | st.none(),
    lambda inner: st.dictionaries(loose_elements | st.just("."), inner, max_size=3),
    max_leaves=12,
)


def members(fields: Any) -> set[tuple[str, ...]]:
    return set(paths(fields))


@given(loose_sets)
@some
def test_a_set_that_was_read_is_canonical_and_reads_back_equal(given_fields: Any) -> None:
    fields = parse(copy(given_fields))
    assert parse(fields) is fields
    text = json.dumps(ordered(fields))
    assert parse(json.loads(text)) == fields
    assert json.dumps(ordered(parse(json.loads(text)))) == text


@given(sets, sets)
@some
def test_field_sets_behave_like_sets_of_paths(left: Any, right: Any) -> None:
    assert members(union(left, right)) == members(left) | members(right)
    assert members(intersection(left, right)) == members(left) & members(right)
    assert members(difference(left, right)) == members(left) - members(right)
    below = {path for path in members(left) if any(path[: len(other)] == other for other in members(right))}
    assert members(recursive_difference(left, right)) == members(left) - below
    inner = {path[:n] for path in members(left) for n in range(1, len(path))}
    assert members(leaves(left)) == members(left) - inner
    assert meets(left, right) == bool(members(left) & members(right))
    assert covers(left, right) == (members(left) >= members(right))
    assert covers(left, intersection(left, right))
    assert (difference(left, right) is left) == (not left or not meets(left, right))
    assert all(contains(left, path) for path in members(left))
    for result in (
        union(left, right),
        intersection(left, right),
        difference(left, right),
        recursive_difference(left, right),
    ):
        assert parse(result) is result


@given(sets, sets, sets)
@some
def test_the_order_of_unions_does_not_matter(one: Any, two: Any, three: Any) -> None:
    assert union(union(one, two), three) == union(one, union(three, two))


# --- values under a type ---


@given(specs | empty_specs | bad_specs)
@more
def test_the_fast_path_agrees_with_the_general_one(spec: Any) -> None:
    value = widget(spec)
    try:
        node = accept(value, KIND)
    except Unsure:
        wrong = validate(value, KIND, duplicates=True)
        assert wrong or validate(value, KIND)  # an item twice is a doubt, though not wrong everywhere
    else:
        assert validate(value, KIND) == []
        assert node == whole(value, KIND)
        assert parse(ordered(to_set(value, KIND))) == to_set(value, KIND)


@given(widgets)
@some
def test_claimed_fields_exist_in_the_configuration(value: Any) -> None:
    existing = whole(value, KIND)
    claimed = ensure_named(to_set(value, KIND), KIND)
    assert difference(claimed, existing) == {}
    assert members(leaves(existing)) >= members(leaves(claimed))


@given(widgets, widgets)
@some
def test_comparing_in_the_other_direction_swaps_added_and_removed_fields(old: Any, new: Any) -> None:
    change, back = compare(old, new, KIND), compare(new, old, KIND)
    assert (change.removed, change.modified, change.added) == (back.added, back.modified, back.removed)
    assert difference(change.written, whole(new, KIND)) == {}
    assert difference(change.removed, whole(old, KIND)) == {}
    assert intersection(change.removed, change.added) == {}
    assert compare(new, copy(new), KIND) == ({}, {}, {})


def exact_of(value: Any) -> Any:
    """A value whose numbers and booleans are texts, so that what is equal in Python is equal."""
    if isinstance(value, dict):
        return {name: exact_of(item) for name, item in value.items()}
    return [exact_of(item) for item in value] if isinstance(value, list) else str(value)


exact_specs = specs.map(lambda spec: {name: spec[name] for name in spec if name not in ("a", "n")}).map(exact_of)


@given(exact_specs, exact_specs)
@more
def test_a_comparison_of_exact_values_finds_the_same_changes(old: Any, new: Any) -> None:
    kept = {name: old[name] for name in ("lmap", "m", "any") if name in old}  # more often something is equal
    for after in (new, copy(new | kept)):
        assert compare(widget(old), widget(after), KIND, exact=True) == compare(widget(old), widget(after), KIND)


@given(widgets, widgets)
@some
def test_merging_the_same_again_changes_nothing(old: Any, config: Any) -> None:
    merged = merge(old, config, KIND)
    assert merge(merged, copy(config), KIND) is merged
    assert difference(to_set(config, KIND), whole(merged, KIND)) == {}
    replaced = compare(old, merged, KIND).modified  # a map may have become a scalar where types are deduced
    assert recursive_difference(whole(old, KIND), union(whole(merged, KIND), replaced)) == {}


@given(widgets, sets)
@some
def test_removing_leaves_none_of_the_removed_fields(value: Any, fields: Any) -> None:
    fields = intersection(whole(value, KIND), fields) or {"f:spec": {"f:a": {}, "f:m": {"f:a": {}}}}
    left = remove(value, fields, KIND)
    kept = whole(left, KIND) if left else {}
    assert intersection(kept, fields) == {}


# --- ownership ---


def written(history: Any) -> Any:
    """The object after these writes; refused ones are ignored. Without owners nothing is tracked."""
    value = None
    for name, how, sent in history:
        if how == "update":
            new = sent if value is None else {**sent, "metadata": {**value["metadata"], **sent["metadata"]}}
            value = update(value, new, MAIN, manager=name, now=NOW)
        else:
            value = applied(value, sent, name, force=how == "force") or value
        if value is not None:
            value["metadata"].setdefault("uid", "u")
            assume(owners(value))
            assume(not has_null(value))
    assume(value is not None)
    return value


def applied(value: Any, config: Any, name: str, *, force: bool = False, now: str = NOW) -> Any:
    """None if there is a conflict."""
    with suppress(ApiError):
        return apply(value, config, MAIN, manager=name, force=force, now=now).value
    assert not force
    return None


def has_null(value: Any) -> bool:
    """Removing all fields of a map or a list leaves null, which the pipeline drops or refuses."""
    return "null" in json.dumps(value)


@given(writes)
@some
def test_every_field_that_was_set_has_an_owner(history: Any) -> None:
    value = written(history)
    owned: Any = {}
    for entry in owners(value).values():
        owned = union(owned, entry)
    set_fields = leaves(to_set(without_empty_maps({"spec": value.get("spec")}), KIND))
    assert difference(set_fields, ensure_named(owned, KIND)) == {}


def without_empty_maps(value: Any) -> Any:
    """Containers emptied by updates, also those in items of a list, have no owner, because no manager set them."""
    if isinstance(value, list):
        return [without_empty_maps(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: child for name, item in value.items() if (child := without_empty_maps(item)) != {}}


@given(writes)
@some
def test_managed_fields_are_always_readable_and_never_empty(history: Any) -> None:
    for entry in written(history)["metadata"]["managedFields"]:
        assert entry["fieldsV1"]
        assert parse(entry["fieldsV1"]) is entry["fieldsV1"]
        assert entry["operation"] in ("Apply", "Update")


@given(writes, names, widgets)
@some
def test_applying_twice_changes_nothing(history: Any, name: str, config: Any) -> None:
    once = applied(written(history), config, name, force=True, now=BEFORE)
    assume(owners(once) and not has_null(once))
    twice = applied(once, copy(config), name)
    assert twice == once
    assert keep_times(once, twice) == once


@given(writes, widgets)
@some
def test_applying_changes_no_fields_of_others_without_force(history: Any, config: Any) -> None:
    value = written(history)
    result = applied(value, config, "new")
    assume(result is not None)
    change = compare(value, result, KIND)
    for fields in owners(value).values():
        assert intersection(fields, change.written) == {}
        assert intersection(fields, change.removed) == {}
    assert {name: fields for name, fields in owners(result).items() if name != "apply new"} == owners(value)


@given(writes, widgets)
@some
def test_a_conflict_is_about_fields_of_others_that_would_change(history: Any, config: Any) -> None:
    value = written(history)
    assume(applied(value, config, "new") is None)
    with pytest.raises(ApiError) as error:
        apply(value, config, MAIN, manager="new", now=NOW)
    change = compare(value, applied(value, config, "new", force=True), KIND)
    expected = [
        describe(path) for fields in owners(value).values() for path in paths(intersection(fields, change.written))
    ]
    assert error.value.details is not None
    assert sorted(cause["field"] for cause in error.value.details["causes"]) == sorted(expected)


@given(writes, widgets)
@some
def test_an_update_keeps_the_owners_of_fields_that_it_does_not_change(history: Any, sent: Any) -> None:
    value = written(history)
    new = {**sent, "metadata": {**value["metadata"], **sent["metadata"]}}
    result = update(value, new, MAIN, manager="new", now=NOW)
    change = compare(value, result, KIND)
    touched = union(change.written, change.removed)
    after = owners(result)
    for name, fields in owners(value).items():
        assert difference(difference(fields, touched), after.get(name, {})) == {}
        assert intersection(after.get(name, {}), touched) == {}
    assert result["spec"] == new["spec"]


@given(writes)
@some
def test_an_equal_update_changes_nothing(history: Any) -> None:
    value = written(history)
    assert update(value, copy(value), MAIN, manager="new", now=NOW) == value


@given(widgets, names)
@some
def test_a_create_owns_all_fields_of_its_object(value: Any, name: str) -> None:
    created = update(None, value, MAIN, manager=name, now=NOW)
    fields = owners(created).get(f"update {name}", {})
    created_fields = whole({"spec": value["spec"]}, KIND)["f:spec"]
    assert fields.get("f:spec", {}) == created_fields
    assert ("f:metadata" in fields) is ("labels" in value["metadata"])


@given(widgets, st.sampled_from([..., {"r": 1}]), st.booleans())
@some
def test_a_create_of_a_valid_object_owns_the_same_fields(value: Any, status: Any, is_status: bool) -> None:
    """Then fields that the write does not set are not looked at."""
    tracker = replace(STATUS_ONLY if is_status else MAIN, implied=True)
    value = widget(value["spec"], status=status, **value["metadata"])
    created = tracker.with_creator(value, "m", NOW, is_valid=True)
    assert created == update(None, value, tracker, manager="m", now=NOW)


# --- patches ---

documents = st.dictionaries(words, nullable_values, max_size=4)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(child) for name, child in value.items() if child is not None}
    return [without_nulls(child) for child in value] if isinstance(value, list) else value


def merge_diff(old: Any, new: Any) -> Any:
    patch = {name: None for name in old if name not in new}
    for name, value in new.items():
        if name in old and isinstance(old[name], dict) and isinstance(value, dict):
            patch[name] = merge_diff(old[name], value)
        elif name not in old or not same(old[name], value):
            patch[name] = value
    return patch


@given(documents, documents)
@some
def test_a_merge_patch_of_a_difference_results_in_the_new_value(old: Any, new: Any) -> None:
    new = without_nulls(new)
    assert merge_patch(old, merge_diff(old, new)) == new


@given(documents, documents)
@some
def test_the_same_merge_patch_again_changes_nothing(document: Any, patch: Any) -> None:
    """Except for nulls in a list that has replaced an object: the second time it replaces a list, and they are removed."""
    once = merge_patch(document, deepcopy(patch))
    twice = merge_patch(once, deepcopy(patch))
    assert without_nulls(twice) == without_nulls(once)
    assert merge_patch(twice, deepcopy(patch)) == twice
    assert merge_patch(document, {}) == document


@given(documents, documents)
@some
def test_a_merge_patch_does_not_change_the_document(document: Any, patch: Any) -> None:
    before = json.dumps(document)
    merge_patch(document, patch)
    assert json.dumps(document) == before


@given(documents, documents)
@some
def test_a_json_patch_of_a_difference_results_in_the_new_value(old: Any, new: Any) -> None:
    operations = jsonpatch.make_patch(old, new).patch
    before = json.dumps(old)
    assert json_patch(old, operations) == new
    assert json.dumps(old) == before
