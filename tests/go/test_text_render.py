"""A notation describes completely how a value is printed."""

from __future__ import annotations

from typing import Any

from noxu.go.text import Notation, render
from tests.rows import rows

NOTATION = Notation(
    map=("<", "; ", ">"), list=("(", " | ", ")"), key=lambda name: f"{name}~", scalar=lambda value: f"{value!r}"
)

ROWS: list[tuple[str, Any, str]] = [
    ("a scalar", 1, "1"),
    ("null", None, "None"),
    ("an empty map", {}, "<>"),
    ("an empty list", [], "()"),
    ("one member", {"a": 1}, "<a~1>"),
    ("separators are written between members only", {"a": 1, "b": 2, "c": 3}, "<a~1; b~2; c~3>"),
    ("separators of a list", [1, 2, 3], "(1 | 2 | 3)"),
    ("keys are sorted", {"b": 1, "a": 2}, "<a~2; b~1>"),
    ("a container in front", [[1], 2], "((1) | 2)"),
    ("a container at the end", [1, [2]], "(1 | (2))"),
    ("containers side by side", [[], {}, []], "(() | <> | ())"),
    ("after an inner map the outer list continues", [{"a": 1}, 2], "(<a~1> | 2)"),
    ("after an inner list the outer map continues", {"a": [1, 2], "b": {}}, "<a~(1 | 2); b~<>>"),
    ("several levels end together", {"a": {"b": {"c": [[]]}}}, "<a~<b~<c~(())>>>"),
]


@rows(("value", "text"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_value_is_printed_in_its_notation(value: Any, text: str) -> None:
    assert render(value, NOTATION) == text


def test_keys_may_keep_their_order() -> None:
    assert render({"b": {"z": 1, "y": 2}, "a": 3}, NOTATION._replace(sort_keys=False)) == "<b~<z~1; y~2>; a~3>"


def test_depth_is_unlimited() -> None:
    value: Any = 1
    for _ in range(5_000):
        value = {"a": [value]}
    assert render(value, NOTATION) == "<a~(" * 5_000 + "1" + ")>" * 5_000
