"""Errors printed with their lines, as cel-go prints them."""

from __future__ import annotations

import pytest

from noxu.cel.syntax.ast import BEFORE_TEXT, NO_LOCATION, SourceProblem, format_problems

PRINTED = [
    ("at a character", "a + b", [SourceProblem(4, "no")], "ERROR: <input>:1:5: no\n | a + b\n | ....^"),
    ("at the end", "a +", [SourceProblem(3, "no")], "ERROR: <input>:1:4: no\n | a +\n | ...^"),
    ("in the second line", "a +\n\tb", [SourceProblem(5, "no")], "ERROR: <input>:2:2: no\n |  b\n | .^"),
    ("after wide characters", "'é' + b", [SourceProblem(6, "no")], "ERROR: <input>:1:7: no\n | 'é' + b\n | .．....^"),
    ("at a wide character", "a é", [SourceProblem(2, "no")], "ERROR: <input>:1:3: no\n | a é\n | ..＾"),
    ("nowhere", "a", [SourceProblem(NO_LOCATION, "no")], "ERROR: <input>:-1:0: no"),
    ("before the text", "a", [SourceProblem(BEFORE_TEXT, "no")], "ERROR: <input>:1:0: no\n | a\n | ^"),
    ("in no text", "", [SourceProblem(0, "no")], "ERROR: <input>:1:0: no"),
    (
        "sorted by location",
        "a\nb",
        [SourceProblem(2, "second"), SourceProblem(0, "first")],
        "ERROR: <input>:1:1: first\n | a\n | ^\nERROR: <input>:2:1: second\n | b\n | ^",
    ),
    (
        "in their order at the same place",
        "a",
        [SourceProblem(0, "second"), SourceProblem(0, "first")],
        "ERROR: <input>:1:1: second\n | a\n | ^\nERROR: <input>:1:1: first\n | a\n | ^",
    ),
    ("a line that is too long", "x" * 20_000, [SourceProblem(1, "no")], "ERROR: <input>:1:2: no"),
]


@pytest.mark.parametrize(("text", "problems", "printed"), [row[1:] for row in PRINTED], ids=[row[0] for row in PRINTED])
def test_a_problem_is_printed(text: str, problems: list[SourceProblem], printed: str) -> None:
    assert format_problems(text, problems) == printed


def test_only_the_first_hundred_are_printed() -> None:
    printed = format_problems("a", [SourceProblem(0, str(n)) for n in range(103)])
    assert printed.count("ERROR") == 100
    assert printed.endswith("\n3 more errors were truncated")
