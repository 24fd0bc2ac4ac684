"""Structural schemas (the article "Future of CRDs: Structural Schemas"; upstream's apiserver/schema).

The types reflect the theory. `Structural` is the spine: the structure of objects, which is all that pruning, defaulting
and field ownership need. Keywords that only restrict values are separate, in its `ValueValidation`; without them a schema
is a skeleton. The junctors anyOf, allOf, oneOf and not belong to the validations:

    {type: object, required: [a],               Structural(type="object",
     properties: {a: {type: string}},               properties={"a": Structural(type="string")},
     anyOf: [{properties: {a: {minLength: 2}}}]}    validation=ValueValidation(required=("a",), any_of=(…,)))

`parse` takes an openAPIV3Schema as decoded JSON, and does not check whether it is structural; `lint` does. A junctor may
contain value validations only; anything else in it is kept in `NestedValueValidation.forbidden` for lint to report.

Equal schemas share one node while any of them is in use: nine of ten nodes of real CRDs are repeated, because many of
them contain pod templates, references to secrets and conditions. Results of functions of a node (`of_schema`) are
computed once, too.

Digests of their JSON identify equal parts; large parts have none. If each part were encoded by itself, a byte would be
encoded once for each part around it. So of the children of a large part, all but the seemingly heaviest are encoded,
and the bytes that remain show that this one is large:

    spec, 90 KB     replicas 1 KB, selector 2 KB    encoded
                    template                        87 KB remain: large, and not encoded; its parts are next
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import orjson

from noxu.values import Json, Object

MAX_BYTES: Final = 16 * 1024
"""The size of a schema that has a digest. Larger ones are seldom repeated, and their parts are found."""


class Digests:
    """Finds the digests of the parts of one schema: on the spine of structural schemas, which junctors are not part of."""

    def __init__(self) -> None:
        self._known: dict[int, bytes | None] = {}  # by identity, of the parts directly below large ones

    def of(self, schema: Object) -> bytes | None:
        """The digest of a part, None if it has none."""
        if id(schema) in self._known:
            return self._known[id(schema)]
        encoded = _encoded(schema)
        if encoded is None or len(encoded) <= MAX_BYTES:
            return encoded and _digest(encoded)
        self._divide(schema, len(encoded))
        return None

    def _divide(self, schema: Object, size: int) -> None:
        """Find the digests of the parts of a large schema, `size` bytes of which are not encoded yet."""
        large = [(schema, size)]
        while large:
            part, size = large.pop()
            below = _below(part)
            heaviest = max(below, key=_fields_below, default=None)
            for inner in below:
                if inner is not heaviest:
                    size -= self._add(inner, large)
            if heaviest is None:
                continue
            if size > 2 * MAX_BYTES:  # some of which are the part's own keywords
                self._known[id(heaviest)] = None
                large.append((heaviest, size))
            else:
                self._add(heaviest, large)

    def _add(self, schema: Object, large: list[tuple[Object, int]]) -> int:
        """Add the digest of a part, or add it to the large ones; its size, 0 if that is not known."""
        encoded = _encoded(schema)
        if encoded is None:
            return 0
        size, digest = len(encoded), None
        if size <= MAX_BYTES:
            digest = _digest(encoded)
        else:
            large.append((schema, size))
        self._known[id(schema)] = digest
        return size


def _encoded(schema: Object) -> bytes | None:
    """None for a schema that is too deep, or has a number that orjson does not write."""
    try:
        return orjson.dumps(schema)
    except (TypeError, ValueError):  # TypeError: JSONEncodeError
        return None


def _digest(encoded: bytes) -> bytes:
    return hashlib.blake2b(encoded, digest_size=16).digest()


def _below(schema: Object) -> list[Object]:
    """The schemas directly below one."""
    schemas = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return [inner for inner in schemas if isinstance(inner, dict)]


def _fields_below(schema: Object) -> int:
    """How many fields the objects at a schema have, or those in its lists and maps: mostly, the heaviest one has most."""
    while not schema.get("properties"):
        inner = [schema.get("items"), schema.get("additionalProperties")]
        below = next((candidate for candidate in inner if isinstance(candidate, dict)), None)
        if below is None:
            return 0
        schema = below
    return len(schema["properties"])


class _Missing:
    """Stands for a missing default. (`default: null` is the same upstream.)"""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


class ValidationRule(NamedTuple):
    """One of x-kubernetes-validations."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ValueValidation:
    """The allowed values. Limits are float64 as upstream's, lengths and counts int64."""

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

    `forbidden` has the keywords that do not belong in a junctor (type, nullable, x-kubernetes-… …) with their values.
    The one exception are the types in `anyOf: [{type: integer}, {type: string}]` under x-kubernetes-int-or-string.
    """

    validation: ValueValidation = NO_VALIDATION
    rules: tuple[ValidationRule, ...] = ()
    items: NestedValueValidation | None = None
    properties: dict[str, NestedValueValidation] = field(default_factory=dict)
    additional_properties: NestedValueValidation | None = None
    forbidden: Object = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    """The keywords with an empty list or map, which Go distinguishes from missing ones when it compares schemas."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
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

    rules: tuple[ValidationRule, ...] = ()
    validation: ValueValidation = NO_VALIDATION
    empty: tuple[str, ...] = ()
    """As in NestedValueValidation; without `properties`, because upstream drops empty ones here."""

    results: dict[object, Any] | None = field(default=None, init=False, repr=False)
    """The results of functions `of_schema`, by function."""

    @property
    def values(self) -> Structural | None:
        """The schema in additionalProperties, None if that is missing or a boolean."""
        return self.additional_properties if isinstance(self.additional_properties, Structural) else None


