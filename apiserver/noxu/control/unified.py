"""The difference of two states of an object, as `diff -u` and `kubectl diff` show it: YAML, three lines of context.

Left out is what differs between any two states: the resourceVersion and managedFields.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from typing import Final

from noxu.api import codec
from noxu.values import Object

MAX_LINES: Final = 20_000
"""Lines of an object that is compared; what is longer is only said to differ."""
_CONTEXT: Final = 3
_HIDDEN: Final = ("managedFields", "resourceVersion")


def visible(value: Object) -> Object:
    """The object without what is left out; a new map where it differs."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return value
    return {**value, "metadata": {name: item for name, item in metadata.items() if name not in _HIDDEN}}


def difference(old: Object | None, new: Object | None, old_label: str, new_label: str) -> str:
    """The difference, "" if there is none. None: the object does not exist, so all lines are new or gone."""
    before, after = _lines(old), _lines(new)
    if before == after:
        return ""
    if len(before) > MAX_LINES or len(after) > MAX_LINES:
        return f"--- {old_label}\n+++ {new_label}\nthey differ, and have too many lines to be compared\n"
    return "".join(unified_diff(before, after, old_label, new_label, n=_CONTEXT))


def _lines(value: Object | None) -> Sequence[str]:
    if value is None:
        return ()
    text = codec.to_yaml(visible(value)).decode("utf-8", "surrogatepass")
    # by line feeds only: a text in YAML may have other separators
    return [f"{line}\n" for line in text.removesuffix("\n").split("\n")]
