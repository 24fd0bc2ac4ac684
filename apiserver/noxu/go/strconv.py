"""Decimal integers in texts, as Go's strconv reads them. The texts may come from clients, and have any length."""

from __future__ import annotations

from typing import Final

from noxu.go.text import quote
from noxu.values import MAX_INT64, MIN_INT64

MAX_UINT64: Final = 2**64 - 1
_MAX_DIGITS: Final = len(str(MAX_UINT64))


def parse_int(text: str) -> int:
    """strconv.ParseInt(text, 10, 64). Raises ValueError with Go's message."""
    number = _digits(text[1:] if text[:1] in ("+", "-") else text, "ParseInt", text)
    number = -number if text.startswith("-") else number
    if not MIN_INT64 <= number <= MAX_INT64:
        raise _error("ParseInt", text, "value out of range")
    return number


def parse_uint(text: str, bits: int = 64) -> int:
    """strconv.ParseUint(text, 10, bits). Raises ValueError with Go's message."""
    number = _digits(text, "ParseUint", text)
    if number >= 2**bits:
        raise _error("ParseUint", text, "value out of range")
    return number


def _digits(digits: str, function: str, text: str) -> int:
    """The number; one above every limit if there are too many digits for Python to read at once."""
    if not (digits.isascii() and digits.isdigit()):
        raise _error(function, text, "invalid syntax")
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MAX_DIGITS else MAX_UINT64 + 1


def _error(function: str, text: str, why: str) -> ValueError:
    return ValueError(f"strconv.{function}: parsing {quote(text)}: {why}")
