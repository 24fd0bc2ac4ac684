"""The internal form of a CRD, which upstream validates and prints in its messages.

Decoding v1 into the internal version (apiextensions/v1/conversion.go) moves schema, subresources, printer columns and
selectable fields to the top if they are equal in all versions, as they always are if there is only one version. So field
errors say `spec.validation.openAPIV3Schema…` more often than `spec.versions[0].schema…`, and whole values are printed
with Go's field names, including all unset fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import orjson

from noxu.api.field import Verbatim
from noxu.cpu_budget import spend
from noxu.crd.types import (
    COLUMN,
    CRD_VERSION,
    NUMBER,
    SCHEMA,
    SELECTABLE_FIELD,
    SUBRESOURCES,
    VALIDATION,
    write,
)
from noxu.go.structs import Field, List, Map, Presence, Scalar, Struct, Type, Union, json_type
from noxu.go.text import compact_json
from noxu.values import Json, Object, equal


@dataclass(frozen=True, slots=True, eq=False)
class Internal:
    """The internal spec. `versions` lack the fields that were hoisted to the top."""

    group: str
    version: str
    names: Object
    scope: str
    validation: Object | None
    subresources: Object | None
    versions: list[Object] | None
    columns: list[Object] | None
    selectable_fields: list[Object] | None
    conversion: Object | None
    preserve_unknown_fields: bool

    def schema(self, version: str) -> Object | None:
        """The CustomResourceValidation of a version. Raises LookupError if there is no such version."""
        versions = self.versions or []
        if not any("schema" in version for version in versions):
            return self.validation
        for candidate in versions:
            if candidate["name"] == version:
                return candidate.get("schema")
        raise LookupError(version)

    def schemas(self) -> Iterator[Object]:
        """All schemas, each once."""
        for holder in (self.validation, *(version.get("schema") for version in self.versions or [])):
            if holder and holder.get("openAPIV3Schema") is not None:
                yield holder["openAPIV3Schema"]


_HOISTED: Final[dict[str, Type]] = {
    "schema": VALIDATION,
    "subresources": SUBRESOURCES,
    "additionalPrinterColumns": List(COLUMN),
    "selectableFields": List(SELECTABLE_FIELD),
}


def internal(spec: Object) -> Internal:
    """The internal form of a decoded v1 spec, which is not changed."""
    versions: list[Object] | None = spec["versions"]
    top: dict[str, Json] = dict.fromkeys(_HOISTED)
    if versions:
        for name, kind in _HOISTED.items():
            first = versions[0].get(name)
            if all(same(kind, version.get(name), first) for version in versions[1:]):
                top[name] = first
                versions = [{key: item for key, item in version.items() if key != name} for version in versions]
    return Internal(
        group=spec["group"],
        version=versions[0]["name"] if versions else "",
        names=spec["names"],
        scope=spec["scope"],
        validation=top["schema"],
        subresources=top["subresources"],
        versions=versions,
        columns=top["additionalPrinterColumns"],
        selectable_fields=top["selectableFields"],
        conversion=spec.get("conversion"),
        preserve_unknown_fields=spec.get("preserveUnknownFields", False),
    )


def same(kind: Type, left: Json, right: Json) -> bool:
    """apiequality.Semantic.DeepEqual of decoded values: empty lists and maps are nil, but 1, 1.0 and true all differ."""
    if left is right:
        return True
    if left == right:  # in Python 1 == 1.0 == True
        return _identical(left, right) or _identical(_without_minus_zero(kind, left), _without_minus_zero(kind, right))
    left, right = write(kind, left), write(kind, right)
    if isinstance(kind, List):
        left, right = left or None, right or None
    return bool(left == right) and _identical(left, right)


def _without_minus_zero(kind: Type, value: Json) -> Json:
    """A copy of a decoded value in which each -0 of a float64 is 0, to which it is equal."""
    if kind is NUMBER:
        return value or 0
    if isinstance(kind, Union):
        return _without_minus_zero(kind.choices[json_type(value)].type, value) if value else value
    if isinstance(kind, Struct) and isinstance(value, dict):
        return {name: _without_minus_zero(kind.fields[name].type, item) for name, item in value.items()}
    if isinstance(kind, List) and isinstance(value, list):
        return [_without_minus_zero(kind.element, item) for item in value]
    if isinstance(kind, Map) and isinstance(value, dict):
        return {name: _without_minus_zero(kind.element, item) for name, item in value.items()}
    return value


def _identical(left: Json, right: Json) -> bool:
    try:
        return orjson.dumps(left, option=orjson.OPT_SORT_KEYS) == orjson.dumps(right, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):  # a default that is too deep for orjson (TypeError: JSONEncodeError)
        return equal(left, right)


_NAMED: Final = frozenset({"properties", "patternProperties", "definitions", "dependencies"})
_SUBSCHEMAS: Final = frozenset({
    *_NAMED, "items", "allOf", "anyOf", "oneOf", "not", "additionalProperties", "additionalItems",
})  # fmt: skip


def nodes(schema: Object) -> Iterator[Object]:
    """All schemas in a schema, at any location; a schema comes before those in it."""
    todo = [schema]
    while todo:
        node = todo.pop()
        yield node
        if _SUBSCHEMAS.isdisjoint(node):
            continue
        inner: list[Json] = []
        for keyword, value in node.items():
            if keyword in _SUBSCHEMAS:
                if isinstance(value, list):
                    inner += value
                elif isinstance(value, dict):
                    inner += value.values() if keyword in _NAMED else [value]
        todo += [item for item in reversed(inner) if isinstance(item, dict)]


_GO_NAMES: Final = {
    "id": "ID",
    "$schema": "Schema",
    "$ref": "Ref",
    "url": "URL",
    "jsonPath": "JSONPath",
    "openAPIV3Schema": "OpenAPIV3Schema",
}


def go_name(field: str) -> str:
    """The internal type's name of a v1 field: `x-kubernetes-list-type` is XListType."""
    if field in _GO_NAMES:
        return _GO_NAMES[field]
    if field.startswith("x-kubernetes-"):
        return "X" + "".join(word.capitalize() for word in field.removeprefix("x-kubernetes-").split("-"))
    return field[0].upper() + field[1:]


