"""Label and field selectors: parsed once, matched against many objects.

A parsed selector takes up to fifty times the memory of its text, so all users of a text share one selector: it is kept
as long as it is used.

The grammars, the canonical strings and the messages are those of k8s.io/apimachinery (labels, fields). A selector that
does not parse raises ValueError with upstream's whole message; requests are answered with 400.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from noxu.api.errors import aggregate
from noxu.api.field import ROOT, FieldError, index, invalid, key
from noxu.api.names import Labels, label_value, path_segment_name, qualified_name, text_of, value_after
from noxu.expressions import expression
from noxu.go.text import quote
from noxu.values import MAX_INT64, MIN_INT64, Object

MAX_LENGTH: Final = 128 * 1024  # characters; upstream only has the limit of a URL, a megabyte
EXISTS: Final = "exists"
MISSING: Final = "!"
IN: Final = "in"
NOT_IN: Final = "notin"
EQUAL: Final = "="
DOUBLE_EQUAL: Final = "=="
NOT_EQUAL: Final = "!="
GREATER: Final = "gt"
LESS: Final = "lt"

_OPERATORS: Final = {symbol: symbol for symbol in (IN, NOT_IN, EQUAL, DOUBLE_EQUAL, NOT_EQUAL)} | {
    ">": GREATER,
    "<": LESS,
}
_EXPECTED_OPERATORS: Final = "in, notin, =, ==, !=, gt, lt"
_MAX_TEXTS: Final = 8
_integer: Final = expression(r"([+-]?)0*([0-9]{1,19})")


class Requirement(NamedTuple):
    """One condition on one label. `values` are sorted and distinct."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        values = ",".join(self.values)
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({values})"
            case "gt" | "lt":
                return f"{self.key}{'>' if self.operator == GREATER else '<'}{values}"
            case operator:
                return f"{self.key}{operator}{values}"

    @property
    def texts(self) -> tuple[Sequence[str], bool] | None:
        """Texts, and whether packed labels that match contain one of them; None if that does not decide, or there are many."""
        if len(self.values) > _MAX_TEXTS or self.operator in (GREATER, LESS):
            return None
        texts = [text_of(self.key, value) for value in self.values] or [text_of(self.key)]
        return texts, self.operator not in (MISSING, NOT_IN, NOT_EQUAL)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return _MATCH[self.operator](labels.get(self.key), self.values)


def _compare(greater: bool) -> Callable[[str | None, tuple[str, ...]], bool]:
    def match(value: str | None, values: tuple[str, ...]) -> bool:
        number = _int64(value or "")
        limit = _int64(values[0])
        return number is not None and limit is not None and (number > limit if greater else number < limit)

    return match


_MATCH: Final[dict[str, Callable[[str | None, tuple[str, ...]], bool]]] = {
    EXISTS: lambda value, _: value is not None,
    MISSING: lambda value, _: value is None,
    IN: lambda value, values: value in values,
    EQUAL: lambda value, values: value in values,
    DOUBLE_EQUAL: lambda value, values: value in values,
    NOT_IN: lambda value, values: value not in values,  # an absent label is not in
    NOT_EQUAL: lambda value, values: value not in values,
    GREATER: _compare(greater=True),
    LESS: _compare(greater=False),
}


