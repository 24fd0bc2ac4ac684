"""Texts that a pattern, a format and lengths allow.

All randomness is a `Choose`: a function of n that returns a number below n, where 0 is the simplest choice. So the same code
serves a seeded generator and Hypothesis, which shrinks choices towards 0: short texts of the first characters.

A pattern is parsed by Python's own parser of regular expressions, and one way through it is chosen: the first branch, the
fewest repetitions. Go's syntax differs in places, so every text is checked by RE2 afterwards (`schema.patterns`).
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, TypeAlias

from noxu.schema import formats, patterns

Choose: TypeAlias = Callable[[int], int]
"""A number below n, for n ≥ 1."""

PRINTABLE: Final = string.ascii_lowercase + string.digits + string.ascii_uppercase + "-_./: " + string.punctuation
WORDS: Final = ("a", "b", "c", "a-1", "10", "example.com", "a.example.com", "10.0.0.1", "10.0.0.0/8", "/a", "1h", "100m",
    "https://example.com", "a/b", "b.example.com/a", "2020-01-01T00:00:00Z", "a@example.com", "::1",
)  # fmt: skip
"""Texts that common rules and formats ask for, the simplest first."""
OF_FORMAT: Final[Mapping[str, Sequence[str]]] = {
    "bsonobjectid": ("a" * 24,),
    "uri": ("/a", "https://example.com"),
    "mac": ("00:00:5e:00:53:01",),
    "uuid": ("00000000-0000-4000-8000-000000000000",),
    "uuid3": ("00000000-0000-3000-8000-000000000000",),
    "uuid4": ("00000000-0000-4000-8000-000000000000",),
    "uuid5": ("00000000-0000-5000-8000-000000000000",),
    "isbn": ("0000000000",),
    "isbn10": ("0000000000",),
    "isbn13": ("9780000000002",),
    "creditcard": ("4111111111111111",),
    "ssn": ("111-11-1111",),
    "hexcolor": ("#000000", "#fff"),
    "rgbcolor": ("rgb(0,0,0)",),
    "byte": ("", "YQ==", "YWI="),
    "date": ("2020-01-01",),
    "duration": ("1s", "1h30m"),
}
_WIDEST: Final = 2
"""Repetitions beyond the fewest that are chosen without need."""
_LONGEST: Final = 4096
"""Repetitions that are tried for a text of a least length."""
_POSIX: Final = {"alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "lower": "a-z", "upper": "A-Z", "word": r"\w"}


def text(
    choose: Choose, pattern: str, format_: str, least: int, most: int | None, words: Sequence[str] = ()
) -> str | None:
    """A text with `least` to `most` characters, None if none is found. `words` are preferred where they fit."""
    checks: list[Callable[[str], bool]] = [
        lambda value: least <= len(value) <= (most if most is not None else len(value))
    ]
    if pattern:
        checks.append(patterns.compile(pattern).search)
    if (checker := formats.checker(format_) if format_ else None) is not None:
        checks.append(checker)
    known = (*words, *OF_FORMAT.get(format_.replace("-", ""), ()), *WORDS, "a" * least)
    fitting = list(dict.fromkeys(word for word in known if all(check(word) for check in checks)))
    made = [word for word in _made(choose, pattern, least, most) if all(check(word) for check in checks)]
    fitting = [*fitting[: len(words)], *made, *fitting[len(words) :]] if pattern else fitting
    preferred = [word for word in fitting if word in words]
    if preferred and choose(2) == 0:
        return preferred[choose(len(preferred))]
    return fitting[choose(len(fitting))] if fitting else None


def sample(pattern: str) -> str | None:
    """The simplest text that a pattern matches, None if none is found; for a text without special characters, itself."""
    try:
        search = patterns.compile(pattern).search
    except ValueError:
        return None
    return next((made for made in _simple(pattern, 0, None) if search(made)), None)


def _made(choose: Choose, pattern: str, least: int, most: int | None) -> Iterator[str]:
    """Matches of a pattern: a chosen one, and without further choices, the simplest and longer ones."""
    parsed = _parsed(pattern) if pattern else None
    if parsed is None:
        return
    yield _match(parsed, choose, 0)
    yield from _simple(pattern, least, most)


@lru_cache(1024)
def _simple(pattern: str, least: int, most: int | None) -> tuple[str, ...]:
    """The simplest match, and longer ones."""
    if (parsed := _parsed(pattern)) is None:
        return ()
    lengths = [longer for longer in (0, 1, least // 2, least, most or 0) if longer <= _LONGEST]
    return tuple(_match(parsed, _simplest, longer)[: most or None] for longer in lengths)


def _simplest(_: int) -> int:
    return 0


@lru_cache(512)
def _parsed(pattern: str) -> Any:
    """The pattern as Python's parser has it; None if Python refuses it."""
    for name, characters in _POSIX.items():
        pattern = pattern.replace(f"[:{name}:]", characters)
    try:
        return import_module("re._parser").parse(pattern.replace(r"\z", r"\Z"))
    except (re.error, OverflowError, RecursionError):
        return None


