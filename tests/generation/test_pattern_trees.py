"""The trees of patterns: what texts are made from."""

from __future__ import annotations

import string

from noxu.generation.pattern_trees import MANY, PRINTABLE, Alternatives, Members, Repetition, Terms, tree
from tests.rows import rows

DIGITS = Members(string.digits)


def group(*branches: Terms) -> Alternatives:
    return Alternatives([list(branch) for branch in branches])


@rows(
    "name, pattern, expected",
    [
        ("characters", "ab", ("a", "b")),
        ("anchors", r"^\Aa\b$\z", ("", "", "a", "", "", "")),
        ("escapes", r"\.\n\x41\x{e9}\101", (".", "\n", "A", "é", "A")),
        ("a quoted text", r"\Qa.*\E+", ("a", ".", Repetition("*", 1, MANY))),
        ("a class", "[0-9]", (DIGITS,)),
        ("a class by its letter", r"\d", (DIGITS,)),
        ("a class by its name", "[[:digit:]]", (DIGITS,)),
        ("a class of Unicode", r"\p{Nd}", (DIGITS,)),
        ("a class with its ends", "[]a^]", (Members("a]^"),)),
        ("what a class has not", r"[^\x00-\x60\x7b-\x7f]", (Members(string.ascii_lowercase),)),
        ("a class without printable characters", "[é-ü]", (Members("é"),)),
        ("a class without characters", r"\P{Any}", (Members(""),)),
        ("any character", ".", (Members(PRINTABLE),)),
        ("one or none", "a?", (Repetition("a", 0, 1),)),
        ("any number", "a*b+", (Repetition("a", 0, MANY), Repetition("b", 1, MANY))),
        ("counted", "a{2}b{2,}c{2,3}", (Repetition("a", 2, 2), Repetition("b", 2, MANY), Repetition("c", 2, 3))),
        ("lazy", "a*?b{2}?", (Repetition("a", 0, MANY), Repetition("b", 2, 2))),
        ("a brace that counts nothing", "a{,2}", ("a", "{", ",", "2", "}")),
        ("a repeated group", "(ab)?", (Repetition(group("ab"), 0, 1),)),
        ("branches", "a(b|)", ("a", group("b", ""))),
        ("groups without numbers, with names", "(?:a)(?P<n>b)(?<m>c)", (group("a"), group("b"), group("c"))),
        ("flags", "(?i)a(?s-i:b)", ("a", group("b"))),
        ("a repeated anchor", "a$*", ("a", Repetition("", 0, MANY))),
    ],
)
def test_a_tree(name: str, pattern: str, expected: Terms) -> None:
    assert tree(pattern) == (group(expected),)


def test_the_branches_of_a_whole_pattern() -> None:
    assert tree("^a$|^b$") == (Alternatives([["", "a", ""], ["", "b", ""]]),)


@rows(
    "name, pattern",
    [
        ("no pattern of Go", "a(?=b)"),
        ("an open group", "("),
        ("groups in groups in groups", "(" * 101 + ")" * 101),
    ],
)
def test_no_tree(name: str, pattern: str) -> None:
    assert tree(pattern) is None
