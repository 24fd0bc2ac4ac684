"""The tests of laws are slow."""

from __future__ import annotations

import pytest

SLOW = pytest.mark.slow(every=10)


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.get_closest_marker("slow") is None:
        item.add_marker(SLOW)
