"""List types, list map keys and map types."""

from __future__ import annotations

from collections.abc import Callable

from noxu.values import Json, Object
from tests.rows import rows

PATH = "spec.validation.openAPIV3Schema.properties[spec]"
STRING = {"type": "string"}
NOT_MAP = "must be map if x-kubernetes-list-map-keys is non-empty"
ATOMIC = "must be atomic as item of a list with x-kubernetes-list-type=set"
KEY = "this property is in x-kubernetes-list-map-keys, so it"


def listed(list_type: str | None, items: Json = STRING, *keys: str, **more: Json) -> Object:
    schema = {"type": "array", "x-kubernetes-list-type": list_type, "items": items, **more}
    return {**schema, "x-kubernetes-list-map-keys": list(keys)} if keys else schema


def item(required: list[str] | None = None, **properties: Json) -> Object:
    return {
        "type": "object",
        "properties": properties or {"k": STRING},
        "required": ["k"] if required is None else required,
    }


def struct(map_type: str | None, **more: Json) -> Object:
    return {"type": "object", "properties": {"a": STRING}, "x-kubernetes-map-type": map_type, **more}


ROWS: list[tuple[str, Object, list[str]]] = [
    ("an atomic list", listed("atomic"), []),
    ("a set of scalars", listed("set"), []),
    ("a list with a key", listed("map", item(), "k"), []),
    ("another list type", listed("heap"), ['.x-kubernetes-list-type: Unsupported value: "heap": supported values: "atomic", "set", "map"']),
    ("a list type of an object", {"type": "object", "x-kubernetes-list-type": "set"}, ['.type: Invalid value: "object": must be array if x-kubernetes-list-type is specified']),
    ("a list type of anything", {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-list-type": "atomic"}, [".type: Required value: must be array if x-kubernetes-list-type is specified"]),
    ("a set of atomic maps", listed("set", struct("atomic")), []),
    ("a set of maps", listed("set", struct(None)), [f".items.x-kubernetes-map-type: Invalid value: null: {ATOMIC}"]),
    ("a set of granular maps", listed("set", struct("granular")), [f".items.x-kubernetes-map-type: Invalid value: null: {ATOMIC}"]),
    ("a set of lists", listed("set", listed(None)), []),
    ("a set of atomic lists", listed("set", listed("atomic")), []),
    ("a set of sets", listed("set", listed("set")), [f'.items.x-kubernetes-list-type: Invalid value: "set": {ATOMIC}']),
    ("keys without a list type", listed(None, item(), "k"), [f".x-kubernetes-list-type: Required value: {NOT_MAP}"]),
    ("keys of a set", listed("set", STRING, "k"), [f'.x-kubernetes-list-type: Invalid value: "set": {NOT_MAP}']),
    ("no keys", listed("map", item()), [".x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"]),
    ("keys of scalars", listed("map", STRING, "k"), ['.items.type: Invalid value: "string": must be object if parent array\'s x-kubernetes-list-type is map']),
    ("keys that are no properties", listed("map", item(), "k", "z"), ['.x-kubernetes-list-map-keys: Invalid value: ["k","z"]: entries must all be names of item properties']),
    ("keys that repeat", listed("map", item(), "k", "k"), ['.x-kubernetes-list-map-keys: Invalid value: ["k","k"]: must not contain duplicate entries']),
    ("keys that are objects are reported with the type of the items", listed("map", item(k={"type": "object"}), "k"), ['.items.properties[k].type: Invalid value: "object": must be a scalar type if parent array\'s x-kubernetes-list-type is map']),
    ("keys that may be missing", listed("map", item([]), "k"), [f".items.properties[k].default: Required value: {KEY} must have a default or be a required property"]),
    ("keys with a default", listed("map", item([], k={**STRING, "default": "x"}), "k"), []),
    ("keys that may be null", listed("map", item(k={**STRING, "nullable": True}), "k"), [f".items.properties[k].nullable: Forbidden: {KEY} cannot be nullable"]),
    ("items that may be null", listed("map", {**item(), "nullable": True}, "k"), [".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map"]),
    ("a set of what may be null", listed("set", {**STRING, "nullable": True}), [".items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"]),
    ("an atomic list of what may be null", listed("atomic", {**STRING, "nullable": True}), []),
    ("a granular map", struct("granular"), []),
    ("another map type", struct("foo"), ['.x-kubernetes-map-type: Unsupported value: "foo": supported values: "atomic", "granular"']),
    ("a map type of a string", {**STRING, "x-kubernetes-map-type": "atomic"}, ['.type: Invalid value: "string": must be object if x-kubernetes-map-type is specified']),
    ("a map type of anything", {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-map-type": "atomic"}, [".type: Required value: must be object if x-kubernetes-map-type is specified"]),
]  # fmt: skip


@rows(("schema", "errors"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_lists_and_maps(
    build: Callable[..., Object], messages: Callable[..., list[str]], schema: Object, errors: list[str]
) -> None:
    found = messages(build({"type": "object", "properties": {"spec": schema}}))
    assert found == [PATH + error for error in errors]


def test_a_list_map_without_items_or_with_several(
    build: Callable[..., Object], messages: Callable[..., list[str]]
) -> None:
    def texts(schema: Object) -> list[str]:
        return [text.removeprefix(PATH) for text in messages(build({"type": "object", "properties": {"spec": schema}}))]

    schema = listed("map", None, "k")
    assert texts(schema) == [
        ".items: Required value: must be specified",
        ".items: Required value: must have a schema if x-kubernetes-list-type is map",
    ]
    first, last = texts({**schema, "items": [{}]})
    assert first == ".items: Forbidden: items must be a schema object and not an array"
    assert last.startswith('.items: Invalid value: {"Schema":null,"JSONSchemas":[{"ID":""')
    assert last.endswith("]}: must only have a single schema if x-kubernetes-list-type is map")
