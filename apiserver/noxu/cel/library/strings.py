"""cel-go's string extensions, version 2 (ext/strings.go). Positions count code points."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from noxu.cel.errors import CelError
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.library.formatting import format_string
from noxu.cel.memory import ELEMENT, LIST, TEXT, allocate, allocate_text
from noxu.cel.values.conversions import go_value
from noxu.cel.values.values import Value
from noxu.go.text import trim_space

_LOWER: Final = str.maketrans({chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)})
_UPPER: Final = str.maketrans({chr(code + 32): chr(code) for code in range(ord("A"), ord("Z") + 1)})
_QUOTED: Final = str.maketrans({
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"',
})  # fmt: skip


def _out_of_range(position: int) -> CelError:
    return CelError(f"index out of range: {position}")


def char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _out_of_range(position)
    return text[position : position + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    return text.find(part, start)


def last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    if len(text.encode("utf-8", "surrogatepass")) < len(part.encode("utf-8", "surrogatepass")):
        return -1
    return last_index_before(text, part, len(text) - 1)


_LONG: Final = 64  # characters of a part for which Python's own search from the end may be slow


def last_index_before(text: str, part: str, start: int) -> int:
    """The last index of `part` at or before `start`; -1 if `start` is beyond the end of the text."""
    if start < 0:
        raise _out_of_range(start)
    if not part:
        return min(start, len(text))
    if start >= len(text):
        return -1
    if len(part) < _LONG:
        return text.rfind(part, 0, start + len(part))
    # `rfind` takes the product of both lengths, `find` their sum.
    before = text[: start + len(part)]
    allocate_text(2 * len(before) + len(part), before, part)
    found = before[::-1].find(part[::-1])
    return found if found < 0 else len(before) - found - len(part)


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    if len(new) <= len(old):
        allocate_text(len(text), text, new)
    else:
        found = text.count(old)
        found = found if count < 0 else min(found, count)
        allocate_text(len(text) + found * (len(new) - len(old)), text, new)
    return text.replace(old, new, max(count, -1))


def split(text: str, separator: str, count: int = -1) -> list[Value]:
    """Go's strings.SplitN: at most `count` parts, any number if it is negative. An empty separator splits characters."""
    if count == 0:
        return []
    parts = (text.count(separator) if separator else len(text)) + 1
    parts = parts if count < 0 else min(parts, count)
    allocate(LIST + (ELEMENT + TEXT) * parts)
    allocate_text(len(text), text)
    if separator:
        return list(text.split(separator, count - 1 if count > 0 else -1))
    if count < 0 or count >= len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def substring(text: str, start: int, end: int | None = None) -> str:
    allocate_text(max((len(text) if end is None else end) - start, 0), text)
    if end is None:
        if not 0 <= start <= len(text):
            raise _out_of_range(start)
        return text[start:]
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise _out_of_range(position)
    return text[start:end]


def quote(text: str) -> str:
    allocate_text(2 * len(text), text)
    return f'"{text.translate(_QUOTED)}"'


def _in_case(mapping: dict[int, str]) -> Callable[[str], str]:
    def run(text: str) -> str:
        allocate_text(len(text), text)
        return text.translate(mapping)

    return run


def trim(text: str) -> str:
    allocate_text(len(text), text)
    return trim_space(text)


def join(parts: Iterable[Value], separator: str = "") -> str:
    out = []
    for part in parts:
        if type(part) is not str:
            shown = 0 if part is None else go_value(part)
            raise CelError(f"join: invalid input: {shown}")
        out.append(part)
    allocate_text(sum(map(len, out)) + len(separator) * len(out), separator, *out)
    return separator.join(out)


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("string_char_at_int", "string.charAt(int) -> string", char_at),
    overload("string_index_of_string", "string.indexOf(string) -> int", index_of),
    overload("string_index_of_string_int", "string.indexOf(string, int) -> int", index_of),
    overload("string_last_index_of_string", "string.lastIndexOf(string) -> int", last_index_of),
    overload("string_last_index_of_string_int", "string.lastIndexOf(string, int) -> int", last_index_before),
    overload("string_lower_ascii", "string.lowerAscii() -> string", _in_case(_LOWER)),
    overload("string_replace_string_string", "string.replace(string, string) -> string", replace),
    overload("string_replace_string_string_int", "string.replace(string, string, int) -> string", replace),
    overload("string_split_string", "string.split(string) -> list(string)", split),
    overload("string_split_string_int", "string.split(string, int) -> list(string)", split),
    overload("string_substring_int", "string.substring(int) -> string", substring),
    overload("string_substring_int_int", "string.substring(int, int) -> string", substring),
    overload("string_trim", "string.trim() -> string", trim),
    overload("string_upper_ascii", "string.upperAscii() -> string", _in_case(_UPPER)),
    overload("string_format", "string.format(list(dyn)) -> string", format_string),
    overload("strings_quote", "strings::quote(string) -> string", quote),
    overload("list_join", "list(string).join() -> string", join),
    overload("list_join_string", "list(string).join(string) -> string", join),
]
