"""What every active namespace contains: the service account `default`, and the CA of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noxu.api.errors import forbidden
from noxu.control_plane import ControlPlane
from noxu.controllers.default_objects import SYSTEM_NAMESPACES
from noxu.controllers.namespace_objects import DESCRIBED, DESCRIPTION, RootCAPublisher
from noxu.registry.draft import Action, Draft, WriteRequest
from noxu.registry.resource import Resource
from noxu.values import Object
from tests.clocks import ManualClock
from tests.control_planes import assemble
from tests.controllers.conftest import World, a_world, config_map, copy_of, namespace
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async

CA = "-----BEGIN CERTIFICATE-----\n"
KINDS = [("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")]
kinds = pytest.mark.parametrize(("plural", "name"), KINDS, ids=[plural for plural, _ in KINDS])


def with_ca(store: FlakyStore, clock: ManualClock) -> ControlPlane:
    return assemble(store, clock=clock, controllers=["*"], root_ca=CA)


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock, with_ca) as world:
        yield world


async def everywhere(world: World, resource: Resource, name: str) -> list[str]:
    """The namespaces that have an object of that name."""
    collection = await world.plane.reader.collection(resource)
    return [key.partition[:-1] for key in collection.keys if key.name == name]


@kinds
async def test_they_exist_in_the_system_namespaces_after_the_first_start(world: World, plural: str, name: str) -> None:
    assert await everywhere(world, world.resource(plural), name) == sorted(SYSTEM_NAMESPACES)


@kinds
async def test_a_new_namespace_gets_them(world: World, plural: str, name: str) -> None:
    await world.apply(namespace("n"))
    await world.settled()
    assert await world.find(world.resource(plural), name, "n")


@kinds
async def test_they_come_back_after_a_deletion(world: World, plural: str, name: str) -> None:
    resource = world.resource(plural)
    before = await world.get(resource, name, "default")
    await world.delete(resource, name, "default")
    await world.settled()
    assert (await world.get(resource, name, "default"))["metadata"]["uid"] != before["metadata"]["uid"]


@kinds
async def test_objects_of_other_names_do_not(world: World, plural: str, name: str) -> None:
    resource = world.resource(plural)
    kind = {"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": "mine", "namespace": "default"}}
    await world.apply(kind)
    revision = world.store.revision
    await world.delete(resource, "mine", "default")
    await world.settled()
    assert world.store.revision == revision + 1


@kinds
async def test_a_terminating_namespace_does_not_get_them_back(world: World, plural: str, name: str) -> None:
    held = config_map("held", namespace="n", finalizers=("example.com/wait",))
    await world.apply(namespace("n"), held)
    await world.settled()
    await world.delete(world.resource("namespaces"), "n")
    await world.settled()
    assert await world.find(world.resource("namespaces"), "n")
    assert await world.find(world.resource(plural), name, "n") is None
    await world.apply({**config_map("held", namespace="n"), "metadata": {"name": "held", "namespace": "n"}})
    await world.until_deleted(world.resource("namespaces"), "n")


@kinds
async def test_a_namespace_that_was_created_while_the_cache_was_reset_gets_them(
    world: World, plural: str, name: str
) -> None:
    world.store.watch_fails = RuntimeError("planned")
    await world.apply(namespace("n"))
    await eventually_async(lambda: world.find(world.resource(plural), name, "n"))


@kinds
async def test_an_existing_store_gets_them(store: FlakyStore, clock: ManualClock, plural: str, name: str) -> None:
    async with a_world(store, clock, lambda store, clock: assemble(store, clock=clock)) as world:
        await world.apply(namespace("n"))
        store = await copy_of(world.store)
    async with a_world(store, clock, with_ca) as world:
        await eventually_async(lambda: world.find(world.resource(plural), name, "n"))


@kinds
async def test_nothing_is_written_after_a_restart(
    store: FlakyStore, clock: ManualClock, plural: str, name: str
) -> None:
    async with a_world(store, clock, with_ca) as world:
        store = await copy_of(world.store)
    revision = store.revision
    async with a_world(store, clock, with_ca) as world:
        await eventually_async(lambda: all(found._synchronised.is_set() for found in world.plane.all_controllers))
        await world.settled()
        assert store.revision == revision


async def test_the_account_has_no_fields(world: World) -> None:
    found = await world.get(world.resource("serviceaccounts"), "default", "default")
    assert set(found) == {"kind", "apiVersion", "metadata"}


async def test_the_config_map_has_the_ca(world: World) -> None:
    found = await world.get(world.resource("configmaps"), "kube-root-ca.crt", "default")
    assert found["data"] == {"ca.crt": CA}
    assert found["metadata"]["annotations"] == {DESCRIBED: DESCRIPTION}
    assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["kube-controller-manager"]


async def test_without_tls_the_ca_is_empty(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock) as world:
        found = await world.get(world.resource("configmaps"), "kube-root-ca.crt", "default")
        assert found["data"] == {"ca.crt": ""}


EDITS: list[tuple[str, Object, Object]] = [
    ("another CA", {"data": {"ca.crt": "mine"}}, {"annotations": {DESCRIBED: DESCRIPTION}}),
    ("a further key", {"data": {"ca.crt": CA, "x": "y"}}, {"annotations": {DESCRIBED: DESCRIPTION}}),
    ("no data, no description", {}, {}),
]


@pytest.mark.parametrize(("fields", "metadata"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
async def test_edits_of_the_config_map_are_reverted(world: World, fields: Object, metadata: Object) -> None:
    named = {"name": "kube-root-ca.crt", "namespace": "default", "labels": {"kept": "yes"}}
    await world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**named, **metadata}, **fields})
    await world.settled()
    found = await world.get(world.resource("configmaps"), "kube-root-ca.crt", "default")
    assert found["data"] == {"ca.crt": CA}
    assert found["metadata"]["annotations"] == {DESCRIBED: DESCRIPTION}
    assert found["metadata"]["labels"] == {"kept": "yes"}


async def test_another_description_and_further_annotations_stay(world: World) -> None:
    annotations = {DESCRIBED: "mine", "a": "b"}
    metadata = {"name": "kube-root-ca.crt", "namespace": "default", "annotations": annotations}
    await world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": CA}})
    await world.settled()
    found = await world.get(world.resource("configmaps"), "kube-root-ca.crt", "default")
    assert found["metadata"]["annotations"] == annotations


async def test_another_ca_replaces_the_published_one(store: FlakyStore, clock: ManualClock) -> None:
    async with a_world(store, clock, with_ca) as world:
        store = await copy_of(world.store)

    def other(store: FlakyStore, clock: ManualClock) -> ControlPlane:
        return assemble(store, clock=clock, controllers=["*"], root_ca="other")

    async with a_world(store, clock, other) as world:

        async def is_other() -> bool:
            found = await world.get(world.resource("configmaps"), "kube-root-ca.crt", "kube-public")
            return bool(found["data"] == {"ca.crt": "other"})

        await eventually_async(is_other)


async def test_a_refusal_is_retried(world: World, caplog: pytest.LogCaptureFixture) -> None:
    refusals = 3

    def refuse(draft: Draft) -> None:
        nonlocal refusals
        if draft.resource.plural == "serviceaccounts" and refusals:
            refusals -= 1
            assert draft.request.user.name == "system:serviceaccount:kube-system:service-account-controller"
            raise forbidden(draft.resource.group_resource, "default", "planned")

    world.plane.admission.mutate = refuse  # type: ignore[method-assign]
    await world.apply(namespace("n"))
    await eventually_async(lambda: world.find(world.resource("serviceaccounts"), "default", "n"))
    assert caplog.text.count('serviceaccount-controller: n: serviceaccounts "default" is forbidden: planned') == 3


async def test_a_write_that_comes_too_late_is_no_failure(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """The object changes between the decision of the controller and its write: the change is observed, too."""
    [publisher] = [found for found in world.plane.background_controllers if isinstance(found, RootCAPublisher)]
    resource = world.resource("configmaps")
    write, faster = world.plane.writer.write, ["mine"]

    async def overtaken(request: WriteRequest, *rest: object) -> object:
        if request.user == publisher.user and request.action is Action.REPLACE and faster:
            data = {"ca.crt": faster.pop(), "second": "edit"}
            metadata = {"name": "kube-root-ca.crt", "namespace": "default"}
            await world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        return await write(request, *rest)  # type: ignore[arg-type]

    world.plane.writer.write = overtaken  # type: ignore[method-assign, assignment]
    metadata = {"name": "kube-root-ca.crt", "namespace": "default"}
    await world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}})
    await world.settled()
    assert (await world.get(resource, "kube-root-ca.crt", "default"))["data"] == {"ca.crt": CA}
    assert (faster, "retrying" in caplog.text) == ([], False)
