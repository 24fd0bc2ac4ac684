"""How Go's fmt prints decoded JSON: `%v`, `%#v` and `%T` stand in upstream's messages about values of a wrong type.

structured-merge-diff prints a pointer to its wrapper of the value, strategic merge patch the bare value. How deep the
value is, is the client's choice: no recursion.
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.api.gotext import plain, quote
from apiserver.api.types import Json


@dataclass(frozen=True, slots=True)
class GoValue:
    """A value that is no JSON, and has no place in an object: `%v`, `%#v` and `%T` of it."""

    shown: str
    syntax: str
    type: str

    def __str__(self) -> str:
        return self.shown


def default_format(value: Json) -> str:
    """`%v`: `map[a:[1 x <nil>] b:true]`."""
    out: list[str] = []
    todo: list[tuple[bool, Json]] = [(False, value)]  # (is it finished text?, text or value), last one first
    while todo:
        finished, item = todo.pop()
        if finished:
            out.append(item)
        elif isinstance(item, dict):
            todo.append((True, "]"))
            names = sorted(item, reverse=True)
            for n, name in enumerate(names, 1):
                todo += ((False, item[name]), (True, f"{'map[' if n == len(names) else ' '}{name}:"))
            if not names:
                out.append("map[")
        elif isinstance(item, list):
            todo.append((True, "]"))
            for n, element in enumerate(reversed(item), 1):
                todo += ((False, element), (True, "[" if n == len(item) else " "))
            if not item:
                out.append("[")
        else:
            out.append(plain(item))
    return "".join(out)


def go_syntax(value: Json) -> str:
    """`%#v`: `map[string]interface {}{"a":[]interface {}{1, "x", interface {}(nil)}, "b":true}`."""
    out: list[str] = []
    todo: list[tuple[bool, Json]] = [(False, value)]
    while todo:
        finished, item = todo.pop()
        if finished:
            out.append(item)
        elif isinstance(item, dict):
            out.append("map[string]interface {}{")
            todo.append((True, "}"))
            names = sorted(item, reverse=True)
            for n, name in enumerate(names, 1):
                todo += ((False, item[name]), (True, f"{'' if n == len(names) else ', '}{quote(name)}:"))
        elif isinstance(item, list):
            out.append("[]interface {}{")
            todo.append((True, "}"))
            for n, element in enumerate(reversed(item), 1):
                todo += ((False, element), (True, "" if n == len(item) else ", "))
        elif isinstance(item, str):
            out.append(quote(item))
        else:
            text = item.syntax if isinstance(item, GoValue) else plain(item)
            out.append("interface {}(nil)" if item is None else text)
    return "".join(out)


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
