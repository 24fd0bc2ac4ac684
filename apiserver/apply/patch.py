"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386) as the API server applies them, that is as evanphx/json-patch v4.

Where that differs from the RFCs:

- a pointer's text before its first `/` is ignored; `""` is only good for `replace` (by an object or a list) and `test`;
- `replace` of a missing member adds it, `copy` of one adds null, `test` takes it for null, and so is a missing `value`;
- indices are what Go's Atoi reads, negative ones count from the end;
- a merge patch's lists lose the nulls in their objects, unless they replace an object.

The jsonpatch library is not used: it copies values and prints documents by recursion, and has no limits.

Neither the document nor the patch is changed, the result shares what it can with both. Nothing recurses on data.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import orjson

from apiserver.api import errors
from apiserver.api.gotext import compact_json
from apiserver.api.structs import JSON, STRING, Field, List, Struct, decode, json_type
from apiserver.api.types import Json, Object
from apiserver.api.values import equal

MAX_OPERATIONS: Final = 10_000  # upstream's maxJSONPatchOperations (CVE-2019-1002100)
MAX_COPIED: Final = 3 * 1024 * 1024  # bytes that all `copy` operations may add: upstream's JSONPatchMaxCopyBytes

INVALID_JSON: Final = "invalid JSON patch"
"""Upstream's 400 for a body that is not JSON, of either kind of patch."""


class Patched(NamedTuple):
    """The result, and what fieldValidation has to say about the patch itself."""

    value: Json
    complaints: list[str]


# --- JSON patch ---

OPERATIONS: Final = List(
    Struct("jsonPatchOp", package="handlers").define(
        Field("op", STRING), Field("path", STRING), Field("from", STRING), Field("value", JSON)
    )
)


