"""Evictions: a POST of pods/eviction deletes a Pod unless that disrupts too much (pkg/registry/core/pod/storage.EvictionREST).

A PodDisruptionBudget that selects the Pod has to allow a disruption. Its status has their number: the eviction takes one. A
Pod that does not run, or is being deleted, needs none; nor does one that is not ready, if enough others are.
"""

from __future__ import annotations

from typing import Final

from noxu.api import errors
from noxu.api.errors import ApiError, Qualified
from noxu.api.selectors import label_selector
from noxu.registry.access import User
from noxu.registry.deletion import delete_body_from_object, delete_options
from noxu.registry.draft import (
    SUCCESS,
    Action,
    Body,
    DeleteOptions,
    Draft,
    Options,
    Preconditions,
    Writer,
    WriteRequest,
)
from noxu.registry.offload import offload
from noxu.registry.resource import Resource
from noxu.registry.stored_object import object_at
from noxu.registry.subresources import pods
from noxu.values import Object

ATTEMPTS: Final = 20
"""How often an eviction tries again after a conflict (EvictionsRetry)."""
MAX_DISRUPTED: Final = 2000
"""How many evicted Pods the status of a budget may contain (MaxDisruptedPodSize)."""
_SERVER: Final = User("system:apiserver", groups=("system:masters", "system:authenticated"))
_MANAGER: Final = "kube-apiserver"
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL_BUDGETS: Final[Object] = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    "code": 500,
}
"""Upstream returns it as the result of the request, with HTTP's code 201."""


def check(draft: Draft) -> None:
    """Raises ApiError unless the Eviction has the name in the URL."""
    if draft.new["metadata"].get("name", "") != draft.request.name:
        raise errors.bad_request("name in URL does not match name in Eviction object")


async def evict(draft: Draft) -> Object:
    """Delete the Pod if its budget allows it. Raises ApiError."""
    name, requested, writer = draft.request.name, _options(draft), Writer(draft.environment)
    pod = await pods.get(draft, name)
    for attempt in range(1, ATTEMPTS + 1):
        if not _needs_no_budget(pod):
            break
        options = requested if _is_over(pod) else _at_version_of(pod, requested)
        try:
            await _delete(draft, writer, options)
        except ApiError as error:
            if error.reason != "Conflict" or _has_version(requested) or attempt == ATTEMPTS:
                raise
            pod = await pods.get(draft, name)
        else:
            return dict(SUCCESS)
    budgets = await _budgets(draft, pod)
    if len(budgets) > 1:
        return dict(_SEVERAL_BUDGETS)
    options = requested
    if budgets:
        [budget] = budgets
        if _is_spare(pod, budget):
            options = _at_version_of(pod, requested)
        else:
            await _take(draft, writer, budget, dry_run=requested.dry_run)
    try:
        await _delete(draft, writer, options)
    except ApiError as error:
        if error.reason == "Conflict" and options is not requested:
            raise _still_processed(budgets[0]["metadata"]["name"]) from None
        raise
    return dict(SUCCESS)


def _options(draft: Draft) -> DeleteOptions:
    """The DeleteOptions in the Eviction; a dry run may be requested there, in the query, or in both. Raises ApiError."""
    sent, asked = draft.new.get("deleteOptions") or {}, draft.request.options.dry_run
    options = delete_options(delete_body_from_object(sent))
    return options._replace(dry_run=options.dry_run or asked)


# -- the Pod ----------------------------------------------------------------------------------------------------------


