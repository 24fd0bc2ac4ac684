"""How a StatefulSet's pods and their claims are written, with Events about them (stateful_pod_control.go).

    Normal   SuccessfulCreate  create Claim data-web-0 Pod web-0 in StatefulSet web success
    Normal   SuccessfulCreate  create Pod web-0 in StatefulSet web successful
    Warning  FailedCreate      create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: …
    Normal   SuccessfulDelete  delete Pod web-0 in StatefulSet web successful

Pods of a parallel set are created in batches of 1, 2, 4 and so on, until one fails.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from noxu.api.errors import ApiError, aggregate
from noxu.values import Object
from noxu.workloads.objects import CLAIMS, PODS, Objects
from noxu.workloads.pods import is_terminating, phase
from noxu.workloads.stateful_sets.claims import claims_of, is_stale, new_claims, reowned
from noxu.workloads.stateful_sets.identity import (
    claim_templates,
    has_identity,
    has_storage,
    new_pod,
    ordinal_of,
    pod_name,
    with_identity,
    with_storage,
)
from noxu.workloads.stateful_sets.replicas import StatefulRollout
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Create,
    Delete,
    NewEvent,
    Replace,
    Result,
    Write,
    done,
    done_or_gone,
    is_namespace_ending,
    stored,
)

Writing = Generator[Sequence[Write], Sequence[Result], None]
"""Steps that raise the first ApiError, after an Event about each."""
MAX_BATCH = 500


def create_pods(objects: Objects, rollout: StatefulRollout, missing: Sequence[int]) -> Writing:
    """Create the claims of some ordinals, and then their pods (CreateStatefulPod)."""
    size = 1
    while missing:
        batch, missing = missing[:size], missing[size:]
        yield from _create_batch(objects, rollout, batch)
        size = min(2 * size, MAX_BATCH)


def _create_batch(objects: Objects, rollout: StatefulRollout, batch: Sequence[int]) -> Writing:
    stateful_set = rollout.stateful_set
    waiting = [n for n in batch if is_stale(objects, stateful_set, n, pod_name(stateful_set, n))]
    faults, failure = yield from _create_claims(objects, stateful_set, [n for n in batch if n not in waiting])
    events = [_event_about(stateful_set, "create", pod_name(stateful_set, n), text) for n, text in faults.items()]
    created = [n for n in batch if n not in waiting and n not in faults]
    pods = [Create(PODS, new_pod(stateful_set, rollout.revision_for(n), n)) for n in created]
    results = (yield pods) if pods else ()
    writes: list[Write] = []
    for n, result in zip(created, results, strict=True):
        if isinstance(result, dict):
            writes += reowned(objects, stateful_set, result)
        if not isinstance(result, ApiError) or not _is_silent(result):
            events.append(_event_about(stateful_set, "create", pod_name(stateful_set, n), _text(result)))
    if writes or events:
        done((yield [*writes, *events]))
    done([*results, failure])


def create_missing_claims(objects: Objects, rollout: StatefulRollout, pods: Sequence[Object]) -> Writing:
    """Those of pods that are pending (createMissingPersistentVolumeClaims)."""
    stateful_set = rollout.stateful_set
    pending = [pod for pod in pods if phase(pod) == "Pending"]
    faults, failure = yield from _create_claims(objects, stateful_set, [ordinal_of(pod) for pod in pending])
    yield from keep_claims(objects, rollout, [pod for pod in pending if ordinal_of(pod) not in faults])
    stored(failure)


def _create_claims(
    objects: Objects, stateful_set: Object, ordinals: Sequence[int]
) -> Generator[Sequence[Write], Sequence[Result], tuple[dict[int, str], ApiError | None]]:
    """Why the claims of some of the ordinals are not there, and the first error. One that is being deleted is no error: wait."""
    faults: dict[int, list[str]] = {}
    missing: list[tuple[int, Object]] = []
    failure: ApiError | None = None
    for ordinal in ordinals:
        found = {claim["metadata"]["name"]: claim for claim in claims_of(objects, stateful_set, ordinal)}
        ending = [f"pvc {name} is being deleted" for name, claim in found.items() if is_terminating(claim)]
        if ending:
            faults[ordinal] = ending
        if len(found) < len(claim_templates(stateful_set)):
            wanted = new_claims(stateful_set, ordinal)
            missing += [(ordinal, claim) for claim in wanted if claim["metadata"]["name"] not in found]
    if missing:
        results = yield [Create(CLAIMS, claim) for _, claim in missing]
        events = []
        for (ordinal, claim), result in zip(missing, results, strict=True):
            name = claim["metadata"]["name"]
            if isinstance(result, ApiError):
                failure = failure or result
                faults.setdefault(ordinal, []).append(f"failed to create PVC {name}: {result}")
            if not isinstance(result, ApiError) or not _is_silent(result):
                events.append(_event_about_claim(stateful_set, name, pod_name(stateful_set, ordinal), _text(result)))
        if events:
            yield events
    return {ordinal: aggregate(texts) for ordinal, texts in faults.items()}, failure


def delete_pods(rollout: StatefulRollout, pods: Sequence[Object]) -> Writing:
    """Delete pods; those that are gone meanwhile are gone."""
    if not pods:
        return
    results = yield [Delete(PODS, pod) for pod in pods]
    attempted = zip(pods, results, strict=True)
    yield [
        _event_about(rollout.stateful_set, "delete", pod["metadata"]["name"], _text(result))
        for pod, result in attempted
    ]
    done_or_gone(results)


def keep_claims(objects: Objects, rollout: StatefulRollout, pods: Sequence[Object]) -> Writing:
    """Give the claims of pods the owners of the policy (UpdatePodClaimForRetentionPolicy)."""
    if updates := [update for pod in pods for update in reowned(objects, rollout.stateful_set, pod)]:
        done((yield updates))


def repair(objects: Objects, rollout: StatefulRollout, pods: Sequence[Object]) -> Writing:
    """Give pods back the identity and the claims that a person took (UpdateStatefulPod)."""
    stateful_set = rollout.stateful_set
    yield from keep_claims(objects, rollout, pods)
    broken = [pod for pod in pods if not (has_identity(stateful_set, pod) and has_storage(stateful_set, pod))]
    if not broken:
        return
    lost = [ordinal_of(pod) for pod in broken if not has_storage(stateful_set, pod)]
    _, failure = yield from _create_claims(objects, stateful_set, lost)
    stored(failure)
    updates = []
    for pod in broken:
        identified = pod if has_identity(stateful_set, pod) else with_identity(stateful_set, pod)
        whole = identified if has_storage(stateful_set, pod) else with_storage(stateful_set, identified)
        updates.append(Replace(PODS, whole))
    results = yield updates
    attempted = zip(broken, results, strict=True)
    yield [_event_about(stateful_set, "update", pod["metadata"]["name"], _text(result)) for pod, result in attempted]
    done(results)


# -- events -----------------------------------------------------------------------------------------------------------


def _is_silent(error: ApiError) -> bool:
    """Whether an Event would say nothing: the object is there, or its namespace ends."""
    return error.reason == "AlreadyExists" or is_namespace_ending(error)


def _text(result: Result) -> str:
    return str(result) if isinstance(result, ApiError) else ""


def _event_about(stateful_set: Object, verb: str, pod: str, fault: str) -> NewEvent:
    """recordPodEvent. `fault`: "" if it has succeeded."""
    what = f"{verb} Pod {pod} in StatefulSet {stateful_set['metadata']['name']}"
    if fault:
        return NewEvent(stateful_set, WARNING, f"Failed{verb.title()}", f"{what} failed error: {fault}")
    return NewEvent(stateful_set, NORMAL, f"Successful{verb.title()}", f"{what} successful")


def _event_about_claim(stateful_set: Object, claim: str, pod: str, fault: str) -> NewEvent:
    """recordClaimEvent."""
    name = stateful_set["metadata"]["name"]
    if fault:
        message = f"create Claim {claim} for Pod {pod} in StatefulSet {name} failed error: {fault}"
        return NewEvent(stateful_set, WARNING, "FailedCreate", message)
    return NewEvent(
        stateful_set, NORMAL, "SuccessfulCreate", f"create Claim {claim} Pod {pod} in StatefulSet {name} success"
    )
