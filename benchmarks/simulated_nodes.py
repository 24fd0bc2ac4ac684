"""Measures workloads on simulated nodes: `python -m benchmarks.simulated_nodes [--deployments N] [--pods N] [--nodes N] [--profile]`.

Creates Deployments in a server in memory, and waits until all of their pods are available. Prints the processor time in all and
per pod, the longest time for which the event loop is held, the writes per pod, and what each controller has a part of: how often its steps
ran, their processor time, and what it wrote. Then it counts what an idle server writes. The client's requests are a part of all.

The bar is 8 s of processor time for 100 Deployments of 10 pods, 50 ms for the loop, and no writes but leases while idle.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import time
from collections import Counter
from datetime import datetime
from typing import Any, Final

from benchmarks.held_loop import watched_loop
from benchmarks.history import Client
from noxu import garbage
from noxu.config import Config
from noxu.process.server import Server
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.objects import DEPLOYMENTS, EVENTS, LEASES, Objects
from noxu.workloads.writes import (
    Bind,
    Create,
    Delete,
    NamespacedName,
    NewEvent,
    ReadScale,
    Replace,
    Steps,
    Write,
    WriteScale,
)

PATH: Final = "/apis/apps/v1/namespaces/default/deployments"
IDLE: Final = 4.0  # seconds
LONGEST: Final = 300.0  # seconds


class Counts:
    """What one controller does."""

    def __init__(self, controller: WorkloadController) -> None:
        self.runs = 0
        self.seconds = 0.0
        self.writes: Counter[str] = Counter()
        steps, write = controller.steps, controller._write  # noqa: SLF001

        def counted_steps(objects: Objects, key: NamespacedName, now: datetime) -> Steps:
            self.runs += 1
            began = time.process_time()
            running = steps(objects, key, now)
            results: Any = None
            while True:
                try:
                    writes = next(running) if results is None else running.send(results)
                except StopIteration as end:
                    self.seconds += time.process_time() - began
                    return end.value  # type: ignore[no-any-return]
                self.seconds += time.process_time() - began
                try:
                    results = yield writes
                except BaseException:
                    running.close()
                    raise
                began = time.process_time()

        async def counted_write(it: Write) -> Object | None:
            self.writes[sentence(it)] += 1
            return await write(it)

        controller.steps = counted_steps  # type: ignore[method-assign]
        controller._write = counted_write  # type: ignore[method-assign,assignment]  # noqa: SLF001


def sentence(write: Write) -> str:
    match write:
        case Create(kind):
            return f"create {kind[1]}"
        case Replace(kind, _, subresource):
            return f"update {kind[1]}{'/' if subresource else ''}{subresource}"
        case Delete(kind):
            return f"delete {kind[1]}"
        case Bind():
            return "bind pods"
        case ReadScale() | WriteScale():
            return "read or write a scale"
        case NewEvent():
            return f"record {EVENTS[1]}"


def deployment(name: str, pods: int) -> Object:
    labels = {"app": name}
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def available(objects: Objects) -> int:
    return sum((it.get("status") or {}).get("availableReplicas") or 0 for it in objects.all(DEPLOYMENTS))


async def roll_out(server: Server, deployments: int, pods: int, profile: cProfile.Profile | None) -> None:
    controllers = [it for it in server.plane.all_controllers if isinstance(it, WorkloadController)]
    counts = {it.name: Counts(it) for it in controllers}
    objects = controllers[0].informer.objects
    client = Client(*await asyncio.open_connection("127.0.0.1", server.listeners.port))
    bodies = [json.dumps(deployment(f"web-{n}", pods)).encode() for n in range(deployments)]
    wanted = deployments * pods
    async with watched_loop(time.process_time) as held, asyncio.timeout(LONGEST):
        began, since = time.process_time(), time.perf_counter()
        if profile is not None:
            profile.enable()
        for body in bodies:
            await client.send("POST", PATH, body)
        while available(objects) < wanted or not all(it.is_idle for it in controllers):  # noqa: ASYNC110 - a look is cheap
            await asyncio.sleep(0.05)
        if profile is not None:
            profile.disable()
        used, taken = time.process_time() - began, time.perf_counter() - since
    total = sum(sum(it.writes.values()) for it in counts.values())
    print(
        f"{deployments} Deployments of {pods} pods: {used:.2f} s of processor time in {taken:.1f} s, {used / wanted * 1e3:.2f} ms a pod"
    )
    print(f"the loop held for {held.longest * 1e3:.0f} ms at most; {total / wanted:.2f} writes a pod")
    for name, it in sorted(counts.items(), key=lambda pair: -sum(pair[1].writes.values())):
        if it.runs:
            writes = ", ".join(f"{number} × {what}" for what, number in it.writes.most_common())
            print(f"  {name:26} {it.runs:6} runs, {it.seconds:6.3f} s in steps; {writes}")
    for it in counts.values():
        it.writes.clear()
    await asyncio.sleep(1.0)
    for it in counts.values():
        it.writes.clear()
    began = time.process_time()
    await asyncio.sleep(IDLE)
    used = time.process_time() - began
    idle = sum((it.writes for it in counts.values()), Counter[str]())
    leases = sum(number for what, number in idle.items() if what.endswith(f" {LEASES[1]}"))
    print(
        f"idle for {IDLE:.0f} s: {sum(idle.values()) - leases} writes and {leases} of leases, {used * 1e3:.0f} ms of processor time"
    )
    for what, number in idle.items():
        print(f"  {number} × {what}")


async def main(deployments: int, pods: int, nodes: int, *, profiled: bool) -> None:
    garbage.begin(garbage.OF_A_SERVER)  # as in the process of a server
    profile = cProfile.Profile(time.process_time) if profiled else None
    async with Server(Config(port=0, nodes=nodes)) as server:
        await roll_out(server, deployments, pods, profile)
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        pstats.Stats(profile).sort_stats("cumtime").print_stats("noxu", 70)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="workloads on simulated nodes")
    parser.add_argument("--deployments", type=int, default=100)
    parser.add_argument("--pods", type=int, default=10, help="of each Deployment")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--profile", action="store_true", help="print the functions that take most of the time, too")
    given = parser.parse_args()
    asyncio.run(main(given.deployments, given.pods, given.nodes, profiled=given.profile))
