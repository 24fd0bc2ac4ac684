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
from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

import orjson
from jsonpatch import JsonPatch, PatchOperation
from jsonpointer import JsonPointer

from apiserver.api import errors
from apiserver.api.gotext import compact_json, quote
from apiserver.api.structs import json_type
from apiserver.api.types import Json, Object
from apiserver.api.values import equal

MAX_COPIED: Final = 3 * 1024 * 1024  # bytes that all `copy` operations may add: upstream's JSONPatchMaxCopyBytes


# --- JSON patch ---


class PatchFailed(Exception):
    """An operation cannot be done. `text` is what the library that upstream uses says of it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class FailedTest(PatchFailed):
    """The value is not what a `test` operation says."""


def json_patch(document: Json, operations: list[Object]) -> Json:
    """Apply the operations of a JSON patch. Raises ApiError 422 if one of them cannot be done."""
    try:
        return apply_operations(document, operations)
    except PatchFailed:
        raise errors.unprocessable() from None


def apply_operations(document: Json, operations: list[Object]) -> Json:
    """Apply the operations of a JSON patch. Raises PatchFailed."""
    working = _Document(document)
    _Patch(operations).apply(working)
    return working.root


_ESCAPED: Final = re.compile("~[01]")


class _NotFound(Exception):
    """The way to the container that a pointer leads into is not there."""


class _Pointer(JsonPointer):  # type: ignore[misc]  # the library is not typed
    """A JSON pointer whose text before its first `/`, and whose odd escapes, are taken as they are."""

    def __init__(self, pointer: str) -> None:
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

    def look(self, pointer: str) -> tuple[Json, str]:
        """The container that a pointer leads into, to be read, and the last token. Raises _NotFound."""
        tokens = _tokens(pointer)
        node = self.root
        for token in tokens[:-1]:
            node = _child(node, token)
        return node, tokens[-1]

    def enter(self, pointer: str) -> tuple[Json, str]:
        """The container that a pointer leads into, to be changed, and the last token. Raises _NotFound."""
        tokens = _tokens(pointer)
        node = self.root = self._owned(self.root)
        for token in tokens[:-1]:
            child = self._owned(_child(node, token))
            node[_index(node, token) if isinstance(node, list) else token] = child
            node = child
        return node, tokens[-1]

    def _owned(self, node: Json) -> Json:
        if id(node) in self._own:
            return node
        node = node.copy()
        self._own[id(node)] = node
        return node

    def share(self) -> None:
        """From here on every container may stand in several places."""
        self._own.clear()


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


_ATOI: Final = re.compile(r"[+-]?[0-9]{1,18}\Z")  # no list is longer


def _index(items: list[Json], token: str, *, beyond: int = 0, before: str = "") -> int:
    """An index of the list, or up to `beyond` more, counted from the end if it is negative. Raises PatchFailed."""
    if not _ATOI.match(token):
        raise PatchFailed(f"{before}strconv.Atoi: parsing {quote(token)}: invalid syntax")
    index, size = int(token), len(items) + beyond
    if not -size <= index < size:
        raise PatchFailed(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % size


def _get(container: Json, token: str) -> Json:
    """A missing member is null, a missing item is an error."""
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
    """An operation of a JSON patch. It is looked at when it is its turn."""

    operation: Object

    def __init__(self, operation: Object) -> None:
        self.operation = operation

    @property
    def value(self) -> Json:
        return self.operation.get("value")

    def pointer_in(self, name: str, missing: str) -> str:
        """The pointer in `path` or `from`. `missing` is what is said if there is none; `{}` is Go's reason."""
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
        with _told(f'add operation does not apply: doc is missing path: "{path}"', f"error in add for path: '{path}'"):
            _add(*document.enter(path), self.value)


class _Remove(_Operation):
    def apply(self, document: _Document) -> None:
        path = self.pointer_in("path", "remove operation failed to decode path: missing value")
        missing = f'remove operation does not apply: doc is missing path: "{path}"'
        with _told(missing, f"error in remove for path: '{path}'"):
            _remove(*document.enter(path))


class _Replace(_Operation):
    def apply(self, document: _Document) -> None:
        path = self.pointer_in("path", "replace operation failed to decode path: {}")
        if path == "":
            if not isinstance(self.value, (dict, list)):
                raise PatchFailed("replace operation value must be object or array: %!w(<nil>)")
            document.root = self.value
            return
        with _told(f"replace operation does not apply: doc is missing path: {path}", ""):
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
        with _told(missing, f"error in move for path: '{_tokens(source)[-1] if '/' in source else ''}'"):
            value = _remove(*document.enter(source))
        path = self.pointer_in("path", "move operation failed to decode path: {}")
        missing = f"move operation does not apply: doc is missing destination path: {path}"
        with _told(missing, f"error in move for path: '{path}'"):
            _add(*document.enter(path), value)


class _Copy(_Operation):
    def apply(self, document: _Document) -> None:
        source = self.pointer_in("from", "copy operation failed to decode from: {}")
        missing = f"copy operation does not apply: doc is missing from path: {source}"
        with _told(missing, f"error in copy for from: '{source}'"):
            value = _get(*document.look(source))
        path = self.pointer_in("path", "copy operation failed to decode path: missing value")
        with _told(
            f"copy operation does not apply: doc is missing destination path: {path}",
            "error while adding value during copy",
        ):
            document.look(path)
            if value is not None:
                document.copied += _size(value)
            if document.copied > MAX_COPIED:
                raise _TooMuch(document.copied)
            if isinstance(value, (dict, list)):
                document.share()
            _add(*document.enter(path), value)


class _TooMuch(PatchFailed):
    def __init__(self, copied: int) -> None:
        super().__init__(
            f"Unable to complete the copy, the accumulated size increase of copy is {copied}, "
            f"exceeding the limit {MAX_COPIED}"
        )


class _Test(_Operation):
    def apply(self, document: _Document) -> None:
        path = self.pointer_in("path", "test operation failed to decode path: {}")
        with _told(f"test operation does not apply: is missing path: {path}", f"error in test for path: '{path}'"):
            found = document.root if path == "" else _get(*document.look(path))
        if not equal(found, self.value):
            raise FailedTest(f"testing value {path} failed: test failed")


@contextmanager
def _told(missing: str, error: str) -> Iterator[None]:
    """How an operation tells that there is no way to its place, and what goes wrong there."""
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
    """Bytes of a value's JSON as Go writes it, but for the odd float."""
    try:
        text = orjson.dumps(value)
    except (TypeError, ValueError):  # deeper than orjson goes (TypeError: JSONEncodeError)
        return len(compact_json(value).encode("utf-8", "surrogatepass"))
    return len(text) + 5 * (text.count(b"<") + text.count(b">") + text.count(b"&"))


# --- JSON merge patch ---


def merge_patch(document: Object, patch: Json) -> Json:
    """Apply a decoded merge patch, whose values become part of the result. A list is a patch that replaces everything.

    The document stays as it is; the patch is used up.
    """
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
    """The value without the members that are null, inside lists too; null items stay."""
    todo = [value] if isinstance(value, (dict, list)) else []
    while todo:
        container = todo.pop()
        if isinstance(container, dict):
            for name in [name for name, child in container.items() if child is None]:
                del container[name]
        inside = container.values() if isinstance(container, dict) else container
        todo += [child for child in inside if child and isinstance(child, (dict, list))]
    return value
