"""The cost of an evaluation (cel-go's interpreter/runtimecost.go, upstream's library/cost.go, the extensions' trackers).

An identifier or a selection costs 1, a list 10, a map 30, a message 40. A call costs what the tables of this module say, or
1. The sizes in the formulas are those of the values: code points, bytes or elements.

    'hello world'.contains(self.a)   with self.a of 12 characters
    →   contains: ⌈11 × 0.1⌉ × ⌈12 × 0.1⌉ = 4, and 2 for self.a
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final, TypeAlias

from noxu.cel.errors import Cancelled, CelError
from noxu.cel.library.strings import NamedFormat
from noxu.cel.memory import COMPARED, allocate
from noxu.cel.types.types import BYTES, STRING
from noxu.cel.values.conversions import go_type
from noxu.cel.values.numbers import MAX_UINT64, Uint
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import LISTS, MAPS, Opaque, Value, size, type_of
from noxu.releases import NEWEST, OLDEST
from noxu.releases.libraries import EVALUATED

PER_CALL_LIMIT: Final = 1_000_000
LIST_COST: Final = 10
MAP_COST: Final = 30
MESSAGE_COST: Final = 40
TRAVERSAL: Final = 0.1  # per code point or byte
PATTERN: Final = 0.25  # per character of a pattern

CallCost: TypeAlias = Callable[[Sequence[Value], Value], int]
"""The cost of a call, given its arguments and its result. Each of them may be a CelError."""


def traversal(length: int) -> int:
    """The cost of reading text of that length once."""
    return ceil(length * TRAVERSAL)


def nominal(_: Sequence[Value], __: Value) -> int:
    return 1


def _traversed(position: int, factor: int = 1) -> CallCost:
    return lambda args, _: ceil(size(args[position]) * factor * TRAVERSAL)


def _joined(_: Sequence[Value], result: Value) -> int:
    return ceil(size(result) * 2 * TRAVERSAL)


def search(text: int, pattern: int) -> int:
    """The cost of searching text of that length for a pattern of that length."""
    return ceil((1.0 + text) * TRAVERSAL) * ceil(pattern * PATTERN)


def _search(args: Sequence[Value], _: Value) -> int:
    return search(size(args[0]), size(args[1]))


def _contains(args: Sequence[Value], _: Value) -> int:
    return traversal(size(args[0])) * traversal(size(args[1]))


def _compared(args: Sequence[Value], _: Value) -> int:
    return traversal(min(size(args[0]), size(args[1])))


def _equal(args: Sequence[Value], _: Value) -> int:
    return 1 if isinstance(args[0], Opaque) else traversal(min(size(args[0]), size(args[1])))


def _added(args: Sequence[Value], _: Value) -> int:
    return traversal(size(args[0]) + size(args[1]))


def _in_list(args: Sequence[Value], _: Value) -> int:
    return size(args[1])


def _all_elements(args: Sequence[Value], _: Value) -> int:
    """A tenth of every text in a value, rounded down, and 1 for every other scalar."""
    total = 0
    todo = [args[0]]
    while todo and total <= PER_CALL_LIMIT:
        value = todo.pop()
        if isinstance(value, str):
            total += int(_utf8_length(value) * TRAVERSAL)
        elif isinstance(value, bytes):
            total += int(len(value) * TRAVERSAL)
        elif isinstance(value, LISTS):
            allocate(COMPARED * (len(value) + 1))
            todo.extend(value)
        elif isinstance(value, MAPS):
            allocate(COMPARED * 2 * (len(value) + 1))
            for key in value:
                todo += key, value.find(key)
        else:
            total += 1
    return total


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _contains_address(args: Sequence[Value], _: Value) -> int:
    return ceil(size(args[0]) * 2 * TRAVERSAL)


def _contains_address_text(args: Sequence[Value], result: Value) -> int:
    return _contains_address(args, result) + traversal(size(args[1]))


def _contains_network(args: Sequence[Value], _: Value) -> int:
    return ceil(size(args[0]) * 2 * TRAVERSAL) + traversal(size(args[0])) + 1


def _contains_network_text(args: Sequence[Value], result: Value) -> int:
    return _contains_network(args, result) + traversal(size(args[1]))


def _validated(args: Sequence[Value], _: Value) -> int:
    if not isinstance(args[0], NamedFormat):
        return 1
    return search(size(args[1]), args[0].pattern_size)


def _selector(args: Sequence[Value], _: Value) -> int:
    length = size(args[1])
    return LIST_COST + traversal(length) + ceil(ceil(length * 0.5) * 50.0)


def _allocated(factor: float, length: int) -> int:
    return min(int(length * (factor if factor >= 0 else 1.0)) + 1 + LIST_COST, MAX_UINT64)


def _list_made(_: Sequence[Value], result: Value) -> int:
    return _allocated(1, size(result))


def _flattened(args: Sequence[Value], _: Value) -> int:
    return _allocated(float(args[1]) if len(args) == 2 else 1.0, size(args[0]))


_ADDERS: Final = frozenset({int, Uint, float, str, bytes, Duration, Timestamp})


def _not_a_list(value: Value) -> Cancelled:
    name = "*types.Err" if isinstance(value, CelError) else go_type(value)
    method = "Contains" if type(value) in _ADDERS else "Add"
    return Cancelled(f"internal error: interface conversion: {name} is not traits.Lister: missing method {method}")


def _pairwise(position: int) -> CallCost:
    """Every element of a list compared with every other."""

    def cost(args: Sequence[Value], _: Value) -> int:
        items = args[position]
        if not isinstance(items, LISTS):  # upstream does not check this, and panics
            raise _not_a_list(items)
        length = size(items)
        if not length:
            return _allocated(2.0, 0)
        kind = type_of(items[0])
        return _allocated(2.0 + (TRAVERSAL if kind in (STRING, BYTES) else 0), length * length)

    return cost


def _sets(factor: float) -> CallCost:
    return lambda args, _: 1 + int(size(args[0]) * size(args[1]) * factor)


_OF_ITSELF: Final = _pairwise(0)
_OF_KEYS: Final = _pairwise(1)
_OF_SETS: Final = _sets(1)
_OF_EQUIVALENT_SETS: Final = _sets(2)


_SORTS: Final = (
    "int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp", "string", "bytes",
)  # fmt: skip
_EXTENSIONS: Final[dict[str, CallCost]] = {  # cel-go's extensions, by overload; these take precedence
    "list_slice": _list_made,
    "list_flatten": _flattened,
    "list_flatten_int": _flattened,
    "lists_range": _list_made,
    "list_reverse": _list_made,
    "list_distinct": _OF_ITSELF,
    **{f"list_{kind}_sort": _OF_ITSELF for kind in _SORTS},
    **{f"list_{kind}_sortByAssociatedKeys": _OF_KEYS for kind in _SORTS},
    "list_sets_contains_list": _OF_SETS,
    "list_sets_intersects_list": _OF_SETS,
    "list_sets_equivalent_list": _OF_EQUIVALENT_SETS,
}
_KUBERNETES: Final[dict[str, CallCost]] = {  # Kubernetes' functions, by name
    "check": lambda args, result: 350_000,  # noqa: ARG005
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _all_elements),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _traversed(0)),
    **dict.fromkeys(("replace", "split"), _traversed(0, 2)),
    "join": _joined,
    **dict.fromkeys(("find", "findAll"), _search),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _traversed(0)),
    "ip.isCanonical": _traversed(0, 2),
    "containsIP": _contains_address,
    "containsCIDR": _contains_network,
    "validate": _validated,
    "_==_": _equal,
}
_STANDARD: Final[dict[str, CallCost]] = {  # the language's functions, by overload
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _traversed(1)),
    **dict.fromkeys(("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"), _traversed(0)),
    "in_list": _in_list,
    **{
        f"{order}_{kind}": _compared
        for order in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    **dict.fromkeys(("equals", "not_equals"), _compared),
    **dict.fromkeys(("add_string", "add_bytes"), _added),
    **dict.fromkeys(("matches", "matches_string"), _search),
    "contains_string": _contains,
}
CHECKED_BEFORE_CALL: Final = frozenset(
    {_OF_ITSELF, _OF_KEYS, _OF_SETS, _OF_EQUIVALENT_SETS, _search, _contains, _all_elements}
)
"""Costs that depend on the arguments only, and grow with the product of two sizes or with all that is in a list: limits are
checked before the call."""

_BY_FUNCTION_AND_OVERLOAD: Final[dict[tuple[str, str], CallCost]] = {
    ("ip", "cidr_ip"): nominal,
    ("containsIP", "cidr_contains_ip_string"): _contains_address_text,
    ("containsCIDR", "cidr_contains_cidr_string"): _contains_network_text,
}


def call_cost(function: str, overloads: Sequence[str], release: int = NEWEST) -> CallCost:
    """The cost of a call for which the checker found these overloads. If there are several, only the name counts.

    `release`: of Kubernetes, as some do not know the costs of all functions (`releases.libraries.EVALUATED`).
    """
    overload = overloads[0] if len(overloads) == 1 else ""
    kubernetes = None
    if release >= EVALUATED.get(function, OLDEST):
        kubernetes = _BY_FUNCTION_AND_OVERLOAD.get((function, overload)) or _KUBERNETES.get(function)
    return _EXTENSIONS.get(overload) or kubernetes or _STANDARD.get(overload) or nominal
