"""The items of lists in objects: values along a path with `[*]`, conditions by type, lists that end in "+ 2 more..."."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from noxu.values import Json, Object, nested_field


def values_at(value: Json, path: str) -> Iterator[str]:
    """The texts along a path; an unset field of an item is empty, as in Go.

    {"a": [{"b": "x"}, {}]}   a[*].b   "x", ""
    {"a": ["x", "y"]}         a        "x", "y"
    """
    outer, wildcard, inner = path.partition("[*]")
    for item in nested_field(value, outer) or ():
        inner_path = inner.removeprefix(".")
        if not wildcard or not inner_path:
            yield item
        elif "[*]" in inner_path:
            yield from values_at(item, inner_path)
        else:
            yield nested_field(item, inner_path) or ""


def condition(conditions: Sequence[Object] | None, kind: str) -> Object | None:
    """The first condition, or other item, of a type."""
    return next((item for item in conditions or () if item.get("type") == kind), None)


def is_true(conditions: Sequence[Object] | None, kind: str) -> bool:
    """Whether any condition of a type is True."""
    return any(item.get("type") == kind and item.get("status") == "True" for item in conditions or ())


def count_of_more(texts: Iterable[str], limit: int, by: str) -> str:
    """The first texts, joined, and how many follow: `a,b,c + 2 more...`."""
    found = list(texts)
    shown = by.join(found[:limit])
    return f"{shown} + {len(found) - limit} more..." if len(found) > limit else shown
