"""From what metrics ask for to the replicas that are set: stabilization, rates and limits (podautoscaler/horizontal.go).

Without `behavior`, the highest recommendation of the last five minutes counts, and at most the double is reached at once, or 4.
With it, each direction has a window over which recommendations are stabilized, and policies: so many pods, or percent, in a period.
What has been recommended and done is remembered as long as it may matter; it is lost when the server starts again, as upstream's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from noxu.api.selectors import LabelSelector
from noxu.go import quantity
from noxu.values import Object
from noxu.workloads.autoscaler.replicas import TOLERANCE, Tolerances

PERIOD: Final = 15.0  # seconds; --horizontal-pod-autoscaler-sync-period
QUIET_LOOKS: Final = 20
MAX_DOUBLINGS: Final = 8  # about an hour
MAX_POLICY_PERIOD: Final = 1800  # seconds; of all policies
DOWNSCALE_STABILIZATION: Final = 300  # seconds; --horizontal-pod-autoscaler-downscale-stabilization
LIMIT_FACTOR: Final = 2
LIMIT_LEAST: Final = 4
_MOST: Final = 2**31 - 1
_UP: Final = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN: Final = {
    "stabilizationWindowSeconds": DOWNSCALE_STABILIZATION,
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


class At(NamedTuple):
    """A number of replicas, or by how many they have changed, at a time."""

    replicas: int
    time: datetime


@dataclass
class AutoscalerPast:
    """What an autoscaler has recommended, how it has changed the replicas, up and down, and when it has looked.

    It looks every PERIOD. Where nothing has changed for QUIET_LOOKS, and nothing is left that time alone changes, it looks more
    and more rarely, until something changes: a year of a controlled clock would have two million looks. What it has recommended last
    counts as recommended until then.
    """

    recommendations: list[At] = field(default_factory=list)
    ups: list[At] = field(default_factory=list)
    downs: list[At] = field(default_factory=list)
    last: datetime | None = None
    quiet: int = 0
    selector: LabelSelector | None = None
    """That of the pods that it has scaled."""

    def changed(self, before: int, after: int, behavior: Object | None, now: datetime) -> None:
        """Remember a change as long as a policy looks at it."""
        if behavior is None:
            return
        rules = rules_of(behavior, "scaleUp" if after > before else "scaleDown")
        longest = max((policy["periodSeconds"] for policy in rules["policies"]), default=0)
        events = self.ups if after > before else self.downs
        events[:] = [*(each for each in events if _age(each, now) <= longest), At(abs(after - before), now)]

    @property
    def period(self) -> float:
        """The seconds between this look and the next one, if nothing changes."""
        return PERIOD * 2.0 ** min(max(self.quiet - QUIET_LOOKS, 0), MAX_DOUBLINGS)

    def left(self, now: datetime) -> float:
        """The seconds in which it does not look again, whatever changes; 0 or less: it looks."""
        return 0.0 if self.last is None else PERIOD - (now - self.last).total_seconds()

    def begin(self, now: datetime) -> None:
        """It looks again."""
        if self.period > PERIOD and self.recommendations:
            self.recommendations.append(At(self.recommendations[-1].replicas, now))
        if self.last is not None and (now - self.last).total_seconds() < self.period:
            self.quiet = 0  # something has changed

    def end(self, now: datetime, *, is_same: bool) -> float:
        """It has looked, and found the same state: the seconds until the next look."""
        is_settled = len({each.replicas for each in self.recommendations}) <= 1
        has_changed = any(_age(each, now) <= MAX_POLICY_PERIOD for each in (*self.ups, *self.downs))
        self.last, self.quiet = now, self.quiet + 1 if is_same and is_settled and not has_changed else 0
        return self.period


class Reasoned(NamedTuple):
    """A number of replicas, and the reason and message of its condition."""

    replicas: int
    reason: str
    message: str


class Bounds(NamedTuple):
    """`current`: the replicas that there are."""

    least: int
    most: int
    current: int


WITHIN: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
READY: Final = ("ReadyForNewScale", "recommended size matches current size")
UP_STABILIZED: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
DOWN_STABILIZED: Final = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
UP_LIMIT: Final = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
DOWN_LIMIT: Final = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")


def rules_of(behavior: Object, direction: str) -> Object:
    """The rules of a direction, with upstream's defaults."""
    defaults = _UP if direction == "scaleUp" else _DOWN
    given: Mapping[str, object] = behavior.get(direction) or {}
    return {**defaults, **{name: value for name, value in given.items() if value is not None}}


