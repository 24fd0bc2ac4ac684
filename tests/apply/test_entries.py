"""managedFields: reading, writing, identifying managers."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.apply.managed_fields import InvalidEntries, Manager, Owned, decode, encode
from tests.rows import rows

FIELDS = {"f:spec": {"f:a": {}}}


def entry(**changes: Any) -> dict[str, Any]:
    given = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "g/v1",
        "time": "2026-01-02T03:04:05Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": FIELDS,
    }
    return {name: value for name, value in (given | changes).items() if value is not ...}


def owned(entries: list[Any]) -> dict[Manager, tuple[Any, str, str]]:
    return {manager: (entry.fields, entry.version, entry.time) for manager, entry in decode(entries).items()}


def test_an_entry_is_read() -> None:
    assert owned([entry()]) == {Manager("m", "Update", "g/v1"): (FIELDS, "g/v1", "2026-01-02T03:04:05Z")}


def test_a_manager_that_applies_is_the_same_at_every_version() -> None:
    assert owned([entry(operation="Apply")]) == {Manager("m", "Apply"): (FIELDS, "g/v1", "2026-01-02T03:04:05Z")}
    assert len(decode([entry(operation="Apply"), entry(operation="Apply", apiVersion="g/v2")])) == 1


def test_updaters_are_reported_apart_by_version_and_subresource() -> None:
    managers = decode([entry(), entry(apiVersion="g/v2"), entry(subresource="status"), entry(manager="n")])
    assert list(managers) == [
        Manager("m", "Update", "g/v1"),
        Manager("m", "Update", "g/v2"),
        Manager("m", "Update", "g/v1", "status"),
        Manager("n", "Update", "g/v1"),
    ]


def test_of_two_entries_of_one_manager_the_last_one_counts() -> None:
    assert owned([entry(), entry(fieldsV1={"f:b": {}}, time=...)]) == {
        Manager("m", "Update", "g/v1"): ({"f:b": {}}, "g/v1", "")
    }


READ: list[tuple[str, dict[str, Any], tuple[Any, str, str]]] = [
    ("no fields", {"fieldsV1": ...}, ({}, "g/v1", "2026-01-02T03:04:05Z")),
    ("null fields", {"fieldsV1": None}, ({}, "g/v1", "2026-01-02T03:04:05Z")),
    ("no time", {"time": ...}, (FIELDS, "g/v1", "")),
    ("null time", {"time": None}, (FIELDS, "g/v1", "")),
    ("a time in another zone", {"time": "2026-01-02T05:04:05.5+02:00"}, (FIELDS, "g/v1", "2026-01-02T03:04:05Z")),
    ("no name", {"manager": ...}, (FIELDS, "g/v1", "2026-01-02T03:04:05Z")),
]


@pytest.mark.parametrize(("changes", "expected"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_optional_fields_of_an_entry(changes: dict[str, Any], expected: tuple[Any, str, str]) -> None:
    assert list(owned([entry(**changes)]).values()) == [expected]


def test_nothing_is_no_managers() -> None:
    assert decode(None) == {}
    assert decode([]) == {}


UNREADABLE: list[tuple[str, Any, str]] = [
    ("another operation", [entry(operation="Foo")], "operation must be `Apply` or `Update`"),
    ("no operation", [entry(operation=...)], "operation must be `Apply` or `Update`"),
    ("an empty entry", [{}], "operation must be `Apply` or `Update`"),
    ("no version", [entry(apiVersion=...)], "apiVersion must not be empty"),
    ("an empty version", [entry(apiVersion="")], "apiVersion must not be empty"),
    ("no type of fields", [entry(), entry(fieldsType=...)], "missing fieldsType in managed fields entry 1"),
    ("another type of fields", [entry(fieldsType="V2")], 'invalid fieldsType "V2" in managed fields entry 0'),
    ("malformed fields", [entry(fieldsV1={"bad": {}})], "error decoding versioned set: error decoding set: "),
    ("fields that are no object", [entry(fieldsV1="x")], "error decoding versioned set: error decoding set: "),
    ("a time that is none", [entry(time="yesterday")], 'parsing time "yesterday"'),
    ("a name that is no text", [entry(manager=1)], "manager of a managed fields entry must be a string"),
    ("an entry that is no object", ["x"], "managed fields entry 0 must be an object"),
    ("no list", {"a": 1}, "managedFields must be a list"),
]


@rows(("entries", "message"), [row[1:] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_one_bad_entry_spoils_them_all(entries: Any, message: str) -> None:
    with pytest.raises(InvalidEntries) as refused:
        decode(entries)
    assert str(refused.value).startswith(message)


def test_entries_are_written_as_they_were_read() -> None:
    entries = [entry(operation="Apply"), entry(), entry(subresource="status", time="2026-01-02T03:04:06Z")]
    assert encode(decode(entries)) == entries
    assert [list(entry) for entry in encode(decode(entries))] == [
        ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"],
        ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"],
        ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"],
    ]


def test_entries_are_sorted() -> None:
    def sort_key(entry: dict[str, Any]) -> tuple[str, ...]:
        return (
            entry["operation"],
            entry.get("time", "")[-3:-1],
            entry["manager"],
            entry["apiVersion"],
            entry.get("subresource", ""),
        )

    entries = [
        entry(manager=manager, operation=operation, apiVersion=version, time=time, subresource=subresource)
        for manager in ("b", "a")
        for operation in ("Update", "Apply")
        for version in ("g/v2", "g/v1")
        for time in (..., "2026-01-02T03:04:05Z", "2026-01-02T03:04:04Z")
        for subresource in ("status", ...)
    ]
    written = encode(decode(entries))
    assert [sort_key(entry) for entry in written] == sorted(map(sort_key, written))
    assert written[0]["operation"] == "Apply"


def test_keys_of_fields_are_sorted_on_request() -> None:
    managers = {Manager("m", "Update", "v1"): Owned({'k:{"a":1}': {"f:b": {}, "f:a": {}}, "f:z": {}}, "v1")}
    [entry] = encode(managers, in_order=True)
    assert list(entry["fieldsV1"]) == ["f:z", 'k:{"a":1}']
    assert list(entry["fieldsV1"]['k:{"a":1}']) == ["f:a", "f:b"]
    assert list(encode(managers)[0]["fieldsV1"]) == ['k:{"a":1}', "f:z"]


NAMES: list[tuple[Manager, str, str]] = [
    (Manager("m", "Apply"), '"m"', '{"manager":"m","operation":"Apply"}'),
    (Manager("m", "Apply", "", "status"), '"m" with subresource "status"', '{"manager":"m","operation":"Apply","subresource":"status"}'),
    (Manager("m", "Update", "g/v1"), '"m" using g/v1', '{"manager":"m","operation":"Update","apiVersion":"g/v1"}'),
    (Manager('a"<', "Update", "v1", "x"), '"a\\"<" with subresource "x" using v1',
     '{"manager":"a\\"\\u003c","operation":"Update","apiVersion":"v1","subresource":"x"}'),
    (Manager("", "Update", "v1"), '"" using v1', '{"operation":"Update","apiVersion":"v1"}'),
]  # fmt: skip


@pytest.mark.parametrize(("manager", "message", "identifier"), NAMES)
def test_managers_are_named(manager: Manager, message: str, identifier: str) -> None:
    assert str(manager) == message
    assert manager.identifier == identifier


def test_depth_is_no_reason_to_fail() -> None:
    deep: Any = {}
    for _ in range(2000):
        deep = {"f:a": deep}
    assert decode([entry(fieldsV1=deep)])
