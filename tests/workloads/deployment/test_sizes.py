"""How many replicas each ReplicaSet may have: tables of deployment_util_test.go, rolling_test.go and sync_test.go (TestScale)."""

from __future__ import annotations

from noxu.values import Object
from noxu.workloads.deployment.sizes import (
    RolloutLimits,
    annotated,
    is_saturated,
    limits,
    maximum,
    new_size,
    only_active_or_newest,
    proportional,
    shrunk,
)
from tests.rows import rows
from tests.workloads.deployments import deployment, revision


@rows(
    "surge, unavailable, replicas, expected",
    [
        ("39%", "39%", 10, RolloutLimits(4, 3)),
        ("25%", "25%", 4, RolloutLimits(1, 1)),
        ("25%", "25%", 1, RolloutLimits(1, 0)),
        (0, 0, 10, RolloutLimits(0, 1)),
        ("0%", "0%", 10, RolloutLimits(0, 1)),
        ("0%", "1%", 10, RolloutLimits(0, 1)),
        ("0%", "0%", 0, RolloutLimits(0, 0)),
        (2, 20, 10, RolloutLimits(2, 10)),
        (1, "100%", 3, RolloutLimits(1, 3)),
        ("1%", 0, 1000, RolloutLimits(10, 0)),
    ],
)
def test_limits_are_numbers_or_percentages(
    surge: int | str, unavailable: int | str, replicas: int, expected: RolloutLimits
) -> None:
    assert limits(deployment(replicas, surge, unavailable)) == expected


def test_recreate_has_no_limits() -> None:
    assert limits(deployment(5, strategy="Recreate")) == RolloutLimits(0, 0)


@rows(
    "situation, given, new, old, expected",
    [
        ("there is no room", deployment(10), 0, 10, 0),
        ("there is room for the surge", deployment(10, 2), 0, 10, 2),
        ("there is more room", deployment(10, 2), 0, 5, 7),
        ("the surge is there", deployment(10, 2), 2, 10, 2),
        ("it is too large", deployment(10, 2), 11, 2, 10),
        ("it does not get more than it should have", deployment(6, 10), 2, 5, 6),
        ("there are too many", deployment(3, 1), 1, 9, 1),
        ("Recreate takes all at once", deployment(3, strategy="Recreate"), 1, 5, 3),
    ],
)
def test_the_new_one_grows_as_far_as_the_surge_allows(
    situation: str, given: Object, new: int, old: int, expected: int
) -> None:
    assert new_size(given, new, [revision("old", old)]) == expected, situation


@rows(
    "situation, unavailable, new, old, expected",
    [
        ("one may be missing because both limits are 0", 0, (0, 0), [(10, 10)], {"old-0": 9}),
        ("two may be missing", 2, (0, 0), [(10, 10)], {"old-0": 8}),
        ("two are unhealthy and go", 2, (0, 0), [(10, 8)], {"old-0": 8}),
        ("an unhealthy one goes, and a healthy one", 2, (0, 0), [(10, 9)], {"old-0": 8}),
        ("new ones that are not available are missing already", 2, (2, 0), [(8, 8)], {}),
        ("new ones that are available replace old ones", 2, (2, 2), [(8, 8)], {"old-0": 6}),
        ("the oldest goes first", 2, (0, 0), [(5, 5), (5, 5)], {"old-0": 3}),
        ("unhealthy ones of a younger one go before healthy ones", 2, (0, 0), [(5, 5), (5, 3)], {"old-1": 3}),
        ("no more unhealthy ones go than may be missing", 2, (5, 0), [(8, 0)], {}),
        ("nothing is left to shrink", 2, (10, 10), [(0, 0)], {}),
        ("none are available at all", 2, (0, 0), [(10, 1)], {"old-0": 8}),
    ],
)
def test_old_ones_shrink_as_far_as_enough_stay_available(
    situation: str, unavailable: int, new: tuple[int, int], old: list[tuple[int, int]], expected: dict[str, int]
) -> None:
    given = deployment(10, 0, unavailable)
    olds = [revision(f"old-{n}", size, available=healthy, age=100 - n) for n, (size, healthy) in enumerate(old)]
    assert shrunk(given, revision("new", new[0], available=new[1]), olds) == expected, situation


