"""From text to syntax tree.

A recursive descent over the tokens, with the places that cel-go gives its nodes. It knows how to say what is wrong
with a literal, a reserved word or a macro; where the grammar itself is violated it gives up, and `recovery` — slow, and
a model of ANTLR's parser — finds the words. Very deep expressions go there as well: the limits on nesting are ANTLR's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from apiserver.cel.ast import (
    Call,
    Entry,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Message,
    Select,
    is_deeper,
)
from apiserver.cel.builder import FUNCTIONS, LOGIC, RELATIONS, RESERVED, SIGNED, Builder, read_literal
from apiserver.cel.derivation import TOO_DEEP, derive
from apiserver.cel.lexer import Token, tokenize
from apiserver.cel.recovery import MAX_DEPTH
from apiserver.cel.source import NOWHERE, Problem, failure

MAX_CODE_POINTS: Final = 100_000
_SHORT: Final = 2 * MAX_DEPTH  # so few tokens cannot nest operators deeper than MAX_DEPTH
_SHALLOW: Final = 200  # nodes above each other; then operators are not nested deeper either
_ABYSMAL: Final = 8 * MAX_DEPTH  # even if all were macros, which put several nodes above each other
_MAX_NESTING: Final = 80  # of brackets, that is read here: one takes a rule three levels deeper at most

_PRECEDENCE: Final = {
    "||": 1, "&&": 2, **dict.fromkeys(RELATIONS, 3), "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip


def parse(text: str) -> Expr:
    """The tree of an expression. Raises CompileError."""
    if len(text) > MAX_CODE_POINTS:
        limit = f"expression code point size exceeds limit: size: {len(text)}, limit {MAX_CODE_POINTS}"
        raise failure(text, [Problem(NOWHERE, limit)])
    tokens, gaps = tokenize(text)
    if not gaps:
        reader = _Reader(tokens)
        try:
            tree = reader.expression()
            reader.expect("EOF")
        except (_Unreadable, RecursionError):
            pass
        else:
            problems = reader.build.problems
            if not problems and len(tokens) > _SHORT and is_deeper(tree, _ABYSMAL):
                problems = [Problem(NOWHERE, TOO_DEEP)]
            if problems:
                raise failure(text, problems)
            if len(tokens) <= _SHORT or not is_deeper(tree, _SHALLOW):
                return tree
    tree, problems = derive(text, tokens, gaps)
    if problems:
        raise failure(text, problems)
    return tree


class _Unreadable(Exception):
    """The tokens are not an expression, or one too deep for this parser."""


class _Reader:
    """`tokens[at]` is the next token; `nesting` counts open brackets and conditionals."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0
        self.nesting = 0
        self.build = Builder()

    def next(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def accept(self, kind: str) -> bool:
        if self.tokens[self.at].kind == kind:
            self.at += 1
            return True
        return False

    def expect(self, kind: str) -> Token:
        token = self.next()
        if token.kind != kind:
            raise _Unreadable
        return token

    def expression(self) -> Expr:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise _Unreadable
        tree = self.binary(1)
        question = self.tokens[self.at]
        if question.kind == "?":
            self.at += 1
            yes = self.binary(1)
            self.expect(":")
            tree = Call(question.start, "_?_:_", [tree, yes, self.expression()])
        self.nesting -= 1
        return tree

    def binary(self, lowest: int) -> Expr:
        """Operators of at least this precedence, from the left."""
        left = self.unary()
        while True:
            sign = self.tokens[self.at]
            precedence = _PRECEDENCE.get(sign.kind, 0)
            if precedence < lowest:
                return left
            if sign.kind in LOGIC:
                terms, places = [left], []
                while self.tokens[self.at].kind == sign.kind:
                    places.append(self.next().start)
                    terms.append(self.binary(precedence + 1))
                left = self.build.logic(LOGIC[sign.kind], terms, places)
            else:
                self.at += 1
                left = Call(sign.start, FUNCTIONS[sign.kind], [left, self.binary(precedence + 1)])

    def unary(self) -> Expr:
        first = self.tokens[self.at]
        if first.kind not in ("!", "-"):
            return self.member()
        begin = self.at
        while self.tokens[self.at].kind == first.kind:
            self.at += 1
        if first.kind == "-" and self.at - begin == 1 and self.tokens[self.at].kind in SIGNED:
            self.at = begin  # the sign belongs to the number
            return self.member()
        count = self.at - begin
        operand = self.member()
        return Call(first.start, "!_" if first.kind == "!" else "-_", [operand]) if count % 2 else operand

    def member(self) -> Expr:
        tree = self.primary()
        while True:
            sign = self.tokens[self.at]
            if sign.kind == ".":
                self.at += 1
                tree = self.selection(sign, tree)
            elif sign.kind == "[":
                self.at += 1
                function = "_[?_]" if self.accept("?") else "_[_]"
                tree = Call(sign.start, function, [tree, self.expression()])
                self.expect("]")
            else:
                return tree

    def selection(self, dot: Token, operand: Expr) -> Expr:
        optional = self.accept("?")
        name = self.next()
        if name.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            raise _Unreadable
        paren = self.tokens[self.at]
        if paren.kind == "(" and name.kind == "IDENTIFIER" and not optional:
            self.at += 1
            return self.build.call(paren.start, name.text, self.arguments(), operand)
        field = name.text.strip("`")
        if optional:
            return Call(dot.start, "_?._", [operand, Literal(name.start, field)])
        return Select(dot.start, operand, field)

    def arguments(self) -> list[Expr]:
        """After `(`, up to and with `)`."""
        if self.accept(")"):
            return []
        args = [self.expression()]
        while self.accept(","):
            args.append(self.expression())
        self.expect(")")
        return args

    def primary(self) -> Expr:
        token = self.next()
        match token.kind:
            case "IDENTIFIER":
                return self.name(token, token.start, "")
            case "(":
                tree = self.expression()
                self.expect(")")
                return tree
            case "[":
                return self.list_literal(token)
            case "{":
                return MapLiteral(token.start, self.entries(self.key))
            case ".":
                return self.name(self.expect("IDENTIFIER"), token.start, ".")
            case "-":
                number = self.next()
                if number.kind not in SIGNED:
                    raise _Unreadable
                return read_literal(self.build, number, "-", token.start)
            case "STRING" | "BYTES" | "NUM_INT" | "NUM_UINT" | "NUM_FLOAT" | "true" | "false" | "null":
                return read_literal(self.build, token, "", token.start)
        raise _Unreadable

    def name(self, token: Token, start: int, dot: str) -> Expr:
        """An identifier, the call of a function, or a message."""
        following = self.tokens[self.at]
        message = self.message_name(token)
        if message:
            brace = self.next()
            return Message(brace.start, dot + message, self.entries(self.field))
        if following.kind == "(":
            self.at += 1
            known = len(self.build.problems)
            args = self.arguments()
            if token.text in RESERVED:
                del self.build.problems[known:]  # the arguments are not looked at
                return self.build.error(start, f"reserved identifier: {token.text}")
            return self.build.call(following.start, dot + token.text, args)
        if token.text in RESERVED:
            return self.build.error(start, f"reserved identifier: {token.text}")
        return Ident(token.start, dot + token.text)

    def message_name(self, token: Token) -> str:
        """`a.b.C` if what follows is `{`; then that is the next token."""
        at = self.at
        names = [token.text]
        while self.tokens[at].kind == "." and self.tokens[at + 1].kind == "IDENTIFIER":
            names.append(self.tokens[at + 1].text)
            at += 2
        if self.tokens[at].kind != "{":
            return ""
        self.at = at
        return ".".join(names)

    def list_literal(self, bracket: Token) -> Expr:
        elements: list[Expr] = []
        optional: list[int] = []
        if self.accept(","):  # [,] is a list too
            self.expect("]")
            return ListLiteral(bracket.start, elements)
        while not self.accept("]"):
            if self.accept("?"):
                optional.append(len(elements))
            elements.append(self.expression())
            if not self.accept(","):
                self.expect("]")
                break
        return ListLiteral(bracket.start, elements, frozenset(optional))

    def entries(self, read_key: Callable[[], Expr]) -> list[Entry]:
        """After `{`, up to and with `}`."""
        out: list[Entry] = []
        if self.accept(","):
            self.expect("}")
            return out
        while not self.accept("}"):
            optional = self.accept("?")
            key = read_key()
            colon = self.expect(":")
            out.append(Entry(colon.start, key, self.expression(), optional))
            if not self.accept(","):
                self.expect("}")
                break
        return out

    def key(self) -> Expr:
        return self.expression()

    def field(self) -> Expr:
        name = self.next()
        if name.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            raise _Unreadable
        return Literal(name.start, name.text.strip("`"))
