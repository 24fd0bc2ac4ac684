"""YAML as sigs.k8s.io/yaml turns it into JSON (go-yaml v2's semantics), on top of libyaml's events.

Most documents are read by `yaml_block`, a fast path for plain block style. All others, and all with an error, are read here.

- Words of YAML 1.1 (`y`, `no`, `on` …) are booleans, `010`, `0o10`, `0x8` and `0b1000` all are integers, dates stay text.
- Numbers pass through JSON: 1.0 becomes 1, an integer beyond int64 a float. Keys become strings (`1: a` is `"1": "a"`).
- Tags of collections are ignored; for scalars `!!str`, `!!int`, `!!float`, `!!bool`, `!!null`, `!!timestamp` and
  `!!binary` apply.
- Of equal keys the last one wins, and each repetition is reported. `<<` merges at its place: later keys override.
- Aliases are copied; "excessive aliasing" is detected before anything is copied, by go-yaml's own count.
- Only the first document is read. Nesting is limited to 10,000 levels, and nothing here recurses. libyaml 0.2.6, which
  PyYAML contains since 6.0.4, stops at 1000 levels; its limit is lifted when a document needs it.

3 MiB may take seconds: callers read large documents in a thread.
"""

from __future__ import annotations

import math
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

from noxu.go import yaml_block
from noxu.go.json import MAX_DEPTH, JsonSyntaxError
from noxu.go.text import plain, quote, yaml_go_syntax
from noxu.go.yaml_scalars import (
    MEANINGFUL,
    MERGE_TAG,
    as_json,
    float_key,
    resolve,
    resolve_tagged,
)
from noxu.values import MAX_INT64, Json, copy

TOO_DEEP: Final = "exceeded maximum nesting depth"  # its error
_NO_LIMIT: Final = 2**31 - 1


def lift_limit() -> bool:
    """Returns whether there was a limit that is gone now. PyYAML's wheels for Windows do not export the function."""
    try:
        import ctypes

        from yaml import _yaml

        libyaml = ctypes.CDLL(_yaml.__file__)
        lifted: bool = libyaml.yaml_get_max_nest_level() == _NO_LIMIT
        libyaml.yaml_set_max_nest_level(_NO_LIMIT)
    except (ImportError, AttributeError, OSError):
        return False
    return not lifted


_Event: TypeAlias = Any  # one of libyaml's; its attributes depend on its type


class YamlError(ValueError):
    """The message is go-yaml's, such as `yaml: line 2: did not find expected key`."""


class YamlDocument(NamedTuple):
    """`duplicates` are go-yaml's messages about repeated keys (`line 7: key "s" already set in map`)."""

    value: Json
    duplicates: list[str]


class _Failure(Exception):
    """An error in a value. go-yaml parses the whole document before it makes values, so syntax errors take precedence."""

    def __init__(self, error: ValueError) -> None:
        super().__init__(error)
        self.error = error


def _failure(text: str) -> _Failure:
    return _Failure(YamlError(f"yaml: {text}"))


class _OddKey(NamedTuple):
    """A key that is not a string. `kind` distinguishes 1 and 1.0; `unsupported` is Go's name of a type that cannot be a key."""

    text: str
    kind: type
    shown: str
    unsupported: str = ""


class _Frame:
    """An open collection.

    `key` is a mapping's key whose value comes next; _NO_KEY while a key comes next, None in a sequence. `keys` has all
    keys with their types, from the first key on that is not a string. `lines` has the keys of a mapping that may be
    merged, with the lines of their values. Frames and events of `a: [1, {2: x}]`:

        {         frame a={}, key=_NO_KEY
        a         key="a"
        [         frame []
        1         items [1]
        {         frame {}, key=_NO_KEY
        2         an odd key: keys = {(int, "2")}
        x         items {"2": "x"}
        }         closed: appended to [1]
        ]         closed: the value of "a"; key=_NO_KEY
    """

    __slots__ = (
        "anchor",
        "begun",
        "flow",
        "items",
        "key",
        "keys",
        "line",
        "lines",
        "merging",
        "seen_duplicates",
        "simple",
    )

    def __init__(self, items: Json, event: _Event) -> None:
        self.items = items
        self.anchor = event.anchor
        self.flow = bool(event.flow_style)
        self.line = event.start_mark.line
        self.key: Json = _NO_KEY if type(items) is dict else None
        self.keys: set[Json] | None = None
        self.lines: list[tuple[str | _OddKey, int]] | None = None
        self.merging = False  # the list of `<<: [*a, *b]`: its items are pairs of a mapping and its lines
        self.simple = True  # no odd keys, and no lines are kept
        self.begun = 0  # nodes counted before it
        self.seen_duplicates = 0  # repeated keys reported before it


