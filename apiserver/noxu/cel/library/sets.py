"""cel-go's set functions on lists (ext/sets.go)."""

from __future__ import annotations

from typing import Final

from noxu.cel.errors import CelError
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.values.equality import contains
from noxu.cel.values.values import Value


def contains_all(items: Value, others: Value) -> bool:
    return all(contains(items, other) for other in others)


def equivalent(items: Value, others: Value) -> bool:
    return contains_all(items, others) and contains_all(others, items)


def intersect(items: Value, others: Value) -> bool:
    return any(_contains_or_false(others, item) for item in items)


def _contains_or_false(items: Value, value: Value) -> bool:
    try:
        return contains(items, value)
    except CelError:
        return False


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("list_sets_contains_list", "sets::contains(list(T), list(T)) -> bool", contains_all),
    overload("list_sets_equivalent_list", "sets::equivalent(list(T), list(T)) -> bool", equivalent),
    overload("list_sets_intersects_list", "sets::intersects(list(T), list(T)) -> bool", intersect),
]
