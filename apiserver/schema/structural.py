"""Structural schemas (the article "Future of CRDs: Structural Schemas"; upstream's apiserver/schema).

The shape of the types states the theory: `Structural` is the spine — what an object looks like, complete enough to
prune, default and own fields by — and everything that only says which values are allowed stands apart, in its
`ValueValidation`. Dropping every `ValueValidation` leaves the skeleton.

`parse` takes an openAPIV3Schema as decoded JSON and never judges it: whether a schema is structural is
`lint`'s question. Inside anyOf/allOf/oneOf/not only value validations may stand; what else was written there is kept
in `NestedValueValidation.forbidden`, so that lint can tell it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from apiserver.api.types import Json, Object


class _Missing:
    """No default given. (`default: null` means the same upstream.)"""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


class Rule(NamedTuple):
    """One of x-kubernetes-validations."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ValueValidation:
    """Which values are allowed. Limits are float64 as upstream's, lengths and counts int64."""

    format: str = ""
    maximum: float | None = None
    exclusive_maximum: bool = False
    minimum: float | None = None
    exclusive_minimum: bool = False
    max_length: int | None = None
    min_length: int | None = None
    pattern: str = ""
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool = False
    multiple_of: float | None = None
    enum: tuple[Json, ...] = ()
    max_properties: int | None = None
    min_properties: int | None = None
    required: tuple[str, ...] = ()
    all_of: tuple[NestedValueValidation, ...] = ()
    one_of: tuple[NestedValueValidation, ...] = ()
    any_of: tuple[NestedValueValidation, ...] = ()
    not_: NestedValueValidation | None = None


NO_VALIDATION: Final = ValueValidation()


@dataclass(frozen=True, slots=True, eq=False)
class NestedValueValidation:
    """A branch of anyOf/allOf/oneOf/not, or a node below one.

    `forbidden` maps the JSON names of what does not belong here (type, nullable, x-kubernetes-… …) to what was given;
    the types of `anyOf: [{type: integer}, {type: string}]` under x-kubernetes-int-or-string are the one exception.
    """

    validation: ValueValidation = NO_VALIDATION
    rules: tuple[Rule, ...] = ()
    items: NestedValueValidation | None = None
    properties: dict[str, NestedValueValidation] = field(default_factory=dict)
    additional_properties: NestedValueValidation | None = None
    forbidden: Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Structural:
    """One node of the spine, with the value validations that hold at it."""

    type: str = ""
    nullable: bool = False
    title: str = ""
    description: str = ""
    default: Json = MISSING
    external_docs: Object | None = None
    example: Json = MISSING

    items: Structural | None = None
    properties: dict[str, Structural] = field(default_factory=dict)
    additional_properties: Structural | bool | None = None

    preserve_unknown_fields: bool = False
    embedded_resource: bool = False
    int_or_string: bool = False
    list_type: str | None = None
    list_map_keys: tuple[str, ...] = ()
    map_type: str | None = None

    rules: tuple[Rule, ...] = ()
    validation: ValueValidation = NO_VALIDATION

    @property
    def values(self) -> Structural | None:
        """The schema of the values under additionalProperties: None where there is none, or where it is a boolean."""
        return self.additional_properties if isinstance(self.additional_properties, Structural) else None


Node: TypeAlias = Structural | NestedValueValidation

# Keywords that upstream has a Go field for and no schema may use: with one of them there is no structural form at all.
UNSUPPORTED: Final = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")


class NoStructuralForm(ValueError):
    """The schema uses a keyword that structural schemas have no place for; the message is upstream's."""


def parse(schema: Object) -> Structural:
    """An openAPIV3Schema (a JSONSchemaProps as JSON) as a structural schema.

    Raises NoStructuralForm for the UNSUPPORTED keywords, for lists of item schemas and for
    `x-kubernetes-preserve-unknown-fields: false`.
    """
    _refuse_unsupported(schema)
    additional = schema.get("additionalProperties")
    return Structural(
        type=schema.get("type", ""),
        nullable=schema.get("nullable", False),
        title=schema.get("title", ""),
        description=schema.get("description", ""),
        default=_present(schema.get("default")),
        external_docs=schema.get("externalDocs"),
        example=_present(schema.get("example")),
        items=parse(schema["items"]) if isinstance(schema.get("items"), dict) else None,
        properties={name: parse(one) for name, one in (schema.get("properties") or {}).items()},
        additional_properties=parse(additional) if isinstance(additional, dict) else additional,
        preserve_unknown_fields=schema.get("x-kubernetes-preserve-unknown-fields", False),
        embedded_resource=schema.get("x-kubernetes-embedded-resource", False),
        int_or_string=schema.get("x-kubernetes-int-or-string", False),
        list_type=schema.get("x-kubernetes-list-type"),
        list_map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        map_type=schema.get("x-kubernetes-map-type"),
        rules=_rules(schema),
        validation=_value_validation(schema),
    )


