"""Estimates of the cost of calls, by function: cel-go's checker/cost.go and extensions, upstream's library/cost.go.

Three tables, looked up in this order: `EXTENSIONS` by overload, `KUBERNETES` by function, `STANDARD` by overload. An entry
returns the cost of the call without that of its arguments, and the size of its result if it is known. It returns None to
pass the call on to the next table.

Costs and sizes are ranges, with arithmetic that saturates at 2^64-1 as upstream's does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final, NamedTuple, Protocol, TypeAlias

from noxu.cel.cost.runtime import LIST_COST, PATTERN, TRAVERSAL
from noxu.cel.syntax.ast import Expr, Literal
from noxu.cel.types.types import Type, TypeKind
from noxu.cel.values.numbers import MAX_UINT64

_TWO_64: Final = 2.0**64


class Range(NamedTuple):
    """A cost or a size: at least `low`, at most `high`."""

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


def _times(value: int, factor: float) -> int:
    """`value` × `factor`, rounded up. Computed in floats, because upstream does."""
    as_float = float(value)
    if as_float > 0 and factor > 0 and as_float > _TWO_64 / factor:
        return MAX_UINT64
    product = ceil(as_float * factor)
    return MAX_UINT64 if product >= _TWO_64 else product


NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)
UNKNOWN: Final = Range(0, MAX_UINT64)
EMPTY_UNION: Final = Range(MAX_UINT64, 0)
"""The union of no ranges."""


def fixed(value: int) -> Range:
    return Range(value, value)


def total(costs: Sequence[Range]) -> Range:
    result = NOTHING
    for cost in costs:
        result = result.plus(cost)
    return result


_MAX_FORMAT: Final = 64  # bytes of a format's name
_MAX_FORMAT_PATTERN: Final = 128
_LIST: Final = fixed(LIST_COST)


class CostedOperand(NamedTuple):
    """A target or an argument of a call.

    `node` is None for an element of a list. `path` leads to the value from a variable, () if it does not come from one.
    `size` is None if nothing is known about it.
    """

    node: Expr | None
    type: Type
    path: tuple[str, ...]
    size: Range | None


class Estimate(NamedTuple):
    cost: Range
    size: Range | None = None


class OperandSizes(Protocol):
    """The questions of Kubernetes' functions about their operands, which `noxu.cel.cost.estimate` answers."""

    def known_size(self, operand: CostedOperand) -> Range:
        """The size of an operand; if it is not known, what the schema says of its path."""

    def element(self, operand: CostedOperand) -> CostedOperand | None:
        """An element of a list, or a key of a map."""


CallEstimate: TypeAlias = Callable[[OperandSizes, CostedOperand | None, list[CostedOperand]], Estimate | None]
"""(sizes, target, arguments)"""
KubernetesEstimate: TypeAlias = Callable[
    [OperandSizes, str, CostedOperand | None, list[CostedOperand]], Estimate | None
]
"""(sizes, overload, target, arguments)"""


# The language's functions


def _size(operand: CostedOperand) -> Range:
    return operand.size or UNKNOWN


def _target_traversed(_: OperandSizes, target: CostedOperand | None, __: list[CostedOperand]) -> Estimate | None:
    return None if target is None else Estimate(_size(target).times(TRAVERSAL))


def _to_bytes(_: OperandSizes, __: CostedOperand | None, args: list[CostedOperand]) -> Estimate:
    size = _size(args[0])
    return Estimate(size.times(TRAVERSAL), Range(size.low, size.high * 4 % 2**64))


