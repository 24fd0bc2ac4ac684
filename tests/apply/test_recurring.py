"""Sets of fields that are read or made again and again."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.api import codec
from noxu.apply import recurring
from noxu.apply.entries import Manager, Owned, decode, encode
from noxu.apply.fieldset import FieldSet


def read(fields: Any) -> FieldSet:
    """These fieldsV1 as the set of their manager."""
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    [owned] = decode([entry]).values()
    return owned.fields


def written(fields: FieldSet) -> Any:
    """A set as it is written into managedFields."""
    [entry] = encode({Manager("m", "Update", "v1"): Owned(fields, "v1")})
    return entry["fieldsV1"]


@pytest.fixture(autouse=True)
def nothing_is_known() -> None:
    recurring.forget()


def test_sets_that_are_written_alike_are_one() -> None:
    first = read({"f:spec": {"f:a": {}}})
    assert read({"f:spec": {"f:a": {}}}) is first
    assert written({"f:spec": {"f:a": {}}}) is first


def test_the_json_of_a_set_is_known_when_it_recurs() -> None:
    fields: FieldSet = {"f:spec": {"f:<": {}, "f:a": {}, 'k:{"n":1.5}': {}}}
    assert recurring.json_of(read(fields)) is None
    again = read({"f:spec": dict(reversed(fields["f:spec"].items()))})
    assert recurring.json_of(again) is None  # its keys are in another order
    assert recurring.json_of(written(fields)) == codec.encode(fields, sort_keys=True)
    assert recurring.json_of({"f:spec": dict(fields["f:spec"])}) is None


def test_what_is_no_canonical_set_is_read_as_one() -> None:
    fields: Any = {"f:a": {".": {}}, "x:y": {}}
    assert read(fields) == {"f:a": {}}
    assert read(dict(fields)) == {"f:a": {}}


def test_a_set_that_is_read_as_another_one_is_written_as_it_is() -> None:
    """The 0 of a list, which a client may write as -0.0, is stored as -0 and read as 0."""
    for _ in range(2):
        assert written({"f:a": {"v:-0": {}}}) == {"f:a": {"v:-0": {}}}
        assert read({"f:a": {"v:-0": {}}}) == {"f:a": {"v:0": {}}}


def test_long_sets_and_many_sets_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurring, "MAX_KEPT", 3)
    for n in range(10):
        for _ in range(2):
            read({f"f:many-{n}": {}})
            read({f"f:{n}-{'x' * recurring.MAX_KEPT_BYTES}": {}})
        assert len(recurring.kept()) <= 3
        assert len(recurring._texts) <= 3
    assert all(len(text) <= recurring.MAX_KEPT_BYTES for text in recurring.kept())
