"""Definitions of the built-in kinds, made from their struct tables (upstream's openapi-gen makes them from Go types).

A definition is a schema of OpenAPI v2, with defaults; `in_v2` and `in_v3` convert it. Names are upstream's: the reversed
Go package, and the type (`io.k8s.api.core.v1.Namespace`).

- A field without omitempty is required, unless it is a struct in Go; `_REQUIRED` lists the types whose markers differ.
- A field of an enum type lists its values, as upstream does with the feature OpenAPIEnums, which is on by default.
- A field that Go writes even if it is zero has that zero as default; lists and maps have none, because theirs is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from noxu.api import meta as object_meta
from noxu.crd import types as crd
from noxu.discovery import openapi_kind_texts
from noxu.discovery.openapi_texts import FIELDS, KINDS, OF_KINDS, OF_LISTS, TYPE_META
from noxu.go.structs import Field, List, Map, Presence, Scalar, Struct, Type, Union, Wire
from noxu.kinds import facts, meta, scheme
from noxu.releases import NEWEST
from noxu.values import Json, Object

REF: Final = "#/definitions/"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_APIEXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_RUNTIME: Final = "io.k8s.apimachinery.pkg.runtime."
_RESOURCE: Final = "io.k8s.apimachinery.pkg.api.resource."
_INTSTR: Final = "io.k8s.apimachinery.pkg.util.intstr."

OBJECT_META: Final = META + "ObjectMeta"
LIST_META: Final = META + "ListMeta"
DELETE_OPTIONS: Final = META + "DeleteOptions"
STATUS: Final = META + "Status"
PATCH: Final = META + "Patch"
WATCH_EVENT: Final = META + "WatchEvent"
SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"

_LEAVES: Final[dict[str, Object]] = {
    META + "Time": {"type": "string", "format": "date-time"},
    META + "MicroTime": {"type": "string", "format": "date-time"},
    META + "FieldsV1": {"type": "object"},
    PATCH: {"type": "object"},
    _RUNTIME + "RawExtension": {"type": "object"},
    META + "Duration": {"type": "string"},
    _RESOURCE + "Quantity": {"type": "string"},
    _INTSTR + "IntOrString": {"type": "string", "format": "int-or-string"},
    _APIEXTENSIONS + "JSON": {},
}
"""Types with a JSON form that does not follow from a table."""

_NAMED_SCALARS: Final = {
    "v1.Time": META + "Time",
    "v1.MicroTime": META + "MicroTime",
    "v1.Duration": META + "Duration",
    "resource.Quantity": _RESOURCE + "Quantity",
    "interface {}": META + "FieldsV1",
    "runtime.RawExtension": _RUNTIME + "RawExtension",
    "intstr.IntOrString": _INTSTR + "IntOrString",
    "v1.JSON": _APIEXTENSIONS + "JSON",
}
"""The names of definitions by Go type."""

_SCALARS: Final[dict[Wire, Object]] = {
    Wire.STRING: {"type": "string"},
    Wire.BOOL: {"type": "boolean"},
    Wire.INT32: {"type": "integer", "format": "int32"},
    Wire.INT64: {"type": "integer", "format": "int64"},
    Wire.DOUBLE: {"type": "number", "format": "double"},
    Wire.BYTES: {"type": "string", "format": "byte"},
}

_REQUIRED: Final = {
    "apiextensions.v1.CustomResourceDefinition": ("spec",),
    "apiextensions.v1.CustomResourceDefinitionSpec": ("group", "names", "scope", "versions"),
    "apiextensions.v1.CustomResourceDefinitionStatus": (),
}
"""The required fields of types whose markers in the Go source differ from the rule, and which the data does not have."""

_ENUMS: Final = {
    "ValidationRule.reason": ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"],
}
"""The values of fields of enum types which the data does not have."""

KNOWN_EVERYWHERE: Final = {
    "": "v1",
    "admissionregistration.k8s.io": "v1 v1alpha1 v1beta1",
    "apps": "v1 v1beta1 v1beta2",
    "authentication.k8s.io": "v1 v1alpha1 v1beta1",
    "authorization.k8s.io": "v1 v1beta1",
    "autoscaling": "v1 v2",
    "batch": "v1 v1beta1",
    "certificates.k8s.io": "v1 v1alpha1 v1beta1",
    "coordination.k8s.io": "v1 v1alpha2 v1beta1",
    "discovery.k8s.io": "v1 v1beta1",
    "events.k8s.io": "v1 v1beta1",
    "extensions": "v1beta1",
    "flowcontrol.apiserver.k8s.io": "v1 v1beta1 v1beta2 v1beta3",
    "internal.apiserver.k8s.io": "v1alpha1",
    "networking.k8s.io": "v1 v1beta1",
    "node.k8s.io": "v1 v1alpha1 v1beta1",
    "policy": "v1 v1beta1",
    "rbac.authorization.k8s.io": "v1 v1alpha1 v1beta1",
    "resource.k8s.io": "v1 v1alpha3 v1beta1 v1beta2",
    "scheduling.k8s.io": "v1 v1alpha3 v1beta1",
    "storage.k8s.io": "v1 v1alpha1 v1beta1",
    "storagemigration.k8s.io": "v1 v1beta1",
}
"""The group versions in client-go's scheme; DeleteOptions and WatchEvent are kinds in each of them."""