def go_order(kind: Struct) -> list[Field]:
    """The fields in the order of the internal type, which differs from v1's in one field."""
    fields = list(kind.fields.values())
    if kind is SCHEMA:
        nullable = kind.fields["nullable"]
        fields.remove(nullable)
        fields.insert(fields.index(kind.fields["type"]) + 1, nullable)
    return fields


def echo(kind: Type, value: Json) -> Verbatim:
    """A decoded value in a message: Go's JSON of the internal type."""
    return Verbatim(_echo(kind, value))


def echo_versions(versions: list[Object] | None) -> Verbatim:
    return echo(List(CRD_VERSION), versions)


def _echo(kind: Type, value: Json) -> str:
    if isinstance(kind, Scalar) or (value is None and not isinstance(kind, Union)):
        return compact_json(value)
    if isinstance(kind, List):
        return f"[{','.join(_echo(kind.element, item) for item in value)}]"
    if isinstance(kind, Map):
        return _object((name, _echo(kind.element, value[name])) for name in sorted(value))
    if isinstance(kind, Union):
        return _object(_members(kind, value))
    spend(len(kind.fields))
    return _object((go_name(field.name), _echo_field(field, value)) for field in go_order(kind))


def _echo_field(field: Field, struct: Object) -> str:
    value = struct.get(field.name)
    if value is not None:
        return _echo(field.type, value)
    if isinstance(field.type, Scalar) and field.write is not Presence.POINTER:
        return compact_json(field.type.zero)
    return "null"


def _members(kind: Union, value: Json) -> Iterator[tuple[str, str]]:
    taken = None if value is None else kind.choices.get(json_type(value))
    for choice in sorted(kind.choices.values(), key=lambda choice: choice.number):
        if choice.name == "Allows":  # true also with a schema
            yield choice.name, "false" if value is False else "true"
        else:
            yield choice.name, _echo(choice.type, value) if choice is taken else "null"


def _object(members: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{compact_json(name)}:{text}" for name, text in members) + "}"
