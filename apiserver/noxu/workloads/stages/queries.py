"""Queries in the language of jq, as far as selectors of stages need it; what is beyond that is refused.

    .status.phase   .metadata.annotations["a/b"]   .items[0]   .status.conditions[]   .status.conditions.[]   .a?
    a | b   a // b   a == b   < <= > >= !=   and   or   ( )   "text"  1.5  true  false  null  .
    select(f)  map(f)  any(f)  all(f)  length  keys  not  empty  first  last  type  tostring  tonumber
    has("x")  startswith("x")  endswith("x")  contains("x")  test("re")

A query yields any number of values. One that fails (a text has no field) raises QueryError: kwok treats that as no value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from noxu.expressions import expression
from noxu.features import meant
from noxu.values import Json

Run = Callable[[Json], Iterable[Json]]


class QueryError(Exception):
    """A query cannot be evaluated for a value."""


class Query:
    """A compiled query. Raises ValueError for what is not understood."""

    def __init__(self, text: str) -> None:
        self.text = text
        parser = _Parser(text)
        self._run = parser.pipe()
        parser.expect("")

    def values(self, value: Json) -> list[Json]:
        """What it yields, without nulls. Raises QueryError."""
        return [each for each in self._run(value) if each is not None]


class _Token(NamedTuple):
    kind: str
    """name, text, number, or the symbol itself; "" at the end."""
    value: Any
    at: int


_TOKENS: Final = expression(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*")|(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<symbol>//|==|!=|<=|>=|[.\[\]()|<>?,-]))"""
)


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        match = _TOKENS.match(text, at)
        if match is None:
            raise ValueError(f"{text!r} is not understood from {text[at:].strip()[:20]!r} on")
        kind, found = str(match.lastgroup), match[match.lastgroup or 0]
        if kind in ("text", "number"):
            yield _Token(kind, json.loads(found), match.start())
        else:
            yield _Token(kind if kind == "name" else found, found, match.start())
        at = match.end()
    yield _Token("", "", len(text))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        self._next += 1
        return token

    def _takes(self, *kinds: str) -> str:
        """The kind of the next token, which is taken if it is one of these."""
        kind = self._token.value if self._token.kind == "name" and self._token.value in kinds else self._token.kind
        if kind and kind in kinds:
            self._next += 1
            return str(kind)
        return ""

    def expect(self, kind: str) -> None:
        if self._token.kind != kind:
            found = self._text[self._token.at :].strip()[:20]
            raise ValueError(
                f"{self._text!r} is not understood from {found!r} on" if found else f"{self._text!r} ends early"
            )
        self._next += 1

    # -- operators, the loosest first

    def pipe(self) -> Run:
        first = self._alternative()
        while self._takes("|"):
            first = _piped(first, self._alternative())
        return first

    def _alternative(self) -> Run:
        first = self._either()
        if self._takes("//"):
            return _alternative(first, self._alternative())
        return first

    def _either(self) -> Run:
        first = self._both()
        while self._takes("or"):
            first = _combined(first, self._both(), lambda left, right: _is_true(left) or _is_true(right))
        return first

    def _both(self) -> Run:
        first = self._comparison()
        while self._takes("and"):
            first = _combined(first, self._comparison(), lambda left, right: _is_true(left) and _is_true(right))
        return first

    def _comparison(self) -> Run:
        first = self._term()
        if symbol := self._takes(*_COMPARISONS):
            return _combined(first, self._term(), _COMPARISONS[symbol])
        return first

    def _term(self) -> Run:
        run = self._primary()
        while True:
            if self._takes("."):
                run = _piped(run, self._after_dot())
            elif self._takes("["):
                run = _piped(run, self._in_brackets())
            elif self._takes("?"):
                run = _without_errors(run)
            else:
                return run

    def _primary(self) -> Run:
        token = self._take()
        if token.kind in ("text", "number"):
            return _constant(token.value)
        if token.kind == "-" and self._token.kind == "number":
            return _constant(-self._take().value)
        if token.kind == "(":
            inner = self.pipe()
            self.expect(")")
            return inner
        if token.kind == ".":
            return self._after_dot() if self._token.kind in ("name", "text", "[") else _itself
        if token.kind == "name":
            return self._function(token.value)
        self._next -= 1
        self.expect("a value")
        raise AssertionError("unreachable")

    def _after_dot(self) -> Run:
        token = self._take()
        if token.kind in ("name", "text"):
            return _field(token.value)
        if token.kind == "[":
            return self._in_brackets()
        self._next -= 1
        self.expect("a field")
        raise AssertionError("unreachable")

    def _in_brackets(self) -> Run:
        if self._takes("]"):
            return _items
        token, sign = self._take(), 1
        if token.kind == "-":
            token, sign = self._take(), -1
        if token.kind not in ("text", "number"):
            self._next -= 1
            self.expect("a name or a number")
        self.expect("]")
        return _field(token.value) if token.kind == "text" else _item(sign * token.value)

    def _function(self, name: str) -> Run:
        if name in _WORDS:
            return _constant(_WORDS[name])
        if name in _OF_QUERY:
            self.expect("(")
            inner = self.pipe()
            self.expect(")")
            return _OF_QUERY[name](inner)
        if name in _OF_TEXT:
            self.expect("(")
            token = self._take()
            if token.kind != "text":
                raise ValueError(f"{name} has a text in quotes: {self._text!r}")
            self.expect(")")
            if name == "test":
                _check_pattern(token.value)
            return _of_value(name, lambda value: _OF_TEXT[name](value, token.value))
        if name == "empty":
            return lambda _value: ()
        if name not in _OF_VALUE:
            known = [*_OF_QUERY, *_OF_TEXT, *_OF_VALUE, *_WORDS]
            raise ValueError(f"{name!r} is not known: there are {', '.join(known)}{meant(name, known)}")
        return _of_value(name, _OF_VALUE[name])


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from None


