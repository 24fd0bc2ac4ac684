r"""JSON as Go reads it: the exact reader behind the fast one in `api.codec`.

It accepts what sigs.k8s.io/json accepts (UnmarshalStrict into an untyped value) and reports the same errors:

- a byte sequence that is not UTF-8 becomes U+FFFD byte by byte, a lone surrogate escape becomes U+FFFD;
- an integer literal within int64 is an int, every other number a float; one that no float64 can hold is an error;
- the last of several equal keys wins, and each repetition is reported once, at most 100 of them;
- nesting is limited to 10,000 levels, and nothing here recurses;
- syntax errors are encoding/json's, and take precedence over all others.
"""

from __future__ import annotations

import math
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C scanner of one string
from typing import Final, NamedTuple, NoReturn

from noxu.expressions import expression
from noxu.go.structs import MAX_STRICT_ERRORS
from noxu.go.text import MINUS_ZERO, RawNumber, quote
from noxu.values import MAX_INT64, MIN_INT64, Json, Object

MAX_DEPTH: Final = 10_000  # Go's decoder refuses more


class JsonSyntaxError(ValueError):
    """The message is encoding/json's, such as `unexpected end of JSON input`."""


class DecodedJson(NamedTuple):
    """`error` is about the first number that no float64 holds, "" if all fit; the value there is null or a RawNumber.

    `duplicates` are the paths of repeated keys (`spec.a[0].b`). `members` are the root object's keys and values in
    document order, repetitions included.
    """

    value: Json
    error: str
    duplicates: list[str]
    members: list[tuple[str, Json]]


