"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386) as the API server applies them, that is as evanphx/json-patch v4.

Where that differs from the RFCs:

- a pointer's text before its first `/` is ignored; `""` is only good for `replace` (by an object or a list) and `test`;
- `replace` of a missing member adds it, `copy` of one adds null, `test` takes it for null, and so is a missing `value`;
- indices are what Go's Atoi reads, negative ones count from the end;
- a merge patch's lists lose the nulls in their objects, unless they replace an object.

The jsonpatch library reads the operations; what they do is written here, because the library's own copy by recursion and
without a limit. Neither the document nor the patch is changed, the result shares what it can with both. Nothing
recurses on data.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

import orjson
from jsonpatch import InvalidJsonPatch, JsonPatch, JsonPatchConflict, JsonPatchException, PatchOperation
from jsonpointer import JsonPointer

from apiserver.api import errors
from apiserver.api.gotext import compact_json
from apiserver.api.types import Json, Object
from apiserver.api.values import equal

MAX_COPIED: Final = 3 * 1024 * 1024  # bytes that all `copy` operations may add: upstream's JSONPatchMaxCopyBytes


# --- JSON patch ---


def json_patch(document: Json, operations: list[Object]) -> Json:
    """Apply the operations of a JSON patch. Raises ApiError 422 if one of them cannot be done."""
    working = _Document(document)
    try:
        _Patch(operations, pointer_cls=_Pointer).apply(working, in_place=True)
    except JsonPatchException:
        raise errors.unprocessable() from None
    return working.root


_ESCAPED: Final = re.compile("~[01]")


class _Pointer(JsonPointer):  # type: ignore[misc]  # the library is not typed
    """A JSON pointer whose text before its first `/`, and whose odd escapes, are taken as they are."""

    def __init__(self, pointer: Json) -> None:
        if not isinstance(pointer, str):
            raise InvalidJsonPatch("a pointer is a string")
        tokens = pointer.split("/")[1:]
        if "~" in pointer:
            tokens = [_ESCAPED.sub(lambda match: "/" if match[0] == "~1" else "~", token) for token in tokens]
        self.parts: list[str] = tokens


class _Document:
    """A document on its way. Containers are copied when they are first changed."""

    def __init__(self, root: Json) -> None:
        self.root = root
        self.copied = 0
        self._own: dict[int, Json] = {}  # by id, which holds while they are kept here

    def look(self, pointer: _Pointer) -> tuple[Json, str]:
        """The container that a pointer leads into, to be read, and the last token."""
        tokens = _some(pointer.parts)
        node = self.root
        for token in tokens[:-1]:
            node = _get(node, token)
            if not isinstance(node, (dict, list)):
                raise JsonPatchConflict
        return node, tokens[-1]

    def enter(self, pointer: _Pointer) -> tuple[Json, str]:
        """The container that a pointer leads into, to be changed, and the last token."""
        tokens = _some(pointer.parts)
        node = self.root = self._owned(self.root)
        for token in tokens[:-1]:
            child = self._owned(_get(node, token))
            node[_index(node, token) if isinstance(node, list) else token] = child
            node = child
        return node, tokens[-1]

    def _owned(self, node: Json) -> Json:
        if id(node) in self._own:
            return node
        if not isinstance(node, (dict, list)):
            raise JsonPatchConflict
        node = node.copy()
        self._own[id(node)] = node
        return node

    def add(self, pointer: _Pointer, value: Json) -> None:
        container, token = self.enter(pointer)
        if isinstance(container, dict):
            container[token] = value
        elif token == "-":  # noqa: S105
            container.append(value)
        else:
            container.insert(_index(container, token, beyond=1), value)

    def take(self, pointer: _Pointer) -> Json:
        container, token = self.enter(pointer)
        if isinstance(container, list):
            return container.pop(_index(container, token))
        if token not in container:
            raise JsonPatchConflict
        return container.pop(token)

    def share(self) -> None:
        """From here on every container may stand in several places."""
        self._own.clear()


def _some(tokens: list[str]) -> list[str]:
    if not tokens:
        raise JsonPatchConflict
    return tokens


