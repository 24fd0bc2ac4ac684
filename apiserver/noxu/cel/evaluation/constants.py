"""The constant parts of an expression, judged before it runs: wrong literal arguments, and constant sub-expressions.

`literal_problems` are cel-go's validators of literals, a part of compiling. `fold` evaluates ahead what cel-go's
planner does: conversions of constants, and lists and maps of constants. It fails if a conversion fails or a pattern is
wrong.

    self.name in ['a', 'b'] && self.time > timestamp('2024-01-01T00:00:00Z')
    →   the members 'a' and 'b' of a list, and a timestamp
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from noxu.cel.checking.environment import Environment
from noxu.cel.errors import CelError
from noxu.cel.library import formatting
from noxu.cel.library.formatting import FormatError
from noxu.cel.library.standard import compile_pattern
from noxu.cel.syntax.ast import Call, Expr, Ident, ListLiteral, Literal, MapLiteral, SourceProblem, children
from noxu.cel.types.types import Type, TypeKind, display
from noxu.cel.values import equality
from noxu.cel.values.conversions import go_type, to_duration, to_timestamp
from noxu.cel.values.numbers import Uint
from noxu.cel.values.values import MapValue, Value
from noxu.go.regexp_syntax import PatternError
from noxu.schema import patterns

_CONVERSIONS: Final = frozenset({
    "bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint",
})  # fmt: skip
PATTERN_FUNCTIONS: Final = frozenset({"matches", "find", "findAll"})
_PRIMITIVES: Final = frozenset({bool, float, int, str, Uint})
_TEXTUAL: Final = frozenset({
    TypeKind.LIST, TypeKind.MAP, TypeKind.INT, TypeKind.UINT, TypeKind.DOUBLE, TypeKind.BOOL, TypeKind.STRING, TypeKind.TIMESTAMP, TypeKind.BYTES,
    TypeKind.DURATION, TypeKind.TYPE, TypeKind.NULL,
})  # fmt: skip
_PRINTABLE: Final = {  # the kinds of arguments that each verb of string.format accepts
    "s": _TEXTUAL,
    "d": frozenset({TypeKind.INT, TypeKind.UINT}),
    "f": frozenset({TypeKind.DOUBLE, TypeKind.STRING}),
    "e": frozenset({TypeKind.DOUBLE, TypeKind.STRING}),
    "b": frozenset({TypeKind.INT, TypeKind.UINT, TypeKind.BOOL}),
    "x": frozenset({TypeKind.INT, TypeKind.UINT, TypeKind.STRING, TypeKind.BYTES}),
    "X": frozenset({TypeKind.INT, TypeKind.UINT, TypeKind.STRING, TypeKind.BYTES}),
    "o": frozenset({TypeKind.INT, TypeKind.UINT}),
}


def literal_problems(tree: Expr) -> list[SourceProblem]:
    """The problems of the literals in a checked expression: wrong arguments, and elements of different types."""
    return list(_literal_problems(tree))


def _literal_problems(tree: Expr) -> Iterator[SourceProblem]:
    todo = [(tree, False)]
    while todo:
        node, mixed_allowed = todo.pop()
        match node:
            case ListLiteral() if not mixed_allowed:
                yield from _mixed_elements(node)
            case MapLiteral() if not mixed_allowed:
                yield from _mixed_entries(node)
            case Call():
                yield from _invalid_arguments(node)
                mixed_allowed = mixed_allowed or node.function == "format"
        todo += ((child, mixed_allowed) for child in children(node))


def _mismatch(node: Expr, expected: Type, actual: Type) -> SourceProblem:
    return SourceProblem(node.pos, f"expected type '{display(expected)}' but found '{display(actual)}'")


def _mixed_elements(node: ListLiteral) -> Iterator[SourceProblem]:
    expected: Type | None = None
    for n, element in enumerate(node.elements):
        actual = element.type.params[0] if n in node.optional and element.type.params else element.type
        if expected is None:
            expected = actual
        elif expected != actual:
            yield _mismatch(element, expected, actual)
            return


def _mixed_entries(node: MapLiteral) -> Iterator[SourceProblem]:
    expected: tuple[Type, Type] | None = None
    for entry in node.entries:
        value = entry.value.type
        actual = entry.key.type, value.params[0] if entry.optional and value.params else value
        if expected is None:
            expected = actual
            continue
        if expected[0] != actual[0]:
            yield _mismatch(entry.key, expected[0], actual[0])
        if expected[1] != actual[1]:
            yield _mismatch(entry.value, expected[1], actual[1])


def _invalid_arguments(node: Call) -> Iterator[SourceProblem]:
    first = node.args[0] if node.args else None
    if not isinstance(first, Literal):
        if node.function == "format" and isinstance(first, ListLiteral):
            yield from _invalid_format(node, first)
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
        yield SourceProblem(first.pos, f"invalid {node.function} argument")


def _invalid_format(node: Call, args: ListLiteral) -> Iterator[SourceProblem]:
    if not isinstance(node.target, Literal) or not isinstance(node.target.value, str):
        return
    invalid: list[int] = []  # the position of the argument that cannot be printed

    def check_argument(verb: str, index: int) -> None:
        unprintable = _unprintable(verb, args.elements[index])
        if unprintable is not None:
            invalid.append(unprintable.pos)
            raise formatting.wrong_type(verb, unprintable.type.name)

    try:
        used = formatting.check(node.target.value, len(args.elements), check_argument)
    except FormatError as error:
        yield SourceProblem(invalid[0] if invalid else node.pos, str(error))
        return
    if len(args.elements) > used:
        count = len(args.elements)
        message = f"too many arguments supplied to string.format (expected {used}, got {count})"
        yield SourceProblem(node.pos, message)


def _unprintable(verb: str, arg: Expr) -> Expr | None:
    """The argument, or the element of it, that the verb cannot print; None if it can."""
    if arg.type.kind is not TypeKind.DYN and arg.type.kind not in _PRINTABLE[verb]:
        return arg
    if verb == "s":
        inner: list[Expr] = []
        if isinstance(arg, ListLiteral):
            inner = arg.elements
        elif isinstance(arg, MapLiteral):
            inner = [part for entry in arg.entries for part in (entry.key, entry.value)]
        for element in inner:
            unprintable = _unprintable("s", element)
            if unprintable is not None:
                return unprintable
    return None


_INDEXING: Final = frozenset({"_[_]", "_[?_]"})
_QUALIFIERS: Final = frozenset({str, int, Uint, bool, float})


def check_qualifier(key: Value) -> None:
    """Raises CelError for a value that cannot be an index."""
    if type(key) not in _QUALIFIERS:
        raise CelError(f"invalid qualifier type: {go_type(key)}")


class Constants:
    """The constants of a tree, known before it is evaluated.

    `values` are those of folded nodes, `members` the elements of constant lists to the right of `in`. `call_plans` and
    `attribute_plans` are filled by the interpreter.
    """

    __slots__ = ("attribute_plans", "call_plans", "members", "values")

    def __init__(self) -> None:
        self.values: dict[Expr, Value] = {}
        self.members: dict[Call, list[Value]] = {}
        self.call_plans: dict[Call, Any] = {}
        self.attribute_plans: dict[Expr, Any] = {}


def fold(tree: Expr, environment: Environment) -> Constants:
    """Raises CelError if a constant cannot be converted, and Cancelled if it cannot be a key."""
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
            type_names = environment.type_names
            if node.name in environment.unusable_type_names or (
                node.name not in type_names and environment.messages(node.name)
            ):
                raise CelError(f"reference to undefined type: {node.name}")
            values[node] = node.constant
        case ListLiteral() if not node.optional and all(element in values for element in node.elements):
            values[node] = [values[element] for element in node.elements]
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
        elif all(type(member) in _PRIMITIVES for member in members):
            constants.members[node] = members
    elif node.function in _INDEXING and operands[1] in values:
        check_qualifier(values[operands[1]])
    elif node.function in PATTERN_FUNCTIONS and isinstance(values.get(operands[1]), str):
        compile_pattern(values[operands[1]])


def is_member(value: Value, members: list[Value]) -> bool:
    """`value in [constants]`."""
    return any(equality.equal(member, value) for member in members)
