"""`string.format(list)`: cel-go's first version (ext/formatting.go), which prints in English as golang.org/x/text does.

    '%s has %d, %.2f'.format(['a', 3, 1234.5])   →   a has 3, 1,234.50

The verbs are s, d, f, e, b, x, X and o. Doubles are grouped by thousands. `%e` always prints six digits, and takes the
precision as the width: `%.12e` of 0.0015 is `1.500000×10⁻⁰³` (14 characters, so nothing is padded).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from noxu.cel.errors import CelError
from noxu.cel.memory import PRINTED, allocate, allocate_text
from noxu.cel.values import conversions
from noxu.cel.values.numbers import Uint
from noxu.cel.values.values import LISTS, MAPS, Value, type_of
from noxu.cpu_budget import check_cpu_budget
from noxu.go.text import quote
from noxu.values import MAX_INT64

Render: TypeAlias = Callable[[str, int | None, Value], str]  # (verb, precision, argument)

_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_DIGITS: Final = re.compile("[0-9]*")
_MAX_FRACTION: Final = 1100  # digits; no double has more after its point
_DOUBLE_NAMES: Final = ("NaN", "Infinity", "-Infinity")

_WRONG_TYPE: Final = {  # the error for an argument that a verb cannot print
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given {}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}


class FormatError(ValueError):
    """A format or an argument that is wrong. The message is cel-go's."""


def format_string(text: str, args: Value) -> str:
    def pick(index: int) -> Value:
        if index >= len(args):
            raise FormatError(f"index {index} out of range")
        return args[index]

    check_cpu_budget()
    try:
        return interpolate(text, pick, len(args), render)
    except FormatError as error:
        raise CelError(str(error)) from None


def interpolate(text: str, pick: Callable[[int], Value], size: int, show: Render) -> str:
    """Replace the clauses of a format by what `show` returns for them. Raises FormatError.

    `position` is after what was read, `used` counts the arguments, `size` is how many there are:

        "a%.2fb"   text up to "%" (1), clause ".2f" (2 to 5), and again from "b"
    """
    out: list[str] = []
    allocate_text(len(text), text)
    position, used = 0, 0
    while True:
        percent = text.find("%", position)
        if percent < 0:
            out.append(text[position:])
            return "".join(out)
        out.append(text[position:percent])
        position = percent + 1
        if text.startswith("%", position):
            out.append("%")
            position += 1
            continue
        argument = pick(used)
        if position >= len(text):
            raise FormatError("unexpected end of string")
        if used >= size:
            raise FormatError(f"index {used} out of range")
        verb, precision, position = _clause(text, position)
        try:
            shown = show(verb, precision, argument)
            allocate_text(len(shown), shown)
            out.append(shown)
        except FormatError as error:
            raise _during_formatting(error) from None
        used += 1


def _during_formatting(error: FormatError) -> FormatError:
    error.args = (f"error during formatting: {error}", *error.args[1:])
    return error


def _clause(text: str, position: int) -> tuple[str, int | None, int]:
    """The verb and precision of the clause at `position`, and the position after it: (".2f", 0) → ("f", 2, 3)."""
    bad = "could not parse formatting clause: "
    precision: int | None = None
    if text[position] == ".":
        digits = _DIGITS.match(text, position + 1)[0]  # type: ignore[index]
        position += 1 + len(digits)
        bad_precision = f"{bad}error while parsing precision: "
        if position >= len(text):
            raise FormatError(f"{bad_precision}could not find end of precision specifier")
        if not digits or len(digits.lstrip("0")) > 19 or int(digits[-19:]) > MAX_INT64:
            why = "value out of range" if digits else "invalid syntax"
            raise FormatError(
                f"{bad_precision}error while converting precision to integer: strconv.Atoi: parsing {quote(digits)}: {why}"
            )
        precision = int(digits[-19:])
    verb = text[position]
    if verb not in _WRONG_TYPE:
        byte = verb.encode("utf-8", "surrogatepass")[:1].decode("latin-1")  # upstream reads a byte
        raise FormatError(f'{bad}unrecognized formatting clause "{byte}"')
    return verb, precision, position + 1


def wrong_type(verb: str, type_name: str) -> FormatError:
    return FormatError(_WRONG_TYPE[verb].format(type_name))