T = TypeVar("T")


def of_schema(function: Callable[[Structural], T]) -> Callable[[Structural], T]:
    """Cache the results of a function of a node: each lives as long as the node. Nodes are compared by identity."""

    @wraps(function)
    def cached(schema: Structural) -> T:
        results = schema.results
        if results is None:
            results = {}
            object.__setattr__(schema, "results", results)
        if function not in results:
            results[function] = function(schema)
        result: T = results[function]
        return result

    return cached


def mark(schema: Structural, fact: str) -> None:
    """Keep with a node that something is true of it."""
    if schema.results is None:
        object.__setattr__(schema, "results", {})
    assert schema.results is not None
    schema.results[fact] = True


def is_marked(schema: Structural, fact: str) -> bool:
    return schema.results is not None and fact in schema.results


# Keywords that upstream has a Go field for, but that no schema may use: such a schema has no structural form.
UNSUPPORTED: Final = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")
_UNSUPPORTED: Final = frozenset(UNSUPPORTED)

_Fields: TypeAlias = dict[str, tuple[str, Callable[[Json], Any] | None]]  # keyword → (field, conversion of the value)


class NoStructuralForm(ValueError):
    """The schema uses a keyword that structural schemas do not have; the message is upstream's."""


def parse(schema: Object) -> Structural:
    """An openAPIV3Schema (a JSONSchemaProps as JSON) as a structural schema.

    Raises NoStructuralForm for the UNSUPPORTED keywords, for lists of item schemas and for
    `x-kubernetes-preserve-unknown-fields: false`.
    """
    structural = _part(schema, Digests())
    kept = _kept.get()
    if kept is not None:
        kept.append(structural)
    return structural


_kept: Final[ContextVar[list[Structural] | None]] = ContextVar("kept", default=None)


@contextmanager
def keeping() -> Iterator[None]:
    """Inside, parsed schemas stay in memory, so that equal parts of later ones are found: half as much as their JSON takes."""
    token = _kept.set([])
    try:
        yield
    finally:
        _kept.reset(token)


def _part(schema: Object, digests: Digests) -> Structural:
    """A part of a schema, as `parse`."""
    digest = digests.of(schema)
    if digest is None:
        return _parse(schema, digests)
    part = _shared.get(digest)
    if part is None:
        part = _parse(schema, digests)
        if _is_shareable(part):
            _shared[digest] = part
    return part