_ATOI: Final = re.compile(r"[+-]?[0-9]{1,18}\Z")  # no list is longer


def _index(items: list[Json], token: str, *, beyond: int = 0) -> int:
    """An index of the list, or up to `beyond` more, counted from the end if it is negative."""
    if not _ATOI.match(token):
        raise JsonPatchConflict
    index, size = int(token), len(items) + beyond
    if not -size <= index < size:
        raise JsonPatchConflict
    return index % size


def _get(container: Json, token: str) -> Json:
    """A missing member is null, a missing item is an error."""
    return container[_index(container, token)] if isinstance(container, list) else container.get(token)


class _Operation(PatchOperation):  # type: ignore[misc]  # the library is not typed
    """An operation of a JSON patch: `pointer` is its path."""

    pointer: _Pointer
    operation: Object

    @property
    def value(self) -> Json:
        return self.operation.get("value")

    @property
    def source(self) -> _Pointer:
        return _Pointer(self.operation.get("from"))


class _Add(_Operation):
    def apply(self, document: _Document) -> _Document:
        document.add(self.pointer, self.value)
        return document


class _Remove(_Operation):
    def apply(self, document: _Document) -> _Document:
        document.take(self.pointer)
        return document


class _Replace(_Operation):
    def apply(self, document: _Document) -> _Document:
        if self.location == "":
            if not isinstance(self.value, (dict, list)):
                raise JsonPatchConflict
            document.root = self.value
            return document
        container, token = document.enter(self.pointer)
        container[_index(container, token) if isinstance(container, list) else token] = self.value
        return document


class _Move(_Operation):
    def apply(self, document: _Document) -> _Document:
        document.add(self.pointer, document.take(self.source))
        return document


class _Copy(_Operation):
    def apply(self, document: _Document) -> _Document:
        value = _get(*document.look(self.source))
        document.look(self.pointer)
        if value is not None:
            document.copied += _size(value)
        if document.copied > MAX_COPIED:
            raise JsonPatchConflict
        if isinstance(value, (dict, list)):
            document.share()
        document.add(self.pointer, value)
        return document


class _Test(_Operation):
    def apply(self, document: _Document) -> _Document:
        found = document.root if self.location == "" else _get(*document.look(self.pointer))
        if not equal(found, self.value):
            raise JsonPatchConflict
        return document


class _Patch(JsonPatch):  # type: ignore[misc]  # the library is not typed
    operations = MappingProxyType(
        {"add": _Add, "remove": _Remove, "replace": _Replace, "move": _Move, "copy": _Copy, "test": _Test}
    )


def _size(value: Json) -> int:
    """Bytes of a value's JSON as Go writes it, but for the odd float."""
    try:
        text = orjson.dumps(value)
    except (TypeError, ValueError):  # deeper than orjson goes (TypeError: JSONEncodeError)
        return len(compact_json(value).encode("utf-8", "surrogatepass"))
    return len(text) + 5 * (text.count(b"<") + text.count(b">") + text.count(b"&"))


# --- JSON merge patch ---


def merge_patch(document: Object, patch: Json) -> Json:
    """Apply a decoded merge patch. A list is a patch that replaces everything."""
    return _merged(document, patch) if isinstance(patch, dict) else _without_nulls(patch)


def _merged(document: Object, patch: Object) -> Object:
    root = dict(document)
    frames = [(root, patch)]
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
    """A copy without the members that are null, inside lists too; null items stay."""
    top: list[Json] = [value]
    todo: list[tuple[Json, Json, Json]] = [(value, top, 0)]  # (source, container of the copy, key there)
    while todo:
        source, container, key = todo.pop()
        if isinstance(source, dict):
            container[key] = target = {name: child for name, child in source.items() if child is not None}
            todo += [(child, target, name) for name, child in target.items() if isinstance(child, (dict, list))]
        elif isinstance(source, list):
            container[key] = items = list(source)
            todo += [(child, items, n) for n, child in enumerate(items) if isinstance(child, (dict, list))]
    return top[0]