def _is_over(pod: Object) -> bool:
    """Whether a Pod has ended or is being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed") or bool(pod["metadata"].get("deletionTimestamp"))


def _needs_no_budget(pod: Object) -> bool:
    return _is_over(pod) or (pod.get("status") or {}).get("phase") == "Pending"


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def _has_version(options: DeleteOptions) -> bool:
    return options.preconditions.resource_version is not None


def _at_version_of(pod: Object, options: DeleteOptions) -> DeleteOptions:
    """The options with the precondition that the Pod is still the same, unless they have one."""
    if _has_version(options):
        return options
    version = pod["metadata"]["resourceVersion"]
    return options._replace(preconditions=options.preconditions._replace(resource_version=version))


async def _delete(draft: Draft, writer: Writer, options: DeleteOptions) -> None:
    """Delete the Pod, with a condition that says why. Raises ApiError."""
    resource, request = pods.resource_of(draft), draft.request

    def condition(pod: Object) -> None:
        _check_preconditions(pod["metadata"], options.preconditions)
        reason = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
        pods.set_condition(pod, {"type": "DisruptionTarget", "status": "True", **reason}, draft.now)

    if not options.dry_run:
        pod = await pods.update(draft, request.name, condition, dry_run=False)
        if _has_version(options):  # it has changed because of the condition
            version = pod["metadata"]["resourceVersion"]
            options = options._replace(preconditions=options.preconditions._replace(resource_version=version))
    deletion = WriteRequest(
        Action.DELETE,
        resource,
        request.namespace,
        request.name,
        delete_options=options,
        user=request.user,
        internal=True,
    )
    await writer.write(deletion, draft.outcome)


def _check_preconditions(metadata: Object, expected: Preconditions) -> None:
    name = metadata["name"]
    if expected.uid and expected.uid != metadata.get("uid", ""):
        raise pods.changed_meanwhile("UID", expected.uid, name, metadata.get("uid", ""), "deleted and then recreated")
    version = metadata["resourceVersion"]
    if expected.resource_version and expected.resource_version != version:
        raise pods.changed_meanwhile("ResourceVersion", expected.resource_version, name, version, "modified")


# -- budgets ----------------------------------------------------------------------------------------------------------


def _resource(draft: Draft) -> Resource:
    resource = draft.environment.served_resources.current.find("policy", "v1", "poddisruptionbudgets")
    assert resource is not None
    return resource


async def _budgets(draft: Draft, pod: Object) -> list[Object]:
    """The PodDisruptionBudgets that select a Pod."""
    resource, labels = _resource(draft), pod["metadata"].get("labels") or {}
    collection = await draft.environment.reader.collection(resource)
    keys = collection.select(f"{draft.request.namespace}/")
    entries = [collection.entries[key] for key in keys if key in collection.entries]

    def selecting() -> list[Object]:
        return [budget for entry in entries if _selects(budget := object_at(entry, resource), labels)]

    return await offload(sum(len(entry.stored) for entry in entries), selecting)


def _selects(budget: Object, labels: dict[str, str]) -> bool:
    try:
        return label_selector((budget.get("spec") or {}).get("selector")).matches(labels)
    except ValueError:
        return False


def _is_spare(pod: Object, budget: Object) -> bool:
    """Whether a Pod does not count: it is not ready, and its budget allows to evict such Pods."""
    if _is_ready(pod):
        return False
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    always = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return always or (desired > 0 and status.get("currentHealthy", 0) >= desired)


async def _take(draft: Draft, writer: Writer, budget: Object, *, dry_run: bool) -> None:
    """Take one of the disruptions that a budget allows. Raises ApiError."""
    resource, name = _resource(draft), budget["metadata"]["name"]
    namespace = draft.request.namespace
    for _ in range(ATTEMPTS):
        _take_one(budget, draft.request.name, draft.now)
        if dry_run:
            return
        body = Body({key: budget[key] for key in budget})
        request = WriteRequest(
            Action.REPLACE, resource, namespace, name, "status", body, Options(field_manager=_MANAGER), user=_SERVER,
            features=draft.request.features, deadline=draft.request.deadline,
        )  # fmt: skip
        try:
            await writer.write(request)
        except ApiError as error:
            if error.reason != "Conflict":
                raise
        else:
            return
        # as another eviction has left it
        budget = object_at(await draft.environment.reader.get(resource, namespace, name), resource)
    raise errors.timeout(f'couldn\'t update PodDisruptionBudget "{name}" due to conflicts', 10)


def _take_one(budget: Object, pod: str, now: str) -> None:
    """Change the status of a budget, in place, for the eviction of a Pod. Raises ApiError if it allows none."""
    metadata, status = budget["metadata"], budget.setdefault("status", {})
    name, allowed = metadata["name"], status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _still_processed(name)
    if allowed < 0:
        raise errors.forbidden(Qualified("policy", "poddisruptionbudget"), name, "pdb disruptions allowed is negative")
    disrupted = status.get("disruptedPods") or {}
    if len(disrupted) > MAX_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden(Qualified("policy", "poddisruptionbudget"), name, why)
    if allowed == 0:
        desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _refused(f"The disruption budget {name} needs {desired} healthy pods and has {current} currently")
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**disrupted, pod: now}  # until the controller of budgets sees that the Pod is gone
    if allowed == 1:
        _set_condition(status, now)


def _set_condition(status: Object, now: str) -> None:
    """The budget allows no further disruption (UpdateDisruptionAllowedCondition)."""
    conditions = status.get("conditions") or []
    new = {"type": "DisruptionAllowed", "status": "False", "observedGeneration": status.get("observedGeneration", 0)}
    new |= {"lastTransitionTime": now, "reason": "InsufficientPods", "message": ""}
    old = next((condition for condition in conditions if condition.get("type") == new["type"]), None)
    if old is not None and old.get("status") == new["status"]:
        new["lastTransitionTime"] = old.get("lastTransitionTime")
    status["conditions"] = [new if condition is old else condition for condition in conditions] + ([] if old else [new])


def _still_processed(budget: str) -> ApiError:
    return _refused(f"The disruption budget {budget} is still being processed by the server.", retry_after=10)


def _refused(message: str, *, retry_after: int = 0) -> ApiError:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    return ApiError(
        429, _REFUSED, "TooManyRequests", details | ({"retryAfterSeconds": retry_after} if retry_after else {})
    )