def json_patch(document: Json, patch: Json, *, checked: bool = True) -> Patched:
    """Apply a decoded JSON patch. `checked`: fieldValidation is not Ignore.

    Raises ApiError: 400 for what is not a patch, 413 for too long a one, 422 if an operation cannot be done.
    """
    complaints: list[str] = []
    if checked:
        decoded = decode(OPERATIONS, patch)
        if decoded.error:
            raise errors.bad_request(f"error decoding patch: {decoded.error}")
        complaints = [f'json patch unknown field "{path}"' for path in decoded.unknown]
    operations = _operations(patch)
    if len(operations) > MAX_OPERATIONS:
        raise errors.too_large(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    working = _Document(document)
    for operation in operations:
        try:
            _PERFORM.get(_text(operation, "op"), _do_nothing)(working, operation)
        except _Impossible:
            raise errors.unprocessable() from None
    return Patched(working.root, complaints)


def _operations(patch: Json) -> list[Object]:
    """The patch as evanphx decodes it: a list of maps, null for an empty one."""
    if not isinstance(patch, (list, type(None))):
        raise errors.bad_request(f"json: cannot unmarshal {json_type(patch)} into Go value of type jsonpatch.Patch")
    for one in patch or ():
        if not isinstance(one, (dict, type(None))):
            what = json_type(one)
            raise errors.bad_request(f"json: cannot unmarshal {what} into Go value of type jsonpatch.Operation")
    return [one or {} for one in patch or ()]


class _Impossible(Exception):
    """An operation cannot be done."""


def _text(operation: Object, name: str) -> str:
    text = operation.get(name)
    if not isinstance(text, str):
        raise _Impossible
    return text


class _Document:
    """A document on its way. Containers are copied when they are first changed."""

    def __init__(self, root: Json) -> None:
        self.root = root
        self.copied = 0
        self._own: dict[int, Json] = {}  # by id, which holds while they are kept here

    def look(self, pointer: str) -> tuple[Json, str]:
        """The container that a pointer leads into, to be read, and the last token."""
        tokens = _tokens(pointer)
        node = self.root
        for token in tokens[:-1]:
            node = _get(node, token)
            if not isinstance(node, (dict, list)):
                raise _Impossible
        return node, tokens[-1]

    def enter(self, pointer: str) -> tuple[Json, str]:
        """The container that a pointer leads into, to be changed, and the last token."""
        tokens = _tokens(pointer)
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
            raise _Impossible
        node = node.copy()
        self._own[id(node)] = node
        return node

    def share(self) -> None:
        """From here on every container may stand in several places."""
        self._own.clear()


_ESCAPED: Final = re.compile("~[01]")


def _tokens(pointer: str) -> list[str]:
    tokens = pointer.split("/")[1:]
    if not tokens:
        raise _Impossible
    if "~" in pointer:
        return [_ESCAPED.sub(lambda match: "/" if match[0] == "~1" else "~", token) for token in tokens]
    return tokens


_ATOI: Final = re.compile(r"[+-]?[0-9]{1,18}\Z")  # no list is longer


def _index(items: list[Json], token: str, *, beyond: int = 0) -> int:
    """An index of the list, or up to `beyond` more, counted from the end if it is negative."""
    if not _ATOI.match(token):
        raise _Impossible
    index, size = int(token), len(items) + beyond
    if not -size <= index < size:
        raise _Impossible
    return index % size


def _get(container: Json, token: str) -> Json:
    """A missing member is null, a missing item is an error."""
    return container[_index(container, token)] if isinstance(container, list) else container.get(token)


def _add(document: _Document, pointer: str, value: Json) -> None:
    container, token = document.enter(pointer)
    if isinstance(container, dict):
        container[token] = value
    elif token == "-":  # noqa: S105
        container.append(value)
    else:
        container.insert(_index(container, token, beyond=1), value)


def _take(document: _Document, pointer: str) -> Json:
    container, token = document.enter(pointer)
    if isinstance(container, list):
        return container.pop(_index(container, token))
    if token not in container:
        raise _Impossible
    return container.pop(token)


def _do_add(document: _Document, operation: Object) -> None:
    _add(document, _text(operation, "path"), operation.get("value"))


def _do_remove(document: _Document, operation: Object) -> None:
    _take(document, _text(operation, "path"))


def _do_replace(document: _Document, operation: Object) -> None:
    pointer, value = _text(operation, "path"), operation.get("value")
    if pointer == "":
        if not isinstance(value, (dict, list)):
            raise _Impossible
        document.root = value
        return
    container, token = document.enter(pointer)
    container[_index(container, token) if isinstance(container, list) else token] = value


def _do_move(document: _Document, operation: Object) -> None:
    value = _take(document, _text(operation, "from"))
    _add(document, _text(operation, "path"), value)


def _do_copy(document: _Document, operation: Object) -> None:
    value = _get(*document.look(_text(operation, "from")))
    document.look(_text(operation, "path"))
    if value is not None:
        document.copied += _size(value)
    if document.copied > MAX_COPIED:
        raise _Impossible
    if isinstance(value, (dict, list)):
        document.share()
    _add(document, _text(operation, "path"), value)


def _do_test(document: _Document, operation: Object) -> None:
    pointer = _text(operation, "path")
    found = _get(*document.look(pointer)) if pointer else document.root
    if not equal(found, operation.get("value")):
        raise _Impossible


def _do_nothing(_document: _Document, _operation: Object) -> None:
    raise _Impossible


_PERFORM: Final = {
    "add": _do_add,
    "remove": _do_remove,
    "replace": _do_replace,
    "move": _do_move,
    "copy": _do_copy,
    "test": _do_test,
}


def _size(value: Json) -> int:
    """Bytes of a value's JSON as Go writes it, but for the odd float."""
    try:
        text = orjson.dumps(value)
    except (TypeError, ValueError):  # deeper than orjson goes (TypeError: JSONEncodeError)
        return len(compact_json(value).encode("utf-8", "surrogatepass"))
    return len(text) + 5 * (text.count(b"<") + text.count(b">") + text.count(b"&"))


# --- JSON merge patch ---


def merge_patch(document: Object, patch: Json, *, checked: bool = True) -> Json:
    """Apply a decoded merge patch. `checked`: fieldValidation is not Ignore. Raises ApiError 400 for what is no patch.

    Unchecked, a list is a patch that replaces everything.
    """
    if isinstance(patch, dict):
        return _merged(document, patch)
    if checked and patch is not None:
        what = json_type(patch)
        raise errors.bad_request(
            f"error decoding patch: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
        )
    if isinstance(patch, list):
        return _without_nulls(patch)
    raise errors.bad_request("Invalid JSON Patch")


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
