"""YAML as sigs.k8s.io/yaml turns it into JSON (go-yaml v2's semantics), on top of libyaml's events.

- Words of YAML 1.1 (`y`, `no`, `on` …) are booleans, `010`, `0o10`, `0x8` and `0b1000` all are integers, dates stay text.
- Numbers pass through JSON: 1.0 becomes 1, an integer beyond int64 a float. Keys become strings (`1: a` is `"1": "a"`).
- Tags of collections are ignored; of scalars `!!str`, `!!int`, `!!float`, `!!bool`, `!!null`, `!!timestamp` and
  `!!binary` count.
- Of equal keys the last one wins, and each repetition is reported. `<<` merges where it stands: what follows overrides.
- Aliases are copied; "excessive aliasing" is refused before anything is copied, by go-yaml's own count.
- Only the first document is read. Nesting goes to 10,000, and nothing here recurses.

3 MiB may take seconds: callers read what is big in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs do not export it
from yaml.error import MarkedYAMLError
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError
from yaml.scanner import ScannerError

from apiserver.api.gojson import MAX_DEPTH, JsonSyntaxError
from apiserver.api.gotext import plain, quote
from apiserver.api.goyaml_scalars import (
    MEANINGFUL,
    MERGE_TAG,
    as_json,
    float_key,
    go_syntax,
    resolve,
    resolve_tagged,
)
from apiserver.api.types import MAX_INT64, Json
from apiserver.api.values import copy

_Event: TypeAlias = Any  # one of libyaml's; its attributes depend on its type


class YamlError(ValueError):
    """The text is go-yaml's, such as `yaml: line 2: did not find expected key`."""


class YamlDocument(NamedTuple):
    """`duplicates` are go-yaml's words for keys that repeat (`line 7: key "s" already set in map`)."""

    value: Json
    duplicates: list[str]


class _Failure(Exception):
    """What goes wrong when values are made. go-yaml parses the whole document first: syntax errors come before it."""

    def __init__(self, error: ValueError) -> None:
        super().__init__(error)
        self.error = error


def _failure(text: str) -> _Failure:
    return _Failure(YamlError(f"yaml: {text}"))


class _OddKey(NamedTuple):
    """A key that is no string. `kind` tells 1 from 1.0; `unsupported` is Go's name of a type that cannot be a key."""

    text: str
    kind: type
    shown: str
    unsupported: str = ""


class _Frame:
    """An open collection. A mapping has the key that waits for its value, and, as soon as one key is no string, all of
    them with their types. `lines` are kept of mappings that may be merged: the keys, and the lines of their values.
    """

    __slots__ = ("anchor", "begun", "complaints", "flow", "items", "key", "keys", "line", "lines", "merging", "simple")

    def __init__(self, items: Json, event: _Event) -> None:
        self.items = items
        self.anchor = event.anchor
        self.flow = bool(event.flow_style)
        self.line = event.start_mark.line
        self.key: Json = _NO_KEY if type(items) is dict else None
        self.keys: set[Json] | None = None
        self.lines: list[tuple[str | _OddKey, int]] | None = None
        self.merging = False  # is this the list of `<<: [*a, *b]`? Then its items are pairs of a mapping and its lines
        self.simple = True  # neither odd keys nor lines
        self.begun = 0  # nodes counted before it
        self.complaints = 0  # how many there were before it


class _Anchored:
    """`size` is the number of nodes, those of aliases included; `weight` that of all text, once somebody has asked."""

    __slots__ = ("complaints", "lines", "size", "value", "weight")

    def __init__(
        self, value: Json, size: int, complaints: list[str], lines: list[tuple[str | _OddKey, int]] | None
    ) -> None:
        self.value = value
        self.size = size
        self.complaints = complaints
        self.lines = lines
        self.weight = -1


_NUMBERS: Final = frozenset({int, float})
_SHORT: Final = 24
_resolve_short: Final = lru_cache(maxsize=4096)(resolve)
_NO_KEY: Final = object()
_MERGE: Final = object()
_OPEN: Final = _Anchored(None, 0, [], None)
_version: Final = re.compile(rb"((?:[ \t]*(?:#[^\n]*)?\r?\n)*)%YAML[ \t]+([0-9]+\.[0-9]+)").match
_lone_tag: Final = re.compile(r"(?:&[^\s]+\s+)?!\s").match
_escaped_slash: Final = re.compile(r"(?:[^\\]|\\[^/])*?\\/").match
_ODDITIES: Final = re.compile(rb"\\/|!\s").search

