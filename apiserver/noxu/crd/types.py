"""CustomResourceDefinition v1 as struct tables (apiextensions/v1/types.go, types_jsonschema.go, marshal.go).

`decode` gives the Go value as a dict: fields in the order of declaration, keys of maps sorted, without zero scalars, but
with empty lists and maps, because validation distinguishes nil and empty. `written` is that value as Go writes it.

Its defaults (apiextensions/v1/defaults.go) are filled in whenever a CRD is decoded, also from storage. One of its
versions is stored; the served ones are sorted by priority.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from noxu.api.meta import OBJECT_META
from noxu.expressions import expression
from noxu.go.structs import (
    BOOL,
    BYTES,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME,
    DecodedStruct,
    Field,
    List,
    MalformedField,
    Map,
    Mismatch,
    Presence,
    Scalar,
    Struct,
    Type,
    Union,
    Wire,
    arrange,
    json_type,
    named,
)
from noxu.go.structs import decode as decode_struct
from noxu.go.text import MINUS_ZERO, RawNumber, float_json
from noxu.values import MAX_INT64, MIN_INT64, Json, Object

GROUP: Final = "apiextensions.k8s.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "CustomResourceDefinition"
RESOURCE: Final = "customresourcedefinitions"

_EXACT: Final = 1e21  # encoding/json writes smaller whole floats without an exponent


def _number(value: Json) -> Json:
    """A float64. Whole numbers are int, as they are when the written JSON is read again, except -0."""
    number = FLOAT64.read(value)
    try:
        number = float(number)
    except OverflowError:
        raise Mismatch(f"number {value}") from None
    if not number.is_integer() or abs(number) >= _EXACT or (number == 0 and math.copysign(1, number) < 0):
        return number
    integer = int(float_json(number))  # Go's digits
    return integer if MIN_INT64 <= integer <= MAX_INT64 else number


def _any(value: Json) -> Json:
    """apiextensions' JSON, any value. Go writes it from decoded maps, so keys are sorted."""
    return sort_keys(value)


def sort_keys(value: Json) -> Json:
    """A copy of a JSON value with the keys of all maps sorted. Clients choose its depth: no recursion."""
    top: list[Json] = [None]
    todo: list[tuple[Json, Json, Json]] = [(value, top, 0)]  # (source, container of the copy, key there)
    while todo:
        source, container, key = todo.pop()
        if isinstance(source, dict):
            container[key] = target = dict.fromkeys(sorted(source))
            todo += [(item, target, name) for name, item in source.items()]
        elif isinstance(source, list):
            container[key] = items = [None] * len(source)
            todo += [(item, items, n) for n, item in enumerate(source)]
        else:
            container[key] = _plain(source) if isinstance(source, float) else source
    return top[0]


def _plain(number: float) -> Json:
    """The number in a value without a Go type. One that no float64 holds is an error of the conversion.

    The integer -0 is 0. -0.0 remains a float, which is not the integer 0, until the written JSON is read again.
    """
    if isinstance(number, RawNumber) and math.isinf(number):
        raise MalformedField(f"json: cannot unmarshal number {number.literal} into Go value of type float64")
    if not number:
        return 0 if isinstance(number, RawNumber) and number.literal == MINUS_ZERO else 0.0
    return float(number)


NUMBER: Final = Scalar("float64", _number, 0, Wire.DOUBLE)
ANY: Final = Scalar("v1.JSON", _any, None, Wire.JSON)

_ALWAYS, _POINTER = Presence.ALWAYS, Presence.POINTER
# A slice or map with omitempty. It is kept if empty (see the module's docstring); `written` leaves it out.
_KEEP: Final = Presence.POINTER

