"""Kubernetes' quantities in expressions: `quantity('1.5Gi').isGreaterThan(quantity('1G'))`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.memory import allocate
from noxu.cel.types.types import QUANTITY
from noxu.cel.values.values import Opaque, Value
from noxu.go import quantity as go_quantity


class QuantityValue(Opaque):
    """`computed`: a result of add or sub. Upstream cannot compare such a quantity if it is on the right side of `==`."""

    __slots__ = ("amount", "computed")
    type = QUANTITY

    def __init__(self, amount: go_quantity.Quantity, computed: bool = False) -> None:
        self.amount = amount
        self.computed = computed

    def equals(self, other: Value) -> bool:
        if not isinstance(other, QuantityValue) or other.computed:
            raise no_such_overload()
        return compare(self, other) == 0

    def __str__(self) -> str:
        return str(self.amount)


def parse(text: str) -> QuantityValue:
    try:
        return QuantityValue(go_quantity.parse(text))
    except ValueError as error:
        raise CelError(str(error)) from None


def is_quantity(text: str) -> bool:
    try:
        go_quantity.parse(text)
    except ValueError:
        return False
    return True


def compare(left: QuantityValue, right: QuantityValue) -> int:
    _announce(left.amount, right.amount)
    return go_quantity.compare(left.amount, right.amount)


def as_integer(quantity: QuantityValue) -> int:
    value = go_quantity.as_int64(quantity.amount)
    if value is None:
        raise CelError("cannot convert value to integer")
    return value


_LONG: Final = 128  # bits of two quantities and what aligns them
_MAX_ALIGNMENT: Final = 400_000  # bits; quantities that are further apart are not aligned


def _announce(left: go_quantity.Quantity, right: go_quantity.Quantity) -> None:
    """Announce what two quantities take when they are aligned: 1e99999 + 1 has 100,000 digits."""
    exponents = abs(left.exponent - right.exponent)
    bits = left.digits.bit_length() + right.digits.bit_length() + min(4 * exponents, _MAX_ALIGNMENT)
    if bits > _LONG:
        allocate(bits // 4)


_Operation = Callable[[go_quantity.Quantity, go_quantity.Quantity], go_quantity.Quantity]


def _arithmetic(operation: _Operation) -> Callable[[QuantityValue, QuantityValue | int], QuantityValue]:
    def run(left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
        other = go_quantity.Quantity(right) if isinstance(right, int) else right.amount
        _announce(left.amount, other)
        try:
            return QuantityValue(operation(left.amount, other), computed=True)
        except ValueError as error:
            raise CelError(str(error)) from None

    return run


_add: Final = _arithmetic(go_quantity.add)
_subtract: Final = _arithmetic(go_quantity.subtract)

OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("string_to_quantity", "quantity(string) -> quantity", parse),
    overload("is_quantity_string", "isQuantity(string) -> bool", is_quantity),
    overload("quantity_sign", "sign(quantity) -> int", lambda quantity: go_quantity.sign(quantity.amount)),
    overload("quantity_is_greater_than", "quantity.isGreaterThan(quantity) -> bool", lambda a, b: compare(a, b) == 1),
    overload("quantity_is_less_than", "quantity.isLessThan(quantity) -> bool", lambda a, b: compare(a, b) == -1),
    overload("quantity_compare_to", "quantity.compareTo(quantity) -> int", compare),
    overload(
        "quantity_get_float",
        "quantity.asApproximateFloat() -> double",
        lambda quantity: go_quantity.approximate_float(quantity.amount),
    ),
    overload("quantity_get_int", "quantity.asInteger() -> int", as_integer),
    overload(
        "quantity_is_integer",
        "quantity.isInteger() -> bool",
        lambda quantity: go_quantity.as_int64(quantity.amount) is not None,
    ),
    overload("quantity_add", "quantity.add(quantity) -> quantity", _add),
    overload("quantity_add_int", "quantity.add(int) -> quantity", _add),
    overload("quantity_sub", "quantity.sub(quantity) -> quantity", _subtract),
    overload("quantity_sub_int", "quantity.sub(int) -> quantity", _subtract),
]
