"""Copying and comparing JSON values, however deep they are (clients may send 10 000 levels; Python's stack takes 1 000)."""

from __future__ import annotations

import orjson

from apiserver.api.types import Json


def copy(value: Json) -> Json:
    """A deep copy. Scalars are shared."""
    if not isinstance(value, (dict, list)) or not value:
        return value if not isinstance(value, (dict, list)) else type(value)()
    try:
        return orjson.loads(orjson.dumps(value))
    except (TypeError, ValueError):  # deeper than orjson goes (TypeError: JSONEncodeError)
        return _copy_deep(value)


def _copy_deep(value: Json) -> Json:
    top: list[Json] = [None]
    todo: list[tuple[Json, Json, Json]] = [(value, top, 0)]  # (source, container of the copy, key there)
    while todo:
        source, container, key = todo.pop()
        if isinstance(source, dict):
            container[key] = target = dict.fromkeys(source)
            todo += [(item, target, name) for name, item in source.items()]
        elif isinstance(source, list):
            container[key] = items = [None] * len(source)
            todo += [(item, items, n) for n, item in enumerate(source)]
        else:
            container[key] = source
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
