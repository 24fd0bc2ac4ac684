"""Which differences between a recorded answer and an actual one count."""

from __future__ import annotations

import pytest

from noxu.recordings.comparison import ConversationComparison


def differences(recorded: object, actual: object) -> list[str]:
    return list(ConversationComparison({"steps": []}, frozenset()).differences(recorded, actual))


@pytest.mark.parametrize("age", ["0s", "59s", "5m30s", "3h", "3d4h", "99d", "6y325d", "12y"])
def test_ages_in_a_table_differ_from_day_to_day(age: str) -> None:
    assert differences({"cells": ["a", "5s"]}, {"cells": ["a", age]}) == []
    assert differences({"cells": ["a", age]}, {"cells": ["a", "6y325d"]}) == []


@pytest.mark.parametrize("text", ["", "s", "5", "5s ago", "<invalid>", "y6", "5x"])
def test_texts_that_are_not_ages_are_compared(text: str) -> None:
    assert differences({"cells": ["5s"]}, {"cells": [text]}) != []
