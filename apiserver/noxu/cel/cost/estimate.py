"""Estimates of the highest cost of an expression, from its types (cel-go's checker/cost.go).

An estimate is a range. Sizes come from literals, from the schema (along the path by which a value is reached from `self`)
and from the results of functions; an unknown size may be any. The upper end of the range decides whether a rule is
admitted, so the numbers equal upstream's, and saturate at 2^64-1 as upstream's do.

    self.items.all(i, i.name.size() < 10)   with at most 100 items
    →   2 for self.items, 0 to 100 times 7, and 1 for the result: from 3 to 703
    (7: 2 for the condition of the comprehension, and for its step 1 for @result, 2 for i.name, 1 for size() and 1 for "<")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from noxu.cel.cost.function_estimates import (
    EMPTY_UNION,
    EXTENSIONS,
    KUBERNETES,
    NOTHING,
    ONE,
    STANDARD,
    UNKNOWN,
    CostedOperand,
    Estimate,
    Range,
    fixed,
    total,
)
from noxu.cel.cost.runtime import LIST_COST, MAP_COST, MESSAGE_COST, TRAVERSAL
from noxu.cel.syntax.ast import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Expr,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Message,
    Select,
)
from noxu.cel.types.schema_types import DeclType
from noxu.cel.types.types import Type, TypeKind, is_optional
from noxu.releases import NEWEST, OLDEST
from noxu.releases.libraries import ESTIMATED

_LIST: Final = fixed(LIST_COST)
_MAP: Final = fixed(MAP_COST)
_MESSAGE: Final = fixed(MESSAGE_COST)


class _EntrySizes(NamedTuple):
    """The sizes of the elements of a list (`value`), or of the keys and values of a map."""

    is_list: bool
    key: Range
    value: Range

    def union(self, other: _EntrySizes | None) -> _EntrySizes | None:
        if other is None:
            return None
        return _EntrySizes(self.is_list, self.key.union(other.key), self.value.union(other.value))


class _Local(NamedTuple):
    """The path and the sizes of a variable of a comprehension."""

    path: tuple[str, ...]
    size: Range | None
    entries: _EntrySizes | None


def estimate(tree: Expr, root: DeclType | None, release: int = NEWEST) -> Range:
    """The cost of an expression whose variables `self` and `oldSelf` are of type `root` (None: nothing is known).

    `release`: of Kubernetes, as some do not know the costs of all functions (`releases.libraries.ESTIMATED`).
    """
    return _Estimator(root, release).cost(tree)


class _Estimator:
    """Estimates the nodes of one tree, from the leaves up.

    What becomes known of a node is kept for the nodes above it: its path from a variable, its size, and the sizes of the
    elements or entries that it holds. `locals` is a stack for each name, as comprehensions may shadow each other's variables.
    """

    def __init__(self, root: DeclType | None, release: int) -> None:
        self.root = root
        self.release = release
        self.paths: dict[Expr, tuple[str, ...]] = {}
        self.sizes: dict[Expr, Range] = {}
        self.entries: dict[Expr, _EntrySizes] = {}
        self.locals: dict[str, list[_Local]] = {}

    # Sizes

    def declared_size(self, path: tuple[str, ...]) -> Range | None:
        """The size that the schema allows for the value at a path, which begins with the name of a variable.

        ("self", "items", "@items", "name")   →   maxLength of self.items[…].name
        """
        if not path or self.root is None:
            return None
        declared: DeclType | None = self.root
        for name in path[1:]:
            if declared is None:
                return None
            if name in ("@items", "@values"):
                declared = declared.element
            elif name == "@keys":
                declared = _KEY if declared.is_map else None
            else:
                declared = None if declared.fields is None else declared.fields.get(name)
        return None if declared is None else Range(0, declared.max_elements)

    def path(self, node: Expr) -> tuple[str, ...]:
        if isinstance(node, Ident) and self.locals.get(node.name):
            return self.locals[node.name][-1].path
        return self.paths.get(node, ())

    def size(self, node: Expr) -> Range | None:
        cached = self.sizes.get(node)
        if cached is not None:
            return cached
        match node:
            case Literal():
                value = node.value
                return fixed(len(value) if isinstance(value, (str, bytes)) else 1)
            case ListLiteral():
                return fixed(len(node.elements))
            case MapLiteral():
                return fixed(len(node.entries))
        declared = self.declared_size(self.path(node))
        if declared is not None:
            self.sizes[node] = declared
            return declared
        if _is_scalar(node.type):
            return ONE
        if isinstance(node, Ident) and self.locals.get(node.name):
            return self.locals[node.name][-1].size
        return None

    def size_or_unknown(self, node: Expr) -> Range:
        return self.size(node) or UNKNOWN

    def entries_of(self, node: Expr) -> _EntrySizes | None:
        cached = self.entries.get(node)
        if cached is not None:
            return cached
        if isinstance(node, Ident) and self.locals.get(node.name):
            return self.locals[node.name][-1].entries
        return None

    def operand(self, node: Expr) -> CostedOperand:
        path = self.path(node)
        if path and path[0] == ACCUMULATOR:
            path = ()
        return CostedOperand(node, node.type, path, self.size(node))

    def known_size(self, operand: CostedOperand) -> Range:
        """The size of an operand of a Kubernetes function. Unlike `size`, it consults the schema for elements as well."""
        return operand.size or self.declared_size(operand.path) or UNKNOWN

    def element(self, operand: CostedOperand) -> CostedOperand | None:
        """An element of a list (or a key of a map); None if the type is not known."""
        if not operand.type.params:
            return None
        path = (*operand.path, "@items") if operand.path else ()
        return CostedOperand(None, operand.type.params[0], path, None)

    # Costs

    def cost(self, node: Expr) -> Range:
        match node:
            case Literal():
                return NOTHING
            case Ident():
                scopes = self.locals.get(node.name)
                self.paths[node] = scopes[-1].path if scopes else (node.name,)
                return ONE
            case Select():
                return self.selection(node)
            case Call():
                return self.call(node)
            case ListLiteral():
                return self.list_literal(node)
            case MapLiteral():
                return self.map_literal(node)
            case Message():
                return total([self.cost(entry.value) for entry in node.entries]).plus(_MESSAGE)
            case Comprehension() if node.macro == "bind":
                return self.binding(node)
            case Comprehension():
                return self.comprehension(node)
        return NOTHING

    def selection(self, node: Select) -> Range:
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if node.operand.type.kind in (TypeKind.MAP, TypeKind.STRUCT, TypeKind.PARAM):
            cost = cost.plus(ONE)
        self.paths[node] = (*self.path(node.operand), node.field)
        return cost

    def list_literal(self, node: ListLiteral) -> Range:
        cost, item = NOTHING, EMPTY_UNION if node.elements else NOTHING
        for element in node.elements:
            cost = cost.plus(self.cost(element))
            item = item.union(self.size_or_unknown(element))
        self.entries[node] = _EntrySizes(True, ONE, item)
        return cost.plus(_LIST)

    def map_literal(self, node: MapLiteral) -> Range:
        cost = NOTHING
        key = value = EMPTY_UNION if node.entries else NOTHING
        for entry in node.entries:
            cost = cost.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self.size_or_unknown(entry.key))
            value = value.union(self.size_or_unknown(entry.value))
        self.entries[node] = _EntrySizes(False, key, value)
        return cost.plus(_MAP)

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def push_value(self, name: str, node: Expr) -> None:
        path, entries = self.path(node), self.entries_of(node)
        self.push(name, _Local(path, self.size(node), entries))

    def binding(self, node: Comprehension) -> Range:
        cost = self.cost(node.range).plus(self.cost(node.initial))
        self.push_value(node.accumulator, node.initial)
        cost = cost.plus(self.cost(node.result))
        self.locals[node.accumulator].pop()
        self.copy(node, node.result)
        return cost

    def copy(self, to: Expr, node: Expr) -> None:
        size, entries = self.size(node), self.entries_of(node)
        if size is not None:
            self.sizes[to] = size
        if entries is not None:
            self.entries[to] = entries

    def comprehension(self, node: Comprehension) -> Range:
        cost = self.cost(node.range).plus(self.cost(node.initial))
        self.push_value(node.accumulator, node.initial)
        entries = self.entries_of(node.range)
        over_list = entries.is_list if entries else node.range.type.kind is TypeKind.LIST
        path = self.path(node.range)
        keys = _Local((*path, "@indices" if over_list else "@keys"), entries.key if entries else None, None)
        values = _Local((*path, "@items" if over_list else "@values"), entries.value if entries else None, None)
        if node.variable2:
            self.push(node.variable, keys)
            self.push(node.variable2, values)
        else:
            self.push(node.variable, values if over_list else keys)
        step_cost = self.cost(node.condition)
        step_cost = self.cost(node.step).plus(step_cost)
        self.locals[node.variable].pop()
        if node.variable2:
            self.locals[node.variable2].pop()
        cost = cost.plus(self.cost(node.result))
        self.locals[node.accumulator].pop()
        count = self.size_or_unknown(node.range)
        cost = cost.plus(count.by(step_cost))
        if isinstance(node.initial, Literal):
            self.sizes[node] = self.size_or_unknown(node.initial)
        elif isinstance(node.initial, (ListLiteral, MapLiteral)):
            self.sizes[node] = count
            step = self.entries_of(node.step)
            if step is not None:
                self.entries[node] = step
        return cost

    def call(self, node: Call) -> Range:
        if node.function == "dyn":
            cost = self.cost(node.args[0]).plus(ONE)
            self.copy(node, node.args[0])
            return cost
        costs: list[Range] = []
        args: list[CostedOperand] = []
        for arg in node.args:
            costs.append(self.cost(arg))
            args.append(self.operand(arg))
        if not node.overloads:
            return NOTHING
        cost, target = NOTHING, None
        if node.target is not None:
            cost = self.cost(node.target)
            target = self.operand(node.target)
        call_cost, size = EMPTY_UNION, None
        for overload in node.overloads:
            estimated = self.function(node, overload, target, args, costs)
            call_cost = call_cost.union(estimated.cost)
            if estimated.size is not None:
                size = estimated.size if size is None else size.union(estimated.size)
            if overload in ("index_list", "index_map"):
                entries = self.entries_of(node.args[0])
                size = entries.value if entries else None
                step = "@items" if overload == "index_list" else "@values"
                self.paths[node] = (*self.path(node.args[0]), step)
            if size is None:
                size = self.size(node)
        if size is not None:
            self.sizes[node] = size
        return cost.plus(call_cost)

    def function(
        self, node: Call, overload: str, target: CostedOperand | None, args: list[CostedOperand], costs: list[Range]
    ) -> Estimate:
        """The cost of one overload, its arguments included, and the size of its result."""
        estimated: Estimate | None = None
        extension = EXTENSIONS.get(overload)
        if extension is not None:
            estimated = extension(self, target, args)
        if estimated is None:
            kubernetes = KUBERNETES.get(node.function)
            if kubernetes is not None and self.release >= ESTIMATED.get(node.function, OLDEST):
                estimated = kubernetes(self, overload, target, args)
        if estimated is not None:
            return Estimate(estimated.cost.plus(total(costs)), estimated.size)
        special = _SPECIAL.get(overload)
        if special is not None:
            return special(self, node, args, costs)
        standard = STANDARD.get(overload)
        if standard is not None:
            estimated = standard(self, target, args)
        if estimated is None:
            estimated = Estimate(ONE)
        return Estimate(estimated.cost.plus(total(costs)), estimated.size)

    # Functions whose estimate depends on the costs of their arguments, or on the entries of lists and maps

    def logic(self, _: Call, __: list[CostedOperand], costs: list[Range]) -> Estimate:
        return Estimate(Range(costs[0].low, costs[0].plus(costs[1]).high))

    def conditional(self, node: Call, args: list[CostedOperand], costs: list[Range]) -> Estimate:
        yes, no = (arg.size or UNKNOWN for arg in args[1:])
        entries = self.entries_of(node.args[1])
        if entries is not None:
            entries = entries.union(self.entries_of(node.args[2]))
        if entries is not None:
            self.entries[node] = entries
        return Estimate(costs[0].plus(costs[1].union(costs[2])), yes.union(no))

    def addition(self, node: Call, args: list[CostedOperand], costs: list[Range]) -> Estimate:
        size = (args[0].size or UNKNOWN).plus(args[1].size or UNKNOWN)
        entries = self.entries_of(node.args[0])
        if entries is not None:
            entries = entries.union(self.entries_of(node.args[1]))
        if entries is not None:
            self.entries[node] = entries
        return Estimate(size.times(TRAVERSAL).plus(total(costs)), size)

    def list_addition(self, node: Call, args: list[CostedOperand], costs: list[Range]) -> Estimate:
        return Estimate(ONE.plus(total(costs)), self.addition(node, args, costs).size)


def _is_scalar(type_: Type) -> bool:
    if is_optional(type_):
        return _is_scalar(type_.params[0])
    return type_.kind in (
        TypeKind.BOOL,
        TypeKind.DOUBLE,
        TypeKind.DURATION,
        TypeKind.INT,
        TypeKind.TIMESTAMP,
        TypeKind.UINT,
    )


_KEY: Final = DeclType()  # of maps: strings of unknown size
_SpecialEstimate: TypeAlias = Callable[[_Estimator, Call, list[CostedOperand], list[Range]], Estimate]
_SPECIAL: Final[dict[str, _SpecialEstimate]] = {
    "logical_and": _Estimator.logic,
    "logical_or": _Estimator.logic,
    "conditional": _Estimator.conditional,
    "add_string": _Estimator.addition,
    "add_bytes": _Estimator.addition,
    "add_list": _Estimator.list_addition,
}