class _Anchored:
    """An anchored value. `size` is its number of nodes, including those of aliases in it.

    `text_length` is the length of all text in it, -1 until an alias needs it.
    """

    __slots__ = ("duplicates", "lines", "size", "text_length", "value")

    def __init__(
        self, value: Json, size: int, duplicates: list[str], lines: list[tuple[str | _OddKey, int]] | None
    ) -> None:
        self.value = value
        self.size = size
        self.duplicates = duplicates
        self.lines = lines
        self.text_length = -1


_NUMBERS: Final = frozenset({int, float})
_SHORT: Final = 24
_resolve_short: Final = lru_cache(maxsize=4096)(resolve)
_NO_KEY: Final = object()
_MERGE: Final = object()  # the key `<<`
_OPEN: Final = _Anchored(None, 0, [], None)  # an anchor whose value is not complete
_version: Final = re.compile(rb"((?:[ \t]*(?:#[^\n]*)?\r?\n)*)%YAML[ \t]+([0-9]+\.[0-9]+)").match
_lone_tag: Final = re.compile(r"(?:&[^\s]+\s+)?!\s").match
_escaped_slash: Final = re.compile(r"(?:[^\\]|\\[^/])*?\\/").match
_needs_source: Final = re.compile(rb"\\/|!\s").search  # `\/` and `! ` do not show in libyaml's events

MAX_TAG_DIRECTIVES: Final = 100  # libyaml's time is quadratic in them
MAX_ALIASED_TEXT: Final = 32 * 1024 * 1024  # characters; upstream has no limit, and runs out of memory
MAX_FLOW_WORK: Final = 120_000_000  # sum of the bracket depths at all events: libyaml takes 6 ns for each
_DEEP_FLOW: Final = 100  # brackets from which on the sum is kept


def read(body: bytes) -> YamlDocument:
    """Read the first document. Raises YamlError, or JsonSyntaxError for a value that is too deep for JSON."""
    value = yaml_block.read(body)
    return read_events(body) if value is None else YamlDocument(value, [])


def read_literals(body: bytes) -> Json:
    """The value of a document that was read before, with RawNumbers (see `yaml_scalars.as_json`)."""
    return read_events(body, literals=True).value


def read_events(body: bytes, *, literals: bool = False) -> YamlDocument:
    """The same as `read` without the fast path."""
    if body.count(b"%TAG") > MAX_TAG_DIRECTIVES:
        raise YamlError("yaml: document contains excessive tag directives")
    if b"%YAML" in body and (version := _version(body)) and version[2] != b"1.1":  # libyaml accepts 1.2, too
        raise _syntax(version[1].count(b"\n") - 1, "found incompatible YAML document")
    text: str | bytes = body
    for _ in range(_MAX_STAND_INS):
        try:
            return _Reader(text, literals=literals).read()
        except ReaderError as error:
            raise YamlError(f"yaml: {error.reason}") from None
        except MarkedYAMLError as error:
            if error.problem == TOO_DEEP and lift_limit():
                continue
            text = _with_stand_in(text, error)
            if not text:
                raise YamlError(_message(error)) from None
    raise YamlError("yaml: found unexpected ':'")


