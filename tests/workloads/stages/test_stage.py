"""Which stage an object enters next, and when."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from noxu.values import Object
from noxu.workloads.stages.queries import Query
from noxu.workloads.stages.stage import Changing, Delay, Stage, StageFinalizers, StageTarget, Weight, due
from tests.rows import rows

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PODS = StageTarget("", "pods")


def pod(name: str = "web", **annotations: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default", "annotations": annotations}, "status": {}}


def changing(seconds: float | None, query: str = "") -> Changing:
    return Changing(seconds, Query(query) if query else None)


FROM = ".metadata.annotations.delay"


@rows(
    "situation, delay, annotation, least, most",
    [
        ("none", Delay(), "", 0, 0),
        ("a fixed one", Delay(changing(5)), "", 5, 5),
        ("a range", Delay(changing(5), changing(10)), "", 5.001, 9.999),
        ("a range whose end is before its beginning is its end", Delay(changing(5), changing(2)), "", 2, 2),
        ("a duration of the object", Delay(changing(5, FROM)), "1m", 60, 60),
        ("a time of the object", Delay(changing(5, FROM)), "2026-01-01T00:00:30Z", 30, 30),
        ("a time that has passed", Delay(changing(5, FROM)), "2025-12-31T23:59:50Z", -10, -10),
        ("an object without a duration", Delay(changing(5, FROM)), "", 5, 5),
        ("an object with a text that is none", Delay(changing(5, FROM)), "soon", 5, 5),
    ],
)
def test_the_delay_of(situation: str, delay: Delay, annotation: str, least: float, most: float) -> None:
    about = pod(**({"delay": annotation} if annotation else {}))
    following = due([Stage("s", PODS, (), delay, ())], about, NOW, 0)
    assert following is not None
    assert least <= following.seconds <= most
    assert following == due([Stage("s", PODS, (), delay, ())], about, NOW, 0)


def stage(name: str, weight: int = 0, *, selects: bool = True) -> Stage:
    return Stage(name, PODS, (lambda _value: selects,), Delay(), (), Weight(weight))


@rows(
    "stages, expected",
    [
        ([], set()),
        ([stage("a", selects=False)], set()),
        ([stage("a"), stage("b")], {"a"}),
        ([stage("a", 1, selects=False), stage("b", 1)], {"b"}),
        ([stage("a", 1), stage("b", 1)], {"a", "b"}),
        ([stage("a"), stage("b", 1)], {"b"}),
    ],
)
def test_one_of_the_stages_that_select_an_object_is_next(stages: list[Stage], expected: set[str]) -> None:
    chosen = [due(stages, pod(f"web-{number}"), NOW, 0) for number in range(30)]
    assert {each.stage.name for each in chosen if each} == expected


def test_weights_are_proportions() -> None:
    stages = [stage("often", 9), stage("rarely", 1)]
    chosen = Counter(each.stage.name for number in range(1000) if (each := due(stages, pod(f"w-{number}"), NOW, 0)))
    assert 850 < chosen["often"] < 950


@rows(
    "change, before, after",
    [
        (StageFinalizers(add=["a"]), [], ["a"]),
        (StageFinalizers(add=["a"]), ["a", "b"], ["a", "b"]),
        (StageFinalizers(remove=["a"]), ["a", "b"], ["b"]),
        (StageFinalizers(empty=True), ["a", "b"], []),
        (StageFinalizers(add=["c"], empty=True), ["a", "b"], ["c"]),
    ],
)
def test_finalizers_change(change: StageFinalizers, before: list[str], after: list[str]) -> None:
    assert change.of(before) == after
