"""Responses of a watch of etcd: which events are read together. Tokens of users."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, cast

import pytest

from noxu_storage.etcd_client import EVENTS_AT_ONCE, Client, User, WatchStream
from noxu_storage.etcd_messages import AUTHENTICATE, RANGE, Message
from noxu_storage.grpc_calls import Stream
from noxu_storage.grpc_status import Lost, Refused


class Arrivals:
    """A stream whose messages arrive in groups. A read waits for the next group when the last one is read."""

    def __init__(self, *groups: list[bytes]) -> None:
        self._groups = deque(groups)
        self._arrived: deque[bytes] = deque()

    @property
    def has_arrived(self) -> bool:
        return bool(self._arrived)

    async def read(self) -> bytes:
        await asyncio.sleep(0)
        if not self._arrived:
            if not self._groups:
                raise Lost("the stream has ended", sent=False)
            self._arrived.extend(self._groups.popleft())
        return self._arrived.popleft()


def response(*revisions: int, **fields: Any) -> bytes:
    events = [
        Message["Event"](kv=Message["KeyValue"](key=b"k", mod_revision=revision, value=b"v")) for revision in revisions
    ]
    return bytes(Message["WatchResponse"](events=events, **fields).SerializeToString())


CREATED = response(created=True)
PROGRESS = response(watch_id=7)
CANCELED = response(canceled=True, compact_revision=9)


@pytest.mark.parametrize(
    ("groups", "reads"),
    [
        ([[response(1)], [response(2)]], [[1], [2]]),
        ([[response(1), response(2, 3)], [response(4)]], [[1, 2, 3], [4]]),
        ([[CREATED, response(1), response(2)]], ["created", [1, 2]]),
        ([[response(1), PROGRESS, response(2), response(3)]], [[1], "progress", [2, 3]]),
        ([[PROGRESS, PROGRESS], [response(1)]], ["progress", "progress", [1]]),
        ([[response(1), CANCELED]], [[1], "canceled"]),
        ([[response(1, fragment=True)], [response(2)], [response(3)]], [[1, 2], [3]]),
        ([[response(1), response(2, fragment=True)], [response(3), response(4)]], [[1, 2, 3, 4]]),
        ([[response(1), response(2, fragment=True), response(3, fragment=True)], [response(4)]], [[1, 2, 3, 4]]),
    ],
    ids=[
        "responses that arrive one after the other", "responses that arrive together", "after the watch was created",
        "progress between events", "progress", "the end of a watch", "fragments", "fragments after a response",
        "fragments that arrive later",
    ],
)  # fmt: skip
async def test_events_that_arrive_together_are_read_together(groups: list[list[bytes]], reads: list[Any]) -> None:
    stream = WatchStream(cast(Stream, Arrivals(*groups)))
    found: list[Any] = []
    for _ in reads:
        events, last = await stream.read()
        kinds = {"created": last.created, "canceled": last.canceled, "progress": last.watch_id == 7}
        found.append([event.kv.mod_revision for event in events] or next(kind for kind in kinds if kinds[kind]))
    assert found == reads
    with pytest.raises(Lost, match="the stream has ended"):
        await stream.read()


async def test_a_read_returns_a_limited_number_of_events() -> None:
    stream = WatchStream(cast(Stream, Arrivals([response(number) for number in range(1, 3 * EVENTS_AT_ONCE)])))
    events, _ = await stream.read()
    assert [event.kv.mod_revision for event in events] == list(range(1, EVENTS_AT_ONCE + 1))


async def test_what_is_no_response_is_lost() -> None:
    stream = WatchStream(cast(Stream, Arrivals([b"\xff\xff"])))
    with pytest.raises(Lost, match="cannot be decoded"):
        await stream.read()


class Guarded(Client):
    """A client of an etcd with users. Only the newest token is good; authentication takes as long as other calls."""

    def __init__(self) -> None:
        super().__init__(["http://127.0.0.1:9"], user=User("noxu", "secret"))
        self.tokens = 0

    async def _call(self, call: Any, request: Any, within: float, token: Any) -> Any:
        await asyncio.sleep(0)
        if call is AUTHENTICATE:
            self.tokens += 1
            return Message[AUTHENTICATE.response](token=str(self.tokens))
        if token != (("token", str(self.tokens)),):
            raise Refused("UNAUTHENTICATED", "etcdserver: invalid auth token")
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
