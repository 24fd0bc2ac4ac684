"""What an exploration has tried, and what it has not: for each resource of the controller, how many of its writes, views and fields.

                            writes  crash   lost  refused  views  drift  fields
    configmaps                   2      1      2        2      4      3       0
    widgets.example.com          1      1      1        0      6      0       2

`writes` are the kinds of writes that the controller makes in a clean run: a verb and a subresource. Of these, at so many it was
killed, of so many the answer was lost, so many were refused. `views`: in so many ways it saw the resource late, or not in every
state. `drift`: so many fields of it, or its existence, were changed behind the controller's back. `fields`: so many of its spec were
changed and changed back. A plan counts if something of it has happened. All functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from noxu.exploration.exploring import Explored
from noxu.exploration.plans import RunPlan

COLUMNS: Final = ("writes", "crash", "lost", "refused", "views", "drift", "fields")
_READS: Final = ("get", "list", "watch")
_VIEWS: Final = ("stale", "unobserved", "order")


class CoverageRow(NamedTuple):
    """A resource, and the numbers of COLUMNS."""

    resource: str
    numbers: tuple[int, ...]


def rows(outcome: Explored) -> list[CoverageRow]:
    """One for each resource that the controller reads or writes in a clean run, in order."""
    if outcome.learnt is None:
        return []
    recording = outcome.learnt.recordings[0]
    written = {
        (_verb(change.verb), change.place.resource, change.subresource)
        for change in recording.changes
        if change.is_of_controller
    }
    read = {resource for verb, resource, _code, _number in recording.requests if verb in _READS}
    done = [judged.plan for judged in outcome.judged if judged.had_effect]
    return [
        CoverageRow(resource, _numbers(resource, [each for each in written if each[1] == resource], done))
        for resource in sorted(read | {resource for _verb_, resource, _subresource in written})
        if resource
    ]


def _numbers(resource: str, writes: Sequence[tuple[str, str, str]], done: Sequence[RunPlan]) -> tuple[int, ...]:
    def struck(klass: str, parts: int) -> int:
        wanted = {plan.about[1 : 1 + parts] for plan in done if plan.klass == klass}
        return sum(write[:parts] in wanted for write in writes)

    def ways(*classes: str) -> int:
        return len({plan.about for plan in done if plan.klass in classes and resource in plan.about[1:3]})

    return (
        len(writes),
        struck("crash", 3),
        struck("ambiguous", 3),
        struck("refused", 3),
        ways(*_VIEWS),
        ways("drift"),
        ways("spec"),
    )


def _verb(verb: str) -> str:
    return "patch" if verb == "apply" else verb


def lines(outcome: Explored) -> Iterator[str]:
    """The table."""
    found = rows(outcome)
    if not found:
        return
    width = max(len(row.resource) for row in found)
    yield f"{'':<{width}}  {'  '.join(f'{column:>7}' for column in COLUMNS)}"
    for row in found:
        yield f"{row.resource:<{width}}  {'  '.join(f'{number:>7}' for number in row.numbers)}"


def as_value(outcome: Explored) -> list[dict[str, object]]:
    """JSON of the table."""
    return [{"resource": row.resource, **dict(zip(COLUMNS, row.numbers, strict=True))} for row in rows(outcome)]