SCHEMA: Final = Struct("JSONSchemaProps")
SCHEMA_OR_LIST: Final = Union(
    "JSONSchemaPropsOrArray",
    {"object": Field("Schema", SCHEMA, 1), "array": Field("JSONSchemas", List(SCHEMA), 2)},
)
SCHEMA_OR_BOOL: Final = Union(
    "JSONSchemaPropsOrBool",
    {"object": Field("Schema", SCHEMA, 2), "bool": Field("Allows", BOOL, 1)},
    otherwise="boolean or JSON schema expected",
)
SCHEMA_OR_NAMES: Final = Union(
    "JSONSchemaPropsOrStringArray",
    {"object": Field("Schema", SCHEMA, 1), "array": Field("Property", List(STRING), 2)},
)
EXTERNAL_DOCS: Final = Struct("ExternalDocumentation").define(
    Field("description", STRING, 1),
    Field("url", STRING, 2),
)
RULE: Final = Struct("ValidationRule").define(
    Field("rule", STRING, 1, _ALWAYS),
    Field("message", STRING, 2),
    Field("messageExpression", STRING, 3),
    Field("reason", named("v1.FieldValueErrorReason"), 4, _POINTER),
    Field("fieldPath", STRING, 5),
    Field("optionalOldSelf", BOOL, 6, _POINTER),
)
SCHEMA.define(
    Field("id", STRING, 1),
    Field("$schema", named("v1.JSONSchemaURL"), 2),
    Field("$ref", STRING, 3, _POINTER),
    Field("description", STRING, 4),
    Field("type", STRING, 5),
    Field("format", STRING, 6),
    Field("title", STRING, 7),
    Field("default", ANY, 8, _POINTER),
    Field("maximum", NUMBER, 9, _POINTER),
    Field("exclusiveMaximum", BOOL, 10),
    Field("minimum", NUMBER, 11, _POINTER),
    Field("exclusiveMinimum", BOOL, 12),
    Field("maxLength", INT64, 13, _POINTER),
    Field("minLength", INT64, 14, _POINTER),
    Field("pattern", STRING, 15),
    Field("maxItems", INT64, 16, _POINTER),
    Field("minItems", INT64, 17, _POINTER),
    Field("uniqueItems", BOOL, 18),
    Field("multipleOf", NUMBER, 19, _POINTER),
    Field("enum", List(ANY), 20, _KEEP, list_type="atomic"),
    Field("maxProperties", INT64, 21, _POINTER),
    Field("minProperties", INT64, 22, _POINTER),
    Field("required", List(STRING), 23, _KEEP, list_type="atomic"),
    Field("items", SCHEMA_OR_LIST, 24, _POINTER),
    Field("allOf", List(SCHEMA), 25, _KEEP, list_type="atomic"),
    Field("oneOf", List(SCHEMA), 26, _KEEP, list_type="atomic"),
    Field("anyOf", List(SCHEMA), 27, _KEEP, list_type="atomic"),
    Field("not", SCHEMA, 28, _POINTER),
    Field("properties", Map(SCHEMA), 29, _KEEP),
    Field("additionalProperties", SCHEMA_OR_BOOL, 30, _POINTER),
    Field("patternProperties", Map(SCHEMA), 31, _KEEP),
    Field("dependencies", Map(SCHEMA_OR_NAMES, "v1.JSONSchemaDependencies"), 32, _KEEP),
    Field("additionalItems", SCHEMA_OR_BOOL, 33, _POINTER),
    Field("definitions", Map(SCHEMA, "v1.JSONSchemaDefinitions"), 34, _KEEP),
    Field("externalDocs", EXTERNAL_DOCS, 35, _POINTER),
    Field("example", ANY, 36, _POINTER),
    Field("nullable", BOOL, 37),
    Field("x-kubernetes-preserve-unknown-fields", BOOL, 38, _POINTER),
    Field("x-kubernetes-embedded-resource", BOOL, 39),
    Field("x-kubernetes-int-or-string", BOOL, 40),
    Field("x-kubernetes-list-map-keys", List(STRING), 41, _KEEP, list_type="atomic"),
    Field("x-kubernetes-list-type", STRING, 42, _POINTER),
    Field("x-kubernetes-map-type", STRING, 43, _POINTER),
    Field("x-kubernetes-validations", List(RULE, "v1.ValidationRules"), 44, _KEEP, "merge", "rule", "map", ("rule",)),
)

