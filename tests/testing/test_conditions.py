"""What is waited for: conditions of the status, CEL, functions."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.testing import conditions
from tests.rows import rows

READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]}}

ROWS: list[tuple[str, Any, Any, bool]] = [
    ("a condition that is true", "Ready", READY, True),
    ("in other words", "condition=Ready", READY, True),
    ("in other case, as for kubectl", "ready=true", READY, True),
    ("a condition that is false", "Old", READY, False),
    ("that is what is waited for", "Old=False", READY, True),
    ("no such condition", "New", READY, False),
    ("no conditions", "Ready", {"status": None}, False),
    ("conditions that are no list", "Ready", {"status": {"conditions": {"type": "Ready"}}}, False),
    ("a condition of an object that does not exist", "Ready", None, False),
    ("the existence", "create", {}, True),
    ("the existence of what does not exist", "create", None, False),
    ("the end", "delete", {}, False),
    ("the end of what does not exist", "delete", None, True),
    ("CEL", "self.a == 1 && self.b.startsWith('x')", {"a": 1, "b": "xy"}, True),
    ("CEL that is false", "self.a == 1", {"a": 2}, False),
    ("CEL about a field that does not exist yet", "self.a.b == 1", {}, False),
    ("CEL that is a field", "self.ready", {"ready": True}, True),
    ("CEL that is no bool", "self.ready", {"ready": "yes"}, False),
    ("CEL of what does not exist", "true", None, False),
    ("a function", lambda value: value["a"] == 1, {"a": 1}, True),
    ("a function of what does not exist", lambda value: True, None, False),
]


@rows(("condition", "value", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_conditions(condition: Any, value: Any, expected: bool) -> None:
    check, _ = conditions.parse(condition)
    try:
        met = bool(check(value))
    except LookupError:  # not yet
        met = False
    assert met is expected


@pytest.mark.parametrize(
    ("condition", "value", "why"),
    [
        ("self.a.b == 1", {}, "no such key: a"),
        ("self.a < 'x'", {"a": 1}, "no such overload"),
        ("self.a", {"a": "yes"}, "its value is 'yes', and neither true nor false"),
    ],
)
def test_an_expression_without_a_value_says_why(condition: str, value: Any, why: str) -> None:
    check, _ = conditions.parse(condition)
    with pytest.raises(conditions.NotYet, match=f"^{why}"):
        check(value)


def test_the_text_of_a_condition() -> None:
    def done(_: Any) -> bool:
        return True

    texts = [conditions.parse(each)[1] for each in ("Ready", "delete", "self.a == 1", done, lambda _: True)]
    assert texts == [
        "its condition Ready is True",
        "it is deleted",
        "self.a == 1 is true",
        "done is true",
        "a lambda is true",
    ]


@pytest.mark.parametrize("text", ["status.ready", "spec.size == 1", "metadata.labels.a"])
def test_a_field_without_self_is_no_type_of_a_condition(text: str) -> None:
    with pytest.raises(ValueError, match=rf"is no condition: fields are those of self: self\.{text}$"):
        conditions.parse(text)


@pytest.mark.parametrize("text", ["self.a ==", "object.a == 1", "'text' + 'text'", ""])
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(ValueError, match="is no condition: "):
        conditions.parse(text)
