"""How many replicas each ReplicaSet of a Deployment may have (pkg/controller/deployment/util, rolling.go, sync.go).

Pure arithmetic over Deployments and ReplicaSets:

    limits             maxSurge and maxUnavailable as numbers; not both are 0
    new_size           the new ReplicaSet grows as far as maxSurge allows
    shrunk             the old ones shrink, those that are not available first, as far as maxUnavailable allows
    proportional       a Deployment that is scaled while it rolls: each ReplicaSet gets its share
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from noxu.values import Object
from noxu.workloads.pods import number_of

DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"


# -- what there is ----------------------------------------------------------------------------------------------------


def wanted(value: Object) -> int:
    """The replicas that a Deployment or a ReplicaSet should have."""
    return int(value["spec"].get("replicas", 1))


def count(replica_set: Object, name: str) -> int:
    """A counter of its status."""
    return int((replica_set.get("status") or {}).get(name) or 0)


def total_wanted(replica_sets: Iterable[Object]) -> int:
    return sum(map(wanted, replica_sets))


def total(replica_sets: Iterable[Object], name: str) -> int:
    return sum(count(replica_set, name) for replica_set in replica_sets)


def active(replica_sets: Iterable[Object]) -> list[Object]:
    """Those that should have pods."""
    return [replica_set for replica_set in replica_sets if wanted(replica_set) > 0]


def age(replica_set: Object) -> tuple[str, str]:
    """A key that sorts older ones first."""
    metadata = replica_set["metadata"]
    return str(metadata.get("creationTimestamp") or ""), str(metadata["name"])


def annotated(replica_set: Object, name: str) -> int | None:
    """A number in an annotation; None: there is none."""
    text = (replica_set["metadata"].get("annotations") or {}).get(name, "")
    return int(text) if text.isdecimal() and text.isascii() else None


# -- what is allowed --------------------------------------------------------------------------------------------------


class RolloutLimits(NamedTuple):
    """The pods above `replicas`, and those below, during a roll-out."""

    surge: int
    unavailable: int


def rolls(deployment: Object) -> bool:
    """Whether its strategy is RollingUpdate."""
    strategy = deployment["spec"].get("strategy") or {}
    return str(strategy.get("type", "RollingUpdate")) == "RollingUpdate"


def limits(deployment: Object) -> RolloutLimits:
    """Percentages are rounded up for maxSurge and down for maxUnavailable. If both are 0, one may be unavailable."""
    replicas = wanted(deployment)
    if not rolls(deployment):
        return RolloutLimits(0, 0)
    update = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = number_of(update.get("maxSurge", 0), replicas, rounds_up=True)
    unavailable = number_of(update.get("maxUnavailable", 0), replicas, rounds_up=False)
    if not surge and not unavailable:
        unavailable = 1
    return RolloutLimits(surge, min(unavailable, replicas))


def maximum(deployment: Object) -> int:
    return wanted(deployment) + limits(deployment).surge


def minimum_available(deployment: Object) -> int:
    return wanted(deployment) - limits(deployment).unavailable


# -- roll-outs --------------------------------------------------------------------------------------------------------


def new_size(deployment: Object, new: int, others: Sequence[Object]) -> int:
    """The size of the new ReplicaSet, which has the size `new` (NewRSNewReplicas)."""
    replicas = wanted(deployment)
    if not rolls(deployment) or new > replicas:
        return replicas
    room = maximum(deployment) - total_wanted(others) - new
    return new + max(0, min(room, replicas - new))


def shrunk(deployment: Object, new: Object, old: Sequence[Object]) -> dict[str, int]:
    """The smaller sizes of the old ReplicaSets, by their names (reconcileOldReplicaSets).

    Pods of the new one that are not available yet count as missing: they do not make the old ones shrink further.
    """
    minimum = minimum_available(deployment)
    missing = wanted(new) - count(new, "availableReplicas")
    sizes = {found["metadata"]["name"]: wanted(found) for found in old}
    before = dict(sizes)
    ordered = sorted(active(old), key=age)

    unhealthy = total_wanted([*old, new]) - minimum - missing  # the most that may go
    if unhealthy <= 0:
        return {}
    for found in ordered:
        fewer = min(unhealthy, wanted(found) - count(found, "availableReplicas"))
        if fewer > 0:
            sizes[found["metadata"]["name"]] -= fewer
            unhealthy -= fewer

    surplus = total([*old, new], "availableReplicas") - minimum
    for found in ordered:
        fewer = min(surplus, sizes[found["metadata"]["name"]])
        if fewer > 0:
            sizes[found["metadata"]["name"]] -= fewer
            surplus -= fewer
    return {name: size for name, size in sizes.items() if size != before[name]}


# -- scaling ----------------------------------------------------------------------------------------------------------


def is_saturated(deployment: Object, new: Object | None) -> bool:
    """Whether the new ReplicaSet has all pods, and all of them are available."""
    replicas = wanted(deployment)
    return (
        new is not None
        and annotated(new, DESIRED) == replicas == wanted(new)
        and count(new, "availableReplicas") == replicas
    )


def only_active_or_newest(new: Object | None, old: Sequence[Object]) -> Object | None:
    """The one that takes the whole scale: the only one with pods or, without any, the newest. None: there are several."""
    with_pods = active([*old, *([new] if new else ())])
    if len(with_pods) == 1:
        return with_pods[0]
    if with_pods:
        return None
    return new or max(old, key=age, default=None)


def proportional(deployment: Object, replica_sets: Sequence[Object]) -> dict[str, int]:
    """The sizes of ReplicaSets with pods when the Deployment is scaled (scale of sync.go).

    The largest one takes what remains after rounding: the newer one of two when more are wanted, otherwise the older one.
    """
    allowed = maximum(deployment) if wanted(deployment) > 0 else 0
    to_add = allowed - total_wanted(replica_sets)
    ordered = sorted(replica_sets, key=age, reverse=to_add > 0)
    ordered.sort(key=wanted, reverse=True)
    sizes: dict[str, int] = {}
    added = 0
    for found in ordered:
        share = _share(deployment, found, to_add, added) if to_add else 0
        sizes[found["metadata"]["name"]] = wanted(found) + share
        added += share
    if ordered and to_add:
        first = ordered[0]["metadata"]["name"]
        sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _share(deployment: Object, replica_set: Object, to_add: int, added: int) -> int:
    """What a ReplicaSet gets of the pods to add, some of which others have got (GetReplicaSetProportion)."""
    allowed = to_add - added
    if not allowed or not wanted(replica_set):
        return 0
    fraction = _fraction(deployment, replica_set)
    return min(fraction, allowed) if to_add > 0 else max(fraction, allowed)


def _fraction(deployment: Object, replica_set: Object) -> int:
    size = wanted(replica_set)
    if not wanted(deployment):
        return -size
    before = annotated(replica_set, MAXIMUM) or count(deployment, "replicas")
    if not before:
        return 0
    return int(size * maximum(deployment) / before + 0.5) - size
