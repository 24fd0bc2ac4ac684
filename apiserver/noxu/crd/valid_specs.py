"""Specs of definitions that were valid when they were created before, so that their walks need not be repeated.

A spec is kept by a digest of its decoded and defaulted form, in which 1 and 1.0 and the orders of fields differ, and of the
features. It is kept only if it is valid and if its validation did not change it (see `validation`). What is kept with it
are its warnings. Its metadata and status are not part of it, and are validated always.

The specs are valid for the code that has found them so: who keeps them longer than a process keeps the version, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import orjson

from noxu.features import Features
from noxu.values import Json, Object

MAX_SPECS: Final = 10_000
"""More are not kept; those that were used last remain."""


class ValidSpecs:
    """The warnings of valid specs by their digests: those that were `known` before, and what this process adds."""

    def __init__(self, known: Mapping[str, list[str]] | None = None) -> None:
        self._known = dict(known or {})
        self._used: dict[str, list[str]] = {}
        self.has_new = False

    def warnings(self, digest: str) -> list[str] | None:
        """The warnings of a valid spec; None if it is not known to be valid. No spec has the digest ""."""
        found = self._known.get(digest)
        if found is not None:
            self._used[digest] = found
        return found

    def add(self, digest: str, warnings: list[str]) -> None:
        """Add a spec that is valid."""
        self._known[digest] = self._used[digest] = warnings
        self.has_new = True

    def as_json(self) -> Object:
        """The specs, the last used ones at the end, at most MAX_SPECS."""
        found = {digest: warnings for digest, warnings in self._known.items() if digest not in self._used} | self._used
        return dict(list(found.items())[-MAX_SPECS:])


def from_json(value: Json) -> ValidSpecs:
    """What `as_json` has made; none if it is anything else."""
    if not isinstance(value, dict) or not all(map(_is_list_of_texts, value.values())):
        return ValidSpecs()
    return ValidSpecs(value)


def _is_list_of_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def digest_of(spec: Object, features: Features) -> str:
    """The digest of a spec under features; "" for one that is not kept: orjson refuses huge integers and great depth."""
    try:
        written = orjson.dumps(spec)
    except TypeError:
        return ""
    return hashlib.sha256(repr(tuple(features)).encode() + written).hexdigest()
