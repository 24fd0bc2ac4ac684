"""Validation of the defaults in a schema (apiserver/schema/defaulting/validation.go).

A default must have no unknown fields, and be valid by the schema around it. In an embedded resource (here the root is
one), a default for apiVersion, kind or in metadata is checked within an otherwise empty resource. Defaults under
additionalProperties are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from noxu.api.errors import aggregate
from noxu.api.field import FieldError, Path, child, invalid, key
from noxu.schema.embedded import MalformedMetadata, coerce
from noxu.schema.embedded import validate as validate_embedded
from noxu.schema.lint import structural_errors
from noxu.schema.pruning import ITEM, META, Steps, prune, surround
from noxu.schema.structural import MISSING, NoStructuralForm, Structural, has_defaults, parse
from noxu.schema.validation import validate_default
from noxu.values import Json, Object, copy, equal

CheckRules: TypeAlias = Callable[[Structural, Json, Path, bool], list[FieldError]]
"""(schema, default, path, whether it is the root or an embedded resource) → errors of the schema's CEL rules."""


def default_errors(
    schema: Structural, path: Path, *, may_have_unknown: Callable[[], bool], check_rules: CheckRules | None = None
) -> list[FieldError]:
    """The errors in all defaults. `may_have_unknown` is called if a default has unknown fields.

    As upstream does, this drops unknown metadata fields from the defaults of embedded resources, in place.
    """
    root = replace(schema, embedded_resource=True)
    walk = _Defaults(may_have_unknown, check_rules)
    walk.check(root, path, root, (), in_meta=False)
    return walk.errors


class _Defaults:
    """One walk over the spine."""

    def __init__(self, may_have_unknown: Callable[[], bool], check_rules: CheckRules | None) -> None:
        self.errors: list[FieldError] = []
        self.may_have_unknown = may_have_unknown
        self.check_rules = check_rules

    def check(self, s: Structural, path: Path, root: Structural, steps: Steps, *, in_meta: bool) -> None:
        """`steps` lead from the resource `root` to `s`; `in_meta`: through apiVersion, kind or metadata."""
        if not has_defaults(s):
            return
        if s.embedded_resource:
            root, steps, in_meta = s, (), False
        if s.default is not MISSING:
            where = child(path, "default")
            errors = self.meta_errors(s, where, root, steps) if in_meta else self.value_errors(s, where)
            self.errors += errors or self.schema_errors(s, where, is_root=s is root)
        if s.items is not None:
            self.check(s.items, child(path, "items"), root, (*steps, ITEM), in_meta=in_meta)
        if s.properties:
            below = child(path, "properties")
            for name, inner in s.properties.items():
                meta = in_meta or (s.embedded_resource and name in META)
                self.check(inner, key(below, name), root, (*steps, name), in_meta=meta)

    def meta_errors(self, s: Structural, path: Path, root: Structural, steps: Steps) -> list[FieldError]:
        resource = _TYPE_META | surround(copy(s.default), steps)
        try:
            coerce(resource, root, drop_malformed=False)
        except MalformedMetadata as malformed:
            why = str(malformed)
        else:
            errors = validate_embedded(resource, root)
            why = aggregate(map(str, errors)) if errors else ""
        return [invalid(path, s.default, f"must result in valid metadata: {why}")] if why else []

    def value_errors(self, s: Structural, path: Path) -> list[FieldError]:
        if not isinstance(s.default, (dict, list)) and not s.embedded_resource:
            return []  # a scalar has no fields
        if prune(copy(s.default), s, root=s.embedded_resource) and not self.may_have_unknown():
            self.errors.append(invalid(path, s.default, "must not have unknown fields"))
        try:
            coerce(s.default, s, path, drop_malformed=False)
        except MalformedMetadata as malformed:
            return [malformed.error]
        return validate_embedded(s.default, s, path)

    def schema_errors(self, s: Structural, path: Path, *, is_root: bool) -> list[FieldError]:
        errors = validate_default(s.default, s, path=path)
        if not errors and self.check_rules is not None:
            errors = self.check_rules(s, s.default, path, is_root)
        return errors


def has_unknown_fields(schema: Object) -> bool:
    """Whether a stored schema has defaults with unknown fields. False for one that is not structural."""
    try:
        structural = parse(schema)
    except NoStructuralForm:
        return False
    if structural_errors(structural):
        return False
    try:
        return any(_is_pruned(default, steps, structural) for default, steps in _defaults(structural, ()))
    except ValueError:
        return False


def _defaults(s: Structural, steps: Steps) -> Iterator[tuple[Json, Steps]]:
    if s.default is not MISSING:
        yield s.default, steps
    below: list[tuple[Structural | None, str | int]] = [(s.values, "*"), (s.items, ITEM)]
    for inner, step in (*below, *((inner, name) for name, inner in s.properties.items())):
        if inner is not None:
            yield from _defaults(inner, (*steps, step))


def _is_pruned(default: Json, steps: Steps, root: Structural) -> bool:
    """Whether pruning a resource with the default in it changes the default."""
    resource = surround(copy(default), steps)
    if not isinstance(resource, dict):
        raise ValueError("object root default value must be of object type")
    coerce(resource, replace(root, embedded_resource=True), drop_malformed=True)
    prune(resource, root, root=True)
    for step in steps:
        resource = resource[step]
    return not equal(resource, default)


_TYPE_META: Final = {"kind": "Validation", "apiVersion": "validation/v1"}
