"""Texts that a pattern, a format and lengths allow.

All randomness is a `Choose`: a function of n that returns a number below n, where 0 is the simplest choice. So the same code
serves a seeded generator and Hypothesis, which shrinks choices towards 0: short texts of the first characters.

Of a pattern one way is chosen through its tree (`pattern_trees`): the first branch, the fewest repetitions. Anchors and flags
are not followed, so every text is checked by RE2 afterwards (`schema.patterns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from noxu.generation.pattern_trees import Alternatives, Members, Terms, tree
from noxu.schema import formats, patterns

Choose: TypeAlias = Callable[[int], int]
"""A number below n, for n ≥ 1."""

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
_FREE_STEPS: Final = 1000
"""After so many terms no repetition is chosen without need: in 16 groups in each other there would be 3^16."""
MAX_STEPS: Final = 50_000
"""Terms that are written for one text; of a pattern that needs more none is found."""


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
    terms = tree(pattern) if pattern else None
    if terms is None:
        return
    if (chosen := _match(terms, choose, 0)) is not None:
        yield chosen
    yield from _simple(pattern, least, most)


@lru_cache(1024)
def _simple(pattern: str, least: int, most: int | None) -> tuple[str, ...]:
    """The simplest match, and longer ones."""
    if (terms := tree(pattern)) is None:
        return ()
    lengths = [longer for longer in (0, 1, least // 2, least, most or 0) if longer <= _LONGEST]
    made = [_match(terms, _simplest, longer) for longer in lengths]
    return tuple(text[: most or None] for text in made if text is not None)


def _simplest(_: int) -> int:
    return 0


def _match(terms: Terms, choose: Choose, longer: int) -> str | None:
    """A text that a sequence of terms matches; None if it takes too many steps.

    Repetitions have `longer` more than the fewest, if they may.
    """
    steps = _Steps()
    try:
        return _written(terms, choose, longer, steps)
    except _TooManySteps:
        return None


class _TooManySteps(Exception):
    pass


class _Steps:
    """Those of one text: `taken` so far."""

    taken = 0

    def take(self) -> None:
        self.taken += 1
        if self.taken > MAX_STEPS:
            raise _TooManySteps


def _written(terms: Terms, choose: Choose, longer: int, steps: _Steps) -> str:
    written = []
    for term in terms:
        steps.take()
        if isinstance(term, str):
            written.append(term)
        elif isinstance(term, Members):
            written.append(term.characters[choose(len(term.characters))] if term.characters else "")
        elif isinstance(term, Alternatives):
            branches = term.branches
            branch = branches[choose(len(branches))] if len(branches) > 1 else branches[0]  # a group has no choice
            written.append(_written(branch, choose, longer, steps))
        else:
            times = min(term.most, term.fewest + longer)
            if steps.taken <= _FREE_STEPS:
                times += choose(min(term.most - times, _WIDEST) + 1)
            written.append("".join(_written((term.once,), choose, 0, steps) for _ in range(times)))
    return "".join(written)
