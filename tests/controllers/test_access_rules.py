"""The rules of access follow the stored roles and bindings: at the start, at once after a change, and after a reset."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import pytest

from noxu.control_plane import ControlPlane, running
from noxu.controllers.access_rules import GROUP, AccessRuleController, Put
from noxu.manifests import loading
from noxu.registry.access import AccessAttributes, User
from noxu.registry.draft import Action, WriteRequest
from noxu.registry.stored_object import StoredObject
from noxu.registry.turns import CLIENT
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from noxu_storage.sqlite import SqliteStore
from tests.control_planes import assemble
from tests.timing import eventually, eventually_async

DEV: Final = User("dev", groups=("system:authenticated",))
ASKED: Final = AccessAttributes(DEV, "get", "", "v1", "pods", "", "default", "a")


def typed(kind: str, **more: Any) -> Object:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "r", "namespace": "default"}, **more}


ROLE: Final = typed("Role", rules=[{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}])
BINDING: Final = typed(
    "RoleBinding",
    roleRef={"apiGroup": GROUP, "kind": "Role", "name": "r"},
    subjects=[{"apiGroup": GROUP, "kind": "User", "name": "dev"}],
)


async def delete(plane: ControlPlane, plural: str) -> None:
    resource = plane.served_resources.current.find(GROUP, "v1", plural)
    assert resource is not None
    await plane.writer.write(WriteRequest(Action.DELETE, resource, "default", "r"))


def controller(plane: ControlPlane) -> AccessRuleController:
    [found] = [one for one in plane.controllers if isinstance(one, AccessRuleController)]
    return found


@pytest.mark.parametrize("plural", ["roles", "rolebindings"])
async def test_every_change_acts_before_it_is_answered(plural: str) -> None:
    async with running(assemble(MemoryStore(), authorization_modes=("RBAC",))) as plane:
        await loading.apply(plane, BINDING)
        assert not plane.authorize(ASKED).allowed
        await loading.apply(plane, ROLE)
        assert plane.authorize(ASKED).allowed
        await delete(plane, plural)
        assert not plane.authorize(ASKED).allowed


async def test_stored_rules_count_from_the_start(tmp_path: Path) -> None:
    file = tmp_path / "noxu.db"
    async with running(assemble(await SqliteStore.open(file), authorization_modes=("RBAC",))) as plane:
        await loading.apply(plane, ROLE)
        await loading.apply(plane, BINDING)
    async with running(assemble(await SqliteStore.open(file), authorization_modes=("RBAC",))) as plane:
        assert plane.authorize(ASKED).allowed
        assert not plane.authorize(ASKED._replace(verb="list")).allowed


async def test_rules_hold_while_the_cache_is_reset_and_are_those_of_the_store_afterwards() -> None:
    async with running(assemble(MemoryStore(), authorization_modes=("RBAC",))) as plane:
        await loading.apply(plane, ROLE)
        await loading.apply(plane, BINDING)
        rules = controller(plane)
        entry = next(key for key in rules._known if key.collection.endswith("rolebindings") and key.name == "r")
        plane.cache.reset(plane.store.revision)
        assert not rules.is_synchronised
        assert plane.authorize(ASKED).allowed
        await plane.store.delete(entry, expected=(await plane.store.get(entry)).revision)  # type: ignore[union-attr]
        await eventually_async(lambda: rules.is_synchronised)
        assert not plane.authorize(ASKED).allowed


LARGE: Final = {
    **ROLE,
    "rules": [{"verbs": ["get"], "apiGroups": [f"g{n}.example.com"], "resources": ["pods"]} for n in range(1000)]
    + ROLE["rules"],
}


async def test_a_large_role_is_compiled_in_a_thread_before_it_is_answered() -> None:
    async with running(assemble(MemoryStore(), authorization_modes=("RBAC",))) as plane:
        await loading.apply(plane, BINDING)
        threads: set[str] = set()
        rules = controller(plane)
        compile_ = rules._compile
        rules._compile = lambda entry: threads.add(threading.current_thread().name) or compile_(entry)  # type: ignore[method-assign, func-returns-value]
        await loading.apply(plane, LARGE)
        assert plane.authorize(ASKED).allowed
        assert {name.partition("_")[0] for name in threads} == {"noxu-offload"}
        await loading.apply(plane, {**ROLE, "rules": []})
        assert not plane.authorize(ASKED).allowed


@pytest.mark.parametrize("change", ["replaced", "deleted"])
async def test_a_large_role_that_has_changed_while_it_was_compiled_does_not_count(change: str) -> None:
    async with running(assemble(MemoryStore(), authorization_modes=("RBAC",))) as plane:
        await loading.apply(plane, BINDING)
        rules = controller(plane)
        compile_, loop, changes = rules._compile, asyncio.get_running_loop(), list[Future[object]]()

        async def changed() -> object:
            CLIENT.set("another")  # a client has one turn in the threads at a time
            return await (
                delete(plane, "roles") if change == "deleted" else loading.apply(plane, {**ROLE, "rules": []})
            )

        def changed_in_between(entry: StoredObject) -> Put:
            rules._compile = compile_  # type: ignore[method-assign]
            changes.append(asyncio.run_coroutine_threadsafe(changed(), loop))  # it waits for this controller
            eventually(lambda: rules.collection.entries.get(entry.key) is not entry)
            return compile_(entry)

        rules._compile = changed_in_between  # type: ignore[method-assign]
        await loading.apply(plane, LARGE)
        await asyncio.wrap_future(changes[0])
        assert not plane.authorize(ASKED).allowed
