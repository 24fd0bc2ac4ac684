"""Where a value is: the steps from the root, linked backwards and written out only where an error is told.

Most values are valid, and a client chooses how long a path is: a million items under a name of a megabyte would make
a million copies of that name.
"""

from __future__ import annotations

from typing import TypeAlias

from apiserver.api.field import Path

Trail: TypeAlias = "tuple[Trail, str | int] | None"
"""(where the container is, the name or position in it); None is the root."""


def written(trail: Trail) -> Path:
    """`spec.a[0]`. The first step is written as it is: a leading dot may be part of it."""
    global _last  # noqa: PLW0603 - errors come in flocks: the next one is often beside the last
    if trail is None:
        return ""
    above, step = trail
    if above is None:
        return str(step) if isinstance(step, str) else f"[{step}]"
    known, path = _last
    if known is not above:
        path = _written(above)
        _last = (above, path)
    return f"{path}[{step}]" if isinstance(step, int) else f"{path}.{step}"


_last: tuple[Trail, Path] = (None, "")


def _written(trail: Trail) -> Path:
    parts = []
    while trail is not None:
        trail, step = trail
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            parts.append(f".{step}" if trail is not None else step)
    return "".join(reversed(parts))
