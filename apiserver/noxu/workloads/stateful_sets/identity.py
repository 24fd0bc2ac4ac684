"""Who a pod of a StatefulSet is: `SET-ORDINAL`, with labels, a host name and volumes of its own (stateful_set_utils.go)."""

from __future__ import annotations

from typing import Final

from noxu.values import Object
from noxu.workloads.pods import pod_from_template
from noxu.workloads.revisions import REVISION, template_of

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_MAX_ORDINAL: Final = 2**31 - 1


def parent_and_ordinal(pod: Object) -> tuple[str, int]:
    """The set and the ordinal in a pod's name; "" and -1 if it has none."""
    parent, dash, digits = pod["metadata"]["name"].rpartition("-")
    if not dash or not (digits.isascii() and digits.isdecimal()):
        return "", -1
    ordinal = int(digits[:11])
    return parent, ordinal if ordinal <= _MAX_ORDINAL else -1


def ordinal_of(pod: Object) -> int:
    return parent_and_ordinal(pod)[1]


def is_member(stateful_set: Object, pod: Object) -> bool:
    return bool(parent_and_ordinal(pod)[0] == stateful_set["metadata"]["name"])


def replicas_of(stateful_set: Object) -> int:
    return int(stateful_set["spec"].get("replicas", 1))


def ordinals(stateful_set: Object) -> range:
    """Those of the replicas."""
    start = int((stateful_set["spec"].get("ordinals") or {}).get("start", 0))
    return range(start, start + replicas_of(stateful_set))


def pod_name(stateful_set: Object, ordinal: int) -> str:
    return f"{stateful_set['metadata']['name']}-{ordinal}"


def claim_name(stateful_set: Object, template: Object, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{pod_name(stateful_set, ordinal)}"


def claim_templates(stateful_set: Object) -> list[Object]:
    found: list[Object] = stateful_set["spec"].get("volumeClaimTemplates") or []
    return found


def new_pod(stateful_set: Object, revision: Object, ordinal: int) -> Object:
    """The pod of an ordinal, from the template of a revision (newStatefulSetPod)."""
    pod = pod_from_template(template_of(revision), stateful_set, name=pod_name(stateful_set, ordinal))
    pod["spec"]["hostname"] = pod["metadata"]["name"]
    pod["spec"]["subdomain"] = stateful_set["spec"].get("serviceName", "")
    pod = with_storage(stateful_set, with_identity(stateful_set, pod))
    pod["metadata"]["labels"][REVISION] = revision["metadata"]["name"]
    return pod


def revision_of(pod: Object) -> str:
    """The name of the revision that a pod is made from."""
    return str((pod["metadata"].get("labels") or {}).get(REVISION, ""))


def has_identity(stateful_set: Object, pod: Object) -> bool:
    """identityMatches. The label of the index does not count: pods of older clusters have none."""
    name = pod["metadata"]["name"]
    return is_member(stateful_set, pod) and (pod["metadata"].get("labels") or {}).get(POD_NAME) == name


def with_identity(stateful_set: Object, pod: Object) -> Object:
    metadata, ordinal = pod["metadata"], ordinal_of(pod)
    labels = {**(metadata.get("labels") or {}), POD_NAME: pod_name(stateful_set, ordinal), POD_INDEX: str(ordinal)}
    return {**pod, "metadata": {**metadata, "labels": labels}}


def has_storage(stateful_set: Object, pod: Object) -> bool:
    """Whether a pod mounts all claims of its set (storageMatches)."""
    ordinal = ordinal_of(pod)
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for template in claim_templates(stateful_set):
        volume = volumes.get(template["metadata"]["name"]) or {}
        claim = volume.get("persistentVolumeClaim") or {}
        if claim.get("claimName") != claim_name(stateful_set, template, ordinal):
            return False
    return True


def with_storage(stateful_set: Object, pod: Object) -> Object:
    """A pod with the claims of its set: they replace volumes of the template that have the same names."""
    ordinal, templates = ordinal_of(pod), claim_templates(stateful_set)
    if not templates:
        return pod
    claimed = {template["metadata"]["name"]: claim_name(stateful_set, template, ordinal) for template in templates}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claimed.items()]
    others = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in claimed]
    return {**pod, "spec": {**pod["spec"], "volumes": [*volumes, *others]}}
