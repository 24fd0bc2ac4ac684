"""Snapshots and rollbacks of the handle, in tests with and without a loop."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.definitions import widgets


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def named(listed: Iterable[Object]) -> set[str]:
    return {each["metadata"]["name"] for each in listed} - {"kube-root-ca.crt"}


def names(noxu: Noxu) -> set[str]:
    return named(noxu.list("configmaps", namespace="default"))


def test_a_snapshot_is_restored_by_its_name_or_as_it_is(noxu: Noxu) -> None:
    base = noxu.snapshot("base")
    assert (base["name"], set(base)) == ("base", {"name", "revision", "time", "keys"})
    assert noxu.snapshots() == [base]
    for snapshot in ("base", base):
        noxu.create(config_map("a"))
        assert noxu.restore(snapshot)["deleted"] == 1
        assert names(noxu) == set()
    noxu.delete_snapshot(base)
    with pytest.raises(ApiError, match="there is no snapshot 'base': there is none"):
        noxu.restore("base")


def test_a_block_is_rolled_back(noxu: Noxu) -> None:
    noxu.create(config_map("kept", size="1"))
    with noxu.rollback():
        noxu.apply(config_map("kept", size="2"), config_map("new"), widgets())
        noxu.delete("configmaps", "kube-root-ca.crt")
    assert names(noxu) == {"kept"}
    assert noxu.get("configmaps", "kept")["data"] == {"size": "1"}
    assert noxu.get("configmaps", "kube-root-ca.crt")
    assert noxu.snapshots() == []


def test_a_block_that_fails_is_rolled_back(noxu: Noxu) -> None:
    def fail() -> None:
        with noxu.rollback():
            noxu.create(config_map("new"))
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert names(noxu) == set()


def test_blocks_may_be_nested_and_a_rollback_used_again(noxu: Noxu) -> None:
    rollback = noxu.rollback()
    for _ in range(2):
        with rollback:
            noxu.create(config_map("outer"))
            with rollback:
                noxu.create(config_map("inner"))
                assert names(noxu) == {"outer", "inner"}
            assert names(noxu) == {"outer"}
        assert names(noxu) == set()


async def test_in_a_coroutine(noxu: Noxu) -> None:
    async with noxu.rollback():
        await noxu.create(config_map("a"))
        base = await noxu.snapshot()
        await noxu.delete("configmaps", "a")
        assert (await noxu.restore(base))["created"] == 1
        assert named(await noxu.list("configmaps", namespace="default")) == {"a"}
        assert len(await noxu.snapshots()) == 2
        await noxu.delete_snapshot(base)
    assert named(await noxu.list("configmaps", namespace="default")) == set()


def test_functions_of_the_block_are_called_no_longer(noxu: Noxu) -> None:
    noxu.apply(widgets())
    called: list[str] = []

    @noxu.mutating("configmaps")
    def before(_request: Any) -> None:
        called.append("before")

    with noxu.rollback():

        @noxu.mutating("configmaps")
        @noxu.validating("configmaps")
        def inside(_request: Any) -> None:
            called.append("inside")

        @noxu.converting("widgets.example.com")
        def convert(value: Object, _version: str) -> Object:
            return value

        noxu.create(config_map("a"))
        assert called == ["before", "inside", "inside"]
    called.clear()
    noxu.create(config_map("b"))
    assert called == ["before"]
    assert not noxu._server.plane.conversions.in_process


def test_a_server_that_was_restarted_in_the_block_is_rolled_back(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with Noxu(data=data) as noxu:
            with noxu.rollback():
                noxu.create(config_map("a"))
                noxu.stop()
                noxu.start()
                assert names(noxu) == {"a"}
            assert names(noxu) == set()
            with noxu.rollback():
                noxu.stop()


def test_the_block_costs_what_it_changes(noxu: Noxu) -> None:
    """As many revisions, whatever has been before."""

    def revisions() -> int:
        before = noxu._server.plane.store.revision
        with noxu.rollback():
            noxu.create(config_map("a"))
        return noxu._server.plane.store.revision - before

    first = revisions()
    assert first == 4  # the snapshot, the object, its deletion, and that of the snapshot
    for number in range(50):
        noxu.create(config_map(f"n{number}"))
    assert [revisions() for _ in range(3)] == [first] * 3
