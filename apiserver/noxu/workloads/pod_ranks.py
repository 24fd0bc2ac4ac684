"""Which pods a controller deletes first (ActivePodsWithRanks of pkg/controller/controller_utils.go).

The first of these rules that tells two pods apart decides:

    1. not assigned to a node                       before assigned
    2. Pending, Unknown                             before Running
    3. not ready                                    before ready
    4. a lower `controller.kubernetes.io/pod-deletion-cost`
    5. more related pods on its node                before fewer
    6. ready for a shorter time                     before longer
    7. more restarts of a container                 before fewer
    8. created later                                before earlier

Times are compared as powers of two of their age, so that chance decides between pods of about the same age: their uids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cmp_to_key
from typing import Final, NamedTuple

from noxu.expressions import expression
from noxu.go.time import unix_nanos
from noxu.values import Object
from noxu.workloads.pods import condition, is_active, is_ready

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_cost: Final = expression(r"0|-?[0-9]+")


def pods_to_delete(pods: Sequence[Object], related: Iterable[Object], number: int, now: datetime) -> list[Object]:
    """So many of the pods, those that are missed least. `related` are the pods of all controllers that have the same owner."""
    if number >= len(pods):
        return [*pods]
    on_nodes = Counter(_node(pod) for pod in related if is_active(pod))
    nanos = int(now.timestamp() * 10**6) * 1000
    ranked = [_Ranked.of(pod, on_nodes[_node(pod)], nanos) for pod in pods]
    return [rank.pod for rank in sorted(ranked, key=cmp_to_key(_order))[:number]]


class _Age(NamedTuple):
    """A time of a pod, 0 if there is none, and the power of two of its age in nanoseconds; -1: it has none."""

    nanos: int
    power: int


class _Ranked(NamedTuple):
    pod: Object
    first: tuple[object, ...]
    """Rules 1 to 5."""
    ready: _Age
    restarts: int
    created: _Age

    @classmethod
    def of(cls, pod: Object, rank: int, now: int) -> _Ranked:
        status = pod.get("status") or {}
        ready = is_ready(pod)
        first = (bool(_node(pod)), _PHASES.get(status.get("phase", ""), 0), ready, deletion_cost(pod), -rank)
        since = (condition(pod, "Ready") or {}).get("lastTransitionTime") if ready else None
        restarts = max((found.get("restartCount", 0) for found in status.get("containerStatuses") or ()), default=0)
        return cls(pod, first, _age(since, now), restarts, _age(pod["metadata"].get("creationTimestamp"), now))


def deletion_cost(pod: Object) -> int:
    """A cost that is no number of 32 bits is 0."""
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    cost = int(text) if _cost.fullmatch(text) and (text[0] != "0" or text == "0") else 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _node(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _age(text: str | None, now: int) -> _Age:
    if not text:
        return _Age(0, -1)
    nanos = unix_nanos(text)
    return _Age(nanos, (now - nanos).bit_length() - 1 if now > nanos else -1)


def _order(one: _Ranked, other: _Ranked) -> int:
    if one.first != other.first:
        return -1 if one.first < other.first else 1
    if one.ready.nanos != other.ready.nanos:
        return _younger(one, other, one.ready, other.ready)
    if one.restarts != other.restarts:
        return other.restarts - one.restarts
    if one.created.nanos != other.created.nanos:
        return _younger(one, other, one.created, other.created)
    return 0


def _younger(one: _Ranked, other: _Ranked, age: _Age, other_age: _Age) -> int:
    if not age.nanos or not other_age.nanos:
        return 1 if age.nanos else -1
    if age.power != other_age.power:
        return age.power - other_age.power
    return -1 if one.pod["metadata"]["uid"] < other.pod["metadata"]["uid"] else 1
