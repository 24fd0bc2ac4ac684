"""The characters that one class of a pattern matches, without RE2: `[a-z\\p{Greek}]`, `\\d`, `.`, a letter whose case is ignored.

A class is the union of its members, with all cases of each if case is ignored, and is negated at last, as in RE2 and Go:

    (?i)[^k]     k is k, K and the Kelvin sign U+212A: [^kK\\x{212A}]

Patterns are those that `to_re2` returned.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Final

from noxu.expressions import expression
from noxu.go.regexp_classes import Ranges, class_ranges

MAX_RUNE: Final = 0x10FFFF
_DIGITS, _LOWER, _UPPER = (0x30, 0x39), (0x61, 0x7A), (0x41, 0x5A)
_WORD: Final = (_DIGITS, _UPPER, (0x5F, 0x5F), _LOWER)
_PERL: Final[dict[str, Ranges]] = {"d": (_DIGITS,), "s": ((0x09, 0x0A), (0x0C, 0x0D), (0x20, 0x20)), "w": _WORD}
POSIX: Final[dict[str, Ranges]] = {
    "alnum": (_DIGITS, _UPPER, _LOWER),
    "alpha": (_UPPER, _LOWER),
    "ascii": ((0x00, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": (_DIGITS,),
    "graph": ((0x21, 0x7E),),
    "lower": (_LOWER,),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": (_UPPER,),
    "word": _WORD,
    "xdigit": (_DIGITS, (0x41, 0x46), (0x61, 0x66)),
}
_MEMBER: Final = expression(
    r"""
    \[: (?P<no_posix> \^? ) (?P<posix> [a-z]+ ) :\]
    | \\ (?P<perl> [dDsSwW] )
    | \\ (?P<sign> [pP] ) (?: \{ (?P<name> [^}]* ) \} | (?P<letter> . ) )
    | (?P<low> (?: \\x\{[0-9a-fA-F]+\} | \\x[0-9a-fA-F]{2} | \\(?:0[0-7]{0,2}|[1-7][0-7]{1,2}) | \\. | . ) )
      (?: - (?P<high> (?: \\x\{[0-9a-fA-F]+\} | \\x[0-9a-fA-F]{2} | \\(?:0[0-7]{0,2}|[1-7][0-7]{1,2}) | \\. | . ) ) )?
    """,
    re.DOTALL | re.VERBOSE,
)
ESCAPES: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@lru_cache(maxsize=256)
def characters(written: str, *, ignores_case: bool = False, dot_matches_all: bool = False) -> Ranges:
    """The code points that a class matches: `[…]`, `\\d` and the like, or `.`."""
    if written == ".":
        return ((0, MAX_RUNE),) if dot_matches_all else ((0, 0x09), (0x0B, MAX_RUNE))
    if not written.startswith("["):
        return merged(_members(written, ignores_case=ignores_case))
    negated = written.startswith("[^")
    found = merged(_members(written[1 + negated : -1], ignores_case=ignores_case))
    return inverse(found) if negated else found


def character(code: int, *, ignores_case: bool) -> Ranges:
    return merged(_with_cases([(code, code)])) if ignores_case else ((code, code),)


def _members(text: str, *, ignores_case: bool) -> Iterator[tuple[int, int]]:
    for member in _MEMBER.finditer(text):
        positive, ranges = _member(member)
        if ignores_case:
            ranges = merged(_with_cases(ranges))
        yield from ranges if positive else inverse(merged(ranges))


def _member(member: re.Match[str]) -> tuple[bool, Iterable[tuple[int, int]]]:
    """Whether it is not negated, and its characters."""
    if member["posix"]:
        return not member["no_posix"], POSIX[member["posix"]]
    if kind := member["perl"]:
        return kind.islower(), _PERL[kind.lower()]
    if member["sign"]:
        return member["sign"] == "p", class_ranges(member["name"] or member["letter"])
    low = _code(member["low"])
    return True, ((low, _code(member["high"]) if member["high"] else low),)


def _code(written: str) -> int:
    if len(written) == 1:
        return ord(written)
    if written[1] == "x":
        return int(written[2:].strip("{}"), 16)
    if written[1].isdigit() and written[1].isascii():
        return int(written[1:], 8)
    return ord(ESCAPES.get(written[1], written[1]))


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same code points in ascending ranges with gaps between them."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            if high > out[-1][1]:
                out[-1] = (out[-1][0], high)
        else:
            out.append((low, high))
    return tuple(out)


def inverse(ranges: Ranges) -> Ranges:
    """All other code points, for ranges as `merged` returns them."""
    out, position = [], 0
    for low, high in ranges:
        if low > position:
            out.append((position, low - 1))
        position = high + 1
    if position <= MAX_RUNE:
        out.append((position, MAX_RUNE))
    return tuple(out)


def _with_cases(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    cased, orbits = _orbits()
    for low, high in ranges:
        yield low, high
        for code in cased[bisect_left(cased, low) : bisect_left(cased, high + 1)]:
            yield from ((other, other) for other in orbits[code])


# Where Unicode has letters with cases, and their cases that Python folds to several characters.
_CASED: Final = (
    (0x41, 0x2FFF), (0xA640, 0xABFF), (0xFB05, 0xFB06), (0xFF21, 0xFF5A), (0x10400, 0x105FF), (0x10C80, 0x10CFF),
    (0x10D50, 0x10D8F), (0x118A0, 0x118DF), (0x16E40, 0x16E7F), (0x1E900, 0x1E943),
)  # fmt: skip
_ONE_LETTER: Final = {0x1FD3: 0x0390, 0x1FE3: 0x03B0, 0xFB06: 0xFB05}


@cache
def _orbits() -> tuple[list[int], dict[int, tuple[int, ...]]]:
    """The characters that have other cases, ascending, and all cases of each (simple case folding)."""
    by_folded: dict[int, list[int]] = {}
    for low, high in _CASED:
        for code in range(low, high + 1):
            by_folded.setdefault(_folded(code), []).append(code)
    orbits = {code: tuple(codes) for codes in by_folded.values() if len(codes) > 1 for code in codes}
    return sorted(orbits), orbits


def _folded(code: int) -> int:
    char = chr(code)
    for folded in (char.casefold(), char.lower()):
        if len(folded) == 1:
            return ord(folded)
    return _ONE_LETTER.get(code, code)
