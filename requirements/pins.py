"""The pins of a requirements file: one version of each package, and the hashes of all its files.

The format is pip's (hash-checking mode), as `uv pip compile --generate-hashes` writes it:

    uvloop==0.23.0 ; sys_platform != 'win32' \\
        --hash=sha256:8c5a… \\
        --hash=sha256:a3f0…
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_PIN: Final = re.compile(r"([a-z0-9][a-z0-9-]*)==([\w.!+-]+)(?: ; (.+))?")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Pin(NamedTuple):
    name: str  # normalized: lower case, words joined by hyphens
    version: str
    marker: str | None  # the environments that need it (PEP 508); None means all
    hashes: tuple[str, ...]  # SHA-256 in hex, of the sdist and of every wheel


def parse(text: str) -> tuple[Pin, ...]:
    """The pins of a file. A line that is not pinned with hashes is a ValueError."""
    pins = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        requirement, *options = line.split(" --")
        pin = _PIN.fullmatch(requirement.strip())
        hashes = [_HASH.fullmatch(f"--{option.strip()}") for option in options]
        if not pin or not hashes or None in hashes:
            raise ValueError(f"not pinned with hashes: {line}")
        name, version, marker = pin.groups()
        pins.append(Pin(name, version, marker, tuple(found[1] for found in hashes if found)))
    return tuple(pins)
