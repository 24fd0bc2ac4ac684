"""Kubernetes' quantities (apimachinery's resource.Quantity): decimal numbers with suffixes.

A quantity is `digits × 10^exponent`. Upstream keeps it in an int64 where it fits (`small`), in a big decimal
otherwise, and only the former can be an integer: `1.0` is not, nor is 1E of 19 digits.
"""

from __future__ import annotations

import re
from typing import Final

from apiserver.api.types import MAX_INT64, MIN_INT64
from apiserver.cel.errors import CelError, no_such_overload
from apiserver.cel.library.declarations import Overload, overload
from apiserver.cel.types import QUANTITY
from apiserver.cel.values import Opaque, Value

_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_WRONG_FORM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_DECIMAL: Final = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NANO: Final = -9
MAX_LENGTH: Final = 4000  # of the digits: upstream takes any number
_MOST_DIGITS: Final = 18  # what surely fits into an int64


class Quantity(Opaque):
    """`computed`: made by add or sub. Upstream cannot compare such a one with `==` on the right side."""

    __slots__ = ("computed", "digits", "exponent", "small")
    type = QUANTITY

    def __init__(self, digits: int, exponent: int, small: bool, computed: bool = False) -> None:
        self.digits = digits
        self.exponent = exponent
        self.small = small
        self.computed = computed

    def equals(self, other: Value) -> bool:
        if not isinstance(other, Quantity) or other.computed:
            raise no_such_overload()
        return compare(self, other) == 0


def read(text: str) -> Quantity:
    try:
        return parse(text)
    except ValueError as error:
        raise CelError(str(error)) from None


def parse(text: str) -> Quantity:
    """Raises ValueError with upstream's message."""
    found = _FORM.fullmatch(text)
    if not text or not found:
        raise ValueError(_WRONG_FORM)
    sign, whole, fraction, suffix = found.groups()
    given_fraction, fraction = fraction, fraction or ""
    whole = whole.lstrip("0")
    if not whole and not fraction and not suffix and given_fraction is None:
        return Quantity(0, 0, True)
    exponent, binary = _suffix(suffix)
    if len(whole) + len(fraction) > MAX_LENGTH:
        raise ValueError("unable to parse numeric part of quantity")
    digits, negative = int((whole or "0") + fraction), sign == "-"
    places = len(fraction)
    if binary:
        room = 15 - len(whole or "0") - int(exponent * 3 / 10) - 1 if not fraction else -1
        value, scale = digits * 2**exponent, 0
    else:
        room = _MOST_DIGITS - len(whole or "0") - places
        value, scale = digits, exponent
    if room >= 0 and scale - places >= _NANO and value <= MAX_INT64:
        return Quantity(-value if negative else value, scale - places, True)
    return _large(value, scale - places, negative, binary)


