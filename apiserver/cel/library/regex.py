"""Kubernetes' find and findAll."""

from __future__ import annotations

from itertools import islice
from typing import Final

from apiserver.cel.errors import CelError, check_patience
from apiserver.cel.library.declarations import Overload, overload
from apiserver.cel.library.standard import compile_pattern
from apiserver.cel.values import Value
from apiserver.schema.patterns import Pattern

_AT_ONCE: Final = 16


def _compiled(pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern)
    except CelError as error:
        raise CelError(f"Illegal regex: {error.message}") from None


def find(text: str, pattern: str) -> str:
    return _compiled(pattern).find(text) or ""


def find_all(text: str, pattern: str, count: int = -1) -> list[Value]:
    matches = _compiled(pattern).find_all(text)
    found: list[Value] = []
    for match in matches if count < 0 else islice(matches, count):
        found.append(match)
        if not len(found) % _AT_ONCE:  # each may have looked at all of the text
            check_patience()
    return found


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("string_find_string", "string.find(string) -> string", find),
    overload("string_find_all_string", "string.findAll(string) -> list(string)", find_all),
    overload("string_find_all_string_int", "string.findAll(string, int) -> list(string)", find_all),
]
