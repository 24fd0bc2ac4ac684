"""The arguments of a call: the parameters of its query and the fields of its body, checked against what its route declares.

A misspelt argument is never ignored: it is refused, with the one that was probably meant. A body is a JSON object. Of a
query and of a body the function of a route gets the same: a value for each declared argument, its default if it is absent.

    type        in a body             in a query           the function gets
    TEXT        "a"                   a                    str
    INTEGER     3                     3                    int
    NUMBER      0.5                   0.5                  float
    BOOLEAN     true                  true, 1, or empty    bool
    DURATION    "1d12h", or seconds   1d12h, or seconds    float, in seconds
    TIME        "2030-01-01T00:00:00Z"                     datetime, in UTC
    TEXTS       ["a", "b"]            a&NAME=b, or a,b     list[str]
    OBJECT      {…}                                        dict
    OBJECTS     [{…}, …]                                   list[dict]
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.expressions import expression
from noxu.features import meant
from noxu.go.time import SECOND, parse_duration
from noxu.values import MAX_INT64, Json, Object

T = TypeVar("T")
MAX_SHOWN: Final = 100  # characters of what a client has sent, in a message
MAX_WRONG: Final = 10  # arguments that a message names; the others are counted
_TRUE: Final = ("true", "1", "")
_FALSE: Final = ("false", "0")
_DAYS: Final = expression(r"(?P<days>[0-9]{1,7})d(?P<rest>[^-].*)?")
SECONDS_A_DAY: Final = 86_400.0


class ArgumentType(NamedTuple):
    """`from_json` and `from_texts` make its value, and raise ValueError. `from_texts` gets all values of a parameter."""

    name: str
    """What it is, in messages: `a text`."""
    from_json: Callable[[Json], Any]
    from_texts: Callable[[Sequence[str]], Any]


class Argument(NamedTuple):
    """`about` is for people. `required`: it has no default."""

    type: ArgumentType
    about: str
    default: Any = None
    required: bool = False


Arguments = Mapping[str, Argument]
NONE: Final[Arguments] = {}


# -- types -------------------------------------------------------------------------------------------------------------


def one_of(*choices: str) -> ArgumentType:
    """A text that is one of these."""

    def chosen(value: Json) -> str:
        if value not in choices:
            raise ValueError(f"{cut(repr(value))} is none of {', '.join(choices)}{likely(str(value), choices)}")
        return str(value)

    return ArgumentType(f"one of {', '.join(choices)}", chosen, lambda texts: chosen(_single(texts)))


def _of_type(type_: type, name: str) -> Callable[[Json], Any]:
    def checked(value: Json) -> Any:
        if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
            raise ValueError(f"expected {name}, not {_shown(value)}")
        return value

    return checked


def _all_of(type_: type, name: str) -> Callable[[Json], Any]:
    def checked(value: Json) -> Any:
        if not isinstance(value, list) or not all(isinstance(item, type_) for item in value):
            raise ValueError(f"expected {name}, not {_shown(value)}")
        return value

    return checked


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"expected a number, not {_shown(value)}")
    return float(value)


def duration(text: str) -> float:
    """Seconds of a duration of Go, which may have days: `90s`, `1h30m`, `365d`, `1d12h`. Raises ValueError."""
    days = _DAYS.fullmatch(text)
    rest = (days["rest"] or "") if days else text
    seconds = 0.0 if days and not rest else parse_duration(rest) / SECOND
    return seconds + (int(days["days"]) * SECONDS_A_DAY if days else 0.0)


def _seconds(value: Json) -> float:
    if not isinstance(value, str):
        return _number(value)
    try:
        return duration(value)
    except ValueError:
        return _parsed(float, value, 'a duration such as "1m30s", or seconds')


def time(value: Json) -> datetime:
    """A time in RFC 3339. Raises ValueError."""
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(value if isinstance(value, str) else "")
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    raise ValueError(f"expected a time such as 2030-01-01T00:00:00Z, not {_shown(value)}")


def _parsed(parse: Callable[[str], T], text: str, name: str) -> T:
    try:
        return parse(text)
    except ValueError:
        raise ValueError(f"expected {name}, not {_shown(text)}") from None


def _single(texts: Sequence[str]) -> str:
    if len(texts) > 1:
        raise ValueError("it is given more than once")
    return texts[0]


def _integer(text: str) -> int:
    value = int(text)
    if abs(value) > MAX_INT64:
        raise ValueError
    return value


def _boolean(texts: Sequence[str]) -> bool:
    text = _single(texts).lower()
    if text not in (*_TRUE, *_FALSE):
        raise ValueError(f"expected true or false, not {_shown(text)}")
    return text in _TRUE


def _only_in_bodies(_texts: Sequence[str]) -> Any:
    raise ValueError("it is an object, and may only be in a body")


def _shown(value: Json) -> str:
    """A value in a message."""
    return cut(codec.encode(value, sort_keys=False).decode(errors="replace"))


def cut(text: str) -> str:
    """A text of a client in a message."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def likely(name: str, known: Iterable[str]) -> str:
    """`; did you mean NAME?`, unless the name is too long to be a misspelt one: to compare it would take long."""
    return meant(name, known) if len(name) <= MAX_SHOWN else ""


