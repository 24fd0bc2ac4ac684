"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386) as the API server applies them, that is, as evanphx/json-patch v4.

Its differences from the RFCs:

- a pointer's text before its first `/` is ignored; `""` is allowed for `replace` (by an object or a list) and `test` only;
- `replace` of a missing member adds it, `copy` of one adds null, `test` reads it as null, and so it does a missing `value`;
- indexes are what Go's Atoi parses, negative ones count from the end;
- null members of objects in a merge patch's lists are dropped, unless the list replaces an object.

The jsonpatch library dispatches the operations; they are implemented here, because the library's own copy recursively and
without a limit. Neither the document nor the patch is changed; the result shares parts with both, those of the document in
the same places. Nothing recurses on data.

Three-way merges, as `kubectl apply` makes them of an object, its last applied configuration and a new one (kubectl's
pkg/cmd/apply/patcher.go, apimachinery's CreateThreeWayMergePatch): the result is the live object, with the fields of
the new configuration, and without those that only the last one had. So fields of other writers stay, unless the new
configuration has them, too:

    last    {size: 1, colour: red}     live    {size: 1, colour: red, owner: me}
    new     {size: 2}                  result  {size: 2, owner: me}

Kinds with struct tables are merged as a strategic merge patch does it: lists of fields with `patchStrategy: merge` by
their merge keys, or as sets. kubectl merges items whose merge key occurs twice into one; here such a list is replaced.
In all other kinds, lists are replaced, and a null in the new configuration changes nothing, unless the last one had a
value there.

Nothing is changed in place; the result shares parts with its arguments. Clients choose the depth of objects, so nothing
recurses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import orjson
from jsonpatch import JsonPatch, PatchOperation
from jsonpointer import JsonPointer

from noxu.api import errors
from noxu.cpu_budget import spend
from noxu.expressions import expression
from noxu.go.json import OverriddenKey, drop_overridden
from noxu.go.structs import Field, List, Map, Struct, Type, json_type
from noxu.go.text import compact_json, quote
from noxu.values import Json, Object, copy, equal, sorted_copy

_BYTES_PER_UNIT: Final = 500  # of processor time, to compare JSON
MAX_COPIED: Final = 3 * 1024 * 1024  # bytes that all `copy` operations may add: upstream's JSONPatchMaxCopyBytes


# --- JSON patch ---


class PatchFailed(Exception):
    """An operation cannot be applied. `text` is the message of the library that upstream uses."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class FailedTest(PatchFailed):
    """The value is not the one of a `test` operation."""


def json_patch(document: Json, operations: list[Object], *, repeats: bool = False) -> Json:
    """Apply the operations of a JSON patch. Raises ApiError 422 if one of them cannot be applied.

    `repeats`: their values may have OverriddenKeys, and so may the result. Upstream's library copies the text of a value, and
    decodes only what operations go through or test.
    """
    try:
        return apply_operations(document, operations, repeats=repeats)
    except PatchFailed:
        raise errors.unprocessable() from None


def apply_operations(document: Json, operations: list[Object], *, repeats: bool = False) -> Json:
    """Apply the operations of a JSON patch. Raises PatchFailed.

    A document in which values move is copied: their new places may have schemas by which they are changed in place.
    """
    moves = any((operation or {}).get("op") == "move" for operation in operations)
    working = _Document(copy(document) if moves else document, repeats=repeats)
    _Patch(operations).apply(working)
    return working.root


_ESCAPED: Final = expression("~[01]")


class _NotFound(Exception):
    """The container that a pointer leads into does not exist."""


class _Pointer(JsonPointer):  # type: ignore[misc]  # the library is not typed
    """A JSON pointer: the text before its first `/` is ignored, and malformed escapes are kept.

    `x/a~1b/~2` has the parts `a/b` and `~2`.
    """

    def __init__(self, pointer: str) -> None:
        tokens = pointer.split("/")[1:]
        if "~" in pointer:
            tokens = [_ESCAPED.sub(lambda match: "/" if match[0] == "~1" else "~", token) for token in tokens]
        self.parts: list[str] = tokens


class _Document:
    """A document while operations are applied. Containers are copied when they are first changed (copy on write).

    `enter` copies the containers along a pointer, unless they are copies already. For `/spec/a` in
    {"spec": {"a": 1}, "status": S}, the root and `spec` are copied; the new root shares S with the old one.
    """

    def __init__(self, root: Json, *, repeats: bool = False) -> None:
        self.root = root
        self.repeats = repeats
        self.copied = 0
        self._own: dict[int, Json] = {}  # copies by id; being here keeps their ids in use

    def look(self, pointer: str) -> tuple[Json, str]:
        """(the container that a pointer leads into, the last token), for reading. Raises _NotFound."""
        tokens = _tokens(pointer)
        spend(1 + len(tokens))
        node = self.root
        for token in tokens[:-1]:
            node = _child(node, token)
        return node, tokens[-1]

    def enter(self, pointer: str) -> tuple[Json, str]:
        """(the container that a pointer leads into, the last token), for changes. Raises _NotFound."""
        tokens = _tokens(pointer)
        spend(1 + len(tokens))
        node = self.root = self._owned(self.root)
        for token in tokens[:-1]:
            child = self._owned(_child(node, token))
            node[_index(node, token) if isinstance(node, list) else token] = child
            node = child
        return node, tokens[-1]

    def _owned(self, node: Json) -> Json:
        """The container itself if it is a copy already, else a copy."""
        if id(node) in self._own:
            return node
        node = _decoded(node) if self.repeats else node.copy()
        self._own[id(node)] = node
        return node


def _decoded(node: Json) -> Json:
    """A copy of a container, which has the last one of equal keys."""
    if isinstance(node, dict):
        return {name: item for name, item in node.items() if type(name) is not OverriddenKey}
    return node.copy()


def _tokens(pointer: str) -> list[str]:
    tokens = _Pointer(pointer).parts
    if not tokens:
        raise _NotFound
    return tokens


def _child(node: Json, token: str) -> Json:
    try:
        child = _get(node, token)
    except PatchFailed:
        raise _NotFound from None
    if not isinstance(child, (dict, list)):
        raise _NotFound
    return child


_ATOI: Final = expression(r"[+-]?[0-9]{1,18}\Z")  # no list is longer


def _index(items: list[Json], token: str, *, beyond: int = 0, before: str = "") -> int:
    """An index of the list; with `beyond` 1 also the one after the last. Negative ones count from the end.

    Raises PatchFailed, with the prefix `before` for text that is not an index.
    """
    if not _ATOI.match(token):
        raise PatchFailed(f"{before}strconv.Atoi: parsing {quote(token)}: invalid syntax")
    index, size = int(token), len(items) + beyond
    if not -size <= index < size:
        raise PatchFailed(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % size


def _get(container: Json, token: str) -> Json:
    """A member or item; a missing member is null. Raises PatchFailed for a missing item."""
    return container[_index(container, token)] if isinstance(container, list) else container.get(token)


def _add(container: Json, token: str, value: Json) -> None:
    if isinstance(container, dict):
        container[token] = value
    elif token == "-":  # noqa: S105
        container.append(value)
    else:
        before = f"value was not a proper array index: '{token}': "
        container.insert(_index(container, token, beyond=1, before=before), value)


def _remove(container: Json, token: str) -> Json:
    if isinstance(container, list):
        return container.pop(_index(container, token))
    if token not in container:
        raise PatchFailed(f"Unable to remove nonexistent key: {token}: missing value")
    return container.pop(token)


class _Operation(PatchOperation):  # type: ignore[misc]  # the library is not typed
    """An operation of a JSON patch. It is checked only when it is applied."""

    operation: Object

    def __init__(self, operation: Object) -> None:
        self.operation = operation

    @property
    def value(self) -> Json:
        return self.operation.get("value")

    def pointer_in(self, name: str, missing: str) -> str:
        """The pointer in `path` or `from`. Raises PatchFailed with the text `missing`, in which `{}` is Go's reason."""
        pointer = self.operation.get(name)
        if isinstance(pointer, str):
            return pointer
        if pointer is None:
            why = "operation missing path field" if name == "path" else "operation, missing from field"
            raise PatchFailed(missing.format(f"{why}: missing value"))
        raise PatchFailed(missing.format(f"json: cannot unmarshal {json_type(pointer)} into Go value of type string"))


class _Add(_Operation):
    def apply(self, document: _Document) -> None:
        path = self.pointer_in("path", "add operation failed to decode path: missing value")
        with _failing_with(
            f'add operation does not apply: doc is missing path: "{path}"', f"error in add for path: '{path}'"
        ):
            _add(*document.enter(path), self.value)


class _Remove(_Operation):
    def apply(self, document: _Document) -> None:
        path = self.pointer_in("path", "remove operation failed to decode path: missing value")
        missing = f'remove operation does not apply: doc is missing path: "{path}"'
        with _failing_with(missing, f"error in remove for path: '{path}'"):
            _remove(*document.enter(path))


class _Replace(_Operation):
    def apply(self, document: _Document) -> None:
        path = self.pointer_in("path", "replace operation failed to decode path: {}")
        if path == "":
            if not isinstance(self.value, (dict, list)):
                raise PatchFailed("replace operation value must be object or array: %!w(<nil>)")
            document.root = _decoded(self.value) if document.repeats else self.value
            return
        with _failing_with(f"replace operation does not apply: doc is missing path: {path}", ""):
            container, token = document.enter(path)
            try:
                container[_index(container, token) if isinstance(container, list) else token] = self.value
            except PatchFailed:
                text = f"replace operation does not apply: doc is missing key: {path}: missing value"
                raise PatchFailed(text) from None


class _Move(_Operation):
    def apply(self, document: _Document) -> None:
        source = self.pointer_in("from", "move operation failed to decode from: {}")
        missing = f"move operation does not apply: doc is missing from path: {source}"
        with _failing_with(missing, f"error in move for path: '{_tokens(source)[-1] if '/' in source else ''}'"):
            value = _remove(*document.enter(source))
        path = self.pointer_in("path", "move operation failed to decode path: {}")
        missing = f"move operation does not apply: doc is missing destination path: {path}"
        with _failing_with(missing, f"error in move for path: '{path}'"):
            _add(*document.enter(path), value)


class _Copy(_Operation):
    def apply(self, document: _Document) -> None:
        source = self.pointer_in("from", "copy operation failed to decode from: {}")
        missing = f"copy operation does not apply: doc is missing from path: {source}"
        with _failing_with(missing, f"error in copy for from: '{source}'"):
            value = _get(*document.look(source))
        path = self.pointer_in("path", "copy operation failed to decode path: missing value")
        with _failing_with(
            f"copy operation does not apply: doc is missing destination path: {path}",
            "error while adding value during copy",
        ):
            document.look(path)
            if value is not None:
                document.copied += _size(value)
            if document.copied > MAX_COPIED:
                raise _TooMuch(document.copied)
            _add(*document.enter(path), copy(value))  # its places may be pruned and defaulted in different ways


class _TooMuch(PatchFailed):
    def __init__(self, copied: int) -> None:
        super().__init__(
            f"Unable to complete the copy, the accumulated size increase of copy is {copied}, "
            f"exceeding the limit {MAX_COPIED}"
        )


class _Test(_Operation):
    def apply(self, document: _Document) -> None:
        path = self.pointer_in("path", "test operation failed to decode path: {}")
        with _failing_with(
            f"test operation does not apply: is missing path: {path}", f"error in test for path: '{path}'"
        ):
            actual = document.root if path == "" else _get(*document.look(path))
            spend(1 + _size(actual) // _BYTES_PER_UNIT)
            value = self.value
            if document.repeats:
                actual, value = sorted_copy(actual), copy(value)  # decoded, as what operations go through
                drop_overridden([actual, value])
        if not equal(actual, value):
            raise FailedTest(f"testing value {path} failed: test failed")
        if document.repeats and path != "":
            container, token = document.enter(path)
            if isinstance(container, list):
                container[_index(container, token)] = actual
            elif token in container:
                container[token] = actual


@contextmanager
def _failing_with(missing: str, error: str) -> Iterator[None]:
    """The messages of an operation: `missing` if a pointer leads nowhere, `error` before any other failure."""
    try:
        yield
    except _NotFound:
        raise PatchFailed(f"{missing}: missing value") from None
    except _TooMuch:
        raise
    except PatchFailed as failed:
        raise PatchFailed(f"{error}: {failed.text}" if error else failed.text) from None


class _Patch(JsonPatch):  # type: ignore[misc]  # the library is not typed
    operations = MappingProxyType(
        {"add": _Add, "remove": _Remove, "replace": _Replace, "move": _Move, "copy": _Copy, "test": _Test}
    )

    def __init__(self, patch: list[Object]) -> None:
        self.patch = patch

    def apply(self, document: _Document) -> None:
        for operation in self.patch:
            kind = (operation or {}).get("op")
            if not isinstance(kind, str):
                kind = "unknown"
            if kind not in self.operations:
                raise PatchFailed(f"Unexpected kind: {kind}")
            self.operations[kind](operation).apply(document)


def _size(value: Json) -> int:
    """The length of a value's JSON in bytes as Go writes it, except for some floats."""
    try:
        text = orjson.dumps(value)
    except (TypeError, ValueError):  # deeper than orjson goes (TypeError: JSONEncodeError)
        return len(compact_json(value).encode("utf-8", "surrogatepass"))
    return len(text) + 5 * (text.count(b"<") + text.count(b">") + text.count(b"&"))


# --- JSON merge patch ---


def merge_patch(document: Object, patch: Json) -> Json:
    """Apply a decoded merge patch, whose values become part of the result. A list replaces the whole document.

    The document is not changed; the patch may be, and must not be used again.

        document  {"a": {"x": 1, "y": 2}, "b": 3}
        patch     {"a": {"x": null, "z": 4}}
        result    {"a": {"y": 2, "z": 4}, "b": 3}
    """
    return _merged(document, patch) if isinstance(patch, dict) else _without_nulls(patch)


def _merged(document: Object, patch: Object) -> Object:
    root = dict(document)
    frames = [(root, patch)]  # (copy of an object, its changes); grows while it is read
    for target, changes in frames:
        for name, new in changes.items():
            old = target.get(name)
            if new is None:
                target.pop(name, None)
            elif isinstance(old, dict):
                target[name] = new
                if isinstance(new, dict):
                    target[name] = inner = dict(old)
                    frames.append((inner, new))
            else:
                target[name] = _without_nulls(new)
    return root


def _without_nulls(value: Json) -> Json:
    """The value without null members, also of objects in lists, in place; null items are kept."""
    todo = [value] if isinstance(value, (dict, list)) else []
    while todo:
        container = todo.pop()
        if isinstance(container, dict):
            for name in [name for name, child in container.items() if child is None]:
                del container[name]
        inside = container.values() if isinstance(container, dict) else container
        todo += [child for child in inside if child and isinstance(child, (dict, list))]
    return value


# -- three way --------------------------------------------------------------------------------------------------------


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
            old, declared = live_value.get(name), _field(type_, name)
            before = last_value.get(name)
            if value is None:
                if kind is not None or before is not None:
                    merged.pop(name, None)
            elif isinstance(value, dict) and isinstance(old, dict) and "replace" not in _strategy(declared):
                inner = _inner(type_, declared)
                todo.append((_object(before), value, old, inner, _RETAIN_KEYS in _strategy(declared), merged, name))
            elif isinstance(value, list) and isinstance(old, list) and "merge" in _strategy(declared):
                assert declared is not None
                merged[name], inside = _merged_list(before if isinstance(before, list) else [], value, old, declared)
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
    live_only = [identity for identity in live_of if identity not in new_of and identity not in last_of]
    order = _in_order(list(new_of), live_only, list(live_of))
    merged = [new_of[identity] if identity in new_of else live_of[identity] for identity in order]
    if not key:
        return merged, []
    element = field.type.element if isinstance(field.type, List) else None
    retains = _RETAIN_KEYS in _strategy(field)
    return merged, [
        (_object(last_of.get(identity)), new_of[identity], live_of[identity], element, retains, merged, at)
        for at, identity in enumerate(order)
        if identity in new_of and identity in live_of
    ]


def _identity(item: Json, key: str) -> Json:
    """The value that distinguishes an item of a list: of its merge key, or a scalar itself. None: there is none."""
    value = item.get(key) if key and isinstance(item, dict) else None if key else item
    return None if isinstance(value, (dict, list)) else value


def _in_order(new: list[Json], others: list[Json], live: list[Json]) -> list[Json]:
    """The new items in their order; each other item stays before the first new one that it preceded in the live list.

    new [c, x]    others [a, b, d]    live [a, b, c, d]    →    [a, b, c, x, d]
    """
    place = {identity: at for at, identity in enumerate(live)}
    order: list[Json] = []
    left = 0
    for identity in new:
        while left < len(others) and place[others[left]] < place.get(identity, -1):
            order.append(others[left])
            left += 1
        order.append(identity)
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
