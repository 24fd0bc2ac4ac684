"""How Go prints values and reads decimal integers.

Upstream's messages contain printed values, so they are part of the API.

`%q` (strconv.Quote), `%v`, `%#v` and `%T` of decoded JSON (fmt), and encoding/json: map keys sorted, HTML characters
escaped, floats in the shortest form, with an exponent below 1e-6 and from 1e21 on.

One loop prints values in the notation that a `Notation` describes: encoding/json, `%v`, `%#v` and structured-merge-diff
differ in brackets, separators, the order of keys and the spelling of scalars, and in nothing else. The value may be
10,000 levels deep, so the loop keeps a stack of its own.

Integers (strconv) may come from clients, and have any length.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Self, TypeAlias

from noxu.expressions import expression
from noxu.values import MAX_INT64, MIN_INT64, Json

Brackets: TypeAlias = tuple[str, str, str]
"""What opens a container, separates its members, and closes it."""


class Notation(NamedTuple):
    """How values are spelled.

    `key` gives the name of a map's member together with what separates it from the value, such as `"a":`. `scalar`
    gives everything that is neither a map nor a list.
    """

    map: Brackets
    list: Brackets
    key: Callable[[str], str]
    scalar: Callable[[Json], str]
    sort_keys: bool = True


def render(value: Json, notation: Notation) -> str:
    """The text of a value.

    In JSON's notation `{"a": [1, 2], "b": {}}` is printed in this order, with the containers that are open meanwhile:

        {           map             `{` opens the map
        "a":        map             its first key; the value is a container, so the map waits on the stack
        [ 1 , 2 ]   map, list       `]` closes the list, and the loop goes on with the map
        , "b":      map             a separator precedes every member but the first
        { }         map, map
        }                           the stack is empty: done
    """
    if not isinstance(value, (dict, list)):
        return notation.scalar(value)
    (map_open, map_separator, map_close), (list_open, list_separator, list_close), key, scalar, sort_keys = notation
    out: list[str] = []
    write = out.append
    stack: list[tuple[Json, Iterator[Json]]] = []  # open containers with their members still to be printed
    container: Json = value
    while True:
        # Open `container`.
        if isinstance(container, dict):
            write(map_open)
            members: Iterator[Json] = iter(sorted(container) if sort_keys else container)
        else:
            write(list_open)
            members = iter(container)
        separator = ""
        while True:
            # Print members up to the next container, or to the end of this one.
            inner: Json = None
            if isinstance(container, dict):
                for name in members:
                    write(separator)
                    write(key(name))
                    separator = map_separator
                    item = container[name]
                    if isinstance(item, (dict, list)):
                        inner = item
                        break
                    write(scalar(item))
            else:
                for item in members:
                    write(separator)
                    separator = list_separator
                    if isinstance(item, (dict, list)):
                        inner = item
                        break
                    write(scalar(item))
            if inner is not None:
                stack.append((container, members))
                container = inner
                break
            write(map_close if isinstance(container, dict) else list_close)
            if not stack:
                return "".join(out)
            container, members = stack.pop()
            separator = map_separator if isinstance(container, dict) else list_separator


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {'"': '\\"', "\\": "\\\\"}
_PLAIN = expression(r"[ !#-\[\]-~]*\Z")  # printable ASCII without quote and backslash


def quote(text: str) -> str:
    r"""`%q`: a Go string literal. Printable characters are kept, the rest becomes \x, \u or \U."""
    if _PLAIN.match(text):
        return f'"{text}"'
    return '"' + "".join(map(_quoted, text)) + '"'


def quote_list(texts: Iterable[str]) -> str:
    """`%q` of a list of strings: `["a" "b"]`."""
    return f"[{' '.join(map(quote, texts))}]"


def _quoted(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():  # Python and Go agree: letters, marks, numbers, punctuation, symbols, the ASCII space
        return char
    code = ord(char)
    if code < 0x80 or 0xDC80 <= code <= 0xDCFF:  # ASCII, or a byte that is not UTF-8 (surrogateescape)
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def trim_space(text: str) -> str:
    """strings.TrimSpace: without Unicode's white space at both ends. (Python's `strip` takes more for white space.)"""
    return text.strip(_SPACE)


def plain(value: Json) -> str:
    """`%v` of a string, number, boolean or null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "<nil>"
    if isinstance(value, float):
        return _float(value, low=-4, high=6, exponent_digits=2)
    return str(value)


class RawNumber(float):
    """A number with the literal that was read, which is how it is written. It is infinite if no float64 holds it."""

    __slots__ = ("literal",)

    def __new__(cls, literal: str) -> Self:
        number = super().__new__(cls, literal)
        number.literal = literal
        return number

    literal: str


def float_json(value: float) -> str:
    """A float64 as encoding/json writes it (ES6's rules): 1e-7, 1e+21, and 1 for 1.0."""
    if type(value) is RawNumber:
        return value.literal
    return _float(value, low=-6, high=21, exponent_digits=1)


MINUS_ZERO: Final = "-0"


def number_text(value: float) -> str:
    """A number as encoding/json's errors quote it: as it was sent, if that is known."""
    return str(value) if type(value) is int else float_json(value)


