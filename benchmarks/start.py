"""Measures how long the server takes to start: as a process, and as a fixture in a process that has imported it.

    python -m benchmarks.start [--runs N]

Prints the fastest and the median run. A process is measured from its start until it has written the kubeconfig; byte
code is compiled before, as an installer does.
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
from pathlib import Path

ROOT = Path(__file__).parents[1]
TARGET_PROCESS, TARGET_FIXTURE = 0.5, 0.05  # seconds


def process_seconds(directory: Path) -> tuple[float, float]:
    """Seconds from the start of the process until it has written the kubeconfig, and from SIGTERM to its exit."""
    kubeconfig = directory / "kubeconfig"
    command = [sys.executable, "-m", "noxu", "serve", "--memory", "--port", "0", "--kubeconfig", str(kubeconfig)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)
    while not kubeconfig.exists():
        if process.poll() is not None:
            raise SystemExit("the server did not start")
        time.sleep(0.001)
    started = time.perf_counter() - start
    start = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    if process.wait() != 0:
        raise SystemExit("the server did not stop cleanly")
    return started, time.perf_counter() - start


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


def main() -> None:
    parser = argparse.ArgumentParser(description="How long the server takes to start and to stop.")
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    for package in ("apiserver", "storage"):
        compileall.compile_dir(ROOT / package, quiet=2)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        processes = [process_seconds(directory) for _ in range(runs)]
        first = fixture_seconds(directory)
        fixtures = [fixture_seconds(directory) for _ in range(runs)]
    print(f"{'milliseconds':<28} {'fastest':>8} {'median':>8} {'stop':>8} {'target':>8}")
    print(_row("process, empty, in memory", processes, TARGET_PROCESS))
    print(_row("first fixture of a process", [first], TARGET_FIXTURE))
    print(_row("fixture", fixtures, TARGET_FIXTURE))


if __name__ == "__main__":
    main()
