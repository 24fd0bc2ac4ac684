"""Sets of fields that recur: objects of a kind have the same owners, again and again.

Equal JSON is read as one dict, because copies would take more memory. When it recurs, its JSON is kept, too, so that it is
not encoded again for each object. Only canonical sets are kept: those that their own JSON is read as. Sets are immutable by
convention (see `fieldset`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import orjson

from noxu.api import codec
from noxu.values import Json

FieldSet: TypeAlias = dict[str, Any]  # of `fieldset`, which servers import with the first write

MAX_KEPT: Final = 256
MAX_KEPT_BYTES: Final = 8 * 1024
"""The number of sets that are kept of one resource, and the length of their JSON."""


class RecurringSets:
    """The sets of one resource, in all its versions. Threads may use it at the same time: at worst a set is not kept."""

    __slots__ = ("_sets", "_texts")

    def __init__(self) -> None:
        self._sets: dict[bytes, FieldSet] = {}
        """By their JSON, with its keys in any order."""
        self._texts: dict[int, tuple[FieldSet, bytes]] = {}
        """The JSON, with sorted keys, of those that have recurred; by the set's id, which the set itself keeps in use."""

    def read(self, fields: Json, parse: Callable[[Json], FieldSet]) -> FieldSet:
        """fieldsV1 as a set, the same dict for equal JSON of canonical sets.

        `parse` makes the set, which is `fields` itself if that is canonical, and raises what this raises.
        """
        recurring = self._known(fields, lambda own: parse(own) is own)
        return parse(fields) if recurring is None else recurring

    def written(self, fields: FieldSet, is_canonical: Callable[[FieldSet], bool]) -> FieldSet:
        """The same for a set that a write has made. If it is not canonical (`v:-0`), it is read as another one (`v:0`)."""
        recurring = self._known(fields, is_canonical)
        return fields if recurring is None else recurring

    def _known(self, fields: Json, is_canonical: Callable[[Json], bool]) -> FieldSet | None:
        """The set with the JSON of `fields`, which is kept as that set if it is new. None if it is not kept."""
        if self.json_of(fields) is not None:
            return fields  # type: ignore[no-any-return]
        try:
            written = orjson.dumps(fields)
        except TypeError:  # too deep
            return None
        recurring = self._sets.get(written)
        if recurring is None:
            if len(written) > MAX_KEPT_BYTES or not is_canonical(fields):
                return None
            if len(self._sets) >= MAX_KEPT:
                self._sets.clear()
                self._texts.clear()
            recurring = self._sets[written] = fields  # from now on many objects share this dict
        elif id(recurring) not in self._texts:
            self._texts[id(recurring)] = recurring, codec.encode(recurring, sort_keys=True)
        return recurring

    def json_of(self, fields: Json) -> bytes | None:
        """The JSON of fieldsV1 with sorted keys, as `codec.encode` writes it; None if it is not known."""
        entry = self._texts.get(id(fields))
        return entry[1] if entry is not None and entry[0] is fields else None

    def set_of(self, text: bytes) -> FieldSet | None:
        """The set with that JSON, if its JSON is known; else None."""
        recurring = self._sets.get(text)
        return recurring if recurring is not None and self.json_of(recurring) == text else None

    def kept(self) -> dict[bytes, FieldSet]:
        """The sets that are kept, by the JSON that each is read from and, unless it was changed in place, is."""
        return dict(self._sets)