def _present(value: Json) -> Json:
    return MISSING if value is None else value


def _refuse_unsupported(schema: Object) -> None:
    for keyword in UNSUPPORTED:
        if schema.get(keyword) or (keyword == "additionalItems" and schema.get(keyword) is not None):
            raise NoStructuralForm(
                f"OpenAPIV3Schema '{keyword.lstrip('$') if keyword == '$schema' else keyword}' is not supported"
            )
    if isinstance(schema.get("items"), list) and schema["items"]:
        raise NoStructuralForm("OpenAPIV3Schema 'items' must be a schema, but is an array")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        raise NoStructuralForm("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")


_VALIDATION_KEYWORDS: Final = frozenset({
    "format", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern",
    "maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties", "minProperties", "required",
    "allOf", "oneOf", "anyOf", "not",
})  # fmt: skip


def _value_validation(schema: Object) -> ValueValidation:
    if _VALIDATION_KEYWORDS.isdisjoint(schema):
        return NO_VALIDATION
    return ValueValidation(
        format=schema.get("format", ""),
        maximum=_float(schema.get("maximum")),
        exclusive_maximum=schema.get("exclusiveMaximum", False),
        minimum=_float(schema.get("minimum")),
        exclusive_minimum=schema.get("exclusiveMinimum", False),
        max_length=schema.get("maxLength"),
        min_length=schema.get("minLength"),
        pattern=schema.get("pattern", ""),
        max_items=schema.get("maxItems"),
        min_items=schema.get("minItems"),
        unique_items=schema.get("uniqueItems", False),
        multiple_of=_float(schema.get("multipleOf")),
        enum=tuple(schema.get("enum") or ()),
        max_properties=schema.get("maxProperties"),
        min_properties=schema.get("minProperties"),
        required=tuple(schema.get("required") or ()),
        all_of=tuple(map(_nested, schema.get("allOf") or ())),
        one_of=tuple(map(_nested, schema.get("oneOf") or ())),
        any_of=tuple(map(_nested, schema.get("anyOf") or ())),
        not_=_nested(schema["not"]) if schema.get("not") is not None else None,
    )


def _float(number: Json) -> float | None:
    return None if number is None else float(number)


_FORBIDDEN_IN_NESTED: Final = (
    "type", "nullable", "title", "description", "default", "externalDocs", "example",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
)  # fmt: skip

_FORBIDDEN_THOUGH_ZERO: Final = frozenset({"default", "example", "x-kubernetes-list-type", "x-kubernetes-map-type"})


def _nested(schema: Object) -> NestedValueValidation:
    _refuse_unsupported(schema)
    additional = schema.get("additionalProperties")
    if additional is True:
        additional = {}
    return NestedValueValidation(
        validation=_value_validation(schema),
        rules=_rules(schema),
        items=_nested(schema["items"]) if isinstance(schema.get("items"), dict) else None,
        properties={name: _nested(one) for name, one in (schema.get("properties") or {}).items()},
        additional_properties=_nested(additional) if isinstance(additional, dict) else None,
        forbidden={
            name: given
            for name in _FORBIDDEN_IN_NESTED
            if (given := schema.get(name)) or (given is not None and name in _FORBIDDEN_THOUGH_ZERO)
        },
    )


def _rules(schema: Object) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            one.get("rule", ""),
            one.get("message", ""),
            one.get("messageExpression", ""),
            one.get("reason") or "",
            one.get("fieldPath", ""),
            one.get("optionalOldSelf"),
        )
        for one in schema.get("x-kubernetes-validations") or ()
    )
