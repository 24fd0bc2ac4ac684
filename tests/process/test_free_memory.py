"""Freed memory is given back to the system, where that is possible."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import pytest

from noxu.process import limits


def test_all_that_is_free_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[tuple[object, int]] = []
    monkeypatch.setattr(
        ctypes, "CDLL", lambda name: SimpleNamespace(malloc_trim=lambda size: kept.append((name, size)))
    )
    limits.give_back()
    assert kept == [(None, 0)]


def refuse(_: object) -> None:
    raise TypeError("bad argument type for built-in operation")


@pytest.mark.parametrize("library", [lambda _: SimpleNamespace(), refuse], ids=["without the function", "of Windows"])
def test_with_another_library_nothing_happens(library: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", library)
    limits.give_back()


def test_without_ctypes_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctypes", None)
    limits.give_back()
