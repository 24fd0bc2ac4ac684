"""The changes between two values of one type, as field sets (structured-merge-diff's Compare).

A leaf (a scalar, an atomic map or list, a map or list that is empty on both sides) is added, removed or modified as a
whole. Maps are compared key by key, associative lists item by item, regardless of order. A value on one side only is
added or removed itself, with everything in it; therefore updates own the structs that they add.

    old         {"spec": {"a": 1, "b": 2}}
    new         {"spec": {"a": 7, "c": {"d": 3}}}
    removed     {f:spec: {f:b}}
    modified    {f:spec: {f:a}}
    added       {f:spec: {f:c: {., f:d}}}

Recursion follows the type; where types end, loops follow the data. Most writes change little, so in the upper levels
equal values are skipped: all levels of values that Python can compare (`exact`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from noxu.apply.fieldset import EMPTY, MEMBER, SELF, Element, FieldSet, union
from noxu.apply.typed import deduced, identified, whole
from noxu.apply.types import DEDUCED, ListType, MapType, Type
from noxu.values import Json, Object, equal


class Comparison(NamedTuple):
    """Three disjoint sets of fields."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def written(self) -> FieldSet:
        """The fields that the new value has set."""
        return union(self.modified, self.added)

    def filtered(self, keep: Callable[[FieldSet], FieldSet]) -> Comparison:
        """The comparison with those fields that `keep` leaves of each set."""
        removed, modified, added = self
        return Comparison(removed and keep(removed), modified and keep(modified), added and keep(added))


COMPARED_LEVELS: Final = 2
"""Levels below the root in which whole values are compared first; each level that differs is compared once more."""
EXACT_LEVELS: Final = 8
"""The same for exact values, which Python compares twenty times as fast as the loops here do."""

Equality: TypeAlias = Callable[[Json, Json], bool]

NO_CHANGE: Final = Comparison(EMPTY, EMPTY, EMPTY)

_Nodes: TypeAlias = tuple[FieldSet | None, FieldSet | None, FieldSet | None]
"""(removed, modified, added) below one node; None for an empty set."""

_LEAF: Final[_Nodes] = (None, MEMBER, None)


def compare(old: Json, new: Json, kind: Type, *, exact: bool = False) -> Comparison:
    """Compare values of the type; lists may have duplicates.

    `exact`: parts in the same place that Python calls equal are equal (it does so for 1, 1.0 and True). That skips only what
    a comparison of the parts would find equal.
    """
    nodes = _differ(old, new, kind, *((EXACT_LEVELS, operator.eq) if exact else (COMPARED_LEVELS, equal)))
    return NO_CHANGE if nodes is None else Comparison(*[node or EMPTY for node in nodes])


def _differ(old: Json, new: Json, kind: Type, levels: int = 0, is_equal: Equality = equal) -> _Nodes | None:
    """None if the values are equal. If one is a map and the other a list, they are compared as both.

    `levels` is the number of levels below this one in which whole values are compared first, by `is_equal`.
    """
    if old is new:
        return None
    maps = None if kind is DEDUCED else kind.map
    if type(old) is dict and type(new) is dict and maps is not None and not maps.atomic and (old or new):
        return _maps_differ(old, new, maps, levels, is_equal)  # nearly always
    nodes: _Nodes | None = None
    for shape in {kind.shapes[type(old)]: None, kind.shapes[type(new)]: None}:
        if shape == "map" and kind.map is not None and not kind.map.atomic:
            before: Json = old if type(old) is dict else {}
            after: Json = new if type(new) is dict else {}
            if before or after:
                if kind is DEDUCED:
                    nodes = _both(nodes, _deduced_differ(before, after))
                else:
                    nodes = _both(nodes, _maps_differ(before, after, kind.map, levels, is_equal))
                continue
        elif shape == "list" and kind.list is not None and kind.list.associative:
            before = old if type(old) is list else []
            after = new if type(new) is list else []
            if before or after:
                nodes = _both(nodes, _lists_differ(before, after, kind.list, levels, is_equal))
                continue
        if not same(old, new):
            nodes = _both(nodes, _LEAF)
    return nodes


def _both(left: _Nodes | None, right: _Nodes | None) -> _Nodes | None:
    """The union of comparisons as a map and as a list: one has the removed fields, the other the added ones."""
    if left is None or right is None:
        return left or right
    removed, modified, added = (b if a is None else a for a, b in zip(left, right, strict=True))
    return removed, modified, added


