"""Deletions: preconditions, finalizers, propagation, namespaces and definitions, and collections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.kinds.kind import Propagation
from noxu.registry import deletion
from noxu.registry.builtin import BuiltInCodec, resource_of
from noxu.registry.deletion import delete_all, delete_keys
from noxu.registry.draft import Action, DeleteOptions, Draft, Outcome, Preconditions, WriteRequest
from noxu.registry.resource import Versions
from noxu.values import Object
from noxu_storage.types import Unavailable
from tests.faults.flaky import FlakyStore
from tests.registry.world import GROUP, NOW, Hooks, World, error_of, widget, world_of
from tests.timing import loop_turns

MINE: Final = "example.com/mine"


async def delete(world: World, name: str = "a", **fields: Any) -> Object:
    resource = fields.pop("resource", world.widgets)
    options = DeleteOptions(**fields)
    written = await world.write(Action.DELETE, name=name, resource=resource, delete_options=options)
    return world.value_of(written, resource)


# -- preconditions ----------------------------------------------------------------------------------------------------

PRECONDITIONS: Final[dict[str, tuple[Preconditions, str]]] = {
    "the uid": (Preconditions(uid="uid-1"), ""),
    "the resourceVersion": (Preconditions(resource_version="2"), ""),
    "both": (Preconditions("uid-1", "2"), ""),
    "another uid": (
        Preconditions(uid="x"),
        'Operation cannot be fulfilled on Widget.example.com "a": the UID in the precondition (x) does not match the UID '
        "in record (uid-1). The object might have been deleted and then recreated",
    ),
    "another resourceVersion": (
        Preconditions("uid-1", "1"),
        'Operation cannot be fulfilled on Widget.example.com "a": the ResourceVersion in the precondition (1) does not '
        "match the ResourceVersion in record (2). The object might have been modified",
    ),
}


@pytest.mark.parametrize(("preconditions", "message"), PRECONDITIONS.values(), ids=PRECONDITIONS)
async def test_an_object_is_deleted_if_it_meets_the_preconditions(
    world: World, preconditions: Preconditions, message: str
) -> None:
    await world.create()
    assert await error_of(delete(world, preconditions=preconditions)) == message
    assert await world.exists() is bool(message)


@pytest.mark.parametrize(
    ("plural", "group", "failed"),
    [
        ("namespaces", "", "Precondition failed"),
        ("customresourcedefinitions", "apiextensions.k8s.io", "precondition failed"),
    ],
)
async def test_a_failed_precondition_of_a_kind_with_a_finalizing_controller(
    world: World, plural: str, group: str, failed: str
) -> None:
    resource = world.resource(plural, group)
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    value = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "gadgets.example.com" if group else "a"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        }
        if group
        else {},
    }
    name = (await world.create(value, resource=resource))["metadata"]["name"]
    message = await error_of(delete(world, name, resource=resource, preconditions=Preconditions(uid="x")))
    assert f"{failed}: UID in precondition: x, UID in object meta: uid-1" in message


# -- finalizers -------------------------------------------------------------------------------------------------------

FINALIZERS: Final[dict[str, tuple[list[str], str, list[str] | None]]] = {
    # finalizers before, propagation, finalizers after; None: removed at once
    "none": ([], "", None),
    "none, in the background": ([], "Background", None),
    "none, in the foreground": ([], "Foreground", ["foregroundDeletion"]),
    "none, orphaning": ([], "Orphan", ["orphan"]),
    "its own": ([MINE], "", [MINE]),
    "its own, in the background": ([MINE], "Background", [MINE]),
    "its own, in the foreground": ([MINE], "Foreground", [MINE, "foregroundDeletion"]),
    "that of the foreground": (["foregroundDeletion"], "", ["foregroundDeletion"]),
    "that of the foreground, in the background": (["foregroundDeletion"], "Background", None),
    "that of orphaning, in the foreground": (["orphan", MINE], "Foreground", [MINE, "foregroundDeletion"]),
}


@pytest.mark.parametrize(("before", "propagation", "after"), FINALIZERS.values(), ids=FINALIZERS)
async def test_an_object_with_finalizers_remains_and_is_marked(
    world: World, before: list[str], propagation: str, after: list[str] | None
) -> None:
    await world.create(widget(metadata={"finalizers": before}))
    value = await delete(world, propagation=propagation)
    assert await world.exists() is (after is not None)
    if after is None:
        assert "deletionTimestamp" not in value["metadata"]
        return
    metadata = value["metadata"]
    assert sorted(metadata["finalizers"]) == sorted(after)
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == (NOW, 0)
    assert metadata["generation"] == 2
    assert await world.stored() == value


POLICIES: Final[dict[str, tuple[str, list[str], str, list[str] | None]]] = {
    # the kind's own policy, finalizers before, propagation, finalizers after; None: removed at once
    "Background": ("Background", [], "", None),
    "Orphan": ("Orphan", [], "", ["orphan"]),
    "Orphan, with a finalizer of its own": ("Orphan", [MINE], "", [MINE, "orphan"]),
    "Orphan, in the background": ("Orphan", [], "Background", None),
    "Orphan, in the foreground": ("Orphan", [], "Foreground", ["foregroundDeletion"]),
    "Orphan, with the finalizer of the foreground": ("Orphan", ["foregroundDeletion"], "", ["foregroundDeletion"]),
    "Unsupported, in the foreground": ("Unsupported", [], "Foreground", None),
    "Unsupported, orphaning": ("Unsupported", [], "Orphan", None),
    "Unsupported, with finalizers": ("Unsupported", ["orphan", MINE], "", [MINE]),
}


@pytest.mark.parametrize(("policy", "before", "propagation", "after"), POLICIES.values(), ids=POLICIES)
async def test_without_a_propagation_policy_that_of_the_kind_counts(
    world: World, policy: Propagation, before: list[str], propagation: str, after: list[str] | None
) -> None:
    table = world.resource("configmaps").table
    assert table is not None
    kind = replace(table, propagation=policy)
    resource = resource_of(kind, BuiltInCodec(kind))
    Versions([resource], resource)
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "finalizers": before}}
    await world.create(value, resource=resource)
    deleted = await delete(world, "c", resource=resource, propagation=propagation)
    assert deleted["metadata"].get("finalizers") == (after or before or None)
    assert ("deletionTimestamp" in deleted["metadata"]) is (after is not None)


async def test_deleting_again_keeps_the_time_and_the_generation(world: World) -> None:
    await world.create(widget(metadata={"finalizers": [MINE]}))
    first = await delete(world)
    revision = world.store.revision
    assert await delete(world) == first
    assert world.store.revision == revision
    again = await delete(world, propagation="Foreground")
    assert again["metadata"]["finalizers"] == [MINE, "foregroundDeletion"]
    assert again["metadata"]["deletionTimestamp"] == NOW
    assert again["metadata"]["generation"] == 2


async def test_no_finalizer_can_be_added_to_an_object_that_is_being_deleted(world: World) -> None:
    await world.create(widget(metadata={"finalizers": [MINE]}))
    await delete(world)
    message = await error_of(world.patch({"metadata": {"finalizers": [MINE, "example.com/new"]}}))
    assert "no new finalizers can be added if the object is being deleted" in message


async def test_a_name_is_taken_until_the_object_is_gone(world: World) -> None:
    await world.create(widget(metadata={"finalizers": [MINE]}))
    await delete(world)
    assert await error_of(world.create()) == f'object is being deleted: widgets.{GROUP} "a" already exists'
    await world.patch({"metadata": {"finalizers": None}})
    await world.create()


async def test_a_namespace_remains_until_its_controller_has_emptied_it(world: World) -> None:
    namespaces = world.resource("namespaces")
    await world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}, resource=namespaces)
    value = await delete(world, "n", resource=namespaces)
    assert (value["metadata"]["deletionTimestamp"], value["status"]["phase"]) == (NOW, "Terminating")
    assert value["spec"]["finalizers"] == ["kubernetes"]
    emptied = {**value, "spec": {"finalizers": []}}
    await world.replace(emptied, resource=namespaces, subresource="finalize")
    assert not await world.exists("n", resource=namespaces)


# -- collections ------------------------------------------------------------------------------------------------------


async def fill(world: World, count: int = 3) -> None:
    for n in range(count):
        await world.create(widget(f"w{n}", metadata={"finalizers": [MINE]} if n == 1 else {}))


async def left(world: World) -> list[str]:
    return [key.name for key in (await world.reader.collection(world.widgets)).keys]


async def test_the_objects_of_a_list_are_deleted_in_batches(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "BATCH_SIZE", 2)
    await fill(world, 5)
    keys = [world.key(f"w{n}") for n in range(4)]
    await delete_keys(world.writer, WriteRequest(Action.DELETE, world.widgets), keys)
    assert await left(world) == ["w1", "w4"]
    assert (await world.stored("w1"))["metadata"]["deletionTimestamp"] == NOW


async def test_objects_that_no_longer_exist_are_skipped(world: World) -> None:
    await fill(world)
    keys = [world.key("gone"), world.key("w0")]
    await delete_keys(world.writer, WriteRequest(Action.DELETE, world.widgets), keys)
    assert await left(world) == ["w1", "w2"]


async def test_a_refusal_by_admission_ends_the_deletion(world: World) -> None:
    await fill(world, 5)

    async def refuse_w2(draft: Draft) -> None:
        assert draft.request.admitted_name == ""  # the URL is that of the collection
        assert draft.old is not None
        draft.outcome.warnings.append(f"of {draft.old['metadata']['name']}")
        if draft.old["metadata"]["name"] == "w2":
            raise ApiError(403, "no", "Forbidden")
        await loop_turns(20)

    world.use(admission=Hooks(None, refuse_w2))
    outcome = Outcome()
    keys = [world.key(f"w{n}") for n in (0, 2, 3, 4)]
    assert await error_of(delete_keys(world.writer, WriteRequest(Action.DELETE, world.widgets), keys, outcome)) == "no"
    assert await left(world) == ["w1", "w2", "w3", "w4"]
    assert outcome.warnings == ["of w0", "of w2"], "those behind it are not even checked"


async def test_an_error_of_the_store_is_reported() -> None:
    store = FlakyStore()
    async with world_of(store) as world:
        await fill(world)
        store.fail("delete", lambda key: key.name == "w0")
        with pytest.raises(Unavailable):
            await delete_keys(world.writer, WriteRequest(Action.DELETE, world.widgets), [world.key("w0")])


@pytest.mark.parametrize(("namespace", "remaining"), [("a", ["b/w"]), (None, []), ("c", ["a/w", "b/w"])])
async def test_all_objects_of_a_resource_are_deleted_in_one_namespace_or_in_all(
    world: World, namespace: str | None, remaining: list[str]
) -> None:
    def refuse(draft: Draft) -> None:
        raise AssertionError("there is no admission")

    for where in "ab":
        await world.create(widget("w"), namespace=where)
    world.use(admission=Hooks(refuse, refuse))
    await delete_all(world.reader, world.writer, WriteRequest(Action.DELETE, world.widgets, internal=True), namespace)
    collection = await world.reader.collection(world.widgets)
    assert [f"{key.partition}{key.name}" for key in collection.keys] == remaining


async def test_an_object_whose_version_no_longer_exists_is_removed_despite_its_finalizers(world: World) -> None:
    value = widget(api_version=f"{GROUP}/v0", metadata={"uid": "u", "finalizers": [MINE]})
    await world.store.put(world.key(), codec.encode(value, sort_keys=True), expected=0)
    await delete_all(world.reader, world.writer, WriteRequest(Action.DELETE, world.widgets, internal=True), None)
    assert await left(world) == []
