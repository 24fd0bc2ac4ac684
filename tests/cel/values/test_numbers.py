"""Arithmetic and comparison of CEL's three types of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from noxu.cel.errors import CelError
from noxu.cel.values import numbers
from noxu.cel.values.numbers import Uint
from tests.rows import rows

MAX, MIN, MAX_UINT = 2**63 - 1, -(2**63), 2**64 - 1
ROWS: list[tuple[str, Callable[..., Any], tuple[Any, ...], Any]] = [
    ("an int64 is in range", numbers.int_in_range, (MAX,), MAX),
    ("beyond it is not", numbers.int_in_range, (MAX + 1,), CelError("integer overflow")),
    ("below it is not", numbers.int_in_range, (MIN - 1,), CelError("integer overflow")),
    ("a uint64 is in range", numbers.uint_in_range, (MAX_UINT,), Uint(MAX_UINT)),
    ("a negative number is not", numbers.uint_in_range, (-1,), CelError("unsigned integer overflow")),
    ("division truncates", numbers.divide, (7, 2), 3),
    ("towards zero", numbers.divide, (-7, 2), -3),
    ("with either sign", numbers.divide, (7, -2), -3),
    ("two signs cancel", numbers.divide, (-7, -2), 3),
    ("division by zero", numbers.divide, (1, 0), CelError("division by zero")),
    ("the remainder has the sign of the dividend", numbers.modulo, (-7, 2), -1),
    ("not that of the divisor", numbers.modulo, (7, -2), 1),
    ("a remainder by zero", numbers.modulo, (1, 0), CelError("modulus by zero")),
    ("a remainder that overflows in Go", numbers.modulo, (MIN, -1), CelError("integer overflow")),
    ("a double divided by zero", numbers.divide_doubles, (-1.0, 0.0), -math.inf),
    ("by negative zero", numbers.divide_doubles, (1.0, -0.0), -math.inf),
    ("ints are compared", numbers.compare, (1, 2), -1),
    ("across types", numbers.compare, (2, Uint(1)), 1),
    ("an int with a double", numbers.compare, (1, 1.5), -1),
    ("a double with an int", numbers.compare, (1.5, 1), 1),
    ("a double beyond all ints", numbers.compare, (1e300, MAX), 1),
    ("a negative double with a uint", numbers.compare, (-0.5, Uint(0)), -1),
    ("digits are lost against a double", numbers.compare, (2**53 + 1, float(2**53)), 0),
    ("NaN has no order", numbers.compare, (math.nan, 1), CelError("NaN values cannot be ordered")),
    ("numbers are equal across types", numbers.equal, (1, 1.0), True),
    ("but not to NaN", numbers.equal, (1, math.nan), False),
    ("a double is truncated to an int", numbers.to_int, (-1.9,), -1),
    ("a double that is no int64", numbers.to_int, (float(MAX),), CelError("integer overflow")),
    ("NaN is no int", numbers.to_int, (math.nan,), CelError("integer overflow")),
    ("a uint beyond int64", numbers.to_int, (Uint(MAX + 1),), CelError("integer overflow")),
    ("a double is truncated to a uint", numbers.to_uint, (1.9,), Uint(1)),
    ("a negative double is no uint", numbers.to_uint, (-0.1,), CelError("unsigned integer overflow")),
]


@rows(("run", "args", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_numbers(run: Callable[..., Any], args: tuple[Any, ...], expected: Any) -> None:
    if isinstance(expected, CelError):
        with pytest.raises(CelError) as caught:
            run(*args)
        assert caught.value.message == expected.message
    else:
        found = run(*args)
        assert (type(found), found) == (type(expected), expected)


def test_zero_by_zero_is_not_a_number() -> None:
    assert math.isnan(numbers.divide_doubles(0.0, 0.0))
    assert math.isnan(numbers.divide_doubles(math.nan, 0.0))