def _with_stand_in(text: str | bytes, error: _Event) -> str:
    """The text to read again after libyaml has refused a colon, "" if there is another error.

    In flow style go-yaml accepts a colon before a bracket or comma as text: `{a:}` is {"a:": null}. libyaml refuses it.
    So a private-use character stands in for the colon, and scalars get the colon back: `{a\uf8ff}`.
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


def _message(error: _Event) -> str:
    """go-yaml counts lines from 0 here, but from 1 in errors of the scanner, and never reports line 0."""
    line = error.problem_mark.line if error.problem_mark else 0
    if line:
        line += isinstance(error, ScannerError)
    elif error.context_mark:
        line = error.context_mark.line
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{error.problem or 'unknown problem parsing YAML content'}"


class _Reader:
    """Builds the value from libyaml's events, with a stack of open collections."""

    def __init__(self, body: str | bytes, *, literals: bool) -> None:
        self.literals = literals
        self.next: Callable[[], _Event] = CParser(body).get_event
        self.body = body
        self.text = ""  # the body, if libyaml's events do not suffice
        if isinstance(body, str):
            self.text = body
        elif _needs_source(body):
            self.text = body.decode("utf-8", "replace")
        self.anchors: dict[str, _Anchored] = {}
        self.frames: list[_Frame] = []
        self.duplicates: list[str] = []
        self.count = 1  # nodes, including those of aliases; the document itself is one
        self.aliased = 0  # nodes of aliases
        self.aliased_text = 0
        self.flows = 0  # open brackets
        self.flow_work = 0
        self.bad_key = ""
        self.may_be_unsupported = False  # there was an infinity or NaN, which a later key may have replaced

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
        unsupported = _unsupported(value) if self.may_be_unsupported else ""
        if failure or self.bad_key or unsupported:
            raise failure or YamlError(self.bad_key or unsupported)
        return YamlDocument(value, self.duplicates)

    def finish(self) -> None:
        """Read on to the end of the document: errors there take precedence."""
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
            self.count_flow_work()

    def check_depth(self, depth: int, line: int) -> None:
        """go-yaml counts brackets and indentation separately."""
        if max(self.flows, depth - self.flows) > MAX_DEPTH:
            raise _syntax(line, f"exceeded max depth of {MAX_DEPTH}")

    def count_flow_work(self) -> None:
        self.flow_work += self.flows
        if self.flow_work > MAX_FLOW_WORK:
            raise YamlError("yaml: document contains excessive flow nesting")

    def build(self) -> Json:
        """The value of the document's root node."""
        frame: _Frame | None = None
        while True:
            # A complete value, or the next event; an open collection is completed by its end event.
            event = self.next()
            kind = type(event)
            if self.flows > _DEEP_FLOW:
                self.count_flow_work()
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

            # Put the value into the innermost open collection.
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
        """A scalar with a tag or an anchor, or one whose source has to be looked at."""
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
        if anchored.text_length < 0:
            anchored.text_length = _text_length(anchored.value)
        self.aliased_text += anchored.text_length
        if self.aliased_text > MAX_ALIASED_TEXT:
            raise _failure("document contains excessive aliasing")
        self.duplicates += anchored.duplicates
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
        frame.seen_duplicates = len(self.duplicates)
        if type(frame.items) is dict and (merged or frame.anchor is not None):
            frame.lines = []
            frame.simple = False
        if frame.anchor is not None:
            self.anchors[frame.anchor] = _OPEN
        return frame

    def close(self) -> tuple[_Frame, _Frame | None]:
        """(the collection that ends, the one around it)."""
        frame = self.frames.pop()
        self.flows -= frame.flow
        if frame.anchor is not None:
            value = [mapping for mapping, _ in frame.items] if frame.merging else frame.items
            duplicates = self.duplicates[frame.seen_duplicates :]
            self.anchors[frame.anchor] = _Anchored(value, self.count - frame.begun, duplicates, frame.lines)
        return frame, self.frames[-1] if self.frames else None

    def merge(self, frame: _Frame, mapping: Json, lines: list[tuple[str | _OddKey, int]] | None) -> None:
        """`<<: mapping`, or an item of a list of mappings. The list is merged when it ends, last item first: the first wins."""
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
        """The form in which a frame keeps a key that is not a string."""
        if value is _MERGE:
            frame.simple = False
            self.count -= 1  # go-yaml does not count this node
            return value
        kind = type(value)
        if kind is dict or kind is list:
            raise _failure(f"invalid map key: {yaml_go_syntax(value)}")
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
            return as_json(value, literals=self.literals)
        except ValueError:
            self.may_be_unsupported = True
            return value

    def put(self, frame: _Frame, key: Json, value: Json, line: int) -> None:
        if key is _MERGE:
            raise _no_map()
        text, identity, shown = key, key, ""
        if type(key) is _OddKey:
            text, identity, shown = key.text, (key.kind, key.shown), key.shown
            if key.unsupported and not self.bad_key:
                about = f"unsupported map key of type: {key.unsupported}, key: {shown}"
                self.bad_key = f"{about}, value: {yaml_go_syntax(value)}"
        if identity in (frame.items if frame.keys is None else frame.keys):
            self.duplicates.append(f"line {line + 1}: key {shown or quote(key)} already set in map")
        elif frame.keys is not None:
            frame.keys.add(identity)
        frame.items[text] = value
        if frame.lines is not None:
            frame.lines.append((key, line))


def _unsupported(root: Json) -> str:
    """encoding/json's error about the first infinity or NaN in a value, in the order of sorted keys; "" if there is none."""
    todo = [root]
    while todo:
        item = todo.pop()
        if type(item) is dict:
            todo += [item[name] for name in sorted(item, reverse=True)]
        elif type(item) is list:
            todo += reversed(item)
        elif type(item) is float and not math.isfinite(item):
            return f"json: unsupported value: {plain(item)}"
    return ""


def _text_length(value: Json) -> int:
    """The length of all text in a value, keys included."""
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
    """An error in a line, counted from 0."""
    return YamlError(f"yaml: {f'line {line + 1}: ' if line > 0 else ''}{problem}")


def _allowed_alias_ratio(count: int) -> float:
    """The share of a document's nodes that may come from aliases: 99 % in small documents, 10 % in large ones."""
    low, high = 400_000, 4_000_000
    return 0.99 - 0.89 * (min(max(count, low), high) - low) / (high - low)
