"""Responses of a watch of etcd: which events are read together. Tokens of users."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, cast

import pytest

from noxu_storage.etcd.channel import MessageStream
from noxu_storage.etcd.client import EVENTS_AT_ONCE, EtcdClient, EtcdUser, WatchStream
from noxu_storage.etcd.errors import CallLost, CallRefused
from noxu_storage.etcd.messages import AUTHENTICATE, RANGE, Message
from tests.rows import rows


class Arrivals:
    """A stream of messages."""

    def __init__(self, *messages: bytes) -> None:
        self._messages = deque(messages)

    async def read(self) -> bytes:
        await asyncio.sleep(0)
        if not self._messages:
            raise CallLost("the stream has ended", sent=False)
        return self._messages.popleft()


def response(*revisions: int, **fields: Any) -> bytes:
    events = [
        Message["Event"](kv=Message["KeyValue"](key=b"k", mod_revision=revision, value=b"v")) for revision in revisions
    ]
    return bytes(Message["WatchResponse"](events=events, **fields).SerializeToString())


CREATED = response(created=True)
PROGRESS = response(watch_id=7)
CANCELED = response(canceled=True, compact_revision=9)


@rows(
    ("messages", "expected", "reads"),
    [
        ([response(1), response(2)], 0, [[1], [2]]),
        ([response(1), response(2, 3), response(4)], 3, [[1, 2, 3], [4]]),
        ([response(1), response(2, 3), response(4)], 2, [[1, 2, 3], [4]]),
        ([response(3), response(4)], 3, [[3], [4]]),
        ([CREATED, response(1), response(2)], 2, ["created", [1, 2]]),
        ([response(1), PROGRESS, response(2), response(3)], 3, [[1], "progress", [2, 3]]),
        ([PROGRESS, PROGRESS, response(1)], 9, ["progress", "progress"]),
        ([response(1), CANCELED], 9, [[1], "canceled"]),
        ([response(1, fragment=True), response(2), response(3)], 0, [[1, 2], [3]]),
        ([response(1), response(2, fragment=True), response(3), response(4)], 2, [[1, 2, 3], [4]]),
        ([response(1, fragment=True), response(2, fragment=True), response(3)], 0, [[1, 2, 3]]),
    ],
    ids=[
        "responses", "responses with expected events", "an expected event within a response", "what was expected is there",
        "after the watch was created", "progress between events", "progress", "the end of a watch", "fragments",
        "fragments after a response", "several fragments",
    ],
)  # fmt: skip
async def test_events_that_are_expected_are_read_together(
    messages: list[bytes], expected: int, reads: list[Any]
) -> None:
    stream = WatchStream(cast(MessageStream, Arrivals(*messages)))
    found: list[Any] = []
    for _ in reads:
        events, last = await stream.read(lambda: expected)
        kinds = {"created": last.created, "canceled": last.canceled, "progress": last.watch_id == 7}
        found.append([event.kv.mod_revision for event in events] or next(kind for kind in kinds if kinds[kind]))
    assert found == reads


async def test_a_read_returns_a_limited_number_of_events() -> None:
    messages = [response(number) for number in range(1, 3 * EVENTS_AT_ONCE)]
    stream = WatchStream(cast(MessageStream, Arrivals(*messages)))
    events, _ = await stream.read(lambda: len(messages))
    assert [event.kv.mod_revision for event in events] == list(range(1, EVENTS_AT_ONCE + 1))


async def test_events_are_not_returned_when_the_stream_ends_before_those_that_are_expected() -> None:
    """They are read again, from the revision on that the store has."""
    stream = WatchStream(cast(MessageStream, Arrivals(response(1))))
    with pytest.raises(CallLost, match="the stream has ended"):
        await stream.read(lambda: 2)


async def test_what_is_no_response_is_lost() -> None:
    stream = WatchStream(cast(MessageStream, Arrivals(b"\xff\xff")))
    with pytest.raises(CallLost, match="cannot be decoded"):
        await stream.read()


class Guarded(EtcdClient):
    """A client of an etcd with users. Only the newest token is good; authentication takes as long as other calls."""

    def __init__(self) -> None:
        super().__init__(["http://127.0.0.1:9"], user=EtcdUser("noxu", "secret"))
        self.tokens = 0

    async def _call(self, method: Any, request: Any, within: float, token: Any) -> Any:
        await asyncio.sleep(0)
        if method is AUTHENTICATE:
            self.tokens += 1
            return Message[AUTHENTICATE.response](token=str(self.tokens))
        if token != (("token", str(self.tokens)),):
            raise CallRefused("UNAUTHENTICATED", "etcdserver: invalid auth token")
        return Message[RANGE.response]()


async def test_calls_share_the_token_of_a_user_and_get_one_when_it_has_expired() -> None:
    client = Guarded()

    async def call_all() -> None:
        await asyncio.gather(*(client.call(RANGE, Message[RANGE.request]()) for _ in range(20)))

    await call_all()
    assert client.tokens == 1
    client.tokens += 1  # the old one is not good any more
    await call_all()
    assert client.tokens == 3
    await client.close()