MAX_TAG_DIRECTIVES: Final = 100  # libyaml's time is quadratic in them
MAX_ALIASED_TEXT: Final = 32 * 1024 * 1024  # upstream has no limit, and falls over
MAX_FLOW_WORK: Final = 120_000_000  # and so it is in the depth of brackets: sum of the depths at each event, ~6 ns each
_DEEP_FLOW: Final = 100


def read(body: bytes) -> YamlDocument:
    """Read the first document; raises YamlError, or JsonSyntaxError where the value is too deep for JSON."""
    if body.count(b"%TAG") > MAX_TAG_DIRECTIVES:
        raise YamlError("yaml: document contains excessive tag directives")
    if b"%YAML" in body and (version := _version(body)) and version[2] != b"1.1":  # libyaml takes 1.2, too
        raise _syntax(version[1].count(b"\n") - 1, "found incompatible YAML document")
    text: str | bytes = body
    for _ in range(_MAX_STAND_INS):
        try:
            return _Reader(text).read()
        except ReaderError as error:
            raise YamlError(f"yaml: {error.reason}") from None
        except MarkedYAMLError as error:
            text = _with_stand_in(text, error)
            if not text:
                raise YamlError(_told(error)) from None
    raise YamlError("yaml: found unexpected ':'")


def _with_stand_in(text: str | bytes, error: _Event) -> str:
    """libyaml refuses a colon before a bracket or comma in flow style (`{a:}`), go-yaml takes it for text.

    The text with something else in place of that colon; nothing if the error is another one.
    """
    if error.problem != "found unexpected ':'" or len(text) > _MAX_REREAD:
        return ""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
        if _STAND_IN in text:
            return ""
    position = error.problem_mark.index
    if text[position : position + 1] != ":":
        return ""
    return text[:position] + _STAND_IN + text[position + 1 :]


_STAND_IN: Final = "\uf8ff"  # of the private use area
_MAX_STAND_INS: Final = 20
_MAX_REREAD: Final = 64 * 1024


def _told(error: _Event) -> str:
    """go-yaml counts lines from 0 here, but from 1 in errors of the scanner, and never tells line 0."""
    line = error.problem_mark.line if error.problem_mark else 0
    if line:
        line += isinstance(error, ScannerError)
    elif error.context_mark:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{error.problem or 'unknown problem parsing YAML content'}"


