"""Which types may stand for which, and what type parameters are bound to."""

from __future__ import annotations

import pytest

from noxu.cel.library.declarations import read_type
from noxu.cel.types import types
from noxu.cel.types.types import Substitution, Type, most_general
from tests.rows import rows

ROWS = [  # (to, given, whether it is assignable, bindings)
    ("int", "int", True, {}),
    ("int", "uint", False, {}),
    ("int", "dyn", True, {}),
    ("dyn", "int", True, {}),
    ("list(int)", "list(dyn)", True, {}),
    ("list(int)", "list(string)", False, {}),
    ("list(int)", "map(int, int)", False, {}),
    ("string", "null", False, {}),
    ("timestamp", "null", True, {}),
    ("duration", "null", True, {}),
    ("optional(int)", "null", True, {}),
    ("kubernetes.Widget", "null", True, {}),
    ("list(int)", "null", False, {}),
    ("kubernetes.Widget", "kubernetes.Gadget", False, {}),
    ("type(int)", "type(string)", True, {}),
    ("A", "int", True, {"A": "int"}),
    ("list(A)", "list(int)", True, {"A": "int"}),
    ("map(A, A)", "map(string, string)", True, {"A": "string"}),
    ("map(A, A)", "map(string, int)", False, {}),
    ("map(A, A)", "map(string, dyn)", True, {"A": "dyn"}),
    ("map(A, B)", "map(string, list(int))", True, {"A": "string", "B": "list(int)"}),
    ("A", "list(A)", False, {}),
    ("optional(A)", "optional(list(B))", True, {"A": "list(B)"}),
]


@rows(("to", "given", "expected", "bound"), ROWS, ids=[f"{row[1]} for {row[0]}" for row in ROWS])
def test_a_type_may_stand_for_another(to: str, given: str, expected: bool, bound: dict[str, str]) -> None:
    substitution = Substitution()
    assert substitution.assignable(read_type(to), read_type(given)) is expected
    assert {name: str(type_) for name, type_ in substitution.bound.items()} == bound


def test_a_wrapper_accepts_null_and_its_scalar() -> None:
    substitution, wrapper = Substitution(), types.wrapper_of(types.INT)
    assert [substitution.assignable(wrapper, given) for given in (types.NULL, types.INT, types.STRING)] == [
        True,
        True,
        False,
    ]
    assert not substitution.assignable(types.list_of(wrapper), types.NULL)


def test_a_failed_attempt_binds_nothing() -> None:
    substitution = Substitution()
    assert not substitution.all_assignable((read_type("A"), read_type("int")), (types.INT, types.STRING))
    assert substitution.bound == {}


def test_a_bound_parameter_is_widened_by_dyn_only() -> None:
    substitution, parameter = Substitution(), types.param("A")
    assert substitution.assignable(parameter, types.INT)
    assert not substitution.assignable(parameter, types.STRING)
    assert substitution.assignable(parameter, types.DYN)
    assert substitution.resolve(types.list_of(parameter)) == types.LIST


def test_parameters_are_replaced_through_each_other() -> None:
    substitution = Substitution()
    assert substitution.assignable(types.param("A"), types.list_of(types.param("B")))
    assert substitution.assignable(types.param("B"), types.INT)
    assert substitution.resolve(types.param("A")) == types.list_of(types.INT)
    assert substitution.resolve(types.param("C")) == types.param("C")
    assert substitution.resolve(types.param("C"), unbound_as_dyn=True) == types.DYN


@pytest.mark.parametrize(
    ("left", "right", "general"),
    [
        ("int", "dyn", "dyn"),
        ("dyn", "int", "dyn"),
        ("list(int)", "list(dyn)", "list(dyn)"),
        ("map(dyn, int)", "map(string, int)", "map(dyn, int)"),
        ("int", "int", "int"),
    ],
)
def test_the_more_general_type(left: str, right: str, general: str) -> None:
    assert most_general(read_type(left), read_type(right)) == read_type(general)


DISPLAYED = [
    (types.DURATION, "duration", "google.protobuf.Duration"),
    (types.NULL, "null", "null_type"),
    (types.ERROR, "!error!", "error"),
    (types.list_of(types.TIMESTAMP), "list(timestamp)", "list(google.protobuf.Timestamp)"),
    (types.map_of(types.STRING, types.wrapper_of(types.INT)), "map(string, wrapper(int))", "map(string, int)"),
    (types.type_of(types.INT), "type(int)", "type"),
]


@pytest.mark.parametrize(("type_", "text", "runtime_name"), DISPLAYED, ids=[row[1] for row in DISPLAYED])
def test_a_type_is_displayed(type_: Type, text: str, runtime_name: str) -> None:
    assert (str(type_), types.runtime_name(type_)) == (text, runtime_name)
