"""How Go prints values: upstream's messages contain them, so they are part of the API.

`%q` (strconv.Quote), `%v` of numbers and booleans (fmt), and encoding/json: map keys sorted, HTML characters escaped,
floats in the shortest form, with an exponent below 1e-6 and from 1e21 on.
"""

from __future__ import annotations

import json
import math
import re

from apiserver.api.types import Json

_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {'"': '\\"', "\\": "\\\\"}
_PLAIN = re.compile(r"[ !#-\[\]-~]*\Z")  # printable ASCII without quote and backslash


def quote(text: str) -> str:
    r"""`%q`: a Go string literal. Printable runes stay as they are, the rest becomes \x, \u or \U."""
    if _PLAIN.match(text):
        return f'"{text}"'
    return '"' + "".join(map(_quoted, text)) + '"'


def _quoted(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():  # Python and Go agree: letters, marks, numbers, punctuation, symbols, the ASCII space
        return char
    code = ord(char)
    if code < 0x80 or 0xDC80 <= code <= 0xDCFF:  # of ASCII, or a byte that is no UTF-8 (surrogateescape)
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain(value: Json) -> str:
    """`%v` of a string, number, boolean or null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "<nil>"
    if isinstance(value, float):
        return _float(value, low=-4, high=6, exponent_digits=2)
    return str(value)


def float_json(value: float) -> str:
    """A float64 as encoding/json writes it (ES6's rules): 1e-7, 1e+21, and 1 for 1.0."""
    return _float(value, low=-6, high=21, exponent_digits=1)


def _float(value: float, *, low: int, high: int, exponent_digits: int) -> str:
    """The shortest digits that read back as `value`; an exponent where it is < low or >= high."""
    if math.isinf(value) or math.isnan(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent_text = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    leading = len(whole + fraction) - len((whole + fraction).lstrip("0"))
    digits = (whole + fraction).strip("0")
    point = len(whole) - leading + int(exponent_text or 0)  # where the decimal point stands, counted from digits[0]
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
_HTML_CHARS = re.compile("[<>&\u2028\u2029]")


def compact_json(value: Json, *, sort_keys: bool = True) -> str:
    """encoding/json's Marshal. Works without recursion: how deep a value is, is the client's choice (up to 10 000)."""
    out: list[str] = []
    todo: list[tuple[bool, Json]] = [(False, value)]  # (is it finished text?, text or value), last one first
    while todo:
        finished, item = todo.pop()
        if finished:
            out.append(item)
        elif isinstance(item, dict):
            todo.append((True, "}"))
            keys = sorted(item, reverse=True) if sort_keys else list(reversed(item))
            for n, key in enumerate(keys, 1):
                todo += ((False, item[key]), (True, f"{'{' if n == len(keys) else ','}{_json_string(key)}:"))
            if not keys:
                out.append("{")
        elif isinstance(item, list):
            todo.append((True, "]"))
            for n, element in enumerate(reversed(item), 1):
                todo += ((False, element), (True, "[" if n == len(item) else ","))
            if not item:
                out.append("[")
        elif isinstance(item, str):
            out.append(_json_string(item))
        elif isinstance(item, float):
            out.append(float_json(item))
        else:
            out.append("null" if item is None else plain(item))
    return "".join(out)


def _json_string(text: str) -> str:
    return _HTML_CHARS.sub(lambda match: _HTML[match[0]], json.dumps(text, ensure_ascii=False))
