"""No figure of the product's shape gets worse; what each one counts; and how a request's walk is counted."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import private_names, shape
from benchmarks.hops import Call, Walk, walk
from benchmarks.shape import BOUNDS, MEASURES, Module, worse

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_no_figure_is_worse_than_its_bound() -> None:
    """`python -m benchmarks.shape` prints them all: a process of its own, because it profiles what it starts."""
    program = "from benchmarks import shape; print('\\n'.join(shape.worse(shape.measure())))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [ROOT, ROOT / "apiserver", ROOT / "storage"]))}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert found.stdout.strip() == ""


@pytest.mark.parametrize(
    ("name", "figure", "is_worse"),
    [
        ("product files", BOUNDS["product files"], False),
        ("product files", BOUNDS["product files"] - 1, False),
        ("product files", BOUNDS["product files"] + 1, True),
        ("comments per 100 lines of http", BOUNDS["comments per 100 lines of http"] + 0.1, False),
        ("comments per 100 lines of http", BOUNDS["comments per 100 lines of http"] - 0.1, True),
        ("a new measure", 0, True),
    ],
)
def test_a_figure_is_worse(name: str, figure: float, is_worse: bool) -> None:
    assert bool(worse({name: figure})) == is_worse


def test_every_bound_is_that_of_a_measure() -> None:
    assert [name for name in BOUNDS if name not in MEASURES and not name.startswith(("changes", "files"))] == []


MODULE = '''
"""About it."""
# One comment.
from noxu import values  # a second one
import json  # noqa: F401

class Draft:
    """The fields."""
    name: str = ""
    clean: bool = False
    size = 1

class Twice: ...
class _Hidden: ...

def assemble(store, *, clock, name=""):
    import noxu.values
    import json
    def inner():
        from noxu_storage import keys
    return store

def starts():
    if True:
        from noxu.registry import write
    return assemble(None, clock=None)
'''
OTHER = """
class Twice: ...
class _Hidden: ...

def apart():
    a = 1
    b = 2
    c = 3
    d = 4
    e = 5
    f = 6
    return None
"""


def module(path: str, text: str) -> Module:
    return Module(path, text, tuple(ast.walk(ast.parse(text))))


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("product files", 2),
        ("files under 40 lines", 2),
        ("product lines", 38),
        ("imports of own modules in functions", 3),
        ("names that several public classes have", 1),
        ("fields of Draft", 2),
        ("booleans of Draft", 1),
        ("parameters of assemble", 3),
        ("lines of the longest function that wires", 6),
        ("comments per 100 lines of http", 11.1),  # 2 of 18
        ("comments per 100 lines of registry", 0),
    ],
)
def test_what_a_measure_counts(name: str, figure: float) -> None:
    modules = [module("noxu/http/a.py", MODULE), module("noxu/registry/b.py", OTHER)]
    assert MEASURES[name](modules) == figure


def test_two_classes_named_draft_are_an_error() -> None:
    with pytest.raises(ValueError, match="too many values"):
        shape.fields([module("a.py", "class Draft: ..."), module("b.py", "class Draft: ...")], "Draft")


def test_a_walk() -> None:
    files = ["a.py", "a.py", "b.py", "a.py", "c.py", "c.py"]
    assert walk([Call(file, "f") for file in files]) == Walk(calls=6, changes=3, files=3, once=1)


class Ours(ast.NodeVisitor):
    """A class that inherits from one of the standard library."""

    def _name(self) -> None: ...


def test_private_names_of_a_class() -> None:
    assert private_names.used(Ours) == {"_name"}
    assert private_names.inherited(Ours) == set()
    assert "_report_sections" in private_names.inherited(type("Item", (pytest.Item,), {}))
