"""Owners of replicas, seen through /scale."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.apply.fieldset import Path
from noxu.apply.manager import apply, update
from noxu.apply.tracker import TRACKER, VERSION, path_of, to_parent, to_scale
from tests.apply.widgets import BEFORE, NOW, V1, V2, V9, owns

PATHS: dict[str, Path | None] = {V1: path_of(".spec.replicas"), V2: None}
REPLICAS = {"f:spec": {"f:replicas": {}}}
BOTH = {"f:spec": {"f:a": {}, "f:replicas": {}}}
A = {"f:spec": {"f:a": {}}}


def seen(manager: str, **more: Any) -> dict[str, Any]:
    return owns(manager, REPLICAS, version=VERSION, **more)


def test_a_path_is_split_at_dots() -> None:
    assert path_of(".spec.some.replicas") == ("f:spec", "f:some", "f:replicas")


SEEN: list[tuple[str, list[Any], list[Any]]] = [
    ("who owns replicas", [owns("apply m", BOTH, time=BEFORE)], [seen("apply m", time=BEFORE)]),
    ("no other manager", [owns("apply m", A)], []),
    ("an owner of spec, but not of replicas", [owns("apply m", {"f:spec": {}})], []),
    (
        "an updater of a subresource",
        [owns("update m", REPLICAS, subresource="scale")],
        [seen("update m", subresource="scale")],
    ),
    ("no manager at a version without /scale", [owns("apply m", REPLICAS, version=V2)], []),
    ("no manager at a removed version", [owns("apply m", REPLICAS, version=V9)], []),
]


@pytest.mark.parametrize(("entries", "expected"), [row[1:] for row in SEEN], ids=[row[0] for row in SEEN])
def test_the_entries_of_a_scale(entries: list[Any], expected: list[Any]) -> None:
    assert to_scale(entries, PATHS) == expected


def test_replicas_may_be_at_another_path() -> None:
    paths: dict[str, Path | None] = {V1: path_of(".spec.size.n")}
    entries = [owns("apply m", {"f:spec": {"f:size": {"f:n": {}}}})]
    assert to_scale(entries, paths) == [seen("apply m")]
    assert to_parent([], [seen("apply m")], V1, paths) == entries


WRITTEN: list[tuple[str, list[Any], list[Any], list[Any]]] = [
    # name, entries of the parent before, of the scale after, of the parent after
    ("a new owner", [owns("apply m", A)], [seen("update s", time=NOW, subresource="scale")],
     [owns("apply m", A), owns("update s", REPLICAS, subresource="scale")]),
    ("who applies stays one", [owns("apply m", BOTH, time=BEFORE)], [seen("apply m", time=BEFORE)], [owns("apply m", BOTH, time=BEFORE)]),
    ("a manager that loses replicas keeps the rest", [owns("apply m", BOTH, time=BEFORE)], [], [owns("apply m", A, time=BEFORE)]),
    ("a manager that loses its only field is removed", [owns("apply m", REPLICAS)], [], []),
    ("an updater becomes two", [owns("update m", BOTH, time=BEFORE)], [seen("update m", time=BEFORE)],
     [owns("update m", REPLICAS), owns("update m", A, time=BEFORE)]),
    ("an updater of nothing else loses its time", [owns("update m", REPLICAS, time=BEFORE)], [seen("update m", time=BEFORE)],
     [owns("update m", REPLICAS)]),
    ("others stay", [owns("apply m", A, time=BEFORE), owns("apply n", A, version=V2)], [], [owns("apply n", A, version=V2), owns("apply m", A, time=BEFORE)]),
    ("versions that are gone go", [owns("apply m", A, version=V9)], [], []),
    ("an owner of something else in a scale", [], [owns("apply m", {"f:spec": {}}, version=VERSION)], []),
]  # fmt: skip


@pytest.mark.parametrize(("before", "scale", "after"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN])
def test_the_entries_after_a_write_to_scale(before: list[Any], scale: list[Any], after: list[Any]) -> None:
    assert to_parent(before, scale, V1, PATHS) == after


def scale(replicas: int, entries: list[Any] | None = None, **metadata: Any) -> dict[str, Any]:
    more = {"managedFields": entries} if entries is not None else {}
    return {
        "apiVersion": VERSION,
        "kind": "Scale",
        "metadata": {"name": "w", **more, **metadata},
        "spec": {"replicas": replicas},
    }


def test_an_update_of_a_scale() -> None:
    old = scale(3, to_scale([owns("update m", BOTH)], PATHS), uid="u")
    new = update(old, scale(4, uid="u"), TRACKER, manager="s", now=NOW)
    assert new["metadata"]["managedFields"] == [seen("update s", time=NOW, subresource="scale")]
    assert to_parent([owns("update m", BOTH)], new["metadata"]["managedFields"], V1, PATHS) == [
        owns("update m", A),
        owns("update s", REPLICAS, subresource="scale"),
    ]


def test_without_an_owner_of_replicas_nothing_is_tracked() -> None:
    new = update(scale(3, uid="u"), scale(4, uid="u"), TRACKER, manager="s", now=NOW)
    assert "managedFields" not in new["metadata"]


def test_applying_a_scale() -> None:
    entries = [owns("update s", REPLICAS, subresource="scale")]
    old = scale(3, to_scale(entries, PATHS), uid="u")
    with pytest.raises(ApiError) as error:
        apply(old, scale(4), TRACKER, manager="m", now=NOW)
    assert error.value.message == (
        'Apply failed with 1 conflict: conflict with "s" with subresource "scale" using autoscaling/v1: .spec.replicas'
    )
    forced = apply(old, scale(4), TRACKER, manager="m", force=True, now=NOW).value
    assert forced["spec"] == {"replicas": 4}
    assert to_parent(entries, forced["metadata"]["managedFields"], V1, PATHS) == [
        owns("apply m", REPLICAS, subresource="scale")
    ]
