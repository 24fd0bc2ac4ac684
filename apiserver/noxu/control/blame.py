"""Who is to blame for each line of an object: the revision that wrote it last.

`Blame` is given the states of an object, the oldest first, and compares each with the one before it. What is equal keeps its
revision, what differs gets that of the new state:

    revision 7                     revision 9                     lines at 9
    spec:                          spec:                          7  spec:
      size: 1                        parts:                       7    parts:
      parts:                         - name: b                    9    - name: b
      - name: a                      - name: a                    7    - name: a
        count: 1                       count: 2                   9      count: 2
                                     size: 1                      7    size: 1

An item of a list keeps its revisions where it moves to. Items are the same if they have the same keys in a list of maps
(x-kubernetes-list-map-keys, patchMergeKey). Where a list has no keys, equal items are the same; of the rest those with the same
name, type, key or id; and then, in their order, maps are compared with maps.

The line of a map or list that is not empty has the revision at which it came. A first state has the revision at which the
object was created, or that from which on its past is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cmp_to_key
from typing import Final, NamedTuple

from noxu.api import codec
from noxu.apply.types import DEDUCED, Type
from noxu.go.yaml_writer import compare_keys
from noxu.values import Json, Object, equal
from noxu_storage.types import Revision

MAX_DEPTH: Final = 50
"""Levels of an object; what is nested more deeply is one line to blame."""
_TELLING: Final = ("name", "type", "key", "id")
"""Fields that tell items of a list without keys apart, the first that all of them have."""
_INDENT: Final = "  "


class BlamedLine(NamedTuple):
    """A line of YAML, and the revision that wrote it last."""

    text: str
    revision: Revision


class _Part:
    """A value, and when it came; `parts` are those of a map or a list. It is replaced, never changed."""

    __slots__ = ("parts", "revision", "value")

    def __init__(self, value: Json, revision: Revision, parts: dict[str, _Part] | list[_Part] | None = None) -> None:
        self.value = value
        self.revision = revision
        self.parts = parts


class Blame:
    """The lines of an object as of the states that were added. `type_` is that of its kind."""

    def __init__(self, type_: Type) -> None:
        self._type = type_
        self._root: _Part | None = None

    def add(self, revision: Revision, value: Object) -> None:
        """Add the next state. It must not be changed from now on."""
        root = self._root
        self._root = _new(value, revision) if root is None else _changed(root, value, revision, self._type, 0)

    def lines(self) -> list[BlamedLine]:
        """The lines of the newest state."""
        return [] if self._root is None else [*_lines_of(self._root, 0)]


# -- comparing ---------------------------------------------------------------------------------------------------------


def _new(value: Json, revision: Revision, depth: int = 0) -> _Part:
    if depth < MAX_DEPTH and isinstance(value, dict):
        return _Part(value, revision, {name: _new(item, revision, depth + 1) for name, item in value.items()})
    if depth < MAX_DEPTH and isinstance(value, list):
        return _Part(value, revision, [_new(item, revision, depth + 1) for item in value])
    return _Part(value, revision)


def _changed(part: _Part, value: Json, revision: Revision, type_: Type, depth: int) -> _Part:
    """The part of a value that was `part.value` in the state before."""
    if equal(part.value, value):
        return part
    before = part.parts
    if isinstance(value, dict) and isinstance(before, dict) and value and before:
        fields = type_.map
        parts: dict[str, _Part] = {}
        for name, item in value.items():
            old = before.get(name)
            inner = DEDUCED if fields is None else fields.fields[name][1] if name in fields.fields else fields.values
            parts[name] = (
                _new(item, revision, depth + 1)
                if old is None
                else _changed(old, item, revision, inner or DEDUCED, depth + 1)
            )
        return _Part(value, part.revision, parts)
    if isinstance(value, list) and isinstance(before, list) and value and before:
        items = type_.list.items if type_.list is not None else DEDUCED
        keys = type_.list.keys if type_.list is not None else ()
        return _Part(
            value,
            part.revision,
            [
                _new(item, revision, depth + 1) if old is None else _changed(old, item, revision, items, depth + 1)
                for item, old in zip(value, _correlated(before, value, keys), strict=True)
            ],
        )
    return _new(value, revision, depth)


def _correlated(before: Sequence[_Part], items: Sequence[Json], keys: Sequence[str]) -> list[_Part | None]:
    """For each item the part that was the same item in the state before, each at most once; None if there was none."""
    found: list[_Part | None] = [None] * len(items)
    remaining = dict(enumerate(before))
    if keys:
        _pair(found, remaining, items, _identity_of(keys))
        return found
    for identify in (_text_of, _identity_of(_telling(before, items)), _map):
        _pair(found, remaining, items, identify)
    return found


def _pair(
    found: list[_Part | None],
    remaining: dict[int, _Part],
    items: Sequence[Json],
    identify: Callable[[Json], str | None],
) -> None:
    """Pair the items that have no part yet with remaining parts of the same identity, in their order."""
    of: dict[str, list[int]] = {}
    for position, part in remaining.items():
        if (identity := identify(part.value)) is not None:
            of.setdefault(identity, []).append(position)
    for position, item in enumerate(items):
        if found[position] is None and (identity := identify(item)) is not None and of.get(identity):
            found[position] = remaining.pop(of[identity].pop(0))  # taken: it is no other item's


def _identity_of(keys: Sequence[str]) -> Callable[[Json], str | None]:
    def identity(item: Json) -> str | None:
        if not keys or not isinstance(item, dict) or not any(key in item for key in keys):
            return None
        return _text_of([item.get(key) for key in keys])

    return identity


def _map(item: Json) -> str | None:
    """All maps are the same."""
    return "a map" if isinstance(item, dict) else None


def _text_of(item: Json) -> str:
    return codec.encode(item, sort_keys=True).decode("utf-8", "surrogatepass")


def _telling(before: Sequence[_Part], items: Sequence[Json]) -> Sequence[str]:
    """The field that all items of both lists have, with different texts in each list."""
    lists = [part.value for part in before], items
    for name in _TELLING:
        texts = [[item.get(name) if isinstance(item, dict) else None for item in each] for each in lists]
        if all(all(isinstance(text, str) for text in each) and len({*each}) == len(each) for each in texts):
            return (name,)
    return ()


# -- lines -------------------------------------------------------------------------------------------------------------


def _lines_of(part: _Part, depth: int) -> Iterator[BlamedLine]:
    """The lines of a map or list that is not empty, at a depth of indentation."""
    if isinstance(part.parts, dict):
        for name in sorted(part.parts, key=cmp_to_key(compare_keys)):
            yield from _entry(name, part.parts[name], depth)
    elif isinstance(part.parts, list):
        for item in part.parts:
            yield from _item(item, depth)


def _entry(name: str, part: _Part, depth: int) -> Iterator[BlamedLine]:
    """The lines of a field of a map."""
    if not part.parts:
        yield from _written({name: part.value}, part.revision, depth)
        return
    [*head, last] = _written({name: {}}, part.revision, depth)
    yield from head
    yield last._replace(text=last.text.removesuffix(" {}"))
    # lists in maps are not indented
    yield from _lines_of(part, depth + isinstance(part.parts, dict))


def _item(part: _Part, depth: int) -> Iterator[BlamedLine]:
    """The lines of an item of a list."""
    if not part.parts:
        yield from _written([part.value], part.revision, depth)
        return
    indentation = _INDENT * depth
    first = f"{indentation}- "
    for line in _lines_of(part, depth + 1):
        yield line._replace(text=first + line.text.removeprefix(indentation + _INDENT))
        first = indentation + _INDENT


def _written(value: Object | list[Json], revision: Revision, depth: int) -> list[BlamedLine]:
    """The lines of a map or list with one member, as they are at a depth: there long lines are folded earlier."""
    levels = depth + isinstance(value, list)
    nested: Json = value
    for _ in range(levels):
        nested = {"a": nested}
    text = codec.to_yaml(nested).decode("utf-8", "surrogatepass").removesuffix("\n")
    lines = text.split("\n")[levels:]
    if not lines:  # too much indentation: `to_yaml` has written JSON
        lines = [_INDENT * depth + _text_of(value)]
    return [BlamedLine(line, revision) for line in lines]
