"""Says where the processor time of requests goes: `python -m benchmarks.breakdown [--operations 'update,apply']`.

Starts a server of this checkout that samples itself, sends it the operations of `benchmarks.compare`, one kind after the
other, and prints µs of the processor per request: of each stage of a write, of the parts of the HTTP half, and of other
threads, among them the one of SQLite.

The sampler is a timer of the main thread's processor time (timer_create(2)). Its signal is handled between two instructions
of that thread; a sample weighs as much as the thread has computed since the last one. What a function of C computes counts
for its caller.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

import uvloop

from benchmarks.operations import Subject, measure, operations, prepare
from benchmarks.servers import Source, start
from benchmarks.workloads import WORKLOADS

ROOT: Final = Path(__file__).parents[1]
INTERVAL: Final = 1_000_000  # ns of processor time; Linux looks at such timers once a tick, often 4 ms
DEFAULT: Final = (
    "get, 64 at a time", "create, 64 at a time", "update", "merge patch", "status patch", "apply", "delete",
)  # fmt: skip

THREADS: Final = "other threads (SQLite)"
LOOP: Final = "event loop, aiohttp"
STAGE_FILES: Final = tuple(
    f"apiserver/noxu/registry/write/{name}.py" for name in ("arrive", "decide", "scale", "store")
)
PARTS: Final = (
    ("apiserver/noxu/registry/write/__init__.py", "driver of the stages"),
    ("apiserver/noxu/registry/draft.py", "driver of the stages"),
    ("apiserver/noxu/registry/turns.py", "driver of the stages"),
    ("apiserver/noxu/registry/", "cache, watches"),
    ("storage/noxu_storage/", "store, in the event loop"),
    ("apiserver/noxu/security/", "authentication, authorization"),
    ("apiserver/noxu/http/filters.py", "filters, routing"),
    ("apiserver/noxu/http/application.py", "filters, routing"),
    ("apiserver/noxu/http/app.py", "filters, routing"),
    ("apiserver/noxu/http/request_metrics.py", "metrics, audit, log"),
    ("apiserver/noxu/http/metrics.py", "metrics, audit, log"),
    ("apiserver/noxu/http/access_log.py", "metrics, audit, log"),
    ("apiserver/noxu/http/auditing.py", "metrics, audit, log"),
    ("apiserver/noxu/metrics", "metrics, audit, log"),
    ("apiserver/noxu/audit", "metrics, audit, log"),
    ("apiserver/noxu/http/", "request and response"),
    ("apiserver/noxu/", "other"),
)
"""The beginning of a file's path, and the part that it belongs to; the first one that fits."""
RUNNING: Final = ("apiserver/noxu/cli.py", "apiserver/noxu/process/server.py", "apiserver/noxu/commands/")
"""What runs the event loop: at the bottom of each stack."""


class Site(NamedTuple):
    """A file of the checkout, as `apiserver/noxu/http/app.py`, and the name of a function in it."""

    file: str
    function: str


class Sample(NamedTuple):
    """Seconds of the processor: of all threads, and of the main one by part."""

    all_threads: float
    parts: dict[str, float]


def part(sites: Iterable[Site], stages: frozenset[str]) -> str:
    """The part of a stack, innermost site first: its stage, else that of its innermost site. None is the event loop's."""
    innermost: Site | None = None
    for site in sites:
        if site.file in STAGE_FILES and site.function in stages:
            return f"stage: {site.function}"
        innermost = innermost or site
    if innermost is None:
        return LOOP
    return next((name for beginning, name in PARTS if innermost.file.startswith(beginning)), LOOP)


class _Event(ctypes.Structure):
    """struct sigevent: which signal a timer sends."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("padding", ctypes.c_char * 48),
    )


class _Times(ctypes.Structure):
    """struct itimerspec: the interval and the first time, each in seconds and ns."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("seconds", "interval", "first_seconds", "first"))


def send_regularly(number: int, nanoseconds: int) -> None:
    """Let the system send a signal to this process whenever the calling thread has computed for so long."""
    system = ctypes.CDLL(None, use_errno=True)
    timer = ctypes.c_void_p()
    times = _Times(0, nanoseconds, 0, nanoseconds)
    event = _Event(None, number, 0)
    if system.timer_create(time.CLOCK_THREAD_CPUTIME_ID, ctypes.byref(event), ctypes.byref(timer)) or (
        system.timer_settime(timer, 0, ctypes.byref(times), None)
    ):
        raise OSError(ctypes.get_errno(), "a timer cannot be created")


