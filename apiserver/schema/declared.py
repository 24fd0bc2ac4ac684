"""What a schema declares at a place in an object, for messages that help: "did you mean", "the default stands there".

A place is the names and positions on the way to it, as a JSON pointer has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from apiserver.schema.structural import Structural

METADATA: Final = (
    "name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "resourceVersion",
    "uid", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields",
    "selfLink",
)  # fmt: skip
TYPE_META: Final = ("apiVersion", "kind", "metadata")
_CLOSE: Final = 0.6  # of 1.0, the same


class Declared(NamedTuple):
    """A node of a schema, and how it is reached in the schema's document: `properties.spec.properties.size`."""

    schema: Structural | None
    where: str


def at(root: Structural, place: Sequence[str]) -> Declared | None:
    """The node that describes a place; None if none does. `metadata` of resources is nobody's to describe."""
    schema, where = root, []
    for step in place:
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


def nearest(root: Structural, place: Sequence[str]) -> str:
    """The field that whoever wrote an unknown one may have meant: the declared sibling that is most alike, or ""."""
    import difflib  # few ask

    *above, name = place
    names = _names(root, above)
    folded = {one.lower(): one for one in names}
    found = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=_CLOSE)
    return folded[found[0]] if found else ""


def elsewhere(root: Structural, place: Sequence[str]) -> str:
    """Where a field of that name is declared instead, if it is one level up or down: `spec.template.replicas`, or ""."""
    *above, name = place
    if above and name in _names(root, above[:-1]):
        return ".".join([*above[:-1], name])
    parent = at(root, above)
    for step, schema in parent.schema.properties.items() if parent and parent.schema else ():
        if name in schema.properties:
            return ".".join([*above, step, name])
    return ""


def _names(root: Structural, place: Sequence[str]) -> list[str]:
    """The fields that an object at a place may have."""
    if list(place) == ["metadata"]:
        return list(METADATA)
    found = at(root, place)
    names = list(found.schema.properties) if found and found.schema else []
    is_resource = not place or (found and found.schema and found.schema.embedded_resource)
    return [*names, *(one for one in TYPE_META if one not in names)] if is_resource else names
