"""Measures the garbage collector: `python -m benchmarks.garbage [--children N] [--memory]`.

Prints, for an owner with many children in one store, the seconds until the last one is deleted or orphaned, the processor
time of this, and the longest processor time for which the event loop was not available to other tasks. Then what the
collector adds to writes of objects that neither own nor are owned, the memory of its graph, and what building the graph
costs a server that starts with many objects.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.control_plane import WITHOUT_CONTROLLERS, ControlPlane, assemble, resource_of, running
from noxu.controllers.garbage_collector import GarbageCollector
from noxu.controllers.owner_graph import OwnerGraph
from noxu.registry.draft import Action, Body, DeleteOptions, WriteRequest
from noxu.registry.resource import Resource
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from noxu_storage.sqlite import SqliteStore
from noxu_storage.store import Store
from noxu_storage.types import Key
from tests.timing import longest_block

TARGET_SECONDS: Final = 5.0
TARGET_BLOCK: Final = 0.05  # seconds
TARGET_PERCENT: Final = 3
ROUNDS: Final = 10
COLLECTOR: Final = ("garbage-collector-controller",)
WRITES: Final = 200
DATA: Final = {"data": "x" * 600}


def config_map(name: str, owner: Object | None = None, **reference: bool) -> Object:
    metadata: Object = {"name": name, "labels": {"app": "benchmark"}}
    if owner is not None:
        own = owner["metadata"]
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": own["name"], "uid": own["uid"], **reference}
        ]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": DATA}


class Bench:
    """Writes ConfigMaps to a running control plane."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.resource: Resource = resource_of(plane.served_resources, "", "configmaps")

    async def create(self, value: Object) -> Object:
        request = WriteRequest(Action.CREATE, self.resource, "default", body=Body(value))
        written = await self.plane.writer.write(request)
        created: Object = codec.decode_stored(written.body(self.resource))
        return created

    async def delete(self, name: str, policy: str = "Background") -> None:
        options = DeleteOptions(propagation=policy)
        await self.plane.writer.write(
            WriteRequest(Action.DELETE, self.resource, "default", name, delete_options=options)
        )

    async def idle(self) -> None:
        """Wait until no controller has anything to do."""
        while any(found.queue.depth or not found.is_synchronised for found in self.plane.all_controllers):  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    async def left(self) -> int:
        return len((await self.plane.reader.collection(self.resource)).keys)


async def at_once(work: Iterable[Awaitable[object]], size: int = 64) -> None:
    items = list(work)
    for start in range(0, len(items), size):
        await asyncio.gather(*items[start : start + size])


class Figures(NamedTuple):
    """Seconds: of the clock, of the processor (all threads), and the most of the loop's thread without another task."""

    seconds: float
    cpu: float
    block: float


async def measured(work: Awaitable[None]) -> Figures:
    async def timed() -> tuple[float, float]:
        start, cpu = time.perf_counter(), time.process_time()
        await work
        return time.perf_counter() - start, time.process_time() - cpu

    (seconds, cpu), block = await longest_block(timed)
    return Figures(seconds, cpu, block)


@asynccontextmanager
async def bench(store: Store, *, garbage_collection: bool = True) -> AsyncIterator[Bench]:
    async with running(
        assemble(replace(WITHOUT_CONTROLLERS, controllers=COLLECTOR if garbage_collection else ()), store)
    ) as plane:
        found = Bench(plane)
        await found.idle()
        yield found


async def cascade(store: Store, children: int, policy: str) -> Figures:
    async with bench(store) as found:
        owner = await found.create(config_map("owner"))
        await at_once(found.create(config_map(f"c{i}", owner, blockOwnerDeletion=True)) for i in range(children))
        await found.idle()
        gc.collect()
        gc.freeze()

        async def run() -> None:
            await found.delete("owner", policy)
            await found.idle()

        figures = await measured(run())
        expected = children if policy == "Orphan" else 0
        assert await found.left() == expected, f"{policy}: {await found.left()} are left"
        return figures


