"""JSON values of requests and responses: copy them, compare them and look into them.

Objects stay plain dicts all the way through the pipeline; `Any` is used for JSON values and nowhere else. Integers are
int64, everything else numeric is a float (as upstream's sigs.k8s.io/json decodes them). Nothing here recurses: clients
may send 10 000 levels, and Python's stack takes 1 000.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

Json: TypeAlias = Any
Object: TypeAlias = dict[str, Json]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801 - as in the standard library
        """An attribute that is computed when it is first asked for, as in Python 3.12. Two threads may compute it at the same time.

        That of Python 3.11 holds a lock while it computes, one for all instances: the event loop would wait while a thread
        compiles another object, for as long as that thread waits for its turn.
        """

        def __init__(self, func):
            self.func = func
            self.__doc__ = func.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = vars(instance)[self._name] = self.func(instance)
            return value


MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)

MAX_COPIED_AT_ONCE: Final = 256 * 1024
"""Bytes of JSON that are copied in one call, during which no other thread runs: a few milliseconds."""

MAX_SORTED: Final = 256 * 1024
"""Bytes of JSON that are sorted in one call, likewise."""


def copy(value: Json) -> Json:
    """A deep copy. Scalars are shared."""
    if not isinstance(value, (dict, list)) or not value:
        return value if not isinstance(value, (dict, list)) else type(value)()
    try:
        text = orjson.dumps(value)
        if len(text) <= MAX_COPIED_AT_ONCE:
            return orjson.loads(text)
    except (TypeError, ValueError):  # deeper than orjson goes (TypeError: JSONEncodeError)
        pass
    return _copy_in_python(value)


def sorted_copy(value: Json) -> Json:
    """A deep copy in which the keys of all objects are sorted. Scalars are shared."""
    return _copy_in_python(value, lambda item: dict(sorted(item.items())))


def _copy_in_python(value: Json, copy_object: Callable[[Object], Object] = dict) -> Json:
    """A deep copy that other threads may interrupt."""
    top: list[Json] = [value]
    todo: list[tuple[Json, Iterator[tuple[Json, Json]]]] = [(top, iter(enumerate(top)))]  # containers, half done
    while todo:
        container, rest = todo[-1]
        for key, item in rest:
            if isinstance(item, dict):
                container[key] = copied = copy_object(item)
                if copied:
                    todo.append((copied, iter(copied.items())))
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
    """Go's deep equality of decoded JSON: the integer 1, the float 1.0 and true are three different values."""
    try:
        if left != right:  # Python's equality is weaker: what differs for Python differs for Go
            return False
    except RecursionError:
        pass
    if has_equal_json(left, right):
        return True
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


def has_equal_json(left: Json, right: Json) -> bool:
    """Whether two values are certainly equal: their JSON is, regardless of the order of keys. False without certainty.

    Sorting costs several times the encoding, and is skipped where it cannot matter: sorted JSON has the length of unsorted.
    It is skipped above MAX_SORTED, too: other threads cannot run meanwhile, as they can while values are compared in Python.
    """
    try:
        left_json, right_json = orjson.dumps(left), orjson.dumps(right)
        if left_json == right_json or len(left_json) != len(right_json) or len(left_json) > MAX_SORTED:
            return left_json == right_json
        return orjson.dumps(left, option=orjson.OPT_SORT_KEYS) == orjson.dumps(right, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):  # too deep, or an integer that is too large (TypeError: JSONEncodeError)
        return False


class _Absent:
    """Stands for a field that does not exist, where null would be a value."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()


class NotAMap(ValueError):
    """A path leads into `value`, which has no fields. `path` ends with the field that was to be read from it."""

    def __init__(self, path: str, value: Json) -> None:
        super().__init__(f"{path}: the parent is not a map")
        self.path = path
        self.value = value


def nested_field(value: Json, path: str, default: Json = None, *, strict: bool = False) -> Json:
    """The value at a dotted path of field names, such as `spec.replicas` (upstream's unstructured.NestedFieldNoCopy).

    A null at the end of the path is None. `default` is returned if a field on the way is missing, null or not a map;
    pass ABSENT to tell this from null. With `strict`, something on the way that is neither a map nor null raises
    NotAMap instead:

        value                   path  default=ABSENT  strict
        {"a": {"b": 1}}         a.b   1               1
        {"a": {"b": null}}      a.b   None            None
        {"a": {}}               a.b   ABSENT          ABSENT
        {"a": null}             a.b   ABSENT          ABSENT
        {"a": [1]}              a.b   ABSENT          NotAMap("a.b", [1])
    """
    names = path.split(".")
    for n, name in enumerate(names):
        if not isinstance(value, dict):
            if strict and value is not None:
                raise NotAMap(".".join(names[: n + 1]), value)
            return default
        value = value.get(name, ABSENT)
        if value is ABSENT:
            return default
    return value
