"""The cluster as the scheduler sees it: each node with what its pods use. It follows changes, and sums nothing up twice.

    put_node, remove_node     a node came, changed or went; pods may be bound to nodes that do not exist
    put_pod, remove_pod       a pod that is bound came, changed or went
    assume, forget            a pod is about to be bound: it counts at once, until it is bound or the binding fails

Pods that have ended count for nothing. Sources: pkg/scheduler/backend/cache, pkg/scheduler/framework/types.go (NodeInfo).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from noxu.values import Object
from noxu.workloads.objects import NODES, PODS, Objects, name_of
from noxu.workloads.pods import FINISHED, phase
from noxu.workloads.scheduler.resources import NON_ZERO, Amounts, add, amounts, requests_of, subtract
from noxu.workloads.scheduler.terms import AffinityTerm, terms
from noxu.workloads.writes import NamespacedName

_NONE: Final[Mapping[str, str]] = {}
_ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - nothing listens


class Port(NamedTuple):
    """A port of a host. `address` 0.0.0.0 is all of them."""

    address: str
    protocol: str
    number: int

    def conflicts(self, other: Port) -> bool:
        if (self.protocol, self.number) != (other.protocol, other.number):
            return False
        return self.address == other.address or _ALL_ADDRESSES in (self.address, other.address)


class PodFacts:
    """What the filters look at in a pod, read once."""

    __slots__ = (
        "affinity",
        "anti_affinity",
        "claims",
        "counted",
        "labels",
        "name",
        "namespace",
        "pod",
        "ports",
        "priority",
        "requests",
    )

    def __init__(self, pod: Object) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        self.pod = pod
        self.name = name_of(pod)
        self.namespace: str = self.name.namespace
        self.labels: Mapping[str, str] = metadata.get("labels") or _NONE
        self.priority: int = spec.get("priority") or 0
        self.requests: Amounts = requests_of(spec)
        self.counted: Amounts = requests_of(spec, NON_ZERO)
        """The requests as they count where nodes are compared."""
        self.ports: Sequence[Port] = host_ports(spec)
        self.claims: Sequence[UsedClaim] = used_claims(pod)
        affinity = spec.get("affinity") or {}
        self.affinity: Sequence[AffinityTerm] = self._required(affinity.get("podAffinity"))
        self.anti_affinity: Sequence[AffinityTerm] = self._required(affinity.get("podAntiAffinity"))

    def _required(self, affinity: Object | None) -> Sequence[AffinityTerm]:
        """The required terms of its PodAffinity or PodAntiAffinity."""
        required = (affinity or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
        return terms(required, self.namespace, self.labels)

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])


class UsedClaim(NamedTuple):
    """A claim that a pod uses. `is_ephemeral`: it is made for this pod."""

    name: str
    is_ephemeral: bool = False


def used_claims(pod: Object) -> Sequence[UsedClaim]:
    found = []
    for volume in pod["spec"].get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            found.append(UsedClaim(claim["claimName"]))
        elif volume.get("ephemeral") is not None:
            found.append(UsedClaim(f"{pod['metadata']['name']}-{volume['name']}", is_ephemeral=True))
    return found


def host_ports(spec: Object) -> Sequence[Port]:
    """The ports of the host that a pod takes: those of its containers and of its sidecars."""
    sidecars = [it for it in spec.get("initContainers") or () if it.get("restartPolicy") == "Always"]
    return [
        Port(port.get("hostIP") or _ALL_ADDRESSES, port.get("protocol") or "TCP", port["hostPort"])
        for container in (*sidecars, *(spec.get("containers") or ()))
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


class NodeFacts:
    """A node with its pods. `pods` are those that are bound to it, or assumed to be."""

    __slots__ = (
        "allocatable",
        "counted",
        "exclusive",
        "holding_ports",
        "is_unschedulable",
        "labels",
        "name",
        "node",
        "pods",
        "taints",
        "used",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.pods: dict[NamespacedName, PodFacts] = {}
        self.used: Amounts = {}
        self.counted: Amounts = {}
        self.exclusive: dict[NamespacedName, PodFacts] = {}
        """Its pods that have a required anti-affinity."""
        self.holding_ports: dict[NamespacedName, PodFacts] = {}
        self.set_node(None)

    def set_node(self, node: Object | None) -> None:
        self.node = node
        spec = (node or {}).get("spec") or {}
        self.labels: Mapping[str, str] = ((node or {}).get("metadata") or {}).get("labels") or _NONE
        self.taints: Sequence[Object] = spec.get("taints") or ()
        self.is_unschedulable = bool(spec.get("unschedulable"))
        self.allocatable: Amounts = amounts(((node or {}).get("status") or {}).get("allocatable"))

    def add(self, pod: PodFacts) -> None:
        self.pods[pod.name] = pod
        add(self.used, pod.requests)
        add(self.counted, pod.counted)
        if pod.anti_affinity:
            self.exclusive[pod.name] = pod
        if pod.ports:
            self.holding_ports[pod.name] = pod

    def remove(self, name: NamespacedName) -> PodFacts:
        pod = self.pods.pop(name)
        subtract(self.used, pod.requests)
        subtract(self.counted, pod.counted)
        self.exclusive.pop(name, None)
        self.holding_ports.pop(name, None)
        return pod

    def copy(self) -> NodeFacts:
        """One whose pods may be added and removed without changing this."""
        copied = NodeFacts(self.name)
        copied.set_node(self.node)
        for pod in self.pods.values():
            copied.add(pod)
        return copied


class Cluster:
    """The nodes with their pods, and the other objects, which are read where they are."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self._nodes: dict[str, NodeFacts] = {}  # those that exist, and those that do not but have pods
        self._sorted: list[NodeFacts] | None = None
        self._where: dict[NamespacedName, str] = {}
        self._nominated: dict[NamespacedName, tuple[PodFacts, str]] = {}
        for node in objects.all(NODES):
            self.put_node(node)
        for pod in objects.all(PODS):
            if counts(pod):
                self.put_pod(pod)

    # -- reading

    @property
    def nodes(self) -> Sequence[NodeFacts]:
        """Those that exist, by name."""
        if self._sorted is None:
            self._sorted = sorted((it for it in self._nodes.values() if it.node is not None), key=lambda it: it.name)
        return self._sorted

    def node(self, name: str) -> NodeFacts | None:
        found = self._nodes.get(name)
        return found if found is not None and found.node is not None else None

    def pods(self) -> Iterator[PodFacts]:
        """All pods that are on nodes that exist."""
        for node in self.nodes:
            yield from node.pods.values()

    def nominated_before(self, pod: PodFacts, node: str) -> Sequence[PodFacts]:
        """The pods that were nominated for a node, and are not less important than this one."""
        if not self._nominated:
            return ()
        return [
            other
            for other, where in self._nominated.values()
            if where == node and other.priority >= pod.priority and other.name != pod.name
        ]

    # -- following

    def nominate(self, pod: Object) -> None:
        """A pod that waits may have a node where others make room for it."""
        name, node = name_of(pod), (pod.get("status") or {}).get("nominatedNodeName")
        if node:
            self._nominated[name] = PodFacts(pod), node
        else:
            self._nominated.pop(name, None)

    def put_node(self, node: Object) -> None:
        self._at(node["metadata"]["name"]).set_node(node)
        self._sorted = None

    def remove_node(self, name: str) -> None:
        facts = self._nodes[name]
        facts.set_node(None)
        self._sorted = None
        self._drop_empty(facts)

    def put_pod(self, pod: Object) -> None:
        name = name_of(pod)
        self.remove_pod(name)
        self.assume(PodFacts(pod), pod["spec"]["nodeName"])

    def update_pod(self, pod: Object) -> None:
        """Only its status changed, or it is being deleted now."""
        node = self._where.get(name := name_of(pod))
        if node is not None:
            self._nodes[node].pods[name].pod = pod

    def remove_pod(self, name: NamespacedName) -> None:
        self._nominated.pop(name, None)
        node = self._where.pop(name, None)
        if node is not None:
            facts = self._nodes[node]
            facts.remove(name)
            self._drop_empty(facts)

    def assume(self, pod: PodFacts, node: str) -> None:
        self._nominated.pop(pod.name, None)
        self._where[pod.name] = node
        self._at(node).add(pod)

    def forget(self, name: NamespacedName) -> None:
        self.remove_pod(name)

    def _at(self, name: str) -> NodeFacts:
        if name not in self._nodes:
            self._nodes[name] = NodeFacts(name)
        return self._nodes[name]

    def _drop_empty(self, facts: NodeFacts) -> None:
        if facts.node is None and not facts.pods:
            del self._nodes[facts.name]


def counts(pod: Object) -> bool:
    """Whether a pod takes anything of a node: it is bound, and has not ended."""
    return bool(pod["spec"].get("nodeName")) and phase(pod) not in FINISHED
