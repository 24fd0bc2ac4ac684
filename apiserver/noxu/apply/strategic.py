"""Strategic merge patch, for kinds described by struct tables (apimachinery's pkg/util/strategicpatch, the server's half).

Like a merge patch, but lists of fields with `patchStrategy: merge` are merged: lists of scalars as sets, of objects by
their merge key. Directives in the patch:

    $patch: delete | replace            delete or replace the object (in a merged list: the item with that key, the list)
    $retainKeys: [a, b]                 the object keeps these members only
    $deleteFromPrimitiveList/f: [x]     remove items from the list of scalars `f`
    $setElementOrder/f: [...]           the order of these items (or keys) of `f` after merging

A merged list has the patch's items in the patch's order. Other items keep their positions relative to those: an item
that preceded one of them still does, the rest is at the end (merge key `name`):

    document    ports: [a, b, c]
    patch       ports: [c, x]
    result      ports: [a, b, c, x]

Neither the document nor the patch is changed. Recursion follows the types, loops the data below them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.go.structs import Field, List, Map, Struct, json_type
from noxu.go.structs import Type as StructType
from noxu.go.text import default_format, go_type, quote
from noxu.values import Json, Object

PATCH: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
DELETE_PREFIX: Final = "$deleteFromPrimitiveList"
ORDER_PREFIX: Final = "$setElementOrder"

_BAD_RETAIN_KEYS: Final = "invalid patch format of retainKeys"
_BAD_DELETE_LIST: Final = "invalid patch format of primitive list"
_BAD_ORDER: Final = "invalid patch format of setElementOrder list"


def strategic_patch(document: Object, patch: Json, kind: Struct) -> Object:
    """Apply a decoded patch to an object of the kind. Raises ApiError: 400, 422 or, as upstream, a plain 500."""
    if not isinstance(patch, (dict, type(None))):
        raise errors.bad_request(
            f"json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}"
        )
    return _merge_maps(document, patch or {}, kind)


def _merge_maps(original: Object, patch: Object, kind: StructType) -> Object:
    if PATCH in patch:
        return _directed(patch)
    merged, patch = dict(original), dict(patch)
    if RETAIN_KEYS in patch:
        _retain(merged, patch, patch.pop(RETAIN_KEYS))
    for name in [name for name in patch if name.startswith(ORDER_PREFIX)]:
        _merge_in_order(merged, patch, name, kind)
    for name in sorted(patch):  # upstream's order is random; sorted, directives come first
        _merge_member(merged, name, patch[name], kind)
    return merged


def _directed(patch: Object) -> Object:
    directive = patch[PATCH]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != PATCH}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _retain(merged: Object, patch: Object, keys: Json) -> None:
    """`$retainKeys`: the list must have every member of the patch; other members of the object are removed."""
    if not isinstance(keys, list) or not all(isinstance(key, (str, int, float, type(None))) for key in keys):
        raise errors.bad_request(_BAD_RETAIN_KEYS)
    for name, value in patch.items():
        if value is not None and name not in keys and not name.startswith((DELETE_PREFIX, ORDER_PREFIX)):
            raise errors.bad_request(_BAD_RETAIN_KEYS)
    for name in [name for name in merged if name not in keys]:
        del merged[name]


def _merge_member(merged: Object, name: str, new: Json, kind: StructType) -> None:
    deleting = name.startswith(DELETE_PREFIX)
    if deleting:
        name = _directive_key(name, DELETE_PREFIX, _BAD_DELETE_LIST)
    if new is None:
        merged.pop(name, None)
        return
    old: Json = merged.get(name)
    if name not in merged or go_type(old) != go_type(new):
        if not deleting:
            _set(merged, name, _without_nulls(new))
    elif isinstance(new, dict):
        field = _lookup(kind, name)
        merged[name] = new if _strategy(field) == "replace" else _merge_maps(old, new, field.type)
    elif isinstance(new, list):
        field = _lookup_list(kind, name)
        merging = deleting or _strategy(field) == "merge"
        merged[name] = _merge_lists(old, new, field, deleting=deleting) if merging else new
    else:
        merged[name] = new


def _set(merged: Object, name: str, new: Json) -> None:
    """Set a new value without the objects in it that have a directive; a value with a directive is not set at all."""
    if isinstance(new, dict) and PATCH in new:
        merged.pop(name, None)
    else:
        merged[name] = _without_marked(new)


# --- lists ---


def _merge_lists(original: list[Json], patch: list[Json], field: Field, *, deleting: bool = False) -> list[Json]:
    if not original and not patch:
        return original
    if not _are_objects(original, patch):
        if deleting:
            deleted = set(map(_identity, patch))
            return [item for item in original if _identity(item) not in deleted]
        merged = list({_identity(item): item for item in [*original, *patch]}.values())
        return _ordered(merged, patch, original, None)
    key = field.merge_key
    if not key:
        raise errors.plain_error(f"cannot merge lists without merge key for {_kind_name(_items(field))}")
    original, patch = _without_special(original, patch, key)
    merged = list(original)
    for item in patch:
        n = _find(merged, key, _key_of(item, key))
        if n is None:
            merged.append(item)
        else:
            merged[n] = _merge_maps(merged[n], item, _items(field))
    return _ordered(merged, patch, original, key)


def _are_objects(*lists: list[Json]) -> bool:
    """Whether lists contain objects. Raises ApiError unless all items have one Go type, and are not lists."""
    kinds = {go_type(item) for items in lists for item in items}
    if not kinds:
        raise errors.plain_error("no elements in any of the given slices")
    first = next(go_type(item) for items in lists for item in items)
    if first == "[]interface {}":
        raise errors.unprocessable()
    if len(kinds) > 1 or first == "<nil>":
        raise errors.plain_error(f"list element types are not identical: {default_format(list(lists))}")
    return first == "map[string]interface {}"


def _without_special(original: list[Json], patch: list[Json], key: str) -> tuple[list[Json], list[Json]]:
    """Apply the `$patch` directives of a list's items: (original without deleted items, patch without directives)."""
    plain: list[Json] = []
    replace = False
    for item in patch:
        if PATCH not in item:
            plain.append(item)
        elif item[PATCH] == "delete":
            deleted = _key_of(item, key)
            while (n := _find(original, key, deleted)) is not None:
                original = original[:n] + original[n + 1 :]
        elif item[PATCH] == "replace":
            replace = True
        elif item[PATCH] == "merge":
            raise errors.plain_error("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(item[PATCH], item)
    return (plain, []) if replace else (original, plain)


def _merge_in_order(merged: Object, patch: Object, directive: str, kind: StructType) -> None:
    """`$setElementOrder`: merge its list of the patch in this order, and remove both from the patch."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise _bad_type("[]interface {}", order)
    name = _directive_key(directive, ORDER_PREFIX, _BAD_ORDER)
    for holder in (merged, patch):
        if name in holder and not isinstance(holder[name], list):
            raise _bad_type("[]interface {}", holder[name])
    field = _lookup_list(kind, name)
    strategy, key = _strategy(field), field.merge_key
    old, new = merged.get(name), patch.get(name)
    _check_order(new or [], order, key)
    if old is None and new is None:
        return
    if new is None:
        both = old
    elif old is None:
        both = _without_marked(new)
    elif strategy == "merge":
        both = _merge_lists(old, new, field)
    else:
        both = new
    if _are_objects(old or [], new or []) and strategy == "merge" and old and new:
        old = _overwritten(old, new, key)
    merged[name] = _ordered(both or [], order, old or [], key or None)
    patch.pop(name, None)


def _overwritten(original: list[Json], patch: list[Json], key: str) -> list[Json]:
    """The live list by which the merged one is ordered: upstream's merge writes new items into the slots of deleted ones."""
    deleted = {_identity(item.get(key)) for item in patch if item.get(PATCH) == "delete"}
    kept = [item for item in original if _identity(item.get(key)) not in deleted]
    if any(item.get(PATCH) == "replace" for item in patch):
        return kept
    remaining = {_identity(item.get(key)) for item in kept}
    added = {_identity(item.get(key)): item for item in patch if PATCH not in item}
    fresh = [item for identity, item in added.items() if identity not in remaining]
    return kept + fresh[: len(original) - len(kept)]


def _check_order(new: list[Json], order: list[Json], key: str) -> None:
    """Raises ApiError unless the patch's items are in the given order, and all of them occur in it."""
    if not new or not order:
        return
    if key:
        for item in new:
            if not isinstance(item, dict):
                raise _bad_type("map[string]interface {}", item)
    items = [item for item in new if not (key and item.get(PATCH) == "delete")]
    n = 0  # items[:n] have been found in the order
    for expected in order:
        while n < len(items) and isinstance(items[n], dict) and PATCH in items[n]:
            n += 1
        if n < len(items) and _same_item(items[n], expected, key):
            n += 1
    if n < len(items):  # as upstream, also if only directives follow the last item
        raise errors.plain_error(
            f"The order in patch list:\n{default_format(new)}\n doesn't match {ORDER_PREFIX} list:\n"
            f"{default_format(order)}\n"
        )


def _same_item(item: Json, other: Json, key: str) -> bool:
    if not key:
        return _identity(item) == _identity(other)
    return _identity(_key_of(item, key)) == _identity(_key_of(other, key))


def _ordered(items: list[Json], order: list[Json], before: list[Json], key: str | None) -> list[Json]:
    """Order a merged list: the items in `order` in that order, the others in the order of `before`, at their places.

    Two cursors run over the items in `order` (`patched`) and the others. Before each patched item come the other items
    that preceded it in `before`:

        order [c, x]    before [a, b, c, d]    patched [c, x]    others [a, b, d]
        c       was third: a and b preceded it      [a, b, c]
        x       was not there                       [a, b, c, x]
                the rest                            [a, b, c, x, d]
    """
    if key is not None:
        for item in (*items, *order, *before):
            _key_of(item, key)
    named = [_identity(_value(item, key)) for item in order]
    listed = set(named)
    patched = [item for item in items if _identity(_value(item, key)) in listed]
    others = [item for item in items if _identity(_value(item, key)) not in listed]
    patched = _sorted(patched, named, key)
    previous = [_identity(_value(item, key)) for item in before]
    others = _sorted(others, previous, key)
    place = {identity: at for at, identity in reversed(list(enumerate(previous)))}
    merged: list[Json] = []
    left = 0
    for item in patched:
        at = place.get(_identity(_value(item, key)))
        while left < len(others) and at is not None:
            position = place.get(_identity(_value(others[left], key)))
            if position is None or position >= at:
                break
            merged.append(others[left])
            left += 1
        merged.append(item)
    return merged + others[left:]


def _sorted(items: list[Json], order: list[Json], key: str | None) -> list[Json]:
    place = {identity: at for at, identity in reversed(list(enumerate(order)))}
    return sorted(items, key=lambda item: place.get(_identity(_value(item, key)), -1))


def _value(item: Json, key: str | None) -> Json:
    """The value that identifies an item: that of its merge key, or the item itself."""
    return item if key is None else item.get(key) if isinstance(item, dict) else None


def _identity(scalar: Json) -> tuple[str, str]:
    """A scalar's Go type and value: equal scalars have equal ones."""
    return go_type(scalar), default_format(scalar)


def _find(items: list[Json], key: str, value: Json) -> int | None:
    """The index of the first object with this value of its merge key. Raises ApiError if an item is not an object."""
    identity = _identity(value)
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            raise errors.plain_error(f"value for key {at} is not a map")
        if key in item and _identity(item[key]) == identity:
            return at
    return None


def _key_of(item: Json, key: str) -> Json:
    if not isinstance(item, dict):
        raise _bad_type("map[string]interface {}", item)
    if key not in item:
        raise errors.plain_error(f"map: {default_format(item)} does not contain declared merge key: {key}")
    return item[key]


# --- values ---


def _without_nulls(value: Json) -> Json:
    """A copy without null members, also of objects in lists."""
    return _filtered(value, lambda child: child is not None, lambda _: True)


def _without_marked(value: Json) -> Json:
    """A copy without objects that have a `$patch` directive."""

    def unmarked(child: Json) -> bool:
        return not (isinstance(child, dict) and PATCH in child)

    return _filtered(value, unmarked, unmarked)


def _filtered(value: Json, keep_member: Callable[[Json], bool], keep_item: Callable[[Json], bool]) -> Json:
    """A copy of a value, with only those members of maps and items of lists that the functions accept."""
    top: list[Json] = [value]
    todo: list[tuple[Json, Json, Json]] = [(value, top, 0)]  # (source, container of the copy, key there)
    while todo:
        source, container, key = todo.pop()
        if isinstance(source, dict):
            container[key] = target = {name: child for name, child in source.items() if keep_member(child)}
            todo += [(child, target, name) for name, child in target.items() if isinstance(child, (dict, list))]
        elif isinstance(source, list):
            container[key] = items = [child for child in source if keep_item(child)]
            todo += [(child, items, n) for n, child in enumerate(items) if isinstance(child, (dict, list))]
    return top[0]


# --- types ---


def _lookup(kind: StructType, name: str) -> Field:
    """The struct field for a name; like Go's decoder, an exact match is preferred to one that ignores case.

    Raises ApiError.
    """
    if not isinstance(kind, Struct):
        actual = "slice" if isinstance(kind, List) else "map" if isinstance(kind, Map) else "interface"
        raise errors.plain_error(f"merging an object in json but data type is not struct, instead is: {actual}")
    if name in kind.fields:
        return kind.fields[name]
    for field_name, field in kind.fields.items():
        if field_name.casefold() == name.casefold():
            return field
    raise errors.plain_error(f"unable to find api field in struct {kind.name} for the json field {quote(name)}")


def _lookup_list(kind: StructType, name: str) -> Field:
    field = _lookup(kind, name)
    if not isinstance(field.type, List):
        raise errors.plain_error(f"expected slice or array type, but got: {_kind_name(kind)}")
    return field


def _items(field: Field) -> StructType:
    return field.type.element if isinstance(field.type, List) else field.type


def _kind_name(kind: StructType) -> str:
    if isinstance(kind, (List, Map)):
        return "slice" if isinstance(kind, List) else "map"
    return "struct" if isinstance(kind, Struct) else kind.go.rpartition(".")[2]


def _strategy(field: Field) -> str:
    """The field's patch strategy other than retainKeys, which concerns clients only."""
    strategies = [directive for directive in field.patch.split(",") if directive != "retainKeys"]
    return strategies[0] if strategies else ""


def _directive_key(name: str, prefix: str, error: str) -> str:
    """The list in a directive: `finalizers` for `$setElementOrder/finalizers`. Raises ApiError."""
    head, slash, key = name.partition("/")
    if not slash or head != prefix:
        raise errors.bad_request(error)
    return key


def _bad_type(expected: str, actual: Json) -> ApiError:
    received = "%!s(<nil>)" if actual is None else go_type(actual)
    return errors.plain_error(f"expected a {expected}, but received a {received}")


def _unknown_directive(directive: Json, where: Object) -> ApiError:
    text = directive if isinstance(directive, str) else f"%!s({go_type(directive)}={default_format(directive)})"
    return errors.plain_error(f"unknown patch type: {text} in map: {default_format(where)}")
