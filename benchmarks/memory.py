"""Measures the memory of a server: `python -m benchmarks.memory [--objects N] [--other CHECKOUT] [--backends memory,sqlite]`.

Prints the resident memory of an idle server, and what an object costs: the growth from FIRST objects on, which have
brought everything into memory that a server needs once, divided by the number of further objects. The log of recent
changes and everything else that a server keeps up to a limit is part of it. `JSON` is the mean size of the objects as a
GET returns them, `bound` is 1.3 × that + 600 bytes, and `ratio` that of the cost and this bound. On Linux only.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks.http import COLLECTION
from benchmarks.load import Request, Requests, Target, ask, send_all
from benchmarks.processes import processor_seconds, resident_bytes
from benchmarks.samples import DEFINITION, sample
from benchmarks.servers import DEFINITIONS, Source, start

ROOT: Final = Path(__file__).parents[1]
FIRST: Final = 500
CLIENTS: Final = 16
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"


def bound(size: float) -> float:
    """The bytes that an object of this size may cost."""
    return 1.3 * size + 600


def small(name: str) -> Any:
    """An object of which a GET returns 1 KB."""
    value = sample(name)
    value["metadata"]["labels"] = {"app": name, "team": "blue"}
    value["spec"] = {
        "template": {"image": "registry.example.com/team/app:v1.2.3", "args": [f"--{n}" for n in range(9)]}
    }
    value["status"] = {}
    return value


def large(name: str) -> Any:
    """An object of which a GET returns 3.4 KB."""
    value = sample(name)
    value["spec"]["template"]["args"] = [f"--flag-{n}=the value of the flag with the number {n}" for n in range(24)]
    return value


def config_map(name: str) -> Any:
    """An object of a built-in kind of which a GET returns 1 KB."""
    metadata = {"name": name, "labels": {"app": name, "team": "blue"}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {f"key-{n}": "value " * 8 for n in range(8)},
    }


SAMPLES: Final = {"small": (COLLECTION, small), "large": (COLLECTION, large), "ConfigMap": (CONFIG_MAPS, config_map)}
"""Where they are created, and how they are made."""


def source(root: Path, backend: str) -> Source:
    """A server of a checkout over HTTP."""
    place = ["--memory"] if backend == "memory" else ["--data", "{directory}/data"]
    command = [sys.executable, "-m", "noxu", "serve", "--quiet", *place, "--port", "{port}"]
    return Source(root.name, command=(*command, "--kubeconfig", "{directory}/kubeconfig"), folder=root, tls=False)


def settled(pids: Sequence[int]) -> int:
    """The resident memory of processes when they have used next to no processor time for half a second."""
    while True:
        before = processor_seconds(pids)
        time.sleep(0.5)
        if processor_seconds(pids) - before < 0.01:
            return resident_bytes(pids)


async def fill(target: Target, name: str, first: int, end: int) -> None:
    path, make = SAMPLES[name]
    numbers = iter(range(first, end))

    def creates() -> Requests:
        for n in numbers:
            yield Request("POST", path, json.dumps(make(f"o-{n:06}"), separators=(",", ":")).encode(), status=201)

    await send_all(target, [creates() for _ in range(CLIENTS)])


async def measure(root: Path, backend: str, name: str, number: int) -> tuple[int, float, int]:
    """(the resident memory of the idle server, the bytes that an object costs, its size)."""
    with tempfile.TemporaryDirectory(prefix="noxu-memory-") as directory:
        server = await start(source(root, backend), Path(directory))
        try:
            idle = settled(server.pids)
            await ask(server.target, Request("POST", DEFINITIONS, json.dumps(DEFINITION).encode(), status=201))
            await ask(server.target, Request("GET", SAMPLES[name][0]))  # from now on the server has them in memory
            await fill(server.target, name, 0, FIRST)
            before = settled(server.pids)
            await fill(server.target, name, FIRST, FIRST + number)
            cost = (settled(server.pids) - before) / number
            size = len(await ask(server.target, Request("GET", f"{SAMPLES[name][0]}/o-{FIRST:06}")))
        finally:
            server.stop()
    return idle, cost, size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--backends", default="memory,sqlite", help="where objects are stored")
    parser.add_argument("--sizes", default=",".join(SAMPLES))
    parser.add_argument("--other", type=Path, help="a second checkout")
    options = parser.parse_args()
    roots = [ROOT, *([options.other.resolve()] if options.other else [])]
    print(
        f"{'checkout':<12} {'backend':<8} {'object':<10} {'number':>8} {'idle MB':>8} {'JSON':>6} {'bytes':>7} {'bound':>7} {'ratio':>6}"
    )
    for backend in options.backends.split(","):
        for name in options.sizes.split(","):
            for root in roots:
                idle, cost, size = uvloop.run(measure(root, backend, name, options.objects))
                figures = f"{idle / 1e6:>8.1f} {size:>6} {cost:>7.0f} {bound(size):>7.0f} {cost / bound(size):>6.2f}"
                print(f"{root.name:<12} {backend:<8} {name:<10} {options.objects:>8} {figures}", flush=True)


if __name__ == "__main__":
    main()
