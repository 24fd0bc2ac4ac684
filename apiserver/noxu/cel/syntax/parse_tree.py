"""Converts ANTLR's parse tree, which may be incomplete, to a syntax tree (the visitor in cel-go's parser.go).

A missing part becomes a `Missing` node: it was reported as a syntax error already. Errors in literals, macros and reserved
words are reported here.
"""

from __future__ import annotations

from typing import Final

from noxu.cel.syntax.ast import (
    BEFORE_TEXT,
    NO_LOCATION,
    Call,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Message,
    Missing,
    Select,
    SourceProblem,
)
from noxu.cel.syntax.builder import FUNCTIONS, LOGIC, MACROS, RESERVED, Builder, Macros, read_literal
from noxu.cel.syntax.error_recovery import MAX_DEPTH, ParsingAborted, Tree, parse_tree
from noxu.cel.syntax.lexer import SourceToken, Span

TOO_DEEP: Final = "max recursion depth exceeded"


def parse_with_recovery(
    text: str, tokens: list[SourceToken], unrecognized: list[Span], macros: Macros = MACROS
) -> tuple[Expr, list[SourceProblem]]:
    """The expression as far as it can be parsed, and all its errors, in ANTLR's and cel-go's order."""
    missing = Missing(NO_LOCATION)
    try:
        tree, problems = parse_tree(text, tokens, unrecognized)
    except ParsingAborted as aborted:
        return missing, aborted.problems
    converter = _Converter(macros)
    try:
        expression = converter.expression(tree.tree("expr"))
    except _TooDeep:
        return missing, [*problems, *converter.builder.problems, SourceProblem(NO_LOCATION, TOO_DEEP)]
    return expression, [*problems, *converter.builder.problems]


class _TooDeep(Exception):
    """Expressions are nested too deeply."""


_INNER: Final = {  # the part that a rule without an operator consists of
    "expr": "condition",
    "conditionalOr": "terms",
    "conditionalAnd": "terms",
    "relation": "inner",
    "calc": "inner",
    "unary": "inner",
    "member": "inner",
    "primary": "inner",
}


