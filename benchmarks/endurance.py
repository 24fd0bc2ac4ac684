"""Runs the long tiers of the tests of reliability, one after another, and prints what each has proved.

    python -m benchmarks.endurance [HAZARD ...] [--scale FRACTION] [--list]

Each row of ROWS is a hazard, its tests, and the environment variables that make them long; `--scale` multiplies these.
The suite runs the same tests with small numbers. All rows take about half an hour on two cores. Prints a table in
Markdown, as it is in docs/reliability.md. Exit status 1 if a test fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

ROOT: Final = Path(__file__).parents[1]
TIMEOUT: Final = 7_200  # seconds, of a test


class Row(NamedTuple):
    """`numbers` are environment variables; those in FIXED are not scaled."""

    hazard: str
    tests: Sequence[str]
    numbers: dict[str, float]


FIXED: Final = ("NOXU_IO_STRIDE", "NOXU_PAUSE", "NOXU_REPLICA_PAUSE")
ROWS: Final = (
    Row("R1", ("tests/faults/test_kill.py", "tests/faults/test_kill_server.py"),
        {"NOXU_KILLS": 100, "NOXU_OBJECTS": 10_000}),
    Row("R2", ("tests/faults/test_power_loss.py",), {"NOXU_CUTS": 500}),
    Row("R3", ("tests/faults/test_disk_errors.py", "tests/faults/test_disk_errors_server.py"), {"NOXU_IO_STRIDE": 1}),
    Row("R4 R5", ("tests/faults/test_bit_rot.py",), {"NOXU_FLIPS": 1_000, "NOXU_MUTATIONS": 50}),
    Row("R6 R7", ("tests/http/test_watch.py", "tests/storage/test_hazards.py"),
        {"NOXU_EVENTS": 100_000, "NOXU_HISTORY": 2_000}),
    Row("R8", ("tests/http/test_watch_machine.py",), {"NOXU_INTERLEAVINGS": 200}),
    Row("R9", ("tests/http/test_slow_watchers.py",), {"NOXU_STALLED": 500}),
    Row("R10", ("tests/faults/test_many_watches.py",), {"NOXU_WATCHES": 10_000}),
    Row("R11", ("tests/faults/test_open_files.py",), {"NOXU_STARTS": 100, "NOXU_EXHAUSTED_SECONDS": 20}),
    Row("R12", ("tests/hostile/test_connections.py",), {}),
    Row("R13", ("tests/faults/test_clock_jumps.py",), {"NOXU_CLOCK_ROUNDS": 20}),
    Row("R14", ("tests/faults/test_pause.py",), {"NOXU_PAUSE": 5}),
    Row("R15", ("tests/faults/test_linearizability.py",), {"NOXU_HISTORIES": 100, "NOXU_INCREMENTS": 2_000}),
    Row("R16", ("tests/faults/test_cancelled_requests.py", "tests/storage/test_cancelled_writes.py"),
        {"NOXU_CANCELLED_ROUNDS": 40, "NOXU_CANCELLED": 2_000}),
    Row("R17", ("tests/faults/test_etcd_replicas.py",),
        {"NOXU_REPLICA_ROUNDS": 4, "NOXU_REPLICA_WRITES": 400, "NOXU_REPLICA_PAUSE": 13}),
    Row("R18", ("tests/control/test_walks.py",), {"NOXU_RESTORED_STEPS": 10_000}),
)  # fmt: skip


class Result(NamedTuple):
    """Of one test. `figures` are what it has recorded with pytest's `record_property`."""

    name: str
    outcome: str  # passed, failed, skipped
    seconds: float
    figures: dict[str, str]


def environment(row: Row, scale: float) -> dict[str, str]:
    return {
        name: f"{number if name in FIXED else max(round(number * scale), 1):g}"
        for name, number in ((name, int(number)) for name, number in row.numbers.items())
    }


def run(row: Row, scale: float) -> list[Result]:
    """Raises OSError or ET.ParseError if pytest cannot run."""
    with tempfile.TemporaryDirectory(prefix="noxu-endurance-") as directory:
        report = Path(directory) / "report.xml"
        pytest = [sys.executable, "-m", "pytest", "-q", f"--timeout={TIMEOUT}", "-o", "junit_family=xunit1"]
        finished = subprocess.run(
            [*pytest, f"--junitxml={report}", f"--basetemp={directory}/tests", *row.tests],
            cwd=ROOT,
            env=os.environ | environment(row, scale),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if finished.returncode:
            print(finished.stdout, file=sys.stderr)
        return list(results(report))


def results(report: Path) -> Iterator[Result]:
    """The tests in a report in JUnit's format."""
    for case in ET.parse(report).iter("testcase"):
        outcome = "passed"
        if case.find("failure") is not None or case.find("error") is not None:
            outcome = "failed"
        elif case.find("skipped") is not None:
            outcome = "skipped"
        figures = {item.attrib["name"]: item.attrib["value"] for item in case.iter("property")}
        name = re.sub(r"^test_", "", case.attrib["name"]).replace("_", " ")
        yield Result(name, outcome, float(case.attrib["time"]), figures)


def lines_of(row: Row, found: Sequence[Result]) -> Iterator[str]:
    """One line for each test with figures, and for each that has not passed; one for all others together."""
    others = [each for each in found if each.outcome == "passed" and not each.figures]
    for each in found:
        if each not in others:
            figures = "; ".join(f"{name}: {value}" for name, value in each.figures.items())
            yield f"| {row.hazard} | {each.name} | {each.outcome} | {figures} | {each.seconds:.0f} |"
    if others:
        seconds = sum(each.seconds for each in others)
        yield f"| {row.hazard} | {len(others)} {'other ' if len(others) < len(found) else ''}tests | passed | | {seconds:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hazards", nargs="*", metavar="HAZARD", help="R1, R2 …; the default is all")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--list", action="store_true", help="print the rows as commands, and run nothing")
    options = parser.parse_args()
    known = {hazard for row in ROWS for hazard in row.hazard.split()}
    if unknown := set(options.hazards) - known:
        parser.error(
            f"no such hazard: {' '.join(sorted(unknown))}; there are {' '.join(sorted(known, key=lambda hazard: int(hazard[1:])))}"
        )
    rows = [row for row in ROWS if not options.hazards or set(options.hazards) & set(row.hazard.split())]
    if options.list:
        for row in rows:
            variables = "".join(f"{name}={value} " for name, value in environment(row, options.scale).items())
            print(f"{row.hazard:6} {variables}pytest {' '.join(row.tests)}")
        return
    start, failed = time.monotonic(), False
    print("| hazard | test | outcome | figures | seconds |\n|---|---|---|---|---|")
    for row in rows:
        found = run(row, options.scale)
        failed = failed or not found or any(each.outcome == "failed" for each in found)
        print("\n".join(lines_of(row, found)), flush=True)
    print(f"\n{time.strftime('%Y-%m-%d', time.gmtime())}, {(time.monotonic() - start) / 60:.0f} minutes")
    sys.exit(failed)


if __name__ == "__main__":
    main()