def _float(value: float, *, low: int, high: int, exponent_digits: int) -> str:
    """The shortest digits that read back as `value`, with an exponent if that is < low or >= high.

    repr() gives the shortest digits; they are taken apart and put together in Go's form:

        value       repr       digits  point   text (low=-6, high=21)
        0.00025     '0.00025'  '25'    -3      '0.00025'    point <= 0: zeros between the point and the digits
        1500.0      '1500.0'   '15'     4      '1500'       point beyond the digits: zeros after them
        12.5        '12.5'     '125'    2      '12.5'       point within the digits
        1.5e-07     '1.5e-07'  '15'    -6      '1.5e-7'     exponent = point - 1 = -7 < low
    """
    if math.isinf(value) or math.isnan(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    leading = len(whole + fraction) - len((whole + fraction).lstrip("0"))
    digits = (whole + fraction).strip("0")
    point = len(whole) - leading + int(exponent_text or 0)  # position of the decimal point, counted from digits[0]
    exponent = point - 1
    if exponent < low or exponent >= high:
        head = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{head}e{'-' if exponent < 0 else '+'}{abs(exponent):0{exponent_digits}d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    return f"{sign}{digits[:point]}.{digits[point:]}"


_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_HTML_CHARS = expression("[<>&\u2028\u2029]")


_to_json_string: Final = json.encoder.encode_basestring  # json.dumps without ASCII escapes, for a string


def _json_string(text: str) -> str:
    written = _to_json_string(text)
    return _HTML_CHARS.sub(lambda match: _HTML[match[0]], written) if _HTML_CHARS.search(written) else written


def _json_scalar(value: Json) -> str:
    if isinstance(value, str):
        return _json_string(value)
    if isinstance(value, float):
        return float_json(value)
    return "null" if value is None else plain(value)


_SORTED: Final = Notation(
    map=("{", ",", "}"), list=("[", ",", "]"), key=lambda name: f"{_json_string(name)}:", scalar=_json_scalar
)
_UNSORTED: Final = _SORTED._replace(sort_keys=False)


_UNESCAPED: Final = Notation(
    map=("{", ",", "}"),
    list=("[", ",", "]"),
    key=lambda name: f"{_to_json_string(name)}:",
    scalar=lambda value: _to_json_string(value) if isinstance(value, str) else _json_scalar(value),
)


def compact_json(value: Json, *, sort_keys: bool = True, escape_html: bool = True) -> str:
    """encoding/json's Marshal; without `escape_html` that of its version 2."""
    if not escape_html:
        return render(value, _UNESCAPED._replace(sort_keys=sort_keys))
    return render(value, _SORTED if sort_keys else _UNSORTED)


@dataclass(frozen=True, slots=True)
class GoValue:
    """`%v`, `%#v` and `%T` of a Go value that has no form in JSON."""

    shown: str
    syntax: str
    type: str

    def __str__(self) -> str:
        return self.shown


_DEFAULT: Final = Notation(map=("map[", " ", "]"), list=("[", " ", "]"), key=lambda name: f"{name}:", scalar=plain)


def default_format(value: Json) -> str:
    """`%v`: `map[a:[1 x <nil>] b:true]`."""
    return render(value, _DEFAULT)


def _scalar_syntax(value: Json) -> str:
    if isinstance(value, str):
        return quote(value)
    if value is None:
        return "interface {}(nil)"
    return value.syntax if isinstance(value, GoValue) else plain(value)


_SYNTAX: Final = Notation(
    map=("map[string]interface {}{", ", ", "}"),
    list=("[]interface {}{", ", ", "}"),
    key=lambda name: f"{quote(name)}:",
    scalar=_scalar_syntax,
)
_YAML_SYNTAX: Final = _SYNTAX._replace(map=("map[interface {}]interface {}{", ", ", "}"))


def go_syntax(value: Json) -> str:
    """`%#v`: `map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}, "b":true}`."""
    return render(value, _SYNTAX)


def yaml_go_syntax(value: Json) -> str:
    """`%#v` of a value as go-yaml decodes it, where keys of maps may be anything."""
    return "<nil>" if value is None else render(value, _YAML_SYNTAX)


def go_type(value: Json) -> str:
    """`%T`."""
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    if isinstance(value, GoValue):
        return value.type
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    if value is None:
        return "<nil>"
    return "int64" if isinstance(value, int) else "float64"


MAX_UINT64: Final = 2**64 - 1
_MAX_DIGITS: Final = len(str(MAX_UINT64))


def parse_int(text: str) -> int:
    """strconv.ParseInt(text, 10, 64). Raises ValueError with Go's message."""
    number = _integer(text[1:] if text[:1] in ("+", "-") else text, "ParseInt", text)
    number = -number if text.startswith("-") else number
    if not MIN_INT64 <= number <= MAX_INT64:
        raise _number_error("ParseInt", text, "value out of range")
    return number


def parse_uint(text: str, bits: int = 64) -> int:
    """strconv.ParseUint(text, 10, bits). Raises ValueError with Go's message."""
    number = _integer(text, "ParseUint", text)
    if number >= 2**bits:
        raise _number_error("ParseUint", text, "value out of range")
    return number


def _integer(digits: str, function: str, text: str) -> int:
    """The number; one above every limit if there are too many digits for Python to read at once."""
    if not (digits.isascii() and digits.isdigit()):
        raise _number_error(function, text, "invalid syntax")
    digits = digits.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MAX_DIGITS else MAX_UINT64 + 1


def _number_error(function: str, text: str, why: str) -> ValueError:
    return ValueError(f"strconv.{function}: parsing {quote(text)}: {why}")
