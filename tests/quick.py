"""A pytest plugin: `--quick` leaves out the tests that are marked as slow (`./check quick`).

    @pytest.mark.slow              takes about half a second of the processor or more, or waits for seconds
    @pytest.mark.slow(every=40)    of the tests with this mark, each 40th runs, beginning with the first

The mark stands at the test, or is that of its folder (`pytest_itemcollected` in its conftest.py); that at the test counts.
Of the other tests of a folder with many, each second to fourth runs (`FOLDERS`). A table of `tests.rows` is one test.
Hypothesis tries few examples then (profile `quick`, see conftest.py). To find what is slow: `pytest --quick --durations 50`.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

FOLDERS: Final = {
    "admission": 3,
    "cli": 4,
    "conformance": 2,
    "controllers": 3,
    "discovery": 3,
    "envtest": 4,
    "http": 3,
    "kinds": 3,
    "manifests": 2,
    "observability": 2,
    "packaging": 3,
    "security": 3,
    "testing": 3,
}
"""Of the tests in tests/FOLDER without a mark, each n-th runs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out the tests that are marked as slow")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow(every=0): `--quick` leaves it out, or runs each n-th test with this mark")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        folders = {config.rootpath / "tests" / name: pytest.mark.slow(every=n).mark for name, n in FOLDERS.items()}
        seen: Counter[int] = Counter()
        runs = {}
        for item in items:
            of_folder = next((folders[parent] for parent in item.path.parents if parent in folders), None)
            runs[item] = _runs(item.get_closest_marker("slow") or of_folder, seen)
        config.hook.pytest_deselected(items=[item for item in items if not runs[item]])
        items[:] = [item for item in items if runs[item]]


def _runs(mark: pytest.Mark | None, seen: Counter[int]) -> bool:
    """`seen` counts the tests of each mark. That of a parametrized test or of a folder is one object for all of them."""
    if mark is None:
        return True
    every = mark.kwargs.get("every", 0)
    seen[id(mark)] += 1
    return every > 0 and seen[id(mark)] % every == 1 % every
