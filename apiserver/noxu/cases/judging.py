"""Compare what came of a case with what it expects.

A case that does not expect a denial expects that the write is accepted. Objects are compared field by field: what is expected
has to be there, null has to be absent, and what is not named may be anything. A list is compared as a whole. A golden file is
the whole object, without what differs from run to run.

    expected {spec: {size: 1, color: null}}    got {spec: {size: 1, shape: round}}    equal
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from noxu.api.errors import ApiError
from noxu.api.field import child
from noxu.api.json_patches import field_path, steps
from noxu.cases.case_files import CAUSE, DENIALS, POLICY, Case
from noxu.cases.outcomes import CaseResult, Difference, diff
from noxu.expressions import expression
from noxu.values import Json, Object, copy, equal

TRACED: Final = ("defaulted", "mutated")
"""What only a trace tells."""
OF_THE_SERVER: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
"""Fields of metadata that are missing in golden files."""


def differences(case: Case, result: CaseResult) -> list[Difference]:
    """In the order of what the case expects."""
    expect = case.expect
    denials = [name for name in DENIALS if expect.get(name)]
    if result.error is None and denials:
        return [Difference(denials[0], "the write is accepted", diff({"denied": True}, {"allowed": True}))]
    if result.error is not None and not denials:
        said = f"the write is denied: {result.error.message}"
        return [Difference("allowed" if "allowed" in expect else "", said)]
    return [found for name, judge in _JUDGES.items() if name in expect for found in judge(case, result, expect[name])]


def projected(expected: Json, got: Json) -> Json:
    """What was got at the fields that are expected, which are no deeper than `case_files.DEEPEST`."""
    if isinstance(expected, dict) and isinstance(got, dict):
        return {
            name: projected(value, got.get(name)) for name, value in expected.items() if name in got or value is None
        }
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        return [projected(*pair) for pair in zip(expected, got, strict=True)]
    return got


def without_chance(value: Object) -> Object:
    """The object without what the server chooses."""
    metadata = {name: item for name, item in value["metadata"].items() if name not in OF_THE_SERVER}
    return {**value, "metadata": metadata}


# -- one function for each thing that is expected ----------------------------------------------------------------------


def _message(_: Case, result: CaseResult, expected: Json) -> Iterator[Difference]:
    assert result.error is not None
    text = result.error.message
    if isinstance(expected, str):
        if expected not in text:
            yield Difference("message", "the message has another text", diff(expected, text))
    elif "regex" in expected:
        if not re.search(str(expected["regex"]), text):
            yield Difference("message.regex", "the message does not match", diff(expected["regex"], text))
    else:
        causes = _causes(result.error)
        missing = [cause for cause in expected["causes"] if not any(_is_cause(cause, other) for other in causes)]
        if missing:
            said = "no cause is" if len(missing) == 1 else "no causes are"
            yield Difference("message.causes", f"{said} such as expected", diff(missing, causes))


def _causes(error: ApiError) -> list[Object]:
    listed: list[Object] = (error.details or {}).get("causes") or []
    return [{name: cause[name] for name in CAUSE if name in cause} for cause in listed]


def _is_cause(expected: Object, cause: Object) -> bool:
    """A field and a reason are equal, a message is part of the cause's."""
    return all(
        str(value) in cause.get(name, "") if name == "message" else cause.get(name) == value
        for name, value in expected.items()
    )


_DENIED: Final = expression(r"""[Pp]olicy ['"]([^'"]+)['"](?: with binding '[^']+')? denied request""")


def denied_by(error: ApiError) -> str:
    """`policy/NAME` of the policy that has denied a write, "" if none has."""
    match = _DENIED.search(error.message)
    return f"{POLICY}{match[1]}" if match else ""


def _denied_by(_: Case, result: CaseResult, expected: Json) -> Iterator[Difference]:
    assert result.error is not None
    got = denied_by(result.error)
    if got != expected:
        yield Difference("deniedBy", f"it is denied {f'by {got}' if got else 'by no policy'}: {result.error.message}")


def _warnings(_: Case, result: CaseResult, expected: Sequence[str]) -> Iterator[Difference]:
    got = list(result.warnings)
    if len(got) != len(expected) or not all(text in warning for text, warning in zip(expected, got, strict=True)):
        yield Difference("warnings", "the warnings are others", diff(list(expected), got))


def _paths(name: str, _: Case, result: CaseResult, expected: Sequence[str]) -> Iterator[Difference]:
    got = sorted(set(result.pruned)) if name == "pruned" else sorted(_defaulted(result))
    if got != sorted(set(expected)):
        yield Difference(name, f"other fields are {name}", diff(sorted(set(expected)), got))


def _defaulted(result: CaseResult) -> set[str]:
    return {
        field_path(steps(change["path"]))
        for step in result.trace
        if step.stage in ("default", "default_mutated")
        for change in step.patch
        if change["op"] == "add"
    }


def _golden(name: str, case: Case, result: CaseResult, expected: Json) -> Iterator[Difference]:
    got = result.stored if name == "stored" else result.converted
    assert got is not None
    if name in case.golden:
        shown: Json = without_chance(got)
        expected = None if expected is None else without_chance(expected)
    else:
        shown = projected(expected, got) if expected else without_chance(got)  # {} is filled in by --update
    if not equal(expected, shown):
        what = "stored" if name == "stored" else f"read at {case.written['convert']}"
        yield Difference(name, f"another object is {what}", diff(expected, shown), got=shown)


def _mutated(_: Case, result: CaseResult, expected: Object) -> Iterator[Difference]:
    got: Object = {}
    for step in result.trace:
        if step.stage.startswith("policy "):
            for change in step.patch:
                _set(got, steps(change["path"]), change.get("value"))
    shown = projected(expected, got) if expected else got
    if not equal(expected, shown):
        yield Difference("mutated", "policies have changed other fields", diff(expected, got))


def _set(tree: Object, path: Sequence[str], value: Json) -> None:
    """Add a change to a tree of changes. Items of lists are named by their indexes; what is removed is null."""
    for step in path[:-1]:
        if not isinstance(tree.get(step), dict):
            tree[step] = {}
        tree = tree[step]
    if path:
        tree[path[-1]] = copy(value)  # later changes are set in it


def _round_trip(case: Case, result: CaseResult, expected: bool) -> Iterator[Difference]:
    assert result.stored is not None
    assert result.returned is not None
    before, after = without_chance(result.stored), without_chance(result.returned)
    if equal(before, after) is not expected:
        version = case.written["convert"]
        said = f"the way to {version} and back loses or changes something" if expected else "nothing is lost on the way"
        yield Difference("roundTrip", said, diff(before, after))


_Judge = Callable[[Case, CaseResult, Json], Iterator[Difference]]
_JUDGES: Final[dict[str, _Judge]] = {
    "message": _message,
    "deniedBy": _denied_by,
    "warnings": _warnings,
    "pruned": partial(_paths, "pruned"),
    "defaulted": partial(_paths, "defaulted"),
    "mutated": _mutated,
    "stored": partial(_golden, "stored"),
    "converted": partial(_golden, "converted"),
    "roundTrip": _round_trip,
}


def place(case: Case, difference: Difference) -> str:
    """The field of the file that a difference is about."""
    below = child(case.path, "expect")
    return child(below, difference.field) if difference.field else below


def needs_trace(expect: Mapping[str, Json]) -> bool:
    return any(name in expect for name in TRACED)
