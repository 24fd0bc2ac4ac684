"""The syntax of kubectl's JSONPath dialect: text is parsed into steps.

It accepts what upstream's parser (k8s.io/client-go/util/jsonpath) accepts. `jsonpath`, which evaluates the steps, lists
the peculiarities.

    .items[?(@.type=="Ready")].status[-1:]
    FieldStep("items"), FilterStep((FieldStep("type"),), "==", (TextStep("Ready"),)), FieldStep("status"), Slice(-1, None, None, False)
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from noxu.expressions import expression
from noxu.values import MAX_INT64, MIN_INT64, Json


class PathError(ValueError):
    """The text is not a path; upstream logs the error and leaves the column out."""


class Bare(int):
    """An integer whose Go type is not int64: a number in the path, or a byte of a string. It is printed and compared like
    others, but a column of type integer does not show it."""


class FieldStep(NamedTuple):
    name: str


class Slice(NamedTuple):
    """`[start:stop:step]`; `single`: written as `[n]`, with `stop` n+1."""

    start: int | None
    stop: int | None
    step: int | None
    single: bool


class FilterStep(NamedTuple):
    """`operator` "exists" has no right side. An unknown operator is an error only if there are values to compare."""

    left: Steps
    operator: str
    right: Steps
    names: tuple[str, ...] | None = None
    """The names in the left side if it has only fields and the right side is a constant, as in `[?(@.type=="Ready")]`."""


class UnionStep(NamedTuple):
    branches: tuple[Steps, ...]


class Wildcard(NamedTuple):
    pass


class Descent(NamedTuple):
    pass


class TextStep(NamedTuple):
    text: str


class LiteralStep(NamedTuple):
    value: Json


class Word(NamedTuple):
    """`range` or `end`; any other word is an error when it is evaluated."""

    word: str


Step: TypeAlias = FieldStep | Slice | FilterStep | UnionStep | Wildcard | Descent | TextStep | LiteralStep | Word
Steps: TypeAlias = tuple[Step, ...]


def parse(text: str) -> list[Steps | TextStep]:
    """The parts of a path: the steps in each pair of braces, and the texts between them. Raises PathError.

    The outer braces are added to `text`, so that the first part is always one of steps.
    """
    return list(_Parser("{" + text + "}").parts())


_SINGLE_QUOTED: Final = expression(r"'([^']*)'\Z")
_SLICE: Final = expression(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?\Z")
_COMPARISON: Final = expression(r"([^!<>=]+)([!<>=]+)(.+?)\Z")
_INTEGER: Final = expression(r"([+-]?)0*([0-9]+)\Z")
_FLOAT: Final = expression(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)\Z")
_ENDS_NAME: Final = frozenset(" \t\r\n.,[]$@{}")


class _Parser:
    """A cursor over `text`; `at` is the position of the next character, "" its value at the end.

    {.a[0]}     parts() reads the brace
     ^          steps() reads the dot, field() the name up to the bracket
       ^        brackets() reads `[0]`
          ^     steps() ends at the brace
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def next(self) -> str:
        char = self.text[self.at : self.at + 1]
        self.at += len(char)
        return char

    def parts(self) -> Iterator[Steps | TextStep]:
        while self.at < len(self.text):
            brace = self.text.find("{", self.at)
            end = len(self.text) if brace < 0 else brace
            if end > self.at:
                yield TextStep(self.text[self.at : end])
            self.at = end
            if brace >= 0:
                self.at += 1
                yield tuple(self.steps())

    def steps(self) -> list[Step]:
        """The steps in a pair of braces, of which the opening one has been read."""
        steps: list[Step] = []
        while True:
            start = self.at
            char = self.next()
            if char == "}":
                return steps
            if char in ("", "\n", "\r"):
                raise PathError("unclosed action")
            if char in " @$":
                continue
            if self.text.startswith("[?(", start):
                steps.append(self.filter())
            elif self.text.startswith("..", start):
                self.descent(steps)
            elif char == "[":
                steps += self.brackets()
            elif char in "\"'":
                steps.append(TextStep(self.quoted(char)))
            elif char == ".":
                steps.append(self.field())
            elif char in "+-" or char.isdecimal():
                self.at = start
                steps.append(LiteralStep(self.number()))
            elif _is_alphanumeric(char):
                self.at = start
                steps.append(self.word())
            else:
                raise PathError(f"unexpected character {char!r}")

    def descent(self, steps: list[Step]) -> None:
        if steps and isinstance(steps[-1], Descent):
            raise PathError("two recursive descents in a row")
        self.at += 1
        steps.append(Descent())
        if _is_alphanumeric(self.text[self.at : self.at + 1]):
            steps.append(self.field())

    def field(self) -> Step:
        start = self.at
        while (char := self.text[self.at : self.at + 1]) and char not in _ENDS_NAME:
            self.at += 2 if char == "\\" else 1
        self.at = min(self.at, len(self.text))
        name = self.text[start : self.at]
        return Wildcard() if name == "*" else FieldStep(name.replace("\\", ""))

    def word(self) -> Step:
        start = self.at
        while (char := self.text[self.at : self.at + 1]) and char not in _ENDS_NAME:
            self.at += 1
        word = self.text[start : self.at]
        return LiteralStep(word == "true") if word in ("true", "false") else Word(word)

    def number(self) -> Json:
        start = self.at
        if self.text[self.at] in "+-":
            self.at += 1
        while (char := self.text[self.at : self.at + 1]) and (char == "." or char.isdecimal()):
            self.at += 1
        text = self.text[start : self.at]
        if (integer := _int64(text)) is not None:
            return Bare(integer)
        value = float(text) if _FLOAT.match(text) else math.inf
        if math.isinf(value):
            raise PathError(f"no number: {text}")
        return value

    def quoted(self, quote: str) -> str:
        start = self.at
        while True:
            char = self.next()
            if char in ("", "\n"):
                raise PathError("unterminated text")
            if char == quote and self.text[self.at - 2] != "\\":
                return _unquote(self.text[start : self.at - 1], quote)

    def brackets(self) -> Steps:
        """An index, slice, union or quoted name, whose opening bracket has been read."""
        start = self.at
        while (char := self.next()) != "]":
            if char in ("", "\n"):
                raise PathError("unclosed bracket")
        text = self.text[start : self.at - 1]
        if text == "*":
            text = ":"
        branches = text.split(",")
        if len(branches) > 1:
            return (UnionStep(tuple(_action(f"[{branch.strip(' ')}]") for branch in branches)),)
        if name := _SINGLE_QUOTED.match(text):
            return _action("." + name[1])
        return (_slice(text),)

    def filter(self) -> FilterStep:
        """A filter, up to its `)]`; as upstream, a parenthesis in the first quoted text does not close it."""
        self.at += len("?(")
        start = self.at
        quote = ""
        closed = True
        while (char := self.next()) != ")" or not closed:
            if char in ("", "\n"):
                raise PathError("unclosed filter")
            if char in "\"'" and not quote:
                quote, closed = char, False
            elif char == quote and self.text[self.at - 2] != "\\":
                closed = True
        if self.next() != "]":
            raise PathError("unclosed filter")
        text = self.text[start : self.at - 2]
        comparison = _COMPARISON.match(text)
        if comparison is None:
            return FilterStep(_action(text), "exists", ())
        left, right = _action(comparison[1]), _action(comparison[3])
        constant = len(right) == 1 and isinstance(right[0], (TextStep, LiteralStep))
        return FilterStep(left, comparison[2], right, field_names(left) if constant else None)


