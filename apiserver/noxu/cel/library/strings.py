"""cel-go's string extensions, version 2 (ext/strings.go). Positions count code points.

Kubernetes adds find and findAll, matches of RE2 patterns, and named formats: `format.dns1123Label().validate(text)`,
`format.named('uuid')`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Final

from noxu.api import names
from noxu.cel.errors import CelError, no_such_overload
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.library.formatting import format_string
from noxu.cel.library.standard import compile_pattern
from noxu.cel.memory import ELEMENT, LIST, TEXT, allocate, allocate_text
from noxu.cel.types.types import FORMAT
from noxu.cel.values.conversions import go_value
from noxu.cel.values.values import NONE, Opaque, Optional, Value
from noxu.cpu_budget import check_cpu_budget
from noxu.go import url as go_url
from noxu.go.text import trim_space
from noxu.schema import formats
from noxu.schema.patterns import Pattern

_MATCHES_PER_CHECK: Final = 16  # of the CPU budget


def _compiled(pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern)
    except CelError as error:
        raise CelError(f"Illegal regex: {error.message}") from None


def find(text: str, pattern: str) -> str:
    match = _compiled(pattern).find(text) or ""
    allocate_text(len(match), match)
    return match


def find_all(text: str, pattern: str, count: int = -1) -> list[Value]:
    matches = _compiled(pattern).find_all(text)
    texts: list[Value] = []
    for match in matches if count < 0 else islice(matches, count):
        allocate_text(len(match), match)
        texts.append(match)
        if not len(texts) % _MATCHES_PER_CHECK:  # finding a match may have taken a pass over the whole text
            check_cpu_budget()
    return texts


REGEX: Final[list[tuple[str, Overload]]] = [
    overload("string_find_string", "string.find(string) -> string", find),
    overload("string_find_all_string", "string.findAll(string) -> list(string)", find_all),
    overload("string_find_all_string_int", "string.findAll(string, int) -> list(string)", find_all),
]


class NamedFormat(Opaque):
    """`find_errors` returns what is wrong with a text. `pattern_size` is the length of a pattern that would cost as much."""

    __slots__ = ("find_errors", "name", "pattern_size")
    type = FORMAT

    def __init__(self, name: str, find_errors: Callable[[str], list[str]], pattern_size: int) -> None:
        self.name = name
        self.find_errors = find_errors
        self.pattern_size = pattern_size

    def equals(self, other: Value) -> bool:
        if not isinstance(other, NamedFormat):
            raise no_such_overload()
        return self.name == other.name


def _uri(text: str) -> list[str]:
    try:
        go_url.parse_request_uri(text)
    except ValueError as error:
        return [str(error)]
    return []


def _schema_format(name: str, message: str) -> Callable[[str], list[str]]:
    """A format of schemas, which has one error."""

    def check(text: str) -> list[str]:
        is_valid = formats.checker(name)
        assert is_valid is not None
        return [] if is_valid(text) else [message]

    return check


NAMED: Final[dict[str, NamedFormat]] = {
    "dns1123Label": NamedFormat("DNS1123Label", names.label_name, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", names.subdomain_name, 60),
    "dns1035Label": NamedFormat("DNS1035Label", names.label_1035_name, 30),
    "qualifiedName": NamedFormat("QualifiedName", names.qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", partial(names.label_name, prefix=True), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", partial(names.subdomain_name, prefix=True), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", partial(names.label_1035_name, prefix=True), 30),
    "labelValue": NamedFormat("LabelValue", names.label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", _schema_format("uuid", "does not match the UUID format"), 70),
    "byte": NamedFormat("byte", _schema_format("byte", "invalid base64"), 84),
    "date": NamedFormat("date", _schema_format("date", "invalid date"), 71),
    "datetime": NamedFormat("datetime", _schema_format("datetime", "invalid datetime"), 71),
}


def validate(format_: NamedFormat, text: str) -> Optional:
    errors = format_.find_errors(text)
    return Optional(errors) if errors else NONE


def named(name: str) -> Optional:
    format_ = NAMED.get(name)
    return NONE if format_ is None else Optional(format_)


def _constant(name: str) -> tuple[str, Overload]:
    return overload(f"format.{name}", f"format::{name}() -> format", lambda: NAMED[name])


FORMATS: Final[list[tuple[str, Overload]]] = [
    overload("format-validate", "format.validate(string) -> optional(list(string))", validate),
    overload("format-named", "format::named(string) -> optional(format)", named),
    *map(_constant, NAMED),
]


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
    index = before[::-1].find(part[::-1])
    return index if index < 0 else len(before) - index - len(part)


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    if len(new) <= len(old):
        allocate_text(len(text), text, new)
    else:
        occurrences = text.count(old)
        occurrences = occurrences if count < 0 else min(occurrences, count)
        allocate_text(len(text) + occurrences * (len(new) - len(old)), text, new)
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
