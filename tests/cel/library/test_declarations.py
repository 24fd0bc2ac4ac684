"""Signatures, and which implementation a call runs."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.errors import CelError
from noxu.cel.library.declarations import Function, accepts, overload, read_type
from noxu.cel.types import types
from noxu.cel.values.numbers import Uint
from noxu.cel.values.values import MapValue
from tests.rows import rows

SIGNATURES = [
    ("a member", "string.charAt(int) -> string", ("charAt", True, "(string, int)", "string", set())),
    ("no member", "size(list(A)) -> int", ("size", False, "(list(A),)", "int", {"A"})),
    ("a namespace", "optional::of(V) -> optional(V)", ("optional.of", False, "(V,)", "optional_type(V)", {"V"})),
    ("a member of a parameterized type", "list(string).join() -> string", ("join", True, "(list(string),)", "string", set())),
    ("of a type with two parameters", "map(K, V).get(K) -> V", ("get", True, "(map(K, V), K)", "V", {"K", "V"})),
    ("no arguments", "now() -> timestamp", ("now", False, "()", "timestamp", set())),
    ("nested parameters", "f(map(string, list(A)), A) -> bool", ("f", False, "(map(string, list(A)), A)", "bool", {"A"})),
    ("an operator", "_?_:_(bool, A, A) -> A", ("_?_:_", False, "(bool, A, A)", "A", {"A"})),
]  # fmt: skip


@pytest.mark.parametrize(("signature", "expected"), [row[1:] for row in SIGNATURES], ids=[row[0] for row in SIGNATURES])
def test_a_signature_is_read(signature: str, expected: tuple[Any, ...]) -> None:
    name, found = overload("id", signature)
    assert (name, found.member, str(found.args), str(found.result), set(found.params)) == expected


@rows(
    ("type_", "value", "expected"),
    [
        ("int", 1, True),
        ("int", Uint(1), False),
        ("int", True, False),
        ("dyn", object, True),
        ("A", "x", True),
        ("list(int)", [], True),
        ("list(int)", [1, "x"], True),  # only the first element counts
        ("list(int)", ["x", 1], False),
        ("list(list(int))", [["x"]], False),
        ("map(string, int)", MapValue(), True),
        ("map(string, int)", MapValue([("a", 1)]), True),
        ("map(string, int)", MapValue([(1, 1)]), False),
        ("map(string, int)", MapValue([("a", "b")]), False),
        ("list(int)", MapValue(), False),
    ],
)
def test_a_value_is_of_a_type(type_: str, value: Any, expected: bool) -> None:
    assert accepts(read_type(type_), value) is expected


def function(*rows: tuple[str, str], **more: Any) -> Function:
    """Overloads that return their own ids."""
    overloads = [overload(name, signature, lambda *args, name=name: name)[1] for name, signature in rows]
    return Function("f", overloads, **more)


INT, STRING = ("int", "f(int) -> int"), ("string", "f(string) -> int")
RESOLVED: list[tuple[str, Function, tuple[str, ...], Any, str]] = [
    ("one overload runs", function(INT, STRING), ("string",), "x", "string"),
    ("and checks its arguments", function(INT, STRING), ("string",), 1, "no such overload: f(int)"),
    ("of several the one that fits runs", function(INT, STRING), ("int", "string"), "x", "string"),
    ("or none", function(INT, STRING), ("int", "string"), 1.5, "no such overload: f(double)"),
    ("the only overload runs whatever was found", function(INT), (), 1, "int"),
    ("arguments are not checked if the function does", function(INT, guarded=False), ("int",), "x", "int"),
    ("a singleton runs for all overloads", function(INT, singleton=lambda _: "singleton"), ("int",), "x", "singleton"),
    (
        "a singleton checks the trait of its first argument",
        function(INT, singleton=lambda _: "singleton", traits=frozenset({"int"})),
        ("int",),
        1.5,
        "no such overload: f",
    ),
    (
        "strings have an error of their own",
        function(INT, singleton=lambda _: "singleton", traits=frozenset({"int"})),
        ("int",),
        "x",
        "no such overload",
    ),
]


@pytest.mark.parametrize(
    ("called", "overloads", "value", "expected"), [row[1:] for row in RESOLVED], ids=[row[0] for row in RESOLVED]
)
def test_a_call_runs_an_implementation(called: Function, overloads: tuple[str, ...], value: Any, expected: str) -> None:
    run = called.implementation(overloads)
    if expected.startswith("no such"):
        with pytest.raises(CelError) as caught:
            run(value)
        assert caught.value.message == expected
    else:
        assert run(value) == expected


def test_unknown_names_are_object_types() -> None:
    assert read_type("kubernetes.Widget") == types.Type(types.TypeKind.STRUCT, "kubernetes.Widget")
