"""Priority: the priority of a pod is that of its PriorityClass (plugin/pkg/admission/priority)."""

from __future__ import annotations

from typing import Final

from noxu.admission.attributes import Attributes, refusal
from noxu.admission.builtin.lookups import find, objects
from noxu.admission.builtin.rules import Rules
from noxu.values import Object

_GROUP: Final = "scheduling.k8s.io"
_CLASSES: Final = "priorityclasses"
_PREEMPT: Final = "PreemptLowerPriority"
_COMPUTED: Final = "priority admission controller computed {} from the given PriorityClass name"


async def _set_priority(request: Attributes) -> None:
    """New pods get the priority of their class, or of the default class; updated ones keep theirs."""
    if request.resource.plural != "pods" or request.subresource:
        return
    spec = request.draft.new["spec"]
    if request.draft.old is not None:
        for name in ("priority", "preemptionPolicy"):
            if spec.get(name) is None and (kept := request.draft.old["spec"].get(name)) is not None:
                spec[name] = kept
        return
    if name := spec.get("priorityClassName"):
        found = await find(request, _GROUP, _CLASSES, name)
        if found is None:
            raise refusal(request, f"no PriorityClass with name {name} was found")
    elif (found := await _default_class(request)) is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    priority, policy = (0, _PREEMPT) if found is None else (found.get("value", 0), found.get("preemptionPolicy"))
    if spec.get("priority", priority) != priority:
        why = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec"
        raise refusal(request, f"{why}; {_COMPUTED.format(priority)}")
    spec["priority"] = priority
    if policy is None:
        return
    if spec.get("preemptionPolicy", policy) != policy:
        why = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec"
        raise refusal(request, f"{why}; {_COMPUTED.format(policy)}")
    spec["preemptionPolicy"] = policy


async def _allow_one_default(request: Attributes) -> None:
    """Refuse a second default class."""
    new = request.draft.new
    if request.resource.plural != _CLASSES or not new.get("globalDefault"):
        return
    name = (found := await _default_class(request)) and found["metadata"]["name"]
    if name is not None and (request.operation == "CREATE" or name != new["metadata"]["name"]):
        raise refusal(request, f"PriorityClass {name} is already marked as default. Only one default can exist")


async def _default_class(request: Attributes) -> Object | None:
    """The default class; of several, which may come from a race, the one with the lowest value."""
    classes = await objects(request, _GROUP, _CLASSES)
    return min(
        (each for each in classes if each.get("globalDefault")), key=lambda each: each.get("value", 0), default=None
    )


RULES: Final = Rules(mutate=_set_priority, validate=_allow_one_default)
