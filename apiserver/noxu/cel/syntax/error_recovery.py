"""A model of ANTLR's parser and its error recovery: finds ANTLR's messages for text that is not an expression.

It follows the parser that ANTLR generates from the grammar, with its DefaultErrorStrategy:

    [1 2]        one token too many: "extraneous input '2'", the list [1] is parsed
    (1           one token is missing: "missing ')' at '<EOF>'", a ")" is made up
    (a + ) * 2   else "mismatched input ')'", and tokens are skipped until one that may follow a rule that is being read

Clients see these messages, so this follows ANTLR closely. It is not used for well-formed expressions, unless they are very
long.

Expressions may be nested deeper than Python's stack. So rules are generators: each yields the rules that it needs, and
`_Parser.run` keeps them on a stack of its own.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final, TypeAlias

from noxu.cel.syntax.ast import NO_LOCATION, SourceProblem
from noxu.cel.syntax.grammar import (
    END,
    EOF,
    RULES,
    Choice,
    Element,
    Loop,
    Possible,
    Repeated,
    RuleReference,
    Sequence,
    Terminal,
    token_names,
)
from noxu.cel.syntax.lexer import SourceToken, Span, recognition_error

MAX_DEPTH: Final = 250  # of a rule within itself
_MAX_RECOVERIES: Final = 30
_MAX_SKIPPED: Final = 256  # tokens in one recovery
_MAX_REPORTS: Final = 100


_RESERVED: Final = re.compile("no viable alternative at input '.(true|false|null)'")
_MEMBER: Final = RuleReference("member")
_LITERAL: Final = RuleReference("literal")
_PRIMARIES: Final = {"(": 2, "[": 3, "{": 4}


class Tree:
    """The parse tree of a rule: its `parts` by their labels. `label` names the alternative, "" if none was found."""

    __slots__ = ("label", "parts", "rule", "start")

    def __init__(self, rule: str, start: SourceToken, label: str = "") -> None:
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

    def tokens(self, label: str) -> list[SourceToken]:
        return [part for part in self.parts.get(label, ()) if isinstance(part, SourceToken)]

    def token(self, label: str) -> SourceToken | None:
        part = self.first(label)
        return part if isinstance(part, SourceToken) else None


Part: TypeAlias = Tree | SourceToken
_RuleParser: TypeAlias = Generator[RuleReference, Tree, Tree]  # yields the rules it needs, returns its tree
_ElementParser: TypeAlias = Generator[RuleReference, Tree, None]
_State: TypeAlias = tuple[Element, bool]  # an element; True after an iteration of a loop, False before the element


class ParsingAborted(Exception):
    """The parser reached one of its limits. `problems` are those found so far."""

    def __init__(self, *problems: SourceProblem) -> None:
        super().__init__()
        self.problems = list(problems)


class _Mismatch(Exception):
    """The next token is not one that is expected."""


class _NoAlternative(Exception):
    """No alternative begins with the next tokens, up to the one at `index`."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index


def parse_tree(text: str, tokens: list[SourceToken], unrecognized: list[Span]) -> tuple[Tree, list[SourceProblem]]:
    """The parse tree of the tokens, and the syntax errors, those of unrecognized text included. Raises ParsingAborted."""
    parser = _Parser(text, tokens, unrecognized)
    try:
        tree = parser.run()
    except ParsingAborted as aborted:
        aborted.problems[:0] = parser.problems
        raise
    return tree, parser.problems


