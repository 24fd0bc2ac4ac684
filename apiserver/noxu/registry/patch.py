"""The body of a PATCH: a JSON, merge or strategic merge patch, or a configuration to apply.

JSON and merge patches are decoded before the object is looked up, and checked after: a patch with a wrong operation for
an object that does not exist is answered 404 (upstream's pkg/endpoints/handlers/patch.go).
"""

from __future__ import annotations

from noxu.api import cbor, codec, errors, field, json_patches
from noxu.apply.patch import json_patch, merge_patch
from noxu.apply.strategic import strategic_patch
from noxu.go import json as go_json
from noxu.go.structs import Struct, decode
from noxu.go.text import default_format
from noxu.registry.resource import (
    APPLY_CBOR,
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
)
from noxu.registry.stored_object import in_declared_order
from noxu.values import Json, Object, cached_property, copy


class ObjectPatch:
    """A patch that can be applied to objects. `struct`: the objects' table, None if they have none."""

    def __init__(self, media_type: str, body: bytes, struct: Struct | None, *, field_validation: str) -> None:
        """Raises ApiError."""
        self._media_type = media_type
        self.is_strategic = media_type == STRATEGIC_MERGE_PATCH
        self._struct = struct
        self._checked = field_validation != "Ignore"
        self._bytes = body
        self.moves_values = False
        """Set by `apply`: the patched object may have parts of the old one in other places."""
        self._may_hold_raw_numbers = False
        self._body: json_patches.PatchBody | None = None  # until it is used: what it holds becomes part of an object
        if media_type != STRATEGIC_MERGE_PATCH:
            self._body = self._parsed()
            self._may_hold_raw_numbers = bool(self._body.error) and not self._checked

    def apply(self, old: Object) -> codec.Decoded:
        """The patched object, which shares with `old` what it leaves alone, and the decoder's complaints. Raises ApiError."""
        patched = self._apply(old)
        typed = self._struct is not None
        why = ""
        if self._may_hold_raw_numbers:
            why = codec.unidentified(patched.value, str, typed=True) or self._raw_number_error(patched.value, old)
        why = why or codec.unidentified(patched.value, lambda: self.text(old), typed=typed)
        if why:
            raise invalid_patch(self.text(old), why)
        return patched

    def _raw_number_error(self, value: Json, old: Object) -> str:
        """The decoding error of a patched object with numbers that no float64 holds, "" if it has none of them.

        Go decodes them only where a struct has a field for them.
        """
        if self._struct is not None:
            decoded = decode(self._struct, value)
            if decoded.error:
                return decoded.error
            value = decoded.value
        return go_json.read(self.text(old).encode()).error if go_json.has_raw_number(value) else ""

    def _apply(self, old: Object) -> codec.Decoded:
        if self._media_type == STRATEGIC_MERGE_PATCH:
            assert self._struct is not None, "only kinds with a table offer strategic merge patch"
            self.moves_values = True  # lists are merged by keys
            duplicates = self._strategic.duplicates if self._checked else ()
            patched = strategic_patch(old, _through_json(self._strategic.value), self._struct)
            identity = {
                name: old[name] for name in ("kind", "apiVersion") if name in old
            }  # upstream ignores the patch's
            return codec.Decoded(patched | identity, duplicates)  # shares with `old` what the patch leaves alone
        if self._media_type == MERGE_PATCH:
            patch = json_patches.merge_patch(self._read(), strict=self._checked)
            # new maps on the way; the rest is shared with both
            return codec.Decoded(merge_patch(old, patch.value), patch.strict)
        value, strict = self._json_patched(old)
        if strict:  # repeated keys in values: they are in the patched text, too
            strict = [*strict, *codec.duplicate_field_messages(go_json.read(_written(value)).duplicates)]
            go_json.drop_overridden(value)  # in place: the value is this patch's own
        return codec.Decoded(value, strict)

    def _json_patched(self, old: Object) -> json_patches.Patch:
        """The object to which a JSON patch is applied, with OverriddenKeys, and the complaints about the patch."""
        body = self._read()
        patch = json_patches.json_patch(body, strict=self._checked)
        self.moves_values = any((operation or {}).get("op") in ("move", "copy") for operation in patch.value)
        repeats = self._checked and bool(body.duplicates)
        return json_patches.Patch(json_patch(old, patch.value, repeats=repeats), patch.strict)

    def _read(self) -> json_patches.PatchBody:
        """The patch as it was sent, to be used up."""
        body, self._body = self._body, None  # taken: its values become parts of the patched object
        return self._parsed() if body is None else body

    def _parsed(self) -> json_patches.PatchBody:
        is_json_patch = self._media_type == JSON_PATCH
        return json_patches.read_patch(self._bytes, strict=self._checked, keep_repetitions=is_json_patch)

    @cached_property
    def _strategic(self) -> codec.Decoded:
        try:
            return codec.decode_json(self._bytes)
        except ValueError as error:
            raise errors.bad_request(str(error)) from None

    def text(self, old: Object) -> str:
        """How an error quotes the result: as upstream's patching library writes it, or the strategic merge patch itself."""
        if self._media_type == STRATEGIC_MERGE_PATCH:
            return default_format(self._strategic.value)
        if self._struct is None:
            old = codec.decode_stored(codec.encode(old, sort_keys=True))  # as the library gets it
        elif "metadata" in old:
            old = in_declared_order(old)
        value = copy(self._json_patched(old).value if self._media_type == JSON_PATCH else self._apply(old).value)
        for path in self._paths():
            _sort_along(value, path)
        return _written(value).decode()

    def _paths(self) -> list[list[str]]:
        """The paths that the patch walks through the object.

        The merge patch {"spec": {"a": {"b": 1}}} walks [], ["spec"] and ["spec", "a"].
        """
        patch = self._read().value
        if self._media_type == JSON_PATCH:
            pointers = [(operation or {}).get(name) for operation in patch for name in ("path", "from")]
            return [pointer.split("/")[1:-1] for pointer in pointers if isinstance(pointer, str)]
        todo, paths = [([], patch)], []  # type: list[tuple[list[str], Json]], list[list[str]]
        for path, value in todo:  # the list grows meanwhile
            if isinstance(value, dict):
                paths.append(path)
                todo += [([*path, name], child) for name, child in value.items()]
            elif isinstance(value, list):
                todo += [([*path, str(index)], child) for index, child in enumerate(value)]
        return paths