def _int64(text: str) -> int | None:
    """strconv.ParseInt."""
    match = _integer.fullmatch(text)
    number = int(match[1] + match[2]) if match else None
    return number if number is not None and MIN_INT64 <= number <= MAX_INT64 else None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class LabelSelector:
    """Matches if all requirements hold; without requirements it matches everything. `nothing` never matches."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    _exact: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    _others: tuple[Requirement, ...] = field(init=False, repr=False, compare=False)
    _texts: tuple[tuple[Sequence[str], bool], ...] = field(init=False, repr=False, compare=False)
    _without_texts: tuple[tuple[str, Requirement], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        texts = [requirement.texts for requirement in self.requirements]
        without = [
            (text_of(requirement.key), requirement)
            for requirement, packed in zip(self.requirements, texts, strict=True)
            if not packed
        ]
        object.__setattr__(self, "_texts", tuple(packed for packed in texts if packed))
        object.__setattr__(self, "_without_texts", tuple(without))
        exact, inexact = [], []
        for requirement in self.requirements:
            if len(requirement.values) == 1 and requirement.operator in (IN, EQUAL, DOUBLE_EQUAL):
                exact.append((requirement.key, requirement.values[0]))
            else:
                inexact.append(requirement)
        object.__setattr__(self, "_exact", tuple(exact))
        object.__setattr__(self, "_others", tuple(inexact))

    @property
    def empty(self) -> bool:
        return not self.requirements and not self.nothing

    @property
    def cost(self) -> int:
        """The number of comparisons that `matches` takes at most."""
        return sum([1 + len(requirement.values) for requirement in self.requirements])

    def matches(self, labels: Labels) -> bool:
        if isinstance(labels, str):
            for texts, expected in self._texts:
                for text in texts:
                    if text in labels:
                        if not expected:
                            return False
                        break
                else:
                    if expected:
                        return False
            for before, (_, operator, values) in self._without_texts:
                if not _MATCH[operator](value_after(before, labels), values):
                    return False
        else:
            for name, value in self._exact:
                if labels.get(name) != value:
                    return False
            for name, operator, values in self._others:
                if not _MATCH[operator](labels.get(name), values):
                    return False
        return not self.nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(nothing=True)


_label_selectors: Final[WeakValueDictionary[str, LabelSelector]] = WeakValueDictionary()  # by text


def parse_labels(text: str) -> LabelSelector:
    """Parse a `labelSelector`; requirements are sorted by key, as upstream does. Raises ValueError."""
    if not text:
        return EVERYTHING
    selector = _label_selectors.get(text)
    if selector is None:
        requirements = sorted(_plain(text) or _LabelParser(text).parse(), key=itemgetter(0))
        selector = _label_selectors[text] = LabelSelector(tuple(requirements))
    return selector


_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PLAIN: Final = rf"(?:!({_NAME})|({_NAME})(?:(==|=|!=)((?:{_NAME})?))?)(?=,|\Z)"
_one_plain: Final = expression(_PLAIN)
_all_plain: Final = expression(rf"(?>{_PLAIN},)*+(?>{_PLAIN})")


def _plain(text: str) -> list[Requirement] | None:
    """What `_LabelParser` makes of `a,!b,c=d,e!=f`, in a quarter of its time; None if the text has anything else."""
    if not _all_plain.fullmatch(text):
        return None
    requirements = []
    for absent, name, operator, value in _one_plain.findall(text):
        if operator:
            requirements.append(Requirement(name, operator, (value,)))
        else:
            requirements.append(Requirement(absent or name, MISSING if absent else EXISTS))
    return requirements


def cost_of(text: str) -> int:
    """The `cost` of a label or field selector, about, before it is parsed; 0 if it is known, as others use it."""
    if not text or text in _label_selectors or text in _field_selectors:
        return 0
    return 1 + text.count(",") - text.count("\\,")


_OBJECT_OPERATORS: Final = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": MISSING}


def label_selector(selector: Object | None) -> LabelSelector:
    """A metav1.LabelSelector (`matchLabels`, `matchExpressions`): None matches nothing, `{}` everything.

    Raises ValueError.
    """
    if selector is None:
        return NOTHING
    requirements = [_requirement(k, EQUAL, [v]) for k, v in (selector.get("matchLabels") or {}).items()]
    for item in selector.get("matchExpressions") or []:
        operator = item.get("operator", "")
        if operator not in _OBJECT_OPERATORS:
            raise ValueError(f"{quote(operator)} is not a valid label selector operator")
        name, values = item.get("key", ""), item.get("values") or []
        requirements.append(_requirement(name, _OBJECT_OPERATORS[operator], values))
    return LabelSelector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


def _requirement(name: str, operator: str, values: Collection[str]) -> Requirement:
    """labels.NewRequirement. Raises ValueError."""
    errors: list[FieldError] = []
    if messages := qualified_name(name):
        errors.append(invalid("key", name, "; ".join(messages)))
    if operator in (IN, NOT_IN) and not values:
        errors.append(invalid("values", list(values), "for 'in', 'notin' operators, values set can't be empty"))
    elif operator in (EXISTS, MISSING) and values:
        errors.append(invalid("values", list(values), "values set must be empty for exists and does not exist"))
    elif operator in (GREATER, LESS):
        must = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors += [invalid(index("values", n), v, must) for n, v in enumerate(values) if _int64(v) is None]
    for n, value in enumerate(values):
        if messages := label_value(value):
            errors.append(invalid(key(index("values", n), name), value, "; ".join(messages)))
    if errors:
        raise ValueError(aggregate(map(str, errors)))
    return Requirement(name, operator, tuple(sorted(set(values))))


_TOKEN: Final = expression(r"[ \t\r\n]*(?:(==|!=|[=!(),><])|([^=!(),><\x00 \t\r\n]+))")
_SYMBOLS: Final = frozenset(["==", "!=", "=", "!", "(", ")", ",", ">", "<"])
_END: Final = ""


class _LabelParser:
    """A cursor over tokens, which are their own text; the end is "". `in` and `notin` are words until an operator is due.

    a in (x,),!b      a | in | ( | x | , | ) | , | ! | b | ""
    requirement()     ^   takes `a`, sees that the next token is no comma, takes the operator,
                               and values() takes `(` to `)`: ["x", ""]
    parse()                                   ^ takes the comma; `!` may begin a requirement
    """

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.position = 0

    def look(self) -> str:
        return self.tokens[self.position]

    def take(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while (word := self.look()) != _END:
            if word in _SYMBOLS and word != "!":
                raise ValueError(f"found '{word}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self.requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            word = self.take()
            if word == _END:
                break
            if word != ",":
                raise ValueError(f"found '{word}', expected: ',' or 'end of string'")
            after = self.look()
            if after == _END or (after in _SYMBOLS and after != "!"):
                raise ValueError(f"found '{after}', expected: identifier after ','")
        return requirements

    def requirement(self) -> Requirement:
        name = self.take()
        absent = name == "!"
        if absent:
            name = self.take()
        if name == _END or name in _SYMBOLS:
            raise ValueError(f"found '{name}', expected: identifier")
        if messages := qualified_name(name):
            raise ValueError(str(invalid(ROOT, name, "; ".join(messages))))
        if absent:
            return _requirement(name, MISSING, [])
        if self.look() in (_END, ","):
            return _requirement(name, EXISTS, [])
        word = self.take()
        operator = _OPERATORS.get(word)
        if operator is None:
            raise ValueError(f"found '{word}', expected: {_EXPECTED_OPERATORS}")
        values = sorted(set(self.values())) if operator in (IN, NOT_IN) else [self.value()]
        return _requirement(name, operator, values)

    def value(self) -> str:
        if self.look() in (_END, ","):
            return ""
        word = self.take()
        if word in _SYMBOLS:
            raise ValueError(f"found '{word}', expected: identifier")
        return word

    def values(self) -> list[str]:
        """`(a,b)`. Nothing between parentheses and commas is the empty value: `(a,)` is ["a", ""], `(,a)` is ["", "a"]."""
        word = self.take()
        if word != "(":
            raise ValueError(f"found '{word}' expected: '('")
        word = self.look()
        if word == _END or (word in _SYMBOLS and word not in ",)"):
            raise ValueError(f"found '{word}', expected: ',', ')' or identifier")
        values: list[str] = []
        while (word := self.take()) != ")":
            if word == _END or (word in _SYMBOLS and word != ","):
                raise ValueError(f"found '{word}', expected: ',', or identifier")
            after = self.look()
            if word != ",":
                if after not in (",", ")"):
                    raise ValueError(f"found '{after}', expected: ',' or ')'")
                values.append(word)
            elif not values or after in (",", ")"):
                values.append("")
        return values or [""]


def _tokens(text: str) -> list[str]:
    """The tokens of a selector. NUL ends the text, unless it directly follows a token: upstream's lexer skips it there."""
    tokens = []
    position = 0
    while match := _TOKEN.match(text, position):
        tokens.append(match[1] or match[2])
        position = match.end() + text.startswith("\x00", match.end())
    return [*tokens, _END]


