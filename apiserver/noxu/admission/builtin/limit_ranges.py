"""LimitRanger: bounds for containers, pods and claims in a namespace (plugin/pkg/admission/limitranger).

A LimitRange has defaults for containers, and bounds. The errors of one LimitRange are reported together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.admission.attributes import Attributes, refusal
from noxu.admission.builtin.pods import Resources, of_container, of_pod, quantities
from noxu.admission.builtin.rules import PluginRules, objects
from noxu.api.errors import aggregate
from noxu.go.quantity import approximate_float, compare, sign
from noxu.values import Object

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_LISTS: Final = (("containers", "container"), ("initContainers", "init container"))


async def _set_defaults(request: Attributes) -> None:
    """Fill in what new containers neither request nor limit, and say so in an annotation."""
    if not _concerns(request) or request.resource.plural != "pods" or request.subresource:
        return
    pod = request.draft.new
    for limit_range in await objects(request, "", "limitranges", request.namespace):
        limits = [limit for limit in limit_range["spec"].get("limits") or () if limit.get("type") == "Container"]
        defaults = {
            "requests": {name: text for limit in limits for name, text in (limit.get("defaultRequest") or {}).items()},
            "limits": {name: text for limit in limits for name, text in (limit.get("default") or {}).items()},
        }
        notes = [
            note
            for list_name, what in _LISTS
            for container in pod["spec"].get(list_name) or ()
            for note in _complete(container, what, defaults)
        ]
        if notes:
            annotations = pod["metadata"].get("annotations") or {}
            pod["metadata"]["annotations"] = {**annotations, _ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}


def _complete(container: Object, what: str, defaults: dict[str, Object]) -> Iterator[str]:
    """Set what is missing, and describe it."""
    resources = container.setdefault("resources", {})
    for which, wanted in defaults.items():
        own = resources.get(which) or {}
        if missing := {name: text for name, text in wanted.items() if name not in own}:
            resources[which] = {**own, **missing}
            yield f"{', '.join(sorted(missing))} {which[:-1]} for {what} {container.get('name', '')}"


async def _check(request: Attributes) -> None:
    if not _concerns(request):
        return
    check = _pod_errors if request.resource.plural == "pods" else _claim_errors
    for limit_range in await objects(request, "", "limitranges", request.namespace):
        try:
            errors = [
                error for limit in limit_range["spec"].get("limits") or () for error in check(limit, request.draft.new)
            ]
        except ValueError as error:  # sums of resources that are out of range
            raise refusal(request, str(error)) from None
        if errors:
            raise refusal(request, aggregate(errors))


def _concerns(request: Attributes) -> bool:
    """Pods when they are created or resized, claims also when they are updated; not what is being deleted."""
    old = request.draft.old
    if old is not None and old["metadata"].get("deletionTimestamp"):
        return False
    if request.resource.plural == "pods":
        return (request.operation, request.subresource) in (("CREATE", ""), ("UPDATE", "resize"))
    return not request.subresource


def _pod_errors(limit: Object, pod: Object) -> Iterator[str]:
    spec, kind = pod["spec"], limit.get("type", "")
    if kind == "Container":
        for list_name, _ in _LISTS:
            for container in spec.get(list_name) or ():
                yield from _bounds(limit, of_container(container, "requests"), of_container(container, "limits"))
    elif kind == "Pod":
        yield from _bounds(limit, of_pod(spec, "requests"), of_pod(spec, "limits"))


def _claim_errors(limit: Object, claim: Object) -> Iterator[str]:
    if limit.get("type") != "PersistentVolumeClaim":
        return
    requests = of_container(claim["spec"], "requests")
    yield from _minimum(limit, requests, {})
    for name, most in sorted(quantities(limit.get("max")).items()):
        rule = f"maximum {name} usage per {limit['type']} is {most}"
        if name not in requests:
            yield f"{rule}.  No request is specified"
        elif compare(requests[name], most) > 0:
            yield f"{rule}, but request is {requests[name]}"


def _bounds(limit: Object, requests: Resources, limits: Resources) -> Iterator[str]:
    yield from _minimum(limit, requests, limits)
    for name, most in sorted(quantities(limit.get("max")).items()):
        rule = f"maximum {name} usage per {limit['type']} is {most}"
        if name not in limits:
            yield f"{rule}.  No limit is specified"
        elif compare(limits[name], most) > 0:
            yield f"{rule}, but limit is {limits[name]}"
        elif name in requests and compare(requests[name], most) > 0:
            yield f"{rule}, but request is {requests[name]}"
    for name, most in sorted(quantities(limit.get("maxLimitRequestRatio")).items()):
        rule = f"{name} max limit to request ratio per {limit['type']} is {most}"
        if name not in requests or sign(requests[name]) == 0:
            yield f"{rule}, but no request is specified or request is 0"
        elif name not in limits or sign(limits[name]) == 0:
            yield f"{rule}, but no limit is specified or limit is 0"
        elif (ratio := approximate_float(limits[name]) / approximate_float(requests[name])) > approximate_float(most):
            yield f"{rule}, but provided ratio is {ratio:f}"


def _minimum(limit: Object, requests: Resources, limits: Resources) -> Iterator[str]:
    for name, least in sorted(quantities(limit.get("min")).items()):
        rule = f"minimum {name} usage per {limit['type']} is {least}"
        if name not in requests:
            yield f"{rule}.  No request is specified"
        elif compare(requests[name], least) < 0:
            yield f"{rule}, but request is {requests[name]}"
        elif name in limits and compare(limits[name], least) < 0:
            yield f"{rule}, but limit is {limits[name]}"


RULES: Final = PluginRules(mutate=_set_defaults, validate=_check)