def group_version_kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "kind": kind, "version": version}


def prefix_of(group: str, version: str) -> str:
    """The prefix of the names of a built-in group version's definitions."""
    if group == crd.GROUP:
        return _APIEXTENSIONS
    return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}."


# -- tables ---------------------------------------------------------------------------------------------------


class _Tables:
    """Names and tables of all definitions, found by walking from the kinds."""

    def __init__(self, release: int) -> None:
        self.names: dict[Struct | Union, str] = {}
        self.tables: dict[str, Struct | Union] = {}
        self.kinds: dict[str, list[Object]] = {}
        """x-kubernetes-group-version-kind of definitions that are kinds, by name."""
        self.add("", "v1", meta.STATUS)
        self.add("", "v1", meta.DELETE_OPTIONS)
        self.add("", "v1", facts.struct("meta/v1.WatchEvent"))
        for name in (DELETE_OPTIONS, WATCH_EVENT):
            self.kinds[name] = [
                group_version_kind(group, version, name.removeprefix(META))
                for group, versions in KNOWN_EVERYWHERE.items()
                for version in versions.split()
            ]
        self.add("autoscaling", "v1", meta.SCALE)
        for kind in scheme.served(release):
            self.add(kind.group, kind.version, kind.struct)
            if kind.stored:
                self.add(kind.group, kind.version, meta.list_of(kind.struct))
            for subresource in kind.subresources:
                if subresource.body is not None and not subresource.connect:
                    self.add(subresource.body_group, subresource.body_version, subresource.body)
        self.add(crd.GROUP, crd.VERSION, crd.CRD)
        self.add(crd.GROUP, crd.VERSION, meta.list_of(crd.CRD))

    def add(self, group: str, version: str, kind: Struct) -> None:
        """Add a kind and the types of its fields."""
        self._name(kind, prefix_of(group, version))
        kinds = self.kinds.setdefault(self.names[kind], [])
        if (identity := group_version_kind(group, version, kind.name)) not in kinds:
            kinds.append(identity)

    def _name(self, kind: Type, prefix: str) -> None:
        if isinstance(kind, (List, Map)):
            self._name(kind.element, prefix)
        elif not isinstance(kind, Scalar) and kind not in self.names:
            name = _prefix(kind, prefix) + kind.name
            self.names[kind], self.tables[name] = name, kind
            for field in kind.fields.values() if isinstance(kind, Struct) else ():
                self._name(field.type, prefix)


