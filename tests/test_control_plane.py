"""The control plane: which controllers it has, and the order in which its parts start and stop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from noxu.control_plane import ControlPlane, resource_of, running
from noxu.controllers import manager
from noxu.controllers.controller import Controller, Reconciler
from noxu.controllers.namespace_objects import RootCAPublisher
from noxu.manifests import loading
from noxu.registry.cache import Change
from noxu.registry.stored_object import StoredObject, key_of
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Closed, Key, Unavailable
from tests.control_planes import assemble, parts_of
from tests.controllers.conftest import definition
from tests.faults.flaky import FlakyStore
from tests.timing import eventually_async, hang_guard

NAMES = [
    "crd-establishing-controller",
    "crd-api-approval-controller",
    "crd-finalizer-controller",
    "start-service-ip-repair-controllers",
    "event-ttl-controller",
]
BACKGROUND = ["bootstrap-controller", "legacy-token-tracking-controller"]


def names(controllers: Iterable[Reconciler[Any]]) -> list[str]:
    return [controller.name for controller in controllers]


async def test_the_controllers_that_are_assembled() -> None:
    plane = assemble(MemoryStore())
    assert names(plane.controllers) == NAMES
    assert names(plane.background_controllers) == BACKGROUND
    assert names(plane.all_controllers) == [*NAMES, *BACKGROUND]
    assert names(assemble(MemoryStore(), event_ttl=0).controllers) == NAMES[:-1]
    assert list(plane.writer.environment.followers.values()) == plane.controllers[:1]


async def test_controllers_of_kube_controller_manager_are_added() -> None:
    plane = assemble(MemoryStore(), controllers=["*", "-namespace-controller"])
    expected = [name for name in manager.AVAILABLE if name != "namespace-controller"]
    assert names(plane.background_controllers) == [*BACKGROUND, *expected]


async def test_every_part_has_the_same_clock() -> None:
    plane = assemble(MemoryStore(), controllers=["*"])
    clocks = {controller.clock for controller in plane.all_controllers}
    assert clocks == {plane.clock} == {plane.writer.environment.clock}


class Traced(Controller[str]):
    """Records when it starts and stops."""

    name = "traced"

    def __init__(self, plane: ControlPlane, label: str, calls: list[str]) -> None:
        super().__init__(parts_of(plane), resource_of(plane.served_resources, "", "namespaces"))
        self.label, self.calls = label, calls

    def observe(self, change: Change) -> Iterable[str]:
        return ()

    def resync(self) -> Iterable[str]:
        return ()

    async def reconcile(self, key: str) -> None: ...

    async def start(self) -> None:
        self.calls.append(f"start {self.label}")
        if self.label == "fails":
            raise Unavailable("planned")
        await super().start()

    async def stop(self) -> None:
        self.calls.append(f"stop {self.label}")
        await super().stop()


def traced(plane: ControlPlane, *labels: str) -> list[str]:
    """Replace the controllers. Returns the list of their calls, and of the close of the store."""
    calls: list[str] = []
    plane.controllers[:] = [Traced(plane, label, calls) for label in labels]
    plane.background_controllers.clear()
    close = plane.store.close

    async def closing() -> None:
        calls.append("close")
        await close()

    plane.store.close = closing  # type: ignore[method-assign]
    return calls


async def test_controllers_start_in_order_and_stop_in_reverse_before_the_store_is_closed() -> None:
    plane = assemble(MemoryStore())
    calls = traced(plane, "a", "b")
    async with running(plane):
        calls.append("run")
    assert calls == ["start a", "start b", "run", "stop b", "stop a", "close"]


async def test_in_an_existing_store_some_controllers_start_in_the_background() -> None:
    store = FlakyStore()
    await store.put(Key("/namespaces", "", "default"), b'{"metadata":{"name":"default"}}', expected=0)
    plane = assemble(store, controllers=["*"])
    store.fail("list", lambda key: key.collection == "/configmaps", times=100_000)
    async with running(plane):
        [publisher] = [found for found in plane.background_controllers if isinstance(found, RootCAPublisher)]
        assert publisher.health() == "", "it has only begun"
        await eventually_async(lambda: publisher.health() != "")
        assert publisher.health().startswith("cannot list /namespaces and /configmaps: planned; the next attempt is")
        store.planned.clear()
        await eventually_async(lambda: publisher.health() == "")
        await eventually_async(lambda: find(plane, "configmaps", "kube-root-ca.crt", "default"))
        assert await find(plane, "namespaces", "kube-system", "")


async def find(plane: ControlPlane, plural: str, name: str, namespace: str) -> StoredObject | None:
    resource = resource_of(plane.served_resources, "", plural)
    return (await plane.reader.collection(resource)).entries.get(key_of(resource, namespace, name))


async def test_a_controller_that_cannot_start_stops_those_before_it() -> None:
    before = asyncio.all_tasks()
    plane = assemble(MemoryStore())
    calls = traced(plane, "a", "fails", "b")
    with pytest.raises(Unavailable):
        async with running(plane):
            pass
    assert calls == ["start a", "start fails", "stop fails", "stop a", "close"]
    assert asyncio.all_tasks() == before


async def test_an_exception_inside_stops_everything() -> None:
    before = asyncio.all_tasks()
    plane = assemble(MemoryStore())
    with pytest.raises(ZeroDivisionError):
        async with running(plane):
            raise ZeroDivisionError
    assert asyncio.all_tasks() == before
    with pytest.raises(Closed):
        await plane.store.status()


async def test_the_end_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with running(assemble(MemoryStore())) as plane:
        assert f"{NAMES[0]}: _work" not in {task.get_name() for task in asyncio.all_tasks()}  # it has no keys yet
        await loading.apply(plane, definition())
        assert {task.get_name() for task in asyncio.all_tasks() - before} >= {"watch cache", f"{NAMES[0]}: _work"}
    assert asyncio.all_tasks() == before


async def test_the_log_is_followed_again_after_a_failure_which_health_reports() -> None:
    store = FlakyStore()
    async with running(assemble(store)) as plane:
        assert await plane.cache.health() == ""
        failures = []
        namespaces = resource_of(plane.served_resources, "", "namespaces")
        before = await plane.reader.collection(namespaces)
        store.watch_fails = RuntimeError("planned")
        writing = asyncio.create_task(
            loading.apply(plane, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
        )
        async with hang_guard():
            while not failures:
                await asyncio.sleep(0)
                failures += [found] if (found := await plane.cache.health()) else []
            await writing
        assert failures == ["RuntimeError('planned')"]
        await eventually_async(lambda: plane.cache.failure == "")
        after = await plane.reader.collection(namespaces)
        assert after is not before, "a batch may have been applied in part"
        assert [key.name for key in after.keys if key.name == "a"] == ["a"]


async def test_the_health_of_the_store() -> None:
    async with running(assemble(MemoryStore())) as plane:
        assert await plane.store_health() == ""
