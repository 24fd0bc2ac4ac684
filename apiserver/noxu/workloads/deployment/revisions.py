"""The ReplicaSets of a Deployment as its revisions: one for each template (pkg/controller/deployment/util/deployment_util.go).

    deployment.kubernetes.io/revision           of the Deployment and of its ReplicaSets: counts the templates
    deployment.kubernetes.io/revision-history   the earlier revisions of a ReplicaSet to which the Deployment came back
    pod-template-hash                           the label that tells the pods of ReplicaSets apart; also part of their names

The hash is FNV-1 of the template's JSON and the count of collisions. Upstream hashes how Go prints its structs, which differs
between its versions; so templates are compared, not hashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from noxu.identifiers import hashed
from noxu.values import Object, copy
from noxu.workloads.deployment.sizes import DESIRED, MAXIMUM, age, maximum, wanted
from noxu.workloads.ownership import owner_reference

REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
HASH: Final = "pod-template-hash"
MAX_HISTORY: Final = 2000
"""Characters."""
UNLIMITED: Final = 2**31 - 1
MAX_NAME: Final = 253
NOT_COPIED: Final = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
    )
)
"""Annotations of a Deployment that its ReplicaSets do not get."""


def find_new(deployment: Object, replica_sets: Iterable[Object]) -> Object | None:
    """The oldest of the ReplicaSets that have the Deployment's template."""
    template = _without_hash(deployment["spec"]["template"])
    ordered = sorted(replica_sets, key=age)
    return next((found for found in ordered if _without_hash(found["spec"]["template"]) == template), None)


def _without_hash(template: Object) -> Object:
    metadata = dict(template.get("metadata") or {})
    labels = {name: value for name, value in (metadata.pop("labels", None) or {}).items() if name != HASH}
    given = {name: value for name, value in metadata.items() if value}
    return {"metadata": {**given, "labels": labels}, "spec": template.get("spec")}


def template_hash(template: Object, collisions: int | None) -> str:
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    counted = b"" if collisions is None else collisions.to_bytes(8, "little")
    return hashed(text.encode() + counted)


def new_replica_set(deployment: Object, collisions: int | None) -> Object:
    """The ReplicaSet of the Deployment's template, without replicas."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = copy(spec["template"])
    digest = template_hash(template, collisions)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: digest}
    template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
    selector = copy(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: digest}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name'][: MAX_NAME - len(digest) - 1]}-{digest}",
            "namespace": metadata["namespace"],
            "labels": dict(labels),
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": 0,
            **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
            "selector": selector,
            "template": template,
        },
    }


# -- annotations ------------------------------------------------------------------------------------------------------


def annotations_of(value: Object) -> dict[str, str]:
    return dict(value["metadata"].get("annotations") or {})


def with_annotations(value: Object, annotations: dict[str, str]) -> Object:
    metadata = {name: given for name, given in value["metadata"].items() if name != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {**value, "metadata": metadata}


def revision_of(value: Object) -> int | None:
    """0 without a revision; None: it is no number."""
    try:
        return int(annotations_of(value).get(REVISION, "0"))
    except ValueError:
        return None


def next_revision(old: Iterable[Object]) -> int:
    return 1 + max((revision_of(found) or 0 for found in old), default=0)


def with_revision(deployment: Object, replica_set: Object, revision: int) -> Object:
    """The new ReplicaSet with the annotations of its Deployment and its revision (SetNewReplicaSetAnnotations).

    A revision that is higher already stays: older ReplicaSets may have been deleted.
    """
    annotations = annotations_of(replica_set)
    annotations |= {name: text for name, text in annotations_of(deployment).items() if name not in NOT_COPIED}
    before = revision_of(replica_set)
    if before is not None and before < revision:
        if REVISION in annotations:  # the Deployment came back to it
            annotations |= _history(annotations.get(HISTORY, ""), annotations[REVISION])
        annotations[REVISION] = str(revision)
    return with_annotations(replica_set, annotations)


def _history(history: str, revision: str) -> dict[str, str]:
    """The history with another revision: the oldest ones go when it is too long."""
    if not history:
        return {HISTORY: revision}
    revisions = [*history.split(","), revision]
    while len(",".join(revisions)) > MAX_HISTORY:
        del revisions[0]
    return {HISTORY: ",".join(revisions)}


def with_sizes(replica_set: Object, size: int, deployment: Object) -> Object:
    """A ReplicaSet of another size, with the annotations from which its share is found when the Deployment is scaled."""
    sizes = {DESIRED: str(wanted(deployment)), MAXIMUM: str(maximum(deployment))}
    resized = with_annotations(replica_set, annotations_of(replica_set) | sizes)
    return {**resized, "spec": {**replica_set["spec"], "replicas": size}}


# -- clean-up ---------------------------------------------------------------------------------------------------------


def superfluous(deployment: Object, old: Sequence[Object]) -> list[Object]:
    """The ReplicaSets without pods that are older than revisionHistoryLimit allows, the oldest ones first."""
    limit = deployment["spec"].get("revisionHistoryLimit")
    if limit is None or limit == UNLIMITED:
        return []
    alive = [found for found in old if not found["metadata"].get("deletionTimestamp")]
    number = len(alive) - limit
    if number <= 0:
        return []
    ordered = sorted(alive, key=lambda found: (revision_of(found) or 0, *age(found)))
    return [found for found in ordered[:number] if _has_no_pods(found)]


def _has_no_pods(replica_set: Object) -> bool:
    status, generation = replica_set.get("status") or {}, replica_set["metadata"].get("generation", 0)
    return not (status.get("replicas") or wanted(replica_set) or generation > status.get("observedGeneration", 0))
