"""Names that are probably misspelt: what is known instead, and which of it was probably meant.

A name that exists nowhere is an error when it is given, because what refers to it would never happen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_SHOWN: Final = 20  # names in a message


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most similar to a name, whatever their case is; "" if none is."""
    from difflib import get_close_matches  # imported late: rarely needed

    folded = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), folded, n=1)
    return folded[found[0]] if found else ""


def meant(name: str, known: Iterable[str]) -> str:
    """`; did you mean NAME?`, the end of a message; "" if no known name is similar."""
    found = nearest(name, known)
    return f"; did you mean {found}?" if found else ""


def check(name: str, known: Iterable[str], place: str) -> None:
    """Raises ValueError for an unknown name: `operations: "UPDAET" is none of CREATE, UPDATE, …; did you mean UPDATE?`."""
    known = tuple(known)
    if name not in known:
        raise ValueError(f'{place}: "{name}" is none of {listed(known)}{meant(name, known)}')


def listed(known: Iterable[str]) -> str:
    """Names for a message: all, or the first ones and how many there are besides."""
    names = [name for name in known if name]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
