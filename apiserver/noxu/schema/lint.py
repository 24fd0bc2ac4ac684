"""Whether a schema is structural (the article "Future of CRDs: Structural Schemas"; upstream's schema/validation.go).

A schema is structural if

1. every node of its spine has a type, and only `properties`, `items` and `additionalProperties` lead from node to node;
2. anyOf, allOf, oneOf and not contain value validations only, with one exception: the types in
   `anyOf: [{type: integer}, {type: string}]` for values that are either;
3. fields in those are declared by the spine, too (completeness; upstream checks it for the root's own validations);
4. apiVersion, kind and metadata at the root and in embedded resources have the types that they have in every object.

`structural_errors` reports violations with upstream's messages, `explain` gives advice about one. `incomplete` reports
what upstream does not: violations of the third rule by nested validations. `remarks` are about schemas that servers
accept, and that few authors mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from enum import Enum
from typing import Final, NamedTuple

from noxu.api.field import FieldError, Path, child, forbidden, index, invalid, key, required
from noxu.schema import patterns
from noxu.schema.structural import (
    MISSING,
    NO_VALIDATION,
    NestedValueValidation,
    Structural,
    ValueValidation,
    of_schema,
    parse,
)
from noxu.values import Object


def explain(violation: FieldError) -> str:
    """Advice on how to fix a violation, "" if its message says everything."""
    for part, advice in _ADVICE.items():
        if part in violation.detail:
            return advice
    if violation.reason == "FieldValueForbidden" and violation.field.endswith(_SCHEMAS):
        return "Change the schema there as the message says; do not remove it."
    return _GENERAL_ADVICE[violation.reason]


_SCHEMAS: Final = ("openAPIV3Schema", "]", ".items", ".additionalProperties")  # the ends of paths of whole schemas
_ANYTHING: Final = "If it may be anything, write `x-kubernetes-preserve-unknown-fields: true`"
_ADVICE: Final = {
    "must not be empty at the root": "Write `type: object` at the root: every resource is an object.",
    "must be object at the root": "Write `type: object` at the root: every resource is an object.",
    "must not be empty for specified": (
        f"Give it a `type`. {_ANYTHING}; for an integer or a string write `x-kubernetes-int-or-string: true`."
    ),
    "must be specified": f"Describe the items of the list under `items`. {_ANYTHING} there.",
    "to be structural": (
        "Move it out of anyOf, allOf, oneOf and not, to the field itself: they may contain value validations only, "
        "such as `required`, `minimum`, `pattern` or `enum`."
    ),
    "because it is defined in": "Declare it outside of anyOf, allOf, oneOf and not as well, with a `type`.",
    "must not be used at the root": "Write `x-kubernetes-preserve-unknown-fields: true` at the root instead.",
    "must not specify anything other than name": (
        "Keep only `type: object` and restrictions of `name` and `generateName`; the rest of metadata is implied."
    ),
    "must not be specified in a nested context": "Remove it there; restrict names in the root's `properties` instead.",
    "mutual exclusive": (
        "Use either `properties` for a struct, or `additionalProperties` for a map. For a struct that keeps unknown fields "
        "write `x-kubernetes-preserve-unknown-fields: true`."
    ),
    "$ref is not supported": "Inline the referenced schema.",
    "definitions is not supported": "Inline definitions where they are used.",
    "is not supported": "Remove it, or express it with other keywords: structural schemas do not support it.",
    "items must be a schema object": "Write one schema for all items.",
    "uniqueItems cannot be set": "For scalar items write `x-kubernetes-list-type: set` instead.",
    "use nullable as an alternative": "Write the type of the other values, with `nullable: true`.",
    "must be true or undefined": "Remove it: pruning starts again in `properties` by itself.",
    "set x-kubernetes-preserve-unknown-fields to true in spec.versions": (
        "Remove `preserveUnknownFields`, and write `x-kubernetes-preserve-unknown-fields: true` where unknown fields are "
        "to be kept."
    ),
    "must be false in order to use defaults": (
        "Remove `preserveUnknownFields`, and write `x-kubernetes-preserve-unknown-fields: true` where unknown fields are "
        "to be kept."
    ),
    "must be a valid regular expression": "Patterns are Go regular expressions (RE2): they have no lookaround and no backreferences.",
    "must have a default or be a required property": "List the key under `required`, or give it a default.",
    "must not have unknown fields": "Declare the field in the schema, or remove it from the default.",
    "exceeds budget by factor": (
        "Bound what the rule reads: `maxItems` of lists, `maxProperties` of maps and `maxLength` of strings, also of the lists "
        "and maps that contain it; or simplify the rule."
    ),
    "contributed to estimated rule cost": (
        "Bound what the rule reads: `maxItems` of lists, `maxProperties` of maps and `maxLength` of strings."
    ),
    "must be atomic as item of a list": (
        "Write `x-kubernetes-map-type: atomic` for the items; or, if a field of theirs distinguishes them, "
        "`x-kubernetes-list-type: map` with its name in `x-kubernetes-list-map-keys`."
    ),
    "one version marked as storage version": "Write `storage: true` for one version, and `storage: false` for all others.",
    "at least one stored version": "Write `storage: true` for one version: servers fill in the status.",
    "must be spec.names.plural": "The name is the plural, a dot, and the group.",
    "undefined field": (
        "`self` is the value at this place, with the fields that its schema declares; `has(self.a)` asks whether one is there."
    ),
    "found no matching overload": "Compare and combine values of the same types, or convert one: `string(self.a)`, `int(self.a)`.",
    "Syntax error": "Rules are expressions of CEL: https://kubernetes.io/docs/reference/using-api/cel/",
    "unknown field": "Check the spelling and the indentation: there is no such field here.",
}
_GENERAL_ADVICE: Final = {
    "FieldValueRequired": "Add the field.",
    "FieldValueDuplicate": "Remove all but one.",
    "FieldValueInvalid": "",
    "FieldValueNotSupported": "Use one of the supported values.",
    "FieldValueForbidden": "Remove the field.",
    "FieldValueTooLong": "Shorten it.",
    "FieldValueTooMany": "Remove some.",
    "InternalError": "Simplify the schema.",
    "FieldValueTypeInvalid": "Use a value of that type.",
}


class _Level(Enum):
    ROOT = "must not be empty at the root"
    ITEM = "must not be empty for specified array items"
    FIELD = "must not be empty for specified object fields"


def violations(schema: Object, path: Path) -> list[FieldError]:
    """`structural_errors` of a schema as JSON. Raises NoStructuralForm, a ValueError."""
    return structural_errors(parse(schema), path)


def structural_errors(schema: Structural, path: Path = "") -> list[FieldError]:
    """The violations that keep a schema from being structural, sorted by message."""
    errors: list[FieldError] = []
    _invariants(schema, _Level.ROOT, path, errors)
    _complete(schema.validation, schema, path, path, errors)
    if len(errors) > 1:
        errors.sort(key=str)
    return errors


def _invariants(s: Structural, level: _Level, path: Path, errors: list[FieldError]) -> None:
    root = level is _Level.ROOT
    if s.items is not None:
        if not _is_sound(s.items):
            _invariants(s.items, _Level.ITEM, child(path, "items"), errors)
    elif s.type == "array":
        errors.append(required(child(path, "items"), "must be specified"))
    if s.properties:
        below = child(path, "properties")
        for name, inner in s.properties.items():
            if not _is_sound(inner):
                _invariants(inner, _Level.FIELD, f"{below}[{name}]", errors)
        _check_meta(s, root, below, errors)
    if s.additional_properties is not None:
        _check_additional(s, root, path, errors)
    if s.validation is not NO_VALIDATION:
        _check_validation(s.validation, path, errors, spine=True, skip=False)
    if s.int_or_string:
        _check_int_or_string(s, path, errors)
    if s.embedded_resource:
        _check_embedded(s, path, errors)
    elif not (s.type or s.int_or_string or s.preserve_unknown_fields):
        errors.append(required(child(path, "type"), level.value))
    if root and s.type and s.type != "object":
        errors.append(invalid(child(path, "type"), s.type, "must be object at the root"))


def _check_additional(s: Structural, root: bool, path: Path, errors: list[FieldError]) -> None:
    below = child(path, "additionalProperties")
    if root:
        errors.append(forbidden(below, "must not be used at the root"))
    if s.values is not None and not _is_sound(s.values):
        _invariants(s.values, _Level.FIELD, below, errors)


@of_schema
def _is_sound(s: Structural) -> bool:
    """Whether a node below the root violates nothing, nor those below it. Where it is only shows in messages."""
    errors: list[FieldError] = []
    _invariants(s, _Level.FIELD, "", errors)
    return not errors


def _check_int_or_string(s: Structural, path: Path, errors: list[FieldError]) -> None:
    for name, is_set in (
        ("x-kubernetes-preserve-unknown-fields", s.preserve_unknown_fields),
        ("x-kubernetes-embedded-resource", s.embedded_resource),
    ):
        if is_set:
            errors.append(invalid(child(path, name), True, "must be false if x-kubernetes-int-or-string is true"))


def _check_embedded(s: Structural, path: Path, errors: list[FieldError]) -> None:
    if not s.type:
        why = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(required(child(path, "type"), why))
    elif s.type != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(invalid(child(path, "type"), s.type, why))
    if s.additional_properties is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(forbidden(child(path, "additionalProperties"), why))
    if not s.properties and not s.preserve_unknown_fields:
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        errors.append(required(child(path, "properties"), why))


def _check_meta(s: Structural, root: bool, below: Path, errors: list[FieldError]) -> None:
    """apiVersion, kind and metadata are implied at the root and in embedded resources."""
    if not (root or s.embedded_resource):
        return
    for name, type_ in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        declared = s.properties.get(name)
        if declared is not None and declared.type != type_:
            errors.append(invalid(child(key(below, name), "type"), declared.type, f"must be {type_}"))
    if root and "metadata" in s.properties and not _only_restricts_names(s.properties["metadata"]):
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        errors.append(forbidden(key(below, "metadata"), why))


_NOTHING: Final = Structural()
_METADATA_FIELDS: Final = [
    field.name
    for field in fields(Structural)
    if field.init and field.name not in ("type", "default", "properties", "validation")
]


def _only_restricts_names(metadata: Structural) -> bool:
    return (
        metadata.properties.keys() <= {"name", "generateName"}
        and metadata.validation is NO_VALIDATION  # even an empty `required` is something
        and all(getattr(metadata, name) == getattr(_NOTHING, name) for name in _METADATA_FIELDS)
    )


def _check_validation(v: ValueValidation, path: Path, errors: list[FieldError], *, spine: bool, skip: bool) -> None:
    """`skip`: anyOf has the types of the exception. For a node of the spine, this function finds out itself."""
    if not (skip or (spine and _is_int_or_string(v.any_of))):
        for n, branch in enumerate(v.any_of):
            _check_nested(branch, index(child(path, "anyOf"), n), errors)
    for n, branch in enumerate(v.all_of):
        skip_first = spine and n == 0 and _is_int_or_string(branch.validation.any_of)
        _check_nested(branch, index(child(path, "allOf"), n), errors, skip=skip_first)
    for n, branch in enumerate(v.one_of):
        _check_nested(branch, index(child(path, "oneOf"), n), errors)
    if v.not_ is not None:
        _check_nested(v.not_, child(path, "not"), errors)
    if v.pattern:
        try:
            patterns.size(v.pattern)
        except ValueError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            errors.append(invalid(child(path, "pattern"), v.pattern, why))


def _is_int_or_string(branches: tuple[NestedValueValidation, ...]) -> bool:
    """`anyOf: [{type: integer}, {type: string}]`, in this order and nothing else."""
    return [branch.forbidden for branch in branches] == [{"type": "integer"}, {"type": "string"}] and not any(
        branch.rules
        or branch.items
        or branch.properties
        or branch.additional_properties
        or branch.validation is not NO_VALIDATION
        or branch.empty
        for branch in branches
    )


_EMPTY, _UNDEFINED, _FALSE = "empty", "undefined", "false"
_OUTSIDE_ONLY: Final = {
    "type": _EMPTY,
    "title": _EMPTY,
    "description": _EMPTY,
    "default": _UNDEFINED,
    "nullable": _FALSE,
    "x-kubernetes-preserve-unknown-fields": _FALSE,
    "x-kubernetes-embedded-resource": _FALSE,
    "x-kubernetes-int-or-string": _FALSE,
    "x-kubernetes-list-map-keys": _EMPTY,
    "x-kubernetes-list-type": _UNDEFINED,
    "x-kubernetes-map-type": _UNDEFINED,
}


def _check_nested(v: NestedValueValidation, path: Path, errors: list[FieldError], *, skip: bool = False) -> None:
    _check_validation(v.validation, path, errors, spine=False, skip=skip)
    errors += [
        forbidden(child(path, name), f"must be {_OUTSIDE_ONLY[name]} to be structural")
        for name in v.forbidden
        if name in _OUTSIDE_ONLY  # upstream ignores externalDocs and example
    ]
    if v.rules:
        errors.append(forbidden(child(path, "x-kubernetes-validations"), "must be empty to be structural"))
    if v.additional_properties is not None:
        errors.append(forbidden(child(path, "additionalProperties"), "must be undefined to be structural"))
    if v.items is not None:
        _check_nested(v.items, child(path, "items"), errors)
    for name, inner in v.properties.items():
        below = key(child(path, "properties"), name)
        _check_nested(inner, below, errors)
        if name == "metadata":  # which could restrict more than names
            errors.append(forbidden(below, "must not be specified in a nested context"))


def _complete(v: ValueValidation, s: Structural, spine: Path, path: Path, errors: list[FieldError]) -> None:
    branches = [
        (name, branch)
        for keyword, members in (("allOf", v.all_of), ("anyOf", v.any_of), ("oneOf", v.one_of))
        for name, branch in ((index(keyword, n), branch) for n, branch in enumerate(members))
    ]
    if v.not_ is not None:
        branches.append(("not", v.not_))
    for name, branch in branches:
        _complete_nested(branch, s, spine, child(path, name), errors)


def _complete_nested(
    v: NestedValueValidation, s: Structural | None, spine: Path, path: Path, errors: list[FieldError]
) -> None:
    if s is None:
        errors.append(required(spine, f"because it is defined in {path}"))
        return
    _complete(v.validation, s, spine, path, errors)
    if v.items is not None:
        _complete_nested(v.items, s.items, child(spine, "items"), child(path, "items"), errors)
    for name, inner in v.properties.items():
        below = key("properties", name)
        _complete_nested(inner, s.properties.get(name), child(spine, below), child(path, below), errors)


# -- what servers accept ----------------------------------------------------------------------------------------------


def incomplete(schema: Structural, path: Path = "") -> list[FieldError]:
    """Fields in nested anyOf, allOf, oneOf and not that the spine does not declare: they are pruned before validation."""
    errors: list[FieldError] = []
    for node, where in _nodes(schema, path):
        if node is not schema:  # `structural_errors` reports the root's own
            _complete(node.validation, node, where, where, errors)
    return list(dict.fromkeys(errors))


REMARKS: Final = frozenset({"nullable-default", "list-type"})
"""The kinds of remarks."""


class Remark(NamedTuple):
    """A warning about a node. `rule` is the kind of warning."""

    path: Path
    rule: str
    message: str
    advice: str


def remarks(schema: Structural, path: Path = "") -> list[Remark]:
    """Lists that server-side apply replaces as a whole though their items have names, and defaults that null prevents."""
    notes = []
    for node, where in _nodes(schema, path):
        if node.nullable and node.default is not MISSING and node.default is not None:
            notes.append(Remark(where, "nullable-default", *_NULLABLE_DEFAULT))
        if node.type == "array" and not node.list_type and (name := _name_of_items(node.items)):
            advice = (
                f"Write `x-kubernetes-list-type: map` with `x-kubernetes-list-map-keys: [{name}]` if no two items have the "
                f"same {name}, and otherwise `x-kubernetes-list-type: atomic`."
            )
            notes.append(Remark(where, "list-type", _NO_LIST_TYPE, advice))
    return notes


_NULLABLE_DEFAULT: Final = (
    "nullable with a default: null is kept, and not replaced by the default",
    "Remove `nullable`, so that null counts as absent and gets the default; or remove the default.",
)
_NO_LIST_TYPE: Final = (
    "a list without x-kubernetes-list-type: server-side apply gives it one owner as a whole, so appliers of single items "
    "conflict"
)
_NAMES_OF_ITEMS: Final = ("name", "key", "id", "type")


def _name_of_items(items: Structural | None) -> str:
    """The property that distinguishes the items of a list, "" if none certainly does."""
    if items is None or items.type != "object":
        return ""
    required = items.validation.required or ()
    scalars = (name for name in _NAMES_OF_ITEMS if name in items.properties and items.properties[name].type == "string")
    return next((name for name in scalars if name in required), "")


def _nodes(schema: Structural, path: Path) -> Iterator[tuple[Structural, Path]]:
    """The nodes of the spine with their paths, in the order of the document."""
    todo = [(schema, path)]
    while todo:
        node, where = todo.pop()
        yield node, where
        below = child(where, "properties")
        inner = [(property_, key(below, name)) for name, property_ in node.properties.items()]
        if node.items is not None:
            inner.append((node.items, child(where, "items")))
        if node.values is not None:
            inner.append((node.values, child(where, "additionalProperties")))
        todo += reversed(inner)
