"""The simulated nodes, as their kubelets register them: `node-1` to `node-N`.

    capacity       cpu 32, memory 64Gi, pods 110, ephemeral-storage 256Gi
    addresses      InternalIP 172.18.0.1 and so on, Hostname
    pods           10.244.n.0/24
    conditions     Ready and the three pressures, as of a healthy node; labels and node info as of Linux on amd64

A node is registered once: one that a person deletes stays away until the server starts again. Cordons, taints and labels of
persons stay as they are.

A Node that a person creates with the annotation `noxu.dev/simulate: ready`, and without conditions, gets a kubelet, too: what its spec and
status do not say is as above, with addresses that no other node has.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from noxu import releases
from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.go.time import format_time
from noxu.releases import NEWEST
from noxu.values import Json, Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.objects import NODES, Objects, name_of
from noxu.workloads.pods import SIMULATE
from noxu.workloads.writes import NORMAL, Create, NamespacedName, NewEvent, Replace, Steps, stored, with_status

LOST: Final = "node-lost"
"""The value of its annotation `noxu.dev/simulate`."""
CAPACITY: Final = {"cpu": "32", "ephemeral-storage": "256Gi", "memory": "64Gi", "pods": "110"}
MACHINES: Final = ipaddress.ip_network("172.18.0.0/16")
PODS: Final = ipaddress.ip_network("10.244.0.0/16")
_POD_BITS: Final = 8
CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def node_names(number: int) -> list[str]:
    return [f"node-{n}" for n in range(1, number + 1)]


def node(name: str, number: int) -> Object:
    """The node that a kubelet registers. `number` begins with 1."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    pods = str(pod_network(number))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {"podCIDR": pods, "podCIDRs": [pods], "providerID": f"noxu://{name}"},
    }


def node_status(name: str, number: int, now: datetime, release: int = NEWEST) -> Object:
    """What a kubelet of a release of Kubernetes says of a machine that is ready."""
    return {
        "addresses": [
            {"type": "InternalIP", "address": str(MACHINES[number])},
            {"type": "Hostname", "address": name},
        ],
        "allocatable": dict(CAPACITY),
        "capacity": dict(CAPACITY),
        "conditions": healthy_conditions(now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "noxu://simulated",
            "kernelVersion": "",
            "kubeProxyVersion": "",
            "kubeletVersion": f"v{releases.named(release)}.0",
            "machineID": name,
            "operatingSystem": "linux",
            "osImage": "simulated",
            "systemUUID": "",
        },
    }


def healthy_conditions(now: datetime, before: Sequence[Object] = ()) -> list[Object]:
    """Those of a healthy node. `before` are its conditions until now: others than these stay."""
    time = format_time(now)
    earlier = {each["type"]: each for each in before}
    result = []
    for kind, status, reason, message in CONDITIONS:
        old = earlier.pop(kind, {"status": ""})
        since = old["lastTransitionTime"] if old["status"] == status else time
        posted = {"type": kind, "status": status, "lastHeartbeatTime": time, "lastTransitionTime": since}
        result.append({**posted, "reason": reason, "message": message})
    return [*result, *earlier.values()]


def is_lost(node: Object) -> bool:
    """Whether nothing is heard of a node, and nothing happens on it: its annotation says so."""
    return (node["metadata"].get("annotations") or {}).get(SIMULATE) == LOST


def pod_network(number: int) -> ipaddress.IPv4Network:
    """The addresses of the pods of a node: those of many nodes are in 10.0.0.0/8, from 10.244.0.0 on."""
    first = int(PODS.network_address) + ((number - 1) << _POD_BITS)
    return ipaddress.IPv4Network((first, 32 - _POD_BITS))


class NodeRegistration(WorkloadController):
    """Keys are the names of the nodes of this server."""

    name = "node-registration"
    kind = NODES
    account = "kubelet"
    field_manager = "kubelet"

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._numbers = {name: n for n, name in enumerate(node_names(config.nodes or 0), 1)}
        self._registered: set[str] = set()
        self._release = config.features.release

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        own = [NamespacedName("", name) for name in self._numbers if name not in self._registered]
        return [*own, *(name_of(each) for each in objects.all(NODES) if is_awaiting(each))]

    def affected(
        self, objects: Objects, kind: object, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if new is not None and is_awaiting(new):
            yield name_of(new)

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        found, number = objects.get(NODES, key), self._numbers.get(key.name)
        if number is None or key.name in self._registered:
            if found is not None and is_awaiting(found):
                yield from _registered(found, number or _free_number(objects, len(self._numbers)), now, self._release)
            return None
        if found is None:
            [result] = yield [Create(NODES, node(key.name, number))]
            found = stored(result)
            assert found is not None
        if not (found.get("status") or {}).get("conditions"):
            yield from _registered(found, number, now, self._release)
        self._registered.add(key.name)
        return None


def is_awaiting(node: Object) -> bool:
    """Whether a Node of a person waits for a kubelet."""
    annotations = node["metadata"].get("annotations") or {}
    return SIMULATE in annotations and not (node.get("status") or {}).get("conditions")


def _registered(found: Object, number: int, now: datetime, release: int) -> Steps:
    """Give a Node what its kubelet says about it; what it has stays."""
    name = found["metadata"]["name"]
    if not found["spec"].get("podCIDR"):
        made = node(name, number)
        metadata = {
            **found["metadata"],
            "labels": {**made["metadata"]["labels"], **(found["metadata"].get("labels") or {})},
        }
        [result] = yield [Replace(NODES, {**found, "metadata": metadata, "spec": {**made["spec"], **found["spec"]}})]
        found = stored(result) or found
    given = {field: value for field, value in (found.get("status") or {}).items() if _says_anything(value)}
    capacity = {**CAPACITY, **given.get("capacity", {})}
    resources = {"capacity": capacity, "allocatable": {**capacity, **given.get("allocatable", {})}}
    status = {**node_status(name, number, now, release), **given, **resources}
    [result] = yield [Replace(NODES, with_status(found, status), "status")]
    stored(result)
    yield [NewEvent(found, NORMAL, "Starting", "Starting kubelet.", host=name)]
    return None


def _says_anything(value: Json) -> bool:
    """Whether there is a value that is not empty: a new Node has a `nodeInfo` of empty texts."""
    return any(map(_says_anything, value.values())) if isinstance(value, dict) else bool(value)


def _free_number(objects: Objects, own: int) -> int:
    """The number of a further node: none of those before has its addresses."""
    networks = [(each.get("spec") or {}).get("podCIDR") for each in objects.all(NODES)]
    taken = {network for network in networks if network}
    return next(number for number in itertools.count(own + 1) if str(pod_network(number)) not in taken)