NAMES: Final = Struct("CustomResourceDefinitionNames").define(
    Field("plural", STRING, 1, _ALWAYS),
    Field("singular", STRING, 2),
    Field("shortNames", List(STRING), 3, _KEEP, list_type="atomic"),
    Field("kind", STRING, 4, _ALWAYS),
    Field("listKind", STRING, 5),
    Field("categories", List(STRING), 6, _KEEP, list_type="atomic"),
)
COLUMN: Final = Struct("CustomResourceColumnDefinition").define(
    Field("name", STRING, 1, _ALWAYS),
    Field("type", STRING, 2, _ALWAYS),
    Field("format", STRING, 3),
    Field("description", STRING, 4),
    Field("priority", INT32, 5),
    Field("jsonPath", STRING, 6, _ALWAYS),
)
SELECTABLE_FIELD: Final = Struct("SelectableField").define(Field("jsonPath", STRING, 1, _ALWAYS))
SCALE: Final = Struct("CustomResourceSubresourceScale").define(
    Field("specReplicasPath", STRING, 1, _ALWAYS),
    Field("statusReplicasPath", STRING, 2, _ALWAYS),
    Field("labelSelectorPath", STRING, 3, _POINTER),
)
SUBRESOURCES: Final = Struct("CustomResourceSubresources").define(
    Field("status", Struct("CustomResourceSubresourceStatus"), 1, _POINTER),
    Field("scale", SCALE, 2, _POINTER),
)
VALIDATION: Final = Struct("CustomResourceValidation").define(Field("openAPIV3Schema", SCHEMA, 1, _POINTER))
CRD_VERSION: Final = Struct("CustomResourceDefinitionVersion").define(
    Field("name", STRING, 1, _ALWAYS),
    Field("served", BOOL, 2, _ALWAYS),
    Field("storage", BOOL, 3, _ALWAYS),
    Field("deprecated", BOOL, 7),
    Field("deprecationWarning", STRING, 8, _POINTER),
    Field("schema", VALIDATION, 4, _POINTER),
    Field("subresources", SUBRESOURCES, 5, _POINTER),
    Field("additionalPrinterColumns", List(COLUMN), 6, _KEEP, list_type="atomic"),
    Field("selectableFields", List(SELECTABLE_FIELD), 9, _KEEP, list_type="atomic"),
)
SERVICE: Final = Struct("ServiceReference").define(
    Field("namespace", STRING, 1, _ALWAYS),
    Field("name", STRING, 2, _ALWAYS),
    Field("path", STRING, 3, _POINTER),
    Field("port", INT32, 4, _POINTER),
)
CLIENT_CONFIG: Final = Struct("WebhookClientConfig").define(
    Field("url", STRING, 3, _POINTER),
    Field("service", SERVICE, 1, _POINTER),
    Field("caBundle", BYTES, 2),
)
WEBHOOK: Final = Struct("WebhookConversion").define(
    Field("clientConfig", CLIENT_CONFIG, 2, _POINTER),
    Field("conversionReviewVersions", List(STRING), 3, _ALWAYS, list_type="atomic"),
)
CONVERSION: Final = Struct("CustomResourceConversion").define(
    Field("strategy", named("v1.ConversionStrategyType"), 1, _ALWAYS),
    Field("webhook", WEBHOOK, 2, _POINTER),
)
SPEC: Final = Struct("CustomResourceDefinitionSpec").define(
    Field("group", STRING, 1, _ALWAYS),
    Field("names", NAMES, 3, _ALWAYS),
    Field("scope", named("v1.ResourceScope"), 4, _ALWAYS),
    Field("versions", List(CRD_VERSION), 7, _ALWAYS, list_type="atomic"),
    Field("conversion", CONVERSION, 9, _POINTER),
    Field("preserveUnknownFields", BOOL, 10),
)
CONDITION: Final = Struct("CustomResourceDefinitionCondition").define(
    Field("type", named("v1.CustomResourceDefinitionConditionType"), 1, _ALWAYS),
    Field("status", named("v1.ConditionStatus"), 2, _ALWAYS),
    Field("lastTransitionTime", TIME, 3, _ALWAYS),
    Field("reason", STRING, 4),
    Field("message", STRING, 5),
    Field("observedGeneration", INT64, 6),
)
STATUS: Final = Struct("CustomResourceDefinitionStatus").define(
    Field("conditions", List(CONDITION), 1, _ALWAYS, list_type="map", list_keys=("type",)),
    Field("acceptedNames", NAMES, 2, _ALWAYS),
    Field("storedVersions", List(STRING), 3, _ALWAYS, list_type="atomic"),
    Field("observedGeneration", INT64, 4),
)
CRD: Final = Struct(KIND).define(
    Field("kind", STRING, inline="TypeMeta"),  # protobuf has them in the envelope
    Field("apiVersion", STRING, inline="TypeMeta"),
    Field("metadata", OBJECT_META, 1, _ALWAYS),
    Field("spec", SPEC, 2, _ALWAYS),
    Field("status", STATUS, 3, _ALWAYS),
)


