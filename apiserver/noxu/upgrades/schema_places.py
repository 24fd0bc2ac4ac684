"""Places in the schemas of a CRD, and the fields of objects that they describe.

spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[ports].items.properties[port].maximum
version 1; the steps spec, ports, items, port; the keyword maximum; the field spec.ports[*].port
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from noxu.api.field import Path, child, index
from noxu.expressions import expression
from noxu.schema.structural import MISSING, Structural
from noxu.values import Json, equal

ITEMS: Final = "items"
VALUES: Final = "additionalProperties"
_SCHEMA: Final = expression(r"spec\.versions\[(\d+)\]\.schema\.openAPIV3Schema")
_STEP: Final = expression(r"\.(?:properties\[([^\[\]]*)\]|(items|additionalProperties)(?![\w\[]))")
_VERSION: Final = expression(r"spec\.versions\[(\d+)\]")
_INDEX: Final = expression(r"\[\d+\]")
_ANY_INDEX: Final = r"\[\d+\]"
_ANY_NAME: Final = r"(?:\[[^\]]*\]|\.[^.\[]+)"


class SchemaStep(NamedTuple):
    """From a node of a schema to one below: to that of a field, or with `name` "", of the items or values (`below`)."""

    name: str
    below: str = ""


class SchemaPlace(NamedTuple):
    """A keyword of a node of a schema. `version` is the index in spec.versions."""

    version: int
    steps: tuple[SchemaStep, ...]
    keyword: str

    @property
    def field(self) -> str:
        """The field of objects that the node describes: `spec.ports[*].port`; "" for the whole object."""
        text = ""
        for step in self.steps:
            text = child(text, step.name) if not step.below else f"{text}[*]"
        return text

    def matches(self, field: Path) -> bool:
        """Whether the field of an object is one that the node describes, or is in one."""
        pattern = ""
        for step in self.steps:
            named = rf"(?:\.?{re.escape(step.name)}|\[{re.escape(step.name)}\])"
            pattern += named if not step.below else _ANY_INDEX if step.below == ITEMS else _ANY_NAME
        return not pattern or re.match(rf"{pattern}(?![\w-])", field) is not None


def place_of(path: Path) -> SchemaPlace | None:
    """The place of a path in a CRD, None if it is not in a schema."""
    found = _SCHEMA.match(path)
    if found is None:
        return None
    steps, at = [], found.end()
    while (step := _STEP.match(path, at)) is not None:
        steps.append(SchemaStep(step[1] or "", step[2] or ""))
        at = step.end()
    return SchemaPlace(int(found[1]), tuple(steps), path[at:].removeprefix("."))


def version_index(path: Path) -> int | None:
    """The index of the version that a path in a CRD is about, None if it is about the whole CRD."""
    found = _VERSION.match(path)
    return None if found is None else int(found[1])


def with_version(path: Path, position: int) -> Path:
    """The same path in another version."""
    return _VERSION.sub(lambda _: index("spec.versions", position), path, count=1)


def node_at(schema: Structural | None, steps: Sequence[SchemaStep]) -> Structural | None:
    """The node of a schema, None if there is none."""
    for step in steps:
        if schema is None:
            return None
        schema = (
            schema.items if step.below == ITEMS else schema.values if step.below else schema.properties.get(step.name)
        )
    return schema


def requiring(schema: Structural, steps: Sequence[SchemaStep], node: Structural) -> Structural:
    """The schema of those objects that have a value at the place, which `node` describes.

    Raises LookupError if there is no such place.
    """
    if not steps:
        return replace(node, nullable=False)
    (step, *more), validation = steps, schema.validation
    inner = node_at(schema, [step])
    if inner is None:
        raise LookupError(step)
    below = requiring(inner, more, node)
    if step.below == ITEMS:
        least = replace(validation, min_items=max(1, validation.min_items or 0))
        return replace(schema, nullable=False, items=below, validation=least)
    if step.below == VALUES:
        least = replace(validation, min_properties=max(1, validation.min_properties or 0))
        return replace(schema, nullable=False, additional_properties=below, validation=least)
    required = tuple(dict.fromkeys((*validation.required, step.name)))
    properties = {**schema.properties, step.name: below}
    return replace(schema, nullable=False, properties=properties, validation=replace(validation, required=required))


def differing_fields(was: Json, now: Json, path: Path = "") -> Iterator[tuple[Path, Json, Json]]:
    """The fields of an object whose values differ, with both values; one that is missing is MISSING."""
    if isinstance(was, dict) and isinstance(now, dict):
        for name in dict.fromkeys((*was, *now)):
            yield from differing_fields(was.get(name, MISSING), now.get(name, MISSING), child(path, name))
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for n, (before, after) in enumerate(zip(was, now, strict=True)):
            yield from differing_fields(before, after, index(path, n))
    elif was is MISSING or now is MISSING or not equal(was, now):
        yield path, was, now


def with_any_index(field: Path) -> str:
    """`spec.ports[3].port` → `spec.ports[*].port`."""
    return _INDEX.sub("[*]", field)
