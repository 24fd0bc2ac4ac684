"""Taught bugs: for every class of plans controllers with a bug, and their twins without it, are explored again and again.

    python -m conformance.taught                          # each once, in Python and (with a compiler) in Go
    python -m conformance.taught --repeat 100 stale drift # some of them, often
    python -m conformance.taught --bugs-only -v crash
    python -m conformance.taught --repeat 100 --keep FILE # go on with what FILE has, and add to it
    python -m conformance.taught --replay 20              # the plans that are found, each again and again

A bug is found if an exploration of its class reports a finding of the expected kind that shows again; a twin is accused if an
exploration of it reports any that shows again. The table at the end has a line for each. The exit status is 0 if all bugs were
found and no twin was accused.

With `--keep` each exploration is a line of JSON in a file, and those that are there count, so a hundred can be gathered over days.

With `--replay` the bugs are explored with three workloads each. Up to --plans plans of each, whose findings have shown again when
they were confirmed, are run so often, two runs at a time; the exit status is 0 if 99 % of them show the same finding.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from noxu.exploration import attempts, exploring, learning, runs, steps
from noxu.exploration.attempts import Confirmed, Learnt
from noxu.exploration.findings import RunFinding
from noxu.exploration.learning import UnusableController
from noxu.exploration.plans import RunPlan
from noxu.exploration.run_steps import RunFailed
from noxu.exploration.runs import RunInterrupted
from noxu.exploration.settings import ControllerCommand, Exploration
from noxu.values import Object

ROOT: Final = Path(__file__).parents[1]
TAUGHT: Final = ROOT / "tests" / "exploration" / "taught"
BUDGET: Final = 300.0  # seconds for one exploration
AT_ONCE: Final = 2  # runs, when plans are replayed
REPRODUCED: Final = 0.99


def _widget(size: int, name: str = "a") -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
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


class Shown(NamedTuple):
    """A finding: its sentence, its kind first among those of the run, and its plan."""

    kinds: Sequence[str]
    sentence: str
    plan: str


class Outcome(NamedTuple):
    """Of one exploration. `findings`: those that have shown again; `unstable`: those that have not."""

    findings: Sequence[Shown]
    unstable: Sequence[Shown]
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
        jobs=1,  # there are few plans
        mutate=case.klass == "spec",
    )


_ended: Final = threading.Event()


def _end(_number: int, _frame: object) -> None:
    """End what runs, with its programs."""
    _ended.set()
    runs.interrupt_soon()


def explored(exploration: Exploration) -> Outcome:
    """Explore all plans of the class. A controller that is unusable says why. Raises RunInterrupted."""
    began = time.monotonic()
    try:
        learnt = learning.learn(exploration)
    except (UnusableController, RunFailed) as error:
        return Outcome((), (), 0, time.monotonic() - began, str(error))
    confirmed: list[tuple[bool, Shown]] = []
    runs = len(learnt.recordings)
    for happening in exploring.explore(exploration, learnt, learnt.plans, until=began + BUDGET):
        runs += 1
        if isinstance(happening, Confirmed):
            kinds = [finding.kind for finding in (happening.finding, *happening.others)]
            confirmed.append((happening.is_stable, Shown(kinds, happening.finding.sentence, happening.plan.title)))
    if _ended.is_set():
        raise RunInterrupted  # half an exploration shows nothing
    stable, unstable = ([each for is_stable, each in confirmed if is_stable is wanted] for wanted in (True, False))
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

    def shows(self, shown: Shown) -> bool:
        return any(kind in self.kinds for kind in shown.kinds)

    @property
    def name(self) -> list[object]:
        """In a file of outcomes."""
        return [self.klass, self.title, self.language, self.is_twin]

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


def read_kept(path: Path, table: Sequence[Line]) -> None:
    """Add the outcomes of a file to the lines that they are of. One that was cut off is not counted."""
    lines = {repr(line.name): line for line in table}
    for text in path.read_text("utf-8").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            name, findings, unstable, *others = json.loads(text)
            if (line := lines.get(repr(name))) is not None:
                line.outcomes.append(
                    Outcome([Shown(*each) for each in findings], [Shown(*each) for each in unstable], *others)
                )


def keep(path: Path, line: Line) -> None:
    """Add the newest outcome of a line to a file, which several commands may write."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps([line.name, *line.outcomes[-1]]) + "\n")


# -- replays ----------------------------------------------------------------------------------------------------------


class FoundPlan(NamedTuple):
    """A plan that shows a bug. `shown`: for each time that it was run again, whether it has shown the same finding."""

    line: Line
    exploration: Exploration
    learnt: Learnt
    plan: RunPlan
    finding: RunFinding
    shown: list[bool]

    def replay(self) -> None:
        """Raises RunInterrupted."""
        again = attempts.attempt(self.exploration, self.learnt, self.plan)
        self.shown.append(any(each.signature == self.finding.signature for each in again.findings))

    def __str__(self) -> str:
        return f"{sum(self.shown):>3} of {len(self.shown):<3} {self.line.title:<22} {self.line.language:<7} {self.finding.kind}: {self.plan.title}"


