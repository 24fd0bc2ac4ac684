"""The pods of a DaemonSet: on which nodes they belong, and how one for a node is made (pkg/controller/daemon/util).

The scheduler binds them: a pod has a required node affinity to the name of its node. They tolerate what is wrong with a node:

    NoExecute   not-ready, unreachable
    NoSchedule  disk-pressure, memory-pressure, pid-pressure, unschedulable, and network-unavailable if they use the host's network
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from noxu.values import Object
from noxu.workloads.node_matching import KEEPS_OFF, matches_node, untolerated
from noxu.workloads.objects import PODS, Objects
from noxu.workloads.pods import FINISHED, is_terminating, phase, pod_from_template
from noxu.workloads.revisions import REVISION

GENERATION: Final = "pod-template-generation"
"""The label of a pod with the count of changes of its template, and the annotation of a set that counts them."""
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK: Final = (*_TOLERATED, ("network-unavailable", "NoSchedule"))


class Fit(NamedTuple):
    """Whether a new pod belongs on a node, and whether one that is there may stay."""

    should_run: bool
    may_stay: bool


NOWHERE: Final = Fit(should_run=False, may_stay=False)


def tolerations(spec: Object) -> list[Object]:
    """Those of a pod's spec, and those that all pods of DaemonSets have (AddOrUpdateDaemonPodTolerations)."""
    added = _TOLERATED_ON_HOST_NETWORK if spec.get("hostNetwork") else _TOLERATED
    found: list[Object] = list(spec.get("tolerations") or ())
    for name, effect in added:
        toleration = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        same = [
            n
            for n, one in enumerate(found)
            if {**one, "tolerationSeconds": None} == {**toleration, "tolerationSeconds": None}
        ]
        if same:
            found[same[0]] = toleration  # without tolerationSeconds
        else:
            found.append(toleration)
    return found


def fit(daemon_set: Object, node: Object) -> Fit:
    """NodeShouldRunDaemonPod. Cordons and resources do not count: the scheduler looks at the latter."""
    spec, metadata = daemon_set["spec"]["template"]["spec"], node["metadata"]
    if spec.get("nodeName") and spec["nodeName"] != metadata["name"]:
        return NOWHERE
    if not matches_node(spec, metadata.get("labels") or {}, metadata["name"]):
        return NOWHERE
    taints, tolerated = (node.get("spec") or {}).get("taints") or (), tolerations(spec)
    if untolerated(taints, tolerated, KEEPS_OFF) is None:
        return Fit(should_run=True, may_stay=True)
    return Fit(should_run=False, may_stay=untolerated(taints, tolerated, ("NoExecute",)) is None)


def new_pod(daemon_set: Object, node: str, digest: str) -> Object:
    """The pod for a node. `digest`: the hash of the revision of the template."""
    pod = pod_from_template(daemon_set["spec"]["template"], daemon_set)
    labels = pod["metadata"].setdefault("labels", {})
    if (generation := generation_of(daemon_set)) is not None:
        labels[GENERATION] = generation
    labels[REVISION] = digest
    spec = pod["spec"]
    spec["tolerations"] = tolerations(spec)
    affinity = dict(spec.get("affinity") or {})
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity["nodeAffinity"] = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: terms}
    spec["affinity"] = affinity
    return pod


def generation_of(daemon_set: Object) -> str | None:
    """How often the template has changed, as the label of a pod."""
    text = (daemon_set["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "")
    return text if text.isdecimal() else None


def is_updated(daemon_set: Object, pod: Object, digest: str) -> bool:
    """Whether a pod has the newest template (IsPodUpdated)."""
    labels, generation = pod["metadata"].get("labels") or {}, generation_of(daemon_set)
    return labels.get(REVISION) == digest or (generation is not None and labels.get(GENERATION) == generation)


def target_node(pod: Object) -> str:
    """The node of a pod, or that which it is made for; "" if it is for none (GetTargetNodeName)."""
    if name := pod["spec"].get("nodeName"):
        return str(name)
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            values: list[str] = field.get("values") or []
            if (field.get("key"), field.get("operator")) == ("metadata.name", "In") and len(values) == 1:
                return values[0]
    return ""


def by_node(objects: Objects, daemon_set: Object) -> dict[str, list[Object]]:
    """The pods that a set controls, by their nodes: the oldest first, those that are bound before all others.

    Without those that have finished and are being deleted: nothing is left to do with them.
    """
    found: dict[str, list[Object]] = {}
    pods = objects.controlled_by(PODS, daemon_set["metadata"]["uid"])
    for pod in sorted(pods, key=_age):
        if (node := target_node(pod)) and not (is_terminating(pod) and phase(pod) in FINISHED):
            found.setdefault(node, []).append(pod)
    return found


def _age(pod: Object) -> tuple[bool, str, str]:
    metadata = pod["metadata"]
    return not pod["spec"].get("nodeName"), metadata.get("creationTimestamp", ""), metadata["name"]


def without_node(nodes: Iterable[str], pods: Mapping[str, Sequence[Object]]) -> list[Object]:
    """The pods for nodes that are gone, and which were never bound: the garbage collector of pods does not know them."""
    there = set(nodes)
    lost = [pod for node, found in pods.items() if node not in there for pod in found]
    return [pod for pod in lost if not pod["spec"].get("nodeName") and not is_terminating(pod)]
