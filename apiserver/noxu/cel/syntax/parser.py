"""Parses the text of an expression into a syntax tree.

A recursive-descent parser over the tokens, which gives nodes the positions that cel-go gives them. It reports errors in
literals, reserved words and macros. At an error of grammar it stops, and the expression is parsed again by
`error_recovery`, a slower model of ANTLR's parser that finds ANTLR's messages. So are deeply nested expressions, because
the limits on nesting are ANTLR's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.cel.syntax.ast import (
    NO_LOCATION,
    Call,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Message,
    Select,
    SourceProblem,
    compile_error,
    is_deeper,
)
from noxu.cel.syntax.builder import (
    FUNCTIONS,
    LOGIC,
    MACROS,
    RELATIONS,
    RESERVED,
    SIGNED,
    Builder,
    Macros,
    read_literal,
)
from noxu.cel.syntax.error_recovery import MAX_DEPTH
from noxu.cel.syntax.lexer import SourceToken, tokenize
from noxu.cel.syntax.parse_tree import TOO_DEEP, parse_with_recovery

MAX_CODE_POINTS: Final = 100_000
_SHORT: Final = 2 * MAX_DEPTH  # tokens; no more than these cannot nest operators deeper than MAX_DEPTH
_SHALLOW: Final = 200  # levels of nodes; then operators are not nested deeper than MAX_DEPTH either
_TOO_DEEP: Final = 8 * MAX_DEPTH  # levels of nodes; too many even if every one is of a macro, which adds several
_MAX_NESTING: Final = 80  # brackets and conditionals; each takes a rule of the grammar three levels deeper at most

_PRECEDENCE: Final = {
    "||": 1, "&&": 2, **dict.fromkeys(RELATIONS, 3), "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip


def parse(text: str, macros: Macros = MACROS) -> Expr:
    """The syntax tree of an expression. Raises CompileError."""
    if len(text) > MAX_CODE_POINTS:
        limit = f"expression code point size exceeds limit: size: {len(text)}, limit {MAX_CODE_POINTS}"
        raise compile_error(text, [SourceProblem(NO_LOCATION, limit)])
    tokens, unrecognized = tokenize(text)
    if not unrecognized:
        parser = _Parser(tokens, macros)
        try:
            tree = parser.expression()
            parser.expect("EOF")
        except (_Unparsable, RecursionError):
            pass
        else:
            problems = parser.builder.problems
            if not problems and len(tokens) > _SHORT and is_deeper(tree, _TOO_DEEP):
                problems = [SourceProblem(NO_LOCATION, TOO_DEEP)]
            if problems:
                raise compile_error(text, problems)
            if len(tokens) <= _SHORT or not is_deeper(tree, _SHALLOW):
                return tree
    tree, problems = parse_with_recovery(text, tokens, unrecognized, macros)
    if problems:
        raise compile_error(text, problems)
    return tree


class _Unparsable(Exception):
    """The tokens are not an expression, or one that is too deeply nested for this parser."""


class _Parser:
    """One method for each rule of the grammar: it reads the rule's tokens and returns the node.

    `tokens[at]` is the next token; `nesting` counts open brackets and conditionals.
    """

    def __init__(self, tokens: list[SourceToken], macros: Macros) -> None:
        self.tokens = tokens
        self.at = 0
        self.nesting = 0
        self.builder = Builder(macros)

    def next(self) -> SourceToken:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def accept(self, kind: str) -> bool:
        if self.tokens[self.at].kind == kind:
            self.at += 1
            return True
        return False

    def expect(self, kind: str) -> SourceToken:
        token = self.next()
        if token.kind != kind:
            raise _Unparsable
        return token

    def expression(self) -> Expr:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise _Unparsable
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
        """Operators of at least the precedence `lowest`, which group to the left (precedence climbing).

        a + b * c == d   at lowest 1: a; "+" (4) takes binary(5), which is b * c; "==" (3) takes binary(4), d
        """
        left = self.unary()
        while True:
            sign = self.tokens[self.at]
            precedence = _PRECEDENCE.get(sign.kind, 0)
            if precedence < lowest:
                return left
            if sign.kind in LOGIC:
                terms, positions = [left], []
                while self.tokens[self.at].kind == sign.kind:
                    positions.append(self.next().start)
                    terms.append(self.binary(precedence + 1))
                left = self.builder.logic(LOGIC[sign.kind], terms, positions)
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

    def selection(self, dot: SourceToken, operand: Expr) -> Expr:
        optional = self.accept("?")
        name = self.next()
        if name.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            raise _Unparsable
        paren = self.tokens[self.at]
        if paren.kind == "(" and name.kind == "IDENTIFIER" and not optional:
            self.at += 1
            return self.builder.call(paren.start, name.text, self.arguments(), operand)
        field = name.text.strip("`")
        if optional:
            return Call(dot.start, "_?._", [operand, Literal(name.start, field)])
        return Select(dot.start, operand, field)

    def arguments(self) -> list[Expr]:
        """The arguments after a `(`, and the `)`."""
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
                    raise _Unparsable
                return read_literal(self.builder, number, "-", token.start)
            case "STRING" | "BYTES" | "NUM_INT" | "NUM_UINT" | "NUM_FLOAT" | "true" | "false" | "null":
                return read_literal(self.builder, token, "", token.start)
        raise _Unparsable

    def name(self, token: SourceToken, start: int, dot: str) -> Expr:
        """An identifier, the call of a function without a target, or a message."""
        following = self.tokens[self.at]
        message = self.message_name(token)
        if message:
            brace = self.next()
            return Message(brace.start, dot + message, self.entries(self.field))
        if following.kind == "(":
            self.at += 1
            problem_count = len(self.builder.problems)
            args = self.arguments()
            if token.text in RESERVED:
                del self.builder.problems[problem_count:]  # cel-go does not visit the arguments
                return self.builder.error(start, f"reserved identifier: {token.text}")
            return self.builder.call(following.start, dot + token.text, args)
        if token.text in RESERVED:
            return self.builder.error(start, f"reserved identifier: {token.text}")
        return Ident(token.start, dot + token.text)

    def message_name(self, token: SourceToken) -> str:
        """`a.b.C` if a `{` follows, which is then the next token. Else "", and the position is unchanged."""
        at = self.at
        names = [token.text]
        while self.tokens[at].kind == "." and self.tokens[at + 1].kind == "IDENTIFIER":
            names.append(self.tokens[at + 1].text)
            at += 2
        if self.tokens[at].kind != "{":
            return ""
        self.at = at
        return ".".join(names)

    def list_literal(self, bracket: SourceToken) -> Expr:
        elements: list[Expr] = []
        optional: list[int] = []
        if self.accept(","):  # [,] is an empty list
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

    def entries(self, read_key: Callable[[], Expr]) -> list[MapEntry]:
        """The entries after a `{`, and the `}`."""
        out: list[MapEntry] = []
        if self.accept(","):
            self.expect("}")
            return out
        while not self.accept("}"):
            optional = self.accept("?")
            key = read_key()
            colon = self.expect(":")
            out.append(MapEntry(colon.start, key, self.expression(), optional))
            if not self.accept(","):
                self.expect("}")
                break
        return out

    def key(self) -> Expr:
        return self.expression()

    def field(self) -> Expr:
        name = self.next()
        if name.kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            raise _Unparsable
        return Literal(name.start, name.text.strip("`"))
