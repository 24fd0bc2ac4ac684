"""Fails if an operation has become slower: `python -m benchmarks.gate [--against COMMIT]`.

Compares the working tree with the last commit, which is checked out into a temporary folder, in one interleaved run. Only
processor time of the servers counts. An operation is slower if it needs more than 10 % more beyond the noise of the run:
the lower bound of the median ratio is above 1.10. The bounds are order statistics of the rounds' ratios, which no
distribution is assumed of: with 9 rounds the second lowest is below the true median with a probability of 98 %. Where the
limit lies between the bounds, an operation is doubtful: it is measured again, with servers that were started again, and
all its rounds count.

Exit status: 0 nothing is slower, 1 something is, 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import comb
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple
from uuid import uuid4

import uvloop

from benchmarks import servers
from benchmarks.compare import say
from benchmarks.operations import Operation, Subject, alternated, measure, measure_watch, operations, prepare
from benchmarks.results import Measured, ratios

ROOT: Final = Path(__file__).parents[1]
LIMIT: Final = 1.10
CONFIDENCE: Final = 0.98  # of each bound
HERE, BASE = "this", "base"
LISTED: Final = 500
WATCHERS: Final = 50
SKIPPED: Final = ("no operation", "list of 1", "8 at a time")
REPEATS: Final = 3


class Verdict(NamedTuple):
    """The median ratio of an operation, and its bounds."""

    ratio: float
    low: float
    high: float

    @property
    def slower(self) -> bool:
        return self.low > LIMIT

    @property
    def doubtful(self) -> bool:
        return self.low <= LIMIT < self.high


def verdict(found: Sequence[float]) -> Verdict:
    """Of the ratios of the rounds. With too few of them there is no bound: 0 and infinity."""
    ordered = sorted(found)
    rank = _rank(len(ordered))
    if rank == 0:
        return Verdict(median(ordered), 0.0, float("inf"))
    return Verdict(median(ordered), ordered[rank - 1], ordered[-rank])


def _rank(number: int) -> int:
    """The largest r such that the r-th lowest of `number` values is below the median with CONFIDENCE; 0 for none.

    r - 1 or fewer of them are below the median with the probability of so many heads in `number` tosses of a coin:
    for 9 values 0.2 % for none and 2 % for one at most, so r is 2.
    """
    rank, probability = 0, 0.0
    while True:
        probability += comb(number, rank) / 2**number
        if probability > 1 - CONFIDENCE:
            return rank
        rank += 1


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A commit in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="noxu-gate-") as directory:
        folder = Path(directory) / "base"
        added = subprocess.run(
            ["git", "worktree", "add", "--detach", "--quiet", str(folder), commit],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if added.returncode:
            print(f"gate: {commit!r} cannot be checked out: {added.stderr.strip()}", file=sys.stderr)
            raise SystemExit(2)
        try:
            yield folder
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(folder)], cwd=ROOT, check=True)


def gated(only: Sequence[str] = ()) -> list[Operation]:
    """The operations that are compared. Deletions need creations."""
    return [
        operation
        for operation in operations(LISTED, 0)
        if not any(part in operation.name for part in SKIPPED)
        and (not only or operation.name in only or ("delete" in only and operation.name.startswith("create")))
    ]


async def compare(base: Path, only: Sequence[str], rounds: int, seconds: float, first: int) -> list[Measured]:
    """Rounds of all operations, or of those named, with servers that are started for them."""
    sources = [servers.checkout(f"{BASE}={base}", tls=False), servers.checkout(f"{HERE}={ROOT}", tls=False)]
    watch = f"watch, {WATCHERS} watchers"
    found: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="noxu-gate-") as directory:
        started = await servers.start_all(sources, Path(directory))
        try:
            subjects = [Subject(server, f"{uuid4().hex[:8]}.bench.example.com") for server in started]
            for subject in subjects:
                await prepare(subject, [1, LISTED])
            for round_ in range(first - 1, first + rounds):  # one more, which warms up
                for operation in gated(only):
                    for subject in alternated(subjects, round_):
                        found.append(await measure(subject, operation, round_, seconds))  # noqa: PERF401
                for subject in alternated(subjects, round_) if not only or watch in only else ():
                    found.append(await measure_watch(subject, WATCHERS, round_, seconds))  # noqa: PERF401
        finally:
            for server in started:
                server.stop()
    return [each for each in found if each.round >= first]


def verdicts(found: Sequence[Measured]) -> dict[str, Verdict]:
    names = dict.fromkeys(each.operation for each in found)
    return {name: verdict(ratios(found, name, HERE, BASE)) for name in names}


def show(judged: dict[str, Verdict]) -> str:
    """A line for each operation."""
    lines = [f"{'operation':<28} {'ratio':>6} {'from':>6} {'to':>6}"]
    for name, each in judged.items():
        word = "slower" if each.slower else "doubtful" if each.doubtful else ""
        lines.append(f"{name:<28} {each.ratio:>6.2f} {each.low:>6.2f} {each.high:>6.2f}  {word}".rstrip())
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="COMMIT", default="HEAD", help="another commit than the last one")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2, help="of each phase")
    options = parser.parse_args(arguments)
    if _rank(options.rounds) == 0:
        parser.error(f"{options.rounds} rounds are too few to tell noise from a difference")
    with checked_out(options.against) as base:
        found = uvloop.run(compare(base, (), options.rounds, options.seconds, 1))
        for repeat in range(1, REPEATS + 1):
            # what is doubtful, and what looks slower: one start of a process may be unlucky
            again = [name for name, each in verdicts(found).items() if each.slower or each.doubtful]
            if not again:
                break
            say(f"again: {', '.join(again)}")
            first = 1 + repeat * (options.rounds + 1)
            more = uvloop.run(compare(base, again, options.rounds, options.seconds, first))
            found += [each for each in more if each.operation in again]
    judged = verdicts(found)
    print(show(judged))
    slower = [name for name, each in judged.items() if each.slower]
    if slower:
        print(f"more than {LIMIT - 1:.0%} slower than {options.against}: {', '.join(slower)}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