def decode(obj: Json) -> DecodedStruct:
    """Decode a CRD; the error is encoding/json's, without a prefix."""
    return decode_struct(CRD, obj)


def written(crd: Object) -> Object:
    """A decoded CRD as Go writes it: without empty lists and maps that have omitempty."""
    result: Object = write(CRD, crd)
    return result


def written_without_versions(crd: Object) -> Object:
    """`written`, but `spec.versions`, nearly all of a CRD, is as it was decoded. A field manager owns it as a whole."""
    spec = crd.get("spec")
    if not spec or not spec.get("versions"):
        return written(crd)
    result = written({**crd, "spec": {**spec, "versions": []}})
    result["spec"]["versions"] = spec["versions"]
    return result


def write(kind: Type, value: Json) -> Json:
    """A part of a CRD as Go writes it."""
    return _writer(kind)(value)


_Writer: TypeAlias = Callable[[Json], Json]


def _unchanged(value: Json) -> Json:
    return value


@cache
def _writer(kind: Type) -> _Writer:
    """The function that writes values of a type, made once: a definition has thousands of them."""
    if isinstance(kind, Scalar):
        return _unchanged
    if isinstance(kind, Union):
        return _writer_of_union(kind)
    if isinstance(kind, Struct):
        return _writer_of_struct(kind)
    write_item = _writer(kind.element)
    if isinstance(kind, List) and write_item is _unchanged:
        return lambda value: None if value is None else list(value)
    if isinstance(kind, List):
        return lambda value: None if value is None else [write_item(item) for item in value]
    return lambda value: None if value is None else {name: write_item(item) for name, item in value.items()}


def _writer_of_union(kind: Union) -> _Writer:
    def write_union(value: Json) -> Json:
        return None if value is None or value == [] else _writer(kind.choices[json_type(value)].type)(value)

    return write_union


def _writer_of_struct(kind: Struct) -> _Writer:
    """The fields of a struct are looked up with its first value, because types are recursive."""
    fields: dict[str, tuple[int, _Writer, Callable[[Json], bool]]] = {}

    def write_struct(value: Json) -> Json:
        if value is None:
            return None
        if not fields:
            for place, (name, field) in enumerate(kind.fields.items()):
                fields[name] = place, _writer(field.type), _omission(field)
        written = {}
        before, in_order = -1, True
        for name, item in value.items():
            entry = fields.get(name)
            if entry is None:
                continue
            place, write_item, is_omitted = entry
            in_order, before = in_order and before < place, place
            if item or not is_omitted(item):
                written[name] = item if write_item is _unchanged else write_item(item)
        return written if in_order else {name: written[name] for name in fields if name in written}

    return write_struct