V3, V2, V1 = "foo-v3", "foo-v2", "foo-v1"

SCALED: list[tuple[str, Object, Object, dict[str, int], dict[str, int]]] = [
    ("5 → 10", deployment(10), deployment(5), {V2: 2, V1: 3}, {V2: 4, V1: 6}),
    ("5 → 3", deployment(3), deployment(5), {V2: 2, V1: 3}, {V2: 1, V1: 2}),
    ("9 → 4", deployment(4), deployment(9), {V2: 8, V1: 1}, {V2: 4, V1: 0}),
    ("7 → 10", deployment(10), deployment(7), {V3: 2, V2: 3, V1: 2}, {V3: 3, V2: 4, V1: 3}),
    ("13 → 8", deployment(8), deployment(13), {V3: 2, V2: 8, V1: 3}, {V3: 1, V2: 5, V1: 2}),
    ("3 → 4: the newest takes the rest", deployment(4), deployment(3), {V3: 1, V2: 1, V1: 1}, {V3: 2, V2: 1, V1: 1}),
    ("3 → 2: the oldest gives the rest", deployment(2), deployment(3), {V3: 1, V2: 1, V1: 1}, {V3: 1, V2: 1, V1: 0}),
    ("4 → 5", deployment(5), deployment(4), {V2: 2, V1: 2}, {V2: 3, V1: 2}),
    ("6 → 0", deployment(0), deployment(6), {V3: 3, V2: 2, V1: 1}, {V3: 0, V2: 0, V1: 0}),
    ("surge pods", deployment(20, 2), deployment(10, 2), {V2: 6, V1: 6}, {V2: 11, V1: 11}),
    ("another surge and size", deployment(50, 6), deployment(10, 3), {V2: 5, V1: 8}, {V2: 22, V1: 34}),
    ("another size and template", deployment(14), deployment(10), {V2: 7, V1: 3}, {V2: 10, V1: 4}),
    ("the same size", deployment(5), deployment(5), {V2: 2, V1: 3}, {V2: 2, V1: 3}),
]


@rows("situation, now, before, sizes, expected", SCALED)
def test_a_scale_is_shared_in_proportion(
    situation: str, now: Object, before: Object, sizes: dict[str, int], expected: dict[str, int]
) -> None:
    found = [
        revision(name, size, maximum=maximum(before), age=1000 - int(name[-1]) * 100) for name, size in sizes.items()
    ]
    assert proportional(now, found) == expected, situation


def test_without_an_annotation_the_share_is_that_of_the_status() -> None:
    found = [revision(V2, 2, age=1), revision(V1, 3, age=2)]
    assert proportional(deployment(10, status={"replicas": 5}), found) == {V2: 4, V1: 6}
    assert proportional(deployment(10), found) == {V1: 3 + 5, V2: 2}


@rows(
    "situation, new, old, expected",
    [
        ("only the new one has pods", revision("new", 2), [revision("old", 0)], "new"),
        ("only an old one has pods", revision("new", 0), [revision("old", 1)], "old"),
        ("both have pods", revision("new", 1), [revision("old", 1)], None),
        ("none has pods: the new one", revision("new", 0), [revision("old", 0)], "new"),
        ("none is new: the newest", None, [revision("a", 0, age=9), revision("b", 0, age=1)], "b"),
        ("there is none", None, [], None),
    ],
)
def test_one_takes_the_whole_scale(situation: str, new: Object | None, old: list[Object], expected: str | None) -> None:
    found = only_active_or_newest(new, old)
    assert (found and found["metadata"]["name"]) == expected, situation


@rows(
    "new, expected",
    [
        (revision("new", 3, desired=3), True),
        (revision("new", 3, desired=3, available=2), False),
        (revision("new", 3, desired=2), False),
        (revision("new", 3), False),
        (revision("new", 2, desired=3), False),
        (None, False),
    ],
)
def test_the_new_one_is_saturated_when_all_its_pods_are_available(new: Object | None, expected: bool) -> None:
    assert is_saturated(deployment(3), new) is expected


def test_an_annotation_that_is_no_number_is_none() -> None:
    found = revision("new", 1)
    found["metadata"]["annotations"]["n"] = "many"
    assert annotated(found, "n") is None
