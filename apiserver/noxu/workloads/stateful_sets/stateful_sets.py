"""The steps of a StatefulSet (pkg/controller/statefulset/stateful_set_control.go).

    pods         adopt and release them by selector and name
    revisions    that of the template, which is created if no earlier one is equal, and that of the pods before
    replicas     from the first ordinal on: delete finished pods, create missing ones with their claims, wait for those that are not
                 available; a parallel set does not wait
    condemned    from the last ordinal on: delete them, one at a time, unless a pod that stays is not available
    update       delete old pods from the last ordinal down to the partition
    status, history

A set that waits for a pod of a broken template waits for ever: a person deletes the pod after the template is right again, as in a
cluster. A set that is being deleted only counts its pods.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads import revisions
from noxu.workloads.engine import WorkloadController
from noxu.workloads.objects import CLAIMS, PODS, REVISIONS, STATEFUL_SETS, Objects, controller_of, name_of
from noxu.workloads.ownership import candidates, claimed, selects
from noxu.workloads.pods import is_terminating, looked_at, next_available
from noxu.workloads.stateful_sets.claims import sets_of_claim
from noxu.workloads.stateful_sets.identity import is_member, ordinals, parent_and_ordinal, revision_of
from noxu.workloads.stateful_sets.pod_control import (
    create_missing_claims,
    create_pods,
    delete_pods,
    keep_claims,
    repair,
)
from noxu.workloads.stateful_sets.replicas import (
    StatefulRollout,
    condemned,
    is_finished,
    pods_of,
    status_of,
    strategy_of,
    to_update,
)
from noxu.workloads.writes import Kind, NamespacedName, Replace, Result, Steps, Write, done, stored, with_status

Managing = Generator[Sequence[Write], Sequence[Result], bool]
"""Steps that say whether the next ones may follow. Raises ApiError."""


class StatefulSets(WorkloadController):
    name = "statefulset-controller"
    kind = STATEFUL_SETS
    looks_at = (PODS, REVISIONS, CLAIMS)
    workers = 5  # --concurrent-statefulset-syncs

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return reconcile(objects, key, now)

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        value = new or old or {}
        if kind == STATEFUL_SETS:
            yield name_of(value)
        elif kind == PODS and (old and looked_at(old)) != (new and looked_at(new)):
            yield from _sets_of_pod(objects, old, new)
        elif kind == CLAIMS and new is None:  # a pod may wait until a claim is gone
            namespace, name = name_of(value)
            yield from (
                NamespacedName(namespace, parent)
                for parent in sets_of_claim(name)
                if objects.get(STATEFUL_SETS, NamespacedName(namespace, parent)) is not None
            )


def _sets_of_pod(objects: Objects, old: Object | None, new: Object | None) -> Iterable[NamespacedName]:
    """Those that control a pod, or that could adopt it."""
    found = {}
    for pod in (old, new):
        if pod is None:
            continue
        namespace, owner = pod["metadata"]["namespace"], controller_of(pod)
        parent = (
            parent_and_ordinal(pod)[0] if owner is None else owner["name"] if owner["kind"] == "StatefulSet" else ""
        )
        if parent and (owner is not None or objects.get(STATEFUL_SETS, NamespacedName(namespace, parent)) is not None):
            found[NamespacedName(namespace, parent)] = True
    return found


def reconcile(objects: Objects, key: NamespacedName, now: datetime) -> Steps:
    stateful_set = objects.get(STATEFUL_SETS, key)
    if stateful_set is None:
        return None
    known = yield from revisions.owned(objects, stateful_set)
    found = candidates(objects, PODS, stateful_set)
    yield from claimed(PODS, found, stateful_set, lambda pod: _selects(stateful_set, pod))
    rollout = yield from _rollout(objects, stateful_set, known, now)
    if rollout is None:
        return None

    failure: ApiError | None = None
    if not is_terminating(stateful_set):
        try:
            yield from _manage(objects, rollout)
        except ApiError as error:
            failure = error

    pods = pods_of(objects, stateful_set)
    status = status_of(rollout, pods.values())
    newest = objects.get(STATEFUL_SETS, key)
    if newest is not None and status != newest.get("status"):
        stored(*(yield [Replace(STATEFUL_SETS, with_status(newest, status), "status")]))
    if failure is not None:
        raise failure  # it is tried again, with growing delays
    yield from _clean_up(stateful_set, rollout, known, pods.values())
    return next_available(pods.values(), rollout.min_ready_seconds, now)


def _selects(stateful_set: Object, pod: Object) -> bool:
    return is_member(stateful_set, pod) and selects(stateful_set["spec"].get("selector"), pod)


# -- revisions --------------------------------------------------------------------------------------------------------


def _rollout(
    objects: Objects, stateful_set: Object, known: Sequence[Object], now: datetime
) -> Generator[Sequence[Write], Sequence[Result], StatefulRollout | None]:
    """The revision of the template and the one before. None: a set that is being deleted has lost its own."""
    status = stateful_set.get("status") or {}
    collisions, number = int(status.get("collisionCount", 0)), revisions.number_of(known[-1]) + 1 if known else 1
    equal = [revision for revision in known if revisions.has_template_of(revision, stateful_set)]
    if equal:
        update = equal[-1]
        if update is not known[-1]:  # an earlier template comes back
            update = yield from revisions.renumbered(update, number)
    elif is_terminating(stateful_set):
        return None
    else:
        created = yield from revisions.create(objects, stateful_set, number, revisions.HASH, collisions)
        update, collisions = created[0], created[1] or 0
    named = [revision for revision in known if revision["metadata"]["name"] == status.get("currentRevision")]
    return StatefulRollout(stateful_set, named[0] if named else update, update, collisions, now)


def _clean_up(
    stateful_set: Object, rollout: StatefulRollout, known: Sequence[Object], pods: Iterable[Object]
) -> Generator[Sequence[Write], Sequence[Result], None]:
    """Delete the oldest revisions that no pod has (truncateHistory)."""
    live = {revision["metadata"]["name"] for revision in (rollout.current, rollout.update)} | set(
        map(revision_of, pods)
    )
    limit = int(stateful_set["spec"].get("revisionHistoryLimit", 10))
    if surplus := revisions.surplus(known, live, limit):
        done((yield surplus))


# -- pods -------------------------------------------------------------------------------------------------------------


def _manage(objects: Objects, rollout: StatefulRollout) -> Managing:
    stateful_set = rollout.stateful_set
    wanted, pods = ordinals(stateful_set), pods_of(objects, stateful_set)
    for group in [[ordinal] for ordinal in wanted] if rollout.is_monotonic else [[*wanted]]:
        if not (yield from _manage_replicas(objects, rollout, group, pods)):
            return False
    surplus = condemned(stateful_set, pods)
    yield from keep_claims(objects, rollout, surplus)
    if not (yield from _manage_condemned(objects, rollout, surplus)):
        return False
    if strategy_of(stateful_set) == "OnDelete":
        return True
    pods = pods_of(objects, stateful_set)
    yield from delete_pods(rollout, to_update(rollout, [pods.get(ordinal) for ordinal in wanted]))
    return True


def _manage_replicas(
    objects: Objects, rollout: StatefulRollout, wanted: Sequence[int], pods: Mapping[int, Object]
) -> Managing:
    """Those of some ordinals: one, unless the set is parallel (processReplica). `pods`: all that were there before."""
    found = [pod for ordinal in wanted if (pod := pods.get(ordinal)) is not None]
    finished = [pod for pod in found if is_finished(pod)]
    yield from delete_pods(rollout, [pod for pod in finished if not is_terminating(pod)])
    missing = [ordinal for ordinal in wanted if ordinal not in pods]
    yield from create_pods(objects, rollout, missing)
    if rollout.is_monotonic and (finished or missing):
        return False
    living = [pod for pod in found if not is_finished(pod)]
    yield from create_missing_claims(objects, rollout, living)
    if rollout.is_monotonic and any(is_terminating(pod) or not rollout.may_follow(pod) for pod in living):
        return False
    yield from repair(objects, rollout, living)
    return True


def _manage_condemned(objects: Objects, rollout: StatefulRollout, surplus: Sequence[Object]) -> Managing:
    """Scale down: pods with the highest ordinals first, and one at a time unless the set is parallel (processCondemned)."""
    if not rollout.is_monotonic:
        yield from delete_pods(rollout, [pod for pod in surplus if not is_terminating(pod)])
        return True
    if not surplus:
        return True
    last = surplus[0]
    pods = pods_of(objects, rollout.stateful_set)
    in_order = [*(pods.get(ordinal) for ordinal in ordinals(rollout.stateful_set)), *reversed(surplus)]
    first_unavailable = next((pod for pod in in_order if rollout.is_unavailable(pod)), None)
    if not is_terminating(last) and (rollout.may_follow(last) or last is first_unavailable):
        yield from delete_pods(rollout, [last])
    return False
