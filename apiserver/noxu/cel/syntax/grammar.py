"""The grammar of CEL (cel-go's CEL.g4) as data, with the tokens that may come at each place.

Rules are sequences of elements, named as in the grammar. Left recursion is written as a loop whose every iteration takes
what was read so far as its left operand (`Loop.left`), as ANTLR rewrites it. Every element has the set of token kinds with
which it may begin (`first`) and of those that may follow it within its rule (`after`; contains `END` if the rule may end
there). ANTLR's messages list these sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final

# In the order in which ANTLR numbers them: messages list sets in this order.
TOKENS: Final = (
    "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+",
    "*", "/", "%", "true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER",
    "ESC_IDENTIFIER",
)  # fmt: skip
END: Final = "end of rule"
EOF: Final = "EOF"
_ORDER: Final = {kind: n for n, kind in enumerate((EOF, *TOKENS))}


def token_names(kinds: Iterable[str]) -> str:
    """A set of kinds of tokens as messages list it: `{'+', NUM_INT}`, or `'+'` alone."""
    names = [
        "<EOF>" if kind == EOF else kind if kind.isupper() else f"'{kind}'"
        for kind in sorted(kinds, key=_ORDER.__getitem__)
    ]
    return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"


class Element:
    """A part of a rule. `label` names what it reads in the parse tree."""

    label: str = ""
    first: frozenset[str]
    after: frozenset[str]

    def link(self, after: frozenset[str]) -> None:
        """Set what may follow, here and in the elements of this one."""
        self.after = after


class Terminal(Element):
    """A token of one of several kinds."""

    def __init__(self, *kinds: str, label: str = "") -> None:
        self.first = frozenset(kinds)
        self.label = label


class RuleReference(Element):
    """A rule. `precedence`: the lowest that binary operators in it may have."""

    def __init__(self, rule: str, label: str = "", precedence: int = 0) -> None:
        self.rule = rule
        self.label = label or rule
        self.precedence = precedence
        self.first = _FIRST[rule]


class Sequence(Element):
    """Elements, one after the other. `label` names it as an alternative; `precedence` is that of its operator."""

    def __init__(self, *elements: Element, label: str = "", precedence: int = 0) -> None:
        self.elements = elements
        self.label = label
        self.precedence = precedence
        first = set(elements[0].first)
        for element, following in pairwise(elements):
            if not isinstance(element, Possible):
                break
            first |= following.first
        self.first = frozenset(first)

    def link(self, after: frozenset[str]) -> None:
        self.after = after
        for element in reversed(self.elements):
            element.link(after)
            after = element.first | after if isinstance(element, Possible) else element.first


class Choice(Element):
    """One of several alternatives. `decision` names the function that chooses (see `error_recovery`)."""

    def __init__(self, decision: str, *alternatives: Sequence) -> None:
        self.decision = decision
        self.alternatives = alternatives
        self.first = frozenset().union(*(alternative.first for alternative in alternatives))

    def link(self, after: frozenset[str]) -> None:
        self.after = after
        for alternative in self.alternatives:
            alternative.link(after)


class Possible(Element):
    """`body`, or nothing."""

    def __init__(self, body: Sequence) -> None:
        self.body = body
        self.first = body.first

    def link(self, after: frozenset[str]) -> None:
        self.after = after
        self.body.link(after)


class Loop(Possible):
    """`body` any number of times. `left`: each iteration takes what was read so far as its left operand."""

    def __init__(self, decision: str, body: Sequence | Choice, *, left: bool = False) -> None:
        self.decision = decision
        self.body: Sequence | Choice = body  # type: ignore[assignment]
        self.left = left
        self.first = body.first

    def link(self, after: frozenset[str]) -> None:
        self.after = after
        self.body.link(self.first | after)


class Repeated(Element):
    """`body` at least once."""

    def __init__(self, body: Sequence) -> None:
        self.body = body
        self.first = body.first

    def link(self, after: frozenset[str]) -> None:
        self.after = after
        self.body.link(self.first | after)


_LITERALS: Final = frozenset({"true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES"})
_PRIMARY: Final = frozenset({".", "IDENTIFIER", "(", "[", "{", "-"}) | _LITERALS
_UNARY: Final = _PRIMARY | {"!"}
_FIRST: Final = {
    **dict.fromkeys(("expr", "conditionalOr", "conditionalAnd", "relation", "calc", "unary", "exprList"), _UNARY),
    **dict.fromkeys(("member", "primary"), _PRIMARY),
    **dict.fromkeys(("optExpr", "listInit", "mapInitializerList"), _UNARY | {"?"}),
    "escapeIdent": frozenset({"IDENTIFIER", "ESC_IDENTIFIER"}),
    **dict.fromkeys(("optField", "fieldInitializerList"), frozenset({"?", "IDENTIFIER", "ESC_IDENTIFIER"})),
    "literal": _LITERALS | {"-"},
}

BY_TOKEN: Final = ""  # the decision of elements for which the next token is enough; others are in `error_recovery`


def _sequence(*elements: Element, label: str = "", precedence: int = 0) -> Sequence:
    return Sequence(*elements, label=label, precedence=precedence)


def _maybe(*elements: Element) -> Possible:
    return Possible(Sequence(*elements))


def _token(kind: str, label: str = "") -> Terminal:
    return Terminal(kind, label=label)


def _logic(operator: str, operand: str) -> Sequence:
    more = _sequence(_token(operator, "operators"), RuleReference(operand, "terms"))
    return _sequence(RuleReference(operand, "terms"), Loop(BY_TOKEN, more))


def _listed(*item: Element) -> Sequence:
    """Items with commas between them. A comma after the last item belongs to the enclosing rule."""
    return _sequence(*item, Loop("list", _sequence(_token(","), *_again(item))))


def _again(item: tuple[Element, ...]) -> Iterable[Element]:
    return [_copy(element) for element in item]


def _copy(element: Element) -> Element:
    if isinstance(element, RuleReference):
        return RuleReference(element.rule, element.label)
    assert isinstance(element, Terminal)
    return Terminal(*element.first, label=element.label)


def _name(label: str) -> tuple[Element, Element]:
    return _maybe(_token(".", "dot")), _token("IDENTIFIER", label)


def _arguments() -> tuple[Element, Element]:
    return _maybe(RuleReference("exprList")), _token(")")


def _braced(label: str, *before: Element) -> tuple[Element, ...]:
    return (*before, _token("{", "brace"), _maybe(RuleReference(label)), _maybe(_token(",")), _token("}"))


def _operator(precedence: int, operand: str, *operators: str) -> Sequence:
    """A left-associative binary operator: its right operand has only operators of higher precedence."""
    right = RuleReference(operand, "right", precedence + 1)
    return _sequence(Terminal(*operators, label="operator"), right, label=f"{operand} operator", precedence=precedence)


def _literal(kind: str, *before: Element) -> Sequence:
    return _sequence(*before, _token(kind, "token"), label="literal")


RULES: Final[dict[str, Element]] = {
    "start": _sequence(RuleReference("expr"), _token(EOF)),
    "expr": _sequence(
        RuleReference("conditionalOr", "condition"),
        _maybe(_token("?", "question"), RuleReference("conditionalOr", "yes"), _token(":"), RuleReference("expr", "no")),
    ),
    "conditionalOr": _logic("||", "conditionalAnd"),
    "conditionalAnd": _logic("&&", "relation"),
    "relation": _sequence(
        RuleReference("calc", "inner"),
        Loop("operator", _operator(1, "relation", "==", "!=", "in", "<", "<=", ">=", ">"), left=True),
    ),
    "calc": _sequence(
        RuleReference("unary", "inner"),
        Loop("operator", Choice("operator", _operator(2, "calc", "*", "/", "%"), _operator(1, "calc", "+", "-")), left=True),
    ),
    "unary": Choice(
        "unary",
        _sequence(RuleReference("member", "inner"), label="member"),
        _sequence(Repeated(_sequence(_token("!", "operators"))), RuleReference("member", "inner"), label="!_"),
        _sequence(Repeated(_sequence(_token("-", "operators"))), RuleReference("member", "inner"), label="-_"),
    ),
    "member": _sequence(
        RuleReference("primary", "inner"),
        Loop(
            BY_TOKEN,
            Choice(
                "member",
                _sequence(
                    _token(".", "dot"), _maybe(_token("?", "optional")), RuleReference("escapeIdent", "name"), label="select"
                ),
                _sequence(
                    _token("."), _token("IDENTIFIER", "name"), _token("(", "paren"), *_arguments(), label="member call"
                ),
                _sequence(
                    _token("[", "bracket"),
                    _maybe(_token("?", "optional")),
                    RuleReference("expr", "index"),
                    _token("]"),
                    label="index",
                ),
            ),
            left=True,
        ),
    ),
    "primary": Choice(
        "primary",
        _sequence(*_name("name"), label="identifier"),
        _sequence(*_name("name"), _token("(", "paren"), *_arguments(), label="call"),
        _sequence(_token("("), RuleReference("expr", "inner"), _token(")"), label="nested"),
        _sequence(
            _token("[", "bracket"), _maybe(RuleReference("listInit")), _maybe(_token(",")), _token("]"), label="list"
        ),
        _sequence(*_braced("mapInitializerList"), label="map"),
        _sequence(
            *_braced(
                "fieldInitializerList",
                *_name("name"),
                Loop(BY_TOKEN, _sequence(_token("."), _token("IDENTIFIER", "name"))),
            ),
            label="message",
        ),
        _sequence(RuleReference("literal", "inner"), label="constant"),
    ),
    "exprList": _sequence(
        RuleReference("expr", "items"), Loop(BY_TOKEN, _sequence(_token(","), RuleReference("expr", "items")))
    ),
    "listInit": _listed(RuleReference("optExpr", "items")),
    "fieldInitializerList": _listed(
        RuleReference("optField", "keys"), _token(":", "colons"), RuleReference("expr", "values")
    ),
    "optField": _sequence(_maybe(_token("?", "optional")), RuleReference("escapeIdent", "name")),
    "mapInitializerList": _listed(RuleReference("optExpr", "keys"), _token(":", "colons"), RuleReference("expr", "values")),
    "escapeIdent": Choice(
        BY_TOKEN,
        _sequence(_token("IDENTIFIER", "name"), label="plain"),
        _sequence(_token("ESC_IDENTIFIER", "name"), label="escaped"),
    ),
    "optExpr": _sequence(_maybe(_token("?", "optional")), RuleReference("expr", "inner")),
    "literal": Choice(
        "literal",
        _literal("NUM_INT", _maybe(_token("-", "sign"))),
        _literal("NUM_UINT"),
        _literal("NUM_FLOAT", _maybe(_token("-", "sign"))),
        *map(_literal, ("STRING", "BYTES", "true", "false", "null")),
    ),
}  # fmt: skip
for _rule in RULES.values():
    _rule.link(frozenset({END}))
