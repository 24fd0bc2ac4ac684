"""An object as it is compared with one of another run: its fields, in which is masked what a server sets for each object anew.

Never compared are uid, times, resourceVersion, generation and managedFields. In texts, uids become shapes (`shapes`). Items of a
list, and lines of a text, are compared as a multiset: programs write those of a map in any order. An annotation that is a time says when something was done, and is left out: it is there or not, as
that was done or not. Of an observed generation, and of the current revision of a StatefulSet, counts whether it is the newest one.

    {"metadata": {"name": "a", "uid": "7d3f…"}, "spec": {"ports": [80, 443]}}

    ("metadata", "name"): ("a",)
    ("spec", "ports", "*"): ("443", "80")

To mask an object costs much more than to compare two, and most parts of an object are the same in each run: a part, such as the spec,
is masked when it is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from noxu.exploration.shapes import TIME, MaskedNames
from noxu.values import Object

Path: TypeAlias = tuple[str, ...]
"""Fields and `*` for the items of a list."""
Values: TypeAlias = tuple[Any, ...]
"""Of a field: several for the items of a list, and for the lines of a text."""
Fields: TypeAlias = Mapping[Path, Values]
_ALWAYS: Final = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink", "deletionTimestamp"}
)
_REVISIONS: Final = (("status", "currentRevision"), ("status", "updateRevision"))
"""Names with a hash of the template."""
_EVERYWHERE: Final = ("uid", "resourceVersion")
"""Of these, what is masked in each field; the others in metadata."""


class MaskedObject:
    """`covers`: which fields are masked, besides those that always are. It is the same function for objects that are compared."""

    __slots__ = ("_covers", "_names", "_parts", "_value")

    def __init__(self, value: Object, covers: Callable[[Path], bool], names: MaskedNames) -> None:
        self._value, self._covers, self._names = value, covers, names
        self._parts: dict[str, Fields] = {}

    def is_of(self, value: Object) -> bool:
        """Whether it is this object, with all that is masked."""
        return self._value == value

    @property
    def fields(self) -> Fields:
        """All that are compared."""
        return {path: held for name in self._value for path, held in self._part(name).items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MaskedObject):
            return NotImplemented
        return next(self._other_parts(other), None) is None

    __hash__ = None  # type: ignore[assignment]

    def differences(self, other: MaskedObject) -> Iterator[tuple[Path, Values | None, Values | None]]:
        """The fields that are others there, in order, with the values here and there; None: there is no such field."""
        for name in sorted(self._other_parts(other)):
            one, two = self._part(name), other._part(name)
            for path in sorted(one.keys() | two.keys()):
                if one.get(path) != two.get(path):
                    yield path, one.get(path), two.get(path)

    def _other_parts(self, other: MaskedObject) -> Iterator[str]:
        is_of_one_generation = self._generation == other._generation  # or what was observed may be an older one
        for name in self._value.keys() | other._value.keys():
            if is_of_one_generation and self._value.get(name) == other._value.get(name):
                continue
            if self._part(name) != other._part(name):
                yield name

    def _part(self, name: str) -> Fields:
        """Of a field of the object with all below it; nothing if there is none."""
        if name not in self._parts:
            self._parts[name] = self._masked({name: self._value[name]}) if name in self._value else {}
        return self._parts[name]

    def _masked(self, part: Object) -> Fields:
        found: dict[Path, list[Any]] = {}
        for path, item in leaves(part, self._names):
            if self._covers(path) or _says_when(path, item):
                continue
            newest = self._newest(path)
            found.setdefault(path, []).append(item if newest is None else _observed(item, newest))
        return {path: tuple(held) for path, held in found.items()}

    def _newest(self, path: Path) -> Any:
        """That of which a field may have an older one; None: there is none."""
        if path in _REVISIONS:
            return self._value["status"].get("updateRevision")
        return self._generation if path[-1] == "observedGeneration" else None

    @property
    def _generation(self) -> Any:
        return (self._value.get("metadata") or {}).get("generation")


def leaves(value: Any, names: MaskedNames) -> list[tuple[Path, Any]]:
    """The fields of an object that are compared, with their masked values. Items of a list are compared as a multiset."""
    found: list[tuple[Path, Any]] = []
    _add_leaves(value, (), names, found)
    return found


def _add_leaves(value: Any, path: Path, names: MaskedNames, found: list[tuple[Path, Any]]) -> None:
    if isinstance(value, str):
        text = names.text(value)
        found += [(path, line) for line in sorted(text.split("\n"))] if "\n" in text else [(path, text)]
    elif isinstance(value, dict) and value:
        masked = _ALWAYS if not path or path[0] == "metadata" else _EVERYWHERE
        for name, item in value.items():
            if name not in masked:
                _add_leaves(item, (*path, name), names, found)
    elif isinstance(value, list) and value:
        items = []
        for item in value:
            of_item: list[tuple[Path, Any]] = []
            _add_leaves(item, (*path, "*"), names, of_item)
            items.append(sorted(_frozen(of_item)))
        for of_item in sorted(items):
            found += of_item
    else:
        found.append((path, value))


def _frozen(fields: Iterable[tuple[Path, Any]]) -> Iterator[tuple[Path, str]]:
    """What can be put in order, whatever it is."""
    return ((path, value if isinstance(value, str) else repr(value)) for path, value in fields)


def _says_when(path: Path, item: Any) -> bool:
    """An annotation that is a time says when something was done, as a log does, and not how the object is, or is made from a template."""
    return bool(item == TIME) and path[-3:-1] == ("metadata", "annotations")


def _observed(item: Any, newest: Any) -> str:
    """Generations count what has happened; what matters is whether the newest one was seen."""
    return "<the newest>" if str(item) == str(newest) else "<an older one>"
