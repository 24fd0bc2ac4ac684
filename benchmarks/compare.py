"""Compares servers of custom resources: processor time, rates, latencies and memory, operation by operation.

    python -m benchmarks.compare --start real=PROGRAM --checkout noxu=. --page docs/performance.md

The servers are measured in turn: a short phase of each for every operation, and all of it in several rounds. Figures are
medians over the rounds. This process is the client; how much of a core it needs is measured, too. `--from FILE` writes
the tables and plots of an earlier run. Plots need the extra `benchmarks`.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import uvloop

from benchmarks import etcd_versions, growth, report, results, servers
from benchmarks.load import Request, ask
from benchmarks.operations import (
    Subject,
    alternated,
    measure,
    measure_definition,
    measure_start,
    measure_watch,
    operations,
    prepare,
)
from benchmarks.processes import busy_seconds, machine, processor_seconds
from benchmarks.results import Measured, Results
from benchmarks.servers import Source
from benchmarks.workloads import WORKLOADS

SOURCES: Final = {"--server": servers.running, "--start": servers.started_by, "--checkout": servers.checkout}
WATCHERS: Final = (1, 100, 1_000)
QUICK: Final = {"rounds": 1, "seconds": 0.02, "listed": 20, "many": 0, "watchers": (1, 3)}
QUICK_GROWTH: Final = growth.Limits(objects=10, definitions=3, watchers=10, seconds=5.0, phase=0.02)


class _Add(argparse.Action):
    """Collects the servers in their order, whichever option names them."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        try:
            found = SOURCES[option or ""](values)
        except ValueError as error:
            parser.error(str(error))
        sources = [*(namespace.sources or ()), found]
        if len({source.name for source in sources}) < len(sources):
            parser.error(f"two servers are named {found.name}")
        namespace.sources = sources


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


async def version(server: servers.Server) -> str:
    answer = await ask(server.target, Request("GET", "/version"))
    found = [answer.partition(f'"{name}":'.encode())[2].split(b'"')[1].decode() for name in ("major", "minor")]
    return ".".join(found)


def etcds(started: Sequence[servers.Server], *, allow_old: bool) -> dict[str, str]:
    """The version of each server's etcd, if it has one. Raises SystemExit for one that makes the comparison unfair."""
    versions = {server.name: etcd_versions.of_processes(server.pids) for server in started}
    if (complaints := etcd_versions.complaints(versions)) and not allow_old:
        raise SystemExit("\n".join(complaints))
    return {name: version for name, version in versions.items() if version}


async def run_rounds(
    subjects: list[Subject], sources: Sequence[Source], options: argparse.Namespace, directory: Path
) -> list[Measured]:
    found: list[Measured] = []
    sizes = [size for size in (1, options.listed, options.many) if size]
    for subject in subjects:
        say(f"filling {subject.server.name}")
        await prepare(subject, sizes)
    for round_ in range(options.rounds):
        for operation in operations(options.listed, options.many):
            say(f"round {round_ + 1} of {options.rounds}: {operation.name}")
            for subject in alternated(subjects, round_):
                found.append(await measure(subject, operation, round_, options.seconds))  # noqa: PERF401
        for watchers in options.watchers:
            say(f"round {round_ + 1} of {options.rounds}: {watchers:,} watchers")
            for subject in alternated(subjects, round_):
                found.append(await measure_watch(subject, watchers, round_, options.seconds))  # noqa: PERF401
        say(f"round {round_ + 1} of {options.rounds}: definitions and starts")
        for subject in alternated(subjects, round_):
            found.append(await measure_definition(subject, round_))  # noqa: PERF401
        for source in sources:
            if source.command:
                found.append(await measure_start(source, round_, directory / f"{source.name}-{round_}"))  # noqa: PERF401
    return found


