"""The owners of fields after creates, updates and patches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.api.errors import plain_error
from noxu.apply.fieldset import of
from noxu.apply.manager import keep_times, update
from noxu.apply.tracker import MissingVersion, Tracker
from noxu.apply.types import of_schema, of_struct
from noxu.crd.types import CRD
from noxu.schema.structural import Structural, parse
from tests.apply.widgets import (
    BEFORE,
    EARLIER,
    MAIN,
    NOW,
    STATUS_ONLY,
    STRING,
    TYPES,
    V1,
    V2,
    V9,
    live,
    owners,
    owns,
    schema,
    times,
    tracker,
    widget,
)
from tests.rows import rows


def updated(old: Any, new: Any, by: str = "me", to: Tracker = MAIN) -> dict[str, Any]:
    before = json.dumps([old, new])
    value = update(old, new, to, manager=by, now=NOW)
    assert json.dumps([old, new]) == before
    return value


# --- creates ---


def test_a_create_owns_every_field_it_sets() -> None:
    new = widget({"a": 1, "n": {"x": 1}, "lmap": [{"k": "a", "v": "1"}], "lset": [], "m": {}}, labels={"l": "1"})
    assert updated(None, new)["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Update",
            "apiVersion": V1,
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
                "f:spec": {
                    ".": {},
                    "f:a": {},
                    "f:n": {".": {}, "f:x": {}},
                    "f:lmap": {".": {}, 'k:{"k":"a"}': {".": {}, "f:k": {}, "f:v": {}}},
                    "f:lset": {},
                    "f:m": {},
                },
            },
        }
    ]


NOT_OWNED: list[tuple[str, dict[str, Any]]] = [
    ("names", {"name": "x", "namespace": "y"}),
    ("what the server sets", {"uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": NOW, "selfLink": "/x"}),
]  # fmt: skip


@pytest.mark.parametrize("metadata", [row[1] for row in NOT_OWNED], ids=[row[0] for row in NOT_OWNED])
def test_metadata_that_has_no_owner(metadata: dict[str, Any]) -> None:
    assert "managedFields" not in updated(None, widget(**metadata))["metadata"]


OWNED_METADATA: list[tuple[str, dict[str, Any], Any]] = [
    ("labels", {"labels": {"a/b": "c"}}, {"f:labels": {".": {}, "f:a/b": {}}}),
    ("annotations", {"annotations": {"a": "c"}}, {"f:annotations": {".": {}, "f:a": {}}}),
    ("finalizers", {"finalizers": ["x/y"]}, {"f:finalizers": {".": {}, 'v:"x/y"': {}}}),
    ("owners", {"ownerReferences": [{"uid": "1", "name": "x"}]}, {"f:ownerReferences": {".": {}, 'k:{"uid":"1"}': {}}}),
    ("generateName", {"generateName": "x-"}, {"f:generateName": {}}),
]


@pytest.mark.parametrize(
    ("metadata", "expected"), [row[1:] for row in OWNED_METADATA], ids=[row[0] for row in OWNED_METADATA]
)
def test_metadata_that_is_owned(metadata: dict[str, Any], expected: Any) -> None:
    assert owners(updated(None, widget(**metadata))) == {"update me": {"f:metadata": expected}}


def test_status_is_not_owned_where_it_cannot_be_set() -> None:
    assert owners(updated(None, widget({"a": 1}, status={"r": 1}))) == {"update me": {"f:spec": {".": {}, "f:a": {}}}}
    assert owners(updated(None, widget(status={"r": 1}))) == {}
    assert owners(updated(None, widget(status={"r": 1}), to=tracker())) == {
        "update me": {"f:status": {".": {}, "f:r": {}}}
    }


def test_without_a_schema_everything_is_deduced() -> None:
    to = tracker(types={V1: of_schema(None)})
    new = widget({"a": {"b": [1]}}, labels={"x": "y"})
    assert owners(updated(None, new, to=to)) == {
        "update me": {
            "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
            "f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}},
        }
    }


def test_a_manager_without_a_name_is_unknown() -> None:
    assert list(owners(updated(None, widget({"a": 1}), by=""))) == ["update unknown"]


def test_a_create_through_a_subresource_is_one_of_it() -> None:
    value = updated(None, widget(status={"r": 1}), to=tracker(subresource="x"))
    assert owners(value) == {"update me x": {"f:status": {".": {}, "f:r": {}}}}


def test_an_item_twice_is_owned_as_one() -> None:
    value = updated(None, widget({"lset": ["a", "a", "b"]}))
    assert owners(value) == {"update me": {"f:spec": {".": {}, "f:lset": {".": {}, 'v:"a"': {}, 'v:"b"': {}}}}}


WRONG: list[tuple[str, Any]] = [
    ("a value of another type", {"a": "x"}),
    ("an undeclared field", {"zz": 1}),
    ("an item without a place", {"lset": [None]}),
]


@pytest.mark.parametrize("spec", [row[1] for row in WRONG], ids=[row[0] for row in WRONG])
def test_an_object_that_is_not_of_its_type_is_not_tracked(spec: Any) -> None:
    assert "managedFields" not in updated(None, widget(spec))["metadata"]
    entries = [owns("update m", {"f:spec": {"f:a": {}}})]
    assert updated(live({"a": 1}, managers=entries), live(spec))["metadata"]["managedFields"] == entries
    assert updated(live(spec, managers=entries), live({"a": 1}))["metadata"]["managedFields"] == entries


# --- updates ---

A, B = {"f:spec": {"f:a": {}}}, {"f:spec": {"f:b": {}}}
AB = {"f:spec": {"f:a": {}, "f:b": {}}}

UPDATES: list[tuple[str, Any, dict[str, Any], Any, dict[str, Any]]] = [
    # name, spec before, owners before, spec after, owners after
    ("a changed leaf", {"a": 1, "b": "x"}, {"apply m": AB}, {"a": 2, "b": "x"}, {"apply m": B, "update me": A}),
    ("an equal value", {"a": 1}, {"apply m": A}, {"a": 1}, {"apply m": A}),
    ("the last field of another manager", {"a": 1}, {"apply m": A}, {"a": 2}, {"update me": A}),
    ("a field without an owner", {"a": 1, "b": "x"}, {"apply m": A}, {"a": 1, "b": "y"}, {"apply m": A, "update me": B}),
    ("a removed field", {"a": 1, "b": "x"}, {"apply m": AB, "update n": B}, {"a": 1}, {"apply m": A}),
    ("a new field in a new struct", {"a": 1}, {"apply m": A}, {"a": 1, "n": {"x": 1}},
     {"apply m": A, "update me": {"f:spec": {"f:n": {".": {}, "f:x": {}}}}}),
    ("a new key of a map", {"m": {"a": "1"}}, {"apply m": {"f:spec": {"f:m": {"f:a": {}}}}}, {"m": {"a": "1", "b": "1"}},
     {"apply m": {"f:spec": {"f:m": {"f:a": {}}}}, "update me": {"f:spec": {"f:m": {"f:b": {}}}}}),
    ("my own field again", {"a": 1}, {"update me": A}, {"a": 2}, {"update me": A}),
    ("more fields of mine", {"a": 1, "b": "x"}, {"update me": A}, {"a": 1, "b": "y"}, {"update me": AB}),
    ("a field of mine removed", {"a": 1, "b": "x"}, {"update me": AB}, {"a": 1}, {"update me": A}),
    ("the same manager, which applied before", {"a": 1}, {"apply me": A}, {"a": 2}, {"update me": A}),
    ("an item's field", {"lmap": [{"k": "a", "v": "1"}]}, {"apply m": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}, "f:v": {}}}}}},
     {"lmap": [{"k": "a", "v": "2"}]},
     {"apply m": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}}}}}, "update me": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {"f:v": {}}}}}}),
    ("an item removed", {"lmap": [{"k": "a"}, {"k": "b"}]}, {"apply m": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}}}}}},
     {"lmap": [{"k": "b"}]}, {}),
    ("items in another order", {"lset": ["a", "b"]}, {"apply m": {"f:spec": {"f:lset": {'v:"a"': {}}}}}, {"lset": ["b", "a"]},
     {"apply m": {"f:spec": {"f:lset": {'v:"a"': {}}}}}),
    ("an atomic list", {"lat": ["a"]}, {"apply m": {"f:spec": {"f:lat": {}}}}, {"lat": ["a", "b"]}, {"update me": {"f:spec": {"f:lat": {}}}}),
    ("an entry without fields", {"a": 1}, {"apply m": {}, "apply n": A}, {"a": 1}, {"apply n": A}),
    ("a struct emptied", {"n": {"x": 1}}, {"update m": {"f:spec": {".": {}, "f:n": {".": {}, "f:x": {}}}}}, {"n": {}},
     {"update m": {"f:spec": {".": {}, "f:n": {}}}}),
    ("the spec removed", {"a": 1}, {"update m": {"f:spec": {".": {}, "f:a": {}}}}, ..., {}),
]  # fmt: skip


@rows(("before", "managers", "after", "expected"), [row[1:] for row in UPDATES], ids=[row[0] for row in UPDATES])
def test_an_update_owns_the_fields_it_writes(
    before: Any, managers: dict[str, Any], after: Any, expected: dict[str, Any]
) -> None:
    entries = [owns(manager, fields, time=BEFORE) for manager, fields in managers.items()]
    value = updated(live(before, managers=entries), live(after))
    assert owners(value) == expected
    assert value.get("spec", ...) == after


def test_only_the_writer_gets_a_new_time() -> None:
    old = live({"a": 1, "b": "x"}, managers=[owns("apply m", AB, time=EARLIER), owns("update n", B)])
    assert times(updated(old, live({"a": 2, "b": "x"}))) == {"apply m": EARLIER, "update n": "", "update me": NOW}
    mine = live({"a": 1, "b": "x"}, managers=[owns("update me", A, time=BEFORE)])
    assert times(updated(mine, live({"a": 1}))) == {"update me": BEFORE}
    assert times(updated(mine, live({"a": 2, "b": "x"}))) == {"update me": NOW}


def test_removing_the_field_of_another_manager_creates_no_entry() -> None:
    old = live({"a": 1, "b": "x"}, managers=[owns("apply m", A), owns("apply n", B)])
    assert owners(updated(old, live({"a": 1}))) == {"apply m": A}


def test_the_main_resource_does_not_change_the_owners_of_status() -> None:
    entries = [owns("update c", {"f:status": {"f:r": {}}}, subresource="status")]
    old = live({"a": 1}, status={"r": 1}, managers=entries)
    value = updated(old, live({"a": 2}, status={"r": 2}))
    assert owners(value) == {"update c status": {"f:status": {"f:r": {}}}, "update me": A}


def test_status_owns_only_status_and_unknown_top_level_fields() -> None:
    """As upstream: other top-level fields are tracked although they are not stored."""
    kind = Structural(type="object", preserve_unknown_fields=True)
    to = Tracker(V1, "Widget", {V1: of_schema(kind)}, subresource="status", resets=STATUS_ONLY.resets)
    old = live({"a": 1}, status={"r": 1}, managers=[owns("update m", A)])
    new = live({"a": 2}, status={"r": 2}, labels={"x": "y"}, managers=[{}]) | {"extra": 1}
    assert owners(updated(old, new, to=to)) == {
        "update m": A,
        "update me status": {"f:extra": {}, "f:status": {"f:r": {}}},
    }


# --- managedFields that are sent ---

SENT = [owns("apply other", B, time=EARLIER)]

GIVEN: list[tuple[str, Any, dict[str, Any]]] = [
    ("nothing: the live ones", ..., {"apply m": A}),
    ("null: the live ones", None, {"apply m": A}),
    ("other ones: those", SENT, {"apply other": B}),
    ("unreadable ones: the live ones", [owns("apply other", {"bad": {}})], {"apply m": A}),
    ("one unreadable of two: the live ones", [*SENT, owns("apply x", {"f:a": 1})], {"apply m": A}),
    ("an unknown version: the live ones, and nothing is tracked", [owns("apply x", B, version=V9)], {"apply m": A}),
    ("another group: the live ones", [owns("apply x", B, version="zz/v1")], {"apply m": A}),
    ("an empty entry: none at all", [{}], {}),
    ("none: none at all", [], {}),
]


@pytest.mark.parametrize(("sent", "expected"), [row[1:] for row in GIVEN], ids=[row[0] for row in GIVEN])
def test_sent_managers(sent: Any, expected: dict[str, Any]) -> None:
    old = live({"a": 1, "b": "x"}, managers=[owns("apply m", A, time=BEFORE)])
    assert owners(updated(old, live({"a": 1, "b": "x"}, managers=sent))) == expected


def test_after_a_reset_nothing_is_tracked() -> None:
    old = live({"a": 1}, managers=[owns("apply m", A)])
    reset = updated(old, live({"a": 2}, managers=[{}]))
    assert "managedFields" not in reset["metadata"]
    assert "managedFields" not in updated(live({"a": 1}), live({"a": 2}))["metadata"]


def test_a_create_may_be_sent_with_managers() -> None:
    value = updated(None, widget({"a": 1, "b": "x"}, managers=[owns("apply m", A, time=EARLIER)]))
    assert owners(value) == {"update me": {"f:spec": {".": {}, "f:a": {}, "f:b": {}}}}
    absent = {"f:spec": {"f:n": {"f:x": {}}}}
    kept = updated(None, widget({"a": 1}, managers=[owns("apply m", absent)]))
    assert owners(kept) == {"apply m": absent, "update me": {"f:spec": {".": {}, "f:a": {}}}}


def test_a_reset_create_is_tracked_all_the_same() -> None:
    assert list(owners(updated(None, widget({"a": 1}, managers=[{}])))) == ["update me"]


def test_a_create_with_an_unknown_version_is_not_tracked() -> None:
    value = updated(None, widget({"a": 1}, managers=[owns("apply m", A, version=V9)]))
    assert "managedFields" not in value["metadata"]


def test_subresources_look_at_the_live_managers_only() -> None:
    old = live({"a": 1}, status={"r": 1}, managers=[owns("apply m", A)])
    new = live({"a": 1}, status={"r": 2}, managers=[{}])
    assert owners(updated(old, new, to=STATUS_ONLY)) == {"apply m": A, "update me status": {"f:status": {"f:r": {}}}}


def test_live_managers_that_cannot_be_read_are_none() -> None:
    old = live({"a": 1}, managers=[owns("apply m", {"bad": {}})])
    assert "managedFields" not in updated(old, live({"a": 2}))["metadata"]


# --- more than ten updaters ---


def many(*managers: tuple[str, str]) -> list[dict[str, Any]]:
    """Updaters of one key of the map each, as (name, time)."""
    return [owns(f"update {name}", {"f:spec": {"f:m": {f"f:{name}": {}}}}, time=time) for name, time in managers]


def test_the_oldest_updaters_are_merged() -> None:
    entries = many(*((f"u{n:02}", f"2026-01-01T00:00:{n:02}Z") for n in range(10)))
    spec = {"m": {f"u{n:02}": "x" for n in range(10)}}
    value = updated(live(spec, managers=entries), live({"m": {**spec["m"], "z": "x"}}))
    owned_by = owners(value)
    assert len(owned_by) == 10
    assert owned_by["update ancient-changes"] == {"f:spec": {"f:m": {"f:u00": {}, "f:u01": {}}}}
    assert times(value)["update ancient-changes"] == "2026-01-01T00:00:01Z"
    assert "update u02" in owned_by
    assert owned_by["update me"] == {"f:spec": {"f:m": {"f:z": {}}}}


def test_old_updaters_join_those_already_merged() -> None:
    entries = many(
        ("ancient-changes", "2026-01-01T00:00:00Z"), *((f"u{n}", f"2026-01-01T00:00:1{n}Z") for n in range(9))
    )
    spec = {"m": {"ancient-changes": "x"} | {f"u{n}": "x" for n in range(9)}}
    value = updated(live(spec, managers=entries), live({"m": {**spec["m"], "z": "x"}}))
    assert owners(value)["update ancient-changes"] == {"f:spec": {"f:m": {"f:ancient-changes": {}, "f:u0": {}}}}


def test_of_updaters_with_equal_times_the_first_by_name_is_merged() -> None:
    entries = many(*((f"u{n}", BEFORE) for n in range(9, -1, -1)))
    spec = {"m": {f"u{n}": "x" for n in range(10)}}
    value = updated(live(spec, managers=entries), live({"m": {**spec["m"], "z": "x"}}))
    assert owners(value)["update ancient-changes"] == {"f:spec": {"f:m": {"f:u0": {}, "f:u1": {}}}}


def test_every_version_has_its_own() -> None:
    entries = [
        owns(f"update u{n}", {"f:spec": {"f:m": {f"f:u{n}": {}}}}, version=V2 if n == 1 else V1) for n in range(11)
    ]
    spec = {"m": {f"u{n}": "x" for n in range(11)}}
    value = updated(live(spec, managers=entries), live({"m": {**spec["m"], "u10": "y"}}))
    owned_by = owners(value)
    assert owned_by["update ancient-changes"] == {"f:spec": {"f:m": {"f:u0": {}, "f:u2": {}}}}
    assert owned_by[f"update u1 at {V2}"] == {"f:spec": {"f:m": {"f:u1": {}}}}


def test_appliers_do_not_count() -> None:
    entries = [owns(f"apply a{n}", {"f:spec": {"f:m": {f"f:a{n}": {}}}}) for n in range(20)]
    spec = {"m": {f"a{n}": "x" for n in range(20)}}
    value = updated(live(spec, managers=entries), live({"m": {**spec["m"], "z": "x"}}))
    assert len(owners(value)) == 21


# --- versions ---


def renaming(value: dict[str, Any], version: str) -> dict[str, Any]:
    """v2 calls `b` of v1 `text`."""
    spec = dict(value["spec"])
    old, new = ("b", "text") if version == V2 else ("text", "b")
    if old in spec:
        spec[new] = spec.pop(old)
    return {**value, "apiVersion": version, "spec": spec}


TWO = {V1: TYPES[V1], V2: of_schema(schema(text=STRING))}


def test_fields_of_another_version_are_compared_there() -> None:
    text = {"f:spec": {"f:a": {}, "f:text": {}}}
    old = live({"a": 1, "b": "x"}, managers=[owns("apply m", text, version=V2)])
    to = tracker(types=TWO, convert=renaming)
    assert owners(updated(old, live({"a": 1, "b": "y"}), to=to)) == {f"apply m at {V2}": A, "update me": B}
    assert owners(updated(old, live({"a": 1}), to=to)) == {f"apply m at {V2}": A}
    assert owners(updated(old, live({"a": 1, "b": "x", "m": {}}), to=to))[f"apply m at {V2}"] == text


def test_converting_happens_once_for_each_object_and_version() -> None:
    calls = []

    def convert(value: dict[str, Any], version: str) -> dict[str, Any]:
        calls.append((value["spec"]["a"], version))
        return {**value, "apiVersion": version}

    entries = [owns(f"apply m{n}", A, version=V2) for n in range(5)]
    updated(live({"a": 1}, managers=entries), live({"a": 2}), to=tracker(convert=convert))
    assert calls == [(1, V2), (2, V2)]


def test_a_failed_conversion_keeps_the_live_managers() -> None:
    def convert(value: Any, version: str) -> Any:
        raise plain_error("conversion webhook failed")

    entries = [owns("apply m", A, version=V2)]
    value = updated(live({"a": 1}, managers=entries), live({"a": 2}), to=tracker(convert=convert))
    assert value["metadata"]["managedFields"] == entries
    assert value["spec"] == {"a": 2}


def test_a_conversion_to_another_kind_keeps_the_live_managers() -> None:
    def convert(value: Any, version: str) -> Any:
        return {**value, "apiVersion": version, "spec": {"a": "x"}}

    entries = [owns("apply m", A, version=V2)]
    assert (
        updated(live({"a": 1}, managers=entries), live({"a": 2}), to=tracker(convert=convert))["metadata"][
            "managedFields"
        ]
        == entries
    )


def test_built_in_kinds_forget_versions_that_are_gone() -> None:
    entries = [owns("apply m", A, version=V9), owns("apply n", A)]
    to = tracker(custom=False)
    assert owners(updated(live({"a": 1}, managers=entries), live({"a": 1}), to=to)) == {"apply n": A}


def test_a_version_may_turn_out_to_be_gone() -> None:
    def convert(value: Any, version: str) -> Any:
        raise MissingVersion(version)

    entries = [owns("apply m", A, version=V2), owns("apply n", A)]
    assert owners(updated(live({"a": 1}, managers=entries), live({"a": 1}), to=tracker(convert=convert))) == {
        "apply n": A
    }


def test_a_field_that_has_become_atomic_is_owned_as_one() -> None:
    parts = {"f:spec": {"f:atom": {".": {}, "f:x": {}}, "f:a": {}}}
    old = live(
        {"a": 1, "atom": {"x": "1"}},
        managers=[owns("apply m", parts), owns("update n", {"f:spec": {"f:atom": {"f:y": {}}}})],
    )
    value = updated(old, live({"a": 1, "atom": {"x": "1"}, "b": "x"}))
    whole = {"f:spec": {"f:atom": {}}}
    assert owners(value) == {"apply m": {"f:spec": {"f:atom": {}, "f:a": {}}}, "update n": whole, "update me": B}


# --- built-in kinds ---


def test_structs_that_are_not_pointers_always_exist() -> None:
    """A Go struct has no way not to have its fields: a create owns the fields of `names`, but not `names`."""
    empty = {"metadata": {}, "spec": {"group": "", "names": {"plural": "", "kind": ""}, "scope": "", "versions": None}}
    version = "apiextensions.k8s.io/v1"
    to = Tracker(version, "CustomResourceDefinition", {version: of_struct(CRD)}, empty=empty, custom=False)
    new = {
        "kind": "CustomResourceDefinition",
        "apiVersion": version,
        "metadata": {"name": "x"},
        "spec": {
            "group": "g.example.com",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True}],
            "conversion": {"strategy": "None"},
        },
    }
    [entry] = updated(None, new, to=to)["metadata"]["managedFields"]
    assert json.dumps(entry["fieldsV1"]) == json.dumps(
        {
            "f:spec": {
                "f:conversion": {".": {}, "f:strategy": {}},
                "f:group": {},
                "f:names": {"f:kind": {}, "f:plural": {}, "f:singular": {}},
                "f:scope": {},
                "f:versions": {},
            }
        }
    )  # in this order


# --- no-op writes ---

TIMED = [owns("update m", A, time=BEFORE), owns("update n", B, time=BEFORE)]
LATER = [owns("update m", A, time=NOW), owns("update n", B, time=BEFORE)]

NO_OPS: list[tuple[str, Any, Any, bool]] = [
    ("nothing but a time", live({"a": 1}, managers=TIMED), live({"a": 1}, managers=LATER), True),
    ("another value too", live({"a": 1}, managers=TIMED), live({"a": 2}, managers=LATER), False),
    ("a number of another type too", live({"a": 1}, managers=TIMED), live({"a": 1.0}, managers=LATER), False),
    ("other metadata too", live({"a": 1}, managers=TIMED), live({"a": 1}, managers=LATER, labels={"x": "y"}), False),
    ("other fields too", live({"a": 1}, managers=TIMED), live({"a": 1}, managers=[LATER[0], owns("update n", A, time=BEFORE)]), False),
    ("another entry", live({"a": 1}, managers=TIMED[:1]), live({"a": 1}, managers=LATER), False),
    ("another order", live({"a": 1}, managers=TIMED), live({"a": 1}, managers=LATER[::-1]), False),
    ("a time that was not there", live({"a": 1}, managers=[owns("apply m", A)]), live({"a": 1}, managers=[owns("apply m", A, time=NOW)]), True),
    ("no managers before", live({"a": 1}), live({"a": 1}, managers=LATER), False),
    ("no managers after", live({"a": 1}, managers=TIMED), live({"a": 1}), False),
]  # fmt: skip


@rows(("old", "new", "kept"), [row[1:] for row in NO_OPS], ids=[row[0] for row in NO_OPS])
def test_a_new_time_alone_is_no_change(old: Any, new: Any, kept: bool) -> None:
    value = keep_times(old, new)
    assert value == (old if kept else new)
    if not kept:
        assert value is new


def test_objects_with_equal_times_are_returned_unchanged() -> None:
    new = live({"a": 2}, managers=TIMED)
    assert keep_times(live({"a": 1}, managers=TIMED), new) is new


# --- sharing and depth ---


def test_the_object_is_shared_but_for_its_metadata() -> None:
    new = live({"a": 2, "any": {"x": 1}})
    value = updated(live({"a": 1}, managers=[owns("apply m", A)]), new)
    assert value["spec"] is new["spec"]
    assert "managedFields" not in new["metadata"]


def test_an_object_of_the_greatest_depth() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = {"a": deep}
    created = update(None, widget({"any": {"x": deep}}), MAIN, manager="me", now=NOW)
    fields = created["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:any"]["f:x"]
    depth = 0
    while fields:
        fields, depth = fields["f:a"], depth + 1
    assert depth == 10_000
    created["metadata"]["uid"] = "u"
    changed = update(created, live({"any": {"x": deep, "y": 1}}), MAIN, manager="you", now=NOW)
    assert owners(changed)["update you"] == {"f:spec": {"f:any": {"f:y": {}}}}
    assert keep_times(created, created) is created


def test_a_type_of_its_own_for_every_version() -> None:
    """What is a set at one version may be one at another: each manager's fields follow its own version's type."""
    atomic = of_schema(
        parse(
            {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"lset": {"type": "array", "items": STRING}}}},
            }
        )
    )
    to = tracker(types={V1: TYPES[V1], V2: atomic})
    parts = {"f:spec": {"f:lset": {'v:"a"': {}, 'v:"b"': {}}}}
    old = live({"lset": ["a", "b"]}, managers=[owns("apply m", parts), owns("apply n", parts, version=V2)])
    assert owners(updated(old, live({"lset": ["a", "b", "c"]}), to=to)) == {
        "apply m": parts,
        "update me": {"f:spec": {"f:lset": {'v:"c"': {}}}},
    }


def test_resets_are_of_their_version() -> None:
    to = tracker(resets={V1: of(("f:status",))})
    entries = [owns("apply m", {"f:status": {"f:r": {}}}), owns("apply n", {"f:status": {"f:r": {}}}, version=V2)]
    old = live({"a": 1}, status={"r": 1}, managers=entries)
    assert owners(updated(old, live({"a": 1}, status={"r": 2}), to=to)) == {"apply m": {"f:status": {"f:r": {}}}}
