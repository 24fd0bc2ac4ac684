"""Which objects have a label: what selectors ask, for each change of a pod.

A label is one of a namespace. Of several that are asked for, the rarest one is looked at, and the rest compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from noxu.workloads.writes import NamespacedName

Labels: TypeAlias = Mapping[str, str]


class LabelIndex:
    def __init__(self) -> None:
        self._names: dict[
            tuple[str, str, str], dict[NamespacedName, None]
        ] = {}  # by namespace, key and value, in their order

    def put(self, name: NamespacedName, old: Labels, new: Labels) -> None:
        """An object has these labels now. Nothing is done if they are the same, which is what most changes are."""
        if old == new:
            return
        for key, value in old.items():
            if new.get(key) != value:
                self._drop((name.namespace, key, value), name)
        for key, value in new.items():
            if old.get(key) != value:
                self._names.setdefault((name.namespace, key, value), {})[name] = None

    def names(self, namespace: str, labels: Labels) -> list[NamespacedName]:
        """Those that may have all of some labels: the others have not. There has to be at least one label."""
        indexed: list[dict[NamespacedName, None]] = [
            self._names.get((namespace, *label), {}) for label in labels.items()
        ]
        rarest = min(indexed, key=len)
        return list(rarest)

    def clear(self) -> None:
        self._names.clear()

    def _drop(self, at: tuple[str, str, str], name: NamespacedName) -> None:
        names = self._names[at]
        del names[name]
        if not names:
            del self._names[at]
