"""The published schemas of custom resources (apiextensions' controller/openapi/builder and .../v2).

The stored schema is extended by what every object has: apiVersion, kind and metadata at the root and in embedded
resources; `anyOf` for an integer or a string; the kind; the selectable fields.

OpenAPI v2 cannot express everything in a structural schema, and kubectl validates by it. So v2 leaves out the keywords
by which kubectl would refuse objects that the server accepts: see `lowered`.

Schemas are not changed in place; unchanged subtrees are shared with the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from noxu.discovery import openapi_definitions as definitions
from noxu.discovery.openapi_texts import EMBEDDED_TYPE_META, LIST_METADATA, OBJECT_METADATA, TYPE_META
from noxu.registry.resource import Resource
from noxu.values import Json, Object, sorted_copy

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
    raw = resource.declared_schema
    if raw is None or (style == V2 and raw.get(_PRESERVE)):
        return {"type": "object"} | _extensions(resource, resource.kind)
    schema = lowered(raw) if style == V2 else published(raw)
    described = {name: {"description": TYPE_META[name], "type": "string"} for name in TYPE_META}
    metadata = reference(style, definitions.OBJECT_META, OBJECT_METADATA)
    properties = schema.get("properties", {}) | described | {"metadata": metadata}
    return ordered(schema | {"properties": properties} | _extensions(resource, resource.kind))


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
    extensions: Object = {
        "x-kubernetes-group-version-kind": [definitions.group_version_kind(resource.group, resource.version, kind)]
    }
    if resource.selectable_fields:
        extensions["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in resource.selectable_fields]
    return extensions


def reference(style: str, name: str, description: str) -> Object:
    """A reference with a description. In v3 `$ref` may have no siblings, so it is wrapped in an allOf."""
    target = {"$ref": style + name}
    return {"description": description} | (target if style == V2 else {"allOf": [target]})


# -- v3 ---------------------------------------------------------------------------------------------------------------

_CHANGED_IN_V3: Final = frozenset({"properties", "items", "additionalProperties", _INT_OR_STRING, _EMBEDDED})


def published(schema: Object) -> Object:
    """A structural schema in OpenAPI v3."""
    if _CHANGED_IN_V3.isdisjoint(schema):
        return schema
    changed = _children(schema, published)
    if schema.get(_INT_OR_STRING):
        changed |= _unfolded(schema)
    if schema.get(_EMBEDDED):
        changed |= _embedded(schema, changed.get("properties", {}), V3)
    return schema | changed


def _unfolded(schema: Object) -> Object:
    """The anyOf that x-kubernetes-int-or-string implies, unless the schema has it."""
    any_of, all_of = schema.get("anyOf"), schema.get("allOf") or []
    if any_of == _EITHER or (all_of and all_of[0].get("anyOf") == _EITHER):
        return {}
    return {"allOf": [{"anyOf": _EITHER}, *all_of]} if any_of else {"anyOf": _EITHER}


# -- v2 ---------------------------------------------------------------------------------------------------------------

_DROPPED_IN_V2: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "nullable", "default"})
_CHANGED_IN_V2: Final = _CHANGED_IN_V3 | _DROPPED_IN_V2 | {_PRESERVE}


def lowered(schema: Object) -> Object:
    """A structural schema in OpenAPI v2:

    - There are no junctors and no defaults.
    - There is no null: a nullable node has no type and no children, and is not required.
    - A node that preserves unknown fields has no children, and is not an object.
    - An array without items has no type.
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
    """Nullable fields are not required; no field is, if the values of a map are nullable."""
    required = out.get("required")
    if not required:
        return
    additional = out.get("additionalProperties")
    if isinstance(additional, dict) and additional.get("nullable"):
        del out["required"]
        return
    properties = out.get("properties", {})
    still_required = [name for name in required if not properties.get(name, {}).get("nullable")]
    if still_required:
        out["required"] = still_required
    else:
        del out["required"]


# -- order ------------------------------------------------------------------------------------------------------------

_KEYWORDS: Final = (
    "description", "type", "nullable", "format", "title", "default", "maximum", "exclusiveMaximum", "minimum",
    "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf",
    "enum", "maxProperties", "minProperties", "required", "items", "allOf", "oneOf", "anyOf", "not", "properties",
    "additionalProperties", "externalDocs", "example", "$ref",
)  # fmt: skip
"""The fields of kube-openapi's spec.Schema in their order. Extensions follow, sorted."""
_KEPT: Final = frozenset({"default", "items", "not", "additionalProperties"})
_IN_RULES: Final = ("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")
_PLACES: Final = {keyword: (place, "") for place, keyword in enumerate(_KEYWORDS)}
_LAST: Final = len(_KEYWORDS)


@lru_cache(maxsize=1024)
def _arranged(keywords: tuple[str, ...]) -> tuple[list[str], bool]:
    """Keywords in their order, and whether none of them has nested schemas. Most schemas have one of a few combinations."""
    in_order = sorted(keywords, key=lambda keyword: _PLACES.get(keyword) or (_LAST, keyword))
    return in_order, _NESTED.keys().isdisjoint(keywords)


def ordered(schema: Object) -> Object:
    """A schema with its keywords, and the names in it, in the order in which kube-openapi writes them.

    {"x-b": 1, "type": "object", "x-a": 2, "description": "d"} becomes
    {"description": "d", "type": "object", "x-a": 2, "x-b": 1}. Null, and empty lists, objects
    and strings are omitted, except as values of the keywords in _KEPT.
    """
    keywords, is_leaf = _arranged(tuple(schema))
    if is_leaf and all(schema.values()):
        return {keyword: schema[keyword] for keyword in keywords}
    out: Object = {}
    for keyword in keywords:
        value = schema[keyword]
        if value or (value is not None and (keyword in _KEPT or not isinstance(value, (dict, list, str)))):
            order = _NESTED.get(keyword)
            out[keyword] = order(value) if order else value
    return out


def _ordered_list(nested: Json) -> Json:
    return [ordered(schema) for schema in nested]


def _ordered_rules(rules: Json) -> Json:
    return [{name: rule[name] for name in _IN_RULES if name in rule} for rule in rules]


_NESTED: Final[dict[str, Callable[[Json], Json]]] = {
    **dict.fromkeys(("items", "not"), ordered),
    "additionalProperties": lambda schema: ordered(schema) if isinstance(schema, dict) else schema,
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _ordered_list),
    **dict.fromkeys(("default", "enum", "example"), sorted_copy),
    "externalDocs": lambda docs: {name: docs[name] for name in ("description", "url") if docs.get(name)},
    "properties": lambda properties: {name: ordered(properties[name]) for name in sorted(properties)},
    "x-kubernetes-validations": _ordered_rules,
}


# -- both -------------------------------------------------------------------------------------------------------------


def _children(schema: Object, convert: Json) -> Object:
    """The converted children, by keyword."""
    children: Object = {}
    properties = schema.get("properties")
    if properties:
        children["properties"] = {name: convert(child) for name, child in properties.items()}
    for keyword in ("items", "additionalProperties"):
        child = schema.get(keyword)
        if isinstance(child, dict):
            children[keyword] = convert(child)
    return children


def _embedded(schema: Object, properties: Object, style: str) -> Object:
    """The fields of every embedded resource."""
    described = {name: {"description": text, "type": "string"} for name, text in EMBEDDED_TYPE_META.items()}
    metadata = reference(style, definitions.OBJECT_META, OBJECT_METADATA)
    required = schema.get("required") or []
    return {
        "properties": properties | described | {"metadata": metadata},
        "required": [*required, *(name for name in ("kind", "apiVersion") if name not in required)],
    }
