"""How a controller gets and loses objects (controller_ref_manager_test.go)."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads.objects import PODS, controller_of
from noxu.workloads.ownership import claim, claimed, owner_reference, selects
from noxu.workloads.writes import Write
from tests.rows import rows
from tests.workloads.plays import Play
from tests.workloads.replicas import LABELS, ago, pod, replica_set

OWNER, OTHER = replica_set(name="owner"), replica_set(name="other")
ENDING: Object = {"deletionTimestamp": ago(0), "finalizers": ["a/b"]}
ENDING_OWNER = replica_set(name="owner", metadata=ENDING)
ELSE: Object = {"labels": {"app": "other"}}


def selected(value: Object) -> bool:
    return selects({"matchLabels": dict(LABELS)}, value)


@rows(
    "situation, owner, value, expected",
    [
        ("its own is kept", OWNER, pod("a", OWNER), ("a", "", "")),
        ("its own with other labels is released", OWNER, pod("a", OWNER, metadata=ELSE), ("", "", "a")),
        ("an orphan is adopted", OWNER, pod("a"), ("", "a", "")),
        ("an orphan with other labels is ignored", OWNER, pod("a", metadata=ELSE), ("", "", "")),
        ("an orphan that is being deleted is ignored", OWNER, pod("a", metadata=ENDING), ("", "", "")),
        ("that of another owner is ignored", OWNER, pod("a", OTHER), ("", "", "")),
        ("an owner that is being deleted keeps its own", ENDING_OWNER, pod("a", OWNER), ("a", "", "")),
        ("and does not release", ENDING_OWNER, pod("a", OWNER, metadata=ELSE), ("", "", "")),
        ("and does not adopt", ENDING_OWNER, pod("a"), ("", "", "")),
    ],
)
def test_objects_are_kept_adopted_and_released(
    situation: str, owner: Object, value: Object, expected: tuple[str, str, str]
) -> None:
    kept, adopted, released = claim(PODS, [value], owner, selected)
    values = (kept, [one.value for one in adopted], [one.value for one in released])
    assert tuple("".join(one["metadata"]["name"] for one in part) for part in values) == expected, situation


def test_an_adopted_object_keeps_its_other_owners() -> None:
    shared: Object = {"ownerReferences": [{"kind": "Other", "name": "o", "uid": "u"}]}
    [adopted] = claim(PODS, [pod("a", metadata=shared)], OWNER, selected).adopted
    assert adopted.value["metadata"]["ownerReferences"] == [*shared["ownerReferences"], owner_reference(OWNER)]
    [released] = claim(PODS, [adopted.value], OWNER, lambda _: False).released
    assert released.value["metadata"]["ownerReferences"] == shared["ownerReferences"]


@rows(
    "selector, expected",
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "other"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "Nonsense"}]}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_selector_that_is_empty_or_invalid_selects_nothing(selector: Object | None, expected: bool) -> None:
    assert selects(selector, pod("a")) is expected


# -- carried out ------------------------------------------------------------------------------------------------------


def carry_out(play: Play) -> list[str]:
    found: list[str] = []

    def steps(objects: Any, key: Any, now: Any) -> Any:
        owned = yield from claimed(PODS, objects.all(PODS), OWNER, selected)
        found.extend(one["metadata"]["name"] for one in owned)
        return None

    play.run(steps, "default/owner")
    return found


def refused(reason: str) -> Play:
    def refuse(write: Write) -> ApiError:
        return ApiError(400, reason, reason)

    return Play((PODS, pod("a")), (PODS, pod("b", OWNER)), (PODS, pod("c", OWNER, metadata=ELSE)), refuse=refuse)


def test_what_it_owns_then_is_kept_or_adopted() -> None:
    play = Play((PODS, pod("a")), (PODS, pod("b", OWNER)), (PODS, pod("c", OWNER, metadata=ELSE)))
    assert carry_out(play) == ["b", "a"]
    assert play.done() == ["update pods a", "update pods c"]
    assert controller_of(play.get(PODS, "default/c")) is None


def test_what_is_gone_meanwhile_is_not_owned() -> None:
    assert carry_out(refused("NotFound")) == ["b"]


def test_what_changed_meanwhile_is_looked_at_again() -> None:
    with pytest.raises(ApiError, match="Conflict"):
        carry_out(refused("Conflict"))
