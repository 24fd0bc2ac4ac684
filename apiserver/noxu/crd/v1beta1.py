"""CustomResourceDefinition v1beta1, which servers dropped in 1.22 but still store, converted to and from v1.

`upgrade`: fields at the top for all versions (validation, subresources, additionalPrinterColumns, selectableFields) move
into each version, the deprecated `version` becomes one, and defaults are v1beta1's: Namespaced, unknown fields preserved.
`downgrade`: fields that are equal in all versions move to the top, and the first version becomes `version`
(apiextensions/v1beta1/defaults.go and the conversions of both versions).

    v1        versions: [{name: v1, served, storage, schema: S}, {name: v2, served, schema: S, subresources: {}}]
    v1beta1   version: v1, validation: S,
              versions: [{name: v1, served, storage}, {name: v2, served, subresources: {}}], preserveUnknownFields: false
"""

from __future__ import annotations

from typing import Final

from noxu.crd import types
from noxu.crd.internal import internal
from noxu.crd.types import default
from noxu.go.structs import INT32, STRING, DecodedStruct, Field, List, Presence, Struct, arrange, named
from noxu.go.structs import decode as decode_struct
from noxu.values import Json, Object

API_VERSION: Final = f"{types.GROUP}/v1beta1"

COLUMN: Final = Struct("CustomResourceColumnDefinition", package="v1beta1").define(
    Field("name", STRING, 1, Presence.ALWAYS),
    Field("type", STRING, 2, Presence.ALWAYS),
    Field("format", STRING, 3),
    Field("description", STRING, 4),
    Field("priority", INT32, 5),
    Field("JSONPath", STRING, 6, Presence.ALWAYS),
)
_COLUMNS: Final = Field("additionalPrinterColumns", List(COLUMN), 8, Presence.POINTER)
CRD_VERSION: Final = Struct("CustomResourceDefinitionVersion", package="v1beta1").define(
    *({**types.CRD_VERSION.fields, "additionalPrinterColumns": _COLUMNS._replace(number=6)}.values())
)
CONVERSION: Final = Struct("CustomResourceConversion", package="v1beta1").define(
    Field("strategy", named("v1beta1.ConversionStrategyType"), 1, Presence.ALWAYS),
    Field("webhookClientConfig", types.CLIENT_CONFIG, 2, Presence.POINTER),
    Field("conversionReviewVersions", List(STRING), 3, Presence.POINTER),
)
SPEC: Final = Struct("CustomResourceDefinitionSpec", package="v1beta1").define(
    Field("group", STRING, 1, Presence.ALWAYS),
    Field("version", STRING, 2),
    Field("names", types.NAMES, 3, Presence.ALWAYS),
    Field("scope", named("v1beta1.ResourceScope"), 4, Presence.ALWAYS),
    Field("validation", types.VALIDATION, 5, Presence.POINTER),
    Field("subresources", types.SUBRESOURCES, 6, Presence.POINTER),
    Field("versions", List(CRD_VERSION), 7, Presence.POINTER),
    _COLUMNS,
    Field("selectableFields", List(types.SELECTABLE_FIELD), 11, Presence.POINTER),
    Field("conversion", CONVERSION, 9, Presence.POINTER),
    Field("preserveUnknownFields", types.SPEC.fields["preserveUnknownFields"].type, 10, Presence.POINTER),
)
CRD: Final = Struct(types.KIND, package="v1beta1").define(
    *({**types.CRD.fields, "spec": Field("spec", SPEC, 2, Presence.ALWAYS)}.values())
)

_FOR_ALL: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


def is_v1beta1(crd: Json) -> bool:
    return isinstance(crd, dict) and crd.get("apiVersion") == API_VERSION


def decode(obj: Json) -> DecodedStruct:
    """Decode a v1beta1 CRD as `types.decode` does for v1."""
    return decode_struct(CRD, obj)


def upgrade(crd: Object) -> Object:
    """A decoded v1beta1 CRD as v1, defaulted. Schemas and preserveUnknownFields are unchanged."""
    spec = crd["spec"]
    versions = spec.get("versions") or []
    if not versions and spec.get("version"):
        versions = [{"name": spec["version"], "served": True, "storage": True}]
    preserve = spec.get("preserveUnknownFields")
    upgraded = {
        "group": spec["group"],
        "names": spec["names"],
        "scope": spec["scope"] or "Namespaced",
        "versions": [_version(version, spec) for version in versions],
        "conversion": _conversion(spec.get("conversion")),
        "preserveUnknownFields": preserve is None or preserve,
    }
    return default({**crd, "apiVersion": types.API_VERSION, "spec": arrange(types.SPEC, upgraded)})


def _version(version: Object, spec: Object) -> Object:
    upgraded = dict(version)
    for name, top in _FOR_ALL.items():
        if spec.get(top) is not None:
            upgraded[name] = spec[top]
    if columns := upgraded.get("additionalPrinterColumns"):
        upgraded["additionalPrinterColumns"] = [
            arrange(types.COLUMN, {**column, "jsonPath": column["JSONPath"]}) for column in columns
        ]
    return arrange(types.CRD_VERSION, upgraded)


def _conversion(conversion: Object | None) -> Object | None:
    if conversion is None:
        return None
    config, reviews = conversion.get("webhookClientConfig"), conversion.get("conversionReviewVersions")
    if conversion["strategy"] == "Webhook" and not reviews:
        reviews = ["v1beta1"]
    webhook = None
    if config is not None or reviews is not None:
        webhook = arrange(types.WEBHOOK, {"clientConfig": config, "conversionReviewVersions": reviews})
    return arrange(types.CONVERSION, {"strategy": conversion["strategy"], "webhook": webhook})


def downgrade(crd: Object) -> Object:
    """A decoded v1 CRD as v1beta1: the inverse of `upgrade` for valid CRDs, apart from empty lists and maps."""
    spec = internal(crd["spec"])
    downgraded = {
        "group": spec.group,
        "version": spec.version,
        "names": spec.names,
        "scope": spec.scope,
        "validation": spec.validation,
        "subresources": spec.subresources,
        "versions": [
            arrange(
                CRD_VERSION, {**version, "additionalPrinterColumns": _columns(version.get("additionalPrinterColumns"))}
            )
            for version in spec.versions or []
        ],
        "additionalPrinterColumns": _columns(spec.columns),
        "selectableFields": spec.selectable_fields,
        "conversion": _flat(spec.conversion),
        "preserveUnknownFields": spec.preserve_unknown_fields,
    }
    return {**crd, "apiVersion": API_VERSION, "spec": arrange(SPEC, downgraded)}


def _columns(columns: list[Object] | None) -> list[Object] | None:
    return columns and [arrange(COLUMN, {**column, "JSONPath": column["jsonPath"]}) for column in columns]


def _flat(conversion: Object | None) -> Object | None:
    """A v1 conversion without the struct `webhook`."""
    if conversion is None:
        return None
    webhook = conversion.get("webhook") or {}
    flat = {"strategy": conversion["strategy"], "webhookClientConfig": webhook.get("clientConfig")}
    return arrange(CONVERSION, flat | {"conversionReviewVersions": webhook.get("conversionReviewVersions")})


def written(crd: Object) -> Object:
    """A decoded v1beta1 CRD as Go writes it: without empty lists and maps that have omitempty."""
    result: Object = types.write(CRD, crd)
    return result
