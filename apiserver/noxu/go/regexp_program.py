"""Patterns compiled to instructions of a machine without backtracking, as RE2 and Go do, for where RE2 is absent.

An instruction is (operation, x, y); places are relative, so code can be copied. SPLIT prefers its first place. For
example `^a(b|c)*`:

    0  ASSERT BEGIN_TEXT
    1  SET {a}
    2  SPLIT 1 6          at 3 comes one more, else 8
    3  SPLIT 1 3          b, else 6
    4  SET {b}
    5  JUMP 2             to 7
    6  SET {c}
    7  JUMP -5            to 2
    8  MATCH

Each character of a text visits each instruction at most once, so matching takes pattern times text at most.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from noxu.cpu_budget import spend
from noxu.go.regexp_alphabet import TOKEN, character_of
from noxu.go.regexp_classes import Ranges
from noxu.go.regexp_sets import character, characters

MAX_SIZE: Final = 78_000
"""Instructions due to repetitions, as many as RE2's budget allows. What is written once has MAX_WRITTEN per character."""
MAX_WRITTEN: Final = 3  # `a|` has three
MAX_RANGES: Final = 100_000
"""Ranges of all classes."""

SET, SPLIT, JUMP, ASSERT, MATCH = range(5)
BEGIN_TEXT, END_TEXT, BEGIN_LINE, END_LINE, WORD, NOT_WORD = range(6)

Instruction = tuple[int, int, int]


class ProgramTooLarge(Exception):
    """The program would have too many instructions or ranges of characters."""


class Program(NamedTuple):
    code: list[Instruction]
    sets: list[Ranges]
    """SET n matches the characters in `sets[n]`."""


class _Piece(NamedTuple):
    """Code, and whether it matches the empty text."""

    code: list[Instruction]
    nullable: bool


class _Flags(NamedTuple):
    ignores_case: bool = False
    dot_matches_all: bool = False
    multi_line: bool = False
    ungreedy: bool = False

    def changed(self, names: str, *, to: bool) -> _Flags:
        return _Flags(*(to if name in names else value for name, value in zip("ismU", self, strict=True)))


_REPEAT: Final = re.compile(r"[*+?]|\{(0|[1-9][0-9]*)(?:(,)([1-9][0-9]*|0)?)?\}\Z")
_ASSERTIONS: Final = {r"\A": BEGIN_TEXT, r"\z": END_TEXT, r"\b": WORD, r"\B": NOT_WORD}


def compiled(pattern: str) -> Program:
    """The program of a pattern that `to_re2` returned. Raises ProgramTooLarge."""
    compiler = _Compiler(MAX_SIZE + MAX_WRITTEN * len(pattern))
    compiler.read(pattern)
    code = compiler.end_group().code
    return Program([*code, (MATCH, 0, 0)], compiler.sets)


