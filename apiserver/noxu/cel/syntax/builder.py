"""Builds nodes from the parts of an expression: expands macros, reads literals, and reports errors in either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.cel.syntax import literals
from noxu.cel.syntax.ast import Call, Expr, Literal, Missing
from noxu.cel.syntax.lexer import Token
from noxu.cel.syntax.macros import MACROS, MacroError
from noxu.cel.syntax.source import Problem

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
    """Builds nodes and collects the errors that are not errors of grammar."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def error(self, pos: int, message: str) -> Missing:
        self.problems.append(Problem(pos, message))
        return Missing(pos)

    def literal(self, pos: int, read: Callable[[], object]) -> Expr:
        try:
            return Literal(pos, read())
        except literals.LiteralError as error:
            return self.error(pos, str(error))

    def call(self, pos: int, function: str, args: list[Expr], target: Expr | None = None) -> Expr:
        expand = MACROS.get((function, len(args), target is not None))
        if expand is None:
            return Call(pos, function, args, target)
        try:
            return expand(pos, target or Missing(pos), args)
        except MacroError as error:
            return self.error(error.pos, error.message)

    def logic(self, function: str, terms: list[Expr], positions: list[int]) -> Expr:
        """A chain of || or && as a balanced tree: `a && b && c && d` becomes `(a && b) && (c && d)`.

        `positions` are those of the operators.
        """

        def balanced(low: int, high: int) -> Expr:
            middle = (low + high + 1) // 2
            left = terms[middle] if middle == low else balanced(low, middle - 1)
            right = terms[middle + 1] if middle == high else balanced(middle + 1, high)
            return Call(positions[middle], function, [left, right])

        return balanced(0, len(positions) - 1) if positions else terms[0]


_READERS: Final[dict[str, Callable[[str], object]]] = {
    "STRING": literals.string,
    "BYTES": literals.bytestring,
    "NUM_UINT": literals.unsigned,
}
SIGNED: Final[dict[str, Callable[[str, str], object]]] = {"NUM_INT": literals.integer, "NUM_FLOAT": literals.double}


def read_literal(builder: Builder, token: Token, sign: str, pos: int) -> Expr:
    if token.kind in NAMED_LITERALS:
        return Literal(pos, NAMED_LITERALS[token.kind])
    if token.kind in SIGNED:
        return builder.literal(pos, lambda: SIGNED[token.kind](sign, token.text))
    return builder.literal(pos, lambda: _READERS[token.kind](token.text))
