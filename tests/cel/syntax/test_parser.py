"""Trees of expressions, and the errors of those that are none."""

from __future__ import annotations

import pytest

from noxu.cel.checking.environment import KUBERNETES
from noxu.cel.program import Program
from noxu.cel.syntax.ast import CompileError
from noxu.cel.syntax.error_recovery import MAX_DEPTH
from noxu.cel.syntax.lexer import tokenize
from noxu.cel.syntax.parse_tree import parse_with_recovery
from noxu.cel.syntax.parser import MAX_CODE_POINTS, parse
from tests.cel.trees import shown
from tests.rows import rows

TREES = [
    ("operators group to the left", "a - b - c", "_-_(_-_(a, b), c)"),
    ("by precedence", "a + b * c == d", "_==_(_+_(a, _*_(b, c)), d)"),
    ("relations group to the left too", "a < b == c", "_==_(_<_(a, b), c)"),
    ("in is a relation", "a in b", "@in(a, b)"),
    ("and before or", "a || b && c", "_||_(a, _&&_(b, c))"),
    ("chains of logic are balanced", "a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))"),
    ("of five", "a || b || c || d || e", "_||_(_||_(_||_(a, b), c), _||_(d, e))"),
    ("a conditional", "a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
    ("parentheses", "(a + b) * c", "_*_(_+_(a, b), c)"),
    ("a sign belongs to a number", "-1", "-1"),
    ("and to a float", "-1.5", "-1.5"),
    ("but not to a selection", "-1.a", "-1.a"),
    ("a negated name", "-a", "-_(a)"),
    ("signs cancel each other", "--a", "a"),
    ("so do negations", "!!!a", "!_(a)"),
    ("a difference", "a -1", "_-_(a, 1)"),
    ("selections", "a.b.c", "a.b.c"),
    ("an escaped field", "a.`b-c`", "a.b-c"),
    ("an optional selection", "a.?b", "_?._(a, 'b')"),
    ("an index", "a[0].b", "_[_](a, 0).b"),
    ("an optional index", "a[?0]", "_[?_](a, 0)"),
    ("a call", "f(a, 1)", "f(a, 1)"),
    ("a call of a member", "a.f(1)", "f(a, 1)"),
    ("a name from the root", ".a.b", ".a.b"),
    ("a call from the root", ".f(1)", ".f(1)"),
    ("a list", "[1, a]", "[1, a]"),
    ("a comma after the last element", "[1,]", "[1]"),
    ("an empty list with a comma", "[,]", "[]"),
    ("an optional element", "[?a, b]", "[?a, b]"),
    ("a map", "{'a': 1, 2: b}", "{'a': 1, 2: b}"),
    ("a map with a comma", "{'a': 1,}", "{'a': 1}"),
    ("an optional entry", "{?'a': b}", "{?'a': b}"),
    ("a message", "a.b.C{d: 1, ?e: f}", "a.b.C{'d': 1, ?'e': f}"),
    ("an empty message from the root", ".C{}", ".C{}"),
    ("literals", "[true, null, 'a', b'a', 1u]", "[True, None, 'a', b'a', 1]"),
]


@rows(("text", "tree"), [row[1:] for row in TREES], ids=[row[0] for row in TREES])
def test_a_tree(text: str, tree: str) -> None:
    assert shown(parse(text)) == tree


@rows(("text", "tree"), [row[1:] for row in TREES], ids=[row[0] for row in TREES])
def test_the_model_of_antlrs_parser_makes_the_same_tree(text: str, tree: str) -> None:
    found, problems = parse_with_recovery(text, *tokenize(text))
    assert (shown(found), problems) == (tree, [])


def test_positions_are_those_of_the_operators() -> None:
    tree = parse("a.b + f(c)[0]")
    assert [node.pos for node in (tree, *tree.args, tree.args[1].args[0])] == [4, 1, 10, 7]  # type: ignore[union-attr]


OPERANDS = (
    "'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER"
)
ERRORS: list[tuple[str, str, list[str]]] = [
    ("no text", "", [f"1:0: Syntax error: mismatched input '<EOF>' expecting {{{OPERANDS}}}"]),
    ("a missing operand", "a +", [f"1:4: Syntax error: mismatched input '<EOF>' expecting {{{OPERANDS}}}"]),
    ("an operand too many", "a b", ["1:3: Syntax error: extraneous input 'b' expecting <EOF>"]),
    ("several operands too many", "a b + 1", ["1:3: Syntax error: mismatched input 'b' expecting <EOF>"]),
    ("an element too many", "[1 2]", ["1:4: Syntax error: extraneous input '2' expecting {']', ','}"]),
    ("an argument too many", "f(1 2)", ["1:5: Syntax error: extraneous input '2' expecting ')'"]),
    ("a missing parenthesis", "(1", ["1:3: Syntax error: missing ')' at '<EOF>'"]),
    ("a missing bracket", "a[1 b", ["1:5: Syntax error: mismatched input 'b' expecting ']'"]),
    ("a selection of nothing", "self.", ["1:6: Syntax error: no viable alternative at input '.'"]),
    ("a selection of a parenthesis", "self.x.(", ["1:8: Syntax error: no viable alternative at input '.('"]),
    ("a keyword as a field", "self.in", ["1:6: Syntax error: no viable alternative at input '.in'", f"1:8: Syntax error: mismatched input '<EOF>' expecting {{{OPERANDS}}}"]),
    ("a literal as a field", "self.true", ["1:6: Syntax error: mismatched input 'true' expecting IDENTIFIER"]),
    (
        "what is no token",
        "a # .1",
        ["1:3: Syntax error: token recognition error at: '#'", "1:5: Syntax error: extraneous input '.1' expecting <EOF>"],
    ),
    ("an assignment", "a = b", ["1:3: Syntax error: token recognition error at: '= '", "1:5: Syntax error: extraneous input 'b' expecting <EOF>"]),
    (
        "several in one list",
        "[1 + ? : 3, 2]",
        [
            f"1:6: Syntax error: mismatched input '?' expecting {{{OPERANDS}}}",
            f"1:8: Syntax error: extraneous input ':' expecting {{{OPERANDS}}}",
            "1:11: Syntax error: mismatched input ',' expecting ':'",
        ],
    ),
    ("a reserved word", "package", ["1:1: reserved identifier: package"]),
    ("a call of a reserved word", "for(9223372036854775808)", ["1:1: reserved identifier: for"]),
    ("an integer out of range", "9223372036854775808", ["1:1: invalid int literal"]),
    ("a reserved word next to a syntax error", "let + (1", ["1:1: reserved identifier: let", "1:9: Syntax error: missing ')' at '<EOF>'"]),
    ("a macro with a wrong argument", "[1].all(1, true)", ["1:9: argument must be a simple name"]),
]  # fmt: skip


@rows(("text", "errors"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors(text: str, errors: list[str]) -> None:
    with pytest.raises(CompileError) as caught:
        parse(text)
    lines = str(caught.value).splitlines()
    assert [line.removeprefix("ERROR: <input>:") for line in lines if line.startswith("ERROR")] == errors


LIMITS = [
    (
        "code points",
        "1" * (MAX_CODE_POINTS + 1),
        "expression code point size exceeds limit: size: 100001, limit 100000",
    ),
    ("parentheses", "(" * 300 + "1" + ")" * 300, f"expression recursion limit exceeded: {MAX_DEPTH}"),
    ("lists", "[" * 300 + "1" + "]" * 300, f"expression recursion limit exceeded: {MAX_DEPTH}"),
    ("operators", "1" + " + 1" * 300, "max recursion depth exceeded"),
    ("selections", "a" + ".b" * 300, "max recursion depth exceeded"),
    ("tokens skipped after an error", "a" + " b" * 300, "error recovery token lookahead limit exceeded: 256"),
    ("errors", f"[{'(1 2), ' * 40}1]", "error recovery attempt limit exceeded: 30"),
]


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_limits(text: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        Program(text, KUBERNETES)  # which allows deeper recursion than Python
    assert message in str(caught.value)


WITHIN_LIMITS = [
    ("parentheses", "(" * 200 + "1" + ")" * 200),
    ("operators", "1" + " + 1" * 240),
    ("logic, which is balanced", "true" + " && true" * 5000),
    ("elements", f"[{', '.join(['1'] * 5000)}]"),
]


@pytest.mark.parametrize("text", [row[1] for row in WITHIN_LIMITS], ids=[row[0] for row in WITHIN_LIMITS])
def test_within_limits(text: str) -> None:
    Program(text, KUBERNETES)
