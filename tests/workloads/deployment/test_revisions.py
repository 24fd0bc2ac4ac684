"""The ReplicaSets of a Deployment as its revisions: tables of deployment_util_test.go and sync_test.go."""

from __future__ import annotations

from typing import Any

from noxu.values import Object
from noxu.workloads.deployment.revisions import (
    HASH,
    HISTORY,
    MAX_HISTORY,
    REVISION,
    find_new,
    new_replica_set,
    next_revision,
    superfluous,
    template_hash,
    with_revision,
    with_sizes,
)
from tests.rows import rows
from tests.workloads.deployments import deployment, revision
from tests.workloads.replicas import ago, template

NEW = revision("hash", 1, image="nginx", age=60)
SAME = revision("other-hash", 1, image="nginx", age=120)
OLD = revision("old", 1)


@rows(
    "situation, found, expected",
    [
        ("one has the template", [OLD, NEW], "hash"),
        ("two have the template: the older one", [NEW, SAME, OLD], "other-hash"),
        ("none has the template", [OLD], None),
        ("there is none", [], None),
    ],
)
def test_the_new_one_has_the_template_of_the_deployment(
    situation: str, found: list[Object], expected: str | None
) -> None:
    new = find_new(deployment(), found)
    assert (new and new["metadata"]["name"]) == expected, situation


SAME_BUT: list[tuple[str, Object, bool]] = [
    ("the hash", {"metadata": {"labels": {"app": "web", HASH: "x"}}}, True),
    ("an empty field of the metadata", {"metadata": {"labels": {"app": "web"}, "annotations": {}}}, True),
    ("a label", {"metadata": {"labels": {"app": "web", "a": "b"}}}, False),
    ("an annotation", {"metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}}}, False),
    ("an image", {"spec": {"containers": [{"name": "c", "image": "other"}]}}, False),
]


@rows("difference, change, expected", SAME_BUT)
def test_templates_are_the_same_but_for_their_hash(difference: str, change: Object, expected: bool) -> None:
    found = revision("a", 1, image="nginx")
    found["spec"]["template"] = {**template(), **change}
    assert (find_new(deployment(), [found]) is not None) is expected, difference


def test_a_hash_changes_with_the_template_and_with_collisions() -> None:
    hashes = [
        template_hash(template(), None),
        template_hash(template(), None),
        template_hash(template(), 0),
        template_hash(template(), 1),
        template_hash(template("other"), None),
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 4
    assert all(set(found) <= set("bcdfghjklmnpqrstvwxz2456789") for found in hashes)


def test_a_new_one_has_the_hash_in_its_name_labels_selector_and_template() -> None:
    made = new_replica_set(deployment(spec={"minReadySeconds": 5}), None)
    digest = template_hash(template(), None)
    labels = {"app": "web", HASH: digest}
    assert made["metadata"]["name"] == f"web-{digest}"
    assert made["metadata"]["labels"] == labels
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-web"
    assert made["spec"]["selector"] == {"matchLabels": labels}
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["spec"]["minReadySeconds"] == 5
    assert find_new(deployment(), [made]) is made


def test_a_long_name_leaves_room_for_the_hash() -> None:
    named = deployment(metadata={"name": "a" * 253})
    assert len(new_replica_set(named, None)["metadata"]["name"]) == 253


# -- annotations ------------------------------------------------------------------------------------------------------


def test_a_new_one_gets_the_annotations_of_the_deployment_but_for_some() -> None:
    given = {"a": "b", REVISION: "9", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    made = new_replica_set(deployment(metadata={"annotations": given}), None)
    found = with_revision(deployment(metadata={"annotations": given}), made, 3)
    assert found["metadata"]["annotations"] == {"a": "b", REVISION: "3"}


LONG = ",".join(str(number) for number in range(100_000, 100_001 + MAX_HISTORY // 7))

HISTORIES: list[tuple[str, Any, int, Any]] = [
    ("the first revision", {}, 1, {REVISION: "1"}),
    ("the same revision", {REVISION: "2"}, 2, {REVISION: "2"}),
    ("a higher one is kept", {REVISION: "5"}, 2, {REVISION: "5"}),
    ("the Deployment comes back", {REVISION: "1"}, 3, {REVISION: "3", HISTORY: "1"}),
    ("again", {REVISION: "3", HISTORY: "1"}, 5, {REVISION: "5", HISTORY: "1,3"}),
    ("9 is less than 10", {REVISION: "9"}, 10, {REVISION: "10", HISTORY: "9"}),
    ("one that is no number is left alone", {REVISION: "a"}, 2, {REVISION: "a"}),
    ("a history that is too long", {REVISION: "7", HISTORY: LONG}, 8, {REVISION: "8", HISTORY: f"{LONG[7:]},7"}),
]


@rows("situation, before, number, after", HISTORIES)
def test_revisions_have_a_history(situation: str, before: dict[str, str], number: int, after: dict[str, str]) -> None:
    found = revision("a", 1)
    found["metadata"]["annotations"] = before
    assert with_revision(deployment(), found, number)["metadata"]["annotations"] == after, situation


def test_the_next_revision_is_one_more_than_the_highest() -> None:
    broken = revision("c", 1)
    broken["metadata"]["annotations"][REVISION] = "many"
    assert next_revision([]) == 1
    assert next_revision([revision("a", 1, number=9), revision("b", 1, number=10), broken]) == 11


def test_a_size_is_noted_with_that_of_the_deployment() -> None:
    sized = with_sizes(revision("a", 1), 4, deployment(10, 3))
    assert sized["spec"]["replicas"] == 4
    assert sized["metadata"]["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "10",
        "deployment.kubernetes.io/max-replicas": "13",
    }


# -- clean-up ---------------------------------------------------------------------------------------------------------


def idle(name: str, number: int, **more: Any) -> Object:
    return revision(name, 0, number=number, **more)


ENDING = idle("a", 1)
ENDING["metadata"]["deletionTimestamp"] = ago(0)
UNSEEN = idle("a", 1, observedGeneration=1)
UNSEEN["metadata"]["generation"] = 2

CLEANED: list[tuple[str, list[Object], int | None, list[str]]] = [
    ("one is kept", [idle("a", 3), idle("b", 1), idle("c", 2)], 1, ["b", "c"]),
    ("10 is later than 9", [idle("a", 10), idle("b", 9)], 1, ["b"]),
    (
        "those with pods stay",
        [idle("a", 1), idle("b", 2, has=1), revision("c", 1, number=3, has=0), revision("d", 1, number=4)],
        0,
        ["a"],
    ),
    ("none is kept", [idle("a", 1), idle("b", 2)], 0, ["a", "b"]),
    ("those that are used stay", [revision("a", 1), revision("b", 1)], 0, []),
    ("one that is being deleted", [ENDING], 0, []),
    ("one whose size its controller has not seen", [UNSEEN], 0, []),
    ("there is no limit", [idle("a", 1), idle("b", 2)], 2**31 - 1, []),
    ("no limit is given", [idle("a", 1)], None, []),
]


@rows("situation, old, limit, expected", CLEANED)
def test_old_revisions_are_deleted(situation: str, old: list[Object], limit: int | None, expected: list[str]) -> None:
    given = deployment(spec={"revisionHistoryLimit": limit})
    assert [found["metadata"]["name"] for found in superfluous(given, old)] == expected, situation
