"""Copying and comparing JSON values, however deep they are (clients may send 10 000 levels; Python's stack takes 1 000)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from apiserver.api.types import Json

AT_ONCE: Final = 256 * 1024  # bytes of JSON that are copied without letting other threads run: a few milliseconds


def copy(value: Json) -> Json:
    """A deep copy. Scalars are shared."""
    if not isinstance(value, (dict, list)) or not value:
        return value if not isinstance(value, (dict, list)) else type(value)()
    try:
        text = orjson.dumps(value)
        if len(text) <= AT_ONCE:
            return orjson.loads(text)
    except (TypeError, ValueError):  # deeper than orjson goes (TypeError: JSONEncodeError)
        pass
    return _copy_piecewise(value)


def _copy_piecewise(value: Json) -> Json:
    top: list[Json] = [value]
    todo: list[tuple[Json, Iterator[tuple[Json, Json]]]] = [(top, iter(enumerate(top)))]  # containers, half done
    while todo:
        container, rest = todo[-1]
        for key, item in rest:
            if isinstance(item, dict):
                container[key] = made = dict(item)
                if made:
                    todo.append((made, iter(made.items())))
                    break
            elif isinstance(item, list):
                container[key] = items = list(item)
                if items:
                    todo.append((items, iter(enumerate(items))))
                    break
        else:
            todo.pop()
    return top[0]


def equal(left: Json, right: Json) -> bool:
    """Go's deep equality of decoded JSON: the integer 1, the float 1.0 and true are three different things."""
    try:
        if left != right:  # to Python these are equal, but what is different to Python is so to Go
            return False
    except RecursionError:
        pass
    todo = [(left, right)]
    while todo:
        a, b = todo.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, dict):
            if a.keys() != b.keys():
                return False
            todo += [(item, b[name]) for name, item in a.items()]
        elif isinstance(a, list):
            if len(a) != len(b):
                return False
            todo += zip(a, b, strict=True)
        elif a != b:
            return False
    return True
