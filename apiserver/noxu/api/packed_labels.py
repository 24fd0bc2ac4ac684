"""The labels of an object as one text: a quarter of the memory of a dict, in which selectors search as fast.

    {"app": "db", "tier": ""}    "\\0app=db\\0tier=\\0"
    {}                           ""

    app=db     "\\0app=db\\0" is in the text
    app!=web   "\\0app=web\\0" is not
    tier       "\\0tier=" is

Neither names nor values of labels contain NUL or `=` (Kubernetes' syntax of labels), so nothing else is found. Labels that
do, which other programs may store, those whose values are not text, and long ones, in which a search takes longer than in a
dict, are not packed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

MAX_PACKED: Final = 500  # characters

Labels: TypeAlias = Mapping[str, str] | str
"""Packed labels, or others."""


def pack(labels: dict[str, str]) -> dict[str, str] | str:
    """Labels as one text; unchanged if they cannot be packed."""
    if not labels:
        return ""
    try:
        text = "\0".join(map("=".join, labels.items()))
    except TypeError:
        return labels
    number = len(labels)
    if text.count("=") != number or text.count("\0") != number - 1 or len(text) > MAX_PACKED:
        return labels
    return f"\0{text}\0"


def unpack(packed: dict[str, str] | str) -> dict[str, str]:
    """The labels that were packed, in their order."""
    if not isinstance(packed, str):
        return packed
    return dict([label.split("=") for label in packed[1:-1].split("\0")]) if packed else {}


def text_of(name: str, value: str | None = None) -> str:
    """What packed labels contain if they have this label, of any value if None."""
    return f"\0{name}=" if value is None else f"\0{name}={value}\0"


def value_after(before: str, packed: str) -> str | None:
    """The value of the label that begins with the text `before` (`text_of`), None if there is none of this name."""
    at = packed.find(before)
    if at < 0:
        return None
    at += len(before)
    return packed[at : packed.index("\0", at)]
