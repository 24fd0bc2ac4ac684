"""Server-side apply: merging, conflicts, withdrawal, and the owners afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.api.errors import ApiError, plain_error
from noxu.apply.manager import apply
from noxu.apply.tracker import MissingVersion, Tracker
from noxu.apply.types import of_schema, of_struct
from noxu.crd.types import CRD
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


def applied(old: Any, config: Any, by: str = "me", to: Tracker = MAIN, *, force: bool = False) -> dict[str, Any]:
    before = json.dumps([old, config])
    value = apply(old, config, to, manager=by, force=force, now=NOW).value
    assert json.dumps([old, config]) == before
    return value


def refused(old: Any, config: Any, by: str = "me", to: Tracker = MAIN, *, force: bool = False) -> ApiError:
    with pytest.raises(ApiError) as error:
        apply(old, config, to, manager=by, force=force, now=NOW)
    return error.value


A, B = {"f:spec": {"f:a": {}}}, {"f:spec": {"f:b": {}}}
AB = {"f:spec": {"f:a": {}, "f:b": {}}}


# --- creating ---


def test_applying_creates() -> None:
    value = applied(None, widget({"a": 1, "n": {"x": 1}, "lmap": [{"k": "a"}], "m": {}, "lset": []}, labels={"l": "1"}))
    assert value["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Apply",
            "apiVersion": V1,
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:l": {}}},
                "f:spec": {
                    "f:a": {},
                    "f:n": {"f:x": {}},
                    "f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}}},
                    "f:m": {},
                },
            },
        }
    ]
    assert value["spec"] == {"a": 1, "n": {"x": 1}, "lmap": [{"k": "a"}], "m": {}, "lset": []}
    assert value["metadata"]["name"] == "w"


def test_fields_without_an_owner_have_no_entry() -> None:
    assert "managedFields" not in applied(None, widget())["metadata"]


# --- applying again ---


def test_applying_twice_changes_nothing() -> None:
    config = widget({"a": 1, "lmap": [{"k": "b"}, {"k": "a"}], "any": {"x": {"y": [1]}}}, labels={"l": "1"})
    once = apply(None, config, MAIN, manager="me", now=BEFORE).value
    twice = applied(once, config)
    assert twice == once
    assert times(twice) == {"apply me": BEFORE}


def test_applying_equal_values_is_a_write_without_a_time() -> None:
    old = live({"a": 1, "b": "x"}, managers=[owns("apply m", AB, time=BEFORE)])
    value = applied(old, widget({"a": 1}))
    assert value["spec"] == old["spec"]
    assert owners(value) == {"apply me": A, "apply m": AB}
    assert times(value) == {"apply me": "", "apply m": BEFORE}
    again = applied(value, widget({"a": 1}))
    assert again == value


def test_claiming_less_that_others_own_keeps_the_time() -> None:
    old = live({"a": 1, "b": "x"}, managers=[owns("apply m", AB, time=EARLIER), owns("apply me", AB, time=BEFORE)])
    value = applied(old, widget({"a": 1}))
    assert value["spec"] == old["spec"]
    assert owners(value) == {"apply m": AB, "apply me": A}
    assert times(value) == {"apply m": EARLIER, "apply me": BEFORE}


def test_changing_an_own_value() -> None:
    old = live({"a": 1, "b": "x"}, managers=[owns("apply me", A, time=BEFORE), owns("apply m", B, time=BEFORE)])
    value = applied(old, widget({"a": 2}))
    assert value["spec"] == {"a": 2, "b": "x"}
    assert owners(value) == {"apply m": B, "apply me": A}
    assert times(value) == {"apply m": BEFORE, "apply me": NOW}


def test_an_equal_number_of_another_type_is_no_change() -> None:
    old = live({"a": 1}, managers=[owns("apply me", A, time=BEFORE)])
    value = applied(old, widget({"a": 1.0}))
    assert times(value) == {"apply me": BEFORE}


# --- withdrawing ---

WITHDRAWN: list[tuple[str, Any, dict[str, Any], Any, Any, dict[str, Any]]] = [
    # name, spec before, owners before, spec applied, spec after, owners after
    ("a leaf", {"a": 1, "b": "x"}, {"apply me": AB}, {"a": 1}, {"a": 1}, {"apply me": A}),
    ("a leaf that others apply too", {"a": 1, "b": "x"}, {"apply me": AB, "apply m": B}, {"a": 1}, {"a": 1, "b": "x"},
     {"apply me": A, "apply m": B}),
    ("a leaf that others updated", {"a": 1, "b": "x"}, {"apply me": A, "update m": B}, {"a": 1}, {"a": 1, "b": "x"},
     {"apply me": A, "update m": B}),
    ("a leaf that is gone already", {"a": 1}, {"apply me": AB}, {"a": 1}, {"a": 1}, {"apply me": A}),
    ("a key of a map", {"m": {"x": "1", "y": "1"}}, {"apply me": {"f:spec": {"f:m": {"f:x": {}, "f:y": {}}}}}, {"m": {"x": "1"}},
     {"m": {"x": "1"}}, {"apply me": {"f:spec": {"f:m": {"f:x": {}}}}}),
    ("a map with keys of others", {"m": {"x": "1", "y": "1"}, "a": 1},
     {"apply me": {"f:spec": {"f:a": {}, "f:m": {"f:x": {}}}}, "update m": {"f:spec": {"f:m": {"f:y": {}}}}}, {"a": 1},
     {"m": {"y": "1"}, "a": 1}, {"apply me": A, "update m": {"f:spec": {"f:m": {"f:y": {}}}}}),
    ("a struct", {"a": 1, "n": {"x": 1, "y": 2}}, {"apply me": {"f:spec": {"f:a": {}, "f:n": {"f:x": {}, "f:y": {}}}}}, {"a": 1},
     {"a": 1}, {"apply me": A}),
    ("a struct, and its fields without an owner", {"a": 1, "n": {"x": 1, "y": 2}}, {"apply me": {"f:spec": {"f:a": {}, "f:n": {"f:x": {}}}}},
     {"a": 1}, {"a": 1}, {"apply me": A}),
    ("a field of a struct, but not its siblings without an owner", {"n": {"x": 1, "y": 2}}, {"apply me": {"f:spec": {"f:n": {"f:x": {}}}}},
     {"n": {}}, {"n": {"y": 2}}, {"apply me": {"f:spec": {"f:n": {}}}}),
    ("a struct with a field that others own", {"a": 1, "n": {"x": 1, "y": 2}},
     {"apply me": {"f:spec": {"f:a": {}, "f:n": {"f:x": {}}}}, "update m": {"f:spec": {"f:n": {"f:y": {}}}}},
     {"a": 1}, {"a": 1, "n": {"y": 2}}, {"apply me": A, "update m": {"f:spec": {"f:n": {"f:y": {}}}}}),
    ("the fields of a struct, but not the struct", {"n": {"x": 1}}, {"apply me": {"f:spec": {"f:n": {"f:x": {}}}}}, {"n": {}},
     {"n": None}, {"apply me": {"f:spec": {"f:n": {}}}}),
    ("everything", {"a": 1}, {"apply me": A}, ..., ..., {}),
    ("an item of a set", {"lset": ["a", "b"]}, {"apply me": {"f:spec": {"f:lset": {'v:"a"': {}, 'v:"b"': {}}}}}, {"lset": ["b"]},
     {"lset": ["b"]}, {"apply me": {"f:spec": {"f:lset": {'v:"b"': {}}}}}),
    ("an item of a set that others have", {"lset": ["a", "b"]},
     {"apply me": {"f:spec": {"f:lset": {'v:"a"': {}, 'v:"b"': {}}}}, "apply m": {"f:spec": {"f:lset": {'v:"a"': {}}}}}, {"lset": ["b"]},
     {"lset": ["a", "b"]}, {"apply me": {"f:spec": {"f:lset": {'v:"b"': {}}}}, "apply m": {"f:spec": {"f:lset": {'v:"a"': {}}}}}),
    ("an item of a list-map, defaults and all", {"lmap": [{"k": "a", "p": 1}, {"k": "b", "p": 1}]},
     {"apply me": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}}, 'k:{"k":"b"}': {".": {}, "f:k": {}}}}}}, {"lmap": [{"k": "b"}]},
     {"lmap": [{"k": "b", "p": 1}]}, {"apply me": {"f:spec": {"f:lmap": {'k:{"k":"b"}': {".": {}, "f:k": {}}}}}}),
    ("an item with a field of others", {"lmap": [{"k": "a", "v": "1"}]},
     {"apply me": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}}}}}, "apply m": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}, "f:v": {}}}}}},
     {}, {"lmap": [{"k": "a", "v": "1"}]},
     {"apply m": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}, "f:v": {}}}}}, "apply me": {"f:spec": {}}}),
    ("an item of which others have updated a field", {"a": 1, "lmap": [{"k": "a", "v": "2"}, {"k": "b"}]},
     {"apply me": {"f:spec": {"f:a": {}, "f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}}}}}, "update m": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {"f:v": {}}}}}},
     {"a": 1}, {"a": 1, "lmap": [{"k": "b"}]}, {"apply me": A}),
    ("the only item of which others have updated a field leaves null", {"lmap": [{"k": "a", "v": "2"}]},
     {"apply me": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}}}}}, "update m": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {"f:v": {}}}}}},
     ..., {"lmap": None}, {}),
    ("an atomic list", {"a": 1, "lat": ["x"]}, {"apply me": {"f:spec": {"f:a": {}, "f:lat": {}}}}, {"a": 1}, {"a": 1}, {"apply me": A}),
    ("what is deduced", {"any": {"x": {"y": 1, "z": 1}, "w": 1}}, {"apply me": {"f:spec": {"f:any": {"f:x": {".": {}, "f:y": {}}, "f:w": {}}}}},
     {"any": {"w": 1}}, {"any": {"w": 1}}, {"apply me": {"f:spec": {"f:any": {"f:w": {}}}}}),
]  # fmt: skip


@rows(
    ("before", "managers", "config", "after", "expected"),
    [row[1:] for row in WITHDRAWN],
    ids=[row[0] for row in WITHDRAWN],
)
def test_withdrawing(before: Any, managers: dict[str, Any], config: Any, after: Any, expected: dict[str, Any]) -> None:
    entries = [owns(manager, fields, time=BEFORE) for manager, fields in managers.items()]
    value = applied(live(before, managers=entries), widget(config))
    assert value.get("spec", ...) == after
    assert owners(value) == expected


# --- conflicts ---


def status_of(error: ApiError) -> tuple[int, str, str]:
    return error.code, error.reason, error.message


def causes(error: ApiError) -> list[tuple[str, str]]:
    assert error.details is not None
    assert {cause["reason"] for cause in error.details["causes"]} == {"FieldManagerConflict"}
    return [(cause["message"], cause["field"]) for cause in error.details["causes"]]


CONFLICTS: list[tuple[str, Any, dict[str, Any], Any, list[str]]] = [
    # name, spec before, owners, spec applied, the fields in conflict
    ("a leaf", {"a": 1}, {"apply m": A}, {"a": 2}, [".spec.a"]),
    ("a key", {"m": {"k.with/odd": "x"}}, {"apply m": {"f:spec": {"f:m": {"f:k.with/odd": {}}}}}, {"m": {"k.with/odd": "y"}}, [".spec.m.k.with/odd"]),
    ("a field of an item", {"lmap": [{"k": "a", "v": "1"}]}, {"apply m": {"f:spec": {"f:lmap": {'k:{"k":"a"}': {".": {}, "f:k": {}, "f:v": {}}}}}},
     {"lmap": [{"k": "a", "v": "2"}]}, ['.spec.lmap[k="a"].v']),
    ("an item by two keys", {"lmap2": [{"k": "a", "p": 2, "v": "1"}]}, {"apply m": {"f:spec": {"f:lmap2": {'k:{"k":"a","p":2}': {"f:v": {}}}}}},
     {"lmap2": [{"p": 2, "k": "a", "v": "2"}]}, ['.spec.lmap2[k="a",p=2].v']),
    ("an atomic list", {"lat": ["a"]}, {"apply m": {"f:spec": {"f:lat": {}}}}, {"lat": ["b"]}, [".spec.lat"]),
    ("an atomic map", {"atom": {"x": "1"}}, {"apply m": {"f:spec": {"f:atom": {}}}}, {"atom": {"y": "1"}}, [".spec.atom"]),
    ("a field that the other wants to be absent", {}, {"update m": A}, {"a": 1}, [".spec.a"]),
    ("a value that is null now", {"a": 1}, {"apply m": A}, {"a": None}, [".spec.a"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "managers", "config", "fields"), [row[1:] for row in CONFLICTS], ids=[row[0] for row in CONFLICTS]
)
def test_a_conflict(before: Any, managers: dict[str, Any], config: Any, fields: list[str]) -> None:
    old = live(before, managers=[owns(manager, owned) for manager, owned in managers.items()])
    error = refused(old, widget(config))
    assert error.code == 409
    assert error.reason == "Conflict"
    assert [field for _, field in causes(error)] == fields
    value = applied(old, widget(config), force=True)
    assert "apply me" in owners(value)
    assert times(value)["apply me"] == NOW


NO_CONFLICTS: list[tuple[str, Any, dict[str, Any], Any]] = [
    ("an equal value", {"a": 1}, {"apply m": A}, {"a": 1}),
    ("another field", {"a": 1}, {"apply m": A}, {"b": "x"}),
    ("a new item in a set of another manager", {"lset": ["a"]}, {"apply m": {"f:spec": {"f:lset": {'v:"a"': {}}}}}, {"lset": ["b"]}),
    ("another order of a set of another manager", {"lset": ["a", "b"]}, {"apply m": {"f:spec": {"f:lset": {'v:"a"': {}, 'v:"b"': {}}}}}, {"lset": ["b", "a"]}),
    ("a new key in a map of another manager", {"m": {"a": "1"}}, {"apply m": {"f:spec": {"f:m": {"f:a": {}}}}}, {"m": {"b": "1"}}),
    ("a field of mine as an updater", {"a": 1}, {"apply m": B}, {"a": 2}),
    ("a field in a struct of another manager", {"n": {"x": 1}}, {"update m": {"f:spec": {"f:n": {".": {}, "f:x": {}}}}}, {"n": {"y": 1}}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "managers", "config"), [row[1:] for row in NO_CONFLICTS], ids=[row[0] for row in NO_CONFLICTS]
)
def test_no_conflict(before: Any, managers: dict[str, Any], config: Any) -> None:
    entries = [owns(manager, owned, time=BEFORE) for manager, owned in managers.items()]
    value = applied(live(before, managers=entries), widget(config))
    assert {name: fields for name, fields in owners(value).items() if name != "apply me"} == managers


MESSAGES: list[tuple[str, list[dict[str, Any]], Any, str, list[tuple[str, str]]]] = [
    ("one who applies", [owns("apply m1", A)], {"a": 2},
     'Apply failed with 1 conflict: conflict with "m1": .spec.a', [('conflict with "m1"', ".spec.a")]),
    ("one who updates", [owns("update up", A, time=BEFORE)], {"a": 2},
     f'Apply failed with 1 conflict: conflict with "up" using {V1}: .spec.a', [(f'conflict with "up" using {V1}', ".spec.a")]),
    ("one with a subresource", [owns("update s", A, subresource="status")], {"a": 2},
     f'Apply failed with 1 conflict: conflict with "s" with subresource "status" using {V1}: .spec.a',
     [(f'conflict with "s" with subresource "status" using {V1}', ".spec.a")]),
    ("two fields of one", [owns("apply m1", AB)], {"a": 2, "b": "y"},
     'Apply failed with 2 conflicts: conflicts with "m1":\n- .spec.a\n- .spec.b',
     [('conflict with "m1"', ".spec.a"), ('conflict with "m1"', ".spec.b")]),
    ("several, by their identity", [owns("apply z", A), owns("update m", B), owns("apply a", AB)], {"a": 2, "b": "y"},
     f'Apply failed with 4 conflicts: conflicts with "a":\n- .spec.a\n- .spec.b\nconflicts with "m" using {V1}:\n- .spec.b\n'
     'conflicts with "z":\n- .spec.a',
     [('conflict with "a"', ".spec.a"), ('conflict with "a"', ".spec.b"), (f'conflict with "m" using {V1}', ".spec.b"),
      ('conflict with "z"', ".spec.a")]),
    ("a name with quotes", [owns('apply a"b', A)], {"a": 2},
     'Apply failed with 1 conflict: conflict with "a\\"b": .spec.a', [('conflict with "a\\"b"', ".spec.a")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("entries", "config", "message", "expected"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES]
)
def test_conflicts_are_reported(entries: Any, config: Any, message: str, expected: list[tuple[str, str]]) -> None:
    error = refused(live({"a": 1, "b": "x"}, managers=entries), widget(config))
    assert status_of(error) == (409, "Conflict", message)
    assert causes(error) == expected


def test_forcing_takes_the_fields() -> None:
    entries = [owns("apply m", AB, time=BEFORE), owns("update n", A, time=BEFORE)]
    value = applied(live({"a": 1, "b": "x"}, managers=entries), widget({"a": 2}), force=True)
    assert owners(value) == {"apply m": B, "apply me": A}
    assert value["spec"] == {"a": 2, "b": "x"}


def test_forcing_takes_nothing_from_the_same_manager() -> None:
    entries = [owns("apply me", AB, time=BEFORE), owns("update me", A, time=BEFORE)]
    error = refused(live({"a": 1, "b": "x"}, managers=entries), widget({"a": 2, "b": "x"}))
    assert causes(error) == [(f'conflict with "me" using {V1}', ".spec.a")]


# --- before the first apply ---


def test_the_first_apply_gives_existing_fields_to_before_first_apply() -> None:
    value = applied(live({"a": 1, "n": {"x": 1}}), widget({"a": 1}))
    assert owners(value) == {
        "apply me": A,
        "update before-first-apply": {"f:spec": {".": {}, "f:a": {}, "f:n": {".": {}, "f:x": {}}}},
    }
    assert times(value) == {"apply me": "", "update before-first-apply": NOW}


def test_before_first_apply_conflicts_like_other_managers() -> None:
    error = refused(live({"a": 1}), widget({"a": 2}))
    assert causes(error) == [(f'conflict with "before-first-apply" using {V1}', ".spec.a")]
    value = applied(live({"a": 1}), widget({"a": 2}), force=True)
    assert owners(value) == {"apply me": A, "update before-first-apply": {"f:spec": {}}}


# --- subresources ---


def test_status_applied_to_the_main_resource_is_not_claimed() -> None:
    value = applied(None, widget({"a": 1}, status={"r": 1}))
    assert owners(value) == {"apply me": A}


def test_only_status_is_claimed_through_status() -> None:
    old = live({"a": 1}, managers=[owns("apply m", A, time=BEFORE)])
    value = applied(old, widget({"a": 2}, status={"r": 1}, labels={"x": "y"}), to=STATUS_ONLY)
    assert owners(value) == {"apply m": A, "apply me status": {"f:status": {"f:r": {}}}}


# --- metadata ---


def test_labels_and_finalizers_are_claimed_but_names_are_not() -> None:
    config = widget(
        labels={"a": "1"}, finalizers=["x.io/a"], namespace="default", uid="u-1", resourceVersion="7", generateName="g-"
    )
    fields = {"f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {'v:"x.io/a"': {}}, "f:generateName": {}}}
    assert owners(applied(None, config)) == {"apply me": fields}


def test_fields_are_withdrawn_by_a_configuration_that_spells_its_version_like_go() -> None:
    """`/v1` is the version v1 of the group without a name."""
    core = tracker("v1", types={"v1": TYPES[V1]}, custom=False, convert=lambda value, _: value)
    old = applied(None, widget({"a": 1, "b": "x"}, version="v1"), to=core)
    assert applied(old, widget({"a": 1}, version="/v1"), to=core)["spec"] == {"a": 1}


def test_withdrawn_labels_are_removed() -> None:
    fields = {"f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}}}
    old = live(labels={"a": "1", "b": "1", "c": "1"}, managers=[owns("apply me", fields)])
    assert applied(old, widget(labels={"b": "2"}))["metadata"]["labels"] == {"b": "2", "c": "1"}


# --- what cannot be applied ---

BAD: list[tuple[str, Any, str]] = [
    ("no type at all", {"metadata": {"name": "w"}}, "invalid object type: /, Kind="),
    ("no kind", {"apiVersion": V1}, "invalid object type: g.example.com/v1, Kind="),
    ("another kind", {"apiVersion": V1, "kind": "Gadget"}, "invalid object type: g.example.com/v1, Kind=Gadget"),
    ("another version", {"apiVersion": V2, "kind": "Widget"}, "invalid object type: g.example.com/v2, Kind=Widget"),
    ("the core group", {"apiVersion": "v1", "kind": "Widget"}, "invalid object type: /v1, Kind=Widget"),
    ("a version that is none", {"apiVersion": "a/b/c", "kind": "Widget"}, "invalid object type: /, Kind="),
    ("a version that is no text", {"apiVersion": 1, "kind": {}}, "invalid object type: /, Kind="),
    ("managed fields", widget({"a": 1}, managers=[owns("apply m", A)]), "metadata.managedFields must be nil"),
    ("no managed fields", widget({"a": 1}, managers=[]), "metadata.managedFields must be nil"),
]


@pytest.mark.parametrize(("config", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_requests(config: Any, message: str) -> None:
    assert status_of(refused(None, config)) == (400, "BadRequest", message)


def test_null_managed_fields_are_none() -> None:
    assert owners(applied(None, widget({"a": 1}, managers=None))) == {"apply me": A}


NAMED = "failed to create typed patch object (/w; g.example.com/v1, Kind=Widget): "

UNTYPED: list[tuple[str, Any, str]] = [
    ("a wrong type", widget({"a": "x"}), NAMED + ".spec.a: expected numeric (int or float), got string"),
    ("an undeclared field", widget({"zz": 1}), NAMED + ".spec.zz: field not declared in schema"),
    ("an undeclared field in metadata", widget(zz=1), NAMED + ".metadata.zz: field not declared in schema"),
    ("an item twice", widget({"lset": ["", ""]}), NAMED + '.spec.lset: duplicate entries for key [=""]'),
    ("several", widget({"a": "x", "lmap": [None]}), NAMED + "errors:\n  .spec.a: expected numeric (int or float), got string\n"
     "  .spec.lmap: element 0: associative list with keys may not have a null element"),
    ("in a namespace", widget({"zz": 1}, namespace="default"),
     "failed to create typed patch object (default/w; g.example.com/v1, Kind=Widget): .spec.zz: field not declared in schema"),
    ("metadata of another type", {"apiVersion": V1, "kind": "Widget", "metadata": []},
     "failed to create typed patch object (/; g.example.com/v1, Kind=Widget): .metadata: expected map, got &{[]}"),
    ("managed fields of another type", widget({}, managers="x"), NAMED + ".metadata.managedFields: expected list, got &{x}"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "message"), [row[1:] for row in UNTYPED], ids=[row[0] for row in UNTYPED])
def test_a_configuration_that_is_not_of_the_type_is_a_plain_500(config: Any, message: str) -> None:
    error = refused(None, config)
    assert status_of(error) == (500, "", message)
    assert error.details is None


def test_a_live_object_that_is_not_of_the_type() -> None:
    message = "(/w; g.example.com/v1, Kind=Widget): .spec.zz: field not declared in schema"
    tracked = live({"zz": 1}, managers=[owns("apply m", A)])
    assert status_of(refused(tracked, widget({"a": 1}))) == (500, "", f"failed to create typed live object {message}")
    assert status_of(refused(live({"zz": 1}), widget({"a": 1}))) == (
        500,
        "",
        f"failed to create manager for existing fields: failed to convert new object {message.replace('): .', ') to smd typed: .')}",
    )


def test_live_lists_may_contain_duplicates() -> None:
    old = live({"lset": ["a", "a"]}, managers=[owns("update m", {"f:spec": {"f:lset": {'v:"a"': {}}}})])
    assert applied(old, widget({"lset": ["b"]}))["spec"] == {"lset": ["a", "a", "b"]}


def test_live_managers_that_cannot_be_read_are_an_error() -> None:
    old = live({"a": 1}, managers=[owns("apply m", A) | {"operation": "Foo"}])
    message = "failed to decode managed fields: operation must be `Apply` or `Update`"
    assert status_of(refused(old, widget({"a": 1}))) == (500, "", message)


# --- versions ---


def renaming(value: dict[str, Any], version: str) -> dict[str, Any]:
    """v2 calls `b` of v1 `text`."""
    if "spec" not in value:
        return {**value, "apiVersion": version}
    spec = dict(value["spec"])
    old, new = ("b", "text") if version == V2 else ("text", "b")
    if old in spec:
        spec[new] = spec.pop(old)
    return {**value, "apiVersion": version, "spec": spec}


TWO = {V1: TYPES[V1], V2: of_schema(schema(text=STRING))}
TEXT = {"f:spec": {"f:text": {}}}


def test_a_conflict_is_reported_in_the_owners_version() -> None:
    old = live({"a": 1, "b": "x"}, managers=[owns("apply m", TEXT, version=V2)])
    error = refused(old, widget({"b": "y"}), to=tracker(types=TWO, convert=renaming))
    assert causes(error) == [('conflict with "m"', ".spec.text")]


def test_fields_owned_by_others_at_another_version_are_not_removed() -> None:
    entries = [owns("apply me", AB), owns("apply m", TEXT, version=V2)]
    old = live({"a": 1, "b": "x"}, managers=entries)
    value = applied(old, widget({"a": 1}), to=tracker(types=TWO, convert=renaming))
    assert value["spec"] == {"a": 1, "b": "x"}
    assert owners(value) == {"apply me": A, f"apply m at {V2}": TEXT}


def test_fields_applied_at_another_version_are_removed_there() -> None:
    entries = [owns("apply me", {"f:spec": {"f:a": {}, "f:text": {}}}, version=V2)]
    value = applied(
        live({"a": 1, "b": "x"}, managers=entries), widget({"a": 1}), to=tracker(types=TWO, convert=renaming)
    )
    assert value["spec"] == {"a": 1}
    assert value["apiVersion"] == V1
    assert owners(value) == {"apply me": A}


def test_an_unknown_version_of_a_custom_resource_is_an_error() -> None:
    old = live({"a": 1}, managers=[owns("apply m", A, version=V9)])
    message = f"request to convert CR to an invalid group/version: {V9}"
    assert status_of(refused(old, widget({"a": 1}))) == (500, "", message)


def test_another_group_is_an_error() -> None:
    old = live({"a": 1}, managers=[owns("apply m", A, version="zz/v1")])
    message = 'g.example.com/v1, Kind=Widget is unstructured and is not suitable for converting to "zz/v1"'
    assert status_of(refused(old, widget({"a": 1}))) == (500, "", message)


def test_built_in_kinds_forget_versions_that_are_gone() -> None:
    entries = [owns("apply me", AB, version=V9), owns("apply m", A)]
    value = applied(live({"a": 1, "b": "x"}, managers=entries), widget({"a": 1}), to=tracker(custom=False))
    assert owners(value) == {"apply m": A, "apply me": A}
    assert value["spec"] == {"a": 1, "b": "x"}


def test_a_conversion_that_fails_is_its_error() -> None:
    def convert(value: Any, version: str) -> Any:
        raise plain_error("conversion webhook failed")

    old = live({"a": 1}, managers=[owns("apply m", A, version=V2)])
    assert status_of(refused(old, widget({"a": 1}), to=tracker(convert=convert))) == (
        500,
        "",
        "conversion webhook failed",
    )


def failing_from(call: int) -> Any:
    calls = []

    def convert(value: Any, version: str) -> Any:
        calls.append(version)
        if len(calls) >= call:
            raise plain_error("boom")
        return {**value, "apiVersion": version}

    return convert


LATE: list[tuple[str, list[Any], int, str]] = [
    ("for the comparison", [owns("apply m", A, version=V2)], 2, "failed to convert new object: boom"),
    (
        "for what was applied last",
        [owns("apply me", AB, version=V2)],
        2,
        "failed to prune fields: failed to convert merged object to last applied version: boom",
    ),
    (
        "for what others own",
        [owns("apply me", AB), owns("apply m", A, version=V2)],
        2,
        f"failed to prune fields: failed add back owned items: failed to convert merged object at version {V2}: boom",
    ),
    ("back again", [owns("apply me", AB, version=V2)], 3, "failed to prune fields: failed add back owned items: "
     f"failed to convert merged object at version {V1}: boom"),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "call", "message"), [row[1:] for row in LATE], ids=[row[0] for row in LATE])
def test_a_conversion_that_fails_later(entries: list[Any], call: int, message: str) -> None:
    old = live({"a": 1, "b": "x"}, managers=entries)
    error = refused(old, widget({"a": 2}), to=tracker(convert=failing_from(call)), force=True)
    assert status_of(error) == (500, "", message)


def test_a_version_may_turn_out_to_be_gone() -> None:
    def convert(value: Any, version: str) -> Any:
        raise MissingVersion(version)

    entries = [owns("apply me", AB, version=V2), owns("apply m", A)]
    value = applied(live({"a": 1, "b": "x"}, managers=entries), widget({"a": 1}), to=tracker(convert=convert))
    assert owners(value) == {"apply m": A, "apply me": A}


# --- changed types ---


def test_an_atomic_field_that_was_granular_conflicts_as_one() -> None:
    entries = [owns("apply m", {"f:spec": {"f:atom": {"f:x": {}}}})]
    old = live({"atom": {"x": "1"}}, managers=entries)
    assert causes(refused(old, widget({"atom": {"y": "1"}}))) == [('conflict with "m"', ".spec.atom")]
    assert owners(applied(old, widget({"a": 1}))) == {"apply m": {"f:spec": {"f:atom": {}}}, "apply me": A}


# --- built-in kinds ---


def test_built_in_kinds_are_applied_under_their_struct() -> None:
    version = "apiextensions.k8s.io/v1"
    empty = {"metadata": {}, "spec": {"group": "", "names": {"plural": "", "kind": ""}, "scope": "", "versions": None}}
    to = Tracker(version, "CustomResourceDefinition", {version: of_struct(CRD)}, empty=empty, custom=False)
    config = {
        "apiVersion": version,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "x"},
        "spec": {"group": "g", "names": {"kind": "W", "shortNames": ["w"]}},
    }
    value = applied(None, config, to=to)
    assert value["spec"] == {
        "group": "g",
        "names": {"plural": "", "kind": "W", "shortNames": ["w"]},
        "scope": "",
        "versions": None,
    }
    assert owners(value) == {
        f"apply me at {version}": {"f:spec": {"f:group": {}, "f:names": {"f:kind": {}, "f:shortNames": {}}}}
    }
    assert list(value["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]) == ["f:group", "f:names"]
    bad = {
        **config,
        "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"a": {"tipe": "x"}}}}}]},
    }
    assert refused(None, bad, to=to).message == (
        "failed to create typed patch object (/x; apiextensions.k8s.io/v1, Kind=CustomResourceDefinition): "
        ".spec.versions[0].schema.openAPIV3Schema.properties.a.tipe: field not declared in schema"
    )


# --- depth ---


@pytest.mark.slow
def test_an_object_of_the_greatest_depth() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = {"a": deep}
    value = apply(None, widget({"any": {"x": deep, "y": 1}}), MAIN, manager="me", now=BEFORE).value
    same = apply(value, widget({"any": {"x": deep, "y": 1}}), MAIN, manager="me", now=NOW)
    assert not same.changed
    assert times(same.value) == {"apply me": BEFORE}
    again = apply(value, widget({"any": {"y": 2}}), MAIN, manager="me", now=NOW).value
    assert again["spec"] == {"any": {"y": 2}}
    assert owners(again) == {"apply me": {"f:spec": {"f:any": {"f:y": {}}}}}


# --- items of which only the key is known, from its default ---

DEFAULT_KEY = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "properties": {"k": {"type": "string", "default": "d"}, "v": STRING}},
}
BY_DEFAULT = tracker(types={V1: of_schema(schema(items=DEFAULT_KEY)), V2: of_schema(schema(items=DEFAULT_KEY))})
ITEM_D = {"f:spec": {"f:items": {'k:{"k":"d"}': {}}}}
WITHDRAWN_ITEMS: list[tuple[str, list[Any], Any, Any]] = [
    ("the only item: the list becomes null", [{"k": "d"}], {}, {"items": None}),
    ("with an empty list", [{"k": "d"}], {"items": []}, {"items": None}),
    ("next to another item, which remains", [{"k": "d"}, {"k": "e"}], {}, {"items": [{"k": "e"}]}),
]


@pytest.mark.parametrize(
    ("items", "config", "left"), [row[1:] for row in WITHDRAWN_ITEMS], ids=[row[0] for row in WITHDRAWN_ITEMS]
)
def test_an_item_of_two_appliers_whose_fields_none_of_them_owns_is_removed_by_the_first_that_withdraws_it(
    items: list[Any], config: Any, left: Any
) -> None:
    """As upstream, where the item without its fields is null for a moment, which is then the same as no item."""
    managers = [owns("apply me", ITEM_D, time=BEFORE), owns("apply you", ITEM_D, time=BEFORE)]
    value = applied(live({"items": items}, managers=managers), widget(config), to=BY_DEFAULT)
    assert value["spec"] == left


def test_an_item_that_is_null_for_a_moment_cannot_be_compared_at_another_version() -> None:
    managers = [owns("apply me", ITEM_D, time=BEFORE), owns("apply you", ITEM_D), owns("update she", A, version=V2)]
    error = refused(live({"items": [{"k": "d"}], "a": 1}, managers=managers), widget({}), to=BY_DEFAULT)
    assert (error.code, error.message) == (
        500,
        f"failed to prune fields: failed add back owned items: failed to convert pruned object at version {V2}: "
        ".spec.items: element 0: associative list with keys may not have a null element",
    )


def test_an_item_of_which_only_the_fields_are_withdrawn_cannot_be_compared() -> None:
    """Only managedFields that a client has written claim an item's fields without the item."""
    fields = {"f:spec": {"f:items": {'k:{"k":"d"}': {"f:k": {}}}}}
    managers = [owns("apply me", fields, time=BEFORE), owns("apply you", ITEM_D)]
    error = refused(live({"items": [{"k": "d"}]}, managers=managers), widget({}), to=BY_DEFAULT)
    assert (error.code, error.message) == (
        500,
        "failed to compare objects: .spec.items: element 0: associative list with keys may not have a null element",
    )