# -- what parts of a query do -----------------------------------------------------------------------------------------


def _itself(value: Json) -> Iterable[Json]:
    return (value,)


def _constant(constant: Json) -> Run:
    return lambda _value: (constant,)


def _piped(first: Run, second: Run) -> Run:
    return lambda value: (result for each in first(value) for result in second(each))


def _combined(first: Run, second: Run, combine: Callable[[Json, Json], Json]) -> Run:
    return lambda value: (combine(left, right) for right in second(value) for left in first(value))


def _alternative(first: Run, second: Run) -> Run:
    def run(value: Json) -> Iterable[Json]:
        found = [each for each in _without_errors(first)(value) if _is_true(each)]
        return found or second(value)

    return run


def _without_errors(run: Run) -> Run:
    def quiet(value: Json) -> Iterator[Json]:
        try:
            yield from run(value)
        except QueryError:
            return

    return quiet


def _field(name: str) -> Run:
    def run(value: Json) -> Iterable[Json]:
        if value is None:
            return (None,)
        if not isinstance(value, dict):
            raise QueryError(f"a {_type(value)} has no field {name!r}")
        return (value.get(name),)

    return run


def _item(number: float) -> Run:
    def run(value: Json) -> Iterable[Json]:
        if value is None:
            return (None,)
        if not isinstance(value, list):
            raise QueryError(f"a {_type(value)} has no item {number}")
        at = int(number)
        return (value[at] if -len(value) <= at < len(value) else None,)

    return run


def _items(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return value
    raise QueryError(f"a {_type(value)} has no items")


def _is_true(value: Json) -> bool:
    return value is not None and value is not False


def _select(inner: Run) -> Run:
    return lambda value: (value for each in inner(value) if _is_true(each))


def _map(inner: Run) -> Run:
    return lambda value: ([result for each in _items(value) for result in inner(each)],)


def _any(inner: Run) -> Run:
    return lambda value: (any(_is_true(result) for each in _items(value) for result in inner(each)),)


def _all(inner: Run) -> Run:
    return lambda value: (all(_is_true(result) for each in _items(value) for result in inner(each)),)


def _of_value(name: str, function: Callable[[Any], Json]) -> Run:
    def run(value: Json) -> Iterable[Json]:
        try:
            return (function(value),)
        except (TypeError, ValueError, AttributeError, KeyError, IndexError):
            raise QueryError(f"{name} is not for a {_type(value)}") from None

    return run


def _type(value: Json) -> str:
    names = {bool: "boolean", dict: "object", list: "array", str: "string", type(None): "null"}
    return names.get(type(value), "number")


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Json, Json], Json]:
    def compared(left: Json, right: Json) -> Json:
        try:
            return compare(left, right)
        except TypeError:
            raise QueryError(f"a {_type(left)} and a {_type(right)} have no order") from None

    return compared


_COMPARISONS: Final[dict[str, Callable[[Json, Json], Json]]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<=": _ordered(lambda left, right: left <= right),
    ">=": _ordered(lambda left, right: left >= right),
    "<": _ordered(lambda left, right: left < right),
    ">": _ordered(lambda left, right: left > right),
}
_WORDS: Final[dict[str, Json]] = {"true": True, "false": False, "null": None}
_OF_QUERY: Final[dict[str, Callable[[Run], Run]]] = {"select": _select, "map": _map, "any": _any, "all": _all}
_OF_TEXT: Final[dict[str, Callable[[Any, str], Json]]] = {
    "has": lambda value, name: name in value.keys(),  # noqa: SIM118 - a list has none
    "startswith": lambda value, text: value.startswith(text),
    "endswith": lambda value, text: value.endswith(text),
    "contains": lambda value, text: text in value,
    "test": lambda value, pattern: re.search(pattern, value) is not None,
}
_OF_VALUE: Final[dict[str, Callable[[Any], Json]]] = {
    "length": lambda value: 0 if value is None else len(value),
    "keys": lambda value: sorted(value.keys()),
    "not": lambda value: not _is_true(value),
    "first": lambda value: value[0],
    "last": lambda value: value[-1],
    "type": _type,
    "tostring": lambda value: value if isinstance(value, str) else json.dumps(value, separators=(",", ":")),
    "tonumber": lambda value: value if not isinstance(value, str) else float(value),
}
