"""A stage: which objects it is about, how long it waits, and what it does to them. Which stage is next, and when.

Of the stages that select an object one is chosen: by weight, if several have one, else the first. Chance is a function of the
names of the object and the stage, so each run does the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple

from noxu.go.time import SECOND, parse_duration
from noxu.values import Object
from noxu.workloads.pods import moment
from noxu.workloads.stages.queries import Query, QueryError
from noxu.workloads.stages.templates import Function, GoTemplate, TemplateError

Selects = Callable[[Object], bool]
PatchType = Literal["json", "merge", "strategic", ""]
"""How a patch is read; "": strategic for built-in kinds, else merge."""


class StageTarget(NamedTuple):
    """The kind of the objects of a stage. `group` "" is the core one; `name`: their kind, or their plural."""

    group: str
    name: str


POD_KINDS: Final = (StageTarget("", "Pod"), StageTarget("", "pods"))


class Changing(NamedTuple):
    """A number of seconds: `seconds`, or what a query finds: a time, or a duration."""

    seconds: float | None = None
    query: Query | None = None

    def value(self, about: Object, now: datetime) -> float | None:
        """None: there is none."""
        found = _found(self.query, about)
        if isinstance(found, str):
            if not found:
                return None
            for read in (_seconds_until, _seconds):
                try:
                    return read(found, now)
                except ValueError:
                    continue
        return self.seconds


def _seconds_until(time: str, now: datetime) -> float:
    return (moment(time) - now).total_seconds()


def _seconds(duration: str, _now: datetime) -> float:
    return parse_duration(duration) / SECOND


class Delay(NamedTuple):
    """Between `least` and `most`, if that is more; else it is `most`."""

    least: Changing = Changing(0.0)
    most: Changing = Changing()

    def seconds(self, about: Object, now: datetime, chance: float) -> float:
        least, most = self.least.value(about, now), self.most.value(about, now)
        if least is None:
            return 0.0
        if most is None:
            return least
        return most if most <= least else least + (most - least) * chance


class StageEvent(NamedTuple):
    """An Event about the object."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class StagePatch(NamedTuple):
    """A patch of an object: that of `render`, below `root` if that is not "", of a subresource or of the object itself."""

    render: Callable[[Object, Mapping[str, Function]], object]
    type: PatchType = ""
    root: str = ""
    subresource: str = ""


class StageFinalizers(NamedTuple):
    """How the finalizers change. `empty`: all go, before others come."""

    add: Sequence[str] = ()
    remove: Sequence[str] = ()
    empty: bool = False

    def of(self, before: Sequence[str]) -> list[str]:
        kept = [] if self.empty else [name for name in before if name not in self.remove]
        return [*kept, *(name for name in self.add if name not in kept)]


class StageDelete(NamedTuple):
    """The object is deleted; a pod at once."""


StageStep = StageEvent | StagePatch | StageFinalizers | StageDelete


class Weight(NamedTuple):
    """How likely a stage is among those that select an object: a number, or what a query finds."""

    number: int = 0
    query: Query | None = None

    def value(self, about: Object) -> int:
        found = _found(self.query, about)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return int(found)
        return int(found) if isinstance(found, str) and found.isdecimal() else self.number


class Stage(NamedTuple):
    """See the module. `replaces`: objects of its kind have no other life than stages, if they are pods."""

    name: str
    target: StageTarget
    selects: Sequence[Selects]
    delay: Delay
    steps: Sequence[StageStep]
    weight: Weight = Weight()
    replaces: bool = False

    def is_about(self, value: Object) -> bool:
        return all(selects(value) for selects in self.selects)


def _found(query: Query | None, about: Object) -> object:
    if query is None:
        return None
    try:
        return next(iter(query.values(about)), None)
    except QueryError:
        return None


# -- which stage is next ----------------------------------------------------------------------------------------------


class Due(NamedTuple):
    """The stage that an object enters next, in so many seconds."""

    stage: Stage
    seconds: float


def due(stages: Sequence[Stage], about: Object, now: datetime, number: int) -> Due | None:
    """The next stage of an object, which has entered `number` of them; None: there is none."""
    matching = [stage for stage in stages if stage.is_about(about)]
    if not matching:
        return None
    stage = _chosen(matching, about, number)
    return Due(stage, stage.delay.seconds(about, now, chance(about, f"{stage.name}/delay", number)))


def _chosen(matching: Sequence[Stage], about: Object, number: int) -> Stage:
    weights = [max(stage.weight.value(about), 0) for stage in matching]
    total = sum(weights)
    if len(matching) == 1 or not total:
        return matching[0]
    at = chance(about, "weight", number) * total
    for stage, weight in zip(matching, weights, strict=True):
        at -= weight
        if at < 0:
            return stage
    return matching[-1]


def chance(about: Object, what: str, number: int) -> float:
    """A number from 0 up to 1 that looks random: the same one in each run."""
    metadata = about["metadata"]
    seed = f"{metadata.get('namespace', '')}/{metadata['name']}/{what}/{number}"
    return int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest()) / 2**64


# -- what a template makes --------------------------------------------------------------------------------------------


def from_template(
    template: GoTemplate, read: Callable[[bytes], object]
) -> Callable[[Object, Mapping[str, Function]], object]:
    """What renders a patch by a template, whose text `read` makes values of. It raises TemplateError."""

    def render(about: Object, functions: Mapping[str, Function]) -> object:
        text = template.render(about, functions)
        try:
            return read(text.encode())
        except ValueError as error:
            raise TemplateError(f"it makes no YAML: {error}") from None

    return render
