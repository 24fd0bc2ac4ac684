"""The strategy of custom resources: which fields a write may set, and in which order errors are reported."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.features import Features
from noxu.registry import custom
from noxu.registry.draft import CLEAN
from noxu.registry.resource import Resource
from noxu.values import Object, copy
from tests.drafts import NOW, draft_of, warm
from tests.registry.world import version, widget, widgets
from tests.rows import rows

OWNED: Final = [{"manager": "m", "operation": "Update"}]
IDENTITY: Final[Object] = {"namespace": "default", "uid": "u", "creationTimestamp": NOW, "generation": 3}
STORED: Final[Object] = {**IDENTITY, "resourceVersion": "7"}


def old(**fields: Any) -> Object:
    return {**widget(metadata=STORED, size=1), **fields}


def new(metadata: Object | None = None, **fields: Any) -> Object:
    return {**widget(metadata={**STORED, **(metadata or {})}, size=1), **fields}


# -- prepare ----------------------------------------------------------------------------------------------------------

WITH_STATUS: Final = widgets().storage
WITHOUT_STATUS: Final = widgets(version(subresources={})).storage
PREPARED: Final[dict[str, tuple[Resource, str, Object, Object | None, Object]]] = {
    # resource, subresource, new, old → some fields of the prepared object
    "a create drops the status": (WITH_STATUS, "", new(status={"replicas": 1}), None, {"status": None}),
    "a create keeps it without the subresource": (
        WITHOUT_STATUS,
        "",
        new(status={"replicas": 1}),
        None,
        {"status": {"replicas": 1}},
    ),
    "an update keeps the old status": (
        WITH_STATUS,
        "",
        new(status={"replicas": 2}),
        old(status={"replicas": 1}),
        {"status": {"replicas": 1}, "generation": 3},
    ),
    "an update adds no status": (WITH_STATUS, "", new(status={}), old(), {"status": None, "generation": 3}),
    "a change of the spec increments the generation": (
        WITH_STATUS,
        "",
        new(spec={"size": 2}),
        old(),
        {"spec": {"size": 2}, "generation": 4},
    ),
    "a change of the status, without the subresource": (
        WITHOUT_STATUS,
        "",
        new(status={"replicas": 2}),
        old(status={"replicas": 1}),
        {"status": {"replicas": 2}, "generation": 4},
    ),
    "a change of the metadata does not": (WITH_STATUS, "", new({"labels": {"a": "b"}}), old(), {"generation": 3}),
    "an update of the status changes only the status": (
        WITH_STATUS,
        "status",
        new({"labels": {"a": "b"}, "managedFields": OWNED}, spec={"size": 2}, status={"replicas": 2}),
        old(status={"replicas": 1}),
        {"spec": {"size": 1}, "status": {"replicas": 2}, "generation": 3, "labels": None, "managedFields": OWNED},
    ),
    "an update of the status may remove the managers": (
        WITH_STATUS,
        "status",
        new(status={}),
        {**old(), "metadata": {**STORED, "managedFields": OWNED}},
        {"managedFields": None},
    ),
    "an update of the status may remove it": (WITH_STATUS, "status", new(), old(status={}), {"status": None}),
}


@rows(("resource", "subresource", "sent", "stored", "expected"), PREPARED.values(), ids=PREPARED)
def test_the_fields_that_a_write_cannot_set(
    resource: Resource, subresource: str, sent: Object, stored: Object | None, expected: Object
) -> None:
    before = copy(stored)
    draft = draft_of(resource, copy(sent), stored, subresource=subresource)
    custom.prepare(draft)
    found = {**draft.new["metadata"], **draft.new}
    assert {name: found.get(name) for name in expected} == expected
    assert stored == before


# -- validate ---------------------------------------------------------------------------------------------------------

RULES: Final[Object] = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "self.size <= 10", "message": "too large"},
                {"rule": "self.size >= oldSelf.size", "message": "smaller"},
            ],
            "properties": {
                "size": {"type": "integer", "minimum": 0},
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "replicas": {"type": "integer"},
            },
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "ok": {"type": "boolean"}}},
    },
}
RULED: Final = widgets(version(schema=RULES)).storage
VALIDATED: Final[dict[str, tuple[str, Object, Object | None, list[str]]]] = {
    # subresource, new, old → the fields of the errors in their order
    "valid": ("", new(), None, []),
    "a missing field": ("", {k: v for k, v in new().items() if k != "spec"}, None, ["spec", "<nil>"]),
    "metadata before the schema": ("", new({"name": "A"}, spec={"size": -1}), None, ["metadata.name", "spec.size"]),
    "another kind prevents other errors but those of lists": (
        "",
        {**new(spec={"size": -1, "set": ["a", "a"]}), "kind": "Gadget"},
        None,
        ["kind", "spec.set[1]"],
    ),
    "a duplicate in a set": ("", new(spec={"size": 1, "set": ["a", "a"]}), None, ["spec.set[1]"]),
    "a duplicate that was there": (
        "",
        new(spec={"size": 1, "set": ["b", "b"]}),
        old(spec={"size": 1, "set": ["a", "a"]}),
        [],
    ),
    "a rule": ("", new(spec={"size": 11}), None, ["spec"]),
    "a transition rule": ("", new(spec={"size": 1}), old(spec={"size": 2}), ["spec"]),
    "an error of the schema that was there": (
        "",
        new(spec={"size": -1, "replicas": 2}),
        old(spec={"size": -1, "replicas": 1}),
        [],
    ),
    "a negative scale": ("", new(spec={"size": 1, "replicas": -1}), None, [".spec.replicas"]),
    "a scale that is too large": ("", new(spec={"size": 1, "replicas": 2**31}), None, [".spec.replicas"]),
    "a status in its own endpoint": (
        "status",
        new(spec={"size": -5}, status={"ok": 1}),
        old(spec={"size": -5}),
        ["status.ok", "<nil>"],
    ),
    "a changed uid": ("", new({"uid": "v"}), old(), ["metadata.uid", "metadata.uid"]),
}


@rows(("subresource", "sent", "stored", "expected"), VALIDATED.values(), ids=VALIDATED)
def test_errors_in_the_order_of_upstream(
    subresource: str, sent: Object, stored: Object | None, expected: list[str]
) -> None:
    draft = draft_of(RULED, copy(sent), stored, subresource=subresource)
    custom.validate(draft)
    assert [error.field for error in draft.outcome.errors] == expected


def test_without_ratcheting_unchanged_errors_are_reported() -> None:
    stored = old(spec={"size": -1, "replicas": 1})
    draft = draft_of(RULED, new(spec={"size": -1, "replicas": 2}), stored, features=Features(ratcheting=False))
    custom.validate(draft)
    assert "spec.size" in [error.field for error in draft.outcome.errors]


@pytest.mark.parametrize(
    ("sent", "warned"),
    [(new({"finalizers": ["unqualified"]}), True), (new({"finalizers": ["unqualified"]}, spec={"size": -1}), False)],
    ids=["valid", "invalid"],
)
def test_a_valid_object_may_have_warnings(sent: Object, warned: bool) -> None:
    draft = draft_of(RULED, sent)
    custom.validate(draft)
    assert bool(draft.outcome.warnings) is warned


DEFAULTED: Final[Object] = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 5}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string", "default": "New", "maxLength": 3}}},
    },
}


@pytest.mark.parametrize(
    ("status", "errors"),
    [({"phase": "Old"}, []), ({"phase": "Older"}, ["status.phase"]), ({}, []), (None, [])],
    ids=["valid", "invalid before", "without its default", "none"],
)
def test_a_clean_object_gets_the_old_status_and_is_validated_with_it(status: Any, errors: list[str]) -> None:
    """The fast path has accepted the object without its status."""
    resource = widgets(version(schema=DEFAULTED)).storage
    warm(resource)
    stored = old() if status is None else old(status=status)
    draft = draft_of(resource, new(spec={"size": 2}), stored, features=Features(ratcheting=False))
    assert resource.codec.accept(resource, draft.new)
    draft.form = CLEAN
    custom.prepare(draft)
    custom.validate(draft)
    assert [error.field for error in draft.outcome.errors] == errors
