"""How Go's fmt prints decoded JSON: upstream's messages about values of a wrong type contain `%v`, `%#v` and `%T`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from noxu.go.render import Notation, render
from noxu.go.text import plain, quote
from noxu.values import Json


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