async def plain_writes(owned: int) -> tuple[float, float]:
    """The processor seconds of a write of a plain object (a create and a delete), and what following it costs of that.

    `owned` objects with an owner exist, so that the collector has something to look for in deleted objects. Both are the
    best of some rounds; the second is measured by itself, because it is less than the noise of the first.
    """
    async with bench(MemoryStore()) as found:
        owner = await found.create(config_map("owner"))
        await at_once(found.create(config_map(f"c{i}", owner)) for i in range(owned))
        await found.idle()
        [collector] = (one for one in found.plane.background_controllers if isinstance(one, GarbageCollector))
        writing = following = float("inf")
        gc.collect()
        gc.disable()
        for _ in range(ROUNDS):
            first, begin = found.plane.store.revision, time.thread_time()
            for i in range(WRITES):
                await found.create(config_map(f"p{i}"))
                await found.delete(f"p{i}")
            writing = min(writing, (time.thread_time() - begin) / WRITES / 2)
            batch = await anext(aiter(found.plane.store.watch(after=first)))
            begin = time.thread_time()
            for event in batch.events:
                collector.deliver((event,), event.revision)
            following = min(following, (time.thread_time() - begin) / len(batch.events))
        gc.enable()
        return writing, following


async def start(path: Path, *, garbage_collection: bool) -> tuple[float, Figures]:
    """(Seconds until the control plane runs, the figures until the graph is built and all objects in it are checked)."""
    store = await SqliteStore.open(path)
    begin = time.perf_counter()
    async with running(
        assemble(replace(WITHOUT_CONTROLLERS, controllers=COLLECTOR if garbage_collection else ()), store)
    ) as plane:
        started = time.perf_counter() - begin
        return started, await measured(Bench(plane).idle())


async def fill(path: Path, objects: int, owned: int) -> None:
    """A store with plain objects, and objects of one owner."""
    store = await SqliteStore.open(path, "normal")
    async with bench(store, garbage_collection=False) as found:
        owner = await found.create(config_map("owner"))
        await at_once(found.create(config_map(f"p{i}")) for i in range(objects))
        await at_once(found.create(config_map(f"c{i}", owner)) for i in range(owned))


def bytes_of_graph(nodes: int) -> float:
    """The memory of the graph in bytes for each object that has an owner."""
    template = config_map("name", {"metadata": {"name": "owner", "uid": "0" * 36}})
    tracemalloc.start()
    graph, keys = OwnerGraph(), [Key("/configmaps", "default/", f"child-{i}") for i in range(nodes)]
    before, _ = tracemalloc.get_traced_memory()
    for revision, key in enumerate(keys):
        template["metadata"] |= {"name": key.name, "uid": f"{revision:036}"}
        graph.put(key, codec.encode(template, sort_keys=False), revision + 1)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / nodes


async def report(children: int, objects: int, *, memory: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        print(f"{children} children of one owner      {'seconds':>9} {'processor':>12} {'longest block in ms':>21}")
        for policy in ("Background", "Foreground", "Orphan"):
            store = MemoryStore() if memory else await SqliteStore.open(directory / f"{policy}.db")
            seconds, cpu, block = await cascade(store, children, policy)
            print(f"  {policy:<28} {seconds:>12.2f} {cpu:>12.2f} {1000 * block:>21.1f}")
        print(f"  {'target':<28} {TARGET_SECONDS:>12.2f} {'':>12} {1000 * TARGET_BLOCK:>21.1f}\n")

        for owned in (0, 1000):
            writing, following = await plain_writes(owned)
            print(
                f"a plain write, {owned:>5} owned: {1e6 * writing:.1f} µs, of which {1e6 * following:.2f} µs for the "
                f"collector: {100 * following / writing:.2f} %   target {TARGET_PERCENT} %"
            )
        print(f"memory of the graph: {bytes_of_graph(10_000):.0f} bytes for each object that has an owner\n")

        for owned in (0, objects // 5):
            path = directory / f"start-{owned}.db"
            await fill(path, objects - owned, owned)
            for on in (False, True):
                started, (seconds, cpu, block) = await start(path, garbage_collection=on)
                print(
                    f"start with {objects} objects, {owned} of them owned, {'with' if on else 'without'} collector: "
                    f"{started:.3f} s, then {seconds:.3f} s (processor {cpu:.3f}), longest block {1000 * block:.1f} ms"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast the garbage collector is, and what it costs.")
    parser.add_argument("--children", type=int, default=10_000)
    parser.add_argument("--objects", type=int, default=50_000, help="stored objects at a start")
    parser.add_argument("--memory", action="store_true", help="delete from a store in memory instead of a file")
    arguments = parser.parse_args()
    asyncio.run(report(arguments.children, arguments.objects, memory=arguments.memory))


if __name__ == "__main__":
    main()