def found_plans(line: Line, exploration: Exploration, at_most: int) -> Iterator[FoundPlan]:
    """Run plans until so many have shown a finding that shows again, also the same one. Raises RunInterrupted."""
    try:
        learnt = learning.learn(exploration)
    except (UnusableController, RunFailed) as error:
        print(f"{line.title}: {error}", flush=True)
        return
    found, until = list[FoundPlan](), time.monotonic() + BUDGET
    for plan in learnt.plans:
        if _ended.is_set():
            raise RunInterrupted
        if len(found) >= at_most or time.monotonic() > until:
            break
        judged = attempts.attempt(exploration, learnt, plan)
        if judged.findings and judged.recording is not None:
            confirmed = attempts.confirm(exploration, learnt, judged, 1)
            if confirmed.is_stable:
                found.append(FoundPlan(line, exploration, learnt, confirmed.plan, confirmed.finding, []))
    print(f"{line.title} in {line.language}: {len(found)} plans", flush=True)
    yield from found


def with_other_workloads(exploration: Exploration) -> list[Exploration]:
    """The same bug with its own workload, with a second object, and with a change at the end."""
    others = ([{"apply": _widget(3, "b")}], [{"patch": {**_NAMED, "merge": {"spec": {"size": 4}}}}])
    more = [tuple(steps.parse(list(other), TAUGHT)) for other in others]
    return [exploration, *(replace(exploration, workload=(*exploration.workload, *each)) for each in more)]


def replayed(table: Sequence[tuple[Line, Exploration]], times: int, at_most: int) -> list[FoundPlan]:
    """Find plans, and run each again, all of them in turn: what there is when the command is ended is a result, too."""
    found: list[FoundPlan] = []
    with contextlib.suppress(RunInterrupted), ThreadPoolExecutor(AT_ONCE) as pool:
        for some in pool.map(lambda each: [*found_plans(each[0], each[1], at_most)], table):
            found += some
        for number in range(times):
            began = time.monotonic()
            list(pool.map(FoundPlan.replay, found))
            shown = sum(sum(each.shown) for each in found)
            print(f"round {number + 1}: {shown} in all, {time.monotonic() - began:.0f} s", flush=True)
    return found


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
    parser.add_argument(
        "--keep", type=Path, metavar="FILE", help="of outcomes, to which this adds, up to --repeat of each"
    )
    parser.add_argument("--replay", type=int, default=0, metavar="NUMBER", help="run found plans again so often")
    parser.add_argument(
        "--plans", type=int, default=4, metavar="NUMBER", help="of each bug and workload to replay (default: 4)"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print what is found")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="noxu-taught-") as directory:
        binary = None if options.language == "python" else built(Path(directory))
        table = list(lines(options, binary))
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, _end)
        if options.replay:
            bugs = [(line, each) for line, own in table if not line.is_twin for each in with_other_workloads(own)]
            return _report_replayed(replayed(bugs, options.replay, options.plans))
        if options.keep is not None:
            read_kept(options.keep, [line for line, _ in table])
        with contextlib.suppress(RunInterrupted):  # what there is of the table is printed
            for number in range(1, options.repeat + 1):
                for line, each in table:
                    if len(line.outcomes) >= number:
                        continue
                    line.outcomes.append(explored(each))
                    if options.keep is not None:
                        keep(options.keep, line)
                    _say(line, number, options.verbose)
    print()
    for line, _ in table:
        if line.outcomes:
            print(line)
    return 0 if all(line.is_right for line, _ in table) and not _ended.is_set() else 1


def _report_replayed(found: Sequence[FoundPlan]) -> int:
    print("", *found, sep="\n")
    shown = [each for plan in found for each in plan.shown]
    share = sum(shown) / max(len(shown), 1)
    print(f"{sum(shown)} of {len(shown)} replays of {len(found)} plans show the same finding: {share:.1%}")
    return 0 if share >= REPRODUCED and not _ended.is_set() else 1


def _say(line: Line, number: int, verbose: bool) -> None:
    """A line for each exploration; what a twin is accused of is always said."""
    outcome = line.outcomes[-1]
    print(f"{number:>3}  {line}", flush=True)
    if outcome.unusable:
        print(f"       unusable: {outcome.unusable}")
    if verbose or line.is_twin or not line.is_right:
        for each in (*outcome.findings, *outcome.unstable):
            kind = "unstable" if each in outcome.unstable else each.kinds[0]
            print(f"       {kind}: {each.sentence}\n         when {each.plan}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
