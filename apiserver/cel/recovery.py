"""ANTLR's parser, with its way to go on after an error: it finds the words for what is no expression.

A model of the parser that ANTLR generates from the grammar, and of its DefaultErrorStrategy: a token too many is
dropped, a missing one made up, and otherwise everything is skipped up to what may follow a rule that is being read.
Syntax errors are cel-go's user interface, so this follows it closely; nobody needs it for an expression that is well
formed, and not too long. Nothing here recurses on the expression: rules are generators that yield the rules they need.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final, TypeAlias

from apiserver.cel.grammar import (
    END,
    EOF,
    RULES,
    Choice,
    Element,
    Loop,
    Possible,
    Reference,
    Repeated,
    Sequence,
    Terminal,
    told,
)
from apiserver.cel.lexer import Span, Token, unreadable
from apiserver.cel.source import NOWHERE, Problem

MAX_DEPTH: Final = 250  # of one rule in itself
_MAX_RECOVERIES: Final = 30
_MAX_SKIPPED: Final = 256  # tokens, in one recovery
_MAX_REPORTS: Final = 100


_RESERVED: Final = re.compile("no viable alternative at input '.(true|false|null)'")
_MEMBER: Final = Reference("member")
_LITERAL: Final = Reference("literal")
_PRIMARIES: Final = {"(": 2, "[": 3, "{": 4}


class Tree:
    """What was read of a rule; `parts` by their labels. Without a `label` no alternative was found."""

    __slots__ = ("label", "parts", "rule", "start")

    def __init__(self, rule: str, start: Token, label: str = "") -> None:
        self.rule = rule
        self.start = start
        self.label = label
        self.parts: dict[str, list[Part]] = {}

    def first(self, label: str) -> Part | None:
        parts = self.parts.get(label)
        return parts[0] if parts else None

    def tree(self, label: str) -> Tree | None:
        part = self.first(label)
        return part if isinstance(part, Tree) else None

    def trees(self, label: str) -> list[Tree]:
        return [part for part in self.parts.get(label, ()) if isinstance(part, Tree)]

    def tokens(self, label: str) -> list[Token]:
        return [part for part in self.parts.get(label, ()) if isinstance(part, Token)]

    def token(self, label: str) -> Token | None:
        part = self.first(label)
        return part if isinstance(part, Token) else None


Part: TypeAlias = Tree | Token
_Reading: TypeAlias = Generator[Reference, Tree, Tree]  # yields the rules it needs, returns what it read
_Steps: TypeAlias = Generator[Reference, Tree, None]
_State: TypeAlias = tuple[Element, bool]  # an element, before it or (of a loop) after a turn


class GivenUp(Exception):
    """The parser stopped. `problems` are what it had found until then."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__()
        self.problems = list(problems)


class _Mismatch(Exception):
    """What is next is not what is expected."""


