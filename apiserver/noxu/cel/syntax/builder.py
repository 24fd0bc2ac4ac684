"""Builds nodes from the parts of an expression: expands macros, reads literals, and reports errors in either.

Macros are calls that the parser replaces by other expressions: cel-go's standard macros, those of optionals (optMap,
optFlatMap), the two-variable comprehensions and sortBy. The nodes that an expansion adds have the position of the call.

    items.all(i, i > 0)   →   @result = true; for i in items while @not_strictly_false(@result): @result && i > 0
    items.map(i, i + 1)   →   @result = []; for i in items: @result + [i + 1]
    has(a.b)              →   a Select with `test`
    a.b.optMap(v, v + 1)  →   a.b.hasValue() ? optional.of(bind v = a.b.value() in v + 1) : optional.none()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from noxu.cel.syntax import lexer
from noxu.cel.syntax.ast import (
    ACCUMULATOR,
    UNUSED,
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Missing,
    Select,
    SourceProblem,
    copy,
    is_larger,
)
from noxu.cel.syntax.lexer import SourceToken

_OLD_ACCUMULATOR: Final = "__result__"  # still not allowed as the name of a variable
_MAX_COPIED: Final = 10_000  # nodes; each optMap of a chain doubles the tree, until upstream runs out of memory
SORT_INPUT: Final = "@__sortBy_input__"


class MacroError(Exception):
    """An argument that a macro does not accept; `pos` is the position of the argument."""

    def __init__(self, pos: int, message: str) -> None:
        super().__init__(message)
        self.pos = pos
        self.message = message


Expansion: TypeAlias = Callable[[int, Expr, list[Expr]], Expr]


def _accumulator(pos: int) -> Ident:
    return Ident(pos, ACCUMULATOR)


def _variable(arg: Expr, message: str) -> str:
    if not isinstance(arg, Ident):
        raise MacroError(arg.pos, message)
    if arg.name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise MacroError(arg.pos, "iteration variable overwrites accumulator variable")
    return arg.name


def _two_variables(first: Expr, second: Expr) -> tuple[str, str]:
    for arg in (first, second):
        if not isinstance(arg, Ident):
            raise MacroError(arg.pos, "argument must be a simple name")
    if first.name == second.name:  # type: ignore[union-attr]
        raise MacroError(second.pos, f"duplicate variable name: {first.name}")  # type: ignore[union-attr]
    simple = "argument must be a simple name"
    return _variable(first, simple), _variable(second, simple)


def _has(pos: int, target: Expr, args: list[Expr]) -> Expr:  # noqa: ARG001 - has() has no target
    tested = args[0]
    if not isinstance(tested, Select):
        raise MacroError(tested.pos, "invalid argument to has() macro")
    return Select(pos, tested.operand, tested.field, test=True)


def _quantifier(macro: str) -> Expansion:
    """all, exists and exists_one, with one or two variables. (`existsOne` has two.)"""

    def expand(pos: int, target: Expr, args: list[Expr]) -> Expr:
        predicate = args[-1]
        if len(args) == 2:
            names = (_variable(args[0], "argument must be a simple name"), "")
        else:
            names = _two_variables(args[0], args[1])
        initial: Expr
        condition: Expr
        result: Expr = _accumulator(pos)
        if macro == "all":
            initial = Literal(pos, True)
            condition = Call(pos, "@not_strictly_false", [_accumulator(pos)])
            step = Call(pos, "_&&_", [_accumulator(pos), predicate])
        elif macro == "exists":
            initial = Literal(pos, False)
            condition = Call(pos, "@not_strictly_false", [Call(pos, "!_", [_accumulator(pos)])])
            step = Call(pos, "_||_", [_accumulator(pos), predicate])
        else:
            initial, condition = Literal(pos, 0), Literal(pos, True)
            counted = Call(pos, "_+_", [_accumulator(pos), Literal(pos, 1)])
            step = Call(pos, "_?_:_", [predicate, counted, _accumulator(pos)])
            result = Call(pos, "_==_", [result, Literal(pos, 1)])
        return Comprehension(pos, target, *names, ACCUMULATOR, initial, condition, step, result, macro)

    return expand


def _collect(pos: int, target: Expr, names: tuple[str, str], where: Expr | None, value: Expr, macro: str) -> Expr:
    """A list of `value` for each element for which `where` is true."""
    step = Call(pos, "_+_", [_accumulator(pos), ListLiteral(pos, [value])])
    return _fold(pos, target, names, ListLiteral(pos, []), where, step, macro)


def _fold(
    pos: int, target: Expr, names: tuple[str, str], initial: Expr, where: Expr | None, step: Call, macro: str
) -> Expr:
    """A comprehension that runs over all elements and takes the `step` for those for which `where` is true."""
    if where is not None:
        step = Call(pos, "_?_:_", [where, step, _accumulator(pos)])
    condition = Literal(pos, True)
    return Comprehension(pos, target, *names, ACCUMULATOR, initial, condition, step, _accumulator(pos), macro)


def _map(pos: int, target: Expr, args: list[Expr]) -> Expr:
    names = (_variable(args[0], "argument is not an identifier"), "")
    return _collect(pos, target, names, args[1] if len(args) == 3 else None, args[-1], "map")


def _filter(pos: int, target: Expr, args: list[Expr]) -> Expr:
    names = (_variable(args[0], "argument is not an identifier"), "")
    return _collect(pos, target, names, args[1], args[0], "filter")


def _transform_list(pos: int, target: Expr, args: list[Expr]) -> Expr:
    names = _two_variables(args[0], args[1])
    return _collect(pos, target, names, args[2] if len(args) == 4 else None, args[-1], "transformList")


def _transform_map(pos: int, target: Expr, args: list[Expr]) -> Expr:
    names = _two_variables(args[0], args[1])
    step = Call(pos, "cel.@mapInsert", [_accumulator(pos), Ident(pos, names[0]), args[-1]])
    return _fold(pos, target, names, MapLiteral(pos, []), args[2] if len(args) == 4 else None, step, "transformMap")


def _transform_map_entry(pos: int, target: Expr, args: list[Expr]) -> Expr:
    names = _two_variables(args[0], args[1])
    step = Call(pos, "cel.@mapInsert", [_accumulator(pos), args[-1]])
    where = args[2] if len(args) == 4 else None
    return _fold(pos, target, names, MapLiteral(pos, []), where, step, "transformMapEntry")


def bind(pos: int, name: str, value: Expr, result: Expr, unchanged: Expr) -> Comprehension:
    """`result`, with `name` bound to `value`; a comprehension over an empty list."""
    names = (UNUSED, "")
    return Comprehension(pos, ListLiteral(pos, []), *names, name, value, Literal(pos, False), unchanged, result, "bind")


def _opt_map(macro: str) -> Expansion:
    def expand(pos: int, target: Expr, args: list[Expr]) -> Expr:
        variable, mapped = args
        if not isinstance(variable, Ident):
            raise MacroError(variable.pos, f"{macro}() variable name must be a simple identifier")
        if is_larger(target, _MAX_COPIED):
            raise MacroError(pos, f"{macro}() is applied to too large an expression")
        value = Call(pos, "value", [], copy(target))
        some: Expr = bind(pos, variable.name, value, mapped, Ident(pos, variable.name))
        if macro == "optMap":
            some = Call(pos, "optional.of", [some])
        return Call(pos, "_?_:_", [Call(pos, "hasValue", [], target), some, Call(pos, "optional.none", [])])

    return expand


def _sort_by(pos: int, target: Expr, args: list[Expr]) -> Expr:
    if not isinstance(target, ListLiteral | Select | Ident | Comprehension | Call):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.pos, message)
    keys = _map(pos, Ident(pos, SORT_INPUT), args)
    result = Call(pos, "@sortByAssociatedKeys", [keys], Ident(pos, SORT_INPUT))
    return bind(pos, SORT_INPUT, target, result, Ident(pos, SORT_INPUT))


Macros: TypeAlias = Mapping[tuple[str, int, bool], Expansion]
"""By name, number of arguments, and whether called on a target."""

MACROS: Final[Macros] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all"),
    ("all", 3, True): _quantifier("all"),
    ("exists", 2, True): _quantifier("exists"),
    ("exists", 3, True): _quantifier("exists"),
    ("exists_one", 2, True): _quantifier("exists_one"),
    ("exists_one", 3, True): _quantifier("exists_one"),
    ("existsOne", 3, True): _quantifier("exists_one"),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
    ("optMap", 2, True): _opt_map("optMap"),
    ("optFlatMap", 2, True): _opt_map("optFlatMap"),
    ("sortBy", 2, True): _sort_by,
}


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

    def __init__(self, macros: Macros) -> None:
        self.macros = macros
        self.problems: list[SourceProblem] = []

    def error(self, pos: int, message: str) -> Missing:
        self.problems.append(SourceProblem(pos, message))
        return Missing(pos)

    def literal(self, pos: int, read: Callable[[], object]) -> Expr:
        try:
            return Literal(pos, read())
        except lexer.LiteralError as error:
            return self.error(pos, str(error))

    def call(self, pos: int, function: str, args: list[Expr], target: Expr | None = None) -> Expr:
        expand = self.macros.get((function, len(args), target is not None))
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
    "STRING": lexer.string,
    "BYTES": lexer.bytestring,
    "NUM_UINT": lexer.unsigned,
}
SIGNED: Final[dict[str, Callable[[str, str], object]]] = {"NUM_INT": lexer.integer, "NUM_FLOAT": lexer.double}


def read_literal(builder: Builder, token: SourceToken, sign: str, pos: int) -> Expr:
    if token.kind in NAMED_LITERALS:
        return Literal(pos, NAMED_LITERALS[token.kind])
    if token.kind in SIGNED:
        return builder.literal(pos, lambda: SIGNED[token.kind](sign, token.text))
    return builder.literal(pos, lambda: _READERS[token.kind](token.text))
