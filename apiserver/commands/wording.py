"""Messages of servers in plain words.

Servers answer in Go's terms, such as `json: cannot unmarshal string into Go struct field ConfigMap.data of type
map[string]string`. Commands print which field that is about, and what it must be. A Status in JSON output is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from noxu.apiserver.api.field import NIL, ROOT, Path
from noxu.apiserver.records import NamedTuple


class Said(NamedTuple):
    """A message, and the field that it is about ("": the whole object). `line` is in the document, 0 if there is none."""

    text: str
    field: Path = ROOT
    line: int = 0


def plain(message: str) -> list[Said]:
    """What a message says, in plain words: one or several things."""
    message = _HANDLED.sub("", message)
    if message.startswith(_STRICT):
        found = [say(match) for pattern, say in _COMPLAINTS for match in pattern.finditer(message)]
        if found:
            return found
    for pattern, say in (*_COMPLAINTS, *_MESSAGES):
        if match := pattern.fullmatch(message):
            return [say(match)]
    return [Said(message.replace(NIL, "null"))]


def _mismatch(match: re.Match[str]) -> Said:
    found, where, type_ = _ARTICLES.get(match["found"], match["found"]), match["where"] or "", match["type"]
    if type_ == _METADATA and not where:
        return Said(f"must be an object, not {found}", "metadata")
    expected = next((word for pattern, word in _TYPES if pattern.fullmatch(type_)), "")
    if not expected and match["found"] == "string":  # no text, so the type is a struct
        expected = "an object"
    text = f"must be {expected}, not {found}" if expected else f"must not be {found}"
    return Said(text, where.partition(".")[2])


def _repeated(match: re.Match[str]) -> Said:
    return Said(f"the key {match['key']} is repeated; its last value counts", line=int(match["line"]))


_METADATA: Final = "v1.ObjectMeta"  # of custom resources; its errors name no field
_STRICT: Final = "strict decoding error: "
_HANDLED: Final = re.compile(r'^\S* in version "[^"]*" cannot be handled as a \S*: ')
_QUOTED: Final = r'"(?P<path>(?:[^"\\]|\\.)*)"'
_Saying = tuple[re.Pattern[str], Callable[[re.Match[str]], Said]]
_COMPLAINTS: Final[list[_Saying]] = [
    (re.compile(r"line (?P<line>\d+): key (?P<key>.*?) already set in map"), _repeated),
    (re.compile(f"unknown field {_QUOTED}"), lambda match: Said("unknown field", match["path"])),
    (
        re.compile(f"duplicate field {_QUOTED}"),
        lambda match: Said("the key is repeated; its last value counts", match["path"]),
    ),
]
_MESSAGES: Final[list[_Saying]] = [
    (
        re.compile(
            r"json: cannot unmarshal (?P<found>.+?) into Go (?:value|struct field (?P<where>\S+)) of type (?P<type>.+)"
        ),
        _mismatch,
    ),
    (re.compile(r"yaml: line \d+: (?P<why>.*)", re.DOTALL), lambda match: Said(f"not valid YAML: {match['why']}")),
    (re.compile(r"yaml: (?P<why>.*)", re.DOTALL), lambda match: Said(f"not valid YAML: {match['why']}")),
    (
        re.compile(r"(?P<why>unexpected end of JSON input|invalid character .*)", re.DOTALL),
        lambda match: Said(f"not valid JSON: {match['why']}"),
    ),
]
_ARTICLES: Final = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "number": "a number",
    "bool": "a boolean",
}
_TYPES: Final = [
    (re.compile(pattern), word)
    for pattern, word in (
        (r"string|types\.UID", "a string"),
        (r"bool", "a boolean"),
        (r"u?int\d*", "an integer"),
        (r"float\d+", "a number"),
        (r"\[\]uint8", "a string in base64"),
        (r"\[\].*", "a list"),
        (r"map\[.*|v1\.ObjectMeta", "an object"),
        (r"v1\.(Micro)?Time", "a time, such as 2026-01-31T12:00:00Z"),
        (r"v1\.Duration", "a duration, such as 1h30m"),
        (r"resource\.Quantity", "a quantity, such as 500m or 2Gi"),
        (r"intstr\.IntOrString", "an integer or a string"),
    )
]
