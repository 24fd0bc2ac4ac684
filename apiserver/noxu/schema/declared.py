"""The declarations of a schema for a location in an object, for hints such as "did you mean".

A location is given as names and indexes, the steps of a JSON pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from noxu.schema.structural import Structural

METADATA: Final = (
    "name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "resourceVersion",
    "uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields",
    "selfLink",
)  # fmt: skip
TYPE_META: Final = ("apiVersion", "kind", "metadata")
_CLOSE: Final = 0.6  # similarity; equal names have 1.0


class Declared(NamedTuple):
    """A node of a schema, and its path in the schema's document: `properties.spec.properties.size`."""

    schema: Structural | None
    where: str


def at(root: Structural, steps: Sequence[str]) -> Declared | None:
    """The node that declares a location, None if no node does. A schema does not declare the metadata of resources."""
    schema, where = root, []
    for step in steps:
        if step in schema.properties:
            schema, keywords = schema.properties[step], ["properties", step]
        elif schema.values is not None:
            schema, keywords = schema.values, ["additionalProperties"]
        elif schema.items is not None and step.isdigit():
            schema, keywords = schema.items, ["items"]
        else:
            return None
        where += keywords
    return Declared(schema, ".".join(where))


def nearest(root: Structural, steps: Sequence[str]) -> str:
    """The declared sibling whose name is closest to an unknown field's, "" if none is close."""
    import difflib  # imported late: rarely needed

    *above, name = steps
    names = _names(root, above)
    folded = {name.lower(): name for name in names}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=_CLOSE)
    return folded[found[0]] if found else ""


def elsewhere(root: Structural, steps: Sequence[str]) -> str:
    """The path of a declared field of the same name one level up or down, such as `spec.template.replicas`, or ""."""
    *above, name = steps
    if above and name in _names(root, above[:-1]):
        return ".".join([*above[:-1], name])
    parent = at(root, above)
    for step, schema in parent.schema.properties.items() if parent and parent.schema else ():
        if name in schema.properties:
            return ".".join([*above, step, name])
    return ""


def _names(root: Structural, steps: Sequence[str]) -> list[str]:
    """The fields that an object at a location may have."""
    if list(steps) == ["metadata"]:
        return list(METADATA)
    found = at(root, steps)
    names = list(found.schema.properties) if found and found.schema else []
    is_resource = not steps or (found and found.schema and found.schema.embedded_resource)
    return [*names, *(name for name in TYPE_META if name not in names)] if is_resource else names
