"""Three-way merges: what `kubectl apply` makes of an object, its last applied configuration, and a new configuration.

The result is the live object, with the fields of the new configuration, and without those that only the last one had. So
fields that others have set stay, unless the new configuration has them, too (kubectl's pkg/cmd/apply/patcher.go,
apimachinery's CreateThreeWayMergePatch):

    last    {size: 1, colour: red}     live    {size: 1, colour: red, owner: me}
    new     {size: 2}                  result  {size: 2, owner: me}

Kinds with struct tables are merged as a strategic merge patch does it: lists of fields with `patchStrategy: merge` by their
merge keys, or as sets. kubectl merges items whose merge key occurs twice into one; here such a list is replaced. Of all other
kinds lists are replaced, and a null in the new configuration changes nothing, unless the last one had a value there.

Nothing is changed in place; the result shares parts with its arguments. Clients choose the depth of objects, so nothing
recurses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from noxu.go.structs import Field, List, Map, Struct, Type
from noxu.values import Json, Object

_NOTHING: Final[Object] = {}
_RETAIN_KEYS: Final = "retainKeys"


def three_way(last: Object, new: Object, live: Object, kind: Struct | None) -> Object:
    """The object after an apply. `kind`: the table of the objects, None if they have none."""
    top: list[Json] = [live]
    todo: list[_Merge] = [(last, new, live, kind, False, top, 0)]
    while todo:
        last_value, new_value, live_value, type_, retains, container, at = todo.pop()
        container[at] = merged = _kept(last_value, new_value, live_value, retains=retains)
        for name, value in new_value.items():
            old, known = live_value.get(name), _field(type_, name)
            before = last_value.get(name)
            if value is None:
                if kind is not None or before is not None:
                    merged.pop(name, None)
            elif isinstance(value, dict) and isinstance(old, dict) and "replace" not in _strategy(known):
                inner = _inner(type_, known)
                todo.append((_object(before), value, old, inner, _RETAIN_KEYS in _strategy(known), merged, name))
            elif isinstance(value, list) and isinstance(old, list) and "merge" in _strategy(known):
                assert known is not None
                merged[name], inside = _merged_list(before if isinstance(before, list) else [], value, old, known)
                todo += inside
            else:
                merged[name] = value
    result: Object = top[0]
    return result


_Merge = tuple[Object, Object, Object, Type | None, bool, Any, Any]
"""(last, new, live, type, whether members that the new one lacks go, the container of the result, its key there)."""


def _kept(last: Object, new: Object, live: Object, *, retains: bool) -> Object:
    """The members of a live map that stay: those of the last configuration only if the new one has them, too."""
    if retains:
        return {name: value for name, value in live.items() if name in new}
    return {name: value for name, value in live.items() if name in new or last.get(name) is None}


def _merged_list(last: list[Json], new: list[Json], live: list[Json], field: Field) -> tuple[list[Json], list[_Merge]]:
    """A list with a merge strategy, and the merges of the items that both have, which replace those in it."""
    key = field.merge_key
    last_of, new_of, live_of = ({_identity(item, key): item for item in items} for items in (last, new, live))
    if len(new_of) < len(new) or len(live_of) < len(live) or None in new_of or None in live_of:
        return new, []  # repeated keys, or items without one
    others = [each for each in live_of if each not in new_of and each not in last_of]
    order = _in_order(list(new_of), others, list(live_of))
    merged = [new_of[each] if each in new_of else live_of[each] for each in order]
    if not key:
        return merged, []
    element = field.type.element if isinstance(field.type, List) else None
    retains = _RETAIN_KEYS in _strategy(field)
    return merged, [
        (_object(last_of.get(each)), new_of[each], live_of[each], element, retains, merged, at)
        for at, each in enumerate(order)
        if each in new_of and each in live_of
    ]


def _identity(item: Json, key: str) -> Json:
    """The value that distinguishes an item of a list: of its merge key, or a scalar itself. None: there is none."""
    value = item.get(key) if key and isinstance(item, dict) else None if key else item
    return None if isinstance(value, (dict, list)) else value


def _in_order(new: list[Json], others: list[Json], live: list[Json]) -> list[Json]:
    """The new items in their order; each other item stays before the first new one that it preceded in the live list.

    new [c, x]    others [a, b, d]    live [a, b, c, d]    →    [a, b, c, x, d]
    """
    place = {each: at for at, each in enumerate(live)}
    order: list[Json] = []
    left = 0
    for each in new:
        while left < len(others) and place[others[left]] < place.get(each, -1):
            order.append(others[left])
            left += 1
        order.append(each)
    return order + others[left:]


def _object(value: Json) -> Object:
    return value if isinstance(value, dict) else _NOTHING


def _field(kind: Type | None, name: str) -> Field | None:
    return kind.fields.get(name) if isinstance(kind, Struct) else None


def _inner(kind: Type | None, field: Field | None) -> Type | None:
    """The type of a member: of a struct's field, or of a map's value."""
    return field.type if field is not None else kind.element if isinstance(kind, Map) else None


def _strategy(field: Field | None) -> Sequence[str]:
    return field.patch.split(",") if field is not None else ()
