"""Snapshots over HTTP: taken, listed, deleted, restored; what a restore does to watches, controllers and other writers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.control.running import Control
from noxu.control.settling import settled
from noxu.control.snapshots import Snapshots
from noxu.testing.handle import Noxu
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Conflict, Corrupt, Key, OutcomeUnknown, StoreError, Unavailable
from tests.definitions import version, widgets
from tests.hostile.raw_http import JSON, Target


def call(noxu: Noxu, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    sent = b"" if body is None else json.dumps(body).encode()
    reply = Target(noxu.url).send(method, f"/_noxu/snapshots{path}", sent, {"Content-Type": JSON} if sent else {})
    return reply.status, json.loads(reply.body)


def config_map(name: str = "a", **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def widget(name: str = "a", **spec: Any) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


WIDGETS = widgets(version({"type": "object", "x-kubernetes-preserve-unknown-fields": True}))


def bare(value: Object) -> Object:
    return {**value, "metadata": {**value["metadata"], "resourceVersion": ""}}


# -- taking, listing and deleting --------------------------------------------------------------------------------------


def test_a_snapshot_is_taken_listed_and_deleted(noxu: Noxu) -> None:
    code, taken = call(noxu, "POST", "", {"name": "base"})
    assert (code, taken["name"]) == (201, "base")
    assert set(taken) == {"name", "revision", "time", "keys"}
    noxu.apply(config_map())
    code, second = call(noxu, "POST", "")
    assert (code, second["name"]) == (201, f"snapshot-{second['revision']}")
    assert second["keys"] == taken["keys"] + 1
    assert call(noxu, "GET", "") == (200, {"items": [taken, second]})
    assert call(noxu, "GET", "/base") == (200, taken)
    assert call(noxu, "DELETE", "/base") == (200, taken)
    assert call(noxu, "GET", "") == (200, {"items": [second]})


def test_a_name_is_taken_once(noxu: Noxu) -> None:
    _, taken = call(noxu, "POST", "", {"name": "base"})
    code, status = call(noxu, "POST", "", {"name": "base"})
    assert (code, status["reason"]) == (409, "AlreadyExists")
    assert status["message"] == (
        f"there is a snapshot 'base' already, of {taken['time']}: delete it, or choose another name"
    )


@pytest.mark.parametrize("name", ["5", "-5m", "2026-01-01T00:00:00Z", "a/b", "a b", "é", "a" * 64])
def test_a_name_that_could_be_something_else_is_refused(noxu: Noxu, name: str) -> None:
    code, status = call(noxu, "POST", "", {"name": name})
    assert code == 422
    assert "begins with a letter" in status["message"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/bse"), ("DELETE", "/bse"), ("POST", "/bse/restore")])
def test_an_unknown_snapshot_is_told_the_known_ones(noxu: Noxu, method: str, path: str) -> None:
    code, status = call(noxu, method, path)
    assert (code, status["reason"], status["message"]) == (404, "NotFound", "there is no snapshot 'bse': there is none")
    call(noxu, "POST", "", {"name": "base"})
    call(noxu, "POST", "", {"name": "later"})
    code, status = call(noxu, method, path)
    assert (code, status["message"]) == (
        404,
        "there is no snapshot 'bse': there are base, later; did you mean base?",
    )


def test_a_snapshot_of_a_data_directory_survives_a_restart(tmp_path: Path) -> None:
    with Noxu(data=tmp_path) as noxu:
        noxu.apply(config_map(size="1"))
        taken = call(noxu, "POST", "", {"name": "base"})[1]
        noxu.apply(config_map(size="2"))
    with Noxu(data=tmp_path) as noxu:
        assert call(noxu, "GET", "/base") == (200, taken)
        assert call(noxu, "POST", "/base/restore")[0] == 200
        assert noxu.get("configmaps", "a")["data"] == {"size": "1"}


# -- restoring ---------------------------------------------------------------------------------------------------------


def test_a_restore_deletes_creates_and_changes(noxu: Noxu) -> None:
    kept, gone = noxu.create(config_map("kept", size="1")), noxu.create(config_map("gone"))
    call(noxu, "POST", "", {"name": "base"})
    [changed] = noxu.apply(config_map("kept", size="2"))
    noxu.delete("configmaps", "gone")
    noxu.apply(config_map("new"))
    code, restored = call(noxu, "POST", "/base/restore")
    assert (code, {name: restored[name] for name in ("name", "deleted", "created", "changed")}) == (
        200, {"name": "base", "deleted": 1, "created": 1, "changed": 1},
    )  # fmt: skip
    with pytest.raises(ApiError, match="not found"):
        noxu.get("configmaps", "new")
    for before in (kept, gone):
        after = noxu.get(before)
        assert bare(after) == bare(before)
        assert int(after["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


def test_a_restore_without_changes_changes_nothing(noxu: Noxu) -> None:
    before = noxu.create(config_map())
    call(noxu, "POST", "", {"name": "base"})
    for _ in range(2):
        _, restored = call(noxu, "POST", "/base/restore")
        assert (restored["deleted"], restored["created"], restored["changed"]) == (0, 0, 0)
    assert noxu.get("configmaps", "a") == before


def test_a_snapshot_can_be_restored_again_and_again(noxu: Noxu) -> None:
    """It moves to the revision of the restore, so that each restore reads only what came after the one before."""
    noxu.apply(config_map(size="1"))
    call(noxu, "POST", "", {"name": "base"})
    for number in range(3):
        noxu.apply(config_map(size=f"after {number}"))
        _, restored = call(noxu, "POST", "/base/restore")
        assert call(noxu, "GET", "/base")[1]["revision"] == restored["revision"]
        assert noxu.get("configmaps", "a")["data"] == {"size": "1"}


def test_an_older_snapshot_can_be_restored_after_a_newer_one(noxu: Noxu) -> None:
    for number in "12":
        noxu.apply(config_map(size=number))
        call(noxu, "POST", "", {"name": f"v{number}"})
    for number in ("1", "2", "1"):
        call(noxu, "POST", f"/v{number}/restore")
        assert noxu.get("configmaps", "a")["data"] == {"size": number}
    assert {item["name"] for item in call(noxu, "GET", "")[1]["items"]} == {"v1", "v2"}


def test_watches_stay_open_and_see_what_changes(noxu: Noxu) -> None:
    noxu.apply(config_map("kept", size="1"), config_map("gone"), config_map("other"))
    call(noxu, "POST", "", {"name": "base"})
    noxu.apply(config_map("kept", size="2"), config_map("new"))
    noxu.delete("configmaps", "gone")
    noxu.delete("configmaps", "other")
    other = noxu.create(config_map("other"))
    with noxu.watch("configmaps", namespace="default", since=other["metadata"]["resourceVersion"]) as watch:
        call(noxu, "POST", "/base/restore")
        noxu.apply(config_map("end"))
        seen = []
        while not seen or seen[-1][1] != "end":
            event = next(watch)
            seen.append((event.type, event.object["metadata"]["name"]))
    assert sorted(seen) == [
        ("ADDED", "end"), ("ADDED", "gone"), ("ADDED", "other"), ("DELETED", "new"), ("DELETED", "other"), ("MODIFIED", "kept"),
    ]  # fmt: skip
    assert seen.index(("DELETED", "other")) < seen.index(("ADDED", "other"))


def test_neither_finalizers_nor_admission_nor_quotas_hold_it_up(noxu: Noxu) -> None:
    call(noxu, "POST", "", {"name": "base"})
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/never"]
    noxu.apply(held)

    @noxu.validating("configmaps", operations=["DELETE"])
    def refuse(_request: Any) -> None:
        raise AssertionError("it is asked")

    call(noxu, "POST", "/base/restore")
    with pytest.raises(ApiError, match="not found"):
        noxu.get("configmaps", "held")


# -- definitions, namespaces, controllers ------------------------------------------------------------------------------


def test_a_definition_that_was_deleted_is_served_again_with_its_objects(noxu: Noxu) -> None:
    definition, before = noxu.create(WIDGETS), noxu.create(widget(size=1))
    call(noxu, "POST", "", {"name": "base"})
    definition = noxu.get(definition)
    noxu.delete(definition)
    noxu.wait(definition, "delete")
    call(noxu, "POST", "/base/restore")
    assert bare(noxu.get(before)) == bare(before)
    assert bare(noxu.get(definition)) == bare(definition)


def test_controllers_go_on_when_definitions_are_served(noxu: Noxu) -> None:
    """That of APIServices deletes those of group versions that are not served: they are, when it sees that its own are back."""
    large = "read in a thread, which takes longer than to read an APIService. " * 1000
    noxu.create(widgets(version({"type": "object", "description": large})))
    before = noxu.wait("apiservices", "v1.example.com", "create")
    noxu.snapshot("base")
    for _ in range(5):
        noxu.delete("customresourcedefinitions", "widgets.example.com")
        noxu.wait(before, "delete")
        noxu.restore("base")
        noxu._call(settled(noxu._server.plane.all_controllers))
        assert bare(noxu.get(before)) == bare(before)


def test_a_definition_that_was_deleted_a_moment_ago_is_not_deleted_further(noxu: Noxu) -> None:
    definition = noxu.create(WIDGETS)
    before = [noxu.create(widget(f"w{number}")) for number in range(20)]
    call(noxu, "POST", "", {"name": "base"})
    for _ in range(5):
        noxu.delete(definition)
        call(noxu, "POST", "/base/restore")
        assert [bare(noxu.get(each)) for each in before] == [bare(each) for each in before]
        assert "deletionTimestamp" not in noxu.get(definition)["metadata"]


def test_another_definition_of_the_name_makes_way(noxu: Noxu) -> None:
    before = noxu.create(WIDGETS), noxu.create(widget(size=1))
    call(noxu, "POST", "", {"name": "base"})
    noxu.delete(before[0])
    noxu.wait(before[0], "delete")
    other = noxu.create(widgets(version({"type": "object", "properties": {"spec": {"type": "object"}}})))
    noxu.apply(widget("b"))
    call(noxu, "POST", "/base/restore")
    assert noxu.get(before[0])["metadata"]["uid"] == before[0]["metadata"]["uid"] != other["metadata"]["uid"]
    assert [bare(each) for each in noxu.list("widgets")] == [bare(before[1])]


def test_a_definition_that_came_since_is_withdrawn(noxu: Noxu) -> None:
    call(noxu, "POST", "", {"name": "base"})
    noxu.apply(WIDGETS, widget())
    call(noxu, "POST", "/base/restore")
    reply = Target(noxu.url).send("GET", "/apis/example.com/v1/widgets", b"", {})
    assert reply.status == 404
    noxu.apply(WIDGETS)
    assert noxu.list("widgets") == []


def test_a_namespace_that_is_being_deleted_is_whole_again(noxu: Noxu) -> None:
    noxu.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    inside = [noxu.create({**config_map(f"c{number}")}, namespace="x") for number in range(20)]
    call(noxu, "POST", "", {"name": "base"})
    for _ in range(5):
        noxu.delete("namespaces", "x")
        call(noxu, "POST", "/base/restore")
        assert noxu.get("namespaces", "x")["status"] == {"phase": "Active"}
        assert [bare(noxu.get(each)) for each in inside] == [bare(each) for each in inside]
    noxu.delete("namespaces", "x")
    noxu.wait("namespaces", "x", "delete")


def test_what_the_garbage_collector_was_about_to_delete_stays_with_its_owner(noxu: Noxu) -> None:
    """It has seen the deletion of the owner, and is interrupted before it has deleted all dependents."""
    owner = noxu.create(config_map("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    dependents = [config_map(f"d{number}") for number in range(100)]
    for each in dependents:
        each["metadata"]["ownerReferences"] = [reference]
    before = [noxu.create(each) for each in dependents]
    noxu.snapshot("base")
    plane, snapshots = noxu._server.plane, noxu._server.control.part(Snapshots)

    async def delete_and_restore() -> None:
        key = Key("/configmaps", "default/", "owner")
        state = await plane.store.get(key)
        assert state is not None
        await plane.cache.reached(await plane.store.delete(key, expected=state.revision))
        await snapshots.restore("base")
        await settled(plane.all_controllers)

    for _ in range(3):
        noxu._call(delete_and_restore())
        assert [bare(noxu.get(each)) for each in before] == [bare(each) for each in before]
    noxu.delete(owner)
    for each in before:
        noxu.wait(each, "delete")


def test_the_addresses_of_services_go_back_to_them(noxu: Noxu) -> None:
    def service(name: str) -> Object:
        ports = [{"port": 80}]
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name},
            "spec": {"type": "NodePort", "ports": ports},
        }

    before = noxu.create(service("a"))
    call(noxu, "POST", "", {"name": "base"})
    noxu.delete(before)
    taken = service("b")
    taken["spec"] |= {"clusterIP": before["spec"]["clusterIP"]}
    taken["spec"]["ports"][0]["nodePort"] = before["spec"]["ports"][0]["nodePort"]
    noxu.create(taken)
    call(noxu, "POST", "/base/restore")
    assert bare(noxu.get(before)) == bare(before)
    with pytest.raises(ApiError, match="already allocated"):
        noxu.create(taken)
    assert noxu.create(service("c"))["spec"]["clusterIP"] != before["spec"]["clusterIP"]


def test_a_token_is_valid_again_with_its_account(noxu: Noxu) -> None:
    def ask(path: str, value: Object) -> Any:
        return json.loads(Target(noxu.url).send("POST", path, json.dumps(value).encode(), {"Content-Type": JSON}).body)[
            "status"
        ]

    def is_valid() -> bool:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        return bool(ask("/apis/authentication.k8s.io/v1/tokenreviews", review).get("authenticated"))

    noxu.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = ask("/api/v1/namespaces/default/serviceaccounts/robot/token", request)["token"]
    noxu.snapshot("base")
    noxu.delete("serviceaccounts", "robot")
    assert not is_valid()
    noxu.restore("base")
    assert is_valid()


def test_a_list_in_pages_goes_on_with_what_it_has_begun(noxu: Noxu) -> None:
    def page(token: str = "") -> Any:
        query = f"limit=2{f'&continue={token}' if token else ''}"
        path = f"/api/v1/namespaces/default/configmaps?{query}"
        return json.loads(Target(noxu.url).send("GET", path, b"", {}).body)

    noxu.snapshot("base")
    for name in "abcd":
        noxu.create(config_map(name))
    first = page()
    noxu.restore("base")
    second = page(first["metadata"]["continue"])
    assert [item["metadata"]["name"] for item in first["items"] + second["items"]] == ["a", "b", "c", "d"]
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def test_an_object_that_was_written_by_an_older_definition_is_read_by_it_again(noxu: Noxu) -> None:
    """Its version is no longer served, and its field pruned, until the definition is restored, too."""
    old = widgets({**version({"type": "object", "properties": {"old": {"type": "string"}}}), "name": "v1"})
    noxu.create(old)
    before = noxu.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "old": "kept"})
    noxu.snapshot("base")
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"new": {"type": "string"}}}}
    noxu.patch("customresourcedefinitions", "widgets.example.com", {"spec": {"versions": [
        {"name": "v1", "served": True, "storage": False, "schema": schema}, {"name": "v2", "served": True, "storage": True, "schema": schema},
    ]}})  # fmt: skip
    noxu.patch("widgets", "a", {"new": "value"})
    assert "old" not in noxu.get("widgets", "a")
    assert noxu.restore("base")["changed"] == 2
    assert bare(noxu.get("widgets", "a")) == bare(before)
    assert Target(noxu.url).send("GET", "/apis/example.com/v2/widgets", b"", {}).status == 404


def test_rules_apply_when_it_is_answered() -> None:
    with Noxu(authorization_modes=["RBAC"], users=["jane"]) as noxu:
        jane = noxu.users["jane"]
        with pytest.raises(ApiError, match="forbidden"):
            jane.list("configmaps")
        noxu.snapshot("base")
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
        subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]
        noxu.apply({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "jane"},
            "roleRef": role, "subjects": subjects,
        })  # fmt: skip
        jane.list("configmaps")
        noxu.restore("base")
        with pytest.raises(ApiError, match="forbidden"):
            jane.list("configmaps")


# -- other writers -----------------------------------------------------------------------------------------------------


async def test_writers_conflict_and_go_on(noxu: Noxu) -> None:
    """Clients that count up while the snapshot is restored again and again: none is refused, and none has a state from before."""
    await noxu.create(config_map("n", number="0"))
    await noxu.snapshot("base")
    is_done = False

    async def count() -> int:
        conflicts = 0
        while not is_done:
            value = await noxu.get("configmaps", "n")
            value["data"]["number"] = str(int(value["data"]["number"]) + 1)
            try:
                await noxu.update(value)
            except ApiError as error:
                if error.code != 409:
                    raise
                conflicts += 1
        return conflicts

    writers = [asyncio.create_task(count()) for _ in range(4)]
    for _ in range(20):
        restored = await noxu.restore("base")
        value = await noxu.get("configmaps", "n")
        changes = int(value["metadata"]["resourceVersion"]) - restored["revision"]
        assert int(value["data"]["number"]) <= max(changes, 0)
        await asyncio.sleep(0.005)
    is_done = True
    await asyncio.gather(*writers)


async def test_of_two_restores_at_the_same_time_the_second_counts(noxu: Noxu) -> None:
    for number in "12":
        await noxu.apply(config_map(size=number))
        await noxu.snapshot(f"v{number}")
    await asyncio.gather(noxu.restore("v2"), noxu.restore("v1"), noxu.restore("v2"), noxu.restore("v1"))
    assert (await noxu.get("configmaps", "a"))["data"] == {"size": "1"}


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (Unavailable("the disk is full"), 500, "the snapshot 'base' cannot be restored, the disk is full: nothing has changed"),
        (OutcomeUnknown("no answer"), 500, "whether the snapshot 'base' is restored is not known, no answer: restore it again"),
        (Corrupt("bad"), 500, "the snapshot 'base' cannot be restored, bad: nothing has changed"),
        (Conflict(None, None), 409, "the snapshot 'base' cannot be restored: other servers write all the time; restore it again"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_a_failure_says_what_has_changed(
    noxu: Noxu, monkeypatch: pytest.MonkeyPatch, error: StoreError, code: int, text: str
) -> None:
    call(noxu, "POST", "", {"name": "base"})
    before = noxu.create(config_map())

    async def fail(*_: Any) -> int:
        raise error

    monkeypatch.setattr(MemoryStore, "transact", fail)
    answered, status = call(noxu, "POST", "/base/restore")
    assert (answered, status["message"]) == (code, text)
    monkeypatch.undo()
    assert noxu.get(before) == before
    noxu.apply(WIDGETS)  # controllers go on
    assert call(noxu, "POST", "/base/restore")[0] == 200


def test_history_that_another_program_has_compacted_is_gone(noxu: Noxu, monkeypatch: pytest.MonkeyPatch) -> None:
    call(noxu, "POST", "", {"name": "base"})
    noxu.apply(config_map())

    async def compact() -> None:
        store = noxu._server.plane.store
        monkeypatch.setattr("noxu_storage.memory.TAIL", 0, raising=False)
        store._log.compacted = store.revision  # type: ignore[attr-defined]
        store._log.trim(store.revision)  # type: ignore[attr-defined]
        store._log._start = store.revision  # type: ignore[attr-defined]

    noxu._call(compact())
    code, status = call(noxu, "POST", "/base/restore")
    assert (code, status["reason"]) == (410, "Expired")
    assert status["message"].startswith(
        "the snapshot 'base' cannot be restored: another program has compacted its history"
    )


def test_a_server_that_takes_no_snapshot_has_no_snapshots(noxu: Noxu) -> None:
    assert isinstance(noxu._server.control, Control)
    assert not noxu._server.control._parts
    assert Snapshots not in noxu._server.control._parts
