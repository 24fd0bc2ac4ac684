"""Known bugs of a public controller: which of them `noxu explore` finds, with which plan and after how many seconds.

    python -m conformance.explored conformance/explored/rabbitmq.yaml --checkout . --binary /tmp/manager

The file says of which commit the checkout and the program have to be. It is an `explore.yaml` in which $CHECKOUT and $BINARY
stand for what is given here, and other names for its `values`, which --set replaces (--set METRICS=--metrics-bind-address=0).
With `bugs`: for each the class of plans, and patterns for the title of its plan and for the sentence of its finding. Nothing is fetched
or built. What is found besides is printed, too: it is another bug, or a false alarm.
The exit status is the number of bugs that are not found.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from noxu.control.arguments import duration
from noxu.exploration import exploring, learning, plans, recording, report, runs, settings
from noxu.exploration.attempts import Confirmed, Judged
from noxu.exploration.learning import UnusableController
from noxu.exploration.settings import Exploration


class KnownBug(NamedTuple):
    issue: int
    klass: str
    when: str
    says: str

    def is_shown_by(self, found: Confirmed) -> bool:
        findings = (found.finding, *found.others)
        return (
            found.plan.klass == self.klass
            and bool(re.search(self.when, found.plan.title))
            and any(re.search(self.says, finding.sentence) for finding in findings)
        )


class Explored(NamedTuple):
    """What to explore, and the bugs that are known of it."""

    exploration: Exploration
    bugs: Sequence[KnownBug]


def read(path: Path, given: Mapping[str, str]) -> Explored:
    text = path.read_text("utf-8")
    for name, replacement in {**(yaml.safe_load(text).get("values") or {}), **given}.items():
        text = text.replace(f"${name}", replacement)
    value = yaml.safe_load(text)
    value.pop("values", None)
    bugs = [KnownBug(bug["issue"], bug["class"], bug["when"], bug["says"]) for bug in value.pop("bugs", [])]
    return Explored(settings.parse(value, path.parent), bugs)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--checkout", type=Path, required=True, help="its repository, at the commit that was built")
    parser.add_argument("--binary", type=Path, required=True, help="what was built of it")
    parser.add_argument("--budget", type=duration, default=600.0, help="for how long to explore (default: 10m)")
    parser.add_argument("--class", dest="classes", action="append", default=[], help="plans of this class only")
    parser.add_argument("--only", default="", metavar="PATTERN", help="plans whose titles match a regular expression")
    parser.add_argument("--output", type=Path, help="a directory for plans and recordings of what is found")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another value of the file")
    options = parser.parse_args(arguments)
    given = dict(each.partition("=")[::2] for each in options.set)
    given |= {"CHECKOUT": str(options.checkout.resolve()), "BINARY": str(options.binary.resolve())}
    exploration, bugs = read(options.file, given)
    exploration = runs.check(replace(exploration, budget=options.budget, classes=tuple(options.classes)))
    found = {bug.issue: line for bug, line in _explored(exploration, bugs, options.output, options.only)}
    for bug in bugs:
        print(f"issue {bug.issue}: {found.get(bug.issue, 'is not found')}")
    return sum(bug.issue not in found for bug in bugs)


def _explored(
    exploration: Exploration, bugs: Sequence[KnownBug], output: Path | None, only: str
) -> Iterator[tuple[KnownBug, str]]:
    """Each bug that is found, with a line about it."""
    began, number = time.monotonic(), 0
    try:
        learnt = learning.learn(exploration)
    except UnusableController as error:
        print("\n".join(report.unusable_lines(error.findings, error.recording)))
        return
    chosen = [plan for plan in learnt.plans if re.search(only, plan.title)]
    lines = [f"{time.monotonic() - began:.0f} s: {len(chosen)} plans", *report.refusal_lines(learnt.recordings[0])]
    print("\n".join(lines), flush=True)
    until = began + exploration.budget
    for happening in exploring.explore(exploration, learnt, chosen, until=until):
        after = time.monotonic() - began
        if isinstance(happening, Judged):
            number += 1
            _failed(happening, after)
            continue
        shown = [bug for bug in bugs if bug.is_shown_by(happening)]
        _print(happening, after, shown)
        if output is not None:
            _write(output, happening)
        if happening.is_stable:
            yield from ((bug, f"after {after:.0f} s and {number} plans: {happening.finding.sentence}") for bug in shown)
    print(f"{time.monotonic() - began:.0f} s: {number} of {len(chosen)} plans were run", flush=True)


def _failed(judged: Judged, after: float) -> None:
    if judged.failed:
        print(f"{after:4.0f} s  {judged.plan.title}: it could not be run: {judged.failed}", flush=True)


def _print(found: Confirmed, after: float, shown: Sequence[KnownBug]) -> None:
    issues = ", ".join(f"issue {bug.issue}" for bug in shown)
    kind = issues if found.is_stable else f"unstable {issues}"
    print(f"{after:4.0f} s  {kind or 'another finding'}  {found.plan.klass}: {found.plan.title}")
    for finding in (found.finding, *found.others):
        print(f"        {finding.kind}: {finding.sentence}")
        for line in finding.details[:2]:
            print(f"          {line}")
    sys.stdout.flush()


def _write(directory: Path, found: Confirmed) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    plan: dict[str, Any] = found.plan.value
    (directory / f"explore-{found.number}.yaml").write_text(plans.text_of(found.plan), "utf-8")
    (directory / f"explore-{found.number}.noxu").write_bytes(
        recording.to_bytes(recording.RunFile(plan, found.recording))
    )


if __name__ == "__main__":
    sys.exit(main())
