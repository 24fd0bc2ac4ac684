"""The syntax tree: cel-go's kinds of expressions, with macros expanded.

`pos` is where error messages about a node point (an offset in code points). The checker sets `type`, and for calls
`overloads`: the ids of the overloads that the call may use. A comprehension keeps the name of the macro it came from,
which determines the shape of its parts (see `noxu.cel.syntax.builder`).

Errors are printed with their lines as cel-go prints them (common/error.go). Positions are code points, lines end at
`\\n`. Below an error stands its line, and below that a caret under the column; a wide character takes a wide dot or a
wide caret:

    ERROR: <input>:1:6: undeclared reference to 'sel' (in container '')
     | 1 + sel.x
     | ....^
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from noxu.cel.types.types import Type

MAX_SHOWN_ERRORS: Final = 100  # common.Errors reports no more
MAX_SNIPPET: Final = 16384  # bytes; longer lines are not printed
NO_LOCATION: Final = -1  # the offset of an error without a location (common.NoLocation)
BEFORE_TEXT: Final = -2  # the offset of a missing expression: cel-go reports it at column 0 of line 1


class SourceProblem(NamedTuple):
    """An error in an expression; `offset` is in code points."""

    offset: int
    message: str


class CompileError(Exception):
    """An expression does not compile. The message is what cel-go's Issues print."""


def compile_error(text: str, problems: Sequence[SourceProblem]) -> CompileError:
    return CompileError(format_problems(text, problems))


def format_problems(text: str, problems: Sequence[SourceProblem]) -> str:
    """All problems, sorted by location, each with its line."""
    line_starts = [0]
    newline = text.find("\n")
    while newline >= 0:
        line_starts.append(newline + 1)
        newline = text.find("\n", newline + 1)
    located = [
        (*_location(line_starts, problem.offset if text else min(problem.offset, BEFORE_TEXT)), problem.message)
        for problem in problems[:MAX_SHOWN_ERRORS]
    ]
    located.sort(key=lambda row: row[:2])
    shown = [_format(text, line_starts, *row) for row in located]
    if len(problems) > MAX_SHOWN_ERRORS:
        shown.append(f"{len(problems) - MAX_SHOWN_ERRORS} more errors were truncated")
    return "\n".join(shown)


def _location(line_starts: list[int], offset: int) -> tuple[int, int]:
    """Line (from 1) and column (from 0)."""
    if offset < 0:
        return (-1, -1) if offset == NO_LOCATION else (1, -1)
    line = bisect_right(line_starts, offset)
    return line, offset - line_starts[line - 1]


def _format(text: str, line_starts: list[int], line: int, column: int, message: str) -> str:
    head = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 0 or not text:
        return head
    end = line_starts[line] - 1 if line < len(line_starts) else len(text)
    snippet = text[line_starts[line - 1] : end]
    if len(snippet) * 4 > MAX_SNIPPET and len(snippet.encode()) > MAX_SNIPPET:
        return head
    snippet = snippet.replace("\t", " ")
    dots = "".join("." if char < "\x80" else "．" for char in snippet[: max(column, 0)])
    caret = "＾" if snippet[max(column, 0) :][:1] >= "\x80" else "^"
    return f"{head}\n | {snippet}\n | {dots}{caret}"


ACCUMULATOR: Final = "@result"  # not an identifier, so that expressions cannot refer to it
UNUSED: Final = "#unused"  # the iteration variable of a comprehension that only binds a name


@dataclass(slots=True, eq=False)
class ExprNode:
    pos: int
    type: Type = field(init=False, repr=False)


@dataclass(slots=True, eq=False)
class Literal(ExprNode):
    """None, bool, int, Uint, float, str or bytes."""

    value: object


@dataclass(slots=True, eq=False)
class Ident(ExprNode):
    """The checker sets `constant` where the name is that of a type."""

    name: str
    constant: Type | None = None


@dataclass(slots=True, eq=False)
class Select(ExprNode):
    """`operand.field`; with `test`, `has(operand.field)`."""

    operand: Expr
    field: str
    test: bool = False


@dataclass(slots=True, eq=False)
class Call(ExprNode):
    function: str
    args: list[Expr]
    target: Expr | None = None
    overloads: tuple[str, ...] = ()

    @property
    def operands(self) -> list[Expr]:
        """The target, if there is one, and the arguments."""
        return self.args if self.target is None else [self.target, *self.args]


@dataclass(slots=True, eq=False)
class ListLiteral(ExprNode):
    """`optional` holds the indices of the `?element`s."""

    elements: list[Expr]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapEntry(ExprNode):
    """`key: value` of a map, `field: value` of a message (then `key` is a Literal)."""

    key: Expr
    value: Expr
    optional: bool


@dataclass(slots=True, eq=False)
class MapLiteral(ExprNode):
    entries: list[MapEntry]


@dataclass(slots=True, eq=False)
class Message(ExprNode):
    """`name{field: value}`."""

    name: str
    entries: list[MapEntry]


@dataclass(slots=True, eq=False)
class Comprehension(ExprNode):
    """A fold over `range`:

        accumulator = initial
        for variable[, variable2] in range:
            if not condition: break
            accumulator = step
        → result

    `macro` is the name of the macro (all, map, …), or "bind" for a comprehension that only gives `initial` a name.
    """

    range: Expr
    variable: str
    variable2: str
    accumulator: str
    initial: Expr
    condition: Expr
    step: Expr
    result: Expr
    macro: str


class Missing(ExprNode):
    """Stands for an expression that could not be parsed."""

    __slots__ = ()


Expr: TypeAlias = Literal | Ident | Select | Call | ListLiteral | MapLiteral | Message | Comprehension | Missing


def children(node: Expr) -> list[Expr]:
    """The expressions directly below a node, in order of evaluation."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return node.operands
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case Message():
            return [entry.value for entry in node.entries]
        case Comprehension():
            return [node.range, node.initial, node.condition, node.step, node.result]
        case _:
            return []


def copy(node: Expr) -> Expr:
    """A deep copy (some macros repeat their target)."""
    pos = node.pos
    match node:
        case Literal():
            return Literal(pos, node.value)
        case Ident():
            return Ident(pos, node.name)
        case Select():
            return Select(pos, copy(node.operand), node.field, node.test)
        case Call():
            target = None if node.target is None else copy(node.target)
            return Call(pos, node.function, [copy(arg) for arg in node.args], target)
        case ListLiteral():
            return ListLiteral(pos, [copy(element) for element in node.elements], node.optional)
        case MapLiteral():
            return MapLiteral(pos, [_copy_entry(entry) for entry in node.entries])
        case Message():
            return Message(pos, node.name, [_copy_entry(entry) for entry in node.entries])
        case Comprehension():
            return replace(
                node,
                range=copy(node.range),
                initial=copy(node.initial),
                condition=copy(node.condition),
                step=copy(node.step),
                result=copy(node.result),
            )
        case _:
            return Missing(pos)


def _copy_entry(entry: MapEntry) -> MapEntry:
    return MapEntry(entry.pos, copy(entry.key), copy(entry.value), entry.optional)


def is_deeper(tree: Expr, limit: int) -> bool:
    """Whether the tree has more than `limit` levels."""
    level = [tree]
    for _ in range(limit):
        level = [inner for node in level for inner in children(node)]
        if not level:
            return False
    return True


def is_larger(tree: Expr, limit: int) -> bool:
    """Whether the tree has more than `limit` nodes."""
    todo, count = [tree], 0
    while todo and count <= limit:
        count += 1
        todo += children(todo.pop())
    return count > limit
