"""Sets of fields that are read or made again and again."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.api import codec
from noxu.apply import managed_fields
from noxu.apply.fieldset import FieldSet
from noxu.apply.managed_fields import Manager, Owned, RecurringSets, decode, encode


def read(sets: RecurringSets, fields: Any) -> FieldSet:
    """These fieldsV1 as the set of their manager."""
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    [owned] = decode([entry], sets).values()
    return owned.fields


def written(sets: RecurringSets, fields: FieldSet) -> Any:
    """A set as it is written into managedFields."""
    [entry] = encode({Manager("m", "Update", "v1"): Owned(fields, "v1")}, sets)
    return entry["fieldsV1"]


@pytest.fixture
def sets() -> RecurringSets:
    return RecurringSets()


def test_sets_that_are_written_alike_are_one(sets: RecurringSets) -> None:
    first = read(sets, {"f:spec": {"f:a": {}}})
    assert read(sets, {"f:spec": {"f:a": {}}}) is first
    assert written(sets, {"f:spec": {"f:a": {}}}) is first


def test_the_json_of_a_set_is_known_when_it_recurs(sets: RecurringSets) -> None:
    fields: FieldSet = {"f:spec": {"f:<": {}, "f:a": {}, 'k:{"n":1.5}': {}}}
    assert sets.json_of(read(sets, fields)) is None
    again = read(sets, {"f:spec": dict(reversed(fields["f:spec"].items()))})
    assert sets.json_of(again) is None  # its keys are in another order
    assert sets.json_of(written(sets, fields)) == codec.encode(fields, sort_keys=True)
    assert sets.json_of({"f:spec": dict(fields["f:spec"])}) is None


def test_what_is_no_canonical_set_is_read_as_one(sets: RecurringSets) -> None:
    fields: Any = {"f:a": {".": {}}, "x:y": {}}
    assert read(sets, fields) == {"f:a": {}}
    assert read(sets, dict(fields)) == {"f:a": {}}


def test_a_set_that_is_read_as_another_one_is_written_as_it_is(sets: RecurringSets) -> None:
    """The 0 of a list, which a client may write as -0.0, is stored as -0 and read as 0."""
    for _ in range(2):
        assert written(sets, {"f:a": {"v:-0": {}}}) == {"f:a": {"v:-0": {}}}
        assert read(sets, {"f:a": {"v:-0": {}}}) == {"f:a": {"v:0": {}}}


def test_long_sets_and_many_sets_are_not_kept(sets: RecurringSets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_fields, "MAX_KEPT", 3)
    for n in range(10):
        for _ in range(2):
            read(sets, {f"f:many-{n}": {}})
            read(sets, {f"f:{n}-{'x' * managed_fields.MAX_KEPT_BYTES}": {}})
        assert len(sets.kept()) <= 3
        assert len(sets._texts) <= 3
    assert all(len(text) <= managed_fields.MAX_KEPT_BYTES for text in sets.kept())