class _Reader:
    def __init__(self, body: str | bytes) -> None:
        self.next: Callable[[], _Event] = CParser(body).get_event
        self.body = body
        self.text = ""  # the body, where libyaml's events do not suffice
        if isinstance(body, str):
            self.text = body
        elif _ODDITIES(body):
            self.text = body.decode("utf-8", "replace")
        self.anchors: dict[str, _Anchored] = {}
        self.frames: list[_Frame] = []
        self.complaints: list[str] = []
        self.count = 1  # the document itself is a node
        self.aliased = 0
        self.aliased_text = 0
        self.flows = 0
        self.work = 0
        self.bad_key = ""
        self.bad_value = ""

    def read(self) -> YamlDocument:
        while not isinstance(event := self.next(), DocumentStartEvent):
            if isinstance(event, StreamEndEvent):
                return YamlDocument(None, [])
        failure = None
        value: Json = None
        try:
            value = self.build()
        except _Failure as caught:
            failure = caught.error
        self.finish()
        if failure or self.bad_key or self.bad_value:
            raise failure or YamlError(self.bad_key or self.bad_value)
        return YamlDocument(value, self.complaints)

    def finish(self) -> None:
        """Read on to the end of the document: what is wrong there is told first."""
        flows = [False] * len(self.frames)
        event: _Event
        while not isinstance(event := self.next(), DocumentEndEvent):
            line = event.start_mark.line
            if isinstance(event, AliasEvent) and event.anchor not in self.anchors:
                raise YamlError(f"yaml: unknown anchor '{event.anchor}' referenced")
            if isinstance(event, NodeEvent) and event.anchor:
                self.anchors.setdefault(event.anchor, _OPEN)
            if isinstance(event, CollectionStartEvent):
                flows.append(bool(event.flow_style))
                self.flows += flows[-1]
                self.check_depth(len(flows), line)
            elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
                self.flows -= flows.pop()
            self.spend()

    def check_depth(self, depth: int, line: int) -> None:
        """go-yaml counts brackets and indentation apart."""
        if max(self.flows, depth - self.flows) > MAX_DEPTH:
            raise _syntax(line, f"exceeded max depth of {MAX_DEPTH}")

    def spend(self) -> None:
        self.work += self.flows
        if self.work > MAX_FLOW_WORK:
            raise YamlError("yaml: document contains excessive flow nesting")

    def build(self) -> Json:
        """The value of the document's root node."""
        frame: _Frame | None = None
        while True:
            event = self.next()
            kind = type(event)
            if self.flows > _DEEP_FLOW:
                self.spend()
            if kind is ScalarEvent:
                self.count += 1
                line = event.start_mark.line
                value: Json = event.value
                if event.tag is not None or event.anchor is not None or self.text:
                    value = self.unusual_scalar(event, in_key=frame is not None and frame.key is _NO_KEY)
                elif event.implicit[0]:
                    if not value or value[0] in MEANINGFUL:
                        value = _resolve_short(value) if len(value) <= _SHORT else resolve(value)
                    elif value == "<<" and frame is not None and frame.key is _NO_KEY:
                        value = _MERGE
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                frame = self.open(event)
                continue
            elif kind is AliasEvent:
                line = event.start_mark.line
                anchored = self.alias(event)
                value = anchored.value
                if frame is not None and (frame.merging or frame.key is _MERGE) and type(value) is dict:
                    self.merge(frame, copy(value), anchored.lines)
                    continue
                if type(value) is dict or type(value) is list:
                    value = copy(value)
            else:
                closed, frame = self.close()
                line, value = closed.line, closed.items
                if frame is not None and (frame.merging or frame.key is _MERGE):
                    self.merge_closed(frame, closed)
                    continue

            if frame is None:
                return self.as_json(value)
            items = frame.items
            if type(items) is list:
                if frame.merging:
                    raise _no_map()
                items.append(self.as_json(value) if type(value) in _NUMBERS else value)
            elif frame.key is _NO_KEY:
                frame.key = value if type(value) is str else self.odd_key(frame, value)
            elif frame.simple and frame.key not in items:
                items[frame.key] = self.as_json(value) if type(value) in _NUMBERS else value
                frame.key = _NO_KEY
            else:
                key, frame.key = frame.key, _NO_KEY
                self.put(frame, key, self.as_json(value) if type(value) in _NUMBERS else value, line)

    def unusual_scalar(self, event: _Event, *, in_key: bool) -> Json:
        """A scalar with a tag or an anchor, or one that may be written in a way that libyaml does not tell of."""
        text = event.value.replace(_STAND_IN, ":") if isinstance(self.body, str) else event.value
        merge = in_key and text == "<<" and (event.implicit[0] or event.tag == MERGE_TAG)
        raw = self.text[event.start_mark.index : event.end_mark.index]
        if event.style == '"' and (slash := _escaped_slash(raw)):  # libyaml accepts \/, go-yaml does not
            raise _syntax(event.start_mark.line + raw.count("\n", 0, slash.end()), "found unknown escape character")
        if event.anchor is not None:
            self.anchors[event.anchor] = _OPEN
        if event.tag is not None:
            try:
                value = resolve_tagged(event.tag, text)
            except ValueError as error:
                raise _failure(str(error)) from None
        elif event.implicit[0] and not _lone_tag(raw):  # `! 1` is a string
            value = resolve(text)
        else:
            value = text
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(value, 1, [], None)
        return _MERGE if merge else value

    def alias(self, event: _Event) -> _Anchored:
        name = event.anchor
        anchored = self.anchors.get(name)
        if anchored is None:
            raise YamlError(f"yaml: unknown anchor '{name}' referenced")
        if anchored is _OPEN:
            raise _failure(f"anchor '{name}' value contains itself")
        self.count += 1 + anchored.size
        self.aliased += anchored.size
        if self.aliased > 100 and self.count > 1000 and self.aliased / self.count > _allowed_alias_ratio(self.count):
            raise _failure("document contains excessive aliasing")
        if anchored.weight < 0:
            anchored.weight = _weight(anchored.value)
        self.aliased_text += anchored.weight
        if self.aliased_text > MAX_ALIASED_TEXT:
            raise _failure("document contains excessive aliasing")
        self.complaints += anchored.complaints
        return anchored

    def open(self, event: _Event) -> _Frame:
        frame = _Frame({} if type(event) is MappingStartEvent else [], event)
        outer = self.frames[-1] if self.frames else None
        self.frames.append(frame)
        self.flows += frame.flow
        self.check_depth(len(self.frames), frame.line)
        if len(self.frames) > MAX_DEPTH:
            char = "{" if type(frame.items) is dict else "["
            raise _Failure(JsonSyntaxError(f"invalid character '{char}' exceeded max depth"))
        merged = outer is not None and (outer.merging or outer.key is _MERGE)
        if merged and type(frame.items) is list:
            if outer is not None and outer.merging:
                raise _no_map()
            frame.merging = True  # go-yaml does not count this node
        else:
            self.count += 1
        frame.begun = self.count - 1
        frame.complaints = len(self.complaints)
        if type(frame.items) is dict and (merged or frame.anchor is not None):
            frame.lines = []
            frame.simple = False
        if frame.anchor is not None:
            self.anchors[frame.anchor] = _OPEN
        return frame

    def close(self) -> tuple[_Frame, _Frame | None]:
        """The collection that ends, and the one around it."""
        frame = self.frames.pop()
        self.flows -= frame.flow
        if frame.anchor is not None:
            value = [mapping for mapping, _ in frame.items] if frame.merging else frame.items
            complaints = self.complaints[frame.complaints :]
            self.anchors[frame.anchor] = _Anchored(value, self.count - frame.begun, complaints, frame.lines)
        return frame, self.frames[-1] if self.frames else None

    def merge(self, frame: _Frame, mapping: Json, lines: list[tuple[str | _OddKey, int]] | None) -> None:
        """`<<: mapping`, or one item of a list of mappings, which are merged when it ends: the first one wins."""
        if frame.merging:
            frame.items.append((mapping, lines))
            return
        frame.key = _NO_KEY
        for key, line in lines or []:
            self.put(frame, key, mapping[key.text if isinstance(key, _OddKey) else key], line)

    def merge_closed(self, frame: _Frame, closed: _Frame) -> None:
        if type(closed.items) is dict:
            self.merge(frame, closed.items, closed.lines)
            return
        for mapping, lines in reversed(closed.items):
            self.merge(frame, mapping, lines)
        frame.key = _NO_KEY

    def odd_key(self, frame: _Frame, value: Json) -> Json:
        """What to keep of a key that is not a string."""
        if value is _MERGE:
            frame.simple = False
            self.count -= 1  # go-yaml does not count this node
            return value
        kind = type(value)
        if kind is dict or kind is list:
            raise _failure(f"invalid map key: {go_syntax(value)}")
        if frame.keys is None:
            frame.keys = set(frame.items)
            frame.simple = False
        if value is None:
            return _OddKey("", kind, "<nil>", "%!s(<nil>)")
        if kind is int and value > MAX_INT64:
            return _OddKey(str(value), kind, hex(value), "uint64")
        return _OddKey(float_key(value) if kind is float else plain(value), kind, plain(value))

    def as_json(self, value: Json) -> Json:
        try:
            return as_json(value)
        except ValueError as error:  # told only if nothing else is wrong
            self.bad_value = self.bad_value or str(error)
            return None

    def put(self, frame: _Frame, key: Json, value: Json, line: int) -> None:
        if key is _MERGE:
            raise _no_map()
        text, identity, shown = key, key, ""
        if type(key) is _OddKey:
            text, identity, shown = key.text, (key.kind, key.shown), key.shown
            if key.unsupported and not self.bad_key:
                about = f"unsupported map key of type: {key.unsupported}, key: {shown}"
                self.bad_key = f"{about}, value: {go_syntax(value)}"
        if identity in (frame.items if frame.keys is None else frame.keys):
            self.complaints.append(f"line {line + 1}: key {shown or quote(key)} already set in map")
        elif frame.keys is not None:
            frame.keys.add(identity)
        frame.items[text] = value
        if frame.lines is not None:
            frame.lines.append((key, line))


def _weight(value: Json) -> int:
    """The length of all text in a value."""
    total = 0
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is str:
            total += len(item)
        elif type(item) is list:
            todo += item
        elif type(item) is dict:
            todo += item
            todo += item.values()
    return total


def _no_map() -> _Failure:
    return _failure("map merge requires map or sequence of maps as the value")


def _syntax(line: int, problem: str) -> YamlError:
    """A problem in a line, counted from 0."""
    return YamlError(f"yaml: {f'line {line + 1}: ' if line > 0 else ''}{problem}")


def _allowed_alias_ratio(count: int) -> float:
    """How much of a document may come from aliases: 99 % of small ones, 10 % of large ones."""
    low, high = 400_000, 4_000_000
    return 0.99 - 0.89 * (min(max(count, low), high) - low) / (high - low)
