"""The limit of nested collections that libyaml has since 0.2.6: it is lifted when a document needs it, where that is possible."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # the stubs do not export it
from yaml.parser import ParserError

from noxu.go import yaml
from noxu.go import yaml as go_yaml


class Library:
    """A libyaml with a limit."""

    def __init__(self) -> None:
        self.limit = 1000

    def yaml_get_max_nest_level(self) -> int:
        return self.limit

    def yaml_set_max_nest_level(self, limit: int) -> None:
        self.limit = limit


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """Its parser takes every document for one of 5000 levels."""
    found = Library()

    def parser(body: Any) -> Any:
        if found.limit < 5000:
            raise ParserError(None, None, yaml.TOO_DEEP, None)
        return CParser(body)

    monkeypatch.setattr(ctypes, "CDLL", lambda _: found)
    monkeypatch.setattr(go_yaml, "CParser", parser)
    return found


def test_a_document_that_is_too_deep_for_libyaml_is_read_without_its_limit(library: Library) -> None:
    assert go_yaml.read_events(b"a: b\n").value == {"a": "b"}
    assert library.limit > 10_000


def test_without_the_function_the_document_is_refused(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    with pytest.raises(go_yaml.YamlError, match=r"^yaml: exceeded maximum nesting depth$"):
        go_yaml.read_events(b"a: b\n")


def test_a_limit_is_lifted_once(library: Library) -> None:
    assert [yaml.lift_limit(), yaml.lift_limit()] == [True, False]
