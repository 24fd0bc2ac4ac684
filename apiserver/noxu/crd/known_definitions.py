"""The definitions that were loaded before, so that a server that is started again repeats no validation.

`ValidSpecs` has the specs that were valid when they were created. A spec is kept by a digest of its decoded and
defaulted form, in which 1 and 1.0 and the orders of fields differ, and of the features. It is kept, with its warnings,
only if it is valid and if its validation did not change it (see `validation`). Metadata and status are not part of a
spec, and are validated always.

`Unchanged` has the replacements that changed nothing: a server that is started again with the same files and data would
decode, validate and compare each definition, and write nothing.

A replacement is kept by a digest of everything that its result depends on: the JSON that replaces the definition, the
stored bytes, which have its uid and owners, and the features. It is kept only if it was accepted and wrote nothing.
Admission is not part of the digest: the caller makes sure that none is configured.

Both kinds of results hold for the code that found them: a caller that keeps them longer than a process keeps the
version of the code, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import orjson

from noxu.features import Features
from noxu.values import Json, Object

MAX_REPLACEMENTS: Final = 10_000
"""More are not kept; those that were used last remain."""


class Unchanged:
    """The digests of replacements that change nothing: the `digests` of earlier processes, and those that this one adds."""

    def __init__(self, digests: Iterable[str] = ()) -> None:
        self._known = dict.fromkeys(digests)
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
        unused = [digest for digest in self._known if digest not in self._used]
        return [*unused, *self._used][-MAX_REPLACEMENTS:]


def unchanged_from_json(value: Json) -> Unchanged:
    """What `as_json` has made; none if it is anything else."""
    if not isinstance(value, list) or not all(isinstance(digest, str) for digest in value):
        return Unchanged()
    return Unchanged(value)


def digest_of_replacement(sent: bytes, stored: bytes, features: Features) -> str:
    """The digest of a replacement: of the JSON that is sent, the bytes that are stored, and the features."""
    digest = hashlib.sha256(repr(tuple(features)).encode())
    for part in (sent, stored):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


MAX_SPECS: Final = 10_000
"""More are not kept; those that were used last remain."""


class ValidSpecs:
    """The warnings of valid specs by their digests: those of earlier processes, and those that this one adds."""

    def __init__(self, warnings: Mapping[str, list[str]] | None = None) -> None:
        self._known = dict(warnings or {})
        self._used: dict[str, list[str]] = {}
        self.has_new = False

    def warnings(self, digest: str) -> list[str] | None:
        """The warnings of a valid spec; None if it is not known to be valid. No spec has the digest ""."""
        warnings = self._known.get(digest)
        if warnings is not None:
            self._used[digest] = warnings
        return warnings

    def add(self, digest: str, warnings: list[str]) -> None:
        """Add a spec that is valid."""
        self._known[digest] = self._used[digest] = warnings
        self.has_new = True

    def as_json(self) -> Object:
        """The specs, the last used ones at the end, at most MAX_SPECS."""
        specs = {digest: warnings for digest, warnings in self._known.items() if digest not in self._used} | self._used
        return dict(list(specs.items())[-MAX_SPECS:])


def valid_specs_from_json(value: Json) -> ValidSpecs:
    """What `as_json` has made; none if it is anything else."""
    if not isinstance(value, dict) or not all(map(_is_list_of_texts, value.values())):
        return ValidSpecs()
    return ValidSpecs(value)


def _is_list_of_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def digest_of_spec(spec: Object, features: Features) -> str:
    """The digest of a spec under features; "" for one that is not kept: orjson refuses huge integers and great depth."""
    try:
        written = orjson.dumps(spec)
    except TypeError:
        return ""
    return hashlib.sha256(repr(tuple(features)).encode() + written).hexdigest()


class KnownDefinitions(NamedTuple):
    """The specs that are valid, and the replacements that change nothing. Both are added to."""

    valid_specs: ValidSpecs
    unchanged: Unchanged