def _omission(field: Field) -> Callable[[Json], bool]:
    """Whether an empty value of a field is left out. That of a union is written as null, which reading drops."""
    if field.write is not _ALWAYS and isinstance(field.type, (List, Map)):
        return lambda _: True
    if field.write is not _ALWAYS and isinstance(field.type, Union):
        return lambda empty: bool(empty == [])
    return lambda _: False


_KUBE_AWARE: Final = expression(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?\Z")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


def version_priority(name: str) -> tuple[int, int, int, int, str]:
    """A sort key: v10, v2, v1, v1beta2, v1alpha1, and then all other names from A to Z."""
    match = _KUBE_AWARE.match(name)
    if match:
        major, minor = int(match[1]), int(match[3] or 0)
        if max(major, minor) <= MAX_INT64:
            return 0, _STABILITY[match[2]], -major, -minor, ""
    return 1, 0, 0, 0, name


def storage_version(crd: Object) -> str | None:
    """The storage version; None if there is none, which validation does not allow."""
    return next((version["name"] for version in crd["spec"]["versions"] or [] if version["storage"]), None)


def served_versions(crd: Object) -> list[str]:
    """The names of the served versions, the preferred one first."""
    names = (version["name"] for version in crd["spec"]["versions"] or [] if version["served"])
    return sorted(names, key=version_priority)


def version_of(crd: Object, name: str) -> Object | None:
    return next((version for version in crd["spec"]["versions"] or [] if version["name"] == name), None)


def deprecation_warning(crd: Object, name: str) -> str:
    """The warning in responses to requests at a version, "" if the version is not deprecated."""
    version = version_of(crd, name)
    if version is None or not version.get("deprecated"):
        return ""
    custom: str | None = version.get("deprecationWarning")
    if custom is not None:
        return custom
    group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
    warning = f"{group}/{name} {kind} is deprecated"
    newer = [
        candidate["name"]
        for candidate in crd["spec"]["versions"]
        if candidate["served"]
        and not candidate.get("deprecated")
        and version_priority(candidate["name"]) < version_priority(name)
    ]
    return f"{warning}; use {group}/{min(newer, key=version_priority)} {kind}" if newer else warning


SERVICE_PORT: Final = 443


def default(crd: Object) -> Object:
    """A decoded CRD with its defaults; the given one is not changed."""
    spec = crd["spec"]
    filled = {**spec, "names": _default_names(spec["names"])}
    if spec.get("conversion") is None:
        filled["conversion"] = {"strategy": "None"}
    elif _is_blank(spec["conversion"].get("webhook")):
        filled["conversion"] = {"strategy": spec["conversion"]["strategy"]}
    elif service := _service_without_port(spec["conversion"]):
        webhook = spec["conversion"]["webhook"]
        config = {**webhook["clientConfig"], "service": arrange(SERVICE, {**service, "port": SERVICE_PORT})}
        filled["conversion"] = {**spec["conversion"], "webhook": {**webhook, "clientConfig": config}}
    crd = {**crd, "spec": arrange(SPEC, filled)}
    if not crd["status"]["storedVersions"] and (stored := storage_version(crd)) is not None:
        crd["status"] = {**crd["status"], "storedVersions": [stored]}
    return crd


def _default_names(names: Object) -> Object:
    kind = names["kind"]
    singular = names.get("singular") or kind.lower()
    list_kind = names.get("listKind") or (f"{kind}List" if kind else "")
    return arrange(NAMES, {**names, "singular": singular, "listKind": list_kind})


def _is_blank(webhook: Object | None) -> bool:
    """Whether a webhook has nothing in its fields; then there is none, because the form that is stored has only these."""
    return webhook is not None and webhook.get("clientConfig") is None and not webhook["conversionReviewVersions"]


def _service_without_port(conversion: Object) -> Object | None:
    config = (conversion.get("webhook") or {}).get("clientConfig") or {}
    service: Object | None = config.get("service")
    return service if service is not None and service.get("port") is None else None
