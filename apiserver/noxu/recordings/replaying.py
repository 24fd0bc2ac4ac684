"""Replays a recording against a server, and lists where it answers otherwise.

First the objects that were there at the start are created, if they are not there. Then the requests are sent in the order in which
they were answered, one after the other. The values of this server take the place of the recorded ones in later requests: uids,
resourceVersions, generated names (`comparison`). Answers are compared but for what differs from server to server.

Two things take time in a server, and are waited for: a read that is answered otherwise is repeated until PATIENCE seconds are over,
and so long a watch has for its events. Of a watch, the events of each object are compared, without bookmarks.

What is masked is sent as it is, as the user that the replay has.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from noxu.recordings.comparison import ConversationComparison
from noxu.recordings.lines import ServerRecording, place_of
from noxu.recordings.masking import masked
from noxu.values import Json, Object

PATIENCE: Final = 5.0  # seconds
EVERY: Final = 0.05  # seconds between two attempts
TIMEOUT: Final = 60.0  # seconds for an answer
MOST: Final = 12  # differences of a step that are listed
JSON: Final = "application/json"
_BINARY: Final = {
    "application/vnd.kubernetes.protobuf": JSON,
    "application/apply-patch+cbor": "application/apply-patch+yaml",
    "application/cbor-seq": JSON,
    "application/cbor": JSON,
}
"""Media types, and those that are sent in their place."""
_OF_MEDIA_TYPES: Final = (406, 415)
"""The codes with which a media type is refused."""
_READS: Final = frozenset({"GET", "HEAD"})
_FIRST: Final = ("customresourcedefinitions.apiextensions.k8s.io", "namespaces")
"""The resources of objects that others need."""
IGNORED: Final = frozenset({"managedFields", "selfLink"})
"""Fields that are not compared: the manager of a field is named by the client's own agent."""


class Reply(NamedTuple):
    """An answer. `warnings`: the header's values."""

    code: int
    content_type: str
    warnings: Sequence[str]
    body: bytes


@dataclass
class ReplayedStep:
    """A step that was answered otherwise: its number, the request, and a line for each difference."""

    step: int
    request: str
    differences: Sequence[str]

    def __str__(self) -> str:
        lines = "\n".join(f"     {line}" for line in self.differences)
        return f"step {self.step}: {self.request}\n{lines}"


