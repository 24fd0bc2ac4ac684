"""CEL's numbers in Python: int is int64, `Uint` is uint64, float is double.

Arithmetic checks for overflow; comparison works across the three types (cel-go's common/types/{int,uint,double,compare}.go).
These functions do not check the types of their arguments: callers exclude bool, which Python counts as an int.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from noxu.cel.errors import CelError
from noxu.values import MAX_INT64, MIN_INT64

MAX_UINT64: Final = 2**64 - 1


Number: TypeAlias = int | float


class Uint(int):
    """An unsigned integer. Equal to, and hashed as, the int of the same value: CEL compares across types."""

    __slots__ = ()


def int_in_range(value: int) -> int:
    if MIN_INT64 <= value <= MAX_INT64:
        return value
    raise CelError("integer overflow")


def uint_in_range(value: int) -> Uint:
    if 0 <= value <= MAX_UINT64:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def divide(left: int, right: int) -> int:
    """Division that truncates towards zero, as Go's does: -7 / 2 → -3. The caller makes the result of Uints a Uint."""
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def modulo(left: int, right: int) -> int:
    """The remainder with the sign of the dividend, as Go's: -7 % 2 → -1."""
    if right == 0:
        raise CelError("modulus by zero")
    if left == MIN_INT64 and right == -1:
        raise CelError("integer overflow")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def divide_doubles(left: float, right: float) -> float:
    """IEEE 754 division: x/0 is infinite, 0/0 is NaN."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def compare(left: Number, right: Number) -> int:
    """-1, 0 or 1. An integer is converted to compare it with a double, and may lose digits, as in cel-go."""
    if isinstance(left, float) or isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            raise CelError("NaN values cannot be ordered")
        if not isinstance(left, float):
            return -_compare_double(right, left)
        if not isinstance(right, float):
            return _compare_double(left, right)
    return (left > right) - (left < right)


def _compare_double(double: float, integer: int) -> int:
    low, high = (0, MAX_UINT64) if isinstance(integer, Uint) else (MIN_INT64, MAX_INT64)
    if double < float(low):
        return -1
    if double > float(high):
        return 1
    other = float(integer)
    return (double > other) - (double < other)


def equal(left: Number, right: Number) -> bool:
    """Whether two numbers of any types are equal. NaN equals nothing."""
    if isinstance(left, float) is isinstance(right, float):
        return left == right
    if math.isnan(left) or math.isnan(right):
        return False
    return compare(left, right) == 0


def to_int(value: Number) -> int:
    """A double, truncated towards zero, or a Uint as int."""
    if isinstance(value, float):
        if not float(MIN_INT64) < value < float(MAX_INT64):  # also false for NaN
            raise CelError("integer overflow")
        return int(value)
    return int_in_range(int(value))


def to_uint(value: Number) -> Uint:
    if isinstance(value, float):
        if not 0 <= value < float(MAX_UINT64):
            raise CelError("unsigned integer overflow")
        return Uint(value)
    return uint_in_range(value)