_shared: Final[WeakValueDictionary[bytes, Structural]] = WeakValueDictionary()


def _parse(schema: Object, digests: Digests) -> Structural:
    _refuse_unsupported(schema)
    fields = _read(schema, _SPINE)
    for keyword, value in schema.items():
        if value is not None and keyword in _BELOW:
            name, convert = _BELOW[keyword]
            fields[name] = convert(value, digests)
    return Structural(**fields, validation=_value_validation(schema), empty=_empty(schema, _LISTS_OF_EXTENSIONS))


_LISTS_OF_EXTENSIONS: Final = ("x-kubernetes-list-map-keys", "x-kubernetes-validations")


def _empty(schema: Object, keywords: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in keywords if name in schema and schema[name] is not None and not schema[name])


def _read(schema: Object, fields: _Fields) -> dict[str, Any]:
    """The fields that a schema sets."""
    values = {}
    for keyword, value in schema.items():
        if value is not None and keyword in fields:
            name, convert = fields[keyword]
            values[name] = value if convert is None else convert(value)
    return values


def _items(value: Json, digests: Digests) -> Structural | None:
    return _part(value, digests) if isinstance(value, dict) else None  # an empty list is ignored


def _properties(value: Json, digests: Digests) -> dict[str, Structural]:
    return {name: _part(inner, digests) for name, inner in value.items()}


def _additional(value: Json, digests: Digests) -> Structural | bool:
    return _part(value, digests) if isinstance(value, dict) else bool(value)


_BELOW: Final[dict[str, tuple[str, Callable[[Json, Digests], Any]]]] = {
    "items": ("items", _items),
    "properties": ("properties", _properties),
    "additionalProperties": ("additional_properties", _additional),
}


def _rules(value: Json) -> tuple[ValidationRule, ...]:
    return tuple(
        ValidationRule(
            rule.get("rule", ""),
            rule.get("message", ""),
            rule.get("messageExpression", ""),
            rule.get("reason") or "",
            rule.get("fieldPath", ""),
            rule.get("optionalOldSelf"),
        )
        for rule in value
    )


_SPINE: Final[_Fields] = {
    "type": ("type", None),
    "nullable": ("nullable", None),
    "title": ("title", None),
    "description": ("description", None),
    "default": ("default", None),
    "externalDocs": ("external_docs", None),
    "example": ("example", None),
    "x-kubernetes-preserve-unknown-fields": ("preserve_unknown_fields", None),
    "x-kubernetes-embedded-resource": ("embedded_resource", None),
    "x-kubernetes-int-or-string": ("int_or_string", None),
    "x-kubernetes-list-type": ("list_type", None),
    "x-kubernetes-list-map-keys": ("list_map_keys", tuple),
    "x-kubernetes-map-type": ("map_type", None),
    "x-kubernetes-validations": ("rules", _rules),
}


def _refuse_unsupported(schema: Object) -> None:
    if not _UNSUPPORTED.isdisjoint(schema):
        for keyword in UNSUPPORTED:
            value = schema.get(keyword)
            if value or (keyword == "additionalItems" and value is not None):
                name = "schema" if keyword == "$schema" else keyword
                raise NoStructuralForm(f"OpenAPIV3Schema '{name}' is not supported")
    if isinstance(schema.get("items"), list) and schema["items"]:
        raise NoStructuralForm("OpenAPIV3Schema 'items' must be a schema, but is an array")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        raise NoStructuralForm("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")


def _value_validation(schema: Object) -> ValueValidation:
    """NO_VALIDATION if no keyword is set. As Go compares them, an empty `required` is set; other empty lists are not."""
    fields = _read(schema, _VALIDATIONS)
    if () in fields.values():
        fields = {name: value for name, value in fields.items() if value != () or name == "required"}
    return ValueValidation(**fields) if fields else NO_VALIDATION


