"""The values of YAML scalars in go-yaml v2 (its resolve.go)."""

from __future__ import annotations

import math
import re
import struct
from calendar import monthrange
from typing import Final

from noxu.go import base64 as go_base64
from noxu.go.json import string_of
from noxu.go.text import MINUS_ZERO, RawNumber, float_json, plain
from noxu.values import MAX_INT64, MIN_INT64, Json

_WORDS: Final[dict[str, Json]] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
}
_TEXT_IN_YAML_1_2: Final = frozenset(word for word, value in _WORDS.items() if type(value) is bool) - frozenset(
    ["true", "True", "TRUE", "false", "False", "FALSE"]
)
MEANINGFUL: Final = frozenset("+-0123456789yYnNtTfFoO~.")  # any other plain scalar is a string
_MAX_UINT64: Final = 2**64 - 1
_MISSING: Final = object()
_integer: Final = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]([0-7]+)|0[bB]([01]+)|0([0-7]+)|(0|[1-9][0-9]*))"
).fullmatch
_float: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?").fullmatch
_fraction: Final = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?").fullmatch


def resolve(text: str) -> Json:
    """The value of a plain scalar: null, a boolean, an integer (of int64 or uint64), a float or a string."""
    if text and text[0] not in MEANINGFUL:
        return text
    word = _WORDS.get(text, _MISSING)
    if word is not _MISSING:
        return word
    if text[0] == ".":
        value = float(text) if _fraction(text) else math.inf
        return text if math.isinf(value) else value
    if text[0].isalpha() or text[0] == "~":
        return text
    digits = text.replace("_", "")
    if match := _integer(digits):
        number = _parse_int(match)
        if number is not None:
            return number
    if _float(digits):
        value = float(digits)
        return text if math.isinf(value) else value
    return text


def is_text(text: str) -> bool:
    """Whether go-yaml v3 reads a plain scalar as a string. For it, `yes` and `off` are strings, a date is not."""
    return text in _TEXT_IN_YAML_1_2 or (isinstance(resolve(text), str) and not is_timestamp(text))


def _parse_int(match: re.Match[str]) -> int | None:
    sign, *bases = match.groups()
    for base, digits in zip((16, 8, 2, 8, 10), bases, strict=True):
        if digits is not None and len(digits) <= _LONGEST_LITERAL:
            number = int(sign + digits, base)
            fits = MIN_INT64 <= number <= (MAX_INT64 if sign else _MAX_UINT64)
            return number if fits else None
    return None


_LONGEST_LITERAL: Final = 80  # digits; longer ones exceed int64 in any base, unless they begin with zeros

_TAGS: Final = "tag:yaml.org,2002:"
_TAGGED: Final = {f"{_TAGS}{name}": name for name in ("bool", "int", "float", "null", "timestamp")}
_BINARY_TAG: Final = f"{_TAGS}binary"
MERGE_TAG: Final = f"{_TAGS}merge"


def resolve_tagged(tag: str, text: str) -> Json:
    """A scalar with an explicit tag; unknown tags make strings. Raises ValueError."""
    if tag == _BINARY_TAG:
        try:
            return string_of(go_base64.decode(text))
        except ValueError:
            raise ValueError("!!binary value contains invalid base64 data") from None
    expected = _TAGGED.get(tag)
    if expected is None:
        return text
    value = resolve(text)
    actual = _tag_of(value)
    if expected == "float" and actual == "int" and value <= MAX_INT64:
        return float(value)
    if expected != actual and not (expected == "timestamp" and actual == "str" and is_timestamp(text)):
        raise ValueError(f"cannot decode !!{actual} `{text}` as a !!{expected}")
    return value


def _tag_of(value: Json) -> str:
    if value is None:
        return "null"
    return {bool: "bool", int: "int", float: "float"}.get(type(value), "str")


_CLOCK: Final = r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?"
_timestamp: Final = re.compile(
    rf"([0-9]{{4}})-([0-9]{{1,2}})-([0-9]{{1,2}})(?:[Tt]{_CLOCK}(?:Z|[+-]([0-9]{{2}}):([0-9]{{2}}))| {_CLOCK})?"
).fullmatch


def is_timestamp(text: str) -> bool:
    """Whether go-yaml reads the text as a point in time."""
    match = _timestamp(text)
    if not match:
        return False
    year, month, day, hour, minute, second, zone_hour, zone_minute, *spaced = (int(n or 0) for n in match.groups())
    return (
        1 <= month <= 12
        and 1 <= day <= monthrange(year or 4, month)[1]  # Go has a year 0, and it is a leap year
        and max(hour, spaced[0]) < 24
        and max(minute, second, *spaced[1:]) < 60
        and zone_hour <= 24
        and zone_minute <= 60
    )


def as_json(value: Json, *, literals: bool = False) -> Json:
    """A number after a round trip through JSON: an int if whole and within int64, else a float.

    `literals`: one that JSON writes as an integer beyond int64, or as -0, is a RawNumber, for a Go struct, whose fields
    have types. Raises ValueError for NaN and infinities.
    """
    if type(value) is int and literals and value > MAX_INT64:
        return RawNumber(str(value))
    if type(value) is int:
        return value if value <= MAX_INT64 else float(value)
    if type(value) is not float:
        return value
    text = float_json(value)
    if not math.isfinite(value):
        raise ValueError(f"json: unsupported value: {text}")
    if literals and text == MINUS_ZERO:
        return RawNumber(text)
    if "." not in text and "e" not in text and MIN_INT64 <= int(text) <= MAX_INT64:
        return int(text)
    return value


def float_key(value: float) -> str:
    """The text of a float key: go-yaml prints it as a float32."""
    if math.isnan(value):
        return ".nan"
    try:
        narrow = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        narrow = math.copysign(math.inf, value)
    if math.isinf(narrow):
        return ".inf" if narrow > 0 else "-.inf"
    for digits in range(1, 10):
        short = float(f"{narrow:.{digits}g}")
        if struct.unpack("f", struct.pack("f", short))[0] == narrow:
            return plain(short)
    return plain(narrow)