def _through_json(value: Json) -> Json:
    """A strategic merge patch as upstream converts its values to Go types: 1.0 is written as 1, which is an integer."""
    return codec.decode_stored(codec.encode(value, sort_keys=False)) if go_json.has_float(value) else value


def _written(value: Json) -> bytes:
    """A patched object as upstream's patching library writes it, in which a value may repeat keys."""
    return codec.encode(value, sort_keys=False)


def _sort_along(value: Json, path: list[str]) -> None:
    """Sort the keys of the maps on a path: the library decodes these, and copies the bytes of all others."""
    for name in [*path, None]:
        if isinstance(value, dict):
            items = sorted(value.items())
            value.clear()  # in place: a copy, made for the message
            value.update(items)
            value = value.get(name)
        elif isinstance(value, list) and name is not None and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return


def read_configuration(body: bytes, media_type: str = APPLY_PATCH) -> codec.Decoded:
    """The body of an apply patch, YAML, JSON or CBOR. Raises ApiError."""
    if media_type == APPLY_CBOR:
        return codec.Decoded(cbor.read_apply(body))
    return json_patches.read_apply(body)


def invalid_patch(result: str, why: str) -> errors.ApiError:
    """The result of a patch cannot be decoded."""
    return errors.invalid(errors.Qualified("", ""), "", [field.invalid("patch", result, why)])
