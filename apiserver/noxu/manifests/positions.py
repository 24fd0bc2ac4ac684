"""The positions of the fields of a document: lines and columns in the text of a YAML or JSON file.

A field is named by its path in an error, such as `spec.versions[0].schema.openAPIV3Schema.properties[spec].type`. A
field is at its key, an item at its first character. A field that is missing in the text, or comes from an alias, is at
the innermost field around it. Lines and columns count from 1, columns in characters.

A text is scanned when its first position is asked for: texts without findings cost nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs do not export it
from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from noxu.api.field import ROOT, Path, key
from noxu.go import yaml

_Event: TypeAlias = Any  # one of libyaml's; its attributes depend on its type


class Position(NamedTuple):
    """Both from 1."""

    line: int
    column: int


_Below: TypeAlias = "dict[str, _Place] | list[_Place] | None"


class _Token(NamedTuple):
    """`kind`: `{` or `[` opens a collection, `}` closes one; `scalar` has a text; `alias`. Lines and columns from 0."""

    kind: str
    line: int
    column: int
    text: str = ""


class _Place(NamedTuple):
    """The position of a value, or of the key before it, and the places in it."""

    line: int
    column: int
    below: _Below

    @property
    def position(self) -> Position:
        return Position(self.line + 1, self.column + 1)


class Text:
    """The text of one document. `first_line` is the number of its first line in the file."""

    def __init__(self, body: bytes, first_line: int = 1) -> None:
        self.body = body
        self.first_line = first_line

    @cached_property
    def digest(self) -> bytes:
        """What distinguishes the text from all others."""
        return hashlib.sha256(self.body).digest()

    def position(self, path: Path = ROOT) -> Position:
        """Where a field is, or the innermost field around it."""
        if path == ROOT:
            return self._in_file(self._begin)
        place = self._root
        rest = path
        while rest and (below := _step(place, rest)) is not None:
            place, rest = below
        return self._in_file(place.position)

    @cached_property
    def error(self) -> Position:
        """Where the text stops being YAML or JSON; where its object begins if it does not."""
        return self._in_file(_error(self.body) or self._begin)

    @cached_property
    def duplicates(self) -> list[Position]:
        """Where keys are repeated, in the order of the text."""
        return [self._in_file(Position(line + 1, column + 1)) for line, column in self._scanned[1]]

    @cached_property
    def _begin(self) -> Position:
        """Where the object begins: the text is not scanned any further."""
        first = next(self._tokens(), None)
        return Position(first.line + 1, first.column + 1) if first else Position(1, 1)

    @property
    def _root(self) -> _Place:
        return self._scanned[0]

    @cached_property
    def _scanned(self) -> tuple[_Place, list[tuple[int, int]]]:
        return _scan(self._tokens())

    def _tokens(self) -> Iterator[_Token]:
        return _json_tokens(self.body) if _is_json(self.body) else _yaml_tokens(self.body)

    def _in_file(self, position: Position) -> Position:
        return position._replace(line=position.line + self.first_line - 1)


# -- paths ------------------------------------------------------------------------------------------------------------

_index: Final = re.compile(r"\[(\d+)\]").match


def _step(place: _Place, path: Path) -> tuple[_Place, Path] | None:
    """(the place of the first step of a path, the rest of the path); None if the text does not have it.

    Keys may contain dots and brackets, so the longest key with which the path begins is the step:

        {a: {b.c: 1, b: 2}}    a.b.c → b.c    a[b.c] → b.c    a.b → b
    """
    below = place.below
    if isinstance(below, list):
        match = _index(path)
        n = int(match[1]) if match else len(below)
        return (below[n], _rest(path, match.end())) if match and n < len(below) else None
    if below is None:
        return None
    fitting = [
        (len(written), name)
        for name in below
        for written in (name, key(ROOT, name))
        if path.startswith(written) and path[len(written) : len(written) + 1] in ("", ".", "[")
    ]
    if not fitting:
        return None
    length, longest = max(fitting)
    return below[longest], _rest(path, length)


def _rest(path: Path, length: int) -> Path:
    return path[length:].removeprefix(".")


# -- scanning ---------------------------------------------------------------------------------------------------------


def _scan(tokens: Iterator[_Token]) -> tuple[_Place, list[tuple[int, int]]]:
    """(the place of the root, the positions of repeated keys). A text that ends early has the places before its end."""
    root = _Place(0, 0, None)
    duplicates: list[tuple[int, int]] = []
    open_: list[_Below] = []
    keys: list[_Token | None] = []  # of each open collection: the key whose value comes next
    for token in tokens:
        if token.kind == _END:
            open_.pop()
            keys.pop()
            continue
        outer = open_[-1] if open_ else None
        if type(outer) is dict and keys[-1] is None:
            keys[-1] = token
            if token.kind in _BELOW:  # a collection is no key of JSON
                return root, duplicates
            if token.text in outer:
                duplicates.append((token.line, token.column))
            continue
        at = keys[-1] if type(outer) is dict and keys[-1] is not None else token
        below: _Below = _BELOW[token.kind]() if token.kind in _BELOW else None
        place = _Place(at.line, at.column, below)
        if type(outer) is dict:
            outer[at.text] = place
            keys[-1] = None
        elif type(outer) is list:
            outer.append(place)
        else:
            root = place
        if below is not None:
            open_.append(below)
            keys.append(None)
    return root, duplicates


_END: Final = "}"
_BELOW: Final[dict[str, type[dict[str, _Place] | list[_Place]]]] = {"{": dict, "[": list}
_KINDS: Final = {MappingStartEvent: "{", SequenceStartEvent: "["}


def _is_too_deep(error: YAMLError) -> bool:
    return isinstance(error, MarkedYAMLError) and error.problem == yaml.TOO_DEEP


def _yaml_tokens(body: bytes) -> Iterator[_Token]:
    """The tokens of the first document, up to an error."""
    next_event: Callable[[], _Event] = CParser(body).get_event
    yielded = 0
    try:
        while not isinstance(event := next_event(), (DocumentEndEvent, StreamEndEvent)):
            if isinstance(event, (StreamStartEvent, DocumentStartEvent)):
                continue
            mark = event.start_mark
            if isinstance(event, ScalarEvent):
                yield _Token("scalar", mark.line, mark.column, event.value)
            else:
                kind = "alias" if isinstance(event, AliasEvent) else _KINDS.get(type(event), _END)
                yield _Token(kind, mark.line, mark.column)
            yielded += 1
    except YAMLError as error:
        if _is_too_deep(error) and yaml.lift_limit():
            yield from islice(_yaml_tokens(body), yielded, None)


_json_token: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|\n|[^\s"{}\[\]:,]+')


def _json_tokens(body: bytes) -> Iterator[_Token]:
    """The tokens of a JSON text. libyaml does not read tabs and escaped slashes."""
    line, begun = 0, 0
    for match in _json_token.finditer(body.decode("utf-8", "replace")):
        text, column = match[0], match.start() - begun
        if text == "\n":
            line, begun = line + 1, match.end()
        elif text[0] in "{[":
            yield _Token(text, line, column)
        elif text[0] in "}]":
            yield _Token(_END, line, column)
        else:
            yield _Token("scalar", line, column, json.loads(text) if text[0] == '"' else text)


def _is_json(body: bytes) -> bool:
    if body.lstrip()[:1] != b"{":
        return False
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return False
    return True


def _error(body: bytes) -> Position | None:
    if body.lstrip()[:1] == b"{":
        try:
            json.loads(body)
        except json.JSONDecodeError as error:
            return Position(error.lineno, error.colno)
        except (ValueError, RecursionError):
            return None
    parser = CParser(body)
    try:
        while not isinstance(parser.get_event(), (DocumentEndEvent, StreamEndEvent)):
            pass
    except MarkedYAMLError as error:
        if _is_too_deep(error) and yaml.lift_limit():
            return _error(body)
        if mark := error.problem_mark or error.context_mark:
            return Position(mark.line + 1, mark.column + 1)
    except YAMLError:
        pass
    return None