def _match(parsed: Any, choose: Choose, longer: int) -> str:
    """A text that a sequence of nodes matches. Repetitions have `longer` more than the fewest, if they may."""
    written = []
    for operation, argument in parsed:
        name = str(operation)
        if name == "LITERAL":
            written.append(chr(argument))
        elif name == "NOT_LITERAL":
            written.append(_one_of([c for c in PRINTABLE if ord(c) != argument], choose))
        elif name == "ANY":
            written.append(_one_of(PRINTABLE, choose))
        elif name == "IN":
            written.append(_one_of(_members(tuple(argument)), choose))
        elif name == "BRANCH":
            written.append(_match(argument[1][choose(len(argument[1]))], choose, longer))
        elif name == "SUBPATTERN":
            written.append(_match(argument[-1], choose, longer))
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            fewest, most, inner = argument
            times = min(int(most), fewest + longer)
            times += choose(min(int(most) - times, _WIDEST) + 1)
            written.append("".join(_match(inner, choose, 0) for _ in range(times)))
    return "".join(written)


def _one_of(characters: Sequence[str], choose: Choose) -> str:
    return characters[choose(len(characters))] if characters else ""


@lru_cache(1024)
def _members(items: Any) -> list[str]:
    """The characters of a class, printable ones first."""
    negated = [item for item in items if str(item[0]) == "NEGATE"]
    tests = [_TESTS[str(name)](argument) for name, argument in items if str(name) in _TESTS]
    found = [c for c in PRINTABLE if any(test(c) for test in tests) is not bool(negated)]
    if not found and not negated:
        firsts = [
            argument if str(name) == "LITERAL" else argument[0]
            for name, argument in items
            if str(name) in ("LITERAL", "RANGE")
        ]
        found = [chr(code) for code in firsts]
    return found


_CATEGORIES: Final[Mapping[str, Callable[[str], bool]]] = {
    "CATEGORY_DIGIT": lambda c: c.isdigit(),
    "CATEGORY_NOT_DIGIT": lambda c: not c.isdigit(),
    "CATEGORY_SPACE": lambda c: c.isspace(),
    "CATEGORY_NOT_SPACE": lambda c: not c.isspace(),
    "CATEGORY_WORD": lambda c: c.isalnum() or c == "_",
    "CATEGORY_NOT_WORD": lambda c: not (c.isalnum() or c == "_"),
}
_TESTS: Final[Mapping[str, Callable[[Any], Callable[[str], bool]]]] = {
    "LITERAL": lambda code: lambda c: ord(c) == code,
    "RANGE": lambda ends: lambda c: ends[0] <= ord(c) <= ends[1],
    "CATEGORY": lambda name: _CATEGORIES[str(name)],
}
