"""Merging an applied configuration into a live object, and removing fields from an object (structured-merge-diff).

`merge` never removes anything; of two leaves the configuration's wins. Parts that the configuration does not change are
shared with the live object, not copied, so that identity shows what is unchanged. `remove` shares as well. Recursion
follows the type; where types end, loops follow the data.

The annotation kubectl.kubernetes.io/last-applied-configuration is handled as well, for applies by the field manager
`kubectl` only: objects that were applied client-side before may be taken over without `--force-conflicts`, and the
annotation is kept up to date for older clients.
"""

from __future__ import annotations

from typing import Final

import orjson

from noxu.apply.comparison import compare
from noxu.apply.fieldset import SELF, Element, FieldSet, difference, is_member
from noxu.apply.typed import identified, to_set, validate
from noxu.apply.types import DEDUCED, ListType, MapType, Type
from noxu.go.text import compact_json
from noxu.values import Json, Object, equal

_ABSENT: Final = object()
_CONTAINERS: Final = frozenset({dict, list})


def merge(live: Json, config: Json, kind: Type) -> Json:
    """The live value with the configuration merged into it; the live value itself if that changes nothing.

    Both are of the type. A null in the configuration replaces the live value, but an empty map or list does not.
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
            declared = kind.fields.get(name)
            theirs = merge(mine, theirs, (kind.values or DEDUCED) if declared is None else declared[1])
        if mine is not theirs:
            if merged is None:
                merged = dict(live)
            merged[name] = theirs
    return live if merged is None else merged


def _merge_deduced(live: Object, config: Object) -> Object:
    """_merge_maps for maps without a declared type, without recursion.

    A frame is (live map, configuration, changed members, changed members of the parent, name in the parent); the second
    loop merges the changes into the parents', children first.
    """
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
    """Merge associative lists: the configuration's items in its order, other live items near their neighbours.

    Two cursors run over the elements of both sides. A live item that the configuration lacks is copied at once; one that
    both have waits for its turn in the configuration. `next_shared` is the configuration's next item that is also live:
    as long as it is not reached, the live cursor skips shared items. Live items that occur more than once are replaced
    by the configuration's, not merged.

        live        a b c d         config      c x a       shared items: c, a

        live  config  next_shared   step                                merged
        a     c       c             a is shared, but not next: skip     []
        b     c       c             b is live only: copy                [b]
        c     c       c             equal: merge both                   [b c]
        d     x       a             d is live only: copy                [b c d]
        -     x       a             x is new                            [b c d x]
        -     a       a             a is shared: merge                  [b c d x a]
    """
    element_of, config_element_of = identified(kind, live), identified(kind, config)
    live_elements = [element_of(item) for item in live]
    config_items = {config_element_of(item): item for item in config}
    config_elements = list(config_items)  # in the configuration's order
    live_items: dict[Element, Json] = {}  # None for an item that occurs more than once
    for element, item in zip(live_elements, live, strict=True):
        live_items[element] = None if element in live_items else item
    shared = iter([element for element in config_elements if element in live_items])
    next_shared = next(shared, None)
    merged: list[Json] = []
    done: set[Element] = set()
    left = right = 0
    while left < len(live_elements) or right < len(config_elements):
        if left < len(live_elements):
            element = live_elements[left]
            if right < len(config_elements):
                if element == config_elements[right]:
                    done.add(element)
                    merged.append(merge(live_items[element], config_items[element], kind.items))
                    left += 1
                    right += 1
                    next_shared = next(shared, None)
                    continue
                if element in config_items and next_shared is not None and element != next_shared:
                    left += 1
                    continue
            if element not in config_items:
                merged.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(config_elements):
            element = config_elements[right]
            done.add(element)
            item = config_items[element]
            merged.append(merge(live_items[element], item, kind.items) if element in live_items else item)
            right += 1
            if element == next_shared:
                next_shared = next(shared, None)
    if len(merged) == len(live) and all(a is b for a, b in zip(merged, live, strict=True)):
        return live
    return merged


def remove(value: Json, fields: FieldSet, kind: Type) -> Json:
    """The value without these fields. As upstream, a map or list from which fields were removed becomes null if empty.

    {"spec": {"a": 1}, "x": 2} without {f:spec: {f:a}} is {"spec": null, "x": 2}.
    """
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
    element_of = identified(kind.list, value)
    for item in value:
        node = fields.get(element_of(item))
        if node is None:
            kept.append(item)
        elif not is_member(node):
            kept.append(remove(item, node, kind.list.items))
    return kept or None


def _remove_from_map(value: Object, fields: FieldSet, kind: MapType) -> Object | None:
    kept: Object = {}
    for name, child in value.items():
        declared = kind.fields.get(name)
        node = fields.get("f:" + name if declared is None else declared[0])
        if node is None:
            kept[name] = child
        elif not is_member(node):
            kept[name] = remove(child, node, (kind.values or DEDUCED) if declared is None else declared[1])
    return kept or None


def _remove_deduced(value: Object, fields: FieldSet) -> Object | None:
    """_remove_from_map for maps without a declared type, without recursion."""
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


# -- lastapplied ------------------------------------------------------------------------------------------------------


KUBECTL: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATIONS: Final = 256 * 1024  # upstream's TotalAnnotationSizeLimitB


def _annotation(value: Object) -> str:
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return text if isinstance(text, str) else ""


def applied_client_side(live: Object, version: str, kind: Type) -> FieldSet | None:
    """The fields with the values of the annotation. None if there is no annotation of this version."""
    try:
        config = orjson.loads(_annotation(live))
    except ValueError:
        return None
    if not isinstance(config, dict) or not config.get("kind") or config.get("apiVersion") != version:
        return None
    if validate(config, kind) or validate(live, kind):
        return None
    change = compare(config, live, kind)
    fields = to_set(config, kind)
    for differing in change:
        fields = difference(fields, differing)
    return fields


def renewed(value: Object, config: Object) -> Object:
    """The object with the annotation updated to the applied configuration, if it has the annotation."""
    if not _annotation(value):
        return value
    metadata = value["metadata"]
    annotations = metadata["annotations"] | {ANNOTATION: compact_json(_plain(config)) + "\n"}
    if sum(len(name.encode()) + len(text.encode()) for name, text in annotations.items()) > MAX_ANNOTATIONS:
        del annotations[ANNOTATION]
    return {**value, "metadata": {**metadata, "annotations": annotations}}


def _plain(config: Object) -> Object:
    """The configuration without the annotation."""
    metadata = config.get("metadata")
    if not isinstance(metadata, dict) or "annotations" not in metadata:
        return config
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    if isinstance(metadata["annotations"], dict):
        annotations = {name: text for name, text in metadata["annotations"].items() if name != ANNOTATION}
        rest["annotations"] = annotations
    return {**config, "metadata": rest}
