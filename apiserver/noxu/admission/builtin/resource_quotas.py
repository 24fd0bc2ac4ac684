"""ResourceQuota: a namespace does not use more than its quotas allow (k8s.io/apiserver's plugin/resourcequota).

The status of a quota says what is used; the quota controller keeps it. A write that uses more is added to it before it
is stored; writes in one namespace wait for each other meanwhile. If such a write fails afterwards, the controller
corrects the status later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from noxu.admission.attributes import Attributes, refusal
from noxu.admission.builtin.pods import Resources, plus
from noxu.admission.builtin.rules import objects, resource_of
from noxu.admission.builtin.usage import (
    IGNORED,
    Evaluator,
    difference,
    evaluator_of,
    hard,
    is_counted,
    printed,
    used,
)
from noxu.api import errors
from noxu.go.quantity import compare, sign
from noxu.registry.ownership import update_status
from noxu.registry.reader import key_of
from noxu.registry.resource import Resource
from noxu.registry.stored_object import StoredObject, new_entry, object_at
from noxu.values import Object

MANAGER: Final = "kube-apiserver"
ATTEMPTS: Final = 100  # to write a status that the controller changes, too


class ResourceQuotas:
    """The plug-in. It runs after all others, because what they refuse uses nothing."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turns] = {}

    async def validate(self, request: Attributes) -> None:
        """Raises ApiError."""
        resource = request.resource
        if not request.namespace or not resource.namespaced or resource.group_resource in IGNORED:
            return
        evaluator = evaluator_of(resource.group_resource)
        if request.operation == "DELETE" or not evaluator.handles(request.operation, request.subresource):
            return
        if not await objects(request, "", "resourcequotas", request.namespace):
            return
        async with self._turn(request.namespace):
            quotas = await objects(request, "", "resourcequotas", request.namespace)
            for _ in range(ATTEMPTS):
                changes = _changes(request, evaluator, quotas)
                if request.dry_run:
                    return
                names = {name for name, usage in changes.items() if not await _use(request, quotas, name, usage)}
                if not names:
                    return
                await asyncio.sleep(0)
                newest = await objects(request, "", "resourcequotas", request.namespace)
                quotas = [quota for quota in newest if quota["metadata"]["name"] in names]
            raise errors.internal_error("resource quota evaluation timed out")

    @asynccontextmanager
    async def _turn(self, namespace: str) -> AsyncIterator[None]:
        """One write of a namespace at a time."""
        turns = self._turns.setdefault(namespace, _Turns())
        turns.count += 1
        try:
            async with turns.lock:
                yield
        finally:
            turns.count -= 1
            if not turns.count:
                del self._turns[namespace]


class _Turns:
    """The lock of a namespace, and how many writes hold it or wait for it."""

    __slots__ = ("count", "lock")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.count = 0


def _changes(request: Attributes, evaluator: Evaluator, quotas: list[Object]) -> dict[str, Resources]:
    """What each quota that the write affects has used after it, by name (CheckRequest). Raises ApiError to refuse."""
    new, old = request.draft.new, request.draft.old
    affected = [quota for quota in quotas if is_counted(quota, evaluator, new)]
    for quota in affected:
        name, names = quota["metadata"]["name"], [resource for resource in hard(quota) if evaluator.counts(resource)]
        if lacking := evaluator.lacks(names, new):
            raise refusal(request, f"failed quota: {name}: {lacking}")
        if not used(quota).keys() >= set(names):
            raise refusal(request, f"status unknown for quota: {name}, resources: {','.join(sorted(names))}")
    now = request.draft.environment.clock.now().timestamp()
    try:
        usage = evaluator.uses(new, now)
        before = evaluator.uses(old, now) if old is not None else {}
    except ValueError as error:  # sums of resources that are out of range
        raise refusal(request, str(error)) from None
    if negative := sorted(name for name, quantity in usage.items() if sign(quantity) < 0):
        raise refusal(request, f"quota usage is negative for resource(s): {','.join(negative)}")
    changes = {}
    for quota in affected:
        counted = old is not None and is_counted(quota, evaluator, old)
        added = difference(usage, before) if counted else usage
        limits, total = hard(quota), used(quota)
        wanted = {name: quantity for name, quantity in added.items() if sign(quantity) and name in limits}
        if not wanted:
            continue
        after = plus(total, wanted)
        exceeded = sorted(name for name in wanted if compare(after[name], limits[name]) > 0)
        if exceeded and request.subresource != "status":
            parts = [
                ",".join(f"{name}={quantities[name]}" for name in exceeded if name in quantities)
                for quantities in (wanted, total, limits)
            ]
            why = f"requested: {parts[0]}, used: {parts[1]}, limited: {parts[2]}"
            raise refusal(request, f"exceeded quota: {quota['metadata']['name']}, {why}")
        changes[quota["metadata"]["name"]] = after
    return changes


async def _use(request: Attributes, quotas: list[Object], name: str, usage: Resources) -> bool:
    """Write what is used into the status of a quota; False if it has changed meanwhile."""
    resource = resource_of(request, "", "resourcequotas")
    version = next(quota["metadata"]["resourceVersion"] for quota in quotas if quota["metadata"]["name"] == name)
    collection = await request.reader.collection(resource)
    entry = collection.entries.get(key_of(resource, request.namespace, name))
    if entry is None:
        return True  # it was deleted, and does not limit anything
    if str(entry.revision) != version:
        return False
    updated = with_status(entry, resource, {"used": printed(usage)}, MANAGER, request.draft.now)
    return await request.draft.environment.persistence.replace(entry, updated)


def with_status(entry: StoredObject, resource: Resource, change: Object, by: str, now: str) -> StoredObject:
    """The entry of a quota with changed fields in its status, which `by` owns then."""
    quota = object_at(entry, resource)
    new = {**quota, "status": {**(quota.get("status") or {}), **change}}
    return new_entry(entry.key, resource, update_status(quota, new, resource, manager=by, now=now))
