"""From a random run that fails to the few faults that make it fail.

What a run has hit is written as rules that hit the same again without chance: for each hit a rule with `nth`, the number of the
request among those that the rule matches. Then subsets are tried, by delta debugging (Zeller and Hildebrandt, "Simplifying and
Isolating Failure-Inducing Input"): halves, then smaller parts and what is left without them, as long as the run still fails.

    hits a1 a2 a3 a4, of which a2 and a4 together make it fail
    halves            a1 a2  passes    a3 a4  passes
    quarters left out a2 a3 a4  fails  → go on with these
                      a2 a4     fails  → neither can be left out
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from noxu.control.faults.effects import EFFECTS
from noxu.control.faults.rules import CHOOSING
from noxu.values import Object

T = TypeVar("T")


def explicit(fired: Object) -> list[Object]:
    """The rules that hit what was hit, each by itself: of an answer of `GET /_noxu/faults/fired`.

    Rules that hit no requests (views, restarts, objects that change) stay what they are. Raises ValueError for another object.
    """
    sources, hits = fired.get("rules"), fired.get("fired")
    if not isinstance(sources, list) or not isinstance(hits, list):
        raise ValueError("it is not what `noxu fault fired -o json` prints")
    rules = []
    for source in sources:
        effect = next(name for name in source if name in EFFECTS)
        numbers = sorted({hit["number"] for hit in hits if hit["rule"] == source["name"]})
        if effect in _LASTING:
            rules.append(source)
            continue
        bare = {name: value for name, value in source.items() if name not in CHOOSING}
        rules += [{**bare, "name": f"{source['name']}-{number}", "nth": number} for number in numbers]
    return rules


_LASTING: Final = ("view", "restart", "mutate")


def smallest(parts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """The least of the parts with which it still fails: none of them can be left out. It fails with all of them."""
    kept, size = list(parts), 2
    while len(kept) > 1:
        chunks = [kept[len(kept) * n // size : len(kept) * (n + 1) // size] for n in range(size)]
        rests = [[part for other in chunks if other is not chunk for part in other] for chunk in chunks]
        smaller = next((chunk for chunk in chunks if fails(chunk)), None)
        if smaller is not None:
            kept, size = smaller, 2
            continue
        smaller = next((rest for rest in rests if len(rests) > 2 and fails(rest)), None)  # of two, they are the chunks
        if smaller is not None:
            kept, size = smaller, max(size - 1, 2)
        elif size < len(kept):
            size = min(size * 2, len(kept))
        else:
            break
    return kept


def plan_of(rules: Sequence[Object], seed: int) -> Mapping[str, object]:
    """A plan of these rules."""
    return {"seed": seed, "rules": list(rules)}
