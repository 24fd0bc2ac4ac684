"""The accepted names of the definitions of a group, of which each may be accepted once.

Plurals, singulars and short names are names of resources; kinds and list kinds are another set. A definition uses a name
for several purposes, so names are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from noxu.values import Object


class AcceptedNames:
    """How many definitions, or purposes in one of them, have each name."""

    def __init__(self, definitions: Iterable[Object] = ()) -> None:
        self.resources: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        for crd in definitions:
            self.add(crd["status"]["acceptedNames"])

    def add(self, accepted: Object) -> None:
        """Add the names in a status.acceptedNames."""
        self.resources.update(_resources(accepted))
        self.kinds.update(_kinds(accepted))

    def remove(self, accepted: Object) -> None:
        """Remove what was added."""
        for counter, names in (self.resources, _resources(accepted)), (self.kinds, _kinds(accepted)):
            counter.subtract(names)
            for name in names:
                if not counter[name]:
                    del counter[name]

    def __bool__(self) -> bool:
        return bool(self.resources or self.kinds)


def _resources(accepted: Object) -> list[str]:
    return [accepted["plural"], accepted.get("singular", ""), *(accepted.get("shortNames") or [])]


def _kinds(accepted: Object) -> list[str]:
    return [accepted["kind"], accepted.get("listKind", "")]
