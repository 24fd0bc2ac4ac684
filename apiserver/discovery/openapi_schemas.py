"""The schemas of custom resources as they are published (apiextensions' controller/openapi/builder and .../v2).

What is stored in the definition is published as it is, with what every object has put in: apiVersion, kind and
metadata of the root and of embedded resources; `anyOf` for an integer or a string; the kind; the selectable fields.

OpenAPI v2 knows less than a structural schema says, and kubectl trusts what it reads there. So v2 leaves out whatever
would make it refuse what the server takes: see `lowered`.

Schemas are never changed in place: a subtree that stays as it is, is the definition's own.
"""

from __future__ import annotations

from typing import Final

from apiserver.api.types import Json, Object
from apiserver.discovery import openapi_definitions as definitions
from apiserver.discovery.openapi_texts import EMBEDDED_TYPE_META, LIST_METADATA, OBJECT_METADATA, TYPE_META
from apiserver.registry.resource import Resource

V2: Final = definitions.REF
V3: Final = "#/components/schemas/"

_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EITHER: Final = [{"type": "integer"}, {"type": "string"}]


def name_of(resource: Resource, *, list_: bool = False) -> str:
    """`com.example.v1.Widget`."""
    group = ".".join(reversed(resource.group.split(".")))
    return f"{group}.{resource.version}.{resource.list_kind if list_ else resource.kind}"


def kind_schema(resource: Resource, style: str) -> Object:
    """The schema of a custom resource's objects; `style` is V2 or V3."""
    raw = resource.raw_schema
    if raw is None or (style == V2 and raw.get(_PRESERVE)):
        return {"type": "object"} | _extensions(resource, resource.kind)
    schema = lowered(raw) if style == V2 else published(raw)
    described = {name: {"description": TYPE_META[name], "type": "string"} for name in TYPE_META}
    metadata = reference(style, definitions.OBJECT_META, OBJECT_METADATA)
    properties = schema.get("properties", {}) | described | {"metadata": metadata}
    return schema | {"properties": properties} | _extensions(resource, resource.kind)


def list_schema(resource: Resource, style: str) -> Object:
    """The schema of a custom resource's lists."""
    items = {
        "description": f"The {resource.plural}.",
        "type": "array",
        "items": {"$ref": style + name_of(resource)},
    }
    return {
        "description": f"{resource.list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"description": TYPE_META["apiVersion"], "type": "string"},
            "items": items,
            "kind": {"description": TYPE_META["kind"], "type": "string"},
            "metadata": reference(style, definitions.LIST_META, LIST_METADATA),
        },
    } | _extensions(resource, resource.list_kind)


def _extensions(resource: Resource, kind: str) -> Object:
    found: Object = {
        "x-kubernetes-group-version-kind": [definitions.group_version_kind(resource.group, resource.version, kind)]
    }
    if resource.selectable_fields:
        found["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in resource.selectable_fields]
    return found


def reference(style: str, name: str, description: str) -> Object:
    """A described reference. In v3 nothing may stand beside a `$ref`, so it is wrapped."""
    target = {"$ref": style + name}
    return {"description": description} | (target if style == V2 else {"allOf": [target]})


# -- v3 ---------------------------------------------------------------------------------------------------------------

_CHANGED_IN_V3: Final = frozenset({"properties", "items", "additionalProperties", _INT_OR_STRING, _EMBEDDED})


def published(schema: Object) -> Object:
    """A structural schema as OpenAPI v3 has it."""
    if _CHANGED_IN_V3.isdisjoint(schema):
        return schema
    changed = _children(schema, published)
    if schema.get(_INT_OR_STRING):
        changed |= _unfolded(schema)
    if schema.get(_EMBEDDED):
        changed |= _embedded(schema, changed.get("properties", {}), V3)
    return schema | changed


def _unfolded(schema: Object) -> Object:
    """What x-kubernetes-int-or-string stands for, unless the schema says so itself."""
    any_of, all_of = schema.get("anyOf"), schema.get("allOf") or []
    if any_of == _EITHER or (all_of and all_of[0].get("anyOf") == _EITHER):
        return {}
    return {"allOf": [{"anyOf": _EITHER}, *all_of]} if any_of else {"anyOf": _EITHER}


# -- v2 ---------------------------------------------------------------------------------------------------------------

_DROPPED_IN_V2: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "nullable", "default"})
_CHANGED_IN_V2: Final = _CHANGED_IN_V3 | _DROPPED_IN_V2 | {_PRESERVE}


def lowered(schema: Object) -> Object:
    """A structural schema as OpenAPI v2 has it.

    - There are no alternatives and no defaults.
    - There is no null: what is nullable has no type and no children, and is not required.
    - Where unknown fields are preserved nothing is said of children, nor that it is an object.
    - An array has items, or is none.
    """
    if _CHANGED_IN_V2.isdisjoint(schema) and schema.get("type") != "array":
        return schema
    out = {keyword: value for keyword, value in schema.items() if keyword not in _DROPPED_IN_V2}
    nullable, preserving = schema.get("nullable"), schema.get(_PRESERVE)
    if nullable:
        out.pop("type", None)
    if nullable or preserving:
        out.pop("items", None)
        out.pop("properties", None)
    kind = out.get("type")
    if (kind == "array" and "items" not in out) or (kind == "object" and preserving):
        del out["type"]
    _require_no_nulls(out)
    out |= _children(out, lowered)
    if schema.get(_EMBEDDED) and not preserving:
        out |= _embedded(out, out.get("properties", {}), V2)
    return out


def _require_no_nulls(out: Object) -> None:
    """What may be null is not required; nor is anything, if the values of a map may be null."""
    required = out.get("required")
    if not required:
        return
    additional = out.get("additionalProperties")
    if isinstance(additional, dict) and additional.get("nullable"):
        del out["required"]
        return
    properties = out.get("properties", {})
    kept = [name for name in required if not properties.get(name, {}).get("nullable")]
    if kept:
        out["required"] = kept
    else:
        del out["required"]


# -- both -------------------------------------------------------------------------------------------------------------


def _children(schema: Object, convert: Json) -> Object:
    """The converted children, by keyword."""
    found: Object = {}
    properties = schema.get("properties")
    if properties:
        found["properties"] = {name: convert(one) for name, one in properties.items()}
    for keyword in ("items", "additionalProperties"):
        one = schema.get(keyword)
        if isinstance(one, dict):
            found[keyword] = convert(one)
    return found


def _embedded(schema: Object, properties: Object, style: str) -> Object:
    """What every embedded resource has."""
    described = {name: {"description": text, "type": "string"} for name, text in EMBEDDED_TYPE_META.items()}
    metadata = reference(style, definitions.OBJECT_META, OBJECT_METADATA)
    required = schema.get("required") or []
    return {
        "properties": properties | described | {"metadata": metadata},
        "required": [*required, *(name for name in ("kind", "apiVersion") if name not in required)],
    }