class _NoAlternative(Exception):
    """No alternative begins with what is next, up to the token at `index`."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index


def read(text: str, tokens: list[Token], gaps: list[Span]) -> tuple[Tree, list[Problem]]:
    """The parse tree of tokens with unreadable gaps between them, and what is wrong with it. Raises GivenUp."""
    parser = _Parser(text, tokens, gaps)
    try:
        tree = parser.run()
    except GivenUp as given_up:
        given_up.problems[:0] = parser.problems
        raise
    return tree, parser.problems


class _Parser:
    def __init__(self, text: str, tokens: list[Token], gaps: list[Span]) -> None:
        self.text = text
        self.tokens = tokens
        self.gaps = gaps
        self.untold_gaps = 0  # index of the first
        self.at = 0  # index of the next token
        self.problems: list[Problem] = []
        self.calls: list[Reference] = []  # the references by which the rules that are being read were reached
        self.depths = dict.fromkeys(RULES, 0)
        self.state: _State = (RULES["start"], False)
        # The error strategy's
        self.recovering = False
        self.error_at = -1
        self.error_states: set[_State] = set()
        self.recoveries = 0
        self.skipped: int | None = None  # tokens, in this recovery; None outside of one

    def run(self) -> Tree:
        stack: list[_Reading] = [self.rule(None)]
        result: Tree | None = None
        while stack:
            try:
                needed = next(stack[-1]) if result is None else stack[-1].send(result)
            except StopIteration as finished:
                stack.pop()
                result = finished.value
            else:
                stack.append(self.rule(needed))
                result = None
        assert result is not None
        return result

    # Tokens

    def kind(self, ahead: int = 0) -> str:
        at = min(self.at + ahead, len(self.tokens) - 1)
        self.tell_gaps(at)
        return self.tokens[at].kind

    def consume(self) -> Token:
        if self.skipped is not None:
            if self.skipped >= _MAX_SKIPPED:
                raise GivenUp(Problem(NOWHERE, f"error recovery token lookahead limit exceeded: {_MAX_SKIPPED}"))
            self.skipped += 1
        token = self.tokens[self.at]
        if token.kind != EOF:
            self.at += 1
            self.tell_gaps(self.at)
        return token

    def tell_gaps(self, at: int) -> None:
        """The lexer reads as far as the parser looks."""
        while self.untold_gaps < len(self.gaps) and self.gaps[self.untold_gaps].start < self.tokens[at].start:
            gap = self.gaps[self.untold_gaps]
            self.untold_gaps += 1
            self.tell(gap.start, unreadable(self.text, gap))

    def tell(self, pos: int, message: str) -> None:
        if len(self.problems) >= _MAX_REPORTS:
            raise GivenUp(Problem(pos, f"Syntax error: More than {_MAX_REPORTS} syntax errors"))
        self.problems.append(Problem(pos, f"Syntax error: {message}"))

    # Rules

    def rule(self, call: Reference | None) -> _Reading:
        name = "start"
        if call:
            name = call.rule
            self.calls.append(call)
        self.depths[name] += 1
        if self.depths[name] > MAX_DEPTH:
            raise GivenUp(Problem(NOWHERE, f"expression recursion limit exceeded: {MAX_DEPTH}"))
        self.kind()
        holder = [Tree(name, self.tokens[self.at])]
        try:
            yield from self.element(RULES[name], holder, call.precedence if call else 0)
        except (_Mismatch, _NoAlternative) as error:
            self.report(error)
            self.recover()
        self.depths[name] -= 1
        if call:
            self.calls.pop()
            self.state = (call, False)
        return holder[0]

    def element(self, element: Element, holder: list[Tree], precedence: int) -> _Steps:
        """Read an element into the tree in `holder`. Loops to the left put another tree there."""
        if isinstance(element, Sequence):
            for one in element.elements:
                yield from self.element(one, holder, precedence)
            return
        self.state = (element, False)
        match element:
            case Terminal():
                add(holder[0], element.label, self.match(element))
            case Reference():
                add(holder[0], element.label, (yield element))
            case Choice():
                self.sync()
                chosen = self.choose(element, precedence)
                holder[0].label = chosen.label
                yield from self.element(chosen, holder, precedence)
            case Repeated():
                self.sync()
                while True:
                    yield from self.element(element.body, holder, precedence)
                    self.sync_after_turn(element)
                    if self.kind() not in element.first:
                        break
                    if self.kind() == "-" and self.kind(1) not in _MEMBER.first:
                        raise _NoAlternative(self.at + 1)  # neither another sign nor a number with one
            case Loop():
                self.sync()
                while self.goes_on(element, precedence):
                    yield from self.turn(element, holder, precedence)
                    self.sync_after_turn(element)
            case Possible():
                self.sync()
                if self.kind() in element.first:
                    yield from self.element(element.body, holder, precedence)

    def turn(self, loop: Loop, holder: list[Tree], precedence: int) -> _Steps:
        body = loop.body
        if loop.left:
            if isinstance(body, Choice):
                self.state = (body, False)
                self.sync()
                body = self.choose(body, precedence)
            left = holder[0]
            holder[0] = Tree(left.rule, left.start, body.label)
            add(holder[0], "left", left)
        yield from self.element(body, holder, precedence)

    # Decisions

    def goes_on(self, loop: Loop, precedence: int) -> bool:
        kind = self.kind()
        if kind not in loop.first:
            return False
        match loop.decision:
            case "list":  # a last comma may stand before the end
                assert isinstance(loop.body, Sequence)
                return self.kind(1) in loop.body.elements[1].first
            case "operator":
                bodies = loop.body.alternatives if isinstance(loop.body, Choice) else (loop.body,)
                return any(kind in body.first and body.precedence >= precedence for body in bodies)
        return True

    def choose(self, choice: Choice, precedence: int) -> Sequence:
        match choice.decision:
            case "unary":
                number = self.unary()
            case "member":
                number = self.member()
            case "primary":
                number = self.primary()
            case "literal" if self.kind() == "-":
                number = {"NUM_INT": 0, "NUM_FLOAT": 2}.get(self.kind(1))
                if number is None:
                    raise _NoAlternative(self.at + 1)
            case _:
                number = next((n for n, one in enumerate(choice.alternatives) if self.kind() in one.first), None)
        if number is None:
            raise _NoAlternative(self.at)
        return choice.alternatives[number]

    def unary(self) -> int | None:
        kind = self.kind()
        if kind == "-":
            following = self.kind(1)
            if following in ("NUM_INT", "NUM_FLOAT"):
                return 0
            if following in _MEMBER.first:
                return 2
            raise _NoAlternative(self.at + 1)
        if kind == "!":
            return 1
        return 0 if kind in _MEMBER.first else None

    def member(self) -> int | None:
        if self.kind() != ".":
            return 2
        following = self.kind(1)
        if following == "IDENTIFIER":
            return 1 if self.kind(2) == "(" else 0
        if following in ("?", "ESC_IDENTIFIER"):
            return 0
        raise _NoAlternative(self.at + 1)

    def primary(self) -> int | None:
        kind = self.kind()
        if kind in _PRIMARIES:
            return _PRIMARIES[kind]
        ahead = 0
        if kind == ".":
            ahead = 1
            if self.kind(1) != "IDENTIFIER":
                raise _NoAlternative(self.at + 1)
        if self.kind(ahead) != "IDENTIFIER":
            return 6 if kind in _LITERAL.first else None
        if self.kind(ahead + 1) == "(":
            return 1
        while self.kind(ahead + 1) == "." and self.kind(ahead + 2) == "IDENTIFIER":
            ahead += 2
        return 5 if self.kind(ahead + 1) == "{" else 0

    # Errors

    def match(self, terminal: Terminal) -> Token:
        if self.kind() in terminal.first:
            self.matched()
            return self.consume()
        self.count_recovery()
        if self.drop_one():
            token = self.consume()
        elif self.kind() in self.in_context(terminal.after):
            current = self.tokens[self.at]
            self.report_one(f"missing {told(self.expected())} at {_quote(current.text)}")
            if current.kind == EOF and self.at:
                current = self.tokens[self.at - 1]
            token = Token("missing", "<missing>", current.start)
        else:
            raise _Mismatch
        self.skipped = None
        return token

    def matched(self) -> None:
        self.recovering = False
        self.error_states.clear()
        self.error_at = -1

    def in_context(self, tokens: frozenset[str]) -> set[str]:
        """What may come, where a rule that may end is followed by what its caller expects."""
        found = set(tokens)
        for call in reversed(self.calls):
            if END not in found:
                break
            found.discard(END)
            found |= call.after
        if END in found:
            found ^= {END, EOF}
        return found

    def here(self) -> frozenset[str]:
        element, after_turn = self.state
        if isinstance(element, Possible) or after_turn:
            return element.first | element.after
        return element.first

    def expected(self) -> set[str]:
        return self.in_context(self.here())

    def recovery_set(self) -> set[str]:
        """What may follow any of the rules that are being read."""
        return set().union(*(call.after for call in self.calls)) - {END}

    def sync(self) -> None:
        """Is it going to work out? If not, this is the place to say so."""
        here = self.here()
        if not (self.recovering or END in here or self.kind() in here or self.drop_one()):
            raise _Mismatch

    def sync_after_turn(self, element: Element) -> None:
        self.state = (element, True)
        here = self.here()
        if not (self.recovering or END in here or self.kind() in here):
            self.report_unwanted()
            self.skip_until(self.expected() | self.recovery_set())

    def drop_one(self) -> bool:
        """Drop a token if the one behind it is what is expected."""
        if self.kind(1) not in self.expected():
            return False
        self.report_unwanted()
        self.consume()
        self.matched()
        return True

    def report(self, error: _Mismatch | _NoAlternative) -> None:
        first = last = self.tokens[self.at]
        if isinstance(error, _NoAlternative):
            last = self.tokens[error.index]
            message = f"no viable alternative at input {_quote(self.text_between(first, last))}"
            message = _RESERVED.sub(r"mismatched input '\1' expecting IDENTIFIER", message)
        else:
            message = f"mismatched input {_quote(first.text)} expecting {told(self.expected())}"
        self.report_one(message, last)

    def report_unwanted(self) -> None:
        self.report_one(f"extraneous input {_quote(self.tokens[self.at].text)} expecting {told(self.expected())}")

    def report_one(self, message: str, token: Token | None = None) -> None:
        """Only the first error is told until something fits again."""
        if not self.recovering:
            self.recovering = True
            self.tell((token or self.tokens[self.at]).start, message)

    def text_between(self, first: Token, last: Token) -> str:
        """What the two tokens and all between them say, without what was unreadable."""
        if first.kind == EOF:
            return first.text
        text, start = "", first.start
        end = last.start if last.kind == EOF else last.start + len(last.text)
        for gap in self.gaps:
            if start <= gap.start < end:
                text += self.text[start : gap.start]
                start = gap.end
        return text + self.text[start:end]

    def count_recovery(self) -> None:
        if self.recoveries == _MAX_RECOVERIES:
            self.tell(self.tokens[self.at].start, f"error recovery attempt limit exceeded: {_MAX_RECOVERIES}")
            raise GivenUp
        self.recoveries += 1
        self.skipped = 0

    def recover(self) -> None:
        """Skip to where a rule that is being read may go on."""
        self.count_recovery()
        if self.error_at == self.at and self.state in self.error_states:
            self.consume()  # nothing was skipped the last time
        self.error_at = self.at
        self.error_states.add(self.state)
        self.skip_until(self.recovery_set())
        self.skipped = None

    def skip_until(self, kinds: set[str]) -> None:
        while self.kind() != EOF and self.kind() not in kinds:
            self.consume()


def add(tree: Tree, label: str, part: Part) -> None:
    tree.parts.setdefault(label, []).append(part)


def _quote(text: str) -> str:
    text = text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{text}'"
