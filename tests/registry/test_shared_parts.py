"""A patched object shares parts with the stored one, which no stage may change."""

from __future__ import annotations

import json
from typing import Final

import pytest

from noxu.registry.draft import Body, Draft
from noxu.registry.resource import JSON_PATCH, MERGE_PATCH
from noxu.registry.stored_object import key_of, new_entry, object_at
from noxu.registry.write import arrive
from noxu.values import Json, Object
from tests.drafts import draft_of_patch, warm
from tests.registry.world import version, widget, widgets

X: Final[Object] = {"type": "object", "properties": {"x": {"type": "integer"}}}
Y: Final[Object] = {"type": "object", "properties": {"y": {"type": "integer", "default": 1}}}
SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"a": X, "b": Y, "c": Y, "n": {"type": "integer"}}},
    },
}
OLD: Final[Object] = {"a": {"x": 1}, "b": {"y": 2}}


def patched(media_type: str, patch: Json) -> Draft:
    """The draft of a patch that has been pruned and defaulted."""
    kind = widgets(version(schema=SCHEMA)).storage
    warm(kind)
    shown = new_entry(key_of(kind, "", "a"), kind, widget(**OLD, metadata={"uid": "u"}), valid=True)
    draft = draft_of_patch(shown, kind, Body(json.dumps(patch).encode(), media_type))
    for stage in (arrive.read_patch, arrive.patch, arrive.decode, arrive.prune, arrive.default):
        stage(draft)
    assert draft.old == object_at(shown, kind)
    return draft


PATCHES: Final[dict[str, tuple[str, Json, Object, bool]]] = {
    "a patch of a field": (MERGE_PATCH, {"spec": {"n": 1}}, {**OLD, "n": 1}, True),
    "a patch of nothing": (JSON_PATCH, [], OLD, True),
    "an operation on a field": (JSON_PATCH, [{"op": "add", "path": "/spec/n", "value": 1}], {**OLD, "n": 1}, True),
    "an unknown field": (MERGE_PATCH, {"spec": {"z": 1}}, OLD, False),
    "a value that moves to a place with a default": (
        JSON_PATCH,
        [{"op": "replace", "path": "/spec/a", "value": {}}, {"op": "move", "from": "/spec/b", "path": "/spec/c"}],
        {"a": {}, "c": {"y": 2}},
        False,
    ),
    "a value that is copied to a place where it is pruned": (
        JSON_PATCH,
        [{"op": "copy", "from": "/spec/a", "path": "/spec/b"}],
        {"a": {"x": 1}, "b": {"y": 1}},
        False,
    ),
    "a value that moves to a place where it is pruned": (
        JSON_PATCH,
        [{"op": "move", "from": "/spec/a", "path": "/spec/b"}],
        {"b": {"y": 1}},
        False,
    ),
}


@pytest.mark.parametrize(("media_type", "patch", "spec", "shares"), PATCHES.values(), ids=PATCHES)
def test_the_stored_object_is_not_changed(media_type: str, patch: Json, spec: Object, shares: bool) -> None:
    draft = patched(media_type, patch)
    assert draft.stored is not None
    assert (draft.new["spec"], draft.stored.is_shared) == (spec, shares)
