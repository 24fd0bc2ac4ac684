"""Which sources of a test are files. Pytest checks them before it imports the server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

Source: TypeAlias = str | os.PathLike[str] | dict[str, Any]
"""A file or directory of manifests, a text that contains manifests (it may be indented), or an object."""


def several(given: Source | Iterable[Source]) -> tuple[Source, ...]:
    """Sources, of which one may be given by itself."""
    return (given,) if isinstance(given, (dict, str, os.PathLike)) else tuple(given)


def names(given: str | Iterable[str]) -> tuple[str, ...]:
    """Names, of which one may be given by itself."""
    return (given,) if isinstance(given, str) else tuple(given)


def path_of(source: object) -> Path | None:
    """The path of a source that is a file or a directory; None for an object, and for a text, which has several lines.

    Raises TypeError for what is no source.
    """
    __tracebackhide__ = True
    if not isinstance(source, (dict, str, os.PathLike)):
        given = f"a {type(source).__name__}"
        advice = ": give its items" if isinstance(source, (list, tuple, set)) else ""
        raise TypeError(f"a source is a dict, a path, or a text with manifests, and not {given}{advice}")
    if isinstance(source, dict) or (isinstance(source, str) and "\n" in source):
        return None
    return Path(source)
