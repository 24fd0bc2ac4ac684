"""The modes of authorization: the values of --authorization-mode (pkg/kubeapiserver/authorizer/modes)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from noxu.similar_names import meant

ALWAYS_ALLOW: Final = "AlwaysAllow"
RBAC: Final = "RBAC"
MODES: Final = (ALWAYS_ALLOW, "AlwaysDeny", "Node", RBAC)
_WITHOUT: Final = {
    "ABAC": "policies in a file",
    "Webhook": "another server",
}
"""Modes that this server does not have, and whom they ask."""


def modes(lists: Iterable[str]) -> tuple[str, ...]:
    """The modes in comma-separated lists. Raises ValueError."""
    found = tuple(mode for text in lists for mode in text.split(",") if text)
    if not found:
        raise ValueError("at least one authorization-mode must be passed")
    faults = [fault for mode in found if (fault := _fault(mode))]
    if len(set(found)) != len(found):
        faults.append(f"authorization-mode {_quoted(found)} has mode specified more than once")
    if faults:
        raise ValueError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")
    return found


def _fault(mode: str) -> str:
    if mode in MODES:
        return ""
    if mode in _WITHOUT:
        return f"authorization-mode {mode} is not available: this server cannot ask {_WITHOUT[mode]}; it has {', '.join(MODES)}"
    return f'authorization-mode "{mode}" is not a valid mode{meant(mode, MODES)} (this server has {", ".join(MODES)})'


def _quoted(texts: Sequence[str]) -> str:
    """Go's `%q` of strings without special characters."""
    return "[" + " ".join(f'"{text}"' for text in texts) + "]"
