"""Messages of servers in plain words.

Servers answer in Go's terms, such as `json: cannot unmarshal string into Go struct field ConfigMap.data of type
map[string]string`. Commands name the field, and say what it must be. Answers over the API, and a Status in JSON output,
are unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from re import DOTALL, Match, Pattern
from typing import Final, NamedTuple

from noxu.api.field import NIL, ROOT, Path, child, index, key
from noxu.expressions import expression
from noxu.go.structs import json_type
from noxu.values import Json


class Said(NamedTuple):
    """A message, and the field that it is about ("": the whole object). `line` is in the document, 0 if there is none.

    `found`: the field has neither items nor keys of maps, and this is JSON's type of the value there.
    """

    text: str
    field: Path = ROOT
    line: int = 0
    found: str = ""

    def in_object(self, value: Json) -> Path:
        """The path of the field in the object that the message is about."""
        return located(value, self.field, self.found) if self.found and self.field else self.field


def plain(message: str) -> list[Said]:
    """What a message says, in plain words: one or several things."""
    message = without_rule(_HANDLED.sub("", message))
    if message.startswith(_STRICT):
        complaints = [say(match) for pattern, say in _COMPLAINTS for match in pattern.finditer(message)]
        if complaints:
            return complaints
    for pattern, say in (*_COMPLAINTS, *_MESSAGES):
        if match := pattern.fullmatch(message):
            return [say(match)]
    return [Said(message.replace(NIL, "null"))]


def without_rule(message: str) -> str:
    """A message about a rule without the rule as Go writes it, and without the name of a file that there is not.

    Invalid value: {"Rule":"self.b",…}: compilation failed: ERROR: <input>:1:5: undefined field 'b'
    → compilation failed: undefined field 'b'
    """
    if match := _RULE.match(message):
        _, end = _READER.raw_decode(message, match.end() - 1)
        message = message[end:].removeprefix(": ")
    return _PLACE.sub("", message)


_READER: Final = json.JSONDecoder()
_RULE: Final = expression(r'(?:Invalid value: )?\{(?="Rule":)')
_PLACE: Final = expression(r"ERROR: <input>:\d+:\d+: ")


def _mismatch(match: Match[str]) -> Said:
    actual, where, type_ = _ARTICLES.get(match["found"], match["found"]), match["where"] or "", match["type"]
    if type_ == _METADATA and not where:
        return Said(f"must be an object, not {actual}", "metadata")
    expected = next((word for pattern, word in _TYPES if pattern.fullmatch(type_)), "")
    if not expected and match["found"] == "string":  # no text, so the type is a struct
        expected = "an object"
    text = f"must be {expected}, not {actual}" if expected else f"must not be {actual}"
    return Said(text, where.partition(".")[2], found=match["found"].partition(" ")[0])


def _repeated(match: Match[str]) -> Said:
    return Said(f"the key {match['key']} is repeated; its last value counts", line=int(match["line"]))


_METADATA: Final = "v1.ObjectMeta"  # of custom resources; its errors name no field
_STRICT: Final = "strict decoding error: "
_HANDLED: Final = expression(r'^\S* in version "[^"]*" cannot be handled as a \S*: ')
_QUOTED: Final = r'"(?P<path>(?:[^"\\]|\\.)*)"'
_Saying = tuple[Pattern[str], Callable[[Match[str]], Said]]
_COMPLAINTS: Final[list[_Saying]] = [
    (expression(r"line (?P<line>\d+): key (?P<key>.*?) already set in map"), _repeated),
    (expression(f"unknown field {_QUOTED}"), lambda match: Said("unknown field", match["path"])),
    (
        expression(f"duplicate field {_QUOTED}"),
        lambda match: Said("the key is repeated; its last value counts", match["path"]),
    ),
]
_MESSAGES: Final[list[_Saying]] = [
    (
        expression(
            r"json: cannot unmarshal (?P<found>.+?) into Go (?:value|struct field (?P<where>\S+)) of type (?P<type>.+)"
        ),
        _mismatch,
    ),
    (expression(r"yaml: line \d+: (?P<why>.*)", DOTALL), lambda match: Said(f"not valid YAML: {match['why']}")),
    (expression(r"yaml: (?P<why>.*)", DOTALL), lambda match: Said(f"not valid YAML: {match['why']}")),
    (
        expression(r"(?P<why>unexpected end of JSON input|invalid character .*)", DOTALL),
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
    (expression(pattern), word)
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


# -- places -----------------------------------------------------------------------------------------------------------


def located(value: Json, field: Path, type_: str) -> Path:
    """The path of the first value of a type (`json_type`) at a field, whose path has neither items nor keys of maps.

        {a: [{b: {x: "1", y: 2}}]}    a.b, number    →    a[0].b[y]

    The field itself if there is none, or the search takes too long.
    """
    names = field.split(".")
    todo: list[tuple[Json, int, Path]] = [(value, 0, ROOT)]
    inexact = ROOT
    for _ in range(_MOST_VALUES):
        if not todo:
            break
        value, n, path = todo.pop()
        if n >= len(names) and value is not None and json_type(value) == type_:
            if n == len(names):
                return path
            inexact = inexact or path
        elif isinstance(value, list):
            todo += [(item, n, index(path, at)) for at, item in reversed(list(enumerate(value)))]
        elif isinstance(value, dict):
            below = n + 1 if n >= len(names) else n  # of a map of values of this type
            todo += [
                (inner, below, key(path, name)) for name, inner in reversed(value.items()) if below < len(names) + 2
            ]
            if n < len(names) and names[n] in value:
                todo.append((value[names[n]], n + 1, child(path, names[n])))
    return inexact or field


_MOST_VALUES: Final = 100_000
"""Of an object, that are searched for the one that a message is about."""
