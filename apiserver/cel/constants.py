"""What is settled before an expression runs: literals that functions would refuse, and sub-expressions folded.

`complaints` are cel-go's validators of literals, part of compiling. `fold` is what its planner evaluates ahead:
conversions of constants, lists and maps of constants, and patterns; it fails where such a conversion does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apiserver.cel import equality
from apiserver.cel.ast import Call, Expr, Ident, ListLiteral, Literal, MapLiteral, children
from apiserver.cel.conversions import go_type, to_duration, to_timestamp
from apiserver.cel.environment import Environment
from apiserver.cel.errors import CelError
from apiserver.cel.library import formatting
from apiserver.cel.library.formatting import FormatError
from apiserver.cel.library.standard import compile_pattern
from apiserver.cel.numbers import Uint
from apiserver.cel.source import Problem
from apiserver.cel.types import Kind, Type, display
from apiserver.cel.values import MapValue, Value
from apiserver.schema import patterns
from apiserver.schema.patternsyntax import PatternError

_CONVERSIONS: Final = frozenset({
    "bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint",
})  # fmt: skip
PATTERN_FUNCTIONS: Final = frozenset({"matches", "find", "findAll"})
_PRIMITIVES: Final = frozenset({bool, float, int, str, Uint})
_TEXTUAL: Final = frozenset({
    Kind.LIST, Kind.MAP, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.BOOL, Kind.STRING, Kind.TIMESTAMP, Kind.BYTES,
    Kind.DURATION, Kind.TYPE, Kind.NULL,
})  # fmt: skip
_FITTING: Final = {
    "s": _TEXTUAL,
    "d": frozenset({Kind.INT, Kind.UINT}),
    "f": frozenset({Kind.DOUBLE, Kind.STRING}),
    "e": frozenset({Kind.DOUBLE, Kind.STRING}),
    "b": frozenset({Kind.INT, Kind.UINT, Kind.BOOL}),
    "x": frozenset({Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES}),
    "X": frozenset({Kind.INT, Kind.UINT, Kind.STRING, Kind.BYTES}),
    "o": frozenset({Kind.INT, Kind.UINT}),
}


def complaints(tree: Expr) -> list[Problem]:
    """What is wrong with literals, in a checked expression."""
    return list(_complaints(tree, mixed_allowed=False))


def _complaints(top: Expr, *, mixed_allowed: bool) -> Iterator[Problem]:
    todo = [(top, mixed_allowed)]
    while todo:
        node, allowed = todo.pop()
        match node:
            case ListLiteral() if not allowed:
                yield from _mixed_elements(node)
            case MapLiteral() if not allowed:
                yield from _mixed_entries(node)
            case Call():
                yield from _bad_arguments(node)
                allowed = allowed or node.function == "format"
        todo += ((child, allowed) for child in children(node))


def _equivalent(one: Type, other: Type) -> bool:
    """The names of type parameters do not count; there are none left."""
    return one == other


def _mismatch(node: Expr, wanted: Type, given: Type) -> Problem:
    return Problem(node.pos, f"expected type '{display(wanted)}' but found '{display(given)}'")


def _mixed_elements(node: ListLiteral) -> Iterator[Problem]:
    wanted: Type | None = None
    for n, one in enumerate(node.elements):
        given = one.type.params[0] if n in node.optional and one.type.params else one.type
        if wanted is None:
            wanted = given
        elif not _equivalent(wanted, given):
            yield _mismatch(one, wanted, given)
            return


def _mixed_entries(node: MapLiteral) -> Iterator[Problem]:
    wanted: tuple[Type, Type] | None = None
    for entry in node.entries:
        value = entry.value.type
        given = entry.key.type, value.params[0] if entry.optional and value.params else value
        if wanted is None:
            wanted = given
            continue
        if not _equivalent(wanted[0], given[0]):
            yield _mismatch(entry.key, wanted[0], given[0])
        if not _equivalent(wanted[1], given[1]):
            yield _mismatch(entry.value, wanted[1], given[1])


def _bad_arguments(node: Call) -> Iterator[Problem]:
    first = node.args[0] if node.args else None
    if not isinstance(first, Literal):
        if node.function == "format" and isinstance(first, ListLiteral):
            yield from _bad_format(node, first)
        return
    try:
        match node.function:
            case "duration":
                to_duration(first.value)
            case "timestamp":
                to_timestamp(first.value)
            case "matches" if isinstance(first.value, str):
                patterns.compile(first.value)
    except (CelError, PatternError):
        yield Problem(first.pos, f"invalid {node.function} argument")


def _bad_format(node: Call, args: ListLiteral) -> Iterator[Problem]:
    if not isinstance(node.target, Literal) or not isinstance(node.target.value, str):
        return
    culprit: list[int] = []

    def check(verb: str, index: int) -> None:
        bad = _unfit(verb, args.elements[index])
        if bad is not None:
            culprit.append(bad.pos)
            raise formatting.wrong(verb, bad.type.name)

    try:
        used = formatting.check(node.target.value, len(args.elements), check)
    except FormatError as error:
        yield Problem(culprit[0] if culprit else node.pos, str(error))
        return
    if len(args.elements) > used:
        given = len(args.elements)
        message = f"too many arguments supplied to string.format (expected {used}, got {given})"
        yield Problem(node.pos, message)


def _unfit(verb: str, arg: Expr) -> Expr | None:
    """The argument, or the element of it, that the clause cannot print."""
    if arg.type.kind is not Kind.DYN and arg.type.kind not in _FITTING[verb]:
        return arg
    if verb == "s":
        inner: list[Expr] = []
        if isinstance(arg, ListLiteral):
            inner = arg.elements
        elif isinstance(arg, MapLiteral):
            inner = [part for entry in arg.entries for part in (entry.key, entry.value)]
        for one in inner:
            bad = _unfit("s", one)
            if bad is not None:
                return bad
    return None


_INDEXING: Final = frozenset({"_[_]", "_[?_]"})
_QUALIFIERS: Final = frozenset({str, int, Uint, bool, float})


def check_qualifier(key: Value) -> None:
    """Raises CelError for what nothing can be indexed with."""
    if type(key) not in _QUALIFIERS:
        raise CelError(f"invalid qualifier type: {go_type(key)}")


class Constants:
    """`values` of folded nodes; `members` of constant lists that only `in` looks at; `calls` and `chains` are the walker's to fill."""

    __slots__ = ("calls", "chains", "members", "values")

    def __init__(self) -> None:
        self.values: dict[Expr, Value] = {}
        self.members: dict[Call, list[Value]] = {}
        self.calls: dict[Call, Any] = {}
        self.chains: dict[Expr, Any] = {}