class ReplayTarget:
    """The server that a recording is replayed against. Methods raise OSError, HTTPException."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None, authorization: str = "") -> None:
        self.url = urlsplit(url)
        self._tls = tls
        self._credentials = {"Authorization": authorization} if authorization else {}
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self.url.hostname or "", self.url.port
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT)

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        self._connection.request(method, self.url.path.rstrip("/") + path, body, {**headers, **self._credentials})
        answer = self._connection.getresponse()
        content = answer.read()
        warnings = answer.headers.get_all("Warning") or []
        return Reply(answer.status, answer.getheader("Content-Type", ""), warnings, content)

    def open(self, path: str, headers: Mapping[str, str]) -> ReplayedWatch:
        """Open a watch, on a connection of its own."""
        return ReplayedWatch(self._connect(), self.url.path.rstrip("/") + path, {**headers, **self._credentials})

    def close(self) -> None:
        self._connection.close()


class ReplayedWatch:
    """An open watch. `events` are those until now, which a thread reads."""

    def __init__(self, connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]) -> None:
        connection.request("GET", path, headers=dict(headers))
        self._socket = connection.sock  # the connection forgets it where the answer is the last one
        answer = connection.getresponse()
        self.code = answer.status
        self.events: list[Json] = []
        self._connection = connection
        self._answer = answer
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while line := self._answer.readline():
                self.events.append(_parsed(line))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):  # it was closed meanwhile
            return

    def wait(self, number: int, patience: float = PATIENCE) -> list[Json]:
        """The events, when there are as many, or the time is up; bookmarks do not count."""
        until = time.monotonic() + patience
        while len(_compared(self.events)) < number:
            if time.monotonic() > until or not self._reader.is_alive():
                break
            time.sleep(EVERY)
        return _compared(self.events)

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread, which `close` does not
        self._reader.join()
        self._answer.close()
        self._connection.close()


@dataclass
class _OpenWatch:
    """A watch of the recording: the recorded events until now."""

    step: int
    path: str
    replayed: ReplayedWatch
    is_compared: bool
    recorded: list[Json] = field(default_factory=list)


class Replay:
    """A recording against one server."""

    def __init__(
        self, recording: ServerRecording, target: ReplayTarget, ignored: Iterable[str] = (), patience: float = PATIENCE
    ) -> None:
        """`ignored` are names of further fields that are not compared. `patience` is in seconds."""
        self.recording = recording
        self.steps = 0
        """How many were sent."""
        self._target = target
        self._patience = patience
        requests = [{"body": line["body"]} for line in recording.lines if "step" in line and "body" in line]
        self._comparison = ConversationComparison({"steps": requests}, IGNORED | frozenset(ignored))
        self._open: dict[int, _OpenWatch] = {}

    def run(self) -> Iterator[ReplayedStep]:
        """The steps that are answered otherwise. Raises OSError, HTTPException if the server is gone."""
        self._restore()
        try:
            for line in self.recording.conversation:
                yield from self._line(line)
            for number in list(self._open):
                yield from self._end(number)
        finally:
            for watch in self._open.values():
                watch.replayed.close()

    def _line(self, line: Object) -> Iterator[ReplayedStep]:
        if "events" in line:
            if (watch := self._open.get(line["of"])) is not None:
                watch.recorded += line["events"]
            return
        if "ended" in line:
            yield from self._end(line["ended"])
            return
        if "omitted" in line:  # the body is not there; the server has refused it
            return
        self.steps += 1
        if "watch" in line:
            path = self._comparison.translate(line["watch"])
            opened = self._target.open(path, _headers(line))
            self._open[line["step"]] = _OpenWatch(line["step"], path, opened, "Table" not in line.get("accept", ""))
            if opened.code != 200:
                yield ReplayedStep(line["step"], f"WATCH {path}", [f"code: expected 200, got {opened.code}"])
            return
        if found := self._request(line):
            yield ReplayedStep(line["step"], f"{line['method']} {line['path']}", found[:MOST])

    def _request(self, step: Object) -> list[str]:
        """Send a request, and a read again until it is answered as recorded. Returns the differences."""
        path = self._comparison.translate(step["path"])
        body = None if "body" not in step else self._sent(step["body"])
        until = time.monotonic() + self._patience
        while True:
            reply = self._target.send(step["method"], path, body, _headers(step))
            actual = masked(_parsed(reply.body), resource=place_of(path)[0])
            self._comparison.learn(step["expect"].get("body"), actual)
            found = list(self._differences(step["expect"], reply, actual))
            if not found or step["method"] not in _READS or time.monotonic() > until:
                return found
            time.sleep(EVERY)

    def _differences(self, expected: Object, reply: Reply, actual: Json) -> Iterator[str]:
        if reply.code != expected["code"]:
            message = actual.get("message", "") if isinstance(actual, dict) else actual
            yield f"code: expected {expected['code']}, got {reply.code}: {message!s:.300}"
            return
        if "body" in expected:
            yield from self._comparison.differences(expected["body"], actual)
        if expected.get("warnings"):
            said = ", ".join(reply.warnings)
            yield from (f"Warning: missing {text!r}" for text in expected["warnings"] if text not in said)

    def _sent(self, recorded: Json) -> bytes:
        body = self._comparison.translate(recorded)
        return (body if isinstance(body, str) else json.dumps(body)).encode("utf-8", "surrogateescape")

    # -- watches

    def _end(self, number: int) -> Iterator[ReplayedStep]:
        """Compare the events of a watch."""
        watch = self._open.pop(number, None)
        if watch is None:
            return
        recorded = _compared(watch.recorded)
        actual = watch.replayed.wait(len(recorded), self._patience)
        watch.replayed.close()
        self._comparison.learn(recorded, actual)
        found: list[str] = []
        by_object = _by_object(actual)
        resource, _, _ = place_of(watch.path)
        # by the names that this server has generated
        for place, events in _by_object(self._comparison.translate(recorded)).items() if watch.is_compared else ():
            there = by_object.get(place, [])[: len(events)]  # later ones may have come since
            found += self._comparison.differences(events, masked(there, resource=resource), f"events of {place}")
        if found:
            yield ReplayedStep(watch.step, f"WATCH {watch.path}", found[:MOST])

    # -- what was there

    def _restore(self) -> None:
        """Create the objects of the start that are not there: first what others need. Refusals are seen by what follows."""
        lines = sorted(self.recording.stored, key=lambda line: _order(line["resource"]))
        defined = {line["name"] for line in lines if line["resource"] == _FIRST[0]}
        for line in lines:
            value = line["stored"]
            if not isinstance(value, dict):
                continue
            path = _collection(line, value)
            if path is not None:
                self._create(path, value, is_custom=line["resource"] in defined)

    def _create(self, path: str, value: Object, *, is_custom: bool) -> None:
        named = f"{path}/{value['metadata']['name']}"
        if self._target.send("GET", named, None, {"Accept": JSON}).code == 200:
            return
        metadata = {name: item for name, item in value["metadata"].items() if name not in _OF_SERVERS}
        sent = json.dumps(self._comparison.translate({**value, "metadata": metadata})).encode()
        reply = self._target.send("POST", path, sent, {"Content-Type": JSON, "Accept": JSON})
        until = time.monotonic() + PATIENCE
        while is_custom and reply.code == 404 and time.monotonic() < until:  # its definition is not served yet
            time.sleep(EVERY)
            reply = self._target.send("POST", path, sent, {"Content-Type": JSON, "Accept": JSON})
        if reply.code == 201:
            created = _parsed(reply.body)
            self._comparison.learn({"metadata": value["metadata"]}, created)


_OF_SERVERS: Final = frozenset({"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"})


def _order(resource: str) -> int:
    return _FIRST.index(resource) if resource in _FIRST else len(_FIRST)


def _collection(line: Object, value: Object) -> str | None:
    """The path of the collection that an object is in; None if it has no version."""
    api_version, plural = value.get("apiVersion"), line["resource"].partition(".")[0]
    if not isinstance(api_version, str):
        return None
    base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    namespace = value["metadata"].get("namespace")
    return f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"


def _headers(step: Object) -> dict[str, str]:
    """The headers of a recorded request. Bodies are recorded as JSON, so what was binary is JSON, unless that was refused."""
    headers = dict(step.get("headers") or {})
    is_refused = step.get("expect", {}).get("code") in _OF_MEDIA_TYPES
    sent, accept = step.get("content_type", ""), step.get("accept") or JSON
    if sent:
        headers["Content-Type"] = sent if is_refused else _in_text(sent)
    headers["Accept"] = accept if is_refused else _in_text(accept)
    headers["User-Agent"] = step["client"]["agent"]
    return headers


def _in_text(media_types: str) -> str:
    """The media types without those that are binary; parameters, such as `as=PartialObjectMetadata`, stay."""
    for binary, text in _BINARY.items():
        media_types = media_types.replace(binary, text)
    return media_types


def _parsed(body: bytes) -> Any:
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")


def _compared(events: Sequence[Json]) -> list[Json]:
    """The events without bookmarks, and without those of which only the size was recorded."""
    return [
        event
        for event in list(events)
        if isinstance(event, dict) and event.get("type") != "BOOKMARK" and "omitted" not in event
    ]


def _by_object(events: Iterable[Json]) -> dict[str, list[Json]]:
    """The events of each object, in order."""
    found: dict[str, list[Json]] = {}
    for event in events:
        value = event.get("object") if isinstance(event, dict) else None
        metadata = (value.get("metadata") if isinstance(value, dict) else None) or {}
        place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}".lstrip("/")
        found.setdefault(place, []).append(event)
    return found
