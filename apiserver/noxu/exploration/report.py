"""What an exploration says: a sentence a finding, its evidence, the files that reproduce it; and what was explored.

    1  crash       secrets default/a is missing after step 1
                   when the controller is killed after the create of configmaps a (number 1) is committed
                   the clean run went on with create of secrets a; this one did not
                   explore-1.yaml  explore-1.noxu

All functions are pure: they make lines and values of an `Explored`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

import orjson

from noxu.arguments.explore import CLASSES
from noxu.exploration import coverage, older_kinds
from noxu.exploration.attempts import Confirmed, Judged
from noxu.exploration.exploring import Explored
from noxu.exploration.findings import RunFinding
from noxu.exploration.recording import PANIC, RecordedChange, RunRecording
from noxu.exploration.shapes import MaskedNames
from noxu.values import Object

MAX_LOG: Final = 15  # lines of the controller's log
MAX_SHOWN: Final = 8
MAX_LINE: Final = 200  # characters of the log
_MESSAGE: Final = ("msg", "message")
_LEVEL: Final = ("level", "severity", "lvl")
_ERROR: Final = ("error", "err")
_LEFT_OUT: Final = ("ts", "time", "timestamp", "caller", "stacktrace", "stack")
_SAYS_WHY: Final = ("exited", "busy", "stuck")
"""The kinds of findings that the controller's log may explain."""
_WIDTH: Final = 11
_NO_XML: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_INDENT: Final = " " * (_WIDTH + 4)


def finding_lines(confirmed: Confirmed, files: Sequence[str] = (), clean: RunRecording | None = None) -> Iterator[str]:
    """A finding with its evidence."""
    yield f"{confirmed.number:>2}  {confirmed.plan.klass:<{_WIDTH}}{confirmed.finding.sentence}"
    yield from (f"{_INDENT}{line}" for line in confirmed.finding.details)
    yield f"{_INDENT}when {confirmed.plan.title}"
    yield from (f"{_INDENT}also: {other.sentence}" for other in confirmed.others[:MAX_SHOWN])
    if clean is not None and (line := divergence(clean, confirmed.recording)):
        yield f"{_INDENT}{line}"
    if confirmed.finding.kind in _SAYS_WHY:
        yield from (f"{_INDENT}| {line}" for line in log_lines(confirmed.recording.output, MAX_SHOWN))
    if confirmed.is_noise:
        yield f"{_INDENT}another clean run has shown it, too: it is noise; `ignore` in explore.yaml leaves it out"
    elif not confirmed.is_stable:
        yield f"{_INDENT}it did not show again when the plan was run once more: it depends on time, too"
    if files:
        yield f"{_INDENT}{'  '.join(files)}"


def unusable_lines(findings: Sequence[RunFinding], recording: RunRecording) -> Iterator[str]:
    """Why nothing is explored: what is wrong in a clean run, and what the controller says."""
    for finding in findings:
        yield f"without any fault: {finding.sentence}"
        yield from (f"  {line}" for line in finding.details)
    yield from refusal_lines(recording)
    yield from (f"  | {line}" for line in log_lines(recording.output))


def refusal_lines(recording: RunRecording) -> Iterator[str]:
    """What the controller has asked for in a clean run and never got: it may lack something that is not explored then."""
    for what, number, said in recording.refusals:
        yield f"without any fault every {what} is refused, {_count(number, 'time')}: {said[:MAX_LINE]}"
    for name in older_kinds.missed(recording.output):
        yield f"without any fault it finds no {name}, which is not served: {older_kinds.advice(name)}"


