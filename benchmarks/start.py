"""Measures how long the server takes to start: as a process, and as a fixture in a process that has imported it.

    python -m benchmarks.start [--runs N] [--other CHECKOUT]

Prints the fastest and the median run. A process is measured from its start until it has written the kubeconfig; byte
code is compiled before, as an installer does. The processor time of a process (on Linux), which other load changes less, is
compared with what importing the two largest libraries takes. `--other` measures a second checkout in turn with this one.
"""

from __future__ import annotations

import argparse
import compileall
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import processor_seconds

ROOT = Path(__file__).parents[1]
TARGET_PROCESS, TARGET_FIXTURE = 0.5, 0.05  # seconds


class Process(NamedTuple):
    """Seconds from the start of a process until it has written the kubeconfig, from SIGTERM to its exit, of the processor."""

    start: float
    stop: float
    processor: float


def process_seconds(directory: Path, root: Path = ROOT) -> Process:
    kubeconfig = directory / "kubeconfig"
    command = [sys.executable, "-m", "noxu", "serve", "--memory", "--port", "0", "--kubeconfig", str(kubeconfig)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(root)
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=root, env=environment)
    while not kubeconfig.exists():
        if process.poll() is not None:
            raise SystemExit("the server did not start")
        time.sleep(0.001)
    started, processor = time.perf_counter() - start, processor_seconds([process.pid])
    start = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    if process.wait() != 0:
        raise SystemExit("the server did not stop cleanly")
    return Process(started, time.perf_counter() - start, processor)


def import_seconds() -> float:
    """The processor time of a Python that imports the two largest libraries."""
    before = sum(os.times()[2:4])
    subprocess.run([sys.executable, "-c", "import aiohttp, orjson"], check=True)
    return sum(os.times()[2:4]) - before


def fixture_seconds(directory: Path) -> tuple[float, float]:
    """The same for a server in this process."""
    from noxu.apiserver.testing.handle import Noxu

    server = Noxu(directory)
    start = time.perf_counter()
    server.start()
    started = time.perf_counter() - start
    start = time.perf_counter()
    server.stop()
    return started, time.perf_counter() - start


def _row(name: str, runs: list[tuple[float, float]], target: float) -> str:
    starts, stops = zip(*runs, strict=True)
    milliseconds = [
        1000 * seconds for seconds in (min(starts), statistics.median(starts), statistics.median(stops), target)
    ]
    return "{:<28} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.0f}".format(name, *milliseconds)


def _processor_row(name: str, seconds: Sequence[float], base: float) -> str:
    """`ratio`: of the fastest run and `base`."""
    fastest = min(seconds)
    return f"{name:<28} {1000 * fastest:>8.1f} {1000 * statistics.median(seconds):>8.1f} {fastest / base:>8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="How long the server takes to start and to stop.")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--other", type=Path, help="a second checkout")
    options = parser.parse_args()
    runs = options.runs
    roots = [ROOT, *([options.other.resolve()] if options.other else [])]
    for root in roots:
        for package in ("apiserver", "storage"):
            compileall.compile_dir(root / package, quiet=2)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        imports, processes = [], []
        for _ in range(runs):
            imports.append(import_seconds())
            processes.append([process_seconds(directory, root) for root in roots])
        first = fixture_seconds(directory)
        fixtures = [fixture_seconds(directory) for _ in range(runs)]
    print(f"{'milliseconds':<28} {'fastest':>8} {'median':>8} {'stop':>8} {'target':>8}")
    for root, found in zip(roots, zip(*processes, strict=True), strict=True):
        name = "process, empty, in memory" if root == ROOT else f"process of {root.name}"
        print(_row(name, [(process.start, process.stop) for process in found], TARGET_PROCESS))
    print(_row("first fixture of a process", [first], TARGET_FIXTURE))
    print(_row("fixture", fixtures, TARGET_FIXTURE))
    print(f"\n{'milliseconds of the processor':<28} {'fastest':>8} {'median':>8} {'ratio':>8}")
    base = min(imports)
    print(_processor_row("import aiohttp, orjson", imports, base))
    for root, found in zip(roots, zip(*processes, strict=True), strict=True):
        name = "process until it is ready" if root == ROOT else f"process of {root.name}"
        print(_processor_row(name, [process.processor for process in found], base))


if __name__ == "__main__":
    main()