TEXT: Final = ArgumentType("a text", _of_type(str, "a text"), _single)
INTEGER: Final = ArgumentType(
    "an integer", _of_type(int, "an integer"), lambda texts: _parsed(_integer, _single(texts), "an integer")
)
NUMBER: Final = ArgumentType("a number", _number, lambda texts: _number(_parsed(float, _single(texts), "a number")))
BOOLEAN: Final = ArgumentType("true or false", _of_type(bool, "true or false"), _boolean)
DURATION: Final = ArgumentType(
    'a duration such as "1m30s", or seconds', _seconds, lambda texts: _seconds(_single(texts))
)
TIME: Final = ArgumentType("a time such as 2030-01-01T00:00:00Z", time, lambda texts: time(_single(texts)))
TEXTS: Final = ArgumentType(
    "a list of texts",
    _all_of(str, "a list of texts"),
    lambda texts: [part for text in texts for part in text.split(",") if part],
)
OBJECT: Final = ArgumentType("an object", _of_type(dict, "an object"), _only_in_bodies)
OBJECTS: Final = ArgumentType("a list of objects", _all_of(dict, "a list of objects"), _only_in_bodies)


# -- queries and bodies ------------------------------------------------------------------------------------------------


def from_query(query: Mapping[str, Sequence[str]], declared: Arguments, path: str) -> Object:
    """The values of a query's parameters. Raises ApiError BadRequest, which names the wrong ones."""
    given = {name: (texts, declared[name].type.from_texts) for name, texts in query.items() if name in declared}
    unknown = [name for name in query if name not in declared]
    values, invalid = _checked(given, declared)
    if not unknown and not invalid:
        return values
    wrong = [_unknown("parameter", name, declared, path) for name in unknown[:MAX_WRONG]]
    wrong += [f"{name}: {why}" for name, why in invalid.items()]
    raise errors.bad_request(f"the query is invalid: {'; '.join(wrong)}{_more(unknown)}")


def from_body(body: bytes, declared: Arguments, path: str) -> Object:
    """The values of a body's fields; an empty body has none. Raises ApiError BadRequest, Invalid."""
    if body and not declared:
        raise errors.bad_request(f"{path} takes no body with this method")
    sent = _object_of(body) if body else {}
    given = {name: (value, declared[name].type.from_json) for name, value in sent.items() if name in declared}
    unknown = [name for name in sent if name not in declared]
    values, invalid = _checked(given, declared)
    if not unknown and not invalid:
        return values
    wrong = {name: _unknown("field", name, declared, path) for name in unknown[:MAX_WRONG]}
    texts = [*wrong.values(), *(f"{name}: {why}" for name, why in invalid.items())]
    causes = [
        *({"reason": "FieldValueForbidden", "message": why, "field": cut(name)} for name, why in wrong.items()),
        *({"reason": "FieldValueInvalid", "message": why, "field": name} for name, why in invalid.items()),
    ]
    message = f"the body is invalid: {'; '.join(texts)}{_more(unknown)}"
    raise ApiError(422, message, "Invalid", {"causes": causes})


def _more(unknown: Sequence[str]) -> str:
    return f"; and {len(unknown) - MAX_WRONG} more" if len(unknown) > MAX_WRONG else ""


def refused(field: str, why: str) -> ApiError:
    """The error for a field whose type is right, and whose value is not; "": for the body as a whole."""
    cause = {"reason": "FieldValueInvalid", "message": why, "field": field}
    return ApiError(422, f"the body is invalid: {f'{field}: ' if field else ''}{why}", "Invalid", {"causes": [cause]})


def _object_of(body: bytes) -> Object:
    try:
        decoded = codec.decode_json(body)
    except ValueError as error:
        raise errors.bad_request(f"the body is no JSON object: {error}") from None
    if not isinstance(decoded.value, dict):
        raise errors.bad_request(f"the body is no JSON object, but {_shown(decoded.value)}")
    if decoded.duplicates:
        listed = [cut(duplicate) for duplicate in decoded.duplicates[:MAX_WRONG]]
        raise errors.bad_request(f"the body is invalid: {'; '.join(listed)}{_more(decoded.duplicates)}")
    return decoded.value


def _checked(
    given: Mapping[str, tuple[Any, Callable[[Any], Any]]], declared: Arguments
) -> tuple[Object, dict[str, str]]:
    """(The values of all declared arguments, what is wrong with some of them)."""
    given = {name: pair for name, pair in given.items() if pair[0] is not None}  # a null is absent, as in the API
    values = {name: argument.default for name, argument in declared.items()}
    invalid = {name: "it is required" for name, argument in declared.items() if argument.required and name not in given}
    for name, (value, convert) in given.items():
        try:
            values[name] = convert(value)
        except ValueError as error:
            invalid[name] = str(error)
    return values, invalid


def _unknown(what: str, name: str, declared: Arguments, path: str) -> str:
    takes = f"which takes {', '.join(declared)}" if declared else "which takes none"
    return f'there is no {what} "{cut(name)}" of {path}, {takes}{likely(name, declared)}'
