"""Where a value is: the steps from the root as a linked list, written as a path only when an error is reported.

Most values are valid, and clients choose how long a path is: a million items in a list whose name has a megabyte would
need a million copies of that name.

    {"spec": {"a": [1]}}                           path_of
    None                                           ""            the root
    (None, "spec")                                 "spec"
    (((None, "spec"), "a"), 0)                     "spec.a[0]"   the item; its parent is shared with its siblings
"""

from __future__ import annotations

from typing import TypeAlias

from noxu.api.field import Path

Location: TypeAlias = "tuple[Location, str | int] | None"
"""(the container's location, the name or index in it); None is the root."""


def path_of(location: Location) -> Path:
    """`spec.a[0]`. The first step is copied unchanged: a leading dot may be part of it."""
    global _last  # noqa: PLW0603 - a cache of one: the next error is often about a sibling
    if location is None:
        return ""
    above, step = location
    if above is None:
        return str(step) if isinstance(step, str) else f"[{step}]"
    known, path = _last
    if known is not above:
        path = _path_of(above)
        _last = (above, path)
    return f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}"


_last: tuple[Location, Path] = (None, "")


def _path_of(location: Location) -> Path:
    parts = []
    while location is not None:
        location, step = location
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            parts.append(f".{step}" if location is not None else step)
    return "".join(reversed(parts))
