"""Patterns over an alphabet of their own, in which each character is one byte.

RE2 reads UTF-8, so a class such as `\\pL` becomes an automaton over bytes with 1,196 instructions, and `\\pL{400}` repeats it
400 times: half a million instructions, which take half a second to compile and 8 MiB. In Go a class is one instruction.

A pattern does not distinguish characters that are members of the same of its classes. They share one byte, and texts are
translated into these bytes before they are searched. ASCII stays as it is, which `\\b`, `^` and `$` rely on. For example,
the pattern `^\\p{Lu}[a\\pL]{2}$` distinguishes three sorts of characters beyond ASCII:

    0x80   in no class             ٣ ☃
    0x81   in [\\p{Lu}], [a\\p{L}]   É Ω
    0x82   in [a\\p{L}]             é 日

    pattern   ^[\\x41-\\x5A\\x81][\\x41-\\x5A\\x61-\\x7A\\x81-\\x82]{2}$      with RE2's encoding Latin-1
    Éa日      \\x81 a \\x82

RE2 itself tells the members of a class, also of one that ignores case: it finds them in a text of all characters. The
flags `i` and `s` are resolved so; the others are left to RE2.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, Final

from noxu.cpu_budget import spend
from noxu.expressions import expression

Ranges = tuple[tuple[int, int], ...]
"""Code points from, to (inclusive), ascending."""
MAX_RUNE: Final = 0x10FFFF
ESCAPES: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
MAX_SETS: Final = 128  # classes and characters beyond ASCII in a pattern
SCAN_UNITS: Final = 10_000  # units of work (see `noxu.cpu_budget`) for finding the members of a class
CLASS_MEMORY: Final = (
    4 << 20
)  # bytes of RE2's budget for a class: with less its automaton is slow, 0.5 s for \pL instead of 0.04
_BYTES: Final = 128  # beyond ASCII
_PIECE: Final = 16 * 1024  # characters that are translated at once


class TooManyCharacters(Exception):
    """The pattern distinguishes more sorts of characters than a byte has values."""


class Alphabet:
    """The bytes of all characters: `bytes[n]` is that of the code points from `starts[n]` to before `starts[n + 1]`."""

    __slots__ = ("_bytes", "_starts")

    def __init__(self, starts: list[int], bytes_: list[int]) -> None:
        self._starts, self._bytes = starts, bytes_

    def encode(self, text: str) -> bytes:
        """One byte for each character."""
        if text.isascii():
            return text.encode()
        return b"".join(self._encode_piece(text[start : start + _PIECE]) for start in range(0, len(text), _PIECE))

    def _encode_piece(self, text: str) -> bytes:
        codes = {ord(char) for char in set(text) if char > "\x7f"}
        return text.translate({code: self._bytes[bisect_right(self._starts, code) - 1] for code in codes}).encode(
            "latin-1"
        )


TOKEN: Final = expression(
    r"""
    \\Q (?P<quoted> .*? ) (?: \\E | \Z )
    | \(\? (?P<flags> [imsU]* ) (?: - (?P<without> [imsU]* ) )? (?P<scope> [:)] )
    | (?P<open> \( ) (?: \?P?< [^>]* > )?
    | (?P<close> \) )
    | (?P<kept> \\[AbBz] | [\^$|*+?] | \{ [0-9]+ (?: , [0-9]* )? \} )
    | (?P<set> \[ \^?+ \]?+ (?: \[: \^? [a-z]+ :\] | \\. | [^\]\\] )*+ \] | \\[dDsSwW] | \. )
    | \\x (?: \{ (?P<hex> [0-9a-fA-F]+ ) \} | (?P<byte> [0-9a-fA-F]{2} ) )
    | \\ (?P<octal> 0 [0-7]{0,2} | [1-7] [0-7]{1,2} )
    | \\ (?P<escape> . )
    | (?P<char> . )
    """,
    re.DOTALL | re.VERBOSE,
)
"""A part of a pattern that `to_re2` returned."""
_FOLDED_BEYOND_ASCII: Final = frozenset("kKsS")  # the Kelvin sign and the long s are K and S if case is ignored


def to_bytes(pattern: str) -> tuple[str, Alphabet]:
    """A pattern that `to_re2` returned, for RE2's encoding Latin-1, and the alphabet of its texts. Raises TooManyCharacters."""
    sets: dict[str, Ranges] = {}
    parts = list(_parts(pattern, sets))
    starts, masks = _partition(list(sets.values()))
    if len(set(masks)) > _BYTES:
        raise TooManyCharacters
    byte_of = {mask: 0x80 + n for n, mask in enumerate(dict.fromkeys(masks))}
    written = {
        name: _written(ranges, [byte for mask, byte in byte_of.items() if mask >> n & 1])
        for n, (name, ranges) in enumerate(sets.items())
    }
    out = "".join(written[text] if is_set else text for text, is_set in parts)
    return out, Alphabet(starts, [byte_of[mask] for mask in masks])


