"""A pytest plugin: `--quick` leaves out the tests that are marked as slow (`./check quick`).

    @pytest.mark.slow              takes about half a second of the processor or more, or waits for seconds
    @pytest.mark.slow(every=40)    of the tests with this mark, each 40th runs, beginning with the first

The mark stands at the test, or is that of its folder (`pytest_itemcollected` in its conftest.py); that at the test counts.
Hypothesis tries few examples then (profile `quick`, see conftest.py). To find what is slow: `pytest --quick --durations 50`.
"""

from __future__ import annotations

from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out the tests that are marked as slow")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow(every=0): `--quick` leaves it out, or runs each n-th test with this mark")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        seen: Counter[int] = Counter()
        runs = {item: _runs(item.get_closest_marker("slow"), seen) for item in items}
        config.hook.pytest_deselected(items=[item for item in items if not runs[item]])
        items[:] = [item for item in items if runs[item]]


def _runs(mark: pytest.Mark | None, seen: Counter[int]) -> bool:
    """`seen` counts the tests of each mark. That of a parametrized test or of a folder is one object for all of them."""
    if mark is None:
        return True
    every = mark.kwargs.get("every", 0)
    seen[id(mark)] += 1
    return every > 0 and seen[id(mark)] % every == 1 % every
