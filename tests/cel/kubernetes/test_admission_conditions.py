"""Conditions on one object, whose fields have no types."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel import AwaitedCondition

ROWS: list[tuple[str, str, Any, Any]] = [
    ("a comparison", "self.a == 1", {"a": 1}, True),
    ("a comparison of other types", "self.a == 1", {"a": "1"}, False),
    ("an integer and a float", "self.a > 1", {"a": 1.5}, True),
    ("a macro", "self.a.all(x, x > 0)", {"a": [1, 2]}, True),
    ("a library of Kubernetes", "quantity(self.a).isGreaterThan(quantity('1Ki'))", {"a": "1Mi"}, True),
    ("a field", "self.a", {"a": False}, False),
    ("a field of another type", "self.a", {"a": "x"}, "x"),
]


@pytest.mark.parametrize(("text", "value", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_value_of(text: str, value: Any, expected: Any) -> None:
    outcome = AwaitedCondition(text).evaluate(value)
    assert (outcome.value, outcome.error) == (expected, None)


def test_a_missing_field_is_an_error() -> None:
    assert AwaitedCondition("self.a.b == 1").evaluate({"a": {}}).error == "no such key: b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("self.a ==", "compilation failed: .*Syntax error"),
        ("object.a", "undeclared reference to 'object'"),
        ("1 + 1", "must evaluate to bool but got int"),
    ],
)
def test_what_does_not_compile(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AwaitedCondition(text)
