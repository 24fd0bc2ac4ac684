"""Smallest objects that show what a change of a schema does: the former CRD accepts and keeps them, the new one does not.

An object is generated from the former schema, made narrower so that it has the field in question, with a value that the
change is about: one more than a new maximum, a member that an enum has lost. Then both CRDs judge it by the stages of the
server's pipeline. A change whose effect cannot be computed, such as that of a rule or a pattern, is tried with some objects:
one that shows it proves it, and none proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final, NamedTuple

from noxu.api.errors import ApiError
from noxu.generation.kinds import as_shown, errors_of, object_of
from noxu.generation.texts import Choose
from noxu.generation.valid import CannotGenerate
from noxu.go.text import compact_json
from noxu.registry.resource import Resource
from noxu.schema.narrowing import Narrowing
from noxu.schema.structural import MISSING, Structural
from noxu.upgrades.schema_places import SchemaPlace, SchemaStep, differing_fields, node_at, requiring
from noxu.values import Object, copy, equal

_FEW: Final = 4
_MANY: Final = 10
"""How many objects are tried: for a change that is certain, and for one that is not."""
_FAILURES: Final = 4
_LARGEST: Final = 300
"""The characters, items or fields that a value may have to leave a bound."""
_EXTRA: Final = "any"


class ChangeExample(NamedTuple):
    """An object that the former CRD accepts, and what the new one does with it: `spec.size: Invalid value: 11: …`."""

    value: Object
    now: str


def example_of(
    narrowing: Narrowing, place: SchemaPlace, old: Resource, new: Resource, *, is_certain: bool
) -> ChangeExample | None:
    """A smallest object that shows a narrowing, None if none is found. Both resources are of one version.

    `is_certain`: it has an effect whether an object shows it or not, so fewer are tried.
    """
    if old.schema is None or new.schema is None:
        return None
    where = _Where(place, narrowing.rule, old.schema, new.schema)
    try:
        schemas = [requiring(old.schema, steps, node) for steps, node in where.nodes()]
    except LookupError:
        return None
    has_status = bool(place.steps) and place.steps[0].name == "status"
    for schema in schemas:
        failures = 0
        for choose in _choices(_FEW if is_certain else _MANY):
            try:
                value = object_of(old, schema, choose, status=has_status)
                if _is_kept(value, old) and (now := where.shown(value, old, new)):
                    return ChangeExample(value, now)
            except CannotGenerate:  # which takes thousands of attempts, and has its reason in the schema
                failures += 1
                if failures == _FAILURES:
                    break
            except (ApiError, ArithmeticError, TypeError, ValueError):  # bounds that a sane schema does not have
                break
    return None


def _choices(count: int) -> Iterator[Choose]:
    """The simplest choices, then others of which half are the simplest, always the same ones."""
    yield lambda _: 0
    for seed in range(count):
        yield partial(_chosen, Random(seed))  # noqa: S311 - no secret


def _chosen(random: Random, options: int) -> int:
    return random.randrange(options) if random.random() < 0.5 else 0


def _is_kept(value: Object, resource: Resource) -> bool:
    return not _pruned(value, resource) and not errors_of(value, resource)


def _pruned(value: Object, resource: Resource) -> list[str]:
    return resource.codec.prune(resource, copy(value))


class _Where(NamedTuple):
    """The place of a change, in both schemas."""

    place: SchemaPlace
    rule: str
    old: Structural
    new: Structural

    def nodes(self) -> Iterator[tuple[tuple[SchemaStep, ...], Structural]]:
        """What an object must have to show the change: the steps to a node, and the schema of the value there.

        Raises LookupError if the former schema has no such node.
        """
        steps = self.place.steps
        before, now = node_at(self.old, steps), node_at(self.new, steps)
        if self.rule == "default-changed":
            if not steps or (parent := node_at(self.old, steps[:-1])) is None:
                raise LookupError(steps)
            yield steps[:-1], _without(parent, steps[-1].name)
            return
        if before is None:
            raise LookupError(steps)
        if self.rule == "narrower-required" and now is not None:
            name = now.validation.required[int(self.place.keyword.removeprefix("required[").removesuffix("]"))]
            yield steps, _without(before, name)
            return
        if now is not None:
            for applies, narrowed in _NARROWED:
                if applies in (self.place.keyword, self.rule):
                    yield steps, narrowed(before, now)
        yield steps, before

    def shown(self, value: Object, old: Resource, new: Resource) -> str:
        """What the new CRD does with an object at this place, "" if nothing."""
        if self.rule == "default-changed":
            return self._default(value, old, new)
        if self.rule == "no-longer-kept":
            pruned = [path for path in _pruned(value, new) if self.place.matches(path)]
            return f"{pruned[0]} is pruned" if pruned else ""
        for error in errors_of(value, new):
            if self.place.matches(error.field) or (self.rule in _ABOVE and _is_above(error.field, self.place)):
                return str(error)
        return ""

    def _default(self, value: Object, old: Resource, new: Resource) -> str:
        was, now = (as_shown(value, resource) for resource in (old, new))
        for field, before, after in differing_fields(was, now):
            if self.place.matches(field):
                texts = ["absent" if side is MISSING else compact_json(side) for side in (before, after)]
                return f"{field} is {texts[1]}, and was {texts[0]}"
        return ""


_ABOVE: Final = frozenset({"narrower-rule", "narrower-any-of", "narrower-one-of", "narrower-all-of", "narrower-not"})
"""Changes whose errors may be reported for the whole object, or for a field that the rule names."""


def _is_above(field: str, place: SchemaPlace) -> bool:
    return not place.steps or not field


# -- values that leave what the new schema allows ---------------------------------------------------------------------


def _without(node: Structural, name: str) -> Structural:
    properties = {other: inner for other, inner in node.properties.items() if other != name}
    return replace(node, properties=properties)


def _with(node: Structural, **limits: object) -> Structural:
    narrowed: Structural = replace(node, validation=replace(node.validation, **limits))  # type: ignore[arg-type]
    return narrowed


def _null(before: Structural, _: Structural) -> Structural:
    return _with(before, enum=(None,))


def _gone(before: Structural, now: Structural) -> Structural:
    members = now.validation.enum
    gone = [value for value in before.validation.enum if not any(equal(value, member) for member in members)]
    return _with(before, enum=tuple(gone)) if gone else before


def _unknown_field(before: Structural, _: Structural) -> Structural:
    """A field that no schema names, where the former one keeps it."""
    if before.values is not None:
        return _with(before, min_properties=max(1, before.validation.min_properties or 0))
    required = (*before.validation.required, _EXTRA)
    properties = {**before.properties, _EXTRA: Structural(type="string")}
    return replace(before, properties=properties, validation=replace(before.validation, required=required))


def _below(name: str, exclusive: str, most: str) -> Callable[[Structural, Structural], Structural]:
    def narrowed(before: Structural, now: Structural) -> Structural:
        limit = getattr(now.validation, name)
        if exclusive and getattr(now.validation, exclusive):
            return _with(before, **{most: limit})
        return _with(before, **{most: limit - 1})

    return narrowed


def _beyond(name: str, exclusive: str, least: str) -> Callable[[Structural, Structural], Structural]:
    def narrowed(before: Structural, now: Structural) -> Structural:
        limit = getattr(now.validation, name)
        if exclusive and getattr(now.validation, exclusive):
            return _with(before, **{least: limit})
        if not exclusive and limit >= _LARGEST:
            raise LookupError(name)
        return _with(before, **{least: limit + 1})

    return narrowed


def _one_longer(before: Structural, now: Structural) -> Structural:
    longer = _beyond("max_length", "", "min_length")(before, now)
    return _with(longer, max_length=longer.validation.min_length)


def _two_items(before: Structural, _: Structural) -> Structural:
    return _with(before, min_items=max(2, before.validation.min_items or 0))


_NARROWED: Final[tuple[tuple[str, Callable[[Structural, Structural], Structural]], ...]] = (
    ("narrower-nullable", _null),
    ("narrower-enum", _gone),
    ("no-longer-kept", _unknown_field),
    ("minimum", _below("minimum", "exclusive_minimum", "maximum")),
    ("exclusiveMinimum", _below("minimum", "exclusive_minimum", "maximum")),
    ("maximum", _beyond("maximum", "exclusive_maximum", "minimum")),
    ("exclusiveMaximum", _beyond("maximum", "exclusive_maximum", "minimum")),
    ("minLength", _below("min_length", "", "max_length")),
    ("maxLength", _one_longer),
    ("minItems", _below("min_items", "", "max_items")),
    ("maxItems", _beyond("max_items", "", "min_items")),
    ("minProperties", _below("min_properties", "", "max_properties")),
    ("maxProperties", _beyond("max_properties", "", "min_properties")),
    ("x-kubernetes-list-type", _two_items),
)
"""By keyword or rule: the former schema, with those values only that the new one does not allow."""
