"""How controllers create and delete pods of generated names, with Events about them (RealPodControl of pkg/controller/controller_utils.go)."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads.objects import PODS
from noxu.workloads.writes import NORMAL, WARNING, Create, Delete, NewEvent, Result, Write, is_gone, is_namespace_ending

Managing = Generator[Sequence[Write], Sequence[Result], ApiError | None]
"""Steps that give why they failed."""


def create_pods(owner: Object, pods: Sequence[Object]) -> Managing:
    """Create pods in batches of 1, 2, 4, … until one fails.

    This is upstream's slow start: a namespace with a small quota is not asked for a thousand pods, and has few Events.
    """
    size = 1
    events: list[NewEvent] = []
    failure: ApiError | None = None
    while pods and failure is None:
        batch, pods = pods[:size], pods[size:]
        results = yield [Create(PODS, pod) for pod in batch]
        failure = next((result for result in results if isinstance(result, ApiError)), None)
        for result in results:
            if isinstance(result, dict):
                message = f"Created pod: {result['metadata']['name']}"
                events.append(NewEvent(owner, NORMAL, "SuccessfulCreate", message))
            elif isinstance(result, ApiError) and not is_namespace_ending(result):
                events.append(NewEvent(owner, WARNING, "FailedCreate", f"Error creating: {result}"))
        size *= 2
    if events:
        yield events
    return None if is_namespace_ending(failure) else failure


def delete_pods(owner: Object, pods: Sequence[Object]) -> Managing:
    """Delete pods at the same time. One that is gone is no failure."""
    if not pods:
        return None
    results = yield [Delete(PODS, pod) for pod in pods]
    events, failure = [], None
    for pod, result in zip(pods, results, strict=True):
        if is_gone(result):
            continue
        if isinstance(result, ApiError):
            failure = failure or result
            events.append(NewEvent(owner, WARNING, "FailedDelete", f"Error deleting: {result}"))
        else:
            events.append(NewEvent(owner, NORMAL, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}"))
    if events:
        yield events
    return failure
