"""A random walk over a running server: definitions, objects at several versions, informers, snapshots and restores.

A walk is determined by its seed. Every request may be refused; what counts is that the laws hold afterwards:

1. What is stored after a restore is what was stored at the snapshot, byte for byte, and so is every list at every version,
   but for resourceVersions.
2. An informer, which lists once and applies the events of its watch from then on, has what a list shows; and each event is
   possible: nothing is added twice, nothing changes or goes that was not there, nothing changes its uid.
3. resourceVersions grow.
4. Nothing is without its namespace or its definition when the controllers have nothing left to do.
5. A backup has the state at its revision, whatever is written meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random
from typing import Any, Final

import aiohttp

from noxu.config import Config
from noxu.control.backup import states_at
from noxu.control.differences import DEFINITIONS
from noxu.control.snapshots import Snapshots
from noxu.controllers.controller import Controller
from noxu.process.server import Server
from noxu.registry.storage_form import is_temporary
from noxu.values import Object
from noxu_storage.types import EVERYTHING, Key
from tests.timing import HANGS_AFTER

BOTH: Final = [("v1", True), ("v2", False)]
LATER: Final = [("v1", False), ("v2", True)]
SCHEMAS: Final[list[tuple[list[tuple[str, bool]], Object]]] = [
    ([("v1", True)], {"a": {"type": "integer", "default": 1}}),
    (BOTH, {"a": {"type": "integer", "default": 2}, "b": {"type": "string"}}),
    (LATER, {"a": {"type": "integer"}, "b": {"type": "string", "default": "b"}}),
    ([("v2", True)], {"b": {"type": "string"}}),
]
PLURALS: Final = ("widgets", "gadgets")
NAMESPACES: Final = ("default", "one", "two")
LISTED: Final = (
    *(f"/apis/example.com/{version}/{plural}" for plural in PLURALS for version in ("v1", "v2")),
    *(f"/api/v1/{plural}" for plural in ("namespaces", "configmaps", "services", "serviceaccounts", "secrets")),
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apiregistration.k8s.io/v1/apiservices",
)
NAMES: Final = ("base", "later", "last")


def definition(plural: str, number: int) -> Object:
    versions, properties = SCHEMAS[number]
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced" if plural == "widgets" else "Cluster",
            "names": {"plural": plural, "kind": plural[:-1].capitalize()},
            "versions": [
                {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}
                for name, storage in versions
            ],
        },
    }


class Informer:
    """A client that keeps what a list and the watch after it have shown. `objects` None: the resource is not served."""

    def __init__(self, session: aiohttp.ClientSession, path: str) -> None:
        self.path = path
        self.objects: dict[tuple[str, str], Object] | None = None
        self.wrong = ""
        self._session = session
        self._task = asyncio.create_task(self._run())

    def check(self) -> None:
        """Raises AssertionError if an event was impossible, and what has ended the client."""
        assert not self.wrong, self.wrong
        if self._task.done():
            self._task.result()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while not self.wrong:
            async with self._session.get(self.path) as answer:
                listed = await answer.json() if answer.status == 200 else None
            if listed is None:
                self.objects = None
                await asyncio.sleep(0.002)
                continue
            self.objects = by_name(listed)
            after = listed["metadata"]["resourceVersion"]
            async with self._session.get(self.path, params={"watch": "1", "resourceVersion": after}) as answer:
                if answer.status == 200:
                    async for line in answer.content:
                        if not self._apply(json.loads(line)):
                            break

    def _apply(self, event: Object) -> bool:
        """Whether the watch goes on."""
        assert self.objects is not None
        kind, value = event["type"], event["object"]
        if kind == "ERROR":
            return False
        name = name_of(value)
        known = self.objects.get(name)
        if (kind == "ADDED") != (known is None) or (known and known["metadata"]["uid"] != value["metadata"]["uid"]):
            self.wrong = f"{self.path}: {kind} {value}, but {known} was there"
            return False
        if known and int(known["metadata"]["resourceVersion"]) >= int(value["metadata"]["resourceVersion"]):
            self.wrong = f"{self.path}: {kind} {value} follows {known}"
            return False
        if kind == "DELETED":
            del self.objects[name]
        else:
            self.objects[name] = bare(value)
        return True


def name_of(value: Object) -> tuple[str, str]:
    return value["metadata"].get("namespace", ""), value["metadata"]["name"]


def bare(item: Object) -> Object:
    """Without what the items of a list lack."""
    return {name: value for name, value in item.items() if name not in ("apiVersion", "kind")}


def by_name(listed: Object) -> dict[tuple[str, str], Object]:
    return {name_of(item): bare(item) for item in listed["items"]}


def without_versions(listed: dict[tuple[str, str], Object] | None) -> Object | None:
    if listed is None:
        return None
    return {
        f"{namespace}/{name}": {**item, "metadata": {**item["metadata"], "resourceVersion": ""}}
        for (namespace, name), item in listed.items()
    }


class Walk:
    """One walk. `trace` has its steps."""

    def __init__(self, server: Server, session: aiohttp.ClientSession, seed: int) -> None:
        self.server, self.session, self.random = server, session, Random(seed)
        self.snapshots = server.control.part(Snapshots)
        self.taken: dict[str, tuple[dict[Key, bytes], dict[str, Any]]] = {}
        self.informers: list[Informer] = []
        self.trace: list[str] = []
        self.newest = 0
        self.restores = 0

    async def ask(self, method: str, path: str, value: Any = None) -> int:
        headers = {"Content-Type": "application/merge-patch+json"} if method == "PATCH" else {}
        async with self.session.request(method, path, json=value, headers=headers) as answer:
            await answer.read()
            assert answer.status < 500, (method, path, value, answer.status, await answer.text())
            self.trace.append(f"{answer.status} {method} {path} {json.dumps(value)}")
            return answer.status

    # -- steps

    async def change_definition(self) -> None:
        plural, number = self.random.choice(PLURALS), self.random.randrange(len(SCHEMAS))
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        new = definition(plural, number)
        if await self.ask("POST", path, new) == 409:
            await self.ask("PATCH", f"{path}/{plural}.example.com", {"spec": new["spec"]})

    async def delete_definition(self) -> None:
        plural = self.random.choice(PLURALS)
        await self.ask("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.example.com")

    async def write_custom(self) -> None:
        plural, version, name = self.random.choice(PLURALS), self.random.choice(["v1", "v2"]), self.random.choice("xyz")
        path = f"/apis/example.com/{version}/{plural}"
        if plural == "widgets":
            path = f"/apis/example.com/{version}/namespaces/{self.random.choice(NAMESPACES)}/{plural}"
        metadata: Object = {"name": name, "labels": {"n": str(self.random.randrange(3))}}
        if self.random.random() < 0.2:
            metadata["finalizers"] = ["example.com/wait"]
        spec = self.random.choice([{"a": self.random.randrange(9)}, {"b": "text"}, {}])
        new = {
            "apiVersion": f"example.com/{version}",
            "kind": plural[:-1].capitalize(),
            "metadata": metadata,
            "spec": spec,
        }
        if await self.ask("POST", path, new) == 409:
            await self.ask("PATCH", f"{path}/{name}", {"metadata": metadata, "spec": spec})

    async def delete_custom(self) -> None:
        version, name, namespace = (
            self.random.choice(["v1", "v2"]),
            self.random.choice("xyz"),
            self.random.choice(NAMESPACES),
        )
        path = self.random.choice(
            [f"gadgets/{name}", f"namespaces/{namespace}/widgets/{name}", f"namespaces/{namespace}/widgets"]
        )
        await self.ask("DELETE", f"/apis/example.com/{version}/{path}")

    async def write_built_in(self) -> None:
        namespace, name = self.random.choice(NAMESPACES), self.random.choice("abc")
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        metadata: Object = {"name": name}
        if self.random.random() < 0.5 and (owner := await self._owner(namespace)):
            metadata["ownerReferences"] = [owner]
        new = {"metadata": metadata, "data": {"n": str(self.random.randrange(100))}}
        if await self.ask("POST", path, new) == 409:
            await self.ask("PATCH", f"{path}/{name}", new)

    async def _owner(self, namespace: str) -> Object | None:
        async with self.session.get(f"/api/v1/namespaces/{namespace}/services") as answer:
            items = (await answer.json()).get("items")
        if not items:
            return None
        metadata = self.random.choice(items)["metadata"]
        return {"apiVersion": "v1", "kind": "Service", "name": metadata["name"], "uid": metadata["uid"]}

    async def write_service(self) -> None:
        namespace, name = self.random.choice(NAMESPACES), self.random.choice("st")
        path = f"/api/v1/namespaces/{namespace}/services"
        if self.random.random() < 0.5:
            await self.ask("DELETE", f"{path}/{name}")
        else:
            ports = [{"port": self.random.choice([80, 443])}]
            await self.ask("POST", path, {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}})

    async def delete_built_in(self) -> None:
        await self.ask(
            "DELETE", f"/api/v1/namespaces/{self.random.choice(NAMESPACES)}/configmaps/{self.random.choice('abc')}"
        )

    async def write_namespace(self) -> None:
        name = self.random.choice(NAMESPACES[1:])
        if self.random.random() < 0.4:
            await self.ask("DELETE", f"/api/v1/namespaces/{name}")
        else:
            await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    async def informer(self) -> None:
        if len(self.informers) >= 4:
            await self.informers.pop(self.random.randrange(4)).close()
        self.informers.append(Informer(self.session, self.random.choice(LISTED)))

    async def compact(self) -> None:
        store = self.server.plane.store
        await store.compact(max(store.revision - self.random.randrange(20), store.compacted))

    async def backup(self) -> None:
        store = self.server.plane.store
        revision = store.revision

        async def read() -> dict[Key, bytes]:
            return {item.key: item.value async for items in states_at(store, revision) for item in items}

        read_states, *_ = await asyncio.gather(read(), *(getattr(self, self.random.choice(WRITES))() for _ in range(4)))
        page = await store.list(EVERYTHING, revision=revision)
        assert read_states == {item.key: item.value for item in page.items}

    async def snapshot(self) -> None:
        await self.settled()
        await self.nothing_is_without_its_place()
        name = self.random.choice(NAMES)
        lists = {path: without_versions(await self.list(path)) for path in LISTED}
        if name in self.taken:
            await self.snapshots.delete(name)
        taken = await self.snapshots.create(name)
        self.trace.append(f"snapshot {taken}")
        self.taken[name] = await self.stored(taken["revision"]), lists

    async def restore(self) -> None:
        if not self.taken:
            return
        name = self.random.choice(sorted(self.taken))
        release = self.random.random() < 0.2
        others = self.random.random() < 0.3
        writes = [getattr(self, self.random.choice(WRITES))() for _ in range(4)] if others else []
        restored, *_ = await asyncio.gather(self.snapshots.restore(name, release=release), *writes)
        self.restores += 1
        self.trace.append(f"restore {restored} {release=} {others=}")
        stored, lists = self.taken[name]
        assert await self.stored(restored["revision"]) == stored
        if not others:
            for path, listed in lists.items():
                assert without_versions(await self.list(path)) == listed, path
        if release:
            del self.taken[name]

    # -- laws

    async def stored(self, revision: int) -> dict[Key, bytes]:
        page = await self.server.plane.store.list(EVERYTHING, revision=revision)
        left = {*self.snapshots._left()}
        return {item.key: item.value for item in page.items if not is_temporary(item.key) and item.key not in left}

    async def list(self, path: str) -> dict[tuple[str, str], Object] | None:
        async with self.session.get(path) as answer:
            return by_name(await answer.json()) if answer.status == 200 else None

    async def nothing_is_without_its_place(self) -> None:
        """Every object has its namespace, and every custom resource its definition."""
        keys = {
            item.key for item in (await self.server.plane.store.list(EVERYTHING)).items if not is_temporary(item.key)
        }
        for key in keys:
            group, _, plural = key.collection.partition("/")
            assert not key.partition or Key("/namespaces", "", key.partition[:-1]) in keys, key
            assert group != "example.com" or Key(DEFINITIONS, "", f"{plural}.{group}") in keys, key

    async def settled(self) -> None:
        """Wait until nothing is left to do for controllers."""
        plane, quiet = self.server.plane, 0
        revision = 0
        while quiet < 3:
            await asyncio.sleep(0.002)
            for controller in plane.all_controllers:
                if isinstance(controller, Controller):
                    await controller.observed()  # one that lists again, as after a compaction, has no keys meanwhile
            is_idle = all(controller.queue.depth == 0 for controller in plane.all_controllers)
            timers = any(getattr(controller, "_timers", ()) for controller in plane.all_controllers)
            quiet = quiet + 1 if is_idle and not timers and plane.store.revision == revision else 0
            revision = plane.store.revision

    async def judged(self) -> None:
        """Informers have what a list shows."""
        for informer in self.informers:

            async def agrees(informer: Informer = informer) -> bool:
                informer.check()
                return informer.objects == await self.list(informer.path)

            await until(agrees, lambda informer=informer: f"{informer.path} has {informer.objects}")  # type: ignore[misc]
        assert self.server.plane.store.revision >= self.newest
        self.newest = self.server.plane.store.revision
        used = [item["spec"]["clusterIP"] for item in (await self.list("/api/v1/services") or {}).values()]
        assert len(used) == len(set(used))


WRITES: Final = (
    *["write_custom"] * 8, *["delete_custom"] * 2, *["write_built_in"] * 4, "delete_built_in", *["write_service"] * 2,
    *["write_namespace"] * 2, *["change_definition"] * 3, "delete_definition",
)  # fmt: skip
STEPS: Final = (
    *WRITES, *["informer"] * 2, "compact", "backup", *["snapshot"] * 2, *["restore"] * 3, *["judged"] * 2,
)  # fmt: skip


async def until(holds: Callable[[], Awaitable[bool]], text: Callable[[], str]) -> None:
    ends = asyncio.get_running_loop().time() + HANGS_AFTER
    while not await holds():
        assert asyncio.get_running_loop().time() < ends, text()
        await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def walking(config: Config, seed: int) -> AsyncIterator[Walk]:
    async with Server(config) as server, aiohttp.ClientSession(server.url) as session:
        walk = Walk(server, session, seed)
        try:
            yield walk
        finally:
            for informer in walk.informers:
                await informer.close()


async def walk(config: Config, seed: int, steps: int) -> Walk:
    """Walk so many steps. The error of a broken law shows the last of them."""
    async with walking(config, seed) as walked:
        for number in range(steps):
            name = walked.random.choice(STEPS)
            walked.trace.append(f"{number} {name}")
            try:
                await getattr(walked, name)()
            except AssertionError as error:
                raise AssertionError("\n".join([f"seed {seed}", *walked.trace[-60:], str(error)])) from error
        await walked.judged()
        return walked