class _Parser:
    """`tokens[at]` is the next token. `state` is where in the grammar the parser is.

    ANTLR's parser draws tokens from the lexer as it looks ahead, so errors of the lexer and of the parser are interleaved:
    the first `reported_spans` of the unrecognized spans are reported.
    """

    def __init__(self, text: str, tokens: list[SourceToken], unrecognized: list[Span]) -> None:
        self.text = text
        self.tokens = tokens
        self.unrecognized = unrecognized
        self.reported_spans = 0
        self.at = 0
        self.problems: list[SourceProblem] = []
        self.calls: list[RuleReference] = []  # the references that led to the rule being read, outermost first
        self.depths = dict.fromkeys(RULES, 0)
        self.state: _State = (RULES["start"], False)
        # State of the error strategy
        self.recovering = False  # from an error until a token matches: further errors are not reported
        self.last_error_at = -1
        self.last_error_states: set[_State] = set()
        self.recoveries = 0
        self.skipped: int | None = None  # tokens skipped by the current recovery; None outside of one

    def run(self) -> Tree:
        stack: list[_RuleParser] = [self.rule(None)]
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
        """The kind of the token `ahead` of the next one."""
        at = min(self.at + ahead, len(self.tokens) - 1)
        self.report_unrecognized(at)
        return self.tokens[at].kind

    def consume(self) -> SourceToken:
        if self.skipped is not None:
            if self.skipped >= _MAX_SKIPPED:
                raise ParsingAborted(
                    SourceProblem(NO_LOCATION, f"error recovery token lookahead limit exceeded: {_MAX_SKIPPED}")
                )
            self.skipped += 1
        token = self.tokens[self.at]
        if token.kind != EOF:
            self.at += 1
            self.report_unrecognized(self.at)
        return token

    def report_unrecognized(self, at: int) -> None:
        """Report the unrecognized text before the token at this index, which the lexer has now passed."""
        spans = self.unrecognized
        while self.reported_spans < len(spans) and spans[self.reported_spans].start < self.tokens[at].start:
            span = spans[self.reported_spans]
            self.reported_spans += 1
            self.report_at(span.start, recognition_error(self.text, span))

    def report_at(self, pos: int, message: str) -> None:
        if len(self.problems) >= _MAX_REPORTS:
            raise ParsingAborted(SourceProblem(pos, f"Syntax error: More than {_MAX_REPORTS} syntax errors"))
        self.problems.append(SourceProblem(pos, f"Syntax error: {message}"))

    # Rules

    def rule(self, call: RuleReference | None) -> _RuleParser:
        name = "start"
        if call:
            name = call.rule
            self.calls.append(call)
        self.depths[name] += 1
        if self.depths[name] > MAX_DEPTH:
            raise ParsingAborted(SourceProblem(NO_LOCATION, f"expression recursion limit exceeded: {MAX_DEPTH}"))
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

    def element(self, element: Element, holder: list[Tree], precedence: int) -> _ElementParser:
        """Read an element into the tree in `holder`. A left-recursive loop replaces that tree (see `iteration`)."""
        if isinstance(element, Sequence):
            for part in element.elements:
                yield from self.element(part, holder, precedence)
            return
        self.state = (element, False)
        match element:
            case Terminal():
                add(holder[0], element.label, self.match(element))
            case RuleReference():
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
                    self.sync_after_iteration(element)
                    if self.kind() not in element.first:
                        break
                    if self.kind() == "-" and self.kind(1) not in _MEMBER.first:
                        raise _NoAlternative(self.at + 1)  # neither another sign nor a number with a sign
            case Loop():
                self.sync()
                while self.continues(element, precedence):
                    yield from self.iteration(element, holder, precedence)
                    self.sync_after_iteration(element)
            case Possible():
                self.sync()
                if self.kind() in element.first:
                    yield from self.element(element.body, holder, precedence)

    def iteration(self, loop: Loop, holder: list[Tree], precedence: int) -> _ElementParser:
        """One iteration of a loop. A left-recursive one makes what was read so far the left part of a new tree:

        1 + 2 + 3   calc(1)  →  calc(left: calc(1), +, 2)  →  calc(left: calc(left: calc(1), +, 2), +, 3)
        """
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

    def continues(self, loop: Loop, precedence: int) -> bool:
        """Whether the next tokens begin another iteration."""
        kind = self.kind()
        if kind not in loop.first:
            return False
        match loop.decision:
            case "list":  # a comma before the closing bracket does not
                assert isinstance(loop.body, Sequence)
                return self.kind(1) in loop.body.elements[1].first
            case "operator":
                bodies = loop.body.alternatives if isinstance(loop.body, Choice) else (loop.body,)
                return any(kind in body.first and body.precedence >= precedence for body in bodies)
        return True

    def choose(self, choice: Choice, precedence: int) -> Sequence:
        match choice.decision:
            case "unary":
                number = self.choose_unary()
            case "member":
                number = self.choose_member()
            case "primary":
                number = self.choose_primary()
            case "literal" if self.kind() == "-":
                number = {"NUM_INT": 0, "NUM_FLOAT": 2}.get(self.kind(1))
                if number is None:
                    raise _NoAlternative(self.at + 1)
            case _:
                number = next((n for n, body in enumerate(choice.alternatives) if self.kind() in body.first), None)
        if number is None:
            raise _NoAlternative(self.at)
        return choice.alternatives[number]

    def choose_unary(self) -> int | None:
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

    def choose_member(self) -> int | None:
        if self.kind() != ".":
            return 2
        following = self.kind(1)
        if following == "IDENTIFIER":
            return 1 if self.kind(2) == "(" else 0
        if following in ("?", "ESC_IDENTIFIER"):
            return 0
        raise _NoAlternative(self.at + 1)

    def choose_primary(self) -> int | None:
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

    def match(self, terminal: Terminal) -> SourceToken:
        """Consume the token that is expected. If it is not next, drop a token before it or make it up."""
        if self.kind() in terminal.first:
            self.matched()
            return self.consume()
        self.count_recovery()
        if self.drop_one():
            token = self.consume()
        elif self.kind() in self.in_context(terminal.after):
            current = self.tokens[self.at]
            self.report_once(f"missing {token_names(self.expected())} at {_quote(current.text)}")
            if current.kind == EOF and self.at:
                current = self.tokens[self.at - 1]
            token = SourceToken("missing", "<missing>", current.start)
        else:
            raise _Mismatch
        self.skipped = None
        return token

    def matched(self) -> None:
        self.recovering = False
        self.last_error_states.clear()
        self.last_error_at = -1

    def in_context(self, kinds: frozenset[str]) -> set[str]:
        """The kinds that may come next. Where `END` is one of them, those that the callers of this rule expect after it.

        In `[1 2]` after the 1 `kinds` are the operators and `END`; the list literal, a caller, adds "," and "]".
        """
        expected = set(kinds)
        for call in reversed(self.calls):
            if END not in expected:
                break
            expected.discard(END)
            expected |= call.after
        if END in expected:
            expected ^= {END, EOF}
        return expected

    def following(self) -> frozenset[str]:
        """The kinds that may come next within the rule that is being read."""
        element, after_iteration = self.state
        if isinstance(element, Possible) or after_iteration:
            return element.first | element.after
        return element.first

    def expected(self) -> set[str]:
        return self.in_context(self.following())

    def recovery_set(self) -> set[str]:
        """The kinds that may follow any of the rules that are being read."""
        return set().union(*(call.after for call in self.calls)) - {END}

    def sync(self) -> None:
        """Check that the next token fits before an element is read: errors are reported as early as possible."""
        following = self.following()
        if not (self.recovering or END in following or self.kind() in following or self.drop_one()):
            raise _Mismatch

    def sync_after_iteration(self, element: Element) -> None:
        self.state = (element, True)
        following = self.following()
        if not (self.recovering or END in following or self.kind() in following):
            self.report_extraneous()
            self.skip_until(self.expected() | self.recovery_set())

    def drop_one(self) -> bool:
        """Drop the next token if the one after it is expected."""
        if self.kind(1) not in self.expected():
            return False
        self.report_extraneous()
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
            message = f"mismatched input {_quote(first.text)} expecting {token_names(self.expected())}"
        self.report_once(message, last)

    def report_extraneous(self) -> None:
        text = _quote(self.tokens[self.at].text)
        self.report_once(f"extraneous input {text} expecting {token_names(self.expected())}")

    def report_once(self, message: str, token: SourceToken | None = None) -> None:
        """Report an error, unless the parser is still recovering from another."""
        if not self.recovering:
            self.recovering = True
            self.report_at((token or self.tokens[self.at]).start, message)

    def text_between(self, first: SourceToken, last: SourceToken) -> str:
        """The text from one token to the end of the other, without unrecognized parts: `a # .1` → `a  .1`."""
        if first.kind == EOF:
            return first.text
        text, start = "", first.start
        end = last.start if last.kind == EOF else last.start + len(last.text)
        for span in self.unrecognized:
            if start <= span.start < end:
                text += self.text[start : span.start]
                start = span.end
        return text + self.text[start:end]

    def count_recovery(self) -> None:
        if self.recoveries == _MAX_RECOVERIES:
            self.report_at(self.tokens[self.at].start, f"error recovery attempt limit exceeded: {_MAX_RECOVERIES}")
            raise ParsingAborted
        self.recoveries += 1
        self.skipped = 0

    def recover(self) -> None:
        """Skip tokens until one that may follow a rule that is being read.

        (a + ) * 2   at ")" an operand is missing; ")" may follow an expression in parentheses: nothing is skipped
        a b + 1      at "b" only the end may follow: everything is skipped
        """
        self.count_recovery()
        if self.last_error_at == self.at and self.state in self.last_error_states:
            self.consume()  # the last recovery here skipped nothing: make progress
        self.last_error_at = self.at
        self.last_error_states.add(self.state)
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
