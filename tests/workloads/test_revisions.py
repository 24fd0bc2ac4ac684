"""ControllerRevisions: names, numbers, equal ones, adoption and history. Situations of upstream's controller_history_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.values import Object, copy
from noxu.workloads import revisions
from noxu.workloads.objects import REVISIONS, STATEFUL_SETS, Objects
from noxu.workloads.writes import Create, Delete, NamespacedName, Replace, Steps
from tests.rows import rows
from tests.workloads.plays import NOW, Play

OWNER: Object = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "web", "namespace": "default", "uid": "u", "annotations": {"note": "first"}},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "a<b"}]}},
    },
}


def revision(number: int, name: str = "", *, owned: bool = True, **metadata: Any) -> Object:
    made = revisions.new_revision(OWNER, number, name or str(number), revisions.HASH)
    made["metadata"] |= metadata
    if not owned:
        del made["metadata"]["ownerReferences"]
    return made


def test_a_revision_holds_a_patch_that_replaces_the_template() -> None:
    made = revisions.new_revision(OWNER, 3, "hash", revisions.HASH)
    assert made["data"] == {"spec": {"template": {**OWNER["spec"]["template"], "$patch": "replace"}}}
    assert made["metadata"]["labels"] == {"app": "web", "controller.kubernetes.io/hash": "hash"}
    assert made["metadata"]["annotations"] == {"note": "first"}
    assert (made["metadata"]["name"], made["revision"]) == ("web-hash", 3)
    assert revisions.template_of(made) == OWNER["spec"]["template"]
    assert revisions.has_template_of(made, OWNER)


@rows(
    "data, collisions, digest",
    [
        ({}, None, revisions.hash_of({}, None)),
        ({"spec": {"a": 1, "b": "x"}}, 0, revisions.hash_of({"spec": {"b": "x", "a": 1}}, 0)),
    ],
)
def test_the_order_of_fields_does_not_change_a_hash(data: Object, collisions: int | None, digest: str) -> None:
    assert revisions.hash_of(data, collisions) == digest


def test_a_hash_is_fnv_1_in_letters_without_vowels() -> None:
    code = 0x811C9DC5
    for byte in b"{}":
        code = (code * 0x01000193) % 2**32 ^ byte
    alphabet = "bcdfghjklmnpqrstvwxz2456789"
    assert revisions.hash_of({}, None) == "".join(alphabet[ord(digit) % 27] for digit in str(code))
    assert revisions.hash_of({}, 1) != revisions.hash_of({}, 0) != revisions.hash_of({}, None)


def test_the_name_of_a_revision_has_at_most_253_characters() -> None:
    long = {**OWNER, "metadata": {"name": "x" * 253}}
    assert revisions.name_of_revision(long, "1234567890") == "x" * 223 + "-1234567890"


@rows(
    "given, order",
    [
        ([(2, "b", "01"), (1, "a", "02")], ["web-a", "web-b"]),
        ([(1, "b", "02"), (1, "a", "03")], ["web-b", "web-a"]),
        ([(1, "b", "01"), (1, "a", "01")], ["web-a", "web-b"]),
    ],
    ids=["by their numbers", "equal numbers: by age", "equal ages: by name"],
)
def test_revisions_are_ordered(given: list[tuple[int, str, str]], order: list[str]) -> None:
    made = [revision(number, name, creationTimestamp=f"2026-01-{day}T00:00:00Z") for number, name, day in given]
    assert [one["metadata"]["name"] for one in revisions.in_order(made)] == order


@rows(
    "live, limit, deleted",
    [
        ((), 10, []),
        ((), 2, ["web-1"]),
        (("web-1",), 1, ["web-2"]),
        (("web-1", "web-3"), 0, ["web-2"]),
        ((), 0, ["web-1", "web-2", "web-3"]),
    ],
)
def test_the_oldest_revisions_that_are_not_live_are_deleted(
    live: tuple[str, ...], limit: int, deleted: list[str]
) -> None:
    known = [revision(1), revision(2), revision(3)]
    assert [delete.value["metadata"]["name"] for delete in revisions.surplus(known, live, limit)] == deleted
    assert all(isinstance(delete, Delete) for delete in revisions.surplus(known, live, limit))


def owned(objects: Objects, key: NamespacedName, now: object) -> Steps:
    yield from revisions.owned(objects, objects.get(STATEFUL_SETS, key) or {})
    return None


@rows(
    "found, owner, done",
    [
        (revision(1), {}, []),
        (revision(1, owned=False), {}, ["update controllerrevisions web-1"]),
        (revision(1, owned=False), {"deletionTimestamp": "2026-01-01T00:00:00Z"}, []),
        (revision(1, owned=False, deletionTimestamp="2026-01-01T00:00:00Z"), {}, []),
        (revision(1, owned=False, labels={"app": "other"}), {}, []),
        (revision(1, labels={"app": "other"}), {}, ["update controllerrevisions web-1"]),
        (revision(1, ownerReferences=[{"uid": "v", "kind": "StatefulSet", "name": "db", "controller": True}]), {}, []),
    ],
    ids=[
        "its own stays",
        "an orphan is adopted",
        "an owner that is being deleted adopts nothing",
        "an orphan that is being deleted is left alone",
        "an orphan that is not selected is left alone",
        "its own that is not selected is released",
        "that of another owner is left alone",
    ],
)
def test_revisions_are_adopted_and_released(found: Object, owner: Object, done: list[str]) -> None:
    play = Play((STATEFUL_SETS, {**OWNER, "metadata": {**OWNER["metadata"], **owner}}), (REVISIONS, found))
    play.run(owned, "default/web")
    assert play.done() == done


def create(objects: Objects, key: NamespacedName, now: object) -> Steps:
    owner = objects.get(STATEFUL_SETS, key) or {}
    made, collisions = yield from revisions.create(objects, owner, 1, revisions.HASH, 0)
    assert made["data"] == revisions.template_patch(owner)
    return float(collisions or 0)


def test_a_name_that_another_template_has_is_counted_as_a_collision() -> None:
    other = revision(1, revisions.hash_of(revisions.template_patch(OWNER), 0))
    other["data"] = {"spec": {"template": {"$patch": "replace"}}}
    play = Play((STATEFUL_SETS, OWNER), (REVISIONS, other))
    assert play.run(create, "default/web") == 1.0
    [write] = play.writes
    assert isinstance(write, Create)
    assert write.value["metadata"]["name"] == f"web-{revisions.hash_of(revisions.template_patch(OWNER), 1)}"


def test_an_equal_revision_of_that_name_is_taken() -> None:
    same = revision(1, revisions.hash_of(revisions.template_patch(OWNER), 0))
    play = Play((STATEFUL_SETS, OWNER), (REVISIONS, same))
    assert play.run(create, "default/web") == 0.0
    assert play.done() == []


@pytest.mark.parametrize(("number", "writes"), [(1, 0), (7, 1)])
def test_a_revision_is_renumbered_only_if_its_number_differs(number: int, writes: int) -> None:
    def steps(objects: Objects, key: NamespacedName, now: object) -> Steps:
        changed = yield from revisions.renumbered(revision(1, uid="r"), number)
        assert changed["revision"] == number
        return None

    play = Play((REVISIONS, copy(revision(1, uid="r"))))
    play.run(steps, "default/web-1")
    assert [type(write) for write in play.writes] == [Replace] * writes
    assert play.now == NOW