def _from_bytes(_: OperandSizes, __: CostedOperand | None, args: list[CostedOperand]) -> Estimate:
    size = _size(args[0])
    return Estimate(size.times(TRAVERSAL), Range(size.low // 4, size.high))


def _quoted(_: OperandSizes, __: CostedOperand | None, args: list[CostedOperand]) -> Estimate:
    size = _size(args[0])
    return Estimate(size.times(TRAVERSAL), Range((size.low + 2) % 2**64, (size.high * 2 + 2) % 2**64))


def _affix(_: OperandSizes, __: CostedOperand | None, args: list[CostedOperand]) -> Estimate:
    return Estimate(_size(args[0]).times(TRAVERSAL))


def _in_list(_: OperandSizes, __: CostedOperand | None, args: list[CostedOperand]) -> Estimate:
    return Estimate(_size(args[1]).times(1))


def _matched(_: OperandSizes, target: CostedOperand | None, args: list[CostedOperand]) -> Estimate:
    text, pattern = (args[0], args[1]) if target is None else (target, args[0])
    return Estimate(_size(text).plus(ONE).times(TRAVERSAL).by(_size(pattern).times(PATTERN)))


def _contained(_: OperandSizes, target: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
    if target is None:
        return None
    return Estimate(_size(target).times(TRAVERSAL).by(_size(args[0]).times(TRAVERSAL)))


def _compared(_: OperandSizes, __: CostedOperand | None, args: list[CostedOperand]) -> Estimate:
    shorter = min(_size(args[0]).high, _size(args[1]).high)
    return Estimate(Range(1 if shorter else 0, shorter).times(TRAVERSAL))


STANDARD: Final[dict[str, CallEstimate]] = {
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


def _allocated(factor: float, size: Range) -> Estimate:
    """A function that makes a list of that size."""
    return Estimate(size.times(factor).plus(ONE).plus(_LIST), size)


def _literal(operand: CostedOperand, default: int) -> int:
    """The value of an argument that is an integer literal (0 if it is negative), else the default."""
    if isinstance(operand.node, Literal) and type(operand.node.value) is int:
        return max(operand.node.value, 0)
    return default


def _slice(sizes: OperandSizes, target: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
    if target is None:
        return None
    end = _literal(args[1], sizes.known_size(target).high)
    return _allocated(1, fixed((end - _literal(args[0], 0)) % 2**64))


def _range(_: OperandSizes, __: CostedOperand | None, args: list[CostedOperand]) -> Estimate:
    return _allocated(1, fixed(_literal(args[0], MAX_UINT64)))


def _reverse(sizes: OperandSizes, target: CostedOperand | None, _: list[CostedOperand]) -> Estimate | None:
    return None if target is None else _allocated(1, sizes.known_size(target))


def _flatten(sizes: OperandSizes, target: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
    if target is None:
        return None
    return _allocated(float(_literal(args[0], MAX_UINT64) if args else 1), sizes.known_size(target))


def _distinct(sizes: OperandSizes, target: CostedOperand | None, _: list[CostedOperand]) -> Estimate | None:
    if target is None:
        return None
    size = sizes.known_size(target)
    return _allocated(2.0, size.by(size))


def _sort(kind: str, *, by_keys: bool) -> CallEstimate:
    factor = 2.0 + (TRAVERSAL if kind in ("string", "bytes") else 0)

    def run(sizes: OperandSizes, target: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
        if target is None:
            return None
        size = sizes.known_size(args[0] if by_keys else target)
        return _allocated(factor, size.by(size))

    return run


def _sets(factor: float) -> CallEstimate:
    def run(sizes: OperandSizes, _: CostedOperand | None, args: list[CostedOperand]) -> Estimate:
        product = sizes.known_size(args[0]).by(sizes.known_size(args[1]))
        return Estimate(product.times(factor).plus(ONE))

    return run


_SORTED: Final = (
    "int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes",
)  # fmt: skip
EXTENSIONS: Final[dict[str, CallEstimate]] = {
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


def _nominal(_: OperandSizes, __: str, ___: CostedOperand | None, ____: list[CostedOperand]) -> Estimate:
    return Estimate(ONE)


def _check(_: OperandSizes, __: str, ___: CostedOperand | None, ____: list[CostedOperand]) -> Estimate:
    return Estimate(fixed(350_000))


def _selector(sizes: OperandSizes, _: str, __: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
    if len(args) != 1:
        return None
    length = sizes.known_size(args[0])
    return Estimate(_LIST.plus(length.times(TRAVERSAL)).plus(length.times(0.5).times(50.0)))


def _whole_list(
    sizes: OperandSizes, overload: str, target: CostedOperand | None, __: list[CostedOperand]
) -> Estimate | None:
    if target is None:
        return None
    element = sizes.element(target)
    if element is None:
        size = sizes.known_size(target)
        if overload == "list_includes_dyn_dyn":
            return Estimate(size)
        return Estimate(size.times(TRAVERSAL))  # indexOf of a string
    element_cost = ONE
    if element.type.kind in (TypeKind.STRING, TypeKind.BYTES):
        element_cost = element_cost.plus(sizes.known_size(element).times(TRAVERSAL))
    return Estimate(sizes.known_size(target).by(element_cost))


def _url(sizes: OperandSizes, _: str, __: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
    if len(args) != 1:
        return None
    size = sizes.known_size(args[0])
    return Estimate(size.times(TRAVERSAL), size)


def _transformed(sizes: OperandSizes, _: str, target: CostedOperand | None, __: list[CostedOperand]) -> Estimate | None:
    if target is None:
        return None
    size = sizes.known_size(target)
    return Estimate(size.times(TRAVERSAL), size)


def _replace(sizes: OperandSizes, _: str, target: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
    if target is None or len(args) < 2:
        return None
    text, old, new = sizes.known_size(target), sizes.known_size(args[0]), sizes.known_size(args[1])
    # At most: an empty text is replaced before, after and between all characters; a text that does not grow keeps the
    # size; else as many texts as fit are replaced. At least: likewise, with the smallest sizes.
    most_replaced, most_kept = 0, 0
    if old.low == 0:
        most_replaced, most_kept = min(text.high + 1, MAX_UINT64), text.high
    elif new.high <= old.low:
        most_kept = text.high
    else:
        most_replaced = min(ceil(float(text.high) / float(old.low)), MAX_UINT64)
    least_replaced, least_kept = 0, 0
    if old.high == 0:
        least_replaced, least_kept = min(text.low + 1, MAX_UINT64), text.low
    elif old.high <= new.low:
        least_kept = text.low
    else:
        least_replaced = ceil(float(text.low) / float(old.high))
    size = Range(least_replaced, most_replaced).by(new).plus(Range(least_kept, most_kept))
    return Estimate(text.times(2 * TRAVERSAL), size)


def _split(sizes: OperandSizes, _: str, target: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
    if target is None:
        return None
    size = sizes.known_size(target)
    most = size.high
    if len(args) > 1 and isinstance(args[1].node, Literal) and type(args[1].node.value) is int:
        most = args[1].node.value % 2**64
    return Estimate(size.times(2 * TRAVERSAL), Range(0, most))


def _join(sizes: OperandSizes, _: str, target: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
    if target is None:
        return None
    items, size = sizes.known_size(target), NOTHING
    element = sizes.element(target)
    if element is not None:
        size = items.by(sizes.known_size(element))
    if args:
        between = Range(max(items.low - 1, 0), max(items.high - 1, 0))
        size = size.plus(sizes.known_size(args[0]).by(between))
    return Estimate(size.times(TRAVERSAL), size)


def _find(sizes: OperandSizes, _: str, target: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
    if target is None or not args:
        return None
    size = sizes.known_size(target)
    price = size.plus(ONE).times(TRAVERSAL).by(sizes.known_size(args[0]).times(PATTERN))
    return Estimate(price, Range(0, size.high))


def _parsed(factor: float = TRAVERSAL) -> KubernetesEstimate:
    def run(sizes: OperandSizes, overload: str, _: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
        if overload == "cidr_ip":
            return Estimate(ONE)
        return Estimate(sizes.known_size(args[0]).times(factor)) if args else None

    return run


_ADDRESS: Final = Range(4, 16)  # bytes of an IP address


def _contains_address(
    sizes: OperandSizes, overload: str, _: CostedOperand | None, args: list[CostedOperand]
) -> Estimate:
    price = _ADDRESS.plus(_ADDRESS).times(TRAVERSAL)
    if overload == "cidr_contains_ip_string":
        price = price.plus(sizes.known_size(args[0]).times(TRAVERSAL))
    return Estimate(price)


def _contains_network(
    sizes: OperandSizes, overload: str, _: CostedOperand | None, args: list[CostedOperand]
) -> Estimate:
    price = _ADDRESS.plus(_ADDRESS).times(TRAVERSAL).plus(_ADDRESS.times(TRAVERSAL)).plus(ONE)
    if overload == "cidr_contains_cidr_string":
        price = price.plus(sizes.known_size(args[0]).times(TRAVERSAL))
    return Estimate(price)


def _validated(sizes: OperandSizes, _: str, __: CostedOperand | None, args: list[CostedOperand]) -> Estimate:
    return Estimate(sizes.known_size(args[0]).times(TRAVERSAL).times(_MAX_FORMAT_PATTERN * PATTERN))


_CHEAP_TO_COMPARE: Final = frozenset({
    "kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR", "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.PathCheck", "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.ResourceCheck", "kubernetes.authorization.Decision",
})  # fmt: skip


def _equal(_: OperandSizes, __: str, ___: CostedOperand | None, args: list[CostedOperand]) -> Estimate | None:
    left, right = args[0].type, args[1].type
    if left.name != right.name or left.kind not in (TypeKind.OPAQUE, TypeKind.STRUCT):
        return None
    if left.name in _CHEAP_TO_COMPARE:
        return Estimate(ONE)
    if left.name == "kubernetes.NamedFormat":
        return Estimate(Range(1, _MAX_FORMAT).times(TRAVERSAL))
    if left.name == "kubernetes.URL":
        size = args[1].size or ONE
        return Estimate(Range(1, size.high).times(TRAVERSAL))
    return None


KUBERNETES: Final[dict[str, KubernetesEstimate]] = {
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
