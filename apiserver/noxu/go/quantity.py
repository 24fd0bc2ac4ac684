"""Kubernetes' quantities (apimachinery's resource.Quantity): decimal numbers with suffixes, such as 1500m, 2Gi and 3e6.

A quantity is `digits × 10^exponent`:

    1.5     →   15 × 10^-1          1500m   →   1500 × 10^-3        2Ki   →   2048 × 10^0        3e6   →   3 × 10^6

Upstream holds it in an int64 with a scale where it surely fits (`is_int64`), and in a big decimal otherwise. The
difference is visible: only the former can be an integer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Final

from noxu.expressions import expression
from noxu.values import MAX_INT64, MIN_INT64


class Format(Enum):
    """How a quantity is printed: with the kind of suffix that it was written with."""

    DECIMAL_SI = "DecimalSI"  # 12M
    BINARY_SI = "BinarySI"  # 12Mi
    DECIMAL_EXPONENT = "DecimalExponent"  # 12e6


# Digits are matched possessively: given back one by one, they would be tried again as those of the suffix.
_FORM: Final = expression(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_WRONG_FORM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
_DECIMAL: Final = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES: Final = {0: "", **{exponent: suffix for suffix, exponent in _BINARY.items()}}
_NANO: Final = -9
MAX_DIGITS: Final = 4000  # upstream takes any number
_MAX_ALIGNED: Final = 100_000  # digits of a sum; upstream writes them out, however many they are
_INT64_DIGITS: Final = 18  # numbers of this many digits always fit into an int64


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """`digits × 10^exponent`. Compare with `compare`: equal quantities may have different digits.

    `text` is the text that was parsed if upstream prints it unchanged, else "".
    """

    digits: int
    exponent: int = 0
    is_int64: bool = True
    format: Format = Format.DECIMAL_SI
    text: str = ""

    def __str__(self) -> str:
        return self.text or _canonical(self)


def parse(text: str) -> Quantity:
    """ParseQuantity. Raises ValueError with upstream's message."""
    match = _FORM.fullmatch(text)
    if not text or not match:
        raise ValueError(_WRONG_FORM)
    sign, whole, fraction, suffix = match.groups()
    has_point, fraction = fraction is not None, fraction or ""
    whole = whole.lstrip("0")
    if not whole and not has_point and not suffix:
        return Quantity(0)
    exponent, format_ = _suffix(suffix)
    if len(whole) + len(fraction) > MAX_DIGITS:
        raise ValueError(_WRONG_NUMBER)
    written = (whole or "0") + fraction
    digits, negative = int(written), sign == "-"
    places = len(fraction)
    # `spare` is upstream's estimate of how many more digits an int64 could hold; it may be negative.
    if format_ is Format.BINARY_SI:
        spare = 15 - len(whole or "0") - int(exponent * 3 / 10) - 1 if not fraction else -1
        value, scale = digits * 2**exponent, 0
        is_canonical = digits & 7 != 0  # upstream's test
    else:
        spare = _INT64_DIGITS - len(written)
        value, scale = digits, exponent
        is_canonical = (scale - places) % 3 == 0 and not written.endswith("000") and written[0] != "0"
    scale -= places
    if spare >= 0 and scale >= _NANO and value <= MAX_INT64:
        return Quantity(-value if negative else value, scale, True, format_, text if is_canonical else "")
    return _big_decimal(value, scale, negative, format_)


