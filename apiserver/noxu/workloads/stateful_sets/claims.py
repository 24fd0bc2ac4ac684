"""The PersistentVolumeClaims of a StatefulSet's pods, and who owns them (stateful_pod_control.go, stateful_set_utils.go).

    whenScaled  whenDeleted   owner of a replica's claim   owner of a condemned pod's claim
    Retain      Retain        none                         none
    Retain      Delete        the set                      the set
    Delete      Retain        none                         the pod
    Delete      Delete        the set                      the pod

So the garbage collector deletes a claim with what owns it. A claim that another controller owns, or an earlier object of the same
name, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from noxu.values import Object, copy
from noxu.workloads.objects import CLAIMS, Objects
from noxu.workloads.ownership import owner_reference
from noxu.workloads.stateful_sets.identity import claim_name, claim_templates, ordinal_of, ordinals
from noxu.workloads.writes import NamespacedName, Replace

DELETE: Final = "Delete"


def new_claims(stateful_set: Object, ordinal: int) -> list[Object]:
    """The claims of an ordinal, from the templates."""
    spec, namespace = stateful_set["spec"], stateful_set["metadata"]["namespace"]
    labels = (spec.get("selector") or {}).get("matchLabels") or {}
    made = []
    for template in claim_templates(stateful_set):
        metadata = dict(template["metadata"])
        metadata.pop("creationTimestamp", None)
        metadata |= {"name": claim_name(stateful_set, template, ordinal), "namespace": namespace}
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]}
        made.append(copy(claim))
    return made


def claims_of(objects: Objects, stateful_set: Object, ordinal: int) -> list[Object]:
    """Those of an ordinal that are there."""
    namespace = stateful_set["metadata"]["namespace"]
    names = [claim_name(stateful_set, template, ordinal) for template in claim_templates(stateful_set)]
    found = [objects.get(CLAIMS, NamespacedName(namespace, name)) for name in names]
    return [claim for claim in found if claim is not None]


def is_stale(objects: Objects, stateful_set: Object, ordinal: int, pod_name: str) -> bool:
    """Whether a claim still belongs to an earlier pod of a name, which was scaled down: it has to go first (PodClaimIsStale)."""
    if _policy(stateful_set, "whenScaled") != DELETE:
        return False
    return any(
        _is_reference_to(owner, "Pod", pod_name)
        for claim in claims_of(objects, stateful_set, ordinal)
        for owner in _owners(claim)
    )


def reowned(objects: Objects, stateful_set: Object, pod: Object) -> list[Replace]:
    """Updates of the claims of a pod whose owners are not those of the policy."""
    updates = []
    for claim in claims_of(objects, stateful_set, ordinal_of(pod)):
        owners = wanted_owners(claim, stateful_set, pod)
        if owners != _owners(claim):
            metadata = {**claim["metadata"], "ownerReferences": owners}
            if not owners:
                del metadata["ownerReferences"]
            updates.append(Replace(CLAIMS, {**claim, "metadata": metadata}))
    return updates


def wanted_owners(claim: Object, stateful_set: Object, pod: Object) -> Sequence[Object]:
    """The owner references that a claim has by the policy (isClaimOwnerUpToDate, updateClaimOwnerRefForSetAndPod)."""
    owners, ours = _owners(claim), (stateful_set, pod)
    if any(_is_reference_to(owner, *_named(one)) and not _owns(owner, one) for owner in owners for one in ours):
        return owners  # of an earlier set or pod: it is left to the garbage collector
    others = [owner for owner in owners if not any(_is_reference_to(owner, *_named(one)) for one in ours)]
    wanted = _owner_by_policy(stateful_set, pod)
    if _has_policy(stateful_set) and any(owner.get("controller") for owner in others):
        return others
    kept = [owner for owner in owners if wanted and _owns(owner, wanted) and owner.get("controller")]
    if wanted is None:
        return others
    return owners if kept and len(others) + 1 == len(owners) else [*others, owner_reference(wanted)]


def _owner_by_policy(stateful_set: Object, pod: Object) -> Object | None:
    is_condemned = ordinal_of(pod) not in ordinals(stateful_set)
    if is_condemned and _policy(stateful_set, "whenScaled") == DELETE:
        return pod
    return stateful_set if _policy(stateful_set, "whenDeleted") == DELETE else None


def _policy(stateful_set: Object, when: str) -> str:
    return str((stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}).get(when) or "Retain")


def _has_policy(stateful_set: Object) -> bool:
    return DELETE in (_policy(stateful_set, "whenScaled"), _policy(stateful_set, "whenDeleted"))


def _owners(claim: Object) -> Sequence[Object]:
    found: Sequence[Object] = claim["metadata"].get("ownerReferences") or []
    return found


def _named(owner: Object) -> tuple[str, str]:
    return owner["kind"], owner["metadata"]["name"]


_GROUPS: Final = {"Pod": "v1", "StatefulSet": "apps/v1"}


def _is_reference_to(reference: Object, kind: str, name: str) -> bool:
    """matchesRef: the uid may be another one."""
    return (reference.get("apiVersion"), reference.get("kind"), reference.get("name")) == (_GROUPS[kind], kind, name)


def _owns(reference: Object, owner: Object) -> bool:
    return bool(reference.get("uid") == owner["metadata"].get("uid"))


def sets_of_claim(name: str) -> Iterable[str]:
    """The names that the set of a claim may have: those between a dash and the ordinal."""
    parent, _, _ = name.rpartition("-")
    while parent:
        _, dash, parent = parent.partition("-")
        if dash:
            yield parent
