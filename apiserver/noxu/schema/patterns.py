"""Patterns: Go's regular expressions, matched in linear time by RE2.

A pattern matches when it is found anywhere in the text (Go's MatchString): `^` and `$` anchor it, and `$` is the very
end, never before a final newline. Python's `re` may take exponential time, so it is never used if a client chooses
both pattern and text. RE2's binding is called below its public wrapper, which decodes every span and takes ten times as
long as the search.

A pattern of a few characters may need much memory and time: a Unicode class has a thousand instructions, and up to 1,000
repetitions. RE2's binding does not release the interpreter while it compiles, so its programs are small enough to compile
within 20 ms, and large patterns are rewritten for an alphabet of their own (`regexp_alphabet`) first. Both are accounted
for before they begin, so that they do not happen in the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from typing import Any, Final

from noxu.cpu_budget import spend
from noxu.go.regexp_alphabet import Alphabet, TooManyCharacters, to_bytes
from noxu.go.regexp_syntax import PatternError, to_re2

MEMORY: Final = 512 << 10
"""Bytes of RE2's budget for a pattern's program and its automaton. Half of a 64th of it are the program's instructions."""
MEMORY_LARGE: Final = 5 << 18
"""The budget for patterns that need more: 78,000 instructions, which compile within 20 ms. Two threads may do so in turn."""
MAX_LENGTH: Final = 128 << 10
"""Characters of a pattern."""
MAX_CLASSES: Final = 1000
"""Classes of a pattern that RE2 may read as UTF-8. Each takes up to 5 KB, also if the same one is written again."""
MAX_CACHED_SIZE: Final = 4096
"""Instructions of a pattern that is cached. Validators keep larger ones themselves."""
COMPILATION_UNITS: Final = 200_000
"""Units of work (see `noxu.cpu_budget`) for compiling a pattern that needs more than MEMORY."""
STEPS_PER_UNIT: Final = 500
"""Steps of RE2 in a microsecond, if its automaton needs more than its memory: each byte then visits each instruction."""


class Pattern:
    """A compiled pattern, in RE2."""

    __slots__ = ("_alphabet", "_cheap_length", "_spans", "size", "text")

    def __init__(
        self,
        text: str,
        spans: Callable[[bytes, int, int], list[tuple[int, int]]],
        size: int,
        alphabet: Alphabet | None = None,
    ) -> None:
        """`size`: the number of instructions of the program. `alphabet` None: texts are searched as UTF-8."""
        self.text = text
        self._spans = spans
        self.size = size
        self._alphabet = alphabet
        self._cheap_length = 100 * STEPS_PER_UNIT // max(size, 1)

    def search(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the text."""
        encoded = text.encode() if self._alphabet is None else self._alphabet.encode(text)
        if len(encoded) > self._cheap_length:
            spend(len(encoded) * self.size // STEPS_PER_UNIT)
        return self._spans(encoded, 0, len(encoded))[0][0] >= 0

    def find(self, text: str) -> str | None:
        """The leftmost match (Go's FindString)."""
        return next(self.find_all(text), None)

    def find_all(self, text: str) -> Iterator[str]:
        """All matches that do not overlap; an empty match directly behind another one is skipped (Go's FindAllString)."""
        encoded = text.encode() if self._alphabet is None else self._alphabet.encode(text)
        position, previous_end = 0, -1
        while position <= len(encoded):
            start, end = self._spans(encoded, position, len(encoded))[0]
            if start < 0:
                return
            if end > start or start != previous_end:
                yield encoded[start:end].decode() if self._alphabet is None else text[start:end]
            previous_end = end
            position = end if end > position else self._next_character(encoded, position)

    def _next_character(self, encoded: bytes, position: int) -> int:
        position += 1
        while self._alphabet is None and position < len(encoded) and encoded[position] & 0xC0 == 0x80:
            position += 1
        return position


def compile(text: str) -> Pattern:  # noqa: A001 - patterns.compile, as re.compile
    """A compiled pattern. Raises PatternError, a ValueError with Go's message."""
    try:
        return _compile_cached(text)
    except _TooLargeToCache as large:
        return large.pattern


@lru_cache(maxsize=4096)
def size(text: str) -> int:
    """The number of instructions of a pattern's program. Raises PatternError."""
    return compile(text).size


class _TooLargeToCache(Exception):
    """The pattern is compiled, and lru_cache does not keep what a function raises."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__()
        self.pattern = pattern


@lru_cache(maxsize=256)
def _compile_cached(text: str) -> Pattern:
    pattern = _compile(text)
    if pattern.size > MAX_CACHED_SIZE:
        raise _TooLargeToCache(pattern)
    return pattern


def _compile(text: str) -> Pattern:
    """The pattern compiled as UTF-8 if it is small, else with an alphabet of its own, or with more memory."""
    if len(text) > MAX_LENGTH:
        raise PatternError("expression too large", text)
    translated = to_re2(text)
    pattern = None
    has_few_classes = translated.count("[") <= MAX_CLASSES
    if has_few_classes and "\\B" not in translated:  # in UTF-8 it would hold between the octets of a character
        pattern = _program(text, translated, memory=MEMORY)
    if pattern is None:
        spend(COMPILATION_UNITS)
        try:
            pattern = _program(text, *to_bytes(translated))
        except TooManyCharacters:
            pattern = _program(text, translated) if has_few_classes else None
    if pattern is None:
        raise PatternError("expression too large", text)
    return pattern


def _program(
    text: str, translated: str, alphabet: Alphabet | None = None, memory: int = MEMORY_LARGE
) -> Pattern | None:
    """The pattern, None if it needs more memory."""
    binding, new_options, anywhere = _re2()
    options = new_options()
    options.max_mem = memory
    options.never_capture = True  # only the span of the whole match is asked for
    options.log_errors = False
    if alphabet is not None:
        options.encoding = new_options.Encoding.LATIN1
    program = binding(translated.encode(), options)
    if not program.ok():
        return None
    return Pattern(text, partial(program.Match, anywhere), program.ProgramSize(), alphabet)


def engine() -> str:
    """Where RE2 is installed, without importing it: another version may have other sizes and limits of programs."""
    spec = find_spec("re2")
    return "" if spec is None else str(spec.origin)


@cache
def _re2() -> tuple[Any, Any, Any]:
    """(engine class, class of its options, the constant for unanchored matches) of the binding, imported by the first pattern."""
    from re2 import Options, _re2

    return _re2.RE2, Options, _re2.RE2.Anchor.UNANCHORED
