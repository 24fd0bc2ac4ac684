"""What an expression may cost at worst, estimated from its types (cel-go's checker/cost.go, upstream's library/cost.go).

An estimate is a range. Where sizes come from: literals, the schema (along the path by which a value is reached from
`self`), and the results of functions; what is not known may be of any size. The upper end decides whether a rule is
admitted, so this follows upstream to the digit, saturating at 2^64-1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final, NamedTuple, TypeAlias

from apiserver.cel.ast import (
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
from apiserver.cel.numbers import MAX_UINT64
from apiserver.cel.schema_types import DeclType
from apiserver.cel.spending import LIST_COST, MAP_COST, MESSAGE_COST, PATTERN, TRAVERSAL
from apiserver.cel.types import Kind, Type, is_optional

_TWO_64: Final = 2.0**64
_MAX_FORMAT: Final = 64  # bytes of a format's name
_MAX_FORMAT_PATTERN: Final = 128


def _times(value: int, factor: float) -> int:
    """`value` × `factor`, rounded up, as upstream's floats have it."""
    as_float = float(value)
    if as_float > 0 and factor > 0 and as_float > _TWO_64 / factor:
        return MAX_UINT64
    product = ceil(as_float * factor)
    return MAX_UINT64 if product >= _TWO_64 else product


class Range(NamedTuple):
    """A cost or a size: at least, at most."""

    low: int
    high: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.low + other.low, MAX_UINT64), min(self.high + other.high, MAX_UINT64))

    def by(self, other: Range) -> Range:
        return Range(min(self.low * other.low, MAX_UINT64), min(self.high * other.high, MAX_UINT64))

    def times(self, factor: float) -> Range:
        return Range(_times(self.low, factor), _times(self.high, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))


NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)
UNKNOWN: Final = Range(0, MAX_UINT64)
_NONE_YET: Final = Range(MAX_UINT64, 0)
_LIST: Final = Range(LIST_COST, LIST_COST)
_MAP: Final = Range(MAP_COST, MAP_COST)
_MESSAGE: Final = Range(MESSAGE_COST, MESSAGE_COST)


def fixed(value: int) -> Range:
    return Range(value, value)


class _Entries(NamedTuple):
    """Sizes of what a list or map holds."""

    is_list: bool
    key: Range
    value: Range

    def union(self, other: _Entries | None) -> _Entries | None:
        if other is None:
            return None
        return _Entries(self.is_list, self.key.union(other.key), self.value.union(other.value))


class _Local(NamedTuple):
    """What is known of a variable of a comprehension."""

    path: tuple[str, ...]
    size: Range | None
    entries: _Entries | None


class _Operand(NamedTuple):
    """An argument as functions see it; `size` is None where nothing is known."""

    node: Expr | None
    type: Type
    path: tuple[str, ...]
    size: Range | None


class _Estimate(NamedTuple):
    cost: Range
    size: Range | None = None


def estimate(tree: Expr, root: DeclType | None) -> Range:
    """The cost of an expression whose variables `self` and `oldSelf` are of type `root` (None: nothing is known)."""
    return _Coster(root).cost(tree)


