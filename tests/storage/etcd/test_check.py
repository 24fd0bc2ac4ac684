"""`noxu check --etcd-servers`: what is wrong with the keys under a prefix, and with the members."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")

from noxu_storage.etcd import check as etcd_check
from noxu_storage.etcd import client as etcd_client
from noxu_storage.etcd import state as etcd_state
from noxu_storage.etcd.client import EtcdClient
from noxu_storage.etcd.errors import CallRefused
from noxu_storage.etcd.history import BARRIER, COMPACTION_KEY
from noxu_storage.etcd.layout import PlainLayout, apart
from noxu_storage.etcd.messages import ALARM, COMPACT, PUT, Message
from noxu_storage.types import EVERYTHING, Key, KeyValue, OpenError, Prefix, Unavailable
from tests.etcd_server import EtcdServer, running_etcd

A, B, APART = Key("g/things", "p/", "a"), Key("g/things", "", "b"), Key("g/things", "p/", "a/b")


class Prefixed:
    """A prefix of etcd, into which any program can write."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.layout = PlainLayout(f"/registry/{uuid4()}/")

    async def put(self, key: bytes, value: bytes = b"") -> int:
        client = EtcdClient([self.url])
        try:
            return int((await client.call(PUT, Message["PutRequest"](key=key, value=value))).header.revision)
        finally:
            await client.close()

    async def fill(self) -> None:
        for key in (A, B, APART):
            await self.put(self.layout.key(key), key.name.encode())

    async def check(self, verify: Callable[[KeyValue], str] = lambda _: "", **options: Any) -> etcd_check.EtcdReport:
        return await etcd_check.check([self.url], self.layout, verify=verify, **options)


@pytest.fixture
async def prefixed(etcd: EtcdServer) -> Prefixed:
    found = Prefixed(etcd.url)
    await found.fill()
    return found


async def test_keys_of_the_store_and_other_keys_are_counted(prefixed: Prefixed) -> None:
    for other in (b"ranges", b"masterleases/10.0.0.1", BARRIER):
        last = await prefixed.put(prefixed.layout.prefix + other)
    report = await prefixed.check()
    assert (report.keys, report.others, report.problems, report.remarks) == (3, 2, [], [])
    assert report.revision == last
    assert [version.split(".")[0] for version in report.versions] == ["3"]


async def test_values_are_verified(prefixed: Prefixed) -> None:
    def verify(state: KeyValue) -> str:
        return f"is {state.value.decode()}" if state.key != B else ""

    report = await prefixed.check(verify)
    assert [(problem.key, problem.message) for problem in report.problems] == [(APART, "is a/b"), (A, "is a")]
    assert all(problem.revision for problem in report.problems)


async def test_a_key_that_the_store_writes_elsewhere(prefixed: Prefixed) -> None:
    lost = prefixed.layout.prefix + apart(B)
    await prefixed.put(lost)
    [problem] = (await prefixed.check()).problems
    expected = prefixed.layout.key(B).decode()
    assert problem.message == f"is at the key {lost.decode()}, and belongs at {expected}"


async def test_progress(prefixed: Prefixed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_state, "PAGE", 2)
    seen: list[tuple[int, int]] = []
    await prefixed.check(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 3), (3, 3)]


async def test_what_is_written_while_it_is_read_is_not_seen(
    prefixed: Prefixed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_state, "PAGE", 1)
    keys = []
    async with etcd_state.opened([prefixed.url], prefixed.layout) as found:
        async for page in found.pages():
            keys += [prefixed.layout.key_of(item.key) for item in page]
            await prefixed.put(prefixed.layout.key(Key("z/things", "", str(len(keys)))))
    assert keys == [APART, B, A]


async def test_a_snapshot_has_the_states(prefixed: Prefixed) -> None:
    found = await etcd_state.snapshot([prefixed.url], prefixed.layout)
    states = {state.key: state.value for state in found.values(Prefix("g/things"))}
    assert states == {A: b"a", B: b"b", APART: b"a/b"}
    assert found.count(EVERYTHING) == 3
    assert max(state.revision for state in found.values(EVERYTHING)) == found.revision


async def test_the_key_of_compaction(prefixed: Prefixed) -> None:
    await prefixed.put(COMPACTION_KEY, b"99999999")
    try:
        [problem] = (await prefixed.check()).problems
        assert str(problem) == "etcd: the key compact_rev_key has the value 99999999, which is no revision of etcd"
    finally:
        await prefixed.put(COMPACTION_KEY, b"1")
    assert (await prefixed.check()).problems == []


async def test_a_compaction_in_between_is_an_error(prefixed: Prefixed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_state, "PAGE", 1)
    last = await prefixed.put(prefixed.layout.key(B))
    async with etcd_state.opened([prefixed.url], prefixed.layout, revision=last - 1) as found:
        pages = found.pages()
        await anext(pages)
        await found.client.call(COMPACT, Message["CompactionRequest"](revision=last))
        with pytest.raises(Unavailable, match="etcd has been compacted meanwhile; start again"):
            await anext(pages)
    assert (await prefixed.check()).compacted == last


async def test_without_etcd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_client, "ASK_WITHIN", 0.0)
    with pytest.raises(OpenError, match="is not a URL of etcd"):
        await etcd_check.check(["x"], PlainLayout("/"), verify=lambda _: "")
    with pytest.raises(OpenError, match=r"cannot read from etcd at http://127\.0\.0\.1:1: ") as raised:
        await etcd_check.check(["http://127.0.0.1:1"], PlainLayout("/"), verify=lambda _: "")
    assert str(raised.value).count("--etcd-servers") == 1  # what to do, once


async def test_members_that_differ(prefixed: Prefixed, tmp_path: Path) -> None:
    """Two servers that are no cluster, which have different keys, and one that does not answer."""
    with running_etcd(tmp_path / "other") as other:
        absent = "http://127.0.0.1:1"
        servers = [prefixed.url, prefixed.url, other.url, absent]
        alone = await etcd_check.check([prefixed.url], prefixed.layout, verify=lambda _: "")
        assert alone.problems == []
        client = EtcdClient([other.url])
        try:  # both have the same revision, and are not compacted
            at = alone.revision
            while True:
                put = await client.call(PUT, Message["PutRequest"](key=b"x", value=b"y"))
                if put.header.revision >= at:
                    break
            if alone.compacted:
                await client.call(COMPACT, Message["CompactionRequest"](revision=alone.compacted))
        finally:
            await client.close()
        report = await etcd_check.check(servers, prefixed.layout, verify=lambda _: "")
    assert [str(problem) for problem in report.problems] == [
        f"etcd: {other.url} has other keys or values than the other members"
    ]
    [remark] = report.remarks
    assert remark.startswith(f"{absent} is not compared with the other members: ")


async def test_alarms_of_a_user_who_may_not_see_them_are_a_remark(
    prefixed: Prefixed, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = EtcdClient.call

    async def refused(self: EtcdClient, method: Any, request: Any, within: float = 10.0) -> Any:
        if method is ALARM:
            raise CallRefused("PERMISSION_DENIED", "etcdserver: permission denied")
        return await call(self, method, request, within)

    monkeypatch.setattr(EtcdClient, "call", refused)
    report = await prefixed.check()
    assert (report.problems, report.remarks) == ([], ["alarms of etcd are not known: etcdserver: permission denied"])
