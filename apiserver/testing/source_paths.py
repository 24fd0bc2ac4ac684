"""Which sources of a test are files. Pytest checks them before it imports the server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias

Source: TypeAlias = str | os.PathLike[str] | dict[str, Any]
"""A file or directory of manifests, a text that contains manifests (it may be indented), or an object."""


def path_of(source: Source) -> Path | None:
    """The path of a source that is a file or a directory; None for an object, and for a text, which has several lines."""
    if isinstance(source, dict) or (isinstance(source, str) and "\n" in source):
        return None
    return Path(source)
