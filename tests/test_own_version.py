"""The version of this program."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

import pytest

from noxu.config import NOT_INSTALLED, own_version


@pytest.fixture(autouse=True)
def _uncached() -> Iterator[None]:
    own_version.cache_clear()
    yield
    own_version.cache_clear()


def test_it_is_that_of_the_installation() -> None:
    assert own_version() == metadata.version("noxu")


def test_a_checkout_that_is_not_installed_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_found(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", not_found)
    assert own_version() == NOT_INSTALLED