class _Compiler:
    __slots__ = ("_alternatives", "_flags", "_max_size", "_numbers", "_outer", "_pieces", "_ranges", "sets")

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self.sets: list[Ranges] = []
        self._numbers: dict[tuple[str, bool, bool], int] = {}
        self._ranges = 0
        self._flags = _Flags()
        self._alternatives: list[_Piece] = []
        self._pieces: list[_Piece] = []
        self._outer: list[tuple[_Flags, list[_Piece], list[_Piece]]] = []

    def read(self, pattern: str) -> None:
        lazy_at = -1  # a question mark here belongs to the repetition before it
        for token in TOKEN.finditer(pattern):
            spend(1)
            kind, text = token.lastgroup, token[0]
            if kind == "kept" and _REPEAT.match(text):
                if token.start() != lazy_at:
                    lazy_at = token.end()
                    self.repeat(text, lazy=pattern.startswith("?", lazy_at))
            elif kind == "kept":
                self.assertion_or_bar(text)
            elif kind == "scope":
                self.scope(token)
            elif kind == "open":
                self.begin_group()
            elif kind == "close":
                piece = self.end_group()
                self._flags, self._alternatives, self._pieces = self._outer.pop()
                self._pieces.append(piece)
            elif kind == "set":
                flags = self._flags
                self.add_set(
                    text, characters(text, ignores_case=flags.ignores_case, dot_matches_all=flags.dot_matches_all)
                )
            elif kind == "quoted":
                self.literal(token["quoted"])
            else:
                self.literal(character_of(token))

    def scope(self, token: re.Match[str]) -> None:
        flags = self._flags.changed(token["flags"], to=True).changed(token["without"] or "", to=False)
        if token["scope"] == ":":
            self.begin_group()
        self._flags = flags

    def begin_group(self) -> None:
        self._outer.append((self._flags, self._alternatives, self._pieces))
        self._alternatives, self._pieces = [], []

    def end_group(self) -> _Piece:
        self.end_alternative()
        if len(self._alternatives) == 1:
            return self._alternatives[0]
        size = sum(len(piece.code) + 2 for piece in self._alternatives) - 2
        code: list[Instruction] = []
        for piece in self._alternatives[:-1]:
            code.append((SPLIT, 1, len(piece.code) + 2))
            code += piece.code
            code.append((JUMP, size - len(code), 0))
        code += self._alternatives[-1].code
        return self.checked(code, any(piece.nullable for piece in self._alternatives))

    def end_alternative(self) -> None:
        pieces = self._pieces
        if len(pieces) == 1:
            self._alternatives.append(pieces[0])
        else:
            code = [instruction for piece in pieces for instruction in piece.code]
            self._alternatives.append(self.checked(code, all(piece.nullable for piece in pieces)))
        self._pieces = []

    def assertion_or_bar(self, text: str) -> None:
        multi_line = self._flags.multi_line
        if text == "|":
            self.end_alternative()
        elif text == "^":
            self.add_assertion(BEGIN_LINE if multi_line else BEGIN_TEXT)
        elif text == "$":
            self.add_assertion(END_LINE if multi_line else END_TEXT)
        elif text in _ASSERTIONS:
            self.add_assertion(_ASSERTIONS[text])
        else:  # {01} is no repetition
            self.literal(text)

    def add_assertion(self, kind: int) -> None:
        self._pieces.append(_Piece([(ASSERT, kind, 0)], nullable=True))

    def literal(self, text: str) -> None:
        for char in text:
            self.add_set(f"={char}", character(ord(char), ignores_case=self._flags.ignores_case))

    def add_set(self, written: str, ranges: Ranges) -> None:
        key = (written, self._flags.ignores_case, self._flags.dot_matches_all)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.sets)
            self.sets.append(ranges)
            spend(len(ranges))
            self._ranges += len(ranges)
            if self._ranges > MAX_RANGES:
                raise ProgramTooLarge
        self._pieces.append(_Piece([(SET, number, 0)], nullable=False))

    def repeat(self, operator: str, *, lazy: bool) -> None:
        once = self._pieces.pop()
        greedy = lazy == self._flags.ungreedy
        if operator == "*":
            piece = _star(once, greedy=greedy)
        elif operator == "+":
            piece = _plus(once, greedy=greedy)
        elif operator == "?":
            piece = _optional(once, 1, greedy=greedy)
        else:
            counted = _REPEAT.match(operator)
            assert counted
            least = int(counted[1])
            most = least if not counted[2] else int(counted[3]) if counted[3] else None
            piece = _counted(once, least, most, greedy=greedy)
        spend(len(piece.code) // 50)
        self._pieces.append(self.checked(*piece))

    def checked(self, code: list[Instruction], nullable: bool) -> _Piece:
        if len(code) > self._max_size:
            raise ProgramTooLarge
        return _Piece(code, nullable)


def _split(first: int, second: int, *, greedy: bool) -> Instruction:
    return (SPLIT, first, second) if greedy else (SPLIT, second, first)


def _star(once: _Piece, *, greedy: bool) -> _Piece:
    if once.nullable:  # with a single SPLIT, what comes after an empty iteration would not be in order of preference
        return _optional(_plus(once, greedy=greedy), 1, greedy=greedy)
    size = len(once.code)
    return _Piece([_split(1, size + 2, greedy=greedy), *once.code, (JUMP, -size - 1, 0)], True)


def _plus(once: _Piece, *, greedy: bool) -> _Piece:
    return _Piece([*once.code, _split(-len(once.code), 1, greedy=greedy)], once.nullable)


def _optional(once: _Piece, times: int, *, greedy: bool) -> _Piece:
    """`(x(x(x)?)?)?` for three times."""
    size = len(once.code) + 1
    if times > 1 and size * times > MAX_SIZE:
        raise ProgramTooLarge
    code: list[Instruction] = []
    for left in range(times, 0, -1):
        code.append(_split(1, size * left, greedy=greedy))
        code += once.code
    return _Piece(code, True)


def _counted(once: _Piece, least: int, most: int | None, *, greedy: bool) -> _Piece:
    if least > 1 and len(once.code) * least > MAX_SIZE:
        raise ProgramTooLarge
    if most is None:
        if not least:
            return _star(once, greedy=greedy)
        last = _plus(once, greedy=greedy)
        return _Piece(once.code * (least - 1) + last.code, once.nullable)
    code = once.code * least
    if most > least:
        code += _optional(once, most - least, greedy=greedy).code
    return _Piece(code, once.nullable or not least)
