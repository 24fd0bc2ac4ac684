"""Measures how long the server takes to start: as a process, and as a fixture in a process that has imported it.

    python -m benchmarks.start [--runs N] [--other CHECKOUT]
    python -m benchmarks.start --imports [--other CHECKOUT]

Prints the fastest and the median run. A process is measured from its start until it has written the kubeconfig; byte
code is compiled before, as an installer does. The processor time of a process (on Linux), which other load changes less, is
compared with what importing the two largest libraries takes; that of a fixture is its start and its stop. The memory is that
of a server that has not had a request. `--other` measures a second checkout in turn with this one.

`--imports` prints what a process imports until it is ready (`python -X importtime`): by package, the number of modules and
the milliseconds that they take themselves, the least of several runs.
"""

from __future__ import annotations

import argparse
import compileall
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.processes import processor_seconds, python_path, resident_bytes

ROOT = Path(__file__).parents[1]
TARGET_PROCESS, TARGET_FIXTURE = 0.5, 0.05  # seconds


FIXTURE: Final = """if True:
    import gc, pathlib, sys, time
    from noxu.testing.handle import Noxu

    def run():
        before = time.process_time()
        server = Noxu(pathlib.Path(sys.argv[1]))
        server.start()
        server.stop()
        return time.process_time() - before

    for _ in range(10):
        run()
    gc.freeze()
    print(*(run() for _ in range(int(sys.argv[2]))))
"""
LIBRARIES: Final = ("aiohttp", "asyncio", "attr", "email", "noxu")
"""The packages that `--imports` names; all others are one line."""
IMPORTED: Final = re.compile(r"^import time: +([0-9]+) \| +[0-9]+ \| +(\S+)$", re.MULTILINE)


class Process(NamedTuple):
    """Seconds from the start of a process until it has written the kubeconfig, from SIGTERM to its exit, of the processor.

    `resident` are bytes. `imports` are the microseconds of each module, if they were asked for.
    """

    start: float
    stop: float
    processor: float
    resident: int
    imports: dict[str, int]


def process_seconds(directory: Path, root: Path = ROOT, *, imports: bool = False) -> Process:
    kubeconfig, log = directory / "kubeconfig", directory / "log"
    command = [sys.executable, *(["-X", "importtime"] if imports else []), "-m", "noxu", "serve"]
    command += ["--memory", "--port", "0", "--kubeconfig", str(kubeconfig)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = python_path(root)
    start = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output, cwd=root, env=environment)
    while not kubeconfig.exists():
        if process.poll() is not None:
            raise SystemExit(f"the server did not start: {log.read_text()[-2000:]}")
        time.sleep(0.001)
    started, processor = time.perf_counter() - start, processor_seconds([process.pid])
    resident = resident_bytes([process.pid])
    modules = {name: int(found) for found, name in IMPORTED.findall(log.read_text())}
    start = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    if process.wait() != 0:
        raise SystemExit("the server did not stop cleanly")
    return Process(started, time.perf_counter() - start, processor, resident, modules)


def import_seconds() -> float:
    """The processor time of a Python that imports the two largest libraries."""
    code = "import time, aiohttp, orjson; print(time.process_time())"
    return float(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout)


def fixture_seconds(directory: Path) -> tuple[float, float]:
    """The same for a server in this process."""
    from noxu.testing.handle import Noxu

    server = Noxu(directory)
    start = time.perf_counter()
    server.start()
    started = time.perf_counter() - start
    start = time.perf_counter()
    server.stop()
    return started, time.perf_counter() - start


def fixture_processor_seconds(directory: Path, root: Path, number: int) -> list[float]:
    """The processor time of starts and stops in a process of a checkout."""
    environment = os.environ | {"PYTHONPATH": python_path(root)}
    command = [sys.executable, "-c", FIXTURE, str(directory), str(number)]
    done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [float(seconds) for seconds in done.stdout.split()]


def show_imports(roots: Sequence[Path], directory: Path, runs: int) -> None:
    fastest: dict[Path, dict[str, int]] = {root: {} for root in roots}
    for _ in range(runs):
        for root, found in fastest.items():
            imports = process_seconds(directory, root, imports=True).imports
            found.update({name: min(spent, found.get(name, spent)) for name, spent in imports.items()})
    print(f"{'imported':<28}" + "".join(f"{root.name:>24}" for root in roots))
    for package in (*LIBRARIES, "others", ""):
        line = f"{package or 'all':<28}"
        for found in fastest.values():
            spent = [
                each
                for name, each in found.items()
                if not package or package == (name.split(".")[0] if name.split(".")[0] in LIBRARIES else "others")
            ]
            line += f"{len(spent):>12} {sum(spent) / 1000:>8.1f} ms"
        print(line)


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
    parser.add_argument("--imports", action="store_true", help="what a process imports")
    options = parser.parse_args()
    runs = options.runs
    roots = [ROOT, *([options.other.resolve()] if options.other else [])]
    for root in roots:
        for package in ("apiserver", "storage"):
            compileall.compile_dir(root / package, quiet=2)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        if options.imports:
            show_imports(roots, directory, runs)
            return
        imports, processes, used = [], [], [[] for _ in roots]  # type: ignore[var-annotated]
        for _ in range(runs):
            imports.append(import_seconds())
            processes.append([process_seconds(directory, root) for root in roots])
            for root, seconds in zip(roots, used, strict=True):
                seconds += fixture_processor_seconds(directory, root, 20)
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
    each = list(zip(roots, zip(*processes, strict=True), used, strict=True))
    for root, found, _ in each:
        name = "process until it is ready" if root == ROOT else f"process of {root.name}"
        print(_processor_row(name, [process.processor for process in found], base))
    for root, _, seconds in each:
        name = "fixture" if root == ROOT else f"fixture of {root.name}"
        print(_processor_row(name, seconds, min(used[0])))
    print(f"\n{'MB, without requests':<28} {'least':>8}")
    for root, found, _ in each:
        print(f"{root.name:<28} {min(process.resident for process in found) / 1e6:>8.1f}")


if __name__ == "__main__":
    main()
