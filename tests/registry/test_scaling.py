"""Writes to /scale: the replicas and their owners in the stored object. tests/http/test_scale.py has whole requests."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.api.errors import ApiError
from noxu.registry import scale
from noxu.registry.draft import Action, Draft, NewScale, Options, Outcome
from noxu.values import Object, copy
from tests.registry.world import APPLY_PATCH, MERGE_PATCH, Hooks, World, error_of, version, widget, widgets

WIDGETS: Final = widgets().storage
UNDECODABLE: Final = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'


def scale_of(replicas: Any = 3, **metadata: Any) -> Object:
    spec = {} if replicas is None else {"replicas": replicas}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a", **metadata}, "spec": spec}


async def write(world: World, action: Action, value: Object, **options: Any) -> None:
    media_type = {Action.PATCH_SCALE: MERGE_PATCH, Action.APPLY_SCALE: APPLY_PATCH}.get(action, "application/json")
    await world.write(
        action,
        value,
        name="a",
        subresource="scale",
        media_type=media_type,
        options=Options(**{"field_manager": "scaler", "force": True, **options}),
    )


@pytest.fixture
async def filled(world: World) -> World:
    await world.create(widget(replicas=1, color="red"))
    return world


WRITES: Final[dict[str, tuple[Action, Object]]] = {
    "replace": (Action.REPLACE_SCALE, scale_of()),
    "patch": (Action.PATCH_SCALE, {"spec": {"replicas": 3}}),
    "apply": (Action.APPLY_SCALE, scale_of()),
}


@pytest.mark.parametrize(("action", "value"), WRITES.values(), ids=WRITES)
async def test_a_write_to_scale_changes_the_replicas_and_their_owner_only(
    filled: World, action: Action, value: Object
) -> None:
    before = await filled.stored()
    await write(filled, action, value)
    after = await filled.stored()
    assert after["spec"] == {**before["spec"], "replicas": 3}
    assert after["metadata"]["generation"] == 2
    owners = {
        (entry["manager"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in after["metadata"]["managedFields"]
    }
    assert owners["scaler", "scale"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owners["test", ""]["f:spec"]
    assert "f:color" in owners["test", ""]["f:spec"]


@pytest.mark.parametrize(("action", "value"), WRITES.values(), ids=WRITES)
async def test_admission_sees_the_new_scale(filled: World, action: Action, value: Object) -> None:
    seen: list[tuple[Any, Any]] = []

    def record(draft: Draft) -> None:
        assert isinstance(draft.sent, NewScale)
        seen.append((draft.sent.value["spec"], draft.new["spec"]["replicas"]))

    filled.use(admission=Hooks(record))
    await write(filled, action, value)
    assert seen == [({"replicas": 3}, 3)]


REFUSED: Final[dict[str, tuple[Action, Object, str]]] = {
    "another name": (
        Action.REPLACE_SCALE,
        scale_of(name="b"),
        "the name of the object (b) does not match the name on the URL (a)",
    ),
    "another namespace": (
        Action.REPLACE_SCALE,
        scale_of(namespace="b"),
        "the namespace of the provided object does not match",
    ),
    "another kind": (Action.REPLACE_SCALE, {**scale_of(), "kind": "Widget"}, UNDECODABLE),
    "replicas of text": (Action.REPLACE_SCALE, scale_of("3"), UNDECODABLE),
    "an old resourceVersion": (Action.REPLACE_SCALE, scale_of(resourceVersion="1"), "the object has been modified"),
    "another uid": (Action.REPLACE_SCALE, scale_of(uid="x"), "Precondition failed: UID in precondition: x"),
    "a negative number": (Action.REPLACE_SCALE, scale_of(-1), "should be a non-negative integer"),
    "a patch of the kind": (Action.PATCH_SCALE, {"kind": "Widget"}, "no kind"),
    "a patch with text": (Action.PATCH_SCALE, {"spec": {"replicas": "3"}}, "cannot unmarshal string"),
    "a patch of the name": (Action.PATCH_SCALE, {"metadata": {"name": "b"}}, "the name of the object (b)"),
}


@pytest.mark.parametrize(("action", "value", "message"), REFUSED.values(), ids=REFUSED)
async def test_refusals(filled: World, action: Action, value: Object, message: str) -> None:
    revision = filled.store.revision
    assert message in await error_of(write(filled, action, value))
    assert filled.store.revision == revision


async def test_a_scale_without_metadata_has_no_name(filled: World) -> None:
    value = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 3}}
    assert "name must be provided" in await error_of(write(filled, Action.REPLACE_SCALE, value))


@pytest.mark.parametrize(
    ("validation", "message", "warnings"),
    [("Strict", UNDECODABLE, []), ("Warn", "", ['unknown field "spec.x"']), ("Ignore", "", [])],
)
async def test_unknown_fields_of_a_scale(filled: World, validation: Any, message: str, warnings: list[str]) -> None:
    value, outcome = scale_of(), Outcome()
    value["spec"]["x"] = 1
    call = filled.write(
        Action.REPLACE_SCALE,
        value,
        name="a",
        subresource="scale",
        options=Options(field_validation=validation),
        outcome=outcome,
    )
    assert await error_of(call) == message
    assert outcome.warnings == warnings


async def test_a_conflict_about_the_replicas(filled: World) -> None:
    message = await error_of(write(filled, Action.APPLY_SCALE, scale_of(), force=False))
    assert message.startswith('Apply failed with 1 conflict: conflict with "test"')
    await write(filled, Action.APPLY_SCALE, scale_of(1), force=False)  # the same value is no conflict


async def test_a_scale_is_read_back(filled: World) -> None:
    await write(filled, Action.REPLACE_SCALE, scale_of())
    stored = await filled.stored()
    shown = scale.scale_of(stored, WIDGETS)
    assert (shown["spec"], shown["status"]) == ({"replicas": 3}, {"replicas": 0})
    assert shown["metadata"] == {
        name: stored["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }


# -- the paths of a Scale ---------------------------------------------------------------------------------------------

SHOWN: Final[dict[str, tuple[Object, Object | str]]] = {
    # the object without its metadata → spec and status of its Scale, or the error
    "replicas, status and selector": (
        {"spec": {"replicas": 2}, "status": {"replicas": 1, "selector": "a=b"}},
        {"spec": {"replicas": 2}, "status": {"replicas": 1, "selector": "a=b"}},
    ),
    "zero replicas": ({"spec": {"replicas": 0}}, {"spec": {}, "status": {"replicas": 0}}),
    "no replicas": (
        {"spec": {}},
        'Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
    ),
    "no spec": ({}, 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'),
    "replicas of text": (
        {"spec": {"replicas": "2"}},
        ".spec.replicas accessor error: 2 is of the type string, expected int64",
    ),
    "a spec that is no map": (
        {"spec": 5},
        ".spec.replicas accessor error: 5 is of the type int64, expected map[string]interface{}",
    ),
    "a selector that is a number": (
        {"spec": {"replicas": 2}, "status": {"selector": 5}},
        ".status.selector accessor error: 5 is of the type int64, expected string",
    ),
}


@pytest.mark.parametrize(("fields", "expected"), SHOWN.values(), ids=SHOWN)
def test_the_scale_of_an_object(fields: Object, expected: Object | str) -> None:
    value = {"metadata": {"name": "a"}, **fields}
    if isinstance(expected, str):
        with pytest.raises(ApiError) as caught:
            scale.scale_of(value, WIDGETS)
        assert caught.value.message == expected
        return
    shown = scale.scale_of(value, WIDGETS)
    assert {name: shown[name] for name in ("spec", "status")} == expected
    assert (shown["kind"], shown["apiVersion"], shown["metadata"]) == ("Scale", "autoscaling/v1", {"name": "a"})


def test_replicas_are_written_at_their_path() -> None:
    paths = {"specReplicasPath": ".spec.pool.count", "statusReplicasPath": ".status.count"}
    resource = widgets(version(subresources={"scale": paths})).storage
    for before, after in (
        ({}, {"spec": {"pool": {"count": 3}}}),
        ({"spec": {"pool": {"count": 1, "x": 1}}}, {"spec": {"pool": {"count": 3, "x": 1}}}),
    ):
        value = copy(before)
        scale.set_replicas(value, resource, 3)
        assert value == after
    with pytest.raises(ApiError, match=r'field "\.spec\.pool\.count" cannot be set'):
        scale.set_replicas({"spec": {"pool": 5}}, resource, 3)