def fold(tree: Expr, environment: Environment) -> Constants:
    """Raises CelError where a constant cannot be what it is converted to, Cancelled where it can be no key."""
    constants = Constants()
    _fold(tree, environment, constants)
    return constants


def _fold(node: Expr, environment: Environment, constants: Constants) -> None:
    for child in children(node):
        _fold(child, environment, constants)
    values = constants.values
    match node:
        case Literal():
            values[node] = node.value
        case Ident() if node.constant is not None:
            known = environment.type_names
            if node.name in environment.unusable_type_names or (
                node.name not in known and environment.messages(node.name)
            ):
                raise CelError(f"reference to undefined type: {node.name}")
            values[node] = node.constant
        case ListLiteral() if not node.optional and all(one in values for one in node.elements):
            values[node] = [values[one] for one in node.elements]
        case MapLiteral() if all(
            entry.key in values and entry.value in values and not entry.optional for entry in node.entries
        ):
            values[node] = MapValue((values[entry.key], values[entry.value]) for entry in node.entries)
        case Call():
            _fold_call(node, environment, constants)


def _fold_call(node: Call, environment: Environment, constants: Constants) -> None:
    values = constants.values
    operands = node.operands
    if node.function in _CONVERSIONS and len(operands) == 1 and operands[0] in values:
        run = environment.functions[node.function].implementation(node.overloads)
        values[node] = run(values[operands[0]])
    elif node.overloads == ("in_list",) and operands[1] in values:
        members = values[operands[1]]
        if not members:
            values[node] = False
        elif all(type(one) in _PRIMITIVES for one in members):
            constants.members[node] = members
    elif node.function in _INDEXING and operands[1] in values:
        check_qualifier(values[operands[1]])
    elif node.function in PATTERN_FUNCTIONS and isinstance(values.get(operands[1]), str):
        compile_pattern(values[operands[1]])


def is_member(value: Value, members: list[Value]) -> bool:
    """`value in [constants]`."""
    return any(equality.equal(one, value) for one in members)
