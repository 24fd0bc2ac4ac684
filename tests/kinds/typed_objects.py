"""Objects of built-in kinds for tests of their rules."""

from __future__ import annotations

from collections.abc import Mapping

from noxu.api.meta import validate_object_meta
from noxu.go.structs import decode
from noxu.kinds.kind import Context, Kind, prepare, written
from noxu.kinds.scheme import by_group_kind
from noxu.values import Json, Object, copy

NOW = "2024-01-01T00:00:00Z"


def kind_of(api_version: str, kind: str) -> Kind:
    return by_group_kind()[api_version, kind]


def typed(kind: Kind, body: Object) -> Object:
    """The object as a request is decoded, with defaults."""
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x"}}
    decoded = decode(kind.struct, copy({**head, **body}))
    assert (decoded.error, decoded.unknown) == ("", [])
    value: Object = decoded.value
    kind.default(value)
    return value


def filled(kind: Kind, body: Object) -> Object:
    """The object as it is written, with defaults; they are idempotent."""
    value = typed(kind, body)
    once = written(kind, copy(value))
    kind.default(value)
    assert written(kind, value) == once
    return once


def errors(kind: Kind, new: Object, old: Object | None = None, subresource: str = "") -> list[str]:
    """The errors of a create, or of an update; they are without those of the metadata."""
    before = None if old is None else typed(kind, old)
    return [str(error) for error in kind.validate(typed(kind, new), before, Context(subresource, now=NOW))]


def name_errors(kind: Kind, name: str, body: Object) -> list[str]:
    value = typed(kind, {**body, "metadata": {"name": name}})
    metadata = {**value["metadata"], **({"namespace": "ns"} if kind.namespaced else {})}
    rule = kind.rule_of_name(value)
    return [str(error) for error in validate_object_meta(metadata, namespaced=kind.namespaced, name_rule=rule)]


def prepared(
    kind: Kind, new: Object, old: Object | None = None, subresource: str = "", user: Mapping[str, Json] | None = None
) -> Object:
    """The object as it would be stored."""
    value = typed(kind, new)
    before = None if old is None else typed(kind, old)
    prepare(kind, value, before, Context(subresource, now=NOW, user=user or {}))
    return written(kind, value)