def _action(text: str) -> Steps:
    """The first part of a path within a path. (At most three levels: it cannot contain `]`.)"""
    first = parse(text)[0]
    assert not isinstance(first, TextStep)
    return first


def field_names(steps: Steps) -> tuple[str, ...] | None:
    """The names of the fields, None if there are other steps."""
    names = tuple(step.name for step in steps if isinstance(step, FieldStep))
    return names if len(names) == len(steps) else None


def _slice(text: str) -> Slice:
    match = _SLICE.match(text)
    if match is None:
        raise PathError(f"no list index: {text}")
    start = _bound(match[1])
    single = match[2] is None
    stop = (start or 0) + 1 if single else _bound(match[2][1:])
    return Slice(start, stop, _bound(match[3][1:]) if match[3] else None, single)


def _bound(text: str) -> int | None:
    if not text:
        return None
    if (bound := _int64(text)) is None:
        raise PathError(f"no list index: {text}")
    return bound


def _int64(text: str) -> int | None:
    """Go's strconv.Atoi; None if it fails."""
    match = _INTEGER.match(text)
    if match is None or len(match[2]) > 19:
        return None
    value = int(f"{match[1]}{match[2]}")
    return value if MIN_INT64 <= value <= MAX_INT64 else None


def _is_alphanumeric(char: str) -> bool:
    return char == "_" or char.isalpha() or char.isdecimal()


_ESCAPE: Final = expression(
    r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))", re.DOTALL
)
_CONTROL: Final = dict(zip("abfnrtv\\", "\a\b\f\n\r\t\v\\", strict=True))


def _unquote(text: str, quote: str) -> str:
    """Decode Go's escapes. In this dialect single quotes are like double quotes: any length, and escapes."""
    out = bytearray()
    at = 0
    while at < len(text):
        if text[at] == quote:
            raise PathError("unescaped quote")
        if text[at] != "\\":
            out += text[at].encode()
            at += 1
            continue
        match = _ESCAPE.match(text, at)
        if match is None or match[1] in {"'", '"'} - {quote}:
            raise PathError("unknown escape")
        char, byte, short, long, octal = match.groups()
        if char:
            out += _CONTROL.get(char, char).encode()
        elif byte or octal:
            code = int(byte, 16) if byte else int(octal, 8)
            if code > 0xFF:
                raise PathError("unknown escape")
            out.append(code)
        else:
            out += _rune(int(short or long, 16))
        at = match.end()
    return out.decode(errors="replace")


def _rune(code: int) -> bytes:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise PathError("unknown escape")
    return chr(code).encode()