def _large(value: int, exponent: int, negative: bool, binary: bool) -> Quantity:
    """A big decimal: rounded up to nanos, and no binary one exceeds an int64."""
    if value and exponent < _NANO:
        drop = _NANO - exponent
        value = 1 if drop > len(str(value)) else -(-value // 10**drop)
        exponent = _NANO
    limited = Quantity(value, exponent, False)
    if binary and compare(limited, Quantity(MAX_INT64, 0, False)) > 0:
        limited = Quantity(MAX_INT64, 0, False)
    limited.digits *= -1 if negative else 1
    return limited


def _suffix(suffix: str) -> tuple[int, bool]:
    """The exponent, and whether it is one of 2."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], False
    if suffix in _BINARY:
        return _BINARY[suffix], True
    power = re.fullmatch(r"[eE]([+-]?[0-9]+)", suffix)
    if power and MIN_INT64 <= int(power[1]) <= MAX_INT64:
        return (int(power[1]) + 2**31) % 2**32 - 2**31, False
    raise ValueError("unable to parse quantity's suffix")


def compare(left: Quantity, right: Quantity) -> int:
    """Exactly, without ever writing out a large exponent."""
    signs = sign(left), sign(right)
    if signs[0] != signs[1] or signs[0] == 0:
        return (signs[0] > signs[1]) - (signs[0] < signs[1])
    sizes = [len(str(abs(one.digits))) + one.exponent for one in (left, right)]
    if sizes[0] != sizes[1]:
        return signs[0] * ((sizes[0] > sizes[1]) - (sizes[0] < sizes[1]))
    lowest = min(left.exponent, right.exponent)
    a = left.digits * 10 ** (left.exponent - lowest)
    b = right.digits * 10 ** (right.exponent - lowest)
    return int(a > b) - int(a < b)


def sign(quantity: Quantity) -> int:
    return (quantity.digits > 0) - (quantity.digits < 0)


def as_integer(quantity: Quantity) -> int | None:
    if not quantity.small or quantity.exponent < 0:
        return None
    if quantity.digits == 0:
        return 0
    if quantity.exponent > _MOST_DIGITS:
        return None
    value = quantity.digits * 10**quantity.exponent
    return value if MIN_INT64 <= value <= MAX_INT64 else None


def _get_integer(quantity: Quantity) -> int:
    value = as_integer(quantity)
    if value is None:
        raise CelError("cannot convert value to integer")
    return value


def as_float(quantity: Quantity) -> float:
    """Two roundings, as upstream has them."""
    try:
        base = float(quantity.digits)
    except OverflowError:
        base = float("inf") * sign(quantity)
    if quantity.exponent == 0:
        return base
    if quantity.exponent < -323:
        return base * 0.0
    return base * (float(f"1e{quantity.exponent}") if quantity.exponent <= 308 else float("inf"))


def add(left: Quantity, right: Quantity) -> Quantity:
    if left.small and right.small:
        total = _add_small(left, right)
        if total is not None:
            return total
    lowest = min(left.exponent, right.exponent)
    if max(left.exponent, right.exponent) - lowest > 100_000:
        raise CelError("quantity out of range")  # upstream would write out all these digits
    digits = left.digits * 10 ** (left.exponent - lowest) + right.digits * 10 ** (right.exponent - lowest)
    return Quantity(digits, lowest, False, computed=True)


def _add_small(left: Quantity, right: Quantity) -> Quantity | None:
    if right.digits == 0:
        return Quantity(left.digits, left.exponent, True, computed=True)
    if left.digits == 0:
        return Quantity(right.digits, right.exponent, True, computed=True)
    lowest = min(left.exponent, right.exponent)
    if max(left.exponent, right.exponent) - lowest > _MOST_DIGITS:
        return None
    parts = [one.digits * 10 ** (one.exponent - lowest) for one in (left, right)]
    if any(not MIN_INT64 <= one <= MAX_INT64 for one in (*parts, sum(parts))):
        return None
    return Quantity(sum(parts), lowest, True, computed=True)


def subtract(left: Quantity, right: Quantity) -> Quantity:
    return add(left, Quantity(-right.digits, right.exponent, right.small))


def _of(number: int) -> Quantity:
    return Quantity(number, 0, True)


def is_quantity(text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("string_to_quantity", "quantity(string) -> quantity", read),
    overload("is_quantity_string", "isQuantity(string) -> bool", is_quantity),
    overload("quantity_sign", "sign(quantity) -> int", sign),
    overload("quantity_is_greater_than", "quantity.isGreaterThan(quantity) -> bool", lambda a, b: compare(a, b) == 1),
    overload("quantity_is_less_than", "quantity.isLessThan(quantity) -> bool", lambda a, b: compare(a, b) == -1),
    overload("quantity_compare_to", "quantity.compareTo(quantity) -> int", compare),
    overload("quantity_get_float", "quantity.asApproximateFloat() -> double", as_float),
    overload("quantity_get_int", "quantity.asInteger() -> int", _get_integer),
    overload("quantity_is_integer", "quantity.isInteger() -> bool", lambda one: as_integer(one) is not None),
    overload("quantity_add", "quantity.add(quantity) -> quantity", add),
    overload("quantity_add_int", "quantity.add(int) -> quantity", lambda one, number: add(one, _of(number))),
    overload("quantity_sub", "quantity.sub(quantity) -> quantity", subtract),
    overload("quantity_sub_int", "quantity.sub(int) -> quantity", lambda one, number: subtract(one, _of(number))),
]
