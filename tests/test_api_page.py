"""docs/api.md is the page that the docstrings of the public names make."""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import re
import typing

import pytest

import noxu
from docs import api_page
from docs.api_page import PAGE, SECTIONS, TYPES, page
from tests.rows import rows


def test_the_page_is_that_of_the_docstrings() -> None:
    assert PAGE.read_text() == page(), "python -m docs.api_page"


@rows("name", noxu.__all__)
def test_a_public_name_has_a_docstring_and_its_place_on_the_page(name: str) -> None:
    public = getattr(noxu, name)
    assert inspect.getdoc(public)
    assert f"### {name}\n" in page()
    for method, function in vars(public).items():
        if inspect.isfunction(function) and not method.startswith("_"):
            assert function.__doc__, f"{name}.{method}"


def test_signatures_name_only_what_the_page_defines() -> None:
    """A name is public, described among the types, or known from Python."""
    signatures = "\n".join(re.findall(r"```python\n(.*?)```", page(), re.DOTALL))
    cells = "\n".join(re.findall(r"^\| `\w+` \| `([^`]*)` \|$", page(), re.MULTILINE))
    annotations = re.sub(r"'[^']*'|\"[^\"]*\"|\w+\(|\w+:|= [^,\n]*", " ", signatures + cells)
    known = {
        *noxu.__all__,
        *TYPES,
        *vars(builtins),
        *vars(typing),
        *vars(collections.abc),
        "datetime",
        "Path",
        "os",
        "PathLike",
    }
    assert {name for name in re.findall(r"[A-Za-z]\w*", annotations) if name not in known} == set()


def test_names_that_are_not_documented_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {title: names for title, names in SECTIONS.items() if title != "Errors"}
    monkeypatch.setattr(api_page, "SECTIONS", without)
    with pytest.raises(ValueError, match="in no section: ApiError, Denied, LoadError"):
        page()


def test_all_public_names_are_imported_lazily() -> None:
    assert sorted(noxu.__all__) == sorted(noxu._HOMES)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        noxu.nothing  # noqa: B018