class Sampler:
    """Samples the main thread of this process. SIGUSR2 writes what was found since the last one to `file`."""

    def __init__(self, file: Path) -> None:
        from noxu.registry.write import WRITE_STAGES

        self._file = file
        self._stages = frozenset(stage.__name__ for stages in WRITE_STAGES.values() for stage in stages)
        self._files: dict[str, str] = {}
        self._found: defaultdict[str, float] = defaultdict(float)
        self._all = time.process_time()
        self._main = time.thread_time()

    def begin(self) -> None:
        signal.signal(signal.SIGPROF, self._sample)
        signal.signal(signal.SIGUSR2, self._write)
        atexit.register(
            signal.signal, signal.SIGPROF, signal.SIG_IGN
        )  # Python resets handlers, and it ends the process
        send_regularly(signal.SIGPROF, INTERVAL)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        now = time.thread_time()
        self._found[part(self._sites(frame), self._stages)] += now - self._main
        self._main = now

    def _sites(self, frame: FrameType | None) -> Iterator[Site]:
        while frame is not None:
            name = frame.f_code.co_filename
            file = self._files.get(name)
            if file is None:
                path = Path(os.path.realpath(name))
                file = self._files[name] = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
            if file.startswith(("apiserver/noxu/", "storage/noxu_storage/")) and not file.startswith(RUNNING):
                yield Site(file, frame.f_code.co_name)
            frame = frame.f_back

    def _write(self, _: int, __: FrameType | None) -> None:
        now = time.process_time()
        sample = Sample(now - self._all, dict(self._found))
        self._all, self._main = now, time.thread_time()
        self._found.clear()
        written = self._file.with_suffix(".new")
        written.write_text(json.dumps(sample._asdict()))
        written.rename(self._file)


def sample_of(pid: int, file: Path) -> Sample:
    """What a server has sampled since the last call. Nothing else is done meanwhile."""
    file.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR2)
    while not file.exists():
        time.sleep(0.01)
    return Sample(**json.loads(file.read_text()))


def shares(sample: Sample) -> dict[str, float]:
    """The share of each part in the processor time of all threads."""
    main = sum(sample.parts.values())
    found = {THREADS: max(sample.all_threads - main, 0.0), **sample.parts}
    total = sum(found.values()) or 1.0
    return {name: seconds / total for name, seconds in found.items()}


async def run(options: argparse.Namespace, directory: Path) -> dict[str, dict[str, float]]:
    """µs per request, by operation and part."""
    file = directory / "sample"
    command: tuple[str, ...] = (
        sys.executable,
        "-m",
        "benchmarks.breakdown",
        "--sampled",
        str(file),
        "serve",
        "--quiet",
        "--data",
    )
    command += ("{directory}/data", "--port", "{port}", "--kubeconfig", "{directory}/kubeconfig")
    server = await start(Source("noxu", command=command, folder=ROOT), directory / "noxu")
    try:
        subject = Subject(server, "breakdown.example.com", WORKLOADS[options.workload])
        await prepare(subject, [])
        found = {}
        for operation in operations(1, 0):
            if operation.name not in options.operations:
                continue
            if operation.name == "delete":
                await measure(subject, next(each for each in operations(1, 0) if "create, 64" in each.name), 0, 2.0)
            sample_of(server.pids[0], file)
            measured = await measure(subject, operation, 0, options.seconds)
            sample = sample_of(server.pids[0], file)
            found[operation.name] = {name: measured.cpu * share for name, share in shares(sample).items()}
        return found
    finally:
        server.stop()


def table(found: dict[str, dict[str, float]]) -> str:
    """Markdown: a row for each part, the most expensive ones first; parts below 1 µs are left out."""
    names = list(found)
    totals: defaultdict[str, float] = defaultdict(float)
    for parts in found.values():
        for name, cost in parts.items():
            totals[name] += cost
    rows = [
        [name, *(f"{found[each].get(name, 0.0):.0f}" if found[each].get(name, 0.0) >= 0.5 else "" for each in names)]
        for name in sorted(totals, key=lambda name: -totals[name])
        if any(found[each].get(name, 0.0) >= 1 for each in names)
    ]
    rows.insert(0, ["**all**", *(f"**{sum(found[each].values()):.0f}**" for each in names)])
    head = ["µs", *(name.partition(",")[0] for name in names)]
    lines = [head, ["---", *["--:"] * len(names)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: list[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["--sampled"]:
        from noxu import cli

        Sampler(Path(arguments[1])).begin()
        raise SystemExit(cli.main(arguments[2:]))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.breakdown", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operations", default=";".join(DEFAULT), help="names, separated by ;")
    parser.add_argument("--workload", choices=WORKLOADS, default="certificate")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each operation")
    options = parser.parse_args(arguments)
    options.operations = options.operations.split(";")
    known = [operation.name for operation in operations(1, 0)]
    if unknown := [name for name in options.operations if name not in known]:
        parser.error(f"no such operation: {', '.join(unknown)}; there are {'; '.join(known)}")
    with tempfile.TemporaryDirectory(prefix="noxu-breakdown-") as directory:
        print(table(uvloop.run(run(options, Path(directory)))))


if __name__ == "__main__":
    main()
