"""Estimates of the cost of calls, by function: cel-go's checker/cost.go and extensions, upstream's library/cost.go.

Three tables, looked up in this order: `EXTENSIONS` by overload, `KUBERNETES` by function, `STANDARD` by overload. An entry
returns the cost of the call without that of its arguments, and the size of its result if it is known. It returns None to
pass the call on to the next table.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final, NamedTuple, Protocol, TypeAlias

from noxu.cel.cost.ranges import NOTHING, ONE, UNKNOWN, Range, fixed
from noxu.cel.cost.runtime import LIST_COST, PATTERN, TRAVERSAL
from noxu.cel.syntax.ast import Expr, Literal
from noxu.cel.types.types import Kind, Type
from noxu.cel.values.numbers import MAX_UINT64

_MAX_FORMAT: Final = 64  # bytes of a format's name
_MAX_FORMAT_PATTERN: Final = 128
_LIST: Final = fixed(LIST_COST)


class Operand(NamedTuple):
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


class Sizes(Protocol):
    """What the estimates of Kubernetes' functions ask about operands: `noxu.cel.cost.estimate` answers."""

    def known_size(self, operand: Operand) -> Range:
        """The size of an operand; if it is not known, what the schema says of its path."""

    def element(self, operand: Operand) -> Operand | None:
        """An element of a list, or a key of a map."""


CallEstimate: TypeAlias = Callable[[Sizes, Operand | None, list[Operand]], Estimate | None]
"""(sizes, target, arguments)"""
KubernetesEstimate: TypeAlias = Callable[[Sizes, str, Operand | None, list[Operand]], Estimate | None]
"""(sizes, overload, target, arguments)"""


# The language's functions


def _size(operand: Operand) -> Range:
    return operand.size or UNKNOWN


def _target_traversed(_: Sizes, target: Operand | None, __: list[Operand]) -> Estimate | None:
    return None if target is None else Estimate(_size(target).times(TRAVERSAL))


def _to_bytes(_: Sizes, __: Operand | None, args: list[Operand]) -> Estimate:
    size = _size(args[0])
    return Estimate(size.times(TRAVERSAL), Range(size.low, size.high * 4 % 2**64))


