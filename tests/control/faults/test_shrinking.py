"""From what a run has hit to the few faults that make it fail."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from noxu.control.faults.rules import parse
from noxu.control.faults.shrinking import explicit, smallest
from noxu.values import Object
from tests.rows import rows


def test_hits_become_rules_without_chance() -> None:
    rules: list[Object] = [
        {"name": "a", "match": {"verbs": ["update"]}, "probability": 0.3, "error": "Conflict"},
        {"name": "never", "error": 500, "times": 1},
        {"name": "frozen", "match": {"resource": "w"}, "view": "freeze"},
    ]
    fired = {
        "rules": rules,
        "fired": [{"rule": "a", "number": 7}, {"rule": "a", "number": 2}, {"rule": "gone", "number": 1}],
    }
    found = explicit(fired)
    assert found == [
        {"name": "a-2", "match": {"verbs": ["update"]}, "nth": 2, "error": "Conflict"},
        {"name": "a-7", "match": {"verbs": ["update"]}, "nth": 7, "error": "Conflict"},
        rules[2],
    ]
    assert [rule.name for rule in parse(found)] == ["a-2", "a-7", "frozen"]


def test_another_file_is_refused() -> None:
    with pytest.raises(ValueError, match="it is not what `noxu fault fired -o json` prints"):
        explicit({"items": []})


@rows(("needed", "number"), [([3], 8), ([0, 7], 8), ([1, 2, 6], 9), (list(range(5)), 5), ([4], 5), ([0], 1)])
def test_the_least_that_fails(needed: Sequence[int], number: int) -> None:
    runs = []

    def fails(parts: Sequence[int]) -> bool:
        runs.append(parts)
        return set(needed) <= set(parts)

    assert smallest(range(number), fails) == list(needed)
    assert len(runs) <= 10 * number


def test_none_of_what_is_left_can_be_left_out() -> None:
    chance = random.Random(7)
    for _ in range(200):
        groups = [set(chance.sample(range(20), chance.randrange(1, 4))) for _ in range(3)]

        def fails(parts: Sequence[int], groups: Sequence[set[int]] = groups) -> bool:
            return any(group <= set(parts) for group in groups)

        least = smallest(range(20), fails)
        assert fails(least)
        assert not any(fails([part for part in least if part != left_out]) for left_out in least)