def _branches(value: Json) -> tuple[NestedValueValidation, ...]:
    return tuple(map(_nested, value))


_FORBIDDEN_IN_NESTED: Final = (
    "type", "nullable", "title", "description", "default", "externalDocs", "example",
    "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
)  # fmt: skip

_FORBIDDEN_EVEN_IF_ZERO: Final = frozenset(
    {"default", "externalDocs", "example", "x-kubernetes-list-type", "x-kubernetes-map-type"}
)


def _nested(schema: Object) -> NestedValueValidation:
    _refuse_unsupported(schema)
    additional = schema.get("additionalProperties")
    if additional is True:
        additional = {}
    return NestedValueValidation(
        validation=_value_validation(schema),
        rules=_rules(schema.get("x-kubernetes-validations") or ()),
        items=_nested(schema["items"]) if isinstance(schema.get("items"), dict) else None,
        properties={name: _nested(inner) for name, inner in (schema.get("properties") or {}).items()},
        additional_properties=_nested(additional) if isinstance(additional, dict) else None,
        forbidden={
            name: value
            for name in _FORBIDDEN_IN_NESTED
            if (value := schema.get(name)) or (value is not None and name in _FORBIDDEN_EVEN_IF_ZERO)
        },
        empty=_empty(schema, ("properties", *_LISTS_OF_EXTENSIONS)),
    )


_VALIDATIONS: Final[_Fields] = {
    "format": ("format", None),
    "maximum": ("maximum", float),
    "exclusiveMaximum": ("exclusive_maximum", None),
    "minimum": ("minimum", float),
    "exclusiveMinimum": ("exclusive_minimum", None),
    "maxLength": ("max_length", None),
    "minLength": ("min_length", None),
    "pattern": ("pattern", None),
    "maxItems": ("max_items", None),
    "minItems": ("min_items", None),
    "uniqueItems": ("unique_items", None),
    "multipleOf": ("multiple_of", float),
    "enum": ("enum", tuple),
    "maxProperties": ("max_properties", None),
    "minProperties": ("min_properties", None),
    "required": ("required", tuple),
    "allOf": ("all_of", _branches),
    "oneOf": ("one_of", _branches),
    "anyOf": ("any_of", _branches),
    "not": ("not_", _nested),
}


@of_schema
def _is_shareable(schema: Structural) -> bool:
    """Whether equal schemas may be one.

    Not those with rules, whose types depend on where they are, and not those with defaults that are not scalars: validation
    drops unknown metadata fields from them, in place.
    """
    if schema.rules or isinstance(schema.default, (dict, list)) or _have_rules(_junctors(schema.validation)):
        return False
    below = (*schema.properties.values(), schema.items, schema.values)
    return all(inner is None or _is_shareable(inner) for inner in below)


def _junctors(validation: ValueValidation) -> tuple[NestedValueValidation, ...]:
    if validation is NO_VALIDATION:
        return ()
    branches = validation.all_of + validation.one_of + validation.any_of
    return branches if validation.not_ is None else (*branches, validation.not_)


def _have_rules(branches: tuple[NestedValueValidation, ...]) -> bool:
    """Whether there are rules in branches of junctors."""
    for nested in branches:
        if nested.rules or _have_rules(_junctors(nested.validation)) or _have_rules(tuple(nested.properties.values())):
            return True
        below = (nested.items, nested.additional_properties)
        if _have_rules(tuple([inner for inner in below if inner is not None])):
            return True
    return False


@of_schema
def has_rules(schema: Structural) -> bool:
    """Whether there are x-kubernetes-validations at a node or below."""
    if schema.rules:
        return True
    below = (*schema.properties.values(), schema.items, schema.values)
    return any(inner is not None and has_rules(inner) for inner in below)


@of_schema
def has_defaults(schema: Structural) -> bool:
    """Whether there are defaults at a node or below."""
    if schema.default is not MISSING:
        return True
    below = (*schema.properties.values(), schema.items, schema.values)
    return any(inner is not None and has_defaults(inner) for inner in below)