def render(verb: str, precision: int | None, value: Value) -> str:
    match verb:
        case "s":
            return to_text(value)
        case "d" if type(value) in (int, Uint):
            return int.__repr__(value)
        case "f" | "e" if type(value) is float or value in _DOUBLE_NAMES:
            number = float(value)
            return fixed(number, precision) if verb == "f" else scientific(number, precision)
        case "b" if isinstance(value, int):
            return f"{value:b}"
        case "o" if type(value) in (int, Uint):
            return f"{value:o}"
        case "x" | "X" if type(value) in (int, Uint, str, bytes):
            return _hex(verb, value)
    raise wrong_type(verb, type_of(value).name)


def _hex(verb: str, value: Value) -> str:
    if isinstance(value, int):
        return format(value, verb)
    allocate(PRINTED + 4 * len(value))
    data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return str(data.hex().upper() if verb == "X" else data.hex())


def to_text(value: Value) -> str:
    """`%s`."""
    if isinstance(value, LISTS):
        allocate(PRINTED * (len(value) + 1))
        return f"[{', '.join(map(_inner, value))}]"
    if isinstance(value, MAPS):
        return _map(value)
    if value is None:
        return "null"
    try:
        return conversions.to_string(value)
    except CelError:
        raise wrong_type("s", type_of(value).name) from None


def _inner(value: Value) -> str:
    """`%s` of an element of a list or map."""
    kind = type_of(value).name
    if kind in ("string", "bytes"):
        allocate(PRINTED + 4 * len(value))
    match kind:
        case "string":
            return quote(value)
        case "bytes":
            return f"b{quote(conversions.to_string(value))}"
        case "google.protobuf.Timestamp" | "google.protobuf.Duration":
            return f"{kind.rpartition('.')[2].lower()}({quote(str(value))})"
        case "double":
            text = f"{value:.6f}" if math.isfinite(value) else conversions.to_string(value)
            return text if math.isfinite(value) else quote(text)
        case "list" | "map" | "int" | "uint" | "bool" | "null_type" | "type":
            return to_text(value)
    raise FormatError(f"no formatting function for {kind}")


def _map(value: Value) -> str:
    pairs: list[tuple[str, str]] = []
    allocate(3 * PRINTED * (len(value) + 1))
    for key in value:
        kind = type_of(key).name
        if kind not in ("string", "bool", "int", "uint"):
            raise FormatError(f"no formatting function for map key of type {kind}")
        pairs.append((_inner(key), _inner(value.find(key))))
    pairs.sort(key=lambda pair: pair[0].encode("utf-8", "surrogatepass"))
    return f"{{{', '.join(f'{key}:{inner}' for key, inner in pairs)}}}"


def fixed(value: float, precision: int | None) -> str:
    """`%f`. With a precision above 255, x/text pads the fraction with zeros to the precision modulo 256."""
    if not math.isfinite(value):
        return _not_finite(value)
    places = 6 if precision is None else precision
    text = f"{abs(value) if value == 0 else value:,.{min(places, _MAX_FRACTION)}f}"
    if places < 256:
        return text
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0").ljust(places % 256, "0")
    return f"{whole}.{fraction}" if fraction else whole


def scientific(value: float, width: int | None) -> str:
    """`%e`."""
    if not math.isfinite(value):
        text = _not_finite(value)
    else:
        mantissa, _, exponent = f"{abs(value) if value == 0 else value:.6e}".partition("e")
        text = f"{mantissa}×10{exponent.removeprefix('+').translate(_SUPERSCRIPT)}"
    width = min(6 if width is None else width, 1_000_000)
    allocate(PRINTED + width)
    return text.rjust(width)


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def check(text: str, arg_count: int, check_argument: Callable[[str, int], None]) -> int:
    """Validate a literal format that has a literal list of `arg_count` arguments. Returns how many of them it uses.

    `check_argument(verb, index)` raises FormatError for an argument that the verb cannot print.
    """
    used = 0

    def pick(index: int) -> int:
        nonlocal used
        used += 1
        return index

    def show(verb: str, _: int | None, index: int) -> str:
        check_argument(verb, index)
        return ""

    interpolate(text, pick, arg_count, show)
    return used