def _prefix(kind: Struct | Union, otherwise: str) -> str:
    """The prefix of a struct's name: that of the package which declares it."""
    part = facts.origin_of(kind).part if isinstance(kind, Struct) else ""
    if part == "meta/v1" or kind in (meta.STATUS, object_meta.OBJECT_META):
        return META
    return f"io.k8s.api.{part.replace('/', '.')}." if part else otherwise


@cache
def _tables(release: int) -> _Tables:
    return _Tables(release)


def name_of(kind: Struct) -> str:
    """The name of a kind's definition."""
    return _tables(facts.origin_of(kind).release).names[kind]


def reached(names: Iterable[str], release: int = NEWEST) -> list[str]:
    """The names of these definitions and of all that they refer to, sorted."""
    reachable: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reachable:
            reachable.add(name)
            waiting += definition(name, release)[1]
    return sorted(reachable)


# -- schemas ----------------------------------------------------------------------------------------------------------


@cache
def definition(name: str, release: int = NEWEST) -> tuple[Object, frozenset[str]]:
    """(a definition, the names of those it refers to) in a release of Kubernetes."""
    tables = _tables(release)
    table = tables.tables.get(name)
    bare = name.rpartition(".")[2]
    schema: Object = {"description": _type_text(bare)}
    refers: set[str] = set()
    if isinstance(table, Struct):
        schema |= _struct(name, table, tables, refers)
    elif table is None:
        schema |= _LEAVES[name]
    if not schema["description"]:
        del schema["description"]
    if name in tables.kinds:
        schema["x-kubernetes-group-version-kind"] = tables.kinds[name]
    return schema, frozenset(refers)


def _type_text(name: str) -> str:
    item = name.removesuffix("List")
    is_list = item != name and item in KINDS
    return (
        KINDS.get(name)
        or openapi_kind_texts.TYPES.get(name)
        or (f"{name} is a list of {item} objects." if is_list else "")
    )


def _field_texts(kind: Struct, *, is_kind: bool) -> dict[str, str]:
    """The descriptions of a struct's fields. All kinds and all conditions have some fields in common."""
    common = openapi_kind_texts.CONDITION if {"type", "status", "reason"} <= kind.fields.keys() else {}
    if is_kind:
        common = OF_LISTS if kind.name.endswith("List") else OF_KINDS
    return common | openapi_kind_texts.FIELDS.get(kind.name, {}) | FIELDS.get(kind.name, {})


def _struct(name: str, kind: Struct, tables: _Tables, refers: set[str]) -> Object:
    texts = _field_texts(kind, is_kind=name in tables.kinds)
    schema: Object = {"type": "object"}
    field_facts = _facts(kind)
    required = _REQUIRED.get(".".join(name.split(".")[-3:]))
    if field_facts:
        required = tuple(field.name for field in field_facts.values() if field.extra.get("required"))
    elif required is None:
        required = tuple(name for name, field in kind.fields.items() if _is_required(field))
    if required:
        schema["required"] = list(required)
    properties = {}
    for field_name, field in sorted(kind.fields.items()):
        text = TYPE_META[field_name] if field.inline == "TypeMeta" else texts.get(field_name)
        schema_ = _property(field, field_facts, tables, refers)
        if f"{kind.name}.{field_name}" in _ENUMS:
            schema_["enum"] = _ENUMS[f"{kind.name}.{field_name}"]
        properties[field_name] = {"description": text} | schema_ if text else schema_
    if properties:
        schema["properties"] = properties
    if kind.atomic or kind.name == "OwnerReference":
        schema["x-kubernetes-map-type"] = "atomic"
    if unions := facts.unions(kind):
        schema["x-kubernetes-unions"] = [_union(union) for union in unions]
    return schema


def _union(union: Object) -> Object:
    """A union as upstream describes it; some have no discriminator."""
    published: Object = {"discriminator": union["discriminator"]} if union.get("discriminator") else {}
    return published | {"fields-to-discriminateBy": dict(sorted(union["fields"].items()))}


def _is_required(field: Field) -> bool:
    if field.write is Presence.NULL:
        return True
    return field.write is Presence.ALWAYS and not isinstance(field.type, Struct) and not _is_time(field.type)