def log_lines(output: str, most: int = MAX_LOG) -> list[str]:
    """The newest lines of a program's output; those around the beginning of its last crash, if there is one."""
    lines = [line for line in output.splitlines() if line.strip()]
    crash = next((n for n in reversed(range(len(lines))) if PANIC.match(lines[n])), None)
    first = max(len(lines) - most if crash is None else crash - most // 2, 0)
    return [_readable(line)[:MAX_LINE] for line in lines[first : first + most]]


def _readable(line: str) -> str:
    """What matters of a line first: one in JSON, as zap, logrus, zerolog and slog write it, may have its error at the end."""
    try:
        said = orjson.loads(line) if line.startswith("{") else None
    except orjson.JSONDecodeError:
        return line
    if not isinstance(said, dict) or not (message := _first(said, _MESSAGE)):
        return line
    head = f"{_first(said, _LEVEL)} {message}".strip()
    error = f": {found}" if (found := _first(said, _ERROR)) else ""
    others = [
        f"{name}={value}" for name, value in said.items() if name not in (*_MESSAGE, *_LEVEL, *_ERROR, *_LEFT_OUT)
    ]
    return " ".join(f"{head}{error} {' '.join(others)}".split())


def _first(said: Object, names: Sequence[str]) -> str:
    return next((str(said[name]) for name in names if said.get(name)), "")


def divergence(clean: RunRecording, recording: RunRecording) -> str:
    """Where the controller first writes something else than in a clean run; "" if it never does."""
    expected, found = (_written(each) for each in (clean, recording))
    for n, (one, two) in enumerate(zip(expected, found, strict=False)):
        if one != two:
            return f"the first difference is write {n + 1} of the controller: {two} instead of {one}"
    if len(expected) > len(found):
        return f"the clean run went on with {expected[len(found)]}, this one did not"
    if len(found) > len(expected):
        return f"the clean run ended before {found[len(expected)]}"
    return ""


def _written(recording: RunRecording) -> list[str]:
    names = MaskedNames(recording)
    return [_write(change, names) for change in recording.changes if change.is_of_controller]


def _write(change: RecordedChange, names: MaskedNames) -> str:
    of = f" of {change.subresource}" if change.subresource else ""
    return f"{change.verb or change.effect}{of} of {names.shape(change.place)}"


# -- summary ----------------------------------------------------------------------------------------------------------


def summary_lines(outcome: Explored) -> Iterator[str]:
    """How much was explored, and what was found."""
    plans = Counter(judged.plan.klass for judged in outcome.judged if not judged.failed)
    effects = Counter(judged.plan.klass for judged in outcome.judged if judged.had_effect)
    found = Counter(confirmed.plan.klass for confirmed in outcome.findings)
    left = Counter(plan.klass for plan in outcome.left)
    failed = [judged for judged in outcome.judged if judged.failed]
    rows = [
        (klass, plans[klass], effects[klass], found[klass], left[klass])
        for klass in CLASSES
        if plans[klass] or left[klass]
    ]
    yield f"{'class':<{_WIDTH + 2}}{'plans':>7}{'took effect':>13}{'findings':>10}{'not run':>9}"
    for klass, run, effect, number, rest in rows:
        yield f"{klass:<{_WIDTH + 2}}{run:>7}{effect:>13}{number:>10}{rest:>9}"
    yield from coverage.lines(outcome)
    if outcome.learnt is not None:
        yield from refusal_lines(outcome.learnt.recordings[0])
        mask = outcome.learnt.mask
        if masked := sum(map(len, mask.fields.values())) + len(mask.shapes):
            yield f"{_count(masked, 'field or object', 'fields and objects')} differed among the clean runs, and are not compared"
    if outcome.unstable:
        yield f"{_count(len(outcome.unstable), 'finding')} did not show again, and {'is' if len(outcome.unstable) == 1 else 'are'} not counted"
    if failed:
        yield f"{_count(len(failed), 'plan')} could not be run: {failed[0].plan.title}: {failed[0].failed}"
    yield f"{_count(len(outcome.findings), 'finding')} in {_count(len(outcome.judged), 'run')}, {outcome.seconds:.0f} s"


def progress_note(outcome: Explored, total: int, seconds: float, budget: float) -> str:
    """What is found until now, and how long it may still take: `2 found, 3 min left`."""
    done = len(outcome.judged)
    left = min(seconds / done * (total - done), budget - seconds) if done else 0.0
    found = len(outcome.findings)
    parts = [f"{found} found"] if found else []
    if left > 0:
        parts.append(f"{left / 60:.0f} min left" if left >= 90 else f"{left:.0f} s left")
    return ", ".join(parts)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def mask_lines(outcome: Explored) -> Iterator[str]:
    """What is not compared, because it differs among clean runs."""
    if outcome.learnt is None:
        return
    for shape, paths in sorted(outcome.learnt.mask.fields.items()):
        yield f"masked: {shape}: {', '.join('.'.join(path) for path in sorted(paths))}"
    for shape in sorted(outcome.learnt.mask.shapes):
        yield f"masked: {shape}, which is not there in every clean run"


# -- for machines -----------------------------------------------------------------------------------------------------


def as_value(outcome: Explored, files: dict[int, Sequence[str]]) -> Object:
    """JSON of all of it."""
    return {
        "findings": [_finding(each, files.get(each.number, ())) for each in outcome.findings],
        "unstable": [_finding(each, files.get(each.number, ())) for each in outcome.unstable],
        "cleanRuns": [{"kind": finding.kind, "sentence": finding.sentence} for finding in outcome.unusable],
        "plans": [_plan(judged) for judged in outcome.judged],
        "notRun": [plan.value for plan in outcome.left],
        "coverage": coverage.as_value(outcome),
        "masked": list(mask_lines(outcome)),
        "seconds": round(outcome.seconds, 1),
    }


def _finding(confirmed: Confirmed, files: Sequence[str]) -> Object:
    return {
        "number": confirmed.number,
        "class": confirmed.plan.klass,
        "kind": confirmed.finding.kind,
        "subject": confirmed.finding.subject,
        "sentence": confirmed.finding.sentence,
        "details": list(confirmed.finding.details),
        "revisions": list(confirmed.finding.revisions),
        "plan": confirmed.plan.value,
        "files": list(files),
    }


def _plan(judged: Judged) -> Object:
    return {
        "class": judged.plan.klass,
        "title": judged.plan.title,
        "seconds": round(judged.seconds, 2),
        "tookEffect": judged.had_effect,
        "findings": [finding.sentence for finding in judged.findings],
        **({"failed": judged.failed} if judged.failed else {}),
    }


def as_junit(outcome: Explored) -> str:
    """JUnit's XML: a test case for each run, and one for each finding of the clean runs."""
    confirmed = {id(each.plan): each for each in outcome.findings} | {
        each.plan.title: each for each in outcome.findings
    }
    cases = [_case("clean", finding.sentence, 0.0, _failure(finding.sentence)) for finding in outcome.unusable]
    for judged in outcome.judged:
        found = confirmed.get(id(judged.plan)) or confirmed.get(judged.plan.title)
        content = ""
        if judged.failed:
            content = f"<skipped message={quoteattr(judged.failed[:200])}/>"
        elif found is not None and judged.findings:
            content = _failure(found.finding.sentence, "\n".join(finding_lines(found)))
        cases.append(_case(judged.plan.klass, judged.plan.title, judged.seconds, content))
    failures = sum("<failure" in case for case in cases)
    head = f'  <testsuite name="noxu explore" tests="{len(cases)}" failures="{failures}" time="{outcome.seconds:.1f}">'
    return "\n".join(
        ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>", head, *cases, "  </testsuite>", "</testsuites>", ""]
    )


def _case(klass: str, name: str, seconds: float, content: str) -> str:
    attributes = f'classname={quoteattr(klass)} name={quoteattr(name)} time="{seconds:.2f}"'
    return f"    <testcase {attributes}>{content}</testcase>" if content else f"    <testcase {attributes}/>"


def _failure(sentence: str, text: str = "") -> str:
    """Of characters that XML has."""
    clean = _NO_XML.sub("?", text)
    return f"<failure message={quoteattr(_NO_XML.sub('?', sentence))}>{escape(clean)}</failure>"