class _Coster:
    def __init__(self, root: DeclType | None) -> None:
        self.root = root
        self.paths: dict[Expr, tuple[str, ...]] = {}
        self.sizes: dict[Expr, Range] = {}
        self.entries: dict[Expr, _Entries] = {}
        self.locals: dict[str, list[_Local]] = {}

    # Sizes

    def declared_size(self, path: tuple[str, ...]) -> Range | None:
        """What the schema says of the value at a path (which starts with the name of the variable)."""
        if not path or self.root is None:
            return None
        one: DeclType | None = self.root
        for name in path[1:]:
            if one is None:
                return None
            if name in ("@items", "@values"):
                one = one.element
            elif name == "@keys":
                one = _KEY if one.is_map else None
            else:
                one = None if one.fields is None else one.fields.get(name)
        return None if one is None else Range(0, one.max_elements)

    def path(self, node: Expr) -> tuple[str, ...]:
        if isinstance(node, Ident) and self.locals.get(node.name):
            return self.locals[node.name][-1].path
        return self.paths.get(node, ())

    def size(self, node: Expr) -> Range | None:
        known = self.sizes.get(node)
        if known is not None:
            return known
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

    def entries_of(self, node: Expr) -> _Entries | None:
        known = self.entries.get(node)
        if known is not None:
            return known
        if isinstance(node, Ident) and self.locals.get(node.name):
            return self.locals[node.name][-1].entries
        return None

    def operand(self, node: Expr) -> _Operand:
        path = self.path(node)
        if path and path[0] == ACCUMULATOR:
            path = ()
        return _Operand(node, node.type, path, self.size(node))

    def known_size(self, operand: _Operand) -> Range:
        """As Kubernetes' functions ask for it: the schema is asked once more."""
        return operand.size or self.declared_size(operand.path) or UNKNOWN

    def element(self, operand: _Operand) -> _Operand | None:
        """An element of a list (or a key of a map), whatever is known of it."""
        if not operand.type.params:
            return None
        path = (*operand.path, "@items") if operand.path else ()
        return _Operand(None, operand.type.params[0], path, None)

    # Costs

    def cost(self, node: Expr) -> Range:
        match node:
            case Literal():
                return NOTHING
            case Ident():
                known = self.locals.get(node.name)
                self.paths[node] = known[-1].path if known else (node.name,)
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
                return _sum([self.cost(entry.value) for entry in node.entries]).plus(_MESSAGE)
            case Comprehension() if node.macro == "bind":
                return self.binding(node)
            case Comprehension():
                return self.comprehension(node)
        return NOTHING

    def selection(self, node: Select) -> Range:
        total = self.cost(node.operand)
        if node.test:
            return total
        if node.operand.type.kind in (Kind.MAP, Kind.STRUCT, Kind.PARAM):
            total = total.plus(ONE)
        self.paths[node] = (*self.path(node.operand), node.field)
        return total

    def list_literal(self, node: ListLiteral) -> Range:
        total, item = NOTHING, _NONE_YET if node.elements else NOTHING
        for one in node.elements:
            total = total.plus(self.cost(one))
            item = item.union(self.size_or_unknown(one))
        self.entries[node] = _Entries(True, ONE, item)
        return total.plus(_LIST)

    def map_literal(self, node: MapLiteral) -> Range:
        total = NOTHING
        key = value = _NONE_YET if node.entries else NOTHING
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self.size_or_unknown(entry.key))
            value = value.union(self.size_or_unknown(entry.value))
        self.entries[node] = _Entries(False, key, value)
        return total.plus(_MAP)

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def push_value(self, name: str, node: Expr) -> None:
        path, entries = self.path(node), self.entries_of(node)
        self.push(name, _Local(path, self.size(node), entries))

    def binding(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self.push_value(node.accumulator, node.initial)
        total = total.plus(self.cost(node.result))
        self.locals[node.accumulator].pop()
        self.copy(node, node.result)
        return total

    def copy(self, to: Expr, node: Expr) -> None:
        size, entries = self.size(node), self.entries_of(node)
        if size is not None:
            self.sizes[to] = size
        if entries is not None:
            self.entries[to] = entries

    def comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.range).plus(self.cost(node.initial))
        self.push_value(node.accumulator, node.initial)
        entries = self.entries_of(node.range)
        over_list = entries.is_list if entries else node.range.type.kind is Kind.LIST
        path = self.path(node.range)
        keys = _Local((*path, "@indices" if over_list else "@keys"), entries.key if entries else None, None)
        values = _Local((*path, "@items" if over_list else "@values"), entries.value if entries else None, None)
        if node.variable2:
            self.push(node.variable, keys)
            self.push(node.variable2, values)
        else:
            self.push(node.variable, values if over_list else keys)
        each = self.cost(node.condition)
        each = self.cost(node.step).plus(each)
        self.locals[node.variable].pop()
        if node.variable2:
            self.locals[node.variable2].pop()
        total = total.plus(self.cost(node.result))
        self.locals[node.accumulator].pop()
        count = self.size_or_unknown(node.range)
        total = total.plus(count.by(each))
        if isinstance(node.initial, Literal):
            self.sizes[node] = self.size_or_unknown(node.initial)
        elif isinstance(node.initial, (ListLiteral, MapLiteral)):
            self.sizes[node] = count
            step = self.entries_of(node.step)
            if step is not None:
                self.entries[node] = step
        return total

    def call(self, node: Call) -> Range:
        if node.function == "dyn":
            total = self.cost(node.args[0]).plus(ONE)
            self.copy(node, node.args[0])
            return total
        costs: list[Range] = []
        args: list[_Operand] = []
        for arg in node.args:
            costs.append(self.cost(arg))
            args.append(self.operand(arg))
        if not node.overloads:
            return NOTHING
        total, target = NOTHING, None
        if node.target is not None:
            total = self.cost(node.target)
            target = self.operand(node.target)
        price, size = _NONE_YET, None
        for overload in node.overloads:
            one = self.function(node, overload, target, args, costs)
            price = price.union(one.cost)
            if one.size is not None:
                size = one.size if size is None else size.union(one.size)
            if overload in ("index_list", "index_map"):
                held = self.entries_of(node.args[0])
                size = held.value if held else None
                place = "@items" if overload == "index_list" else "@values"
                self.paths[node] = (*self.path(node.args[0]), place)
            if size is None:
                size = self.size(node)
        if size is not None:
            self.sizes[node] = size
        return total.plus(price)

    def function(
        self, node: Call, overload: str, target: _Operand | None, args: list[_Operand], costs: list[Range]
    ) -> _Estimate:
        """What one overload costs, its arguments included."""
        found: _Estimate | None = None
        extension = _EXTENSIONS.get(overload)
        if extension is not None:
            found = extension(self, target, args)
        if found is None:
            kubernetes = _KUBERNETES.get(node.function)
            if kubernetes is not None:
                found = kubernetes(self, overload, target, args)
        if found is not None:
            return _Estimate(found.cost.plus(_sum(costs)), found.size)
        special = _SPECIAL.get(overload)
        if special is not None:
            return special(self, node, args, costs)
        standard = _STANDARD.get(overload)
        if standard is not None:
            found = standard(self, target, args)
        if found is None:
            found = _Estimate(ONE)
        return _Estimate(found.cost.plus(_sum(costs)), found.size)

    # Functions that look at the costs of their arguments, or at what these hold

    def logic(self, _: Call, __: list[_Operand], costs: list[Range]) -> _Estimate:
        return _Estimate(Range(costs[0].low, costs[0].plus(costs[1]).high))

    def conditional(self, node: Call, args: list[_Operand], costs: list[Range]) -> _Estimate:
        yes, no = (one.size or UNKNOWN for one in args[1:])
        held = self.entries_of(node.args[1])
        if held is not None:
            held = held.union(self.entries_of(node.args[2]))
        if held is not None:
            self.entries[node] = held
        return _Estimate(costs[0].plus(costs[1].union(costs[2])), yes.union(no))

    def addition(self, node: Call, args: list[_Operand], costs: list[Range]) -> _Estimate:
        size = (args[0].size or UNKNOWN).plus(args[1].size or UNKNOWN)
        held = self.entries_of(node.args[0])
        if held is not None:
            held = held.union(self.entries_of(node.args[1]))
        if held is not None:
            self.entries[node] = held
        return _Estimate(size.times(TRAVERSAL).plus(_sum(costs)), size)

    def list_addition(self, node: Call, args: list[_Operand], costs: list[Range]) -> _Estimate:
        return _Estimate(ONE.plus(_sum(costs)), self.addition(node, args, costs).size)


