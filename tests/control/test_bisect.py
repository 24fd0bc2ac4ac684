"""The changes of a condition along the states of an object."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.control import bisect
from noxu.control.bisect import ConditionHistory
from noxu.control.object_states import ObjectState

NO_KEY: Final = "no such key: size"
CHANGES: Final = [
    ("never", [{"size": 1}, {"size": 2}], [(1, False, "")], None),
    ("from the beginning", [{"size": 9}, {"size": 8}], [(1, True, "")], 1),
    ("later", [{"size": 1}, {"size": 2}, {"size": 9}], [(1, False, ""), (3, True, "")], 3),
    ("and false again, and true", [{"size": 1}, {"size": 9}, {"size": 1}, {"size": 9}],
     [(1, False, ""), (2, True, ""), (3, False, ""), (4, True, "")], 2),
    ("a missing field is not true", [{}, {"size": 9}, {}], [(1, False, NO_KEY), (2, True, ""), (3, False, NO_KEY)], 2),
    ("no state", [], [], None),
]  # fmt: skip


@pytest.mark.parametrize(("states", "changes", "first"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_the_changes_of_a_condition(states: list[Any], changes: list[Any], first: int | None) -> None:
    history = ConditionHistory("self.size > 5")
    for revision, state in enumerate(states, 1):  # in portions of one
        history.add([ObjectState(revision, state)])
    assert (history.changes, history.first, history.states) == (changes, first, len(states))
    whole = ConditionHistory("self.size > 5")
    whole.add([ObjectState(revision, state) for revision, state in enumerate(states, 1)])
    assert whole.changes == changes


def test_a_value_that_is_no_truth() -> None:
    history = ConditionHistory("self.size")
    history.add([ObjectState(1, {"size": 1}), ObjectState(2, {"size": True})])
    assert history.changes == [(1, False, "its value is neither true nor false"), (2, True, "")]


@pytest.mark.parametrize("text", ["self.", "1", "other.size > 1", ""])
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(ValueError, match=r"compilation failed|must evaluate to bool"):
        ConditionHistory(text)


def test_only_the_first_changes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bisect, "MAX_CHANGES", 3)
    history = ConditionHistory("self.on")
    history.add([ObjectState(revision, {"on": bool(revision % 2)}) for revision in range(1, 10)])
    assert [change.revision for change in history.changes] == [1, 2, 3]
    assert history.states == 9
