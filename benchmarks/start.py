"""How long it takes until the server answers: as a process, and as a fixture in a process that has imported it.

    python -m benchmarks.start [--runs N]

Prints the quickest and the median run. A process counts from its start until the kubeconfig is there; byte code is
compiled before, as installing does.
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
BAR_PROCESS, BAR_FIXTURE = 0.5, 0.05  # seconds


def process_seconds(directory: Path) -> tuple[float, float]:
    """Seconds from the start of the process to the kubeconfig, and from SIGTERM to its end."""
    kubeconfig = directory / "kubeconfig"
    command = [sys.executable, "-m", "apiserver", "serve", "--memory", "--port", "0", "--kubeconfig", str(kubeconfig)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)
    while not kubeconfig.exists():
        if process.poll() is not None:
            raise SystemExit("the server did not start")
        time.sleep(0.001)
    started = time.perf_counter() - began
    began = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    if process.wait() != 0:
        raise SystemExit("the server did not stop cleanly")
    return started, time.perf_counter() - began


def fixture_seconds(directory: Path) -> tuple[float, float]:
    """The same of a server in this process."""
    from apiserver.testing.handle import Noxu

    server = Noxu(directory)
    began = time.perf_counter()
    server.start()
    started = time.perf_counter() - began
    began = time.perf_counter()
    server.stop()
    return started, time.perf_counter() - began


def _row(what: str, runs: list[tuple[float, float]], bar: float) -> str:
    starts, stops = zip(*runs, strict=True)
    milliseconds = [1000 * one for one in (min(starts), statistics.median(starts), statistics.median(stops), bar)]
    return "{:<28} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.0f}".format(what, *milliseconds)


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
    print(f"{'milliseconds':<28} {'quickest':>8} {'median':>8} {'stop':>8} {'bar':>8}")
    print(_row("process, empty, in memory", processes, BAR_PROCESS))
    print(_row("first fixture of a process", [first], BAR_FIXTURE))
    print(_row("fixture", fixtures, BAR_FIXTURE))


if __name__ == "__main__":
    main()