def _sum(costs: Sequence[Range]) -> Range:
    total = NOTHING
    for one in costs:
        total = total.plus(one)
    return total


def _is_scalar(one: Type) -> bool:
    if is_optional(one):
        return _is_scalar(one.params[0])
    return one.kind in (Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT)


_KEY: Final = DeclType()  # of maps: strings of which nothing is known
_Special: TypeAlias = Callable[[_Coster, Call, list[_Operand], list[Range]], _Estimate]
_Standard: TypeAlias = Callable[[_Coster, _Operand | None, list[_Operand]], _Estimate | None]
_Kubernetes: TypeAlias = Callable[[_Coster, str, _Operand | None, list[_Operand]], _Estimate | None]

_SPECIAL: Final[dict[str, _Special]] = {
    "logical_and": _Coster.logic,
    "logical_or": _Coster.logic,
    "conditional": _Coster.conditional,
    "add_string": _Coster.addition,
    "add_bytes": _Coster.addition,
    "add_list": _Coster.list_addition,
}


# The language's own functions


def _size(operand: _Operand) -> Range:
    return operand.size or UNKNOWN


def _target_traversed(_: _Coster, target: _Operand | None, __: list[_Operand]) -> _Estimate | None:
    return None if target is None else _Estimate(_size(target).times(TRAVERSAL))


