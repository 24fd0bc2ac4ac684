"""Numbers and members of enums, compared as upstream does in Go.

The ranges of types and formats, multipleOf, minimum and maximum: an integer literal within int64 is an int64, every other
number a float64, and all limits in a schema are float64. An int64 and a limit are compared as integers, with the limit
truncated. If the limit does not fit the node's type or format, which is an error of its own, they are compared as floats.

Enums (kube-openapi's validate.EnumCase): a value is a member if Go can convert it to the member's type and then they are
equal.

    enum          allows
    [1]           1, and floats that truncate to 1: 1.7
    [1.0, "x"]    1.0 and 1, as a float64; "x", and the integer 120, because Go's string(120) is "x"
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from types import NoneType
from typing import Final, TypeAlias

from noxu.api.field import FieldError, Location, invalid, path_of
from noxu.go.text import plain
from noxu.schema.structural import ValueValidation
from noxu.values import MAX_INT64, MIN_INT64, Json, equal

MAX_SAFE_INTEGER: Final = 2.0**53 - 1  # ECMAScript's
TOLERANCE: Final = 1e-9  # the relative distance from an integer that a float may have
MAX_FLOAT32: Final = 3.4028235677973366e38  # the largest decimal that still rounds to a finite float32

_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(MIN_INT64, MAX_INT64 + 1)

Test: TypeAlias = Callable[[float, Location], FieldError | None]
"""(value, location) → its error, if any."""


def tests(kind: type, type_: str, format_: str, validation: ValueValidation) -> list[Test]:
    """The tests for values of `kind`, int or float.

    `type_` and `format_` are those of the node if they are about numbers, else "".
    """
    expected = f"value must be of type {type_} {f'with format {format_}' if format_ else '(default format)'} in"
    chosen = []
    if (type_ == "integer" and (kind is float or format_ == "int32")) or (format_ == "float" and kind is float):
        chosen.append(_in_range(type_, format_, f"Checked {expected}"))
    for name, limit, test in _limits(validation):
        of_type = fits(limit, type_, format_)
        if not of_type:
            chosen.append(_always(f"{name} {expected}"))
        if kind is int:
            chosen.append(test(to_int64(limit)) if of_type else _as_float(test(limit)))
        else:
            chosen.append(test(limit))
    return chosen


def _limits(validation: ValueValidation) -> Iterator[tuple[str, float, Callable[[float], Test]]]:
    """In upstream's order: (upstream's name of the limit, the limit, a function that makes a test of a limit)."""
    if validation.multiple_of is not None:
        yield "MultipleOf", validation.multiple_of, _multiple_of
    if validation.minimum is not None:
        below, below_phrase = _MINIMUM[validation.exclusive_minimum]
        yield "Minimum boundary", validation.minimum, lambda limit: _within(limit, below, below_phrase)
    if validation.maximum is not None:
        above, above_phrase = _MAXIMUM[validation.exclusive_maximum]
        yield "Maximum boundary", validation.maximum, lambda limit: _within(limit, above, above_phrase)


_MINIMUM: Final = {False: (operator.lt, "greater than or equal to"), True: (operator.le, "greater than")}
_MAXIMUM: Final = {False: (operator.gt, "less than or equal to"), True: (operator.ge, "less than")}


def _always(text: str) -> Test:
    return lambda _, location: invalid("", "", f"{text} {path_of(location)}")


def _as_float(test: Test) -> Test:
    return lambda value, location: test(float(value), location)


def _in_range(type_: str, format_: str, text: str) -> Test:
    return lambda value, location: (
        None if fits(value, type_, format_) else invalid("", "", f"{text} {path_of(location)}")
    )


def _within(limit: float, is_beyond: Callable[[float, float], bool], phrase: str) -> Test:
    def test(value: float, location: Location) -> FieldError | None:
        if not is_beyond(value, limit):
            return None
        path = path_of(location)
        return invalid(path, value, f"{path} in body should be {phrase} {plain(limit)}")

    return test


def _multiple_of(factor: float) -> Test:
    def test(value: float, location: Location) -> FieldError | None:
        if factor > 0 and is_multiple(value, factor):
            return None
        path = path_of(location)
        if factor <= 0:  # possibly because it was truncated
            return invalid(path, factor, f"factor MultipleOf declared for {path} must be positive: {plain(factor)}")
        return invalid(path, value, f"{path} in body should be a multiple of {plain(factor)}")

    return test


def is_multiple(number: float, factor: float) -> bool:
    """Whether a number is a multiple of a positive factor: exactly for two integers, within the tolerance for floats."""
    if isinstance(number, int):
        return number % factor == 0
    return is_json_integer(1 / factor * number if factor < 1 else number / factor)


def is_json_integer(number: float) -> bool:
    """Whether upstream considers a float an integer (go-openapi's IsFloat64AJSONInteger)."""
    if not -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER:
        return False
    rounded = math.floor(abs(number) + 0.5)  # halves away from zero
    return abs(number) == rounded or abs(abs(number) - rounded) < TOLERANCE * rounded


def fits(number: float, type_: str, format_: str) -> bool:
    """Whether a number is of the type and in the range of the format."""
    if type_ == "integer":
        if isinstance(number, float):
            if not number.is_integer():
                return False
            number = int(Decimal(repr(number)))  # Go compares the shortest decimal: -2.0**63 is out of range
        return number in (_INT32 if format_ == "int32" else _INT64)
    return format_ != "float" or abs(number) <= MAX_FLOAT32


def to_int64(number: float) -> int:
    """Go's int64(number) on amd64: truncated; a number that does not fit becomes the smallest integer."""
    truncated = math.trunc(number)
    return truncated if truncated in _INT64 else MIN_INT64


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