def _parts(pattern: str, sets: dict[str, Ranges]) -> Iterator[tuple[str, bool]]:
    """What is written as it is, and the names of sets (True), whose members are added to `sets`."""
    ignores_case, dot_matches_all = False, False
    outer: list[tuple[bool, bool]] = []  # the flags before each open group

    def named(name: str, find: Callable[[], Ranges]) -> tuple[str, bool]:
        if name not in sets:
            if len(sets) == MAX_SETS:
                raise TooManyCharacters
            sets[name] = find()
        return name, True

    def scanned(regex: str) -> tuple[str, bool]:
        spend(SCAN_UNITS if regex not in sets else 1)
        return named(regex, lambda: members(regex))

    def character(char: str) -> tuple[str, bool]:
        code, regex = ord(char), f"(?i){re.escape(char)}"
        if not ignores_case or not char.isalpha():
            return (f"\\x{code:02X}", False) if code < 0x80 else named(char, lambda: ((code, code),))
        if code >= 0x80 or char in _FOLDED_BEYOND_ASCII:
            return scanned(regex)
        return f"[{char.lower()}{char.upper()}]", False

    for token in TOKEN.finditer(pattern):
        spend(1)
        kind, text = token.lastgroup, token[0]
        if kind == "scope":
            if token["scope"] == ":":
                outer.append((ignores_case, dot_matches_all))
            with_, without = token["flags"], token["without"] or ""
            ignores_case = (ignores_case or "i" in with_) and "i" not in without
            dot_matches_all = (dot_matches_all or "s" in with_) and "s" not in without
            yield _kept_flags(with_, without, token["scope"]), False
        elif kind == "open":
            outer.append((ignores_case, dot_matches_all))
            yield "(?:", False
        elif kind == "close":
            ignores_case, dot_matches_all = outer.pop()
            yield text, False
        elif kind == "kept":
            yield text, False
        elif kind == "set":
            yield scanned(f"{'(?i)' * ignores_case}{'(?s)' * dot_matches_all}{text}")
        elif kind == "quoted":
            yield from map(character, token["quoted"])
        else:
            yield character(character_of(token))


def character_of(token: re.Match[str]) -> str:
    """The character of a token that is one: `a`, `\\.`, `\\n`, `\\x41`."""
    if number := token["hex"] or token["byte"]:
        return chr(int(number, 16))
    if token["octal"]:
        return chr(int(token["octal"], 8))
    escape = token["escape"]
    return token["char"] if escape is None else ESCAPES.get(escape, escape)


def _kept_flags(with_: str, without: str, scope: str) -> str:
    """The flags m and U of a group; the others are resolved. `a*(?i)*` stays apart from `a**`, which is an error."""
    on, off = ("".join(flag for flag in flags if flag in "mU") for flags in (with_, without))
    flags = f"{on}-{off}" if off else on
    return f"(?{flags}{scope}" if flags or scope == ":" else "(?-i)"


def _written(ranges: Ranges, beyond_ascii: list[int]) -> str:
    """A class of bytes."""
    pairs = [(low, min(high, 0x7F)) for low, high in ranges if low < 0x80]
    pairs += [(byte, byte) for byte in beyond_ascii]
    merged: list[tuple[int, int]] = []
    for low, high in pairs:
        if merged and merged[-1][1] + 1 == low:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return "".join(("[", *(f"\\x{low:02X}-\\x{high:02X}" for low, high in merged), "]")) if merged else r"[^\x00-\xFF]"


def _partition(sets: list[Ranges]) -> tuple[list[int], list[int]]:
    """The code points from which on other sets have members, and these sets: bit n is that of `sets[n]`."""
    toggled = {0: 0}
    for n, ranges in enumerate(sets):
        for low, high in ranges:
            for code in (max(low, 0x80), high + 1):
                if high >= 0x80:
                    toggled[code] = toggled.get(code, 0) ^ 1 << n
    starts = sorted(toggled)
    masks, mask = [], 0
    for code in starts:
        mask ^= toggled[code]
        masks.append(mask)
    return starts, masks


@lru_cache(maxsize=64)
def members(regex: str) -> Ranges:
    """The code points that a regular expression for one character matches, as RE2 says. Raises TooManyCharacters."""
    from re2 import Options, _re2  # only patterns need it

    options = Options()
    options.never_capture = True
    options.log_errors = False
    options.max_mem = CLASS_MEMORY
    program: Any = _re2.RE2(f"(?:{regex})+".encode(), options)
    if not program.ok():
        raise TooManyCharacters
    text, position = _all_characters(), 0
    ranges: list[tuple[int, int]] = []
    while True:
        start, end = program.Match(_re2.RE2.Anchor.UNANCHORED, text, position, len(text))[0]
        if start < 0:
            return tuple(ranges)
        first, last = (
            text[start : start + 4].decode(errors="ignore")[0],
            text[end - 4 : end].decode(errors="ignore")[-1],
        )
        ranges.append((ord(first), ord(last)))
        position = end


@cache
def _all_characters() -> bytes:
    """UTF-8, in pieces that do not keep other threads waiting. Surrogates are no characters."""
    starts = (*range(0, 0xD800, 0x800), *range(0xE000, MAX_RUNE + 1, 0x800))
    return b"".join("".join(map(chr, range(start, start + 0x800))).encode() for start in starts)