def _to_bytes(_: _Coster, __: _Operand | None, args: list[_Operand]) -> _Estimate:
    size = _size(args[0])
    return _Estimate(size.times(TRAVERSAL), Range(size.low, size.high * 4 % 2**64))


def _from_bytes(_: _Coster, __: _Operand | None, args: list[_Operand]) -> _Estimate:
    size = _size(args[0])
    return _Estimate(size.times(TRAVERSAL), Range(size.low // 4, size.high))


def _quoted(_: _Coster, __: _Operand | None, args: list[_Operand]) -> _Estimate:
    size = _size(args[0])
    return _Estimate(size.times(TRAVERSAL), Range((size.low + 2) % 2**64, (size.high * 2 + 2) % 2**64))


def _affix(_: _Coster, __: _Operand | None, args: list[_Operand]) -> _Estimate:
    return _Estimate(_size(args[0]).times(TRAVERSAL))


def _in_list(_: _Coster, __: _Operand | None, args: list[_Operand]) -> _Estimate:
    return _Estimate(_size(args[1]).times(1))


def _matched(_: _Coster, target: _Operand | None, args: list[_Operand]) -> _Estimate:
    text, pattern = (args[0], args[1]) if target is None else (target, args[0])
    return _Estimate(_size(text).plus(ONE).times(TRAVERSAL).by(_size(pattern).times(PATTERN)))


def _contained(_: _Coster, target: _Operand | None, args: list[_Operand]) -> _Estimate | None:
    if target is None:
        return None
    return _Estimate(_size(target).times(TRAVERSAL).by(_size(args[0]).times(TRAVERSAL)))


def _compared(_: _Coster, __: _Operand | None, args: list[_Operand]) -> _Estimate:
    most = min(_size(args[0]).high, _size(args[1]).high)
    return _Estimate(Range(1 if most else 0, most).times(TRAVERSAL))


_STANDARD: Final[dict[str, _Standard]] = {
    "string_format": _target_traversed,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _from_bytes,
    "strings_quote": _quoted,
    "starts_with_string": _affix,
    "ends_with_string": _affix,
    "in_list": _in_list,
    "matches": _matched,
    "matches_string": _matched,
    "contains_string": _contained,
    **{
        f"{order}_{kind}": _compared
        for order in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    "equals": _compared,
    "not_equals": _compared,
}


# cel-go's extensions


def _allocated(factor: float, size: Range) -> _Estimate:
    return _Estimate(size.times(factor).plus(ONE).plus(_LIST), size)


def _literal(operand: _Operand, default: int) -> int:
    if isinstance(operand.node, Literal) and type(operand.node.value) is int:
        return max(operand.node.value, 0)
    return default


def _slice(coster: _Coster, target: _Operand | None, args: list[_Operand]) -> _Estimate | None:
    if target is None:
        return None
    end = _literal(args[1], coster.known_size(target).high)
    return _allocated(1, fixed((end - _literal(args[0], 0)) % 2**64))


def _range(_: _Coster, __: _Operand | None, args: list[_Operand]) -> _Estimate:
    return _allocated(1, fixed(_literal(args[0], MAX_UINT64)))


def _reverse(coster: _Coster, target: _Operand | None, _: list[_Operand]) -> _Estimate | None:
    return None if target is None else _allocated(1, coster.known_size(target))


def _flatten(coster: _Coster, target: _Operand | None, args: list[_Operand]) -> _Estimate | None:
    if target is None:
        return None
    return _allocated(float(_literal(args[0], MAX_UINT64) if args else 1), coster.known_size(target))


def _distinct(coster: _Coster, target: _Operand | None, _: list[_Operand]) -> _Estimate | None:
    if target is None:
        return None
    size = coster.known_size(target)
    return _allocated(2.0, size.by(size))


def _sort(kind: str, *, by_keys: bool) -> _Standard:
    factor = 2.0 + (TRAVERSAL if kind in ("string", "bytes") else 0)

    def run(coster: _Coster, target: _Operand | None, args: list[_Operand]) -> _Estimate | None:
        if target is None:
            return None
        size = coster.known_size(args[0] if by_keys else target)
        return _allocated(factor, size.by(size))

    return run


def _sets(factor: float) -> _Standard:
    def run(coster: _Coster, _: _Operand | None, args: list[_Operand]) -> _Estimate:
        product = coster.known_size(args[0]).by(coster.known_size(args[1]))
        return _Estimate(product.times(factor).plus(ONE))

    return run


_SORTED: Final = (
    "int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes",
)  # fmt: skip
_EXTENSIONS: Final[dict[str, _Standard]] = {
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _distinct,
    **{f"list_{kind}_sort": _sort(kind, by_keys=False) for kind in _SORTED},
    **{f"list_{kind}_sortByAssociatedKeys": _sort(kind, by_keys=True) for kind in _SORTED},
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}


# Kubernetes' functions


def _nominal(_: _Coster, __: str, ___: _Operand | None, ____: list[_Operand]) -> _Estimate:
    return _Estimate(ONE)


def _check(_: _Coster, __: str, ___: _Operand | None, ____: list[_Operand]) -> _Estimate:
    return _Estimate(fixed(350_000))


def _selector(coster: _Coster, _: str, __: _Operand | None, args: list[_Operand]) -> _Estimate | None:
    if len(args) != 1:
        return None
    length = coster.known_size(args[0])
    return _Estimate(_LIST.plus(length.times(TRAVERSAL)).plus(length.times(0.5).times(50.0)))


def _whole_list(coster: _Coster, overload: str, target: _Operand | None, __: list[_Operand]) -> _Estimate | None:
    if target is None:
        return None
    element = coster.element(target)
    if element is None:
        size = coster.known_size(target)
        if overload == "list_includes_dyn_dyn":
            return _Estimate(size)
        return _Estimate(size.times(TRAVERSAL))  # a string has indexOf too
    each = ONE
    if element.type.kind in (Kind.STRING, Kind.BYTES):
        each = each.plus(coster.known_size(element).times(TRAVERSAL))
    return _Estimate(coster.known_size(target).by(each))


def _url(coster: _Coster, _: str, __: _Operand | None, args: list[_Operand]) -> _Estimate | None:
    if len(args) != 1:
        return None
    size = coster.known_size(args[0])
    return _Estimate(size.times(TRAVERSAL), size)


def _transformed(coster: _Coster, _: str, target: _Operand | None, __: list[_Operand]) -> _Estimate | None:
    if target is None:
        return None
    size = coster.known_size(target)
    return _Estimate(size.times(TRAVERSAL), size)


def _replace(coster: _Coster, _: str, target: _Operand | None, args: list[_Operand]) -> _Estimate | None:
    if target is None or len(args) < 2:
        return None
    text, old, new = coster.known_size(target), coster.known_size(args[0]), coster.known_size(args[1])
    most, kept_most = 0, 0
    if old.low == 0:
        most, kept_most = min(text.high + 1, MAX_UINT64), text.high
    elif new.high <= old.low:
        kept_most = text.high
    else:
        most = min(ceil(float(text.high) / float(old.low)), MAX_UINT64)
    least, kept_least = 0, 0
    if old.high == 0:
        least, kept_least = min(text.low + 1, MAX_UINT64), text.low
    elif old.high <= new.low:
        kept_least = text.low
    else:
        least = ceil(float(text.low) / float(old.high))
    size = Range(least, most).by(new).plus(Range(kept_least, kept_most))
    return _Estimate(text.times(2 * TRAVERSAL), size)


def _split(coster: _Coster, _: str, target: _Operand | None, args: list[_Operand]) -> _Estimate | None:
    if target is None:
        return None
    size = coster.known_size(target)
    most = size.high
    if len(args) > 1 and isinstance(args[1].node, Literal) and type(args[1].node.value) is int:
        most = args[1].node.value % 2**64
    return _Estimate(size.times(2 * TRAVERSAL), Range(0, most))


def _join(coster: _Coster, _: str, target: _Operand | None, args: list[_Operand]) -> _Estimate | None:
    if target is None:
        return None
    items, size = coster.known_size(target), NOTHING
    element = coster.element(target)
    if element is not None:
        size = items.by(coster.known_size(element))
    if args:
        between = Range(max(items.low - 1, 0), max(items.high - 1, 0))
        size = size.plus(coster.known_size(args[0]).by(between))
    return _Estimate(size.times(TRAVERSAL), size)


def _find(coster: _Coster, _: str, target: _Operand | None, args: list[_Operand]) -> _Estimate | None:
    if target is None or not args:
        return None
    size = coster.known_size(target)
    price = size.plus(ONE).times(TRAVERSAL).by(coster.known_size(args[0]).times(PATTERN))
    return _Estimate(price, Range(0, size.high))


def _parsed(factor: float = TRAVERSAL) -> _Kubernetes:
    def run(coster: _Coster, overload: str, _: _Operand | None, args: list[_Operand]) -> _Estimate | None:
        if overload == "cidr_ip":
            return _Estimate(ONE)
        return _Estimate(coster.known_size(args[0]).times(factor)) if args else None

    return run


_ADDRESS: Final = Range(4, 16)  # bytes


def _contains_address(coster: _Coster, overload: str, _: _Operand | None, args: list[_Operand]) -> _Estimate:
    price = _ADDRESS.plus(_ADDRESS).times(TRAVERSAL)
    if overload == "cidr_contains_ip_string":
        price = price.plus(coster.known_size(args[0]).times(TRAVERSAL))
    return _Estimate(price)


def _contains_network(coster: _Coster, overload: str, _: _Operand | None, args: list[_Operand]) -> _Estimate:
    price = _ADDRESS.plus(_ADDRESS).times(TRAVERSAL).plus(_ADDRESS.times(TRAVERSAL)).plus(ONE)
    if overload == "cidr_contains_cidr_string":
        price = price.plus(coster.known_size(args[0]).times(TRAVERSAL))
    return _Estimate(price)


def _validated(coster: _Coster, _: str, __: _Operand | None, args: list[_Operand]) -> _Estimate:
    return _Estimate(coster.known_size(args[0]).times(TRAVERSAL).times(_MAX_FORMAT_PATTERN * PATTERN))


_CHEAP_TO_COMPARE: Final = frozenset({
    "kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR", "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.PathCheck", "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.ResourceCheck", "kubernetes.authorization.Decision",
})  # fmt: skip


def _equal(_: _Coster, __: str, ___: _Operand | None, args: list[_Operand]) -> _Estimate | None:
    left, right = args[0].type, args[1].type
    if left.name != right.name or left.kind not in (Kind.OPAQUE, Kind.STRUCT):
        return None
    if left.name in _CHEAP_TO_COMPARE:
        return _Estimate(ONE)
    if left.name == "kubernetes.NamedFormat":
        return _Estimate(Range(1, _MAX_FORMAT).times(TRAVERSAL))
    if left.name == "kubernetes.URL":
        size = args[1].size or ONE
        return _Estimate(Range(1, size.high).times(TRAVERSAL))
    return None


_KUBERNETES: Final[dict[str, _Kubernetes]] = {
    "check": _check,
    **dict.fromkeys(
        ("serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason", "error",
         "errored", "masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast",
         "isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger",
         "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch",
         "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
        _nominal,
    ),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _whole_list),
    "url": _url,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _transformed),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _parsed()),
    "ip.isCanonical": _parsed(2 * TRAVERSAL),
    "containsIP": _contains_address,
    "containsCIDR": _contains_network,
    "validate": _validated,
    "_==_": _equal,
}  # fmt: skip
