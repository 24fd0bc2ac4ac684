"""Stabilization, rates and limits: the situations of upstream's horizontal_test.go."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from noxu.values import Object
from noxu.workloads.autoscaler.normalization import At, AutoscalerPast, Bounds, limited, stabilized, tolerances_of
from noxu.workloads.autoscaler.replicas import Tolerances
from tests.rows import rows
from tests.workloads.plays import NOW


def ago(*pairs: tuple[int, int]) -> list[At]:
    """Replicas, and how many seconds ago that was."""
    return [At(replicas, NOW - timedelta(seconds=seconds)) for replicas, seconds in pairs]


def pods(value: int, period: int = 60) -> Object:
    return {"type": "Pods", "value": value, "periodSeconds": period}


def percent(value: int, period: int = 60) -> Object:
    return {"type": "Percent", "value": value, "periodSeconds": period}


LIMITS: list[tuple[str, int, int, tuple[int, int], int, str]] = [
    # name, current, desired, (least, most), result, reason
    ("too few", 7, 1, (3, 15), 3, "TooFewReplicas"),
    ("too many", 7, 30, (3, 13), 13, "TooManyReplicas"),
    ("faster than the double", 7, 30, (3, 15), 14, "ScaleUpLimit"),
    ("at least 4 at once", 1, 10, (1, 10), 4, "ScaleUpLimit"),
    ("within", 7, 9, (3, 15), 9, "DesiredWithinRange"),
    ("at the limit", 7, 14, (3, 15), 14, "DesiredWithinRange"),
]


@rows("current, desired, bounds, expected, reason", [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_limits_without_behavior(
    current: int, desired: int, bounds: tuple[int, int], expected: int, reason: str
) -> None:
    found = limited(AutoscalerPast(), desired, Bounds(*bounds, current), None, NOW)
    assert (found.replicas, found.reason) == (expected, reason)


UP: list[tuple[str, Any, list[At], int, int, str]] = [
    # name, rules, changes up, desired of 2, result, reason
    ("the default", {}, [], 100, 6, "ScaleUpLimit"),
    ("so many pods", {"policies": [pods(5)]}, [], 100, 7, "ScaleUpLimit"),
    ("so many percent, rounded up", {"policies": [percent(10)]}, [], 100, 3, "ScaleUpLimit"),
    ("the greater one", {"policies": [pods(1), percent(300)]}, [], 100, 8, "ScaleUpLimit"),
    ("the smaller one", {"policies": [pods(1), percent(300)], "selectPolicy": "Min"}, [], 100, 3, "ScaleUpLimit"),
    ("disabled", {"policies": [pods(9)], "selectPolicy": "Disabled"}, [], 100, 2, "ScaleUpLimit"),
    ("some in this period", {"policies": [pods(5)]}, ago((1, 30)), 100, 6, "ScaleUpLimit"),
    ("before this period", {"policies": [pods(5)]}, ago((1, 60)), 100, 7, "ScaleUpLimit"),
    ("all of this period", {"policies": [pods(1)]}, ago((2, 30)), 100, 2, "ScaleUpLimit"),
    ("two periods", {"policies": [pods(4, 60), pods(6, 3600)], "selectPolicy": "Min"}, ago((5, 600)), 100, 3, "ScaleUpLimit"),
    ("the most", {"policies": [pods(99)]}, [], 100, 50, "TooManyReplicas"),
    ("enough", {"policies": [pods(99)]}, [], 40, 40, "DesiredWithinRange"),
]  # fmt: skip


@rows("rules, changes, desired, expected, reason", [row[1:] for row in UP], ids=[row[0] for row in UP])
def test_rates_up(rules: Any, changes: list[At], desired: int, expected: int, reason: str) -> None:
    found = limited(AutoscalerPast(ups=changes), desired, Bounds(1, 50, 2), {"scaleUp": rules}, NOW)
    assert (found.replicas, found.reason) == (expected, reason)


DOWN: list[tuple[str, Any, list[At], int, int, str]] = [
    # name, rules, changes down, desired of 100, result, reason
    ("the default", {}, [], 5, 5, "DesiredWithinRange"),
    ("so many pods", {"policies": [pods(5)]}, [], 5, 95, "ScaleDownLimit"),
    ("so many percent", {"policies": [percent(10)]}, [], 5, 90, "ScaleDownLimit"),
    ("the greater one", {"policies": [pods(1), percent(30)]}, [], 5, 70, "ScaleDownLimit"),
    ("the smaller one", {"policies": [pods(1), percent(30)], "selectPolicy": "Min"}, [], 5, 99, "ScaleDownLimit"),
    ("disabled", {"policies": [pods(9)], "selectPolicy": "Disabled"}, [], 5, 100, "ScaleDownLimit"),
    ("some in this period", {"policies": [pods(5)]}, ago((2, 30)), 5, 97, "ScaleDownLimit"),
    ("all of this period", {"policies": [pods(5)]}, ago((9, 30)), 5, 100, "ScaleDownLimit"),
    ("the least", {"policies": [pods(99)]}, [], 1, 3, "TooFewReplicas"),
]


@rows("rules, changes, desired, expected, reason", [row[1:] for row in DOWN], ids=[row[0] for row in DOWN])
def test_rates_down(rules: Any, changes: list[At], desired: int, expected: int, reason: str) -> None:
    found = limited(AutoscalerPast(downs=changes), desired, Bounds(3, 200, 100), {"scaleDown": rules}, NOW)
    assert (found.replicas, found.reason) == (expected, reason)


def windows(up: int, down: int) -> Object:
    return {"scaleUp": {"stabilizationWindowSeconds": up}, "scaleDown": {"stabilizationWindowSeconds": down}}


STABILIZED: list[tuple[str, list[At], int, Object | None, int, str]] = [
    # name, earlier recommendations, this one of 10, behavior, result, reason
    ("the first one", [], 5, None, 5, "ReadyForNewScale"),
    ("a higher one", ago((7, 60), (4, 30)), 5, None, 7, "ScaleDownStabilized"),
    ("a higher one at the end of five minutes", ago((7, 300)), 5, None, 7, "ScaleDownStabilized"),
    ("a higher one before", ago((7, 301)), 5, None, 5, "ReadyForNewScale"),
    ("lower ones", ago((2, 60)), 12, None, 12, "ReadyForNewScale"),
    ("up at once", ago((10, 60)), 12, windows(0, 300), 12, "ReadyForNewScale"),
    ("up, after a window", ago((11, 60)), 12, windows(90, 300), 11, "ScaleUpStabilized"),
    ("up, with a lower one in the window", ago((4, 60)), 12, windows(90, 0), 10, "ScaleUpStabilized"),
    ("down at once", ago((9, 60)), 5, windows(0, 0), 5, "ReadyForNewScale"),
    ("down, after a window", ago((9, 60), (7, 10)), 5, windows(0, 90), 9, "ScaleDownStabilized"),
    ("down, with a higher one in the window", ago((20, 60)), 5, windows(0, 90), 10, "ScaleDownStabilized"),
    ("down, by default", ago((9, 200)), 5, {"scaleUp": {}}, 9, "ScaleDownStabilized"),
]


@rows(
    "earlier, desired, behavior, expected, reason", [row[1:] for row in STABILIZED], ids=[row[0] for row in STABILIZED]
)
def test_stabilization(earlier: list[At], desired: int, behavior: Object | None, expected: int, reason: str) -> None:
    past = AutoscalerPast(recommendations=[*earlier])
    found = stabilized(past, desired, 10, behavior, NOW)
    assert (found.replicas, found.reason) == (expected, reason)
    assert past.recommendations[-1] == At(desired, NOW)


def test_what_no_longer_matters_is_forgotten() -> None:
    past = AutoscalerPast(recommendations=ago((7, 301), (6, 200)), ups=ago((1, 61), (2, 60)))
    stabilized(past, 5, 5, None, NOW)
    assert past.recommendations == [*ago((6, 200)), At(5, NOW)]
    past.changed(2, 5, {"scaleUp": {"policies": [pods(1)]}}, NOW)
    assert past.ups == [*ago((2, 60)), At(3, NOW)]
    past.changed(5, 1, None, NOW)
    assert past.downs == []


def test_tolerances() -> None:
    assert tolerances_of(None) == Tolerances(0.1, 0.1)
    assert tolerances_of({"scaleUp": {"tolerance": "50m"}, "scaleDown": {"tolerance": None}}) == Tolerances(0.1, 0.05)