def _is_time(kind: Type) -> bool:
    return isinstance(kind, Scalar) and kind.wire in (Wire.TIME, Wire.MICRO_TIME)


def _facts(kind: Struct) -> dict[str, facts.FieldFacts]:
    """The fields of a struct by name, as the data has them; empty if it does not."""
    part, release = facts.origin_of(kind)
    return {field.name: field for field in facts.fields(f"{part}.{kind.name}", release)} if part else {}


def _property(field: Field, field_facts: dict[str, facts.FieldFacts], tables: _Tables, refers: set[str]) -> Object:
    schema = _schema(field.type, tables, refers)
    if field.name in field_facts:
        _restrict(schema, field_facts[field.name].expression, field_facts[field.name].origin)
    marked = field_facts[field.name].extra.get("default") if field.name in field_facts else None
    if marked is not None:
        schema["default"] = marked
    elif field.write is Presence.ALWAYS and isinstance(field.type, Struct):
        schema["default"] = {}
    elif field.write is Presence.ALWAYS and isinstance(field.type, Scalar) and field.type.zero is not None:
        schema["default"] = field.type.zero
    if field.list_keys:
        schema["x-kubernetes-list-map-keys"] = list(field.list_keys)
    if field.list_type and isinstance(field.type, (List, Map)):
        schema[f"x-kubernetes-{'list' if isinstance(field.type, List) else 'map'}-type"] = field.list_type
    if field.merge_key:
        schema["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.patch:
        schema["x-kubernetes-patch-strategy"] = field.patch
    return schema


def _restrict(schema: Object, expression: Json, origin: facts.ReleasePart) -> None:
    """Add the values of an enum, in place; also those of a list's items or a map's values. Upstream sorts them."""
    while not isinstance(expression, str):
        schema = schema["items" if isinstance(expression, list) else "additionalProperties"]
        (expression,) = expression if isinstance(expression, list) else expression.values()
    values = facts.enum(expression, origin)
    if values:
        schema["enum"] = sorted(values)


def _schema(kind: Type, tables: _Tables, refers: set[str]) -> Object:
    if isinstance(kind, List):
        return {"type": "array", "items": _schema(kind.element, tables, refers)}
    if isinstance(kind, Map):
        return {"type": "object", "additionalProperties": _schema(kind.element, tables, refers)}
    if isinstance(kind, Scalar):
        name = _NAMED_SCALARS.get(kind.go)
        if name is None:
            return dict(_SCALARS[kind.wire])
    else:
        name = tables.names[kind]
    refers.add(name)
    return {"$ref": REF + name}


# -- styles -----------------------------------------------------------------------------------------------------------

_ONLY_IN_V3: Final[dict[str, Object]] = {
    _INTSTR + "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    _RESOURCE + "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
}


def in_v2(name: str, release: int = NEWEST) -> Object:
    """A definition in OpenAPI v2, which has no defaults."""
    return _in_v2(definition(name, release)[0])


def _in_v2(schema: Object) -> Object:
    return _with_children({key: value for key, value in schema.items() if key != "default"}, _in_v2)


def in_v3(name: str, prefix: str, release: int = NEWEST) -> Object:
    """A definition in OpenAPI v3, where `$ref` has no siblings: they are moved around an allOf."""
    schema = definition(name, release)[0]
    if name in _ONLY_IN_V3:
        return {key: value for key, value in schema.items() if key == "description"} | _ONLY_IN_V3[name]

    def convert(node: Object) -> Object:
        if "$ref" not in node:
            return _with_children(node, convert)
        target = {"$ref": prefix + node["$ref"].removeprefix(REF)}
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return rest | {"allOf": [target]} if rest else target

    return convert(schema)


def _with_children(schema: Object, convert: Callable[[Object], Object]) -> Object:
    out = dict(schema)
    if "properties" in schema:
        out["properties"] = {name: convert(property_) for name, property_ in schema["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            out[keyword] = convert(schema[keyword])
    return out
