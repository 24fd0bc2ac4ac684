"""RuntimeClass: pods get the overhead, the node selector and the tolerations of their class (plugin/pkg/admission/runtimeclass)."""

from __future__ import annotations

from typing import Final

from noxu.admission.attributes import Attributes, refusal
from noxu.admission.builtin.lookups import find
from noxu.admission.builtin.rules import Rules
from noxu.admission.builtin.tolerations import merged
from noxu.go.quantity import compare, parse
from noxu.values import Object

_MISMATCH: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_WITHOUT_CLASS: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


async def _complete(request: Attributes) -> None:
    found = await _class_of(request)
    if found is None:
        return
    spec = request.draft.new["spec"]
    if found.get("overhead"):
        overhead = _overhead(found)
        if spec.get("overhead") is not None and not _equal(spec["overhead"], overhead):
            raise refusal(request, _MISMATCH)
        spec["overhead"] = overhead
    if scheduling := found.get("scheduling"):
        selector = spec.get("nodeSelector") or {}
        for name, value in sorted((scheduling.get("nodeSelector") or {}).items()):
            if selector.get(name, value) != value:
                where = f"runtimeClass.scheduling.nodeSelector[{name}] = {value}"
                raise refusal(request, f"conflict: {where}; pod.spec.nodeSelector[{name}] = {selector[name]}")
        if selector := {**selector, **(scheduling.get("nodeSelector") or {})}:
            spec["nodeSelector"] = selector
        if tolerations := merged(spec.get("tolerations") or [], scheduling.get("tolerations") or []):
            spec["tolerations"] = tolerations


async def _validate(request: Attributes) -> None:
    if request.operation != "CREATE" or request.subresource:
        return
    found, overhead = await _class_of(request), request.draft.new["spec"].get("overhead")
    if overhead is None:
        return
    if found is None or not found.get("overhead"):
        raise refusal(request, _WITHOUT_CLASS)
    if not _equal(overhead, _overhead(found)):
        raise refusal(request, _MISMATCH)


async def _class_of(request: Attributes) -> Object | None:
    """The class of a pod that is created. Raises ApiError if it does not exist."""
    if request.operation != "CREATE" or request.subresource:
        return None
    name = request.draft.new["spec"].get("runtimeClassName")
    if name is None:
        return None
    found = await find(request, "node.k8s.io", "runtimeclasses", name)
    if found is None:
        raise refusal(request, f'pod rejected: RuntimeClass "{name}" not found')
    return found


def _overhead(runtime_class: Object) -> Object:
    return dict(runtime_class["overhead"].get("podFixed") or {})


def _equal(left: Object, right: Object) -> bool:
    return left.keys() == right.keys() and all(compare(parse(left[name]), parse(right[name])) == 0 for name in left)


RULES: Final = Rules(mutate=_complete, validate=_validate)
