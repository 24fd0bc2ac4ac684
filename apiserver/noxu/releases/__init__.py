"""What the minor releases of Kubernetes have: tables, each a list of differences from release to release.

A release is its minor version: 31 stands for Kubernetes 1.31. The tables are taken from upstream's files at the tag of the
release's first patch; each module names its files. The newest release is the one whose API the other rooms implement, so
a table says what an older release does not have yet, or has in another way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

OLDEST: Final = 29
NEWEST: Final = 37
_WRITTEN: Final = r"v?1\.(\d{1,3})(?:\.\d+)?"


def named(release: int) -> str:
    """`1.31`."""
    return f"1.{release}"


def listed(releases: Iterable[int]) -> str:
    """`1.29, 1.30`."""
    return ", ".join(map(named, releases))


def parse(text: str) -> int:
    """The release in `1.31`, `v1.31` or `1.31.4`. Raises ValueError with the releases that are known."""
    match = re.fullmatch(_WRITTEN, text.strip())  # compiled here: a start needs it only for a release that is given
    release = int(match[1]) if match else 0
    if not OLDEST <= release <= NEWEST:
        raise ValueError(
            f'"{text}" is not a known version of Kubernetes: give one of {listed(range(OLDEST, NEWEST + 1))}'
        )
    return release


def parse_list(texts: Iterable[str]) -> tuple[int, ...]:
    """The releases in comma-separated lists, each once, the oldest first. Raises ValueError."""
    words = [word for text in texts for word in text.split(",")]
    return tuple(sorted({parse(word) for word in words}))
