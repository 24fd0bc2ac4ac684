"""The stored object that a write finds shares its sets of owned fields with others of its kind."""

from __future__ import annotations

from typing import Final

import pytest

from noxu.api import codec
from noxu.apply.managed_fields import RecurringSets, decode
from noxu.registry import stored_object as entries
from noxu.registry.draft import Body
from noxu.registry.resource import JSON_PATCH, Resource
from noxu.registry.stored_object import StoredObject, key_of, new_entry, object_at, shared_object_at
from noxu.registry.write import arrive
from noxu.values import Json, Object
from tests.drafts import draft_of_patch, warm
from tests.registry.world import version, widget, widgets

ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA: Final[Object] = {"type": "object", "properties": {"spec": {"type": "object"}}}
KNOWN: Final[Object] = {"f:spec": {"f:a": {}, 'k:{"n":"x"}': {".": {}, "f:b": {}}}}
ALSO_KNOWN: Final[Object] = {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}}
WIDGETS: Final[Resource] = widgets(version(schema=ANYTHING)).storage
UNKNOWN: Final[Object] = {"f:spec": {"f:unknown": {}}}


def owner(fields: Json, manager: str = "m", **more: Json) -> Object:
    entry = {
        "apiVersion": "example.com/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "operation": "Update",
        **more,
    }
    return {"manager": manager, **entry} if manager else entry


def stored(
    owners: list[Object] | None, *, valid: bool = True, labels: Object | None = None, **spec: Json
) -> StoredObject:
    """The entry of a Widget, whose schema allows anything."""
    metadata: Object = {"uid": "u", "generation": 1, "labels": labels or {"a": "b"}}
    value = widget(metadata=metadata | ({"managedFields": owners} if owners else {}), **spec)
    found = new_entry(key_of(WIDGETS, "default", "a"), WIDGETS, value, valid=valid)
    found.revision = 7
    return found


@pytest.fixture(autouse=True)
def known_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WIDGETS.versions, "recurring", RecurringSets())
    for fields in (KNOWN, ALSO_KNOWN, {"f:<": {}}):
        for _ in range(2):
            decode([owner(codec.decode_stored(codec.encode(fields, sort_keys=True)))], WIDGETS.versions.recurring)


COPIED: Final = {"managedFields": [owner(KNOWN)]}
CASES: Final[dict[str, tuple[StoredObject, bool]]] = {
    "one owner": (stored([owner(KNOWN)]), True),
    "several owners": (stored([owner(KNOWN), owner(ALSO_KNOWN, "n", time="2026-01-01T00:00:00Z")]), True),
    "an owner of a subresource": (stored([owner(KNOWN, subresource="status")]), True),
    "an owner of an unknown set": (stored([owner(KNOWN), owner(UNKNOWN)]), False),
    "an owner without a name": (stored([owner(KNOWN, "")]), False),
    "a set with a character of HTML": (stored([owner({"f:<": {}})]), False),
    "no owners": (stored(None), False),
    "no owners, but a label that is called so": (stored(None, labels={"managedFields": "x"}), False),
    "such fields in the spec, too": (stored([owner(KNOWN)], template=COPIED), False),
    "such fields in the spec only": (stored(None, template=COPIED), False),
    "numbers in such fields of the spec": (
        stored(None, template={"managedFields": [{**owner(0), "fieldsV1": 0}]}),
        False,
    ),
    "an object that may be invalid": (stored([owner(KNOWN)], valid=False), False),
}


@pytest.mark.parametrize(("entry", "is_shared"), CASES.values(), ids=CASES)
def test_the_object_is_the_stored_one(entry: StoredObject, is_shared: bool) -> None:
    found = shared_object_at(entry, WIDGETS)
    assert codec.encode(found, sort_keys=False) == codec.encode(object_at(entry, WIDGETS), sort_keys=False)
    assert found["metadata"]["resourceVersion"] == "7"
    owners = found["metadata"].get("managedFields", [])
    assert bool(owners and all(WIDGETS.versions.recurring.json_of(owner["fieldsV1"]) for owner in owners)) == is_shared
    shared = entries._decode_sharing_owners(entry.stored, WIDGETS.versions.recurring)
    assert (shared is not None) == (is_shared or not entry.rendering.valid)


def test_a_patch_that_moves_a_set_into_the_object_does_not_change_that_of_others() -> None:
    """In its new place the set is pruned in place."""
    kind = widgets(version(schema=SCHEMA)).storage
    warm(kind)
    value = widget(metadata={"uid": "u", "generation": 1, "managedFields": [owner(KNOWN)]})
    shown = new_entry(key_of(kind, "default", "a"), kind, value, valid=True)
    moved = {"op": "move", "from": "/metadata/managedFields/0/fieldsV1/f:spec", "path": "/spec"}
    draft = draft_of_patch(shown, kind, Body(codec.encode([moved], sort_keys=False), JSON_PATCH))
    draft.old = shared_object_at(shown, kind)
    for stage in (arrive.read_patch, arrive.patch, arrive.decode, arrive.prune):
        stage(draft)
    assert draft.new["spec"] == {}
    assert shared_object_at(shown, kind) == object_at(shown, kind)
