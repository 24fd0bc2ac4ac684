"""What faults, the clock and waiting for idleness cost; and whether `idle` is ever too early.

    python -m benchmarks.faults
    python -m benchmarks.faults --runs 10000
    python -m benchmarks.faults --runs 200 --starved 4

The first prints processor time: of a request with a hundred rules that do not match it (3 µs at most), of an advance by a year
in which a thousand things are due (a second at most), of `idle` on a quiet server, and beside a quiet program with 20 threads (2 ms at most).

With `--runs` a controller in a thread and one in a child process copy objects after random delays of up to 20 ms, and `idle` is
asked after each object: it is early if a copy is missing. With `--starved N` the controller is a program of the handle that
yields to N busy loops (nice 19), computes for a while before each copy, and is silent meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from noxu import Noxu
from noxu.clock import AdjustableClock
from noxu.config import Config
from noxu.control import clock, idle
from noxu.control.faults.armed import Armed, Asked
from noxu.control.faults.rules import parse
from noxu.process.server import Server
from noxu.values import Object

REQUESTS = 200_000
DUE = 1_000
QUIET = 0.06
LONGEST_DELAY = 0.02  # seconds of a controller
COMPUTES = 0.005  # seconds of processor time, of a starved one
THREADS = 20
ASKED = Asked("update", "widgets.example.com", "", "shop", "a", "jane", "operator/1", "id")
MAPS = "/api/v1/namespaces/default/configmaps"


def rules_that_do_not_match() -> float:
    """Microseconds of processor time a request."""
    kinds: list[Object] = [
        {"match": {"resource": f"r{n}.example.com", "verbs": ["update"]}, "error": 500} for n in range(50)
    ]
    names: list[Object] = [{"match": {"resource": ASKED.resource, "name": f"n{n}"}, "error": 500} for n in range(50)]
    now, armed = datetime(2026, 1, 1, tzinfo=UTC), Armed()
    armed.add(parse([*kinds, *names]), now)
    began = time.process_time()
    for _ in range(REQUESTS):
        if armed.hits(ASKED, now):
            raise AssertionError("no rule matches")
    return (time.process_time() - began) / REQUESTS * 1e6


async def a_year() -> float:
    """Seconds of processor time."""
    async with Server(Config(port=0)) as server:
        own = server.clock
        assert isinstance(own, AdjustableClock)
        own.freeze()
        sleepers = [asyncio.create_task(own.sleep(3600.0 * n)) for n in range(1, DUE + 1)]
        await asyncio.sleep(0)
        began = time.process_time()
        await clock.advance(own, server.plane.all_controllers, by=365 * 86_400.0)
        spent = time.process_time() - began
        await asyncio.gather(*sleepers)
        return spent


async def quiet() -> float:
    """Milliseconds of processor time."""
    async with Server(Config(port=0)) as server:
        await idle.until_idle(server.interventions.activity(), server.plane.all_controllers, quiet=0.0)
        began = time.process_time()
        for _ in range(100):
            await idle.until_idle(server.interventions.activity(), server.plane.all_controllers, quiet=0.0)
        return (time.process_time() - began) * 1e3 / 100


def quiet_program() -> float:
    """Milliseconds of processor time by which `idle`, with its usual quiet time, costs more beside a program that sleeps."""
    code = (
        f"import os, threading, time, urllib.request\n"
        f"for n in range({THREADS}): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        f"urllib.request.urlopen(os.environ['NOXU_URL'] + '{MAPS}').read()\n"
        f"time.sleep(600)"
    )

    def spent() -> float:
        server.idle()
        began = time.process_time()
        for _ in range(10):
            server.idle()
        return (time.process_time() - began) * 1e3 / 10

    with Noxu() as server:
        without = spent()
        with server.program([sys.executable, "-c", code]):
            while not server.requests("configmaps"):
                time.sleep(0.02)
            return spent() - without


# -- is it ever early? ------------------------------------------------------------------------------------------------


def copy(url: str, suffix: str, seed: int, started: Callable[[], object], computes: float = 0.0) -> None:
    """A controller: for each in-N it writes N-SUFFIX, until its watch ends. `computes`: seconds of processor time before."""
    chance, place = random.Random(seed), urlsplit(url).netloc
    watching, writing = http.client.HTTPConnection(place), http.client.HTTPConnection(place)
    watching.request("GET", f"{MAPS}?watch=1&resourceVersion=1", headers={"User-Agent": suffix})
    events = watching.getresponse()
    started()
    for line in iter(events.readline, b""):
        event = json.loads(line)
        name = event["object"]["metadata"]["name"]
        if event["type"] == "ADDED" and name.startswith("in-"):
            time.sleep(chance.random() * LONGEST_DELAY)
            until = time.thread_time() + computes
            while time.thread_time() < until:
                pass
            body = json.dumps({"metadata": {"name": f"{name.removeprefix('in-')}-{suffix}"}})
            headers = {"Content-Type": "application/json", "User-Agent": suffix}
            try:
                writing.request("POST", MAPS, body, headers)
            except ConnectionError:  # it was idle for long, on a busy machine
                writing.close()
                writing.request("POST", MAPS, body, headers)
            writing.getresponse().read()


@contextmanager
def controllers(url: str, seed: int) -> Iterator[None]:
    started = multiprocessing.get_context("spawn").Barrier(3)
    thread = threading.Thread(target=copy, args=(url, "thread", seed, started.wait), daemon=True)
    process = multiprocessing.get_context("spawn").Process(
        target=copy, args=(url, "process", seed, started.wait), daemon=True
    )
    thread.start()
    process.start()
    started.wait()
    try:
        yield
    finally:
        process.kill()


@contextmanager
def starved_program(server: Noxu, seed: int, loops: int) -> Iterator[None]:
    """A program of the handle, which gets what the busy loops leave."""
    code = f"from benchmarks import faults; faults.copy_as_program({server.url!r}, {seed})"
    words = ["nice", "-n", "19", sys.executable, "-c", code]
    with ExitStack() as open_, server.program(words, directory=Path(__file__).parents[1]):
        while not server.list("configmaps", namespace="default", labels="started"):
            time.sleep(0.02)
        for _ in range(loops):
            spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            open_.callback(spinning.wait)
            open_.callback(spinning.kill)
        yield


def copy_as_program(url: str, seed: int) -> None:
    def started() -> None:
        body = {"metadata": {"name": "started", "labels": {"started": ""}}}
        asking = http.client.HTTPConnection(urlsplit(url).netloc)
        asking.request("POST", MAPS, json.dumps(body), {"Content-Type": "application/json"})
        asking.getresponse().read()

    copy(url, "program", seed, started, COMPUTES)


def early(server: Noxu, runs: int, wanted: Sequence[str], quiet: float) -> int:
    """In how many runs a copy was missing."""
    missing = 0
    for n in range(runs):
        server.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"in-{n}", "namespace": "default"}}
        )
        server.idle(quiet=quiet, timeout=60)
        names = {value["metadata"]["name"] for value in server.list("configmaps", namespace="default")}
        copies = {f"{n}-{suffix}" for suffix in wanted}
        missing += not copies <= names
        for name in names & {f"in-{n}", *copies}:
            server.delete("configmap", name, namespace="default")
    return missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=0, help="ask so often whether the server is idle")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--starved", type=int, default=0, metavar="LOOPS", help="beside so many busy loops")
    parser.add_argument("--quiet", type=float, default=QUIET, metavar="SECONDS")
    options = parser.parse_args()
    if options.runs:
        with Noxu() as server:
            if options.starved:
                copying, wanted = starved_program(server, options.seed, options.starved), ["program"]
            else:
                copying, wanted = controllers(server.url, options.seed), ["thread", "process"]
            with copying:
                began = time.monotonic()
                print(f"early in {early(server, options.runs, wanted, options.quiet)} of {options.runs} runs", end=", ")
                print(f"{(time.monotonic() - began) / options.runs:.2f} s each")
        return
    print(f"a hundred rules that do not match     {rules_that_do_not_match():6.2f} µs a request")
    print(f"a year in which a thousand are due    {asyncio.run(a_year()):6.3f} s")
    print(f"idle on a quiet server                {asyncio.run(quiet()):6.2f} ms")
    print(f"idle beside a quiet program           {quiet_program():6.2f} ms more")


if __name__ == "__main__":
    main()
