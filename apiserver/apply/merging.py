"""Merging an applied configuration into a live object, and taking fields out of one (structured-merge-diff).

`merge` never removes anything; where both sides have a leaf the configuration's wins. What the configuration does not
touch is the live object's own, shared and not copied: identity says that nothing changed there. `remove` shares as
well. Recursion follows the type; where types end, loops follow the data.
"""

from __future__ import annotations

from typing import Final

from apiserver.api.types import Json, Object
from apiserver.api.values import equal
from apiserver.apply.fieldset import SELF, Element, FieldSet, is_member
from apiserver.apply.typed import item_of
from apiserver.apply.types import DEDUCED, ListType, MapType, Type

_ABSENT: Final = object()
_CONTAINERS: Final = frozenset({dict, list})


def merge(live: Json, config: Json, kind: Type) -> Json:
    """The live value with the configuration merged in; the live value itself if that changes nothing.

    Both are of the type. Null in the configuration is a value, but an empty one does not empty a map or a list.
    """
    if live is config:
        return live
    shape = kind.shapes[type(config)]
    if shape == "map" and kind.map is not None and not kind.map.atomic:
        mine: Json = live if type(live) is dict else {}
        theirs: Json = config if type(config) is dict else {}
        if mine and theirs:
            return _merge_deduced(mine, theirs) if kind is DEDUCED else _merge_maps(mine, theirs, kind.map)
        if mine:
            return live
    elif shape == "list" and kind.list is not None and kind.list.associative:
        mine = live if type(live) is list else []
        theirs = config if type(config) is list else []
        if mine and theirs:
            return _merge_lists(mine, theirs, kind.list)
        if mine:
            return live
    return live if equal(live, config) else config


def _merge_maps(live: Object, config: Object, kind: MapType) -> Object:
    merged: Object | None = None
    for name, theirs in config.items():
        mine = live.get(name, _ABSENT)
        if type(mine) is type(theirs) and type(mine) not in _CONTAINERS:
            if mine == theirs:
                continue
        elif mine is not _ABSENT:
            known = kind.fields.get(name)
            theirs = merge(mine, theirs, (kind.values or DEDUCED) if known is None else known[1])
        if mine is not theirs:
            if merged is None:
                merged = dict(live)
            merged[name] = theirs
    return live if merged is None else merged


def _merge_deduced(live: Object, config: Object) -> Object:
    """_merge_maps where nothing is declared, without recursion."""
    frames: list[tuple[Object, Object, Object, Object, str]] = [(live, config, {}, {}, "")]
    for mine, theirs, changes, _, _ in frames:
        for name, new in theirs.items():
            old = mine.get(name, _ABSENT)
            if type(old) is dict and type(new) is dict and old and new:
                frames.append((old, new, {}, changes, name))
                continue
            merged = new if old is _ABSENT else merge(old, new, DEDUCED)
            if merged is not old:
                changes[name] = merged
    for mine, _, changes, parent, place in reversed(frames[1:]):
        if changes:
            parent[place] = mine | changes
    return live | frames[0][2] if frames[0][2] else live


def _merge_lists(live: list[Json], config: list[Json], kind: ListType) -> list[Json]:
    """Items in the order of the configuration where it has them, the live ones that it has not in between.

    Live items that stand more than once are not merged, but replaced by the configuration's one.
    """
    mine = [item_of(kind, one) for one in live]
    theirs = {item_of(kind, one): one for one in config}
    wanted = list(theirs)
    known: dict[Element, Json] = {}
    for element, one in zip(mine, live, strict=True):
        known[element] = None if element in known else one
    shared = iter([element for element in wanted if element in known])
    next_shared = next(shared, None)
    merged: list[Json] = []
    done: set[Element] = set()
    left = right = 0
    while left < len(mine) or right < len(wanted):
        if left < len(mine):
            element = mine[left]
            if right < len(wanted):
                if element == wanted[right]:
                    done.add(element)
                    merged.append(merge(known[element], theirs[element], kind.items))
                    left += 1
                    right += 1
                    next_shared = next(shared, None)
                    continue
                if element in theirs and next_shared is not None and element != next_shared:
                    left += 1  # its turn comes with the configuration's
                    continue
            if element not in theirs:
                merged.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(wanted):
            element = wanted[right]
            done.add(element)
            one = theirs[element]
            merged.append(merge(known[element], one, kind.items) if element in known else one)
            right += 1
            if element == next_shared:
                next_shared = next(shared, None)
    if len(merged) == len(live) and all(a is b for a, b in zip(merged, live, strict=True)):
        return live
    return merged


def remove(value: Json, fields: FieldSet, kind: Type) -> Json:
    """The value without these fields. A map or a list that was looked into and is empty then is null, as upstream."""
    shape = kind.shapes[type(value)]
    if shape == "scalar":
        return value
    if shape == "map":
        if type(value) is not dict or kind.map is None or kind.map.atomic:
            return None
        return _remove_deduced(value, fields) if kind is DEDUCED else _remove_from_map(value, fields, kind.map)
    if type(value) is not list or kind.list is None or not kind.list.associative:
        return None
    kept = []
    for one in value:
        node = fields.get(item_of(kind.list, one))
        if node is None:
            kept.append(one)
        elif not is_member(node):
            kept.append(remove(one, node, kind.list.items))
    return kept or None


def _remove_from_map(value: Object, fields: FieldSet, kind: MapType) -> Object | None:
    kept: Object = {}
    for name, child in value.items():
        known = kind.fields.get(name)
        node = fields.get("f:" + name if known is None else known[0])
        if node is None:
            kept[name] = child
        elif not is_member(node):
            kept[name] = remove(child, node, (kind.values or DEDUCED) if known is None else known[1])
    return kept or None


def _remove_deduced(value: Object, fields: FieldSet) -> Object | None:
    """_remove_from_map where nothing is declared, without recursion."""
    frames: list[tuple[Object, FieldSet, Object, Object, str]] = [(value, fields, {}, {}, SELF)]
    for source, below, kept, _, _ in frames:
        for name, child in source.items():
            node = below.get("f:" + name)
            if node is None:
                kept[name] = child
            elif is_member(node):
                continue
            elif type(child) is dict:
                kept[name] = None  # keeps its place among its siblings
                frames.append((child, node, {}, kept, name))
            else:
                kept[name] = remove(child, node, DEDUCED)
    for _, _, kept, parent, place in reversed(frames[1:]):
        parent[place] = kept or None
    return frames[0][2] or None
