"""The names of collections in the store: GROUP/PLURAL, whatever the version, and two where custom and built-in kinds meet.

A definition may have the group and the plural of a built-in kind, at another version. Upstream keeps the objects of both
apart by their prefix in etcd, except for those of two groups. Here they are always apart:

    example.com/widgets                                   custom resources
    rbac.authorization.k8s.io/clusterroles                the built-in kind
    rbac.authorization.k8s.io/clusterroles.custom         custom resources with its names

No plural contains a dot, so nothing else has such a name.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from noxu.crd import types
from noxu.kinds import scheme

_SUFFIX: Final = ".custom"
_STORED_ELSEWHERE: Final = frozenset({"events.k8s.io/events"})  # with those of the core group


def of_built_in(group: str, plural: str) -> str:
    return f"{group}/{plural}"


def of_custom(group: str, plural: str) -> str:
    name = f"{group}/{plural}"
    return f"{name}{_SUFFIX}" if name in beside_custom() else name


def without_suffix(name: str) -> str:
    """GROUP/PLURAL of any collection."""
    return name.removesuffix(_SUFFIX)


@cache
def beside_custom() -> frozenset[str]:
    """The collections of built-in kinds whose names a definition may have: groups of definitions contain a dot."""
    stored = {(kind.group, kind.plural) for kind in scheme.served() if kind.stored}
    named = {*stored, (types.GROUP, types.RESOURCE)}
    return frozenset(of_built_in(*names) for names in named if "." in names[0]) - _STORED_ELSEWHERE
