"""Expressions are what `re.compile` makes, compiled when they are first used."""

from __future__ import annotations

import re
import subprocess
import sys
import typing
from typing import Any

import pytest

from tests.rows import rows

if not typing.TYPE_CHECKING:
    from noxu.expressions import expression
else:
    from re import compile as expression

CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("match", ("ab AB",)),
    ("match", ("ab AB", 3)),
    ("fullmatch", ("AB",)),
    ("search", ("  ab",)),
    ("search", ("",)),
    ("findall", ("ab AB",)),
    ("split", ("1ab2AB3",)),
    ("sub", ("x", "1ab2AB3")),
    ("sub", (lambda found: found[1].lower(), "1ab2AB3")),
    ("subn", ("x", "1ab2AB3", 1)),
]


def shown(found: Any) -> Any:
    return (found.span(), found.groups()) if isinstance(found, re.Match) else found


@rows(("method", "arguments"), CALLS, ids=[f"{method}{arguments[-1:]}" for method, arguments in CALLS])
def test_it_has_the_methods_of_a_pattern(method: str, arguments: tuple[Any, ...]) -> None:
    expected = getattr(re.compile("([ab]+)", re.IGNORECASE), method)(*arguments)
    found = expression("([ab]+)", re.IGNORECASE)
    for _ in range(2):  # the first call compiles
        assert shown(getattr(found, method)(*arguments)) == shown(expected)


def test_matches_are_found_one_after_the_other() -> None:
    assert [found.span() for found in expression(rb"a|b").finditer(b"ab")] == [(0, 1), (1, 2)]


def test_it_is_compiled_when_it_is_used() -> None:
    wrong = expression("(")
    assert wrong.pattern == "("
    with pytest.raises(re.error):
        wrong.search("")
    with pytest.raises(AttributeError, match="an expression has no attribute 'other'"):
        wrong.other  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.slow
def test_every_expression_is_valid() -> None:
    code = """if True:
        import pkgutil, re, sys
        from importlib import import_module
        import noxu
        from noxu.expressions import expression
        for module in pkgutil.walk_packages(noxu.__path__, "noxu."):
            import_module(module.name)
        found = [
            value
            for name, module in list(sys.modules.items()) if name.startswith("noxu.")
            for value in vars(module).values() if type(value) is expression
        ]
        for each in found:
            re.compile(each.pattern, each.flags)
        print(len(found))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 100
