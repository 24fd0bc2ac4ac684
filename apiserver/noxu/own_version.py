"""The version of this program, from the metadata of its installation."""

from __future__ import annotations

from functools import cache
from typing import Final

NOT_INSTALLED: Final = "0+unknown"
"""What a checkout says that is run without having been installed: a version by PEP 440."""


@cache
def own_version() -> str:
    from importlib import metadata  # large, and rarely needed

    try:
        return metadata.version("noxu")
    except metadata.PackageNotFoundError:
        return NOT_INSTALLED
