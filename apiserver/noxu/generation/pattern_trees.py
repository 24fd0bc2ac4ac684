"""The trees of patterns, as far as texts are made from them: a sequence of characters, classes, alternatives and repetitions.

Go's syntax is checked by `go.regexp_syntax`, and the pattern is taken apart by the tokens of `go.regexp_alphabet`. Flags are
left out, an anchor is an empty text, and lazy repetitions are as the others. RE2 itself says which characters a class has.

    a(b|[0-9])*    "a", Repetition(Alternatives([["b"], [Members("0123456789")]]), 0, MANY)
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from noxu.go.regexp_alphabet import TOKEN, TooManyCharacters, character_of, members
from noxu.go.regexp_syntax import PatternError, to_re2
from noxu.schema import patterns

PRINTABLE: Final = string.ascii_lowercase + string.digits + string.ascii_uppercase + "-_./: " + string.punctuation
MANY: Final = 1 << 31
"""The most repetitions of `*`, `+` and `{n,}`."""
DEEPEST: Final = 100
"""Groups in each other that are read; texts are made recursively."""
_REPETITIONS: Final = {"*": (0, MANY), "+": (1, MANY), "?": (0, 1)}


class Members(NamedTuple):
    """One of the characters of a class, printable ones if it has any. Empty for a class without characters."""

    characters: str


class Alternatives(NamedTuple):
    """A group: one of its branches."""

    branches: Sequence[Terms]


class Repetition(NamedTuple):
    """`fewest` to `most` times a term."""

    once: Term
    fewest: int
    most: int


Term: TypeAlias = "str | Members | Alternatives | Repetition"
"""A text has one character, or none for an anchor."""
Terms: TypeAlias = Sequence[Term]


@lru_cache(512)
def tree(pattern: str) -> Terms | None:
    """The tree of a pattern; None if Go refuses it, or its groups are nested too deeply."""
    try:
        tokens = TOKEN.finditer(to_re2(pattern))
    except PatternError:
        return None
    open_groups: list[list[list[Term]]] = [[[]]]  # of each the branches so far
    for token in tokens:
        kind, text = token.lastgroup, token[0]
        terms = open_groups[-1][-1]
        if kind == "open" or (kind == "scope" and token["scope"] == ":"):
            if len(open_groups) > DEEPEST:
                return None
            open_groups.append([[]])
        elif kind == "close":
            group = Alternatives(open_groups.pop())
            open_groups[-1][-1].append(group)
        elif text == "|" and kind == "kept":
            open_groups[-1].append([])
        elif kind == "kept" and (text in _REPETITIONS or text[0] == "{"):
            _repeat(terms, text)
        elif kind == "set":
            terms.append(Members(_characters(text)))
        elif kind == "quoted":
            terms += token["quoted"]
        elif kind == "kept":
            terms.append("")
        elif kind != "scope":
            terms.append(character_of(token))
    return (Alternatives(open_groups[0]),)


def _repeat(terms: list[Term], text: str) -> None:
    """Replace the last term by its repetition. A `?` behind one makes it lazy."""
    if text == "?" and isinstance(terms[-1], Repetition):
        return
    fewest, most = _REPETITIONS[text] if text in _REPETITIONS else _counted(text)
    terms.append(Repetition(terms.pop(), fewest, most))


def _counted(text: str) -> tuple[int, int]:
    """The bounds of `{2}`, `{2,}` and `{2,3}`."""
    fewest, comma, most = text[1:-1].partition(",")
    return int(fewest), int(most) if most else MANY if comma else int(fewest)


@lru_cache(1024)
def _characters(class_: str) -> str:
    """The printable members of a class, or if there are none the first of each of its ranges."""
    search = patterns.compile(class_).search
    try:
        return "".join(filter(search, PRINTABLE)) or "".join(chr(low) for low, _ in members(class_))
    except TooManyCharacters:
        return ""