class _Converter:
    """Converts the parse trees of the rules; `depth` counts nested expressions and operators."""

    def __init__(self, macros: Macros) -> None:
        self.builder = Builder(macros)
        self.depth = 0

    def expression(self, tree: Tree | None) -> Expr:
        tree = _innermost(tree)
        if tree is None:
            return Missing(BEFORE_TEXT)
        match tree.rule:
            case "expr" | "relation" | "calc":
                return self.nested(tree)
            case "conditionalOr" | "conditionalAnd":
                terms = [self.expression(term) for term in tree.trees("terms")]
                operators = tree.tokens("operators")
                return self.builder.logic(LOGIC[operators[0].kind], terms, [operator.start for operator in operators])
            case "unary":
                return self.unary(tree)
            case "member":
                return self.nested(tree)
            case "primary":
                return self.primary(tree)
            case "literal":
                return self.literal(tree)
        return Missing(BEFORE_TEXT)

    def nested(self, tree: Tree) -> Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _TooDeep
        match tree.rule:
            case "expr":
                node = self.conditional(tree)
            case "member":
                node = self.member(tree)
            case _:
                node = self.operator(tree)
        self.depth -= 1
        return node

    def conditional(self, tree: Tree) -> Expr:
        question = tree.token("question")
        assert question
        parts = [self.expression(tree.tree(part)) for part in ("condition", "yes", "no")]
        return Call(question.start, "_?_:_", parts)

    def operator(self, tree: Tree) -> Expr:
        operator = tree.token("operator")
        assert operator
        sides = [self.expression(tree.tree(side)) for side in ("left", "right")]
        return Call(operator.start, FUNCTIONS[operator.kind], sides)

    def unary(self, tree: Tree) -> Expr:
        if not tree.label:
            return Literal(tree.start.start, "<<error>>")
        operators = tree.tokens("operators")
        operand = self.expression(tree.tree("inner"))
        return Call(operators[0].start, tree.label, [operand]) if len(operators) % 2 else operand

    def member(self, tree: Tree) -> Expr:
        operand = self.expression(tree.tree("left"))
        match tree.label:
            case "select":
                return self.select(tree, operand)
            case "index":
                bracket = tree.token("bracket")
                if bracket is None:
                    return Missing(tree.start.start)
                function = "_[?_]" if tree.token("optional") else "_[_]"
                return Call(bracket.start, function, [operand, self.expression(tree.tree("index"))])
        name, paren = tree.token("name"), tree.token("paren")
        if name is None or paren is None:
            return Missing(tree.start.start)
        return self.builder.call(paren.start, name.text, self.arguments(tree), operand)

    def select(self, tree: Tree, operand: Expr) -> Expr:
        dot, holder = tree.token("dot"), tree.tree("name")
        if dot is None or holder is None:
            return Missing(tree.start.start)
        name = _field_name(holder)
        if name is None:
            self.builder.error(holder.start.start, _NO_NAME)
            name = ""
        if tree.token("optional"):
            return Call(dot.start, "_?._", [operand, Literal(holder.start.start, name)])
        return Select(dot.start, operand, name)

    def primary(self, tree: Tree) -> Expr:
        match tree.label:
            case "list":
                return self.list_literal(tree)
            case "map":
                return self.map_literal(tree)
            case "message":
                return self.message(tree)
            case "identifier" | "call":
                return self.name(tree)
        return Missing(BEFORE_TEXT)

    def name(self, tree: Tree) -> Expr:
        name = tree.token("name")
        if name is None:
            return Missing(tree.start.start)
        if name.text in RESERVED:
            return self.builder.error(tree.start.start, f"reserved identifier: {name.text}")
        identifier = f".{name.text}" if tree.token("dot") else name.text
        paren = tree.token("paren")
        if tree.label == "call" and paren:
            return self.builder.call(paren.start, identifier, self.arguments(tree))
        return Ident(name.start, identifier)

    def arguments(self, tree: Tree) -> list[Expr]:
        listed = tree.tree("exprList")
        return [self.expression(item) for item in listed.trees("items")] if listed else []

    def list_literal(self, tree: Tree) -> Expr:
        listed = tree.tree("listInit")
        items = listed.trees("items") if listed else []
        elements = [self.expression(item.tree("inner")) for item in items]
        return ListLiteral(_start(tree, "bracket"), elements, _optional(items))

    def map_literal(self, tree: Tree) -> Expr:
        listed = tree.tree("mapInitializerList")
        entries: list[MapEntry] = []
        if listed:
            keys, values = listed.trees("keys"), listed.trees("values")
            for colon, key, value in zip(listed.tokens("colons"), keys, values, strict=False):
                node = self.expression(key.tree("inner"))
                optional = key.token("optional") is not None
                entries.append(MapEntry(colon.start, node, self.expression(value), optional))
        return MapLiteral(_start(tree, "brace"), entries)

    def message(self, tree: Tree) -> Expr:
        listed = tree.tree("fieldInitializerList")
        entries: list[MapEntry] = []
        if listed:
            keys, values = listed.trees("keys"), listed.trees("values")
            for colon, key, value in zip(listed.tokens("colons"), keys, values, strict=False):
                holder = key.tree("name")
                name = _field_name(holder) if holder else None
                if name is None:
                    self.builder.error(listed.start.start, _NO_NAME)
                    continue
                optional = key.token("optional") is not None
                entries.append(MapEntry(colon.start, Literal(key.start.start, name), self.expression(value), optional))
        names = ".".join(token.text for token in tree.tokens("name"))
        return Message(_start(tree, "brace"), f".{names}" if tree.token("dot") else names, entries)

    def literal(self, tree: Tree) -> Expr:
        token, sign = tree.token("token"), tree.token("sign")
        if token is None:
            return Missing(BEFORE_TEXT)
        return read_literal(self.builder, token, sign.text if sign else "", tree.start.start)


_NO_NAME: Final = "unsupported ident kind"


def _innermost(tree: Tree | None) -> Tree | None:
    """The innermost tree that consists of no more than this one: of `(a)` the tree of the identifier.

    Most rules only pass on what they read: the expression `a` is an expr of a conditionalOr of a conditionalAnd of a
    relation of a calc of a unary of a member of a primary.
    """
    while tree is not None:
        match tree.rule:
            case "expr" if "question" in tree.parts:
                break
            case "conditionalOr" | "conditionalAnd" if "operators" in tree.parts:
                break
            case "relation" | "calc" if "operator" in tree.parts:
                break
            case "unary" if tree.label != "member":
                break
            case "member" if "left" in tree.parts:
                break
            case "primary" if tree.label not in ("nested", "constant"):
                break
            case "literal":
                break
        tree = tree.tree(_INNER[tree.rule])
    return tree


def _field_name(holder: Tree) -> str | None:
    name = holder.token("name")
    return name.text.strip("`") if name else None


def _start(tree: Tree, label: str) -> int:
    token = tree.token(label)
    return token.start if token else tree.start.start


def _optional(items: list[Tree]) -> frozenset[int]:
    return frozenset(n for n, item in enumerate(items) if item.token("optional"))
