"""Correlate a new value with the old one along the schema, for ratcheting (KEP-4008; upstream's CorrelatedObject).

Properties and the values of additionalProperties are correlated by name, items of lists of type map by their keys, items
of other lists not at all.

Two consequences of upstream's definition of equality: an object with a field that its schema does not declare is never
equal, so that the root of a resource never ratchets (it has metadata); and lists of type map are equal in any order, if
each item has an equal one.
"""

from __future__ import annotations

from typing import Final

from noxu.schema.structural import Structural
from noxu.values import Json, equal


class Correlated:
    """A value, the old value it is compared with, and their schema."""

    __slots__ = ("_by_keys", "_children", "_equal", "new", "old", "schema")

    def __init__(self, new: Json, old: Json, schema: Structural) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self._equal: bool | None = None
        self._children: dict[str | int, Correlated | None] = {}
        self._by_keys: dict[object, Json] | None = None

    def key(self, name: str) -> Correlated | None:
        """The property or map value of that name, if both sides have it and the schema declares it."""
        if name not in self._children:
            self._children[name] = self._find_key(name)
        return self._children[name]

    def index(self, position: int) -> Correlated | None:
        """The item at that position of a list of type map, if the old list has one with the same keys."""
        if position not in self._children:
            self._children[position] = self._find_index(position)
        return self._children[position]

    def equal(self) -> bool:
        """Whether the value is unchanged."""
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _find_key(self, name: str) -> Correlated | None:
        new, old, schema = self.new, self.old, self._schema_of(name)
        if schema is None or not isinstance(new, dict) or not isinstance(old, dict):
            return None
        return Correlated(new[name], old[name], schema) if name in new and name in old else None

    def _schema_of(self, name: str) -> Structural | None:
        return self.schema.properties.get(name) or self.schema.values

    def _find_index(self, position: int) -> Correlated | None:
        items, names = self.schema.items, self.schema.list_map_keys
        if items is None or not self._is_map_list() or position >= len(self.new):
            return None
        if self._by_keys is None:
            self._by_keys = {}
            for item in self.old:
                self._by_keys.setdefault(_composite_key(item, names), item)
        composite = _composite_key(self.new[position], names)
        old = None if composite is None else self._by_keys.get(composite)
        return None if old is None else Correlated(self.new[position], old, items)

    def _is_map_list(self) -> bool:
        return self.schema.list_type == "map" and isinstance(self.new, list) and isinstance(self.old, list)

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, dict) and isinstance(old, dict):
            return len(new) == len(old) and all(map(self._is_key_equal, new))
        if self._is_map_list():
            return len(new) == len(old) and all((item := self.index(n)) and item.equal() for n in range(len(new)))
        return equal(new, old)

    def _is_key_equal(self, name: str) -> bool:
        new = self.new[name]
        if type(new) in _SCALARS:  # as `key(name).equal()`, without a node for every scalar
            old = self.old.get(name)
            return type(old) is type(new) and old == new and self._schema_of(name) is not None
        inner = self.key(name)
        return inner is not None and inner.equal()


def _composite_key(item: Json, names: tuple[str, ...]) -> object:
    """The keys of an item as a hashable value, None unless all of them are scalars."""
    if not isinstance(item, dict) or not names or not all(type(item.get(name)) in _SCALARS for name in names):
        return None
    if len(names) == 1:
        return type(item[names[0]]), item[names[0]]
    return tuple((type(item[name]), _as_text(item[name])) for name in names)


_SCALARS: Final = frozenset({bool, int, float, str})


def _as_text(scalar: Json) -> str:
    """A key as text: upstream joins several keys, with six decimals for floats."""
    return f"{scalar:f}" if isinstance(scalar, float) else str(scalar)
