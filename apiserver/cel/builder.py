"""From pieces of an expression to nodes: macros are expanded, literals read, and what is wrong with either is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from apiserver.cel import literals
from apiserver.cel.ast import Call, Expr, Literal, Missing
from apiserver.cel.lexer import Token
from apiserver.cel.macros import MACROS, MacroError
from apiserver.cel.source import Problem

RESERVED: Final = frozenset({
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "package", "namespace", "null", "return", "true", "var", "void", "while",
})  # fmt: skip
RELATIONS: Final = {
    "<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in",
}  # fmt: skip
FUNCTIONS: Final = {**RELATIONS, "+": "_+_", "-": "_-_", "*": "_*_", "/": "_/_", "%": "_%_"}
LOGIC: Final = {"||": "_||_", "&&": "_&&_"}
NAMED_LITERALS: Final = {"true": True, "false": False, "null": None}


class Builder:
    """Makes nodes, expands macros, and collects what is wrong beyond the grammar."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def error(self, pos: int, message: str) -> Missing:
        self.problems.append(Problem(pos, message))
        return Missing(pos)

    def literal(self, pos: int, read: Callable[[], object]) -> Expr:
        try:
            return Literal(pos, read())
        except literals.BadLiteral as bad:
            return self.error(pos, str(bad))

    def call(self, pos: int, function: str, args: list[Expr], target: Expr | None = None) -> Expr:
        expand = MACROS.get((function, len(args), target is not None))
        if expand is None:
            return Call(pos, function, args, target)
        try:
            return expand(pos, target or Missing(pos), args)
        except MacroError as wrong:
            return self.error(wrong.pos, wrong.message)

    def logic(self, function: str, terms: list[Expr], places: list[int]) -> Expr:
        """A chain of || or && as a balanced tree."""

        def balanced(low: int, high: int) -> Expr:
            middle = (low + high + 1) // 2
            left = terms[middle] if middle == low else balanced(low, middle - 1)
            right = terms[middle + 1] if middle == high else balanced(middle + 1, high)
            return Call(places[middle], function, [left, right])

        return balanced(0, len(places) - 1) if places else terms[0]


_READERS: Final[dict[str, Callable[[str], object]]] = {
    "STRING": literals.string,
    "BYTES": literals.bytestring,
    "NUM_UINT": literals.unsigned,
}
SIGNED: Final[dict[str, Callable[[str, str], object]]] = {"NUM_INT": literals.integer, "NUM_FLOAT": literals.double}


def read_literal(build: Builder, token: Token, sign: str, pos: int) -> Expr:
    if token.kind in NAMED_LITERALS:
        return Literal(pos, NAMED_LITERALS[token.kind])
    if token.kind in SIGNED:
        return build.literal(pos, lambda: SIGNED[token.kind](sign, token.text))
    return build.literal(pos, lambda: _READERS[token.kind](token.text))