async def run(options: argparse.Namespace, directory: Path) -> Results:
    start, busy, client = time.monotonic(), busy_seconds(), time.process_time()
    started = await servers.start_all(options.sources, directory)
    subjects: list[Subject] = []
    try:
        stores = etcds(started, allow_old=options.old_etcd)
        used = sum(processor_seconds(server.pids) for server in started)
        workload = WORKLOADS[options.workload]
        subjects = [Subject(server, f"{uuid4().hex[:8]}.bench.example.com", workload) for server in started]
        measured = await run_rounds(subjects, options.sources, options, directory)
        points = [] if options.no_growth else await growth.measure_growth(subjects, options.growth, say)
        used = sum(processor_seconds(server.pids) for server in started) - used
        seconds = time.monotonic() - start
        other = busy_seconds() - busy - used - (time.process_time() - client)
        return Results(
            options.date, options.command, machine(), round(max(other, 0.0) / seconds, 2), round(seconds),
            tuple(server.name for server in started), {server.name: await version(server) for server in started},
            tuple(measured), tuple(points), stores,
        )  # fmt: skip
    finally:
        for source, server in zip(options.sources, started, strict=True):
            if not source.command:
                for subject in subjects:
                    if subject.server is server:
                        await subject.remove()
            server.stop()


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare",
        description=f"{__doc__}\n{servers.__doc__}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for option in SOURCES:
        parser.add_argument(option, action=_Add, dest="sources", metavar="NAME=…", help="a server; can be repeated")
    parser.add_argument(
        "--workload", choices=WORKLOADS, default="certificate", help="the kind of objects, see benchmarks/workloads.py"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each phase")
    parser.add_argument("--many", type=int, default=10_000, help="objects of the long list; 0 for none")
    parser.add_argument("--growth-seconds", type=float, default=60.0, help="of a server to grow, for each curve")
    parser.add_argument("--no-growth", action="store_true", help="no growth curves")
    parser.add_argument("--quick", action="store_true", help="tiny numbers, to try the command")
    parser.add_argument(
        "--old-etcd", action="store_true", help="measure also with an etcd that slows the reference down"
    )
    parser.add_argument("--base", metavar="NAME", help="the server that others are compared with (default: the last)")
    parser.add_argument("--date", help="of the run (default: today)")
    parser.add_argument("--from", dest="file", type=Path, metavar="FILE", help="measure nothing: read these results")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument(
        "--page", type=Path, metavar="FILE",
        help="update the tables of this page, and write plots and results to the folder of its name",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    if bool(options.sources) == bool(options.file):
        parser.error("name servers to measure, or results with --from")
    if options.page and find_spec("matplotlib") is None:
        parser.error("plots need the extra benchmarks: pip install --require-hashes -r requirements/benchmarks.txt")
    if options.many < 0 or options.rounds < 1 or options.seconds <= 0 or options.growth_seconds <= 0:
        parser.error("--rounds, --seconds and --growth-seconds are positive, --many is not negative")
    if options.base and options.sources and options.base not in [source.name for source in options.sources]:
        parser.error(f"no server is named {options.base}")
    options.listed, options.watchers = 1_000, WATCHERS
    options.growth = growth.Limits(seconds=options.growth_seconds)
    if options.quick:
        vars(options).update(QUICK)
        options.growth = QUICK_GROWTH
    options.date = options.date or time.strftime("%Y-%m-%d", time.gmtime())
    options.command = _command(arguments)
    return options


def _command(arguments: list[str]) -> str:
    """As it is shown: tokens are left out, and paths are reduced to the last part."""
    shown = []
    for argument in arguments:
        name, found, rest = argument.partition("=")
        parts = [part for part in rest.split(",") if not part.startswith("token=")]
        shown.append(_name(name) + found + ",".join(_name(part) for part in parts))
    return shlex.join(["python", "-m", "benchmarks.compare", *shown])


def _name(text: str) -> str:
    option, found, path = text.rpartition("=")
    return option + found + (Path(path).name if path.startswith("/") else path)


def write_page(page: Path, found: Results, base: str) -> None:
    """Update the page, and write what belongs to it."""
    from benchmarks import plots  # of the extra

    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(results.dump(found))
    drawn = plots.draw(found, base)
    for name, svg in drawn.items():
        (folder / name).write_text(svg)
    page.write_text(report.update(page.read_text(), report.blocks(found, base, folder.name, list(drawn))))


def main(arguments: list[str] | None = None, show: Callable[[str], None] = print) -> None:
    options = parse(sys.argv[1:] if arguments is None else arguments)
    if options.file:
        try:
            found = results.load(options.file.read_text())
        except (OSError, ValueError) as error:
            raise SystemExit(f"{options.file}: {error}") from None
    else:
        if not Path("/proc/self/task").exists() or os.name != "posix":
            raise SystemExit("this needs Linux, which tells the processor time of other processes")
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        with tempfile.TemporaryDirectory(prefix="noxu-compare-") as directory:
            found = uvloop.run(run(options, Path(directory)))
        found = results.load(results.dump(found))  # so that --from makes the same page: rounding twice may differ
    base = options.base or found.servers[-1]
    if options.out:
        options.out.write_text(results.dump(found))
    for table in (report.costs(found, base), report.rates(found), report.memory(found)):
        show(table)
    if options.page:
        write_page(options.page, found, base)


if __name__ == "__main__":
    main()
