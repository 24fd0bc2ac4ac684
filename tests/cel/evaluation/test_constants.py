"""Constants that are folded before an expression runs, and literals that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.program import InstantiationError
from noxu.cel.syntax.ast import Call
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import MapValue
from tests.cel.evaluate import compile_errors, program

FOLDED: list[tuple[str, str, Any]] = [
    ("a literal", "1", 1),
    ("a list of literals", "[[1], [2]]", [[1], [2]]),
    ("a conversion", "duration('1s')", Duration(10**9)),
    ("a conversion of a conversion", "string(int('1'))", "1"),
    ("a type", "int", "int"),
    ("a timestamp", "timestamp('1970-01-01T00:00:01Z')", Timestamp(1)),
    ("dyn", "dyn([1])", [1]),
    ("an element in an empty list", "i in []", False),
]


@pytest.mark.parametrize(("text", "value"), [row[1:] for row in FOLDED], ids=[row[0] for row in FOLDED])
def test_a_constant_is_folded(text: str, value: Any) -> None:
    expression = program(text)
    found = expression.instantiate().values[expression.tree]
    assert (str(found) if text == "int" else found) == value


def test_a_map_of_literals_is_folded() -> None:
    expression = program("{'a': [1]}")
    found = expression.instantiate().values[expression.tree]
    assert isinstance(found, MapValue)
    assert found.find("a") == [1]


NOT_FOLDED = [
    ("a variable", "i"),
    ("an operator", "1 + 2"),
    ("a list with a variable", "[1, i]"),
    ("a list with an optional element", "[?optional.of(1)]"),
    ("another function", "size('a')"),
    ("a conditional", "true ? 1 : 2"),
]


@pytest.mark.parametrize("text", [row[1] for row in NOT_FOLDED], ids=[row[0] for row in NOT_FOLDED])
def test_an_expression_is_not_folded(text: str) -> None:
    expression = program(text)
    assert expression.tree not in expression.instantiate().values


def test_the_members_of_a_constant_list_are_kept() -> None:
    expression = program("i in [1, 2]")
    assert isinstance(expression.tree, Call)
    assert expression.instantiate().members == {expression.tree: [1, 2]}
    assert program("i in l").instantiate().members == {}
    assert program("d in [timestamp(0)]").instantiate().members == {}


IMPOSSIBLE = [
    ("a conversion that fails", "int('x')", "type conversion error from 'string' to 'int'"),
    ("within a branch that is not taken", "true || int('x') == 1", "type conversion error from 'string' to 'int'"),
    ("a pattern that is wrong", "s.find('(') == ''", "error parsing regexp: missing closing ): `(`"),
    ("an index of a wrong type", "d[null]", "invalid qualifier type: types.Null"),
    ("a name that is no value", "type(timestamp(0)) == timestamp", "reference to undefined type: timestamp"),
    ("bytes as a key", "{b'a': 1}", "internal error: runtime error: hash of unhashable type types.Bytes"),
]


@pytest.mark.parametrize(("text", "error"), [row[1:] for row in IMPOSSIBLE], ids=[row[0] for row in IMPOSSIBLE])
def test_a_constant_has_no_value(text: str, error: str) -> None:
    with pytest.raises(InstantiationError) as caught:
        program(text).instantiate()
    assert str(caught.value) == error


REFUSED = [
    ("a duration", "duration('x')", ["1:10: invalid duration argument"]),
    ("a timestamp", "timestamp('x')", ["1:11: invalid timestamp argument"]),
    ("a timestamp out of range", "timestamp(253402300800)", ["1:11: invalid timestamp argument"]),
    ("a pattern", "s.matches('(')", ["1:11: invalid matches argument"]),
    ("elements of different types", "[1, 2u]", ["1:5: expected type 'int' but found 'uint'"]),
    ("only the first is reported", "[1, 2u, 3u]", ["1:5: expected type 'int' but found 'uint'"]),
    ("keys of different types", "{1: 'a', 'b': 'c'}", ["1:10: expected type 'int' but found 'string'"]),
    ("keys and values", "{1: 'a', 'b': 2}", ["1:10: expected type 'int' but found 'string'", "1:15: expected type 'string' but found 'int'"]),
    ("in a macro", "l.map(x, [x, 'a'])", ["1:14: expected type 'int' but found 'string'"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "errors"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_literal_is_refused(text: str, errors: list[str]) -> None:
    assert compile_errors(text) == errors


ACCEPTED = [
    ("elements of different types in the arguments of format", "'%s %s'.format([1, 'a'])"),
    ("and in lists of these", "'%s'.format([[1, 'a']])"),
    ("dyn elements", "[dyn(1), dyn('a')]"),
    ("optional elements", "[1, ?optional.of(2)]"),
]


@pytest.mark.parametrize("text", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_a_literal_is_accepted(text: str) -> None:
    assert compile_errors(text) == []