def _suffix(suffix: str) -> tuple[int, Format]:
    """The exponent, of 2 for binary suffixes and of 10 for others."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], Format.DECIMAL_SI
    if suffix in _BINARY:
        return _BINARY[suffix], Format.BINARY_SI
    power = re.fullmatch(r"[eE]([+-]?[0-9]+)", suffix)
    if power:
        digits = power[1].lstrip("+-0") or "0"  # Python refuses to convert more than 4300 digits
        exponent = int(digits[:20]) * (-1 if power[1][0] == "-" else 1)
        if MIN_INT64 <= exponent <= MAX_INT64:
            return (exponent + 2**31) % 2**32 - 2**31, Format.DECIMAL_EXPONENT  # upstream converts it to an int32
    raise ValueError(_WRONG_SUFFIX)


def _big_decimal(value: int, exponent: int, negative: bool, format_: Format) -> Quantity:
    """A quantity that upstream holds in a big decimal: rounded up to nanos, and a binary one limited to an int64.

    1 × 10^-12   →   1 × 10^-9        15 × 10^-10   →   2 × 10^-9        9Ei   →   2^63 - 1
    """
    if value and exponent < _NANO:
        drop = _NANO - exponent
        value = 1 if drop > digit_count(value) else -(-value // 10**drop)
        exponent = _NANO
    magnitude = Quantity(value, exponent, False, format_)
    if format_ is Format.BINARY_SI:
        if compare(magnitude, Quantity(MAX_INT64)) > 0:
            value, exponent = MAX_INT64, 0
        elif value and compare(magnitude, Quantity(1)) < 0:
            format_ = Format.DECIMAL_SI
    return Quantity(-value if negative else value, exponent, False, format_)


def digit_count(number: int) -> int:
    """The number of decimal digits of a natural number. (`str` refuses more than 4300 digits.)

    A number of b bits has either ⌊b·log10 2⌋ digits or one more: 1000 has 10 bits, ⌊3.01⌋ = 3, and 1000 ≥ 10^3.
    """
    if number == 0:
        return 1
    estimate = number.bit_length() * 30_103 // 100_000
    return estimate + 1 if number >= 10**estimate else estimate


def sign(quantity: Quantity) -> int:
    return (quantity.digits > 0) - (quantity.digits < 0)


def compare(left: Quantity, right: Quantity) -> int:
    """-1, 0 or 1, exactly.

    The position of the first digit decides if it differs, so that large exponents are never written out: that of 1e999999
    is 10^999999, that of 5 is 10^0. Else the digits are aligned: 15 × 10^-1 and 2 × 10^0 are compared as 15 and 20.
    """
    signs = sign(left), sign(right)
    if signs[0] != signs[1] or signs[0] == 0:
        return (signs[0] > signs[1]) - (signs[0] < signs[1])
    magnitudes = [digit_count(abs(quantity.digits)) + quantity.exponent for quantity in (left, right)]
    if magnitudes[0] != magnitudes[1]:
        return signs[0] * ((magnitudes[0] > magnitudes[1]) - (magnitudes[0] < magnitudes[1]))
    lowest = min(left.exponent, right.exponent)
    a = left.digits * 10 ** (left.exponent - lowest)
    b = right.digits * 10 ** (right.exponent - lowest)
    return int(a > b) - int(a < b)


def as_int64(quantity: Quantity) -> int | None:
    """Quantity.AsInt64; None where upstream cannot convert it: 1.0 and 1000m, and what it holds in a big decimal."""
    if not quantity.is_int64 or quantity.exponent < 0:
        return None
    if quantity.digits == 0:
        return 0
    if quantity.exponent > _INT64_DIGITS:
        return None
    value = quantity.digits * 10**quantity.exponent
    return value if MIN_INT64 <= value <= MAX_INT64 else None


def scaled_value(quantity: Quantity, places: int) -> int:
    """Quantity.ScaledValue: `quantity × 10^places`, rounded up. What no int64 holds is the largest, or the smallest, that one does."""
    exponent = quantity.exponent + places
    if exponent > _INT64_DIGITS:  # never written out: the power may have millions of digits
        return (MIN_INT64, 0, MAX_INT64)[sign(quantity) + 1]
    value: int = quantity.digits * 10**exponent if exponent >= 0 else -(-quantity.digits // 10**-exponent)
    return min(max(value, MIN_INT64), MAX_INT64)


def approximate_float(quantity: Quantity) -> float:
    """Quantity.AsApproximateFloat64: digits and power are rounded, and so is their product."""
    try:
        digits = float(quantity.digits)
    except OverflowError:
        digits = float("inf") * sign(quantity)
    if quantity.exponent == 0:
        return digits
    if quantity.exponent < -323:
        return digits * 0.0
    return digits * (float(f"1e{quantity.exponent}") if quantity.exponent <= 308 else float("inf"))


def add(left: Quantity, right: Quantity) -> Quantity:
    """The sum, in the format of `left`, or of `right` if `left` is zero. Raises ValueError if it has too many digits."""
    format_ = left.format if left.digits else right.format
    if left.is_int64 and right.is_int64:
        total = _add_int64(left, right, format_)
        if total is not None:
            return total
    lowest = min(left.exponent, right.exponent)
    if max(left.exponent, right.exponent) - lowest > _MAX_ALIGNED:
        raise ValueError("quantity out of range")
    digits = left.digits * 10 ** (left.exponent - lowest) + right.digits * 10 ** (right.exponent - lowest)
    return Quantity(digits, lowest, False, format_)


def _add_int64(left: Quantity, right: Quantity, format_: Format) -> Quantity | None:
    """None if the aligned digits or their sum exceed an int64."""
    if right.digits == 0:
        return Quantity(left.digits, left.exponent, True, format_)
    if left.digits == 0:
        return Quantity(right.digits, right.exponent, True, format_)
    lowest = min(left.exponent, right.exponent)
    if max(left.exponent, right.exponent) - lowest > _INT64_DIGITS:
        return None
    aligned = [quantity.digits * 10 ** (quantity.exponent - lowest) for quantity in (left, right)]
    if any(not MIN_INT64 <= value <= MAX_INT64 for value in (*aligned, sum(aligned))):
        return None
    return Quantity(sum(aligned), lowest, True, format_)


def subtract(left: Quantity, right: Quantity) -> Quantity:
    return add(left, Quantity(-right.digits, right.exponent, right.is_int64, right.format))


def _canonical(quantity: Quantity) -> str:
    """Quantity.String: no fraction, and the largest suffix or exponent with which that is possible.

    15 × 10^-1, DecimalSI   →   1500m           10^21, DecimalSI   →   1e21, as no suffix is larger than E
    1024 × 1024, BinarySI   →   1Mi             1000, BinarySI     →   1k, as below 1024 binary suffixes are not used
    """
    sign_text, digits = "-" if quantity.digits < 0 else "", abs(quantity.digits)
    if not digits:
        return "0"
    if quantity.format is Format.BINARY_SI and _has_binary_suffix(quantity):
        whole = digits * 10**quantity.exponent if quantity.exponent > 0 else digits // 10**-quantity.exponent
        tens = ((whole & -whole).bit_length() - 1) // 10  # how often it can be divided by 1024
        return f"{sign_text}{Decimal(whole >> 10 * tens)}{_BINARY_SUFFIXES.get(10 * tens, '')}"
    text = str(Decimal(digits))  # an int of more than 4300 digits cannot be printed itself
    stripped = text.rstrip("0")
    exponent = quantity.exponent + len(text) - len(stripped)
    padding = exponent % 3  # exponents are multiples of 3
    suffix = None if quantity.format is Format.DECIMAL_EXPONENT else _DECIMAL_SUFFIXES.get(exponent - padding)
    if suffix is None:
        suffix = f"e{exponent - padding}" if exponent - padding else ""
    return f"{sign_text}{stripped}{'0' * padding}{suffix}"


def _has_binary_suffix(quantity: Quantity) -> bool:
    """Whether upstream prints a quantity of format BinarySI as such: if it is an integer, and not a small one."""
    if compare(quantity, Quantity(-1024)) > 0 and compare(quantity, Quantity(1024)) < 0:
        return False
    return quantity.exponent >= 0 or quantity.digits % 10**-quantity.exponent == 0
