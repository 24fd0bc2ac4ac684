"""States that are copied to etcd: marked until they are complete, continued after an interruption, never replaced unasked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")

from noxu_storage.etcd import check as etcd_check
from noxu_storage.etcd import client as etcd_client
from noxu_storage.etcd import copy as etcd_copy
from noxu_storage.etcd import state as etcd_state
from noxu_storage.etcd.client import EtcdClient
from noxu_storage.etcd.errors import CallLost
from noxu_storage.etcd.history import BARRIER
from noxu_storage.etcd.layout import PlainLayout
from noxu_storage.etcd.messages import PUT, RANGE, TXN, Message
from noxu_storage.etcd.store import EtcdStore
from noxu_storage.types import EVERYTHING, Key, KeyValue, OpenError, Unavailable
from tests.etcd_server import EtcdServer

MARK = b"from somewhere"


def states(names: str) -> list[KeyValue]:
    return [KeyValue(Key("g/things", "p/", name), name.encode(), 1) for name in names]


class Target:
    """A prefix of etcd."""

    def __init__(self, url: str, client: EtcdClient) -> None:
        self.url = url
        self.client = client
        self.layout = PlainLayout(f"/registry/{uuid4()}/")

    async def copy(self, names: str, *, mark: bytes = MARK, replace: bool = False) -> etcd_copy.EtcdWriter:
        async with etcd_copy.copying(self.client, self.layout, mark, replace=replace) as writer:
            await writer.write(states(names))
        return writer

    async def values(self) -> dict[str, bytes]:
        found = await etcd_state.snapshot([self.url], self.layout)
        return {state.key.name: state.value for state in found.values(EVERYTHING)}

    async def put(self, name: str, value: bytes) -> None:
        key = self.layout.key(Key("g/things", "p/", name))
        await self.client.call(PUT, Message["PutRequest"](key=key, value=value))

    async def interrupt(self, names: str, mark: bytes = MARK) -> None:
        async def copy() -> None:
            async with etcd_copy.copying(self.client, self.layout, mark, replace=False) as writer:
                await writer.write(states(names))
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await copy()


@pytest.fixture
async def target(etcd: EtcdServer) -> AsyncIterator[Target]:
    async with etcd_copy.connected([etcd.url]) as client:
        yield Target(etcd.url, client)


async def test_each_state_has_a_revision_of_its_own(target: Target) -> None:
    writer = await target.copy("abcdef")
    assert (writer.unchanged, writer.refused) == (0, {})
    found = await etcd_state.snapshot([target.url], target.layout)
    assert len({state.revision for state in found.values(EVERYTHING)}) == 6
    assert await target.values() == {name: name.encode() for name in "abcdef"}
    assert await etcd_copy.count(target.client, target.layout) == 6
    assert await etcd_copy.interrupted(target.client, target.layout) is None


async def test_own_keys_are_not_counted(target: Target) -> None:
    assert await etcd_copy.count(target.client, target.layout) == 0
    await target.client.call(PUT, Message["PutRequest"](key=target.layout.prefix + BARRIER))
    await target.interrupt("")
    assert await etcd_copy.count(target.client, target.layout) == 0


async def test_an_interrupted_copy_does_not_look_complete(target: Target) -> None:
    await target.interrupt("ab")
    assert await etcd_copy.interrupted(target.client, target.layout) == MARK
    with pytest.raises(OpenError, match="a copy under the prefix was interrupted"):
        await EtcdStore.open([target.url], target.layout)
    with pytest.raises(OpenError, match="a copy under the prefix was interrupted"):
        await target.values()
    report = await etcd_check.check([target.url], target.layout, verify=lambda _: "")
    assert [str(problem) for problem in report.problems] == [
        "etcd: a copy under the prefix was interrupted; start it again to complete it"
    ]
    assert (report.keys, report.others) == (2, 0)


async def test_the_same_copy_continues(target: Target) -> None:
    await target.interrupt("ab")
    writer = await target.copy("abc")
    assert (writer.unchanged, writer.refused) == (2, {})
    assert await target.values() == {name: name.encode() for name in "abc"}
    store = await EtcdStore.open([target.url], target.layout)
    assert await store.count(EVERYTHING) == 3
    await store.close()


async def test_another_copy_does_not_continue(target: Target) -> None:
    await target.interrupt("ab")
    with pytest.raises(OpenError, match="another copy under the prefix was interrupted"):
        await target.copy("abc", mark=b"from elsewhere")
    assert await etcd_copy.interrupted(target.client, target.layout) == MARK


async def test_other_values_are_replaced_only_on_demand(target: Target) -> None:
    await target.put("a", b"mine")
    await target.put("z", b"z")
    writer = await target.copy("ab")
    assert writer.refused == {Key("g/things", "p/", "a"): "another object has the key"}
    assert await target.values() == {"a": b"mine", "b": b"b", "z": b"z"}
    writer = await target.copy("ab", replace=True)
    assert (writer.unchanged, writer.refused) == (1, {})
    assert await target.values() == {"a": b"a", "b": b"b", "z": b"z"}


@pytest.mark.parametrize("size", [1_600_000, 2_500_000])
async def test_what_is_too_large_is_refused_alone(size: int, target: Target) -> None:
    large = KeyValue(Key("g/things", "p/", "large"), b"x" * size, 1)
    async with etcd_copy.copying(target.client, target.layout, MARK, replace=False) as writer:
        await writer.write([large, *states("a")])
    assert writer.refused == {large.key: "etcdserver: request is too large"}
    assert await target.values() == {"a": b"a"}


class Flaky(EtcdClient):
    """Executes each transaction, and loses the first answers."""

    losing = 0

    async def call(self, call: Any, request: Any, within: float = 10.0) -> Any:
        response = await super().call(call, request, within)
        if call is TXN and self.losing:
            self.losing -= 1
            raise CallLost("no answer", sent=True)
        return response


async def test_a_call_is_repeated_if_its_answer_is_lost(etcd: EtcdServer) -> None:
    client = Flaky([etcd.url])
    target = Target(etcd.url, client)
    async with etcd_copy.copying(client, target.layout, MARK, replace=False) as writer:
        client.losing = 3
        await writer.write(states("ab"))
    assert writer.refused == {}
    assert await target.values() == {"a": b"a", "b": b"b"}
    await client.close()


async def test_without_answers_the_mark_remains(etcd: EtcdServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_client, "ASK_WITHIN", 0.0)
    client = Flaky([etcd.url])
    target = Target(etcd.url, client)

    async def copy() -> None:
        async with etcd_copy.copying(client, target.layout, MARK, replace=False) as writer:
            client.losing = 100
            await writer.write(states("a"))

    with pytest.raises(Unavailable, match="no answer"):
        await copy()
    client.losing = 0
    assert await etcd_copy.interrupted(client, target.layout) == MARK
    await client.close()


async def test_keys_with_a_lifetime_expire(target: Target) -> None:
    event = KeyValue(Key("g/events", "p/", "e"), b"{}", 1)
    async with etcd_copy.copying(target.client, target.layout, MARK, {"g/events": 3600}, replace=False) as writer:
        await writer.write([event, *states("a")])
    leases = {}
    async with etcd_state.opened([target.url], target.layout) as found:
        async for page in found.pages():
            leases |= {target.layout.key_of(item.key).name: item.lease for item in page}
    assert leases["a"] == 0
    assert leases["e"] != 0


async def test_nothing_else_is_deleted(target: Target) -> None:
    other = target.layout.prefix + b"ranges"
    await target.client.call(PUT, Message["PutRequest"](key=other, value=b"x"))
    await target.copy("a", replace=True)
    response = await target.client.call(RANGE, Message["RangeRequest"](key=other))
    assert response.kvs[0].value == b"x"


@pytest.mark.parametrize(
    ("url", "message"),
    [("a", "is not a URL of etcd"), ("http://u:secret@127.0.0.1:1", "a URL of etcd has no user")],
)
async def test_urls_that_are_refused(url: str, message: str) -> None:
    with pytest.raises(OpenError, match=message) as raised:
        async with etcd_copy.connected([url]):
            pass
    assert "secret" not in str(raised.value)


async def test_a_key_that_the_layout_cannot_read_again_is_refused(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target.layout, "key_of", lambda key: None if key.endswith(b"a") else Key("g/things", "p/", "b"))
    writer = await target.copy("ab")
    assert writer.refused == {Key("g/things", "p/", "a"): "etcd has no key for it"}
    monkeypatch.undo()
    assert await target.values() == {"b": b"b"}
