"""Objects without what must not be shown: the values in a Secret, each of which becomes its length.

A page that is shown to others shows none of them. Everything else of a Secret stays, so that its past can be read:

    data: {password: aHVudGVyMg==}    data: {password: "(12 characters, masked)"}

An annotation of `kubectl apply` has the whole object once more, and is masked, too. Objects of other kinds are returned as they are.
"""

from __future__ import annotations

from typing import Final

from noxu.apply.merging import ANNOTATION
from noxu.control.arguments import BOOLEAN, Argument
from noxu.values import Json, Object

FIELDS: Final = ("data", "stringData")
MASK: Final = Argument(BOOLEAN, "whether to show the values in Secrets only as their lengths", default=False)
"""The argument `mask` of calls that show objects."""


def masked(value: Object) -> Object:
    """A copy of a Secret without its values, what is no Secret unchanged."""
    if value.get("kind") != "Secret" or value.get("apiVersion") != "v1":
        return value
    shown = {**value}
    for field in FIELDS:
        if isinstance(entries := value.get(field), dict):
            shown[field] = {name: _length(entry) for name, entry in entries.items()}
    annotations = (value.get("metadata") or {}).get("annotations") or {}
    if ANNOTATION in annotations:
        hidden = {**annotations, ANNOTATION: _length(annotations[ANNOTATION])}
        shown["metadata"] = {**value["metadata"], "annotations": hidden}
    return shown


def _length(entry: Json) -> str:
    """What stands instead of a value: of one that has changed, mostly another length. A digest could be guessed from."""
    return f"({len(entry) if isinstance(entry, str) else 0} characters, masked)"