class Term(NamedTuple):
    """One condition on one field. An absent field is the empty string."""

    field: str
    equal: bool
    value: str

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{_special.sub(_BACKSLASHED, self.value)}"


_special: Final = expression(r"[\\,=]")
_BACKSLASHED: Final = r"\\\g<0>"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FieldSelector:
    """Matches if all terms hold."""

    terms: tuple[Term, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.terms

    @property
    def cost(self) -> int:
        """The number of comparisons that `matches` takes at most."""
        return len(self.terms)

    def matches(self, fields: Mapping[str, str]) -> bool:
        for name, equal, value in self.terms:  # noqa: SIM110 - a generator takes twice as long
            if (fields.get(name, "") == value) is not equal:
                return False
        return True

    def exact(self, name: str) -> str | None:
        """The value that the selector requires of the field `name`, None if it requires none."""
        return next((term.value for term in self.terms if term.field == name and term.equal), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


_piece: Final = expression(r"(?:[^\\,]|\\.)*", re.DOTALL)  # up to a comma that is not escaped
_split: Final = expression(r"(.*?)(!=|==|=)(.*)", re.DOTALL)


_field_selectors: Final[WeakValueDictionary[str, FieldSelector]] = WeakValueDictionary()  # by text


def parse_fields(text: str) -> FieldSelector:
    r"""Parse a `fieldSelector`. In values `\`, `,` and `=` are escaped by a backslash. Raises ValueError."""
    selector = _field_selectors.get(text)
    if selector is None:
        pieces = _pieces(text) if "\\" in text else text.split(",")
        terms = [_plain_term(piece) or _term(text, piece) for piece in sorted(pieces) if piece]
        selector = _field_selectors[text] = FieldSelector(tuple(term for term in terms if term.field or term.value))
    return selector


def _pieces(text: str) -> list[str]:
    r"""The text split at commas that are not escaped: `a=b\,c,d=e` is [`a=b\,c`, `d=e`]."""
    pieces = []
    position = 0
    while position <= len(text):
        match = _piece.match(text, position)
        end = match.end() if match else position
        if text[end : end + 1] == "\\":  # a lone backslash at the end
            end += 1
        pieces.append(text[position:end])
        position = end + 1
    return pieces


def _plain_term(piece: str) -> Term | None:
    """The term of a piece without escapes, as `_term`; None if the piece has escapes or an error."""
    name, operator, value = piece.partition("=")
    value = value.removeprefix("=") if name[-1:] != "!" else value
    if not operator or "=" in value or "\\" in value:
        return None
    return Term(name[:-1], False, value) if name[-1:] == "!" else Term(name, True, value)


def _term(text: str, piece: str) -> Term:
    match = _split.fullmatch(piece)
    if not match:
        raise ValueError(f"invalid selector: '{text}'; can't understand '{piece}'")
    return Term(match[1], match[2] != NOT_EQUAL, _unescape(match[3]))


_escape: Final = expression(r"\\(.?)|[,=]", re.DOTALL)


def _unescape(value: str) -> str:
    def unescaped(match: re.Match[str]) -> str:
        if match[1] is None:
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(match[0])}")
        if match[1] not in ("\\", ",", "="):
            raise ValueError(f"invalid field selector: invalid escape sequence: {match[0]}")
        return match[1]

    return _escape.sub(unescaped, value)


def selected_name(selector: str) -> str:
    """The name of the only object that a field selector can match, "" if there may be others.

    A list or watch of one object by its name is authorized like a request for it.
    """
    if "metadata.name" not in selector or len(selector) > MAX_LENGTH:  # which is refused later
        return ""
    try:
        name = parse_fields(selector).exact("metadata.name") or ""
    except ValueError:  # refused later
        return ""
    return "" if path_segment_name(name) else name
