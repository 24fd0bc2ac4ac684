"""Taught bugs: for every class of plans controllers with a bug, and their twins without it, are explored again and again.

    python -m conformance.taught                          # each once, in Python and (with a compiler) in Go
    python -m conformance.taught --repeat 100 stale drift # some of them, often
    python -m conformance.taught --bugs-only -v crash

A bug is found if an exploration of its class reports a finding of the expected kind that shows again; a twin is accused if an
exploration of it reports any that shows again. The table at the end has a line for each. The exit status is 0 if all bugs were
found and no twin was accused.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from noxu.exploration import exploring, runs, steps
from noxu.exploration.exploring import Confirmed, UnusableController
from noxu.exploration.runs import RunFailed, RunInterrupted
from noxu.exploration.settings import ControllerCommand, Exploration
from noxu.values import Object

ROOT: Final = Path(__file__).parents[1]
TAUGHT: Final = ROOT / "tests" / "exploration" / "taught"
BUDGET: Final = 300.0  # seconds for one exploration


def _widget(size: int) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"size": size},
    }


_NAMED: Final = {"kind": "Widget", "name": "a"}
_APPLY: Final = [{"apply": _widget(2)}]
_SHRINK: Final = [*_APPLY, {"patch": {**_NAMED, "merge": {"spec": {"size": 1}}}}]
_AGAIN: Final = [*_APPLY, {"delete": _NAMED}, {"apply": _widget(3)}]


class TaughtBug(NamedTuple):
    """A bug of the controller `name`: `--bug=…`. `kinds`: those of the findings that show it."""

    klass: str
    name: str
    bug: str
    kinds: tuple[str, ...]
    workload: Sequence[Object]
    nodes: int | None = None
    languages: tuple[str, ...] = ("python",)

    @property
    def title(self) -> str:
        return self.name if self.bug == "bug" else f"{self.name} ({self.bug})"


_BOTH: Final = ("python", "go")
BUGS: Final = (
    TaughtBug("crash", "crash", "bug", ("missing",), _APPLY, languages=_BOTH),
    TaughtBug("stale", "stale", "bug", ("deleted",), _AGAIN, languages=_BOTH),
    TaughtBug("unobserved", "unobserved", "bug", ("differs",), _AGAIN, languages=_BOTH),
    TaughtBug("ambiguous", "ambiguous", "bug", ("created", "left behind"), _APPLY, languages=_BOTH),
    TaughtBug("ambiguous", "ambiguous", "counter", ("differs",), _APPLY),
    TaughtBug("refused", "refused", "gives-up", ("missing",), _APPLY, languages=_BOTH),
    TaughtBug("refused", "refused", "not-found", ("created", "left behind"), _SHRINK),
    TaughtBug("refused", "refused", "hot-loop", ("manners",), _APPLY),
    TaughtBug("drift", "drift", "unwatched", ("not restored",), _APPLY, languages=_BOTH),
    TaughtBug("drift", "drift", "field", ("not restored",), _APPLY, languages=_BOTH),
    TaughtBug("order", "order", "bug", ("created", "left behind"), _SHRINK, languages=_BOTH),
    TaughtBug("workload", "workload", "bug", ("differs",), _APPLY, nodes=1, languages=_BOTH),
    TaughtBug("spec", "spec", "bug", ("not led back",), _APPLY, languages=_BOTH),
)


class Outcome(NamedTuple):
    """Of one exploration. `findings`: those that have shown again; `unstable`: those that have not."""

    findings: Sequence[Confirmed]
    unstable: Sequence[Confirmed]
    runs: int
    seconds: float
    unusable: str = ""


def exploration(case: TaughtBug, command: Sequence[str]) -> Exploration:
    return replace(
        Exploration(
            (ControllerCommand(tuple(command), directory=ROOT),),
            tuple(steps.parse(list(case.workload), TAUGHT)),
            (TAUGHT / "widgets.yaml",),
        ),
        classes=(case.klass,),
        nodes=case.nodes,
        mutate=case.klass == "spec",
    )


_ended: Final = threading.Event()


def _end(_number: int, _frame: object) -> None:
    """End what runs, with its programs. A handler must not wait."""
    _ended.set()
    threading.Thread(target=runs.interrupt, name="taught-interrupt").start()


def explored(exploration: Exploration) -> Outcome:
    """Explore all plans of the class. A controller that is unusable says why. Raises RunInterrupted."""
    began = time.monotonic()
    try:
        learnt = exploring.learn(exploration)
    except (UnusableController, RunFailed) as error:
        return Outcome((), (), 0, time.monotonic() - began, str(error))
    confirmed: list[Confirmed] = []
    runs = len(learnt.recordings)
    for happening in exploring.explore(exploration, learnt, learnt.plans, until=began + BUDGET):
        runs += 1
        if isinstance(happening, Confirmed):
            confirmed.append(happening)
    if _ended.is_set():
        raise RunInterrupted  # half an exploration shows nothing
    stable, unstable = ([each for each in confirmed if each.is_stable is wanted] for wanted in (True, False))
    return Outcome(stable, unstable, runs, time.monotonic() - began)


def commands(binary: Path | None) -> dict[str, list[str]]:
    """How a taught controller is run, by language; without a compiler there is none in Go."""
    found = {"python": [sys.executable, "-m", "tests.exploration.taught.{name}"]}
    return found | ({} if binary is None else {"go": [str(binary), "{name}"]})


def built(directory: Path) -> Path | None:
    """The controllers in Go, one binary for all; None without a compiler. Its modules are those of the standard library."""
    if shutil.which("go") is None:
        return None
    binary = directory / "taught"
    subprocess.run(["go", "build", "-o", str(binary), "."], cwd=TAUGHT / "go", check=True)
    return binary


class Line(NamedTuple):
    """Of the table: how often a bug was found, or a twin accused."""

    klass: str
    title: str
    language: str
    is_twin: bool
    outcomes: list[Outcome]
    kinds: tuple[str, ...]

    @property
    def hits(self) -> int:
        return sum(
            any(self.is_twin or self.shows(each) for each in outcome.findings)
            or (self.is_twin and bool(outcome.unusable))
            for outcome in self.outcomes
        )

    def shows(self, confirmed: Confirmed) -> bool:
        return any(finding.kind in self.kinds for finding in (confirmed.finding, *confirmed.others))

    @property
    def is_right(self) -> bool:
        return self.hits == (0 if self.is_twin else len(self.outcomes))

    def __str__(self) -> str:
        number = len(self.outcomes)
        runs = sum(outcome.runs for outcome in self.outcomes) / number
        seconds = sum(outcome.seconds for outcome in self.outcomes) / number
        unstable = sum(len(outcome.unstable) for outcome in self.outcomes)
        what = "accused" if self.is_twin else "found"
        title = f"{self.name_of_twin}" if self.is_twin else self.title
        return f"{self.klass:<11} {title:<22} {self.language:<7} {what:<8} {self.hits:>3} of {number:<4} {runs:>5.1f} runs {seconds:>6.1f} s  {unstable} unstable"

    @property
    def name_of_twin(self) -> str:
        return f"{self.title.partition(' ')[0]}, the twin"


def lines(options: argparse.Namespace, binary: Path | None) -> Iterator[tuple[Line, Exploration]]:
    """What is explored. A twin is one for all bugs of its controller with the same workload."""
    twins: set[tuple[str, str, str]] = set()
    for case in BUGS:
        if options.classes and case.klass not in options.classes:
            continue
        for language, command in commands(binary).items():
            if language not in case.languages or (options.language and language != options.language):
                continue
            words = [word.format(name=case.name) for word in command]
            twin = (language, case.name, repr(case.workload))
            if not options.twins_only:
                line = Line(case.klass, case.title, language, False, [], case.kinds)
                yield line, exploration(case, [*words, f"--bug={case.bug}"])
            if not options.bugs_only and twin not in twins:
                twins.add(twin)
                yield Line(case.klass, case.title, language, True, [], ()), exploration(case, words)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.taught", description=__doc__.partition("\n")[0])
    parser.add_argument("classes", nargs="*", metavar="CLASS", help="of plans (default: all)")
    parser.add_argument("--repeat", type=int, default=1, metavar="NUMBER", help="explorations of each (default: 1)")
    parser.add_argument("--language", choices=_BOTH)
    parser.add_argument("--bugs-only", action="store_true")
    parser.add_argument("--twins-only", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what is found")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="noxu-taught-") as directory:
        binary = None if options.language == "python" else built(Path(directory))
        table = list(lines(options, binary))
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, _end)
        with contextlib.suppress(RunInterrupted):  # what there is of the table is printed
            for number in range(options.repeat):
                for line, each in table:
                    line.outcomes.append(explored(each))
                    _say(line, number + 1, options.verbose)
    print()
    for line, _ in table:
        if line.outcomes:
            print(line)
    return 0 if all(line.is_right for line, _ in table) else 1


def _say(line: Line, number: int, verbose: bool) -> None:
    """A line for each exploration; what a twin is accused of is always said."""
    outcome = line.outcomes[-1]
    print(f"{number:>3}  {line}", flush=True)
    if outcome.unusable:
        print(f"       unusable: {outcome.unusable}")
    if verbose or line.is_twin or not line.is_right:
        for each in (*outcome.findings, *outcome.unstable):
            kind = each.finding.kind if each.is_stable else "unstable"
            print(f"       {kind}: {each.finding.sentence}\n         when {each.plan.title}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