def _from_bytes(_: Sizes, __: Operand | None, args: list[Operand]) -> Estimate:
    size = _size(args[0])
    return Estimate(size.times(TRAVERSAL), Range(size.low // 4, size.high))


def _quoted(_: Sizes, __: Operand | None, args: list[Operand]) -> Estimate:
    size = _size(args[0])
    return Estimate(size.times(TRAVERSAL), Range((size.low + 2) % 2**64, (size.high * 2 + 2) % 2**64))


def _affix(_: Sizes, __: Operand | None, args: list[Operand]) -> Estimate:
    return Estimate(_size(args[0]).times(TRAVERSAL))


def _in_list(_: Sizes, __: Operand | None, args: list[Operand]) -> Estimate:
    return Estimate(_size(args[1]).times(1))


def _matched(_: Sizes, target: Operand | None, args: list[Operand]) -> Estimate:
    text, pattern = (args[0], args[1]) if target is None else (target, args[0])
    return Estimate(_size(text).plus(ONE).times(TRAVERSAL).by(_size(pattern).times(PATTERN)))


def _contained(_: Sizes, target: Operand | None, args: list[Operand]) -> Estimate | None:
    if target is None:
        return None
    return Estimate(_size(target).times(TRAVERSAL).by(_size(args[0]).times(TRAVERSAL)))


def _compared(_: Sizes, __: Operand | None, args: list[Operand]) -> Estimate:
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


def _literal(operand: Operand, default: int) -> int:
    """The value of an argument that is an integer literal (0 if it is negative), else the default."""
    if isinstance(operand.node, Literal) and type(operand.node.value) is int:
        return max(operand.node.value, 0)
    return default


def _slice(sizes: Sizes, target: Operand | None, args: list[Operand]) -> Estimate | None:
    if target is None:
        return None
    end = _literal(args[1], sizes.known_size(target).high)
    return _allocated(1, fixed((end - _literal(args[0], 0)) % 2**64))


def _range(_: Sizes, __: Operand | None, args: list[Operand]) -> Estimate:
    return _allocated(1, fixed(_literal(args[0], MAX_UINT64)))


def _reverse(sizes: Sizes, target: Operand | None, _: list[Operand]) -> Estimate | None:
    return None if target is None else _allocated(1, sizes.known_size(target))


def _flatten(sizes: Sizes, target: Operand | None, args: list[Operand]) -> Estimate | None:
    if target is None:
        return None
    return _allocated(float(_literal(args[0], MAX_UINT64) if args else 1), sizes.known_size(target))


def _distinct(sizes: Sizes, target: Operand | None, _: list[Operand]) -> Estimate | None:
    if target is None:
        return None
    size = sizes.known_size(target)
    return _allocated(2.0, size.by(size))


def _sort(kind: str, *, by_keys: bool) -> CallEstimate:
    factor = 2.0 + (TRAVERSAL if kind in ("string", "bytes") else 0)

    def run(sizes: Sizes, target: Operand | None, args: list[Operand]) -> Estimate | None:
        if target is None:
            return None
        size = sizes.known_size(args[0] if by_keys else target)
        return _allocated(factor, size.by(size))

    return run


def _sets(factor: float) -> CallEstimate:
    def run(sizes: Sizes, _: Operand | None, args: list[Operand]) -> Estimate:
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


def _nominal(_: Sizes, __: str, ___: Operand | None, ____: list[Operand]) -> Estimate:
    return Estimate(ONE)


def _check(_: Sizes, __: str, ___: Operand | None, ____: list[Operand]) -> Estimate:
    return Estimate(fixed(350_000))


def _selector(sizes: Sizes, _: str, __: Operand | None, args: list[Operand]) -> Estimate | None:
    if len(args) != 1:
        return None
    length = sizes.known_size(args[0])
    return Estimate(_LIST.plus(length.times(TRAVERSAL)).plus(length.times(0.5).times(50.0)))


def _whole_list(sizes: Sizes, overload: str, target: Operand | None, __: list[Operand]) -> Estimate | None:
    if target is None:
        return None
    element = sizes.element(target)
    if element is None:
        size = sizes.known_size(target)
        if overload == "list_includes_dyn_dyn":
            return Estimate(size)
        return Estimate(size.times(TRAVERSAL))  # indexOf of a string
    each = ONE
    if element.type.kind in (Kind.STRING, Kind.BYTES):
        each = each.plus(sizes.known_size(element).times(TRAVERSAL))
    return Estimate(sizes.known_size(target).by(each))


def _url(sizes: Sizes, _: str, __: Operand | None, args: list[Operand]) -> Estimate | None:
    if len(args) != 1:
        return None
    size = sizes.known_size(args[0])
    return Estimate(size.times(TRAVERSAL), size)


def _transformed(sizes: Sizes, _: str, target: Operand | None, __: list[Operand]) -> Estimate | None:
    if target is None:
        return None
    size = sizes.known_size(target)
    return Estimate(size.times(TRAVERSAL), size)


def _replace(sizes: Sizes, _: str, target: Operand | None, args: list[Operand]) -> Estimate | None:
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


def _split(sizes: Sizes, _: str, target: Operand | None, args: list[Operand]) -> Estimate | None:
    if target is None:
        return None
    size = sizes.known_size(target)
    most = size.high
    if len(args) > 1 and isinstance(args[1].node, Literal) and type(args[1].node.value) is int:
        most = args[1].node.value % 2**64
    return Estimate(size.times(2 * TRAVERSAL), Range(0, most))


def _join(sizes: Sizes, _: str, target: Operand | None, args: list[Operand]) -> Estimate | None:
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


def _find(sizes: Sizes, _: str, target: Operand | None, args: list[Operand]) -> Estimate | None:
    if target is None or not args:
        return None
    size = sizes.known_size(target)
    price = size.plus(ONE).times(TRAVERSAL).by(sizes.known_size(args[0]).times(PATTERN))
    return Estimate(price, Range(0, size.high))


def _parsed(factor: float = TRAVERSAL) -> KubernetesEstimate:
    def run(sizes: Sizes, overload: str, _: Operand | None, args: list[Operand]) -> Estimate | None:
        if overload == "cidr_ip":
            return Estimate(ONE)
        return Estimate(sizes.known_size(args[0]).times(factor)) if args else None

    return run


_ADDRESS: Final = Range(4, 16)  # bytes of an IP address


def _contains_address(sizes: Sizes, overload: str, _: Operand | None, args: list[Operand]) -> Estimate:
    price = _ADDRESS.plus(_ADDRESS).times(TRAVERSAL)
    if overload == "cidr_contains_ip_string":
        price = price.plus(sizes.known_size(args[0]).times(TRAVERSAL))
    return Estimate(price)


def _contains_network(sizes: Sizes, overload: str, _: Operand | None, args: list[Operand]) -> Estimate:
    price = _ADDRESS.plus(_ADDRESS).times(TRAVERSAL).plus(_ADDRESS.times(TRAVERSAL)).plus(ONE)
    if overload == "cidr_contains_cidr_string":
        price = price.plus(sizes.known_size(args[0]).times(TRAVERSAL))
    return Estimate(price)


def _validated(sizes: Sizes, _: str, __: Operand | None, args: list[Operand]) -> Estimate:
    return Estimate(sizes.known_size(args[0]).times(TRAVERSAL).times(_MAX_FORMAT_PATTERN * PATTERN))


_CHEAP_TO_COMPARE: Final = frozenset({
    "kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR", "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.PathCheck", "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.ResourceCheck", "kubernetes.authorization.Decision",
})  # fmt: skip


def _equal(_: Sizes, __: str, ___: Operand | None, args: list[Operand]) -> Estimate | None:
    left, right = args[0].type, args[1].type
    if left.name != right.name or left.kind not in (Kind.OPAQUE, Kind.STRUCT):
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
