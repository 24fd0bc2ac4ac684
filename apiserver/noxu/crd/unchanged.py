"""Replacements of definitions that changed nothing before, so that they need not be repeated: a server that is started again
with the same files and data would decode, validate and compare each definition, and write nothing.

A replacement is kept by a digest of everything that its result depends on: the JSON that replaces the definition, the bytes
that are stored of it, which have its uid and owners, and the features. It is kept only if it was accepted and wrote nothing.
Admission is not part of the digest: who asks knows that none is configured.

The results are those of the code that has found them: who keeps them longer than a process keeps the version, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from noxu.features import Features
from noxu.values import Json

MAX_REPLACEMENTS: Final = 10_000
"""More are not kept; those that were used last remain."""


class Unchanged:
    """The digests of replacements that change nothing: those that were `known` before, and what this process adds."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = dict.fromkeys(known)
        self._used: dict[str, None] = {}
        self.has_new = False

    def has(self, digest: str) -> bool:
        """Whether a replacement is known to change nothing."""
        if digest not in self._known:
            return False
        self._used[digest] = None
        return True

    def add(self, digest: str) -> None:
        """Add a replacement that has changed nothing."""
        self._known[digest] = self._used[digest] = None
        self.has_new = True

    def as_json(self) -> list[str]:
        """The digests, the last used ones at the end, at most MAX_REPLACEMENTS."""
        found = [digest for digest in self._known if digest not in self._used]
        return [*found, *self._used][-MAX_REPLACEMENTS:]


def from_json(value: Json) -> Unchanged:
    """What `as_json` has made; none if it is anything else."""
    if not isinstance(value, list) or not all(isinstance(digest, str) for digest in value):
        return Unchanged()
    return Unchanged(value)


def digest_of(sent: bytes, stored: bytes, features: Features) -> str:
    """The digest of a replacement: of the JSON that is sent, the bytes that are stored, and the features."""
    found = hashlib.sha256(repr(tuple(features)).encode())
    for part in (sent, stored):
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.hexdigest()