# The common case in one match each: a key without escapes and its colon, or a value and the comma after it.
# Possessive quantifiers (`*+`) never backtrack, so a malformed document costs no more than a good one.
_member: Final = expression(r'[ \t\n\r]*+"([^"\\\x00-\x1f\ud800-\udfff]*+)"[ \t\n\r]*+:')
_value: Final = expression(
    r"[ \t\n\r]*+(?:"
    r'"([^"\\\x00-\x1f\ud800-\udfff]*+)"'
    r"|(-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+)(?![.eE])"
    r"|(true|false|null)"
    r"|([\[{]))"
    r"(?:[ \t\n\r]*+(,))?+"
)
_number: Final = expression(r"-?+(?:0|[1-9][0-9]*+)(\.[0-9]++)?+([eE][+-]?+[0-9]++)?+")
_good_string: Final = expression(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_hex: Final = expression(r"[0-9a-fA-F]*+")
_mark: Final = expression(r"[ \t\n\r]*+([,:\]}]?+)")
_surrogate: Final = expression("[\ud800-\udfff]")
_OPENING: Final = 4
_LITERALS: Final[dict[str, Json]] = {"true": True, "false": False, "null": None}


def read(
    body: bytes, *, raw_numbers: bool = False, literals: bool = False, keep_repetitions: bool = False
) -> DecodedJson:
    """Read one JSON text. Raises JsonSyntaxError.

    `raw_numbers`: numbers that no float64 holds are RawNumbers, not null. `literals`: so are -0 and all numbers beyond
    int64 or with a fraction, and none is an error, for a Go struct, whose fields have types. `keep_repetitions`: all of
    several equal keys are in the value, the others than the last as OverriddenKey.
    """
    text = body.decode("utf-8", "surrogateescape")
    reader = _Reader(text, raw_numbers=raw_numbers, literals=literals, keep_repetitions=keep_repetitions)
    return reader.read()


class OverriddenKey(str):
    """A key of an object that the same key overrides later in the text. It equals no other key.

    {"a":1,"b":2,"a":3} is {OverriddenKey("a"): 1, "b": 2, "a": 3}, which is written as it was read.
    """

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__
    __ne__ = object.__ne__


def drop_overridden(value: Json) -> None:
    """Remove the members with an OverriddenKey, in place."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            for key in [key for key in item if type(key) is OverriddenKey]:
                del item[key]
            todo += item.values()
        elif isinstance(item, list):
            todo += item


def has_raw_number(value: Json) -> bool:
    """Whether there is a RawNumber in a value."""
    return _has(RawNumber, value)


def first_raw_number(value: Json) -> RawNumber | None:
    """The first RawNumber in a value, in the order of its text."""
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is RawNumber:
            return item
        if isinstance(item, (dict, list)):
            todo += reversed([*item.values()] if isinstance(item, dict) else item)
    return None


def has_float(value: Json) -> bool:
    """Whether there is a float in a value."""
    return _has(float, value)


def _has(kind: type, value: Json) -> bool:
    todo = [value]
    while todo:
        item = todo.pop()
        if type(item) is kind:
            return True
        if isinstance(item, (dict, list)):
            todo += item.values() if isinstance(item, dict) else item
    return False


def string_of(body: bytes) -> str:
    """Bytes as Go's JSON encoder writes a string: each byte that is not UTF-8 becomes U+FFFD."""
    return _surrogate.sub("\ufffd", body.decode("utf-8", "surrogateescape"))


class _Reader:
    """A cursor over the text, and a stack of the containers that are open at it.

    Each container's location in the document is a number, interned in `numbered` by (parent's number, key or index); 0
    is the root. So a repeated key is reported once, and paths are written only at the end. After `{"a":[{"b":1,"b":2`:

        stack     [{"a": …}, [{…}], {"b": 2}]
        numbered  {(0, "a"): 1, (1, 0): 2}          `.a` is 1, `.a[0]` is 2
        places    [0, 1, 2]                         the numbers of the open containers
        repeated  {(2, "b"): None}                  printed as `a[0].b`

    With `keep_repetitions`, `members` has the containers with repeated keys by their id, and all their members.
    """

    def __init__(self, text: str, *, raw_numbers: bool, literals: bool, keep_repetitions: bool) -> None:
        self.text = text
        self.raw_numbers = raw_numbers
        self.literals = literals
        self.keep_repetitions = keep_repetitions
        self.members: dict[int, tuple[Object, list[tuple[str, Json]]]] = {}
        self.stack: list[Json] = []
        self.places: list[int] = []
        self.numbered: dict[tuple[int, str | int], int] = {}
        self.repeated: dict[tuple[int, str], None] = {}
        self.error = ""

    def read(self) -> DecodedJson:
        text, stack, places, numbered = self.text, self.stack, self.places, self.numbered
        members: list[tuple[str, Json]] = []
        root: Json = None
        container: Json = None
        in_object = False
        key = ""
        position = 0
        while True:
            # A key, if the innermost container is an object.
            if in_object:
                if match := _member.match(text, position):
                    key, position = match[1], match.end()
                else:
                    key, position = self.unusual_key(position)
                if key in container:
                    if len(self.repeated) < MAX_STRICT_ERRORS:
                        self.repeated[places[-1], key] = None
                    if self.keep_repetitions and id(container) not in self.members:
                        self.members[id(container)] = container, list(container.items())

            # A value, or the beginning of one.
            match = _value.match(text, position)
            opening = comma = None
            if match is None:
                item, position = self.unusual_value(position)
            else:
                string, number, literal, opening, comma = match.groups()
                position = match.end()
                if string is not None:
                    item = string
                elif number is not None:
                    item = self.number(number)
                elif literal is not None:
                    item = _LITERALS[literal]
                else:
                    position = match.end(_OPENING)
                    if len(stack) == MAX_DEPTH:
                        raise self.refused(position - 1, "exceeded max depth")
                    item = {} if opening == "{" else []

            if in_object:
                container[key] = item
                if len(stack) == 1:
                    members.append((key, item))
                if self.members and id(container) in self.members:
                    self.members[id(container)][1].append((key, item))
            elif stack:
                container.append(item)
            else:
                root = item

            # Where the next key or value begins: in the new container, after a comma, or after closing brackets.
            if opening is not None:
                if stack:
                    place = (places[-1], key if in_object else len(container) - 1)
                    places.append(numbered.setdefault(place, len(numbered) + 1))
                else:
                    places.append(0)
                stack.append(item)
                container, in_object = item, type(item) is dict
                mark = _mark.match(text, position)
                if mark is None or mark[1] != ("}" if in_object else "]"):
                    continue  # to the first member
            elif comma is not None and stack:
                continue
            elif comma is not None:
                position -= 1  # a comma after the document is an error

            while stack:
                mark = _mark.match(text, position)
                assert mark is not None  # it matches everything
                if mark[1] == ",":
                    position = mark.end()
                    break
                if mark[1] != ("}" if in_object else "]"):
                    raise self.refused(
                        mark.start(1), f"after {'object key:value pair' if in_object else 'array element'}"
                    )
                position = mark.end()
                stack.pop()
                places.pop()
                if stack:
                    container = stack[-1]
                    in_object = type(container) is dict
            else:
                break  # the root is closed

        mark = _mark.match(text, position)
        if mark is not None and mark.start(1) < len(text):
            raise self.refused(mark.start(1), "after top-level value")
        self.put_repetitions()
        return DecodedJson(root, self.error, self.duplicates(), members)

    def number(self, literal: str) -> Json:
        """An integer literal within int64 as int, any other number as float. What no float64 holds is an error."""
        if len(literal) <= _LONGEST_INT64 and not ("." in literal or "e" in literal or "E" in literal):
            integer = int(literal)
            if MIN_INT64 <= integer <= MAX_INT64 and not (self.literals and literal == MINUS_ZERO):
                return integer
        if self.literals:
            return RawNumber(literal)
        value = float(literal)
        if value in (math.inf, -math.inf):
            self.error = self.error or f"json: cannot unmarshal number {literal} into Go value of type float64"
            return RawNumber(literal) if self.raw_numbers else None
        return value

    def unusual_key(self, position: int) -> tuple[str, int]:
        """A key with escapes or bad UTF-8, or an error."""
        start = self.skip_space(position)
        if self.text[start : start + 1] != '"':
            raise self.refused(start, "looking for beginning of object key string")
        key, position = self.string(start)
        position = self.skip_space(position)
        if self.text[position : position + 1] != ":":
            raise self.refused(position, "after object key")
        return key, position + 1

    def unusual_value(self, position: int) -> tuple[Json, int]:
        """A string with escapes or bad UTF-8; anything else is an error, which Go finds at a certain character."""
        start = self.skip_space(position)
        char = self.text[start : start + 1]
        if char == '"':
            return self.string(start)
        if char in _WORDS and char:
            return self.word(start, _WORDS[char])
        number = _number.match(self.text, start)
        if number is None:
            if char != "-":
                raise self.refused(start, "looking for beginning of value")
            raise self.refused(start + 1, "in numeric literal")
        end = number.end()
        fraction, exponent = number.groups()
        if self.text[end] == "." and not fraction and not exponent:
            raise self.refused(end + 1, "after decimal point in numeric literal")
        if self.text[end] in "eE" and not exponent:
            signed = self.text[end + 1 : end + 2] in ("+", "-")
            raise self.refused(end + 1 + signed, "in exponent of numeric literal")
        return self.number(number[0]), end

    def word(self, start: int, word: str) -> NoReturn:
        """The error in a misspelled `true`, `false` or `null`."""
        for n, expected in enumerate(word):
            if self.text[start + n : start + n + 1] != expected:
                raise self.refused(start + n, f"in literal {word} (expecting '{expected}')")
        raise AssertionError(word)

    def string(self, start: int) -> tuple[str, int]:
        try:
            value, end = scanstring(self.text, start + 1, True)
        except JSONDecodeError:
            raise self.bad_string(start) from None
        return _surrogate.sub("\ufffd", value), end

    def bad_string(self, start: int) -> JsonSyntaxError:
        good = _good_string.match(self.text, start)
        assert good is not None  # there is a quotation mark at start
        end = good.end()
        if self.text[end : end + 1] != "\\":
            return self.refused(end, "in string literal")
        if self.text[end + 1 : end + 2] != "u":
            return self.refused(end + 1, "in string escape code")
        digits = _hex.match(self.text, end + 2)
        assert digits is not None  # it matches everything
        return self.refused(digits.end(), "in \\u hexadecimal character escape")

    def skip_space(self, position: int) -> int:
        mark = _mark.match(self.text, position)
        assert mark is not None  # it matches everything
        return mark.start(1)

    def refused(self, position: int, context: str) -> JsonSyntaxError:
        """The error at a character. Go's scanner sees a space at the end of the text, and names it where no space is allowed."""
        byte = self.text[position : position + 1].encode("utf-8", "surrogateescape")[:1]
        if not byte and context not in _SPACELESS and not context.startswith("in literal"):
            return JsonSyntaxError("unexpected end of JSON input")
        char = chr(byte[0]) if byte else " "
        name = {"'": r"'\''", '"': "'\"'"}.get(char) or f"'{quote(char)[1:-1]}'"
        return JsonSyntaxError(f"invalid character {name} {context}")

    def put_repetitions(self) -> None:
        """Put all members that were read into the containers with repeated keys."""
        for container, members in self.members.values():
            last = {key: n for n, (key, _) in enumerate(members)}
            container.clear()
            for n, (key, item) in enumerate(members):
                container[key if last[key] == n else OverriddenKey(key)] = item

    def duplicates(self) -> list[str]:
        """The paths of repeated keys, each once."""
        places = {number: place for place, number in self.numbered.items()} if self.repeated else {}
        paths = []
        for place, key in self.repeated:
            steps: list[str | int] = [key]
            while place:
                place, step = places[place]
                steps.append(step)
            steps.reverse()
            path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
            paths.append(path if isinstance(steps[0], int) else path[1:])
        return list(dict.fromkeys(paths))


_LONGEST_INT64: Final = len(str(MIN_INT64))
_WORDS: Final = {"t": "true", "f": "false", "n": "null"}
_SPACELESS: Final = frozenset(  # contexts in which a space is an error, too
    [
        "in numeric literal",
        "after decimal point in numeric literal",
        "in exponent of numeric literal",
        "in string escape code",
        "in \\u hexadecimal character escape",
    ]
)
