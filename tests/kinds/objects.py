"""Objects of built-in kinds as requests make them, and the messages of their validation."""

from __future__ import annotations

from noxu.go.structs import decode
from noxu.kinds.kind import Context, Kind, prepare, written
from noxu.kinds.scheme import by_group_kind
from noxu.values import Json, Object, copy

NOW = "2024-01-02T03:04:05Z"
UID = "0-1-2"


def kind_of(api_version: str, kind: str) -> Kind:
    return by_group_kind()[api_version, kind]


def decoded(kind: Kind, value: Object) -> Object:
    """An object with its defaults."""
    found = decode(kind.struct, {"kind": kind.kind, "apiVersion": kind.api_version, **value})
    assert (found.error, found.unknown) == ("", [])
    typed: Object = found.value
    kind.default(typed)
    return typed


def created(kind: Kind, value: Object) -> Object:
    """An object as it is stored, without validation."""
    new = decoded(kind, copy(value))
    new["metadata"].setdefault("uid", UID)
    prepare(kind, new, None, Context(now=NOW))
    return written(kind, new)


def updated(kind: Kind, old: Object, change: Object, subresource: str = "") -> Object:
    """An object after a merge patch, without validation."""
    new = decoded(kind, merged(old, change))
    prepare(kind, new, copy(old), Context(subresource, now=NOW))
    return written(kind, new)


def merged(value: Json, change: Json) -> Json:
    """A merge patch. A dict whose keys are numbers changes items of a list."""
    if isinstance(value, list) and isinstance(change, dict) and all(key.isdigit() for key in change):
        items = copy(value)
        for key, item in change.items():
            items[int(key) : int(key) + 1] = [merged(items[int(key)] if int(key) < len(items) else {}, item)]
        return items
    if not isinstance(change, dict):
        return copy(change)
    result = dict(value) if isinstance(value, dict) else {}
    for key, item in change.items():
        if item is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), item)
    return result


def create_messages(kind: Kind, value: Object) -> list[str]:
    return messages(kind, created(kind, value), None)


def update_messages(kind: Kind, old: Object, change: Object, subresource: str = "") -> list[str]:
    return messages(kind, updated(kind, old, change, subresource), old, subresource)


def messages(kind: Kind, new: Object, old: Object | None, subresource: str = "") -> list[str]:
    """Equal ones once, as in the message of a response."""
    return list(dict.fromkeys(str(error) for error in kind.validate(new, old, Context(subresource))))
