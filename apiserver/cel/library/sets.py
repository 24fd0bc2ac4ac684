"""cel-go's set functions on lists (ext/sets.go)."""

from __future__ import annotations

from typing import Final

from apiserver.cel.equality import contains
from apiserver.cel.errors import CelError
from apiserver.cel.library.declarations import Overload, overload
from apiserver.cel.values import Value


def has_all(items: Value, others: Value) -> bool:
    return all(contains(items, one) for one in others)


def equivalent(items: Value, others: Value) -> bool:
    return has_all(items, others) and has_all(others, items)


def intersect(items: Value, others: Value) -> bool:
    return any(_found(others, one) for one in items)


def _found(items: Value, value: Value) -> bool:
    try:
        return contains(items, value)
    except CelError:
        return False


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("list_sets_contains_list", "sets::contains(list(T), list(T)) -> bool", has_all),
    overload("list_sets_equivalent_list", "sets::equivalent(list(T), list(T)) -> bool", equivalent),
    overload("list_sets_intersects_list", "sets::intersects(list(T), list(T)) -> bool", intersect),
]
