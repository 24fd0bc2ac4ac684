"""Records what happens in a server into a file (`noxu.recordings.lines`): requests, answers, the events of watches, writes.

It is imported only when a server is recorded. A request for an object is recorded when its answer is made, before it is sent; the
events of a watch when they are handed to its connection. Writes come from the log, with their causes, a moment later. Documents
(discovery, OpenAPI, health) and `/_noxu/` are not recorded. Bodies are recorded as JSON, whatever their representation was.

What cannot be written ends the recording, and never a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from typing import Final

from noxu.api.codec import JSON
from noxu.api.errors import ApiError
from noxu.containment import Contained
from noxu.control.history import WriteHistory
from noxu.control.recorded_writes import RecordedWrite
from noxu.control.write_log import decoded, described, entry, events_between, why
from noxu.control_plane import ControlPlane
from noxu.http.answer import Answer
from noxu.http.auditing import decoder_of, kept_chunks
from noxu.http.clients import Part
from noxu.http.exchange import Exchange
from noxu.http.filters import RequestFilter
from noxu.recordings.lines import MAX_BODY, RecordingFile
from noxu.recordings.masking import is_secret, masked
from noxu.registry.storage_form import is_temporary
from noxu.values import Json, Object
from noxu_storage.types import EVERYTHING, Compacted, Event, Key, Revision, StoreError

log = logging.getLogger("noxu")

NOTED_WITHIN: Final = 50  # milliseconds
PORTION: Final = 50  # objects that are recorded before other tasks run
_UNKNOWN: Final = "unknown"
_KEPT_HEADERS: Final = ("Impersonate-User", "Impersonate-Group", "Impersonate-Uid")
"""Headers of requests that a recording has, besides those with fields of their own. Credentials are in none of them."""


class ConversationRecorder(RequestFilter):
    """Records the requests of one server."""

    def __init__(self, file: RecordingFile, began: float, steps: int = 0, recorded: Revision = 0) -> None:
        """`began`: when the recording did, in seconds since 1970. `steps`: the number of the newest one until now.
        `recorded`: the revision until which writes are recorded."""
        self._file = file
        self._began = began
        self._steps = steps
        self._recorded = recorded

    def enter(self, exchange: Exchange) -> None:
        if not exchange.info.is_resource or exchange.moment:
            return
        # the exchange carries what it needs: requests that are not recorded pay for one comparison with None
        exchange.see_answer(self._answered)
        if exchange.info.verb == "watch":
            exchange.events_seen = self._begin_watch

    def add(self, line: Object) -> None:
        """Write a line, with the time; a failure is the last one."""
        try:
            self._file.add({**line, "at": round(time.time() - self._began, 6)})
        except OSError as error:  # such as a full disk
            log.warning("%s: the recording ends here: %s", self._file.path, error)
            self._file.close()

    # -- requests

    def _answered(self, exchange: Exchange, answer: Answer) -> Answer:
        """Record a request and its answer. One in chunks is recorded when they are sent."""
        body = answer.body
        if isinstance(body, AsyncIterable):
            answer.body = kept_chunks(
                body, MAX_BODY, lambda chunks, size: self._add_step(exchange, answer, chunks or (), size)
            )
        else:
            parts = (body,) if isinstance(body, bytes) else body
            self._add_step(exchange, answer, parts, sum(map(len, parts)))
        return answer

    def _add_step(self, exchange: Exchange, answer: Answer, parts: Iterable[Part], size: int) -> None:
        with Contained(f"the recording of {exchange}"):  # a request is answered, whatever is wrong with its recording
            # parts are slices of what other answers share: joined, they are a copy
            self.add(self._step(exchange, answer, b"".join(parts) if size <= MAX_BODY else b"", size))

    def _step(self, exchange: Exchange, answer: Answer, body: bytes, size: int) -> Object:
        request = _request(exchange)
        expect: Object = {"code": answer.status, "content_type": answer.content_type}
        if "omitted" not in request or not is_secret(exchange.info.resource):  # a refusal quotes what cannot be read
            expect |= _body(exchange, answer.content_type, body, size)
        if exchange.noted is not None and exchange.noted.warnings:
            expect["warnings"] = list(exchange.noted.warnings)
        return {**self._begin_step(exchange), **request, "expect": expect}

    def _begin_step(self, exchange: Exchange) -> Object:
        self._steps += 1
        user, agent = exchange.client
        return {"step": self._steps, "client": {"user": user, "agent": agent}, "id": exchange.id}

    # -- watches

    def _begin_watch(self, exchange: Exchange) -> Callable[[Sequence[bytes]], None]:
        """Record that a stream has begun. Returns what records its events."""
        line = {**self._begin_step(exchange), "watch": exchange.request.raw_path, **_accepted(exchange)}
        self.add(line)
        number = line["step"]
        exchange.leaving.append(lambda _: self.add({"ended": number}))  # also if the client is gone
        resource = exchange.info.resource

        def record(events: Sequence[bytes]) -> None:
            with Contained(f"the recording of {exchange}"):  # its client is sent them
                values = [event for piece in events for event in _events(exchange, piece)]
                self.add({"events": [masked(event, resource=resource) for event in values], "of": number})

        return record

    # -- objects and writes

    async def add_stored(self, plane: ControlPlane) -> None:
        """Record all objects that there are."""
        page = await plane.store.list(EVERYTHING)
        for number, item in enumerate(page.items, 1):
            if not is_temporary(item.key):
                self.add({"stored": _object(item.key, item.value), "revision": item.revision, **described(item.key)})
            if not number % PORTION:
                await asyncio.sleep(0)  # requests are answered meanwhile: what they write comes from the log
        self._recorded = page.revision

    async def follow(self, plane: ControlPlane, history: WriteHistory | None) -> None:
        """Record the writes after the objects that are recorded, as long as the server runs."""
        while True:
            try:
                async for batch in plane.store.watch(EVERYTHING, after=self._recorded):
                    for event in batch.events:
                        if not is_temporary(event.key):
                            await self._add_write(plane, history, event)
                    self._recorded = batch.revision
                return
            except Compacted as compacted:  # it is behind by a whole history
                self.add({"lost": {"after": self._recorded, "upto": compacted.revision}})
                self._recorded = compacted.revision

    async def finish(self, plane: ControlPlane, history: WriteHistory | None) -> None:
        """Record the writes until now that are not recorded yet."""
        with contextlib.suppress(StoreError):
            async for event in events_between(plane.store, EVERYTHING, self._recorded, plane.store.revision):
                await self._add_write(plane, history, event)
        # the last one: answers that are still being made are not recorded
        self._file.close()

    async def _add_write(self, plane: ControlPlane, history: WriteHistory | None, event: Event) -> None:
        with Contained(f"the recording of revision {event.revision}", StoreError):  # the next ones are recorded
            write = None if history is None else await _author_of(event.revision, history, waits=not plane.store.shared)
            value = await entry(event, write)
            if history is not None and write is not None:
                value["why"] = await why(plane.store, history, write)
            self._recorded = event.revision  # before the line: `finish` does not record it again
            self.add({"write": {**value, "object": None if not event.value else _object(event.key, event.value)}})


async def _author_of(revision: Revision, history: WriteHistory, *, waits: bool) -> RecordedWrite | None:
    """Who wrote a revision: that is noted when the store has answered, which may be after its event is seen here."""
    for _ in range(NOTED_WITHIN if waits else 0):
        if (found := await history.of(revision)) is not None:
            return found
        await asyncio.sleep(0.001)
    return await history.of(revision)


# -- what is recorded of them ------------------------------------------------------------------------------------------


def _object(key: Key, stored: bytes) -> Json:
    """A stored object; None if it is corrupt."""
    try:
        value = decoded(stored)
    except ValueError:
        return None
    return masked(value, resource=described(key)["resource"])


def _request(exchange: Exchange) -> Object:
    request = exchange.request
    found: Object = {"method": request.method, "path": request.raw_path, **_accepted(exchange)}
    kept = {name: value for name in _KEPT_HEADERS if (value := request.headers.get(name))}
    if kept:
        found["headers"] = kept
    sent = request.headers.get("Content-Type")
    if sent or exchange.body:  # also of a body that was refused without being read
        found["content_type"] = sent = sent or JSON
        found |= _body(exchange, sent, exchange.body, len(exchange.body))
    return found


def _accepted(exchange: Exchange) -> Object:
    accept = exchange.request.headers.get("Accept")
    return {"accept": accept} if accept else {}


def _body(exchange: Exchange, content_type: str, body: bytes, size: int) -> Object:
    """A body as a field: its value, its text if it is not what it should be, or its size if it is too long."""
    if not size:
        return {}
    if size > MAX_BODY:
        return {"omitted": size}
    resource = exchange.info.resource
    try:
        if not content_type.startswith("text/"):
            return {"body": masked(decoder_of(exchange, content_type)(body), resource=resource)}
    except (ApiError, ValueError):  # whatever a client has sent: the server refuses it, and so will a replay
        pass
    return {"omitted": size} if is_secret(resource) else {"body": body.decode("utf-8", "replace")}


def _events(exchange: Exchange, piece: bytes) -> list[Json]:
    """The events in what is sent at once: lines of JSON, or of another representation their size."""
    if not piece.startswith(b"{"):
        return [{"type": _UNKNOWN, "omitted": len(piece)}]
    # what streams share is joined: a line for each event
    decode = decoder_of(exchange, JSON)
    return [decode(line) for line in piece.split(b"\n") if line]