def _maps_differ(before: Object, after: Object, kind: MapType, levels: int, is_equal: Equality) -> _Nodes | None:
    fields, values = kind.fields, kind.values or DEDUCED
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    for name, old in before.items():
        new = after.get(name, _ABSENT)
        if old is new:
            continue
        is_leaf = False
        if type(old) is type(new):
            is_leaf = type(old) not in _CONTAINERS
            if old == new if is_leaf else levels and is_equal(old, new):
                continue
        declared = fields.get(name)
        element, inner = ("f:" + name, values) if declared is None else declared
        if is_leaf:
            modified[element] = MEMBER
        elif new is _ABSENT:
            removed[element] = whole(old, inner)
        elif (nodes := _differ(old, new, inner, levels and levels - 1, is_equal)) is not None:
            _enter(nodes, element, removed, modified, added)
    if removed or len(after) != len(before):
        for name, new in after.items():
            if name not in before:
                declared = fields.get(name)
                element, inner = ("f:" + name, values) if declared is None else declared
                added[element] = whole(new, inner)
    return _nodes(removed, modified, added)


def _lists_differ(
    before: list[Json], after: list[Json], kind: ListType, levels: int, is_equal: Equality
) -> _Nodes | None:
    """Items that occur more than once on a side are one leaf there."""
    olds, news = _by_element(before, kind), _by_element(after, kind)
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    for element, old in olds.items():
        new = news.get(element, [])
        if len(old) == 1 and len(new) == 1:
            if levels and is_equal(old[0], new[0]):
                continue
            if (nodes := _differ(old[0], new[0], kind.items, levels, is_equal)) is not None:
                _enter(nodes, element, removed, modified, added)
        elif len(old) > 1 and len(new) > 1:
            if not same(old, new):
                modified[element] = MEMBER
        else:
            removed[element] = whole(old[0], kind.items) if len(old) == 1 else MEMBER
            if new:
                added[element] = whole(new[0], kind.items) if len(new) == 1 else MEMBER
    for element, new in news.items():
        if element not in olds:
            added[element] = whole(new[0], kind.items) if len(new) == 1 else MEMBER
    return _nodes(removed, modified, added)


def _by_element(items: list[Json], kind: ListType) -> dict[Element, list[Json]]:
    by_element: dict[Element, list[Json]] = {}
    element_of = identified(kind, items)
    for item in items:
        by_element.setdefault(element_of(item), []).append(item)
    return by_element


def _enter(nodes: _Nodes, element: Element, removed: FieldSet, modified: FieldSet, added: FieldSet) -> None:
    of_removed, of_modified, of_added = nodes
    if of_removed is not None:
        removed[element] = of_removed
    if of_modified is not None:
        modified[element] = of_modified
    if of_added is not None:
        added[element] = of_added


def _nodes(removed: FieldSet, modified: FieldSet, added: FieldSet) -> _Nodes | None:
    if not (removed or modified or added):
        return None
    return removed or None, modified or None, added or None


def _deduced_differ(before: Object, after: Object) -> _Nodes | None:
    """_maps_differ for maps without a declared type, without recursion.

    A frame is (old map, new map, its three sets, those of its parent, its element in the parent). See `fieldset` for the
    second loop, which attaches the sets to those of the parents.
    """
    frames: list[tuple[Object, Object, tuple[FieldSet, ...], tuple[FieldSet, ...], Element]]
    frames = [(before, after, ({}, {}, {}), ({}, {}, {}), SELF)]
    for olds, news, sets, _, _ in frames:
        removed, _, added = sets
        for name, old in olds.items():
            new = news.get(name, _ABSENT)
            if old is new:
                continue
            element = "f:" + name
            if new is _ABSENT:
                removed[element] = deduced(old)
            elif type(old) is dict and type(new) is dict and (old or new):
                frames.append((old, new, ({}, {}, {}), sets, element))
            elif (nodes := _differ(old, new, DEDUCED)) is not None:
                _enter(nodes, element, *sets)
        for name, new in news.items():
            if name not in olds:
                added["f:" + name] = deduced(new)
    for _, _, sets, parents, element in reversed(frames):
        for node, parent in zip(sets, parents, strict=True):
            if node:
                parent[element] = node
    return _nodes(*frames[0][2])


_CONTAINERS: Final = frozenset({dict, list})
_ABSENT: Final = object()


def same(left: Json, right: Json) -> bool:
    """structured-merge-diff's equality: regardless of the order of keys; 1 and 1.0 are equal, 1 and true are not."""
    todo = [(left, right)]
    while todo:
        a, b = todo.pop()
        if a is b:
            continue
        if type(a) is not type(b):
            if type(a) not in _NUMBERS or type(b) not in _NUMBERS or float(a) != float(b):
                return False
        elif type(a) is dict:
            if a.keys() != b.keys():
                return False
            todo += [(child, b[name]) for name, child in a.items()]
        elif type(a) is list:
            if len(a) != len(b):
                return False
            todo += zip(a, b, strict=True)
        elif a != b:
            return False
    return True


_NUMBERS: Final = frozenset({int, float})
