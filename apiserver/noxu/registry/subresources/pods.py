"""Pods as their subresources read and write them: without admission and strategy, like the server itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.api.names import check_path_name
from noxu.registry.draft import Draft
from noxu.registry.persistence import attempt_again
from noxu.registry.resource import Resource
from noxu.registry.stored_object import new_entry, object_at
from noxu.values import Object, copy, equal

NO_NAME: Final = "Name parameter required."


def resource_of(draft: Draft) -> Resource:
    """The resource of Pods."""
    resource = draft.environment.served_resources.current.find("", "v1", "pods")
    assert resource is not None
    return resource


def check_name(name: str) -> None:
    """Raises ApiError."""
    if not name:
        raise errors.bad_request(NO_NAME)
    check_path_name(name)


async def get(draft: Draft, name: str) -> Object:
    """The newest state of a Pod in the namespace of the request. Raises ApiError NotFound."""
    resource = resource_of(draft)
    check_name(name)
    pod: Object = object_at(await draft.environment.reader.get(resource, draft.request.namespace, name), resource)
    return pod


async def update(draft: Draft, name: str, change: Callable[[Object], None], *, dry_run: bool) -> Object:
    """Change a Pod in place, again if another write comes first, and store it: the stored Pod. Raises ApiError.

    `change` refuses by raising ApiError. What it leaves as it is is not written.
    """
    resource, environment = resource_of(draft), draft.environment
    check_name(name)
    attempts = 1
    while True:
        current = await environment.reader.find(resource, draft.request.namespace, name)
        old = object_at(current, resource)
        pod: Object = copy(old)
        change(pod)
        if dry_run or equal(pod, old):
            return pod
        entry = new_entry(current.key, resource, pod, as_protobuf=environment.persistence.as_protobuf)
        if await environment.persistence.replace(current, entry):
            stored: Object = object_at(entry, resource)
            return stored
        attempts = await attempt_again(attempts, resource.group_resource, name)


def set_condition(pod: Object, condition: Object, now: str) -> None:
    """Add or replace a condition (podutil.UpdatePodCondition); its time changes with its status."""
    generation = pod["metadata"].get("generation")
    new = {**condition, "lastProbeTime": None, "lastTransitionTime": now}
    if generation:
        new["observedGeneration"] = generation
    status: Object = pod.setdefault("status", {})
    conditions: list[Object] = status.setdefault("conditions", [])
    for n, old in enumerate(conditions):
        if old.get("type") == new["type"]:
            if old.get("status") == new["status"]:
                new["lastTransitionTime"] = old.get("lastTransitionTime")
            conditions[n] = new  # in place: the others keep their order
            return
    conditions.append(new)


def changed_meanwhile(what: str, expected: str, name: str, actual: str, happened: str) -> ApiError:
    """A precondition of a deletion does not hold. `what` is UID or ResourceVersion."""
    why = f"the {what} in the precondition ({expected}) does not match the {what} in record ({actual}). "
    return errors.conflict(errors.Qualified("", "Pod"), name, f"{why}The object might have been {happened}")
