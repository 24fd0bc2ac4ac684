"""`--runtime-config`: which group versions of built-in kinds clients can use (pkg/server/resourceconfig of k8s.io/apiserver).

`api/all`, `api/ga`, `api/beta` and `api/alpha` select versions by their stability, `GROUP/VERSION` (`v1` for the core group)
selects one and has precedence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from noxu.features import FALSE, TRUE
from noxu.go.text import quote

GroupVersion: TypeAlias = tuple[str, str]

_STABILITIES: Final = {
    "api/all": re.compile(r".*"),
    "api/ga": re.compile(r"v\d+"),
    "api/beta": re.compile(r"v\d+beta\d+"),
    "api/alpha": re.compile(r"v\d+alpha\d+"),
}
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?")


class RuntimeConfig(NamedTuple):
    """`disabled`: the group versions that clients cannot use. `notes`: what has no effect."""

    disabled: frozenset[GroupVersion]
    notes: Sequence[str]


def parse(items: Iterable[str], served: Iterable[GroupVersion]) -> RuntimeConfig:
    """`items` are the values of the flag, `KEY=BOOL` or `KEY`; `served` are all group versions. Raises ValueError."""
    served = tuple(served)
    enabled = dict.fromkeys(served, True)
    notes = []
    chosen = {
        key.strip(): _boolean(key, equals, value) for key, equals, value in (item.partition("=") for item in items)
    }
    for key, stability in _STABILITIES.items():
        if key in chosen:
            enabled |= {each: chosen[key] for each in served if stability.fullmatch(each[1])}
    for key in chosen.keys() - _STABILITIES.keys():
        group, _, version = key.rpartition("/")
        if (group, version) in enabled:
            enabled[group, version] = chosen[key]
        elif not _VERSION.fullmatch(version):  # GROUP/VERSION/RESOURCE selects one resource
            notes.append(f"--runtime-config: {key} is not GROUP/VERSION; it has no effect")
        elif chosen[key]:
            notes.append(f"--runtime-config: this server does not have {key}")
    return RuntimeConfig(frozenset(each for each in served if not enabled[each]), sorted(notes))


def _boolean(key: str, equals: str, value: str) -> bool:
    value = value.strip()
    if not equals or not value:
        return True
    if value not in TRUE | FALSE:
        raise ValueError(f"runtime-config invalid value {quote(f'{key}={value}')}")
    return value in TRUE