def tolerances_of(behavior: Object | None) -> Tolerances:
    found = [((behavior or {}).get(direction) or {}).get("tolerance") for direction in ("scaleDown", "scaleUp")]
    down, up = (TOLERANCE if each is None else quantity.approximate_float(quantity.parse(str(each))) for each in found)
    return Tolerances(down, up)


def stabilized(past: AutoscalerPast, desired: int, current: int, behavior: Object | None, now: datetime) -> Reasoned:
    """What counts of the recommendations of a while; this one is remembered."""
    if behavior is None:
        up = desired
        down = _extreme(max, past, desired, DOWNSCALE_STABILIZATION, now, inclusive=True)
        window, counts = DOWNSCALE_STABILIZATION, down
    else:
        windows = [rules_of(behavior, each)["stabilizationWindowSeconds"] for each in ("scaleUp", "scaleDown")]
        up = _extreme(min, past, desired, windows[0], now)
        down = _extreme(max, past, desired, windows[1], now)
        window, counts = max(windows), min(max(current, up), down)
    past.recommendations[:] = [*(each for each in past.recommendations if _age(each, now) <= window), At(desired, now)]
    if counts == desired:
        return Reasoned(counts, *READY)
    is_up = behavior is not None and desired >= current
    return Reasoned(counts, *(UP_STABILIZED if is_up else DOWN_STABILIZED))


def limited(past: AutoscalerPast, desired: int, bounds: Bounds, behavior: Object | None, now: datetime) -> Reasoned:
    """What limits and rates allow of it."""
    current = bounds.current
    if behavior is None:
        up_limit, down_limit = max(LIMIT_FACTOR * current, LIMIT_LEAST), 0
    else:
        up_limit = max(_up_limit(past, current, rules_of(behavior, "scaleUp"), now), current)
        down_limit = min(_down_limit(past, current, rules_of(behavior, "scaleDown"), now), current)
    most, why_most = (up_limit, UP_LIMIT) if bounds.most > up_limit else (bounds.most, TOO_MANY)
    least, why_least = (down_limit, DOWN_LIMIT) if bounds.least < down_limit else (bounds.least, TOO_FEW)
    if desired > most and (behavior is None or desired > current):
        return Reasoned(most, *why_most)
    if desired < least and (behavior is None or desired < current):
        return Reasoned(least, *why_least)
    return Reasoned(desired, *WITHIN)


def _extreme(
    best: Callable[[Iterable[int]], int],
    past: AutoscalerPast,
    desired: int,
    seconds: int,
    now: datetime,
    *,
    inclusive: bool = False,
) -> int:
    """The best of the recommendations of so many seconds, and of this one."""
    ages = ((each.replicas, _age(each, now)) for each in past.recommendations)
    recent = (replicas for replicas, age in ages if age < seconds or (inclusive and age == seconds))
    return best((desired, *recent))


def _up_limit(past: AutoscalerPast, current: int, rules: Object, now: datetime) -> int:
    if rules["selectPolicy"] == "Disabled":
        return current
    proposed = []
    for policy in rules["policies"]:
        start = _at_start(past, current, policy["periodSeconds"], now)
        by_percent = policy["type"] == "Percent"
        proposed.append(math.ceil(start * (1 + policy["value"] / 100)) if by_percent else start + policy["value"])
    return min(proposed, default=_MOST) if rules["selectPolicy"] == "Min" else max(proposed, default=-_MOST)


def _down_limit(past: AutoscalerPast, current: int, rules: Object, now: datetime) -> int:
    if rules["selectPolicy"] == "Disabled":
        return current
    proposed = []
    for policy in rules["policies"]:
        start = _at_start(past, current, policy["periodSeconds"], now)
        by_percent = policy["type"] == "Percent"
        proposed.append(int(start * (1 - policy["value"] / 100)) if by_percent else start - policy["value"])
    return max(proposed, default=-_MOST) if rules["selectPolicy"] == "Min" else min(proposed, default=_MOST)


def _at_start(past: AutoscalerPast, current: int, seconds: int, now: datetime) -> int:
    """The replicas at the start of a period."""
    return current - _sum(past.ups, seconds, now) + _sum(past.downs, seconds, now)


def _sum(events: Sequence[At], seconds: int, now: datetime) -> int:
    return sum(each.replicas for each in events if _age(each, now) < seconds)


def _age(event: At, now: datetime) -> float:
    return (now - event.time).total_seconds()
