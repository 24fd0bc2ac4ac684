"""The file of a recording: a line of JSON for each thing that happened, in the order in which it did.

    {"noxu": "recording", "format": 1, "version": "…", "began": "2026-03-01T12:00:00Z", "revision": 812, "server": {"profile": "local"}}
    {"stored": {"kind": "Widget", …}, "revision": 7, "resource": "widgets.example.com"}      what was there at the start
    {"step": 1, "at": 0.02, "client": {…}, "method": "POST", "path": "/apis/…", "body": {…}, "expect": {"code": 201, …}}
    {"step": 2, "at": 0.03, "client": {…}, "watch": "/apis/…?watch=true"}                    its stream has begun
    {"write": {"revision": 813, "verb": "create", …, "why": […], "object": {…}}, "at": 0.03}
    {"events": [{"type": "ADDED", "object": {…}}], "of": 2, "at": 0.04}
    {"ended": 2, "at": 9.1}

A step has the fields of the steps of conformance recordings: `method`, `path`, `body`, `content_type`, `accept`, and under
`expect` the answer's `code`, `body`, `content_type` and `warnings`; besides them who asked (`client`: `user`, `agent`), and
when: `at` is in seconds since the start. It stands where its answer was made. A `write` is an entry of the log (`control.write_log`).

Each line is handed to the kernel as a whole when it is made, so that a process that is killed leaves whole lines, but perhaps for
the last one, which is not read then. A body that is longer than MAX_BODY is left out; its line has its size in `omitted`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from noxu.values import Json, Object

FORMAT: Final = 1
MAX_BODY: Final = 4 * 1024 * 1024  # bytes of a body that is recorded
_KIND: Final = "recording"
_GZIP: Final = b"\x1f\x8b"
_OF_SERVER: Final = ("profile", "nodes", "kubernetes", "gates")

Place = tuple[str, str, str]
"""A resource (`widgets.example.com`), a namespace ("" for none), a name."""


class NoRecording(ValueError):
    """The file is no recording, or one of another format; the message says what to do."""


class RecordingFile:
    """A recording that is being written. Raises OSError."""

    def __init__(self, path: Path, *, kept: int = 0) -> None:
        """The recording goes on after the bytes that are `kept`. Only its owner can read it: what is recorded is the users' own."""
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if kept else os.O_TRUNC), 0o600)
        if kept:
            os.ftruncate(self._descriptor, kept)

    def add(self, line: Object) -> None:
        """Write a line."""
        if self._descriptor < 0:
            return
        content = memoryview(_encoded(line))
        while content:  # a write may be cut by a full disk, which the next one reports
            content = content[os.write(self._descriptor, content) :]

    def close(self) -> None:
        """What is added later is lost."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _encoded(line: Object) -> bytes:
    """With a line end: what clients send may have integers of any size, and halves of surrogates, which orjson refuses."""
    try:
        return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return json.dumps(line).encode() + b"\n"


def header(version: str, began: str, revision: int, server: Object) -> Object:
    """The first line. `server`: how it was started."""
    about = {"noxu": _KIND, "format": FORMAT, "version": version, "began": began, "revision": revision}
    return {**about, "server": server}


@dataclass(frozen=True)
class ServerRecording:
    """A recording that was read. `lines` are those after the first one. `cut`: its last line was not whole."""

    began: str
    revision: int
    version: str
    server: Object
    """How the server was started, as arguments of `Noxu`, such as its profile."""
    lines: Sequence[Object] = field(repr=False)
    cut: bool = False

    @property
    def stored(self) -> Iterator[Object]:
        """The lines of what was there at the start."""
        return (line for line in self.lines if "stored" in line)

    @property
    def conversation(self) -> Iterator[Object]:
        """The steps of clients, and what their watches were sent, in order."""
        return (line for line in self.lines if "step" in line or "events" in line or "ended" in line)

    @property
    def writes(self) -> Iterator[Object]:
        """The entries of the log, with the objects."""
        return (line["write"] for line in self.lines if "write" in line)


def read(path: Path) -> ServerRecording:
    """Raises OSError, NoRecording."""
    return parse(path.read_bytes(), str(path))


def parse(content: bytes, name: str = "the file") -> ServerRecording:
    """The recording of a file's content. Raises NoRecording."""
    if content.startswith(_GZIP):
        raise NoRecording(f"{name} is the recording of an exploration, which has no requests: `noxu open` shows it")
    first, *others = content.split(b"\n")
    begun = _decoded(first)
    if not isinstance(begun, dict) or begun.get("noxu") != _KIND:
        raise NoRecording(f"{name} is no recording: `noxu serve --record FILE` makes one")
    if begun.get("format") != FORMAT:
        raise NoRecording(
            f"{name} has the format {begun.get('format')}, and this version reads {FORMAT}: use the other one"
        )
    *whole, last = others or [b""]
    lines = list(_lines(whole, name))
    server = {name: begun["server"][name] for name in _OF_SERVER if name in (begun.get("server") or {})}
    return ServerRecording(
        str(begun.get("began", "")),
        int(begun.get("revision", 0)),
        str(begun.get("version", "")),
        server,
        lines,
        cut=bool(last),
    )


def _lines(whole: Iterable[bytes], name: str) -> Iterator[Object]:
    for number, line in enumerate(whole, 2):
        value = _decoded(line)
        if not isinstance(value, dict):
            raise NoRecording(f"{name}: line {number} is damaged; remove it to read the others")
        yield value


def _decoded(line: bytes) -> Json:
    for loads in (json.loads, orjson.loads):  # the first one has integers of any size, the second one any depth
        try:
            value: Json = loads(line)
        except (ValueError, RecursionError):
            continue
        return value
    return None


class RequestPath(NamedTuple):
    """What a path is about: `/apis/GROUP/VERSION/namespaces/NS/widgets/a/status`. `place`: an object, or a collection."""

    place: Place
    version: str
    subresource: str


def parse_path(path: str) -> RequestPath:
    """Without its query."""
    parts = path.partition("?")[0].strip("/").split("/")
    has_group = parts[0] == "apis" and len(parts) > 2
    group = parts[1] if has_group else ""
    version, *rest = parts[2 if has_group else 1 :] or [""]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = ([*rest, "", "", ""])[:3]
    return RequestPath((f"{plural}.{group}" if group else plural, namespace, name), version, subresource)


def place_of(path: str) -> Place:
    """The object or the collection that a path is about."""
    return parse_path(path).place
