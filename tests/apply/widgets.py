"""A resource with every kind of field, and the words in which the tests of ownership speak."""

from __future__ import annotations

from typing import Any

from noxu.apply.fieldset import of
from noxu.apply.tracker import Tracker
from noxu.apply.types import of_schema
from noxu.schema.structural import parse

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
ITEM = {
    "type": "object",
    "properties": {"k": STRING, "v": STRING, "p": {"type": "integer", "default": 1}, "o": {"type": "object", "properties": {"x": STRING}}},
}  # fmt: skip
SPEC: dict[str, Any] = {
    "a": INTEGER,
    "b": STRING,
    "m": {"type": "object", "additionalProperties": STRING},
    "n": {"type": "object", "properties": {"x": INTEGER, "y": INTEGER}},
    "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": STRING, "y": STRING}},
    "lat": {"type": "array", "items": STRING},
    "lset": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
    "lmap": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": ITEM},
    "lmap2": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k", "p"],
        "items": ITEM,
    },
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
STATUS = {"type": "object", "properties": {"r": INTEGER}}

NOW, BEFORE, EARLIER = "2026-02-03T04:05:06Z", "2026-01-01T00:00:01Z", "2026-01-01T00:00:00Z"
V1, V2, V9 = "g.example.com/v1", "g.example.com/v2", "g.example.com/v9"


def schema(**changes: Any) -> Any:
    spec = {"type": "object", "properties": SPEC | changes}
    return parse({"type": "object", "properties": {"spec": spec, "status": STATUS}})


TYPES = {V1: of_schema(schema()), V2: of_schema(schema())}


def tracker(version: str = V1, **changes: Any) -> Tracker:
    return Tracker(**({"version": version, "kind": "Widget", "types": TYPES} | changes))


MAIN = tracker(resets={V1: of(("f:status",)), V2: of(("f:status",))})
STATUS_ONLY = tracker(subresource="status", resets={V1: of(("f:metadata",), ("f:spec",))})


def widget(
    spec: Any = ..., *, version: str = V1, status: Any = ..., managers: Any = ..., **metadata: Any
) -> dict[str, Any]:
    """A Widget. What is not given is not there."""
    value: dict[str, Any] = {"apiVersion": version, "kind": "Widget", "metadata": {"name": "w", **metadata}}
    if spec is not ...:
        value["spec"] = spec
    if status is not ...:
        value["status"] = status
    if managers is not ...:
        value["metadata"]["managedFields"] = managers
    return value


def live(spec: Any = ..., **more: Any) -> dict[str, Any]:
    """A Widget that is stored: it has a uid."""
    return widget(spec, **({"uid": "u-1"} | more))


def owns(manager: str, fields: Any, *, time: str = "", version: str = V1, subresource: str = "") -> dict[str, Any]:
    """A managedFields entry. `manager` is `apply m` or `update m`."""
    operation, name = manager.split()
    entry = {"manager": name, "operation": operation.capitalize(), "apiVersion": version, "fieldsType": "FieldsV1"}
    more = {"time": time} if time else {}
    return {**entry, **more, "fieldsV1": fields, **({"subresource": subresource} if subresource else {})}


def owners(value: dict[str, Any]) -> dict[str, Any]:
    """Who owns what: `{"apply m": fields}`, with subresource and version where they are not the usual ones."""
    messages = {}
    for entry in value["metadata"].get("managedFields", []):
        name = f"{entry['operation'].lower()} {entry['manager']}"
        name += f" {entry['subresource']}" if "subresource" in entry else ""
        name += f" at {entry['apiVersion']}" if entry["apiVersion"] != V1 else ""
        assert name not in messages
        messages[name] = entry["fieldsV1"]
    return messages


def times(value: dict[str, Any]) -> dict[str, str]:
    return {
        f"{entry['operation'].lower()} {entry['manager']}": entry.get("time", "")
        for entry in value["metadata"].get("managedFields", [])
    }
