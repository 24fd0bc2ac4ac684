"""What the body of a PATCH makes of an object: by JSON, merge and strategic merge patch, or as a configuration to apply.

JSON and merge patches are decoded before the object is looked up, and checked after: a patch with a wrong operation for
an object that does not exist is answered 404 (upstream's pkg/endpoints/handlers/patch.go).
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from apiserver.api import codec, errors
from apiserver.api.structs import Struct
from apiserver.api.types import Json, Object
from apiserver.api.values import copy
from apiserver.apply.goprint import default_format
from apiserver.apply.patch import json_patch, merge_patch
from apiserver.apply.strategic import strategic_patch
from apiserver.registry.pipeline import invalid_patch

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
CUSTOM_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
BUILT_IN_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)


class Change:
    """What a patch makes of an object, which it leaves as it is. `struct`: the object's table, None if it has none."""

    def __init__(self, media_type: str, body: bytes, struct: Struct | None, *, field_validation: str) -> None:
        """Raises ApiError."""
        self._media_type = media_type
        self._struct = struct
        self._checked = field_validation != "Ignore"
        self._bytes = body
        self._body: codec.PatchBody | None = None  # until it is used: what it holds becomes part of an object
        if media_type != STRATEGIC_MERGE_PATCH:
            self._body = codec.read_patch(body)

    def __call__(self, old: Object) -> codec.Decoded:
        """The patched object and what is to be said of the patch. Raises ApiError."""
        changed = self._change(old)
        why = codec.unidentified(changed.value, lambda: self.text(old), typed=self._struct is not None)
        if why:
            raise invalid_patch(self.text(old), why)
        return changed

    def _change(self, old: Object) -> codec.Decoded:
        if self._media_type == STRATEGIC_MERGE_PATCH:
            assert self._struct is not None, "only kinds with a table offer strategic merge patch"
            duplicates = self._strategic.duplicates if self._checked else ()
            return codec.Decoded(strategic_patch(old, self._strategic.value, self._struct), duplicates)
        if self._media_type == MERGE_PATCH:
            patch = codec.merge_patch(self._read(), strict=self._checked)
            return codec.Decoded(merge_patch(old, patch.value), patch.strict)
        patch = codec.json_patch(self._read(), strict=self._checked)
        return codec.Decoded(json_patch(old, patch.value), patch.strict)

    def _read(self) -> codec.PatchBody:
        """The patch as it was sent, to be used up."""
        body, self._body = self._body, None
        return codec.read_patch(self._bytes) if body is None else body

    @cached_property
    def _strategic(self) -> codec.Decoded:
        try:
            return codec.decode_json(self._bytes)
        except ValueError as error:
            raise errors.bad_request(str(error)) from None

    def text(self, old: Object) -> str:
        """How an error quotes the result: as the patching library writes it, or the strategic merge patch itself."""
        if self._media_type == STRATEGIC_MERGE_PATCH:
            return default_format(self._strategic.value)
        if self._struct is None:
            old = codec.decode_stored(codec.encode(old, sort_keys=True))  # as the library gets it
        value = copy(self._change(old).value)  # a patch shares with the object what it leaves alone
        for trail in self._trails():
            _sort_along(value, trail)
        return codec.encode(value, sort_keys=False).decode()

    def _trails(self) -> list[list[str]]:
        """The ways that the patch goes through the object."""
        patch = self._read().value
        if self._media_type == JSON_PATCH:
            pointers = [one[name] for one in patch for name in ("path", "from") if name in one]
            return [pointer.split("/")[1:-1] for pointer in pointers]
        trails, found = [([], patch)], []  # type: list[tuple[list[str], Json]], list[list[str]]
        for trail, value in trails:
            if isinstance(value, dict):
                found.append(trail)
                trails += [([*trail, name], child) for name, child in value.items()]
            elif isinstance(value, list):
                trails += [([*trail, str(index)], child) for index, child in enumerate(value)]
        return found


def _sort_along(value: Json, trail: list[str]) -> None:
    """Sort the keys of the maps that a trail goes through: those the library takes apart, the others it leaves alone."""
    for name in [*trail, None]:
        if isinstance(value, dict):
            items = sorted(value.items())
            value.clear()
            value.update(items)
            value = value.get(name)
        elif isinstance(value, list) and name is not None and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return


def read_configuration(body: bytes, *, field_validation: str) -> codec.Decoded:
    """The body of an apply patch, YAML or JSON. Raises ApiError."""
    config = codec.read_apply(body)
    if config.duplicates and field_validation == "Strict":
        raise codec.refuse_repeated_keys(config)
    return config
