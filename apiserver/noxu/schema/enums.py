"""Which values an enum allows: upstream compares after Go's conversions (kube-openapi's validate.EnumCase).

A value is a member if Go can convert it to the member's type and then they are equal:

    enum          allows
    [1]           1, and floats that truncate to 1: 1.7
    [1.0, "x"]    1.0 and 1, as a float64; "x", and the integer 120, because Go's string(120) is "x"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NoneType

from noxu.schema.numbers import to_int64
from noxu.values import Json, equal


def membership(kind: type, members: Sequence[Json]) -> Callable[[Json], bool]:
    """A function that says whether a value of this Python type is one of the members. Null is never a member."""
    if kind is NoneType:
        return lambda _: False
    same = [member for member in members if type(member) is kind]
    if kind in (str, bool):
        return frozenset(same).__contains__
    if kind not in (int, float):
        return lambda value: any(equal(value, member) for member in same)
    integers = {member for member in members if type(member) is int}
    floats = {member for member in members if type(member) is float}
    if kind is float:
        return lambda value: value in floats or to_int64(value) in integers
    strings = {member for member in members if type(member) is str}
    return lambda value: value in integers or float(value) in floats or (bool(strings) and _character(value) in strings)


def _character(code: int) -> str:
    """Go's string(int64)."""
    return chr(code) if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"
