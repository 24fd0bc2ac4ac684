"""JSON schemas of kinds, as other validators use them, as definitions: a CRD with the schema in its structural form.

Such schemas were made of CRDs or of OpenAPI, and changed on the way: unknown fields are forbidden (`additionalProperties: false`),
null is a type, int-or-string is a `oneOf`. Here that becomes what a CRD has for it. What a CRD cannot say is left out, so that the
server refuses less than the schema, never more; `$ref` leaves a part open. Rules (x-kubernetes-validations) stay.

A schema does not say whether its kind is namespaced, nor what its plural is: objects are checked alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from noxu.crd import types
from noxu.values import Json, Object

_IDENTITY: Final = ("apiVersion", "kind", "metadata")
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_LEFT_OUT: Final = frozenset({"id", "$schema", "$ref", "definitions", "patternProperties", "dependencies", "additionalItems", "x-kubernetes-group-version-kind"})  # fmt: skip
_KNOWN: Final = frozenset(types.SCHEMA.fields) - _LEFT_OUT
_OF_VALUES: Final = frozenset(
    {
        "format", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems",
        "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties", "minProperties", "required", *_JUNCTORS, "not",
        "properties", "items", "const",
    }
)  # fmt: skip
"""The keywords that a branch of a junctor may have."""


def definition(group: str, kind: str, schemas: Mapping[str, Object]) -> Object:
    """A CustomResourceDefinition (v1) with a version for each of these JSON schemas."""
    plural = f"{kind.lower()}s"
    versions = [
        {"name": version, "served": True, "storage": n == 0, "schema": {"openAPIV3Schema": structural(schema)}}
        for n, (version, schema) in enumerate(schemas.items())
    ]
    return {
        "apiVersion": types.API_VERSION,
        "kind": types.KIND,
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a schema only"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": versions,
        },
    }


def structural(schema: Object) -> Object:
    """The schema of an object as an openAPIV3Schema."""
    made = _node(schema)
    fields, names = made.get("properties"), made.get("required")
    of_object = (
        {name: inner for name, inner in fields.items() if name not in _IDENTITY} if isinstance(fields, dict) else {}
    )
    identity = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    required = (
        [name for name in names if isinstance(name, str) and name in of_object] if isinstance(names, list) else []
    )
    kept = {name: value for name, value in made.items() if name not in ("required", "nullable", "additionalProperties")}
    return {
        **kept,
        "type": "object",
        "properties": {**identity, **of_object},
        **({"required": required} if required else {}),
    }


def _node(schema: Json) -> Object:
    """A node of the spine: it has a type, or is open."""
    if not isinstance(schema, dict) or "$ref" in schema:
        return {_OPEN: True}
    made = _values({name: value for name, value in schema.items() if name in _KNOWN or name == "const"})
    _set_type(made)
    _set_below(made, _node)
    additional = made.pop("additionalProperties", None)
    if additional not in (None, False) and not made.get("properties"):
        made["additionalProperties"] = True if additional is True else _node(additional)
    if made.get("type") == "array" and "items" not in made:
        made["items"] = {_OPEN: True}
    return made


def _branch(schema: Json) -> Object:
    """A branch of a junctor, which only restricts values."""
    if not isinstance(schema, dict):
        return {}
    made = _values({name: value for name, value in schema.items() if name in _OF_VALUES})
    _set_below(made, _branch)
    return made


def _set_below(made: Object, of_values: Callable[[Json], Object]) -> None:
    """Convert the schemas below a node in place: those of fields and items with `of_values`, junctors as branches.

    What is no schema stays, for the server to refuse.
    """
    if isinstance(made.get("properties"), dict):
        made["properties"] = {name: of_values(inner) for name, inner in made["properties"].items()}
    if "items" in made:
        made["items"] = of_values(made["items"])
    for junctor in _JUNCTORS:
        if isinstance(made.get(junctor), list):
            made[junctor] = [_branch(inner) for inner in made[junctor]]
    if "not" in made:
        made["not"] = _branch(made["not"])


def _values(made: Object) -> Object:
    """Keywords about values in the form of OpenAPI 3.0: a new schema."""
    made = dict(made)
    if "const" in made:
        made["enum"] = [made.pop("const")]
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(made.get(exclusive), (int, float)) and not isinstance(made[exclusive], bool):
            made[limit], made[exclusive] = made[exclusive], True  # since draft 6 it is a number
    return made


def _set_type(made: Object) -> None:
    """Give a node one type, in place."""
    types_ = made.get("type")
    if isinstance(types_, list):
        others = [name for name in types_ if name != "null"]
        if "null" in types_:
            made["nullable"] = True
        made.pop("type")
        if len(others) == 1:
            made["type"] = others[0]
        elif others in (["integer", "string"], ["string", "integer"]):
            made[_INT_OR_STRING] = True
    for junctor in ("oneOf", "anyOf"):
        branches = made.get(junctor)
        if isinstance(branches, list) and _types_of(branches) == {"integer", "string"} and "type" not in made:
            made[_INT_OR_STRING] = True
            made.pop(junctor)
    if made.get(_INT_OR_STRING) and not isinstance(made.get("type"), str):
        return
    if not made.get("type"):
        implied = (
            "object"
            if made.get("properties") or made.get("additionalProperties")
            else "array"
            if "items" in made
            else ""
        )
        if implied:
            made["type"] = implied
        else:
            made[_OPEN] = True


def _types_of(branches: list[Json]) -> set[str]:
    """The types of branches that have nothing else, as far as they are that."""
    return {str(each.get("type")) if isinstance(each, dict) and len(each) == 1 else "" for each in branches}
