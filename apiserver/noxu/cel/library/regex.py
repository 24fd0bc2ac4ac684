"""Kubernetes' find and findAll: matches of RE2 patterns in strings."""

from __future__ import annotations

from itertools import islice
from typing import Final

from noxu.cel.errors import CelError
from noxu.cel.library.declarations import Overload, overload
from noxu.cel.library.standard import compile_pattern
from noxu.cel.memory import allocate_text
from noxu.cel.values.values import Value
from noxu.cpu_budget import check_cpu_budget
from noxu.schema.patterns import Pattern

_MATCHES_PER_CHECK: Final = 16  # of the CPU budget


def _compiled(pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern)
    except CelError as error:
        raise CelError(f"Illegal regex: {error.message}") from None


def find(text: str, pattern: str) -> str:
    found = _compiled(pattern).find(text) or ""
    allocate_text(len(found), found)
    return found


def find_all(text: str, pattern: str, count: int = -1) -> list[Value]:
    matches = _compiled(pattern).find_all(text)
    found: list[Value] = []
    for match in matches if count < 0 else islice(matches, count):
        allocate_text(len(match), match)
        found.append(match)
        if not len(found) % _MATCHES_PER_CHECK:  # finding a match may have taken a pass over the whole text
            check_cpu_budget()
    return found


OVERLOADS: Final[list[tuple[str, Overload]]] = [
    overload("string_find_string", "string.find(string) -> string", find),
    overload("string_find_all_string", "string.findAll(string) -> list(string)", find_all),
    overload("string_find_all_string_int", "string.findAll(string, int) -> list(string)", find_all),
]
