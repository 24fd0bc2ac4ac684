"""TaintNodesByCondition: a new node is not ready until its conditions say so (plugin/pkg/admission/nodetaint)."""

from __future__ import annotations

from typing import Final

from noxu.admission.attributes import Attributes
from noxu.admission.builtin.rules import Rules
from noxu.admission.builtin.tolerations import NOT_READY

_EFFECT: Final = "NoSchedule"


async def _taint(request: Attributes) -> None:
    if request.operation != "CREATE" or request.subresource:
        return
    spec = request.draft.new.setdefault("spec", {})
    taints = spec.get("taints") or []
    if not any((taint.get("key"), taint.get("effect")) == (NOT_READY, _EFFECT) for taint in taints):
        spec["taints"] = [*taints, {"key": NOT_READY, "effect": _EFFECT}]


RULES: Final = Rules(mutate=_taint)
