"""Tolerations of pods: DefaultTolerationSeconds, and how those of a RuntimeClass are merged with a pod's own.

Sources: plugin/pkg/admission/defaulttolerationseconds, and MergeTolerations in pkg/util/tolerations.
"""

from __future__ import annotations

from typing import Final

from noxu.admission.attributes import Attributes
from noxu.admission.builtin.rules import Rules
from noxu.values import Object

NOT_READY: Final = "node.kubernetes.io/not-ready"
_DEFAULT: Final = (NOT_READY, "node.kubernetes.io/unreachable")
_SECONDS: Final = 300


async def _tolerate_for_some_time(request: Attributes) -> None:
    """A pod stays on a node that is not ready or not reachable for five minutes, unless it says otherwise."""
    if request.subresource:
        return
    spec = request.draft.new["spec"]
    before = spec.get("tolerations") or []
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
        for key in _DEFAULT
        if not any(_concerns(toleration, key) for toleration in before)
    ]
    if added:
        spec["tolerations"] = [*before, *added]


def _concerns(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


RULES: Final = Rules(mutate=_tolerate_for_some_time)


def merged(first: list[Object], second: list[Object]) -> list[Object]:
    """All tolerations except those that another one covers; of equal ones the first."""
    every, kept = [*first, *second], list[Object]()
    for place, toleration in enumerate(every):
        if any(_covers(other, toleration) for other in kept):
            continue
        if any(other != toleration and _covers(other, toleration) for other in every[place + 1 :]):
            continue
        kept.append(toleration)
    return kept


def _covers(wide: Object, narrow: Object) -> bool:
    """Whether `wide` tolerates everything that `narrow` does (upstream's isSuperset)."""
    if wide == narrow:
        return True
    operator = wide.get("operator", "")
    if narrow.get("key", "") != wide.get("key", "") and (wide.get("key") or operator != "Exists"):
        return False
    if wide.get("effect", "") not in (narrow.get("effect", ""), ""):
        return False
    limit = wide.get("tolerationSeconds") if wide.get("effect") == "NoExecute" else None
    if limit is not None and not (narrow.get("tolerationSeconds") is not None and narrow["tolerationSeconds"] <= limit):
        return False
    if operator in ("Equal", ""):
        return narrow.get("operator", "") in ("Equal", "") and narrow.get("value", "") == wide.get("value", "")
    return bool(operator == "Exists")
