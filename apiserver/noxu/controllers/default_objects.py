"""The objects that every cluster has from the start: system namespaces, priority classes, flow control, the range of services,
APIServices.

They are those of k8s.io/kubernetes: pkg/apis/scheduling/helpers.go, apiserver's
pkg/apis/flowcontrol/bootstrap/default.go, pkg/controlplane/controller/defaultservicecidr, the allocator of IP addresses
in pkg/registry/core/service, and kube- aggregator's autoregistration. Manifests have their defaults and the order of
declaration, so `stored` makes the same object of them as a create request, at a lower cost; a test compares both.

The objects that controllers would create one by one in a new store are stored together.

A new store is empty: no webhook and no policy can refuse or change objects. So a controller lists the objects that it
will create (`Reconciler.first_objects`), as manifests with all defaults, in the order of declaration. `create` stores
them as create requests would, but without the pipeline of a write, and in one transaction where the store has
transactions. A test compares the result with the result of writes, byte by byte.

A manifest may contain NOW for the time. A manifest becomes a template once in a process; uid and times are filled in
when it is stored:

    {"kind":"Namespace",…,"uid":"{uid}","creationTimestamp":"{now}",…,"time":"{now}","fieldsType":"FieldsV1",…}

A key of a controller whose objects are all stored is `fresh`: it is reconciled when its time comes. Objects that could not
be stored, because another server was faster or the store failed, are created as always: by reconciling their key.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Network
from typing import Any, Final, NamedTuple, Protocol

from noxu.api import codec
from noxu.clock import Clock, rfc3339_now
from noxu.identifiers import Identifiers
from noxu.registry.persistence import Persistence
from noxu.registry.resource import Resource
from noxu.registry.served_resources import PRIORITIES, Priority
from noxu.registry.stored_object import key_of
from noxu.values import Json, Object, copy
from noxu_storage.types import Key

APISERVER_MANAGER: Final = "kube-apiserver"
"""The field manager of what kube-apiserver itself writes."""
SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")
SERVICE_RANGE: Final = "10.0.0.0/24"
"""The addresses of services, unless the configuration has another network."""

AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
ON_START: Final = "onstart"
"""The label of an APIService that is created at the start, and left alone then."""
ALWAYS: Final = "true"
"""The label of an APIService that follows what is served."""

_FLOW_CONTROL: Final = "flowcontrol.apiserver.k8s.io/v1"
_FLOW_CONTROL_MANAGER: Final = "api-priority-and-fairness-config-producer-v1"
_AUTO_UPDATED: Final = {"apf.kubernetes.io/autoupdate-spec": "true"}
_MAPS: Final = frozenset({"labels", "annotations"})
_OWNED: Final = _MAPS | {
    "aggregationRule", "data", "distinguisherMethod", "exempt", "limited", "limitResponse", "parentRef", "queuing",
}  # fmt: skip
"""The objects that are owned themselves, besides their fields: maps, and those that may be absent."""
_ATOMIC: Final = frozenset({"roleRef"})
"""The objects that are owned as a whole."""
_WITH_STATUS: Final = frozenset({"APIService", "FlowSchema", "PriorityLevelConfiguration"})
"""The kinds whose status a create request cannot set."""
_SET_BY_SERVER: Final = {"Namespace": ("spec", "status"), "Service": ("spec.clusterIPs", "status")}
"""The fields that the server sets when it stores a new object."""
_LIST_KEYS: Final = {"conditions": ("type",)}
_SERVICE_KEYS: Final = {"ports": ("port", "protocol")}
"""The lists that are maps, and the fields that identify their items."""
_WITH_GENERATION: Final = frozenset({"EndpointSlice", "FlowSchema", "PriorityClass", "PriorityLevelConfiguration"})


# -- priority classes ---------------------------------------------------------------------------------------------------


def _priority_class(name: str, value: int, description: str) -> Object:
    return {
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name},
        "value": value,
        "description": description,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def priority_classes(_now: str, _services: str) -> list[Object]:
    return [
        _priority_class(
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        _priority_class(
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ]


# -- flow control -------------------------------------------------------------------------------------------------------

_LEVELS: Final = (
    # name, shares, lendable percents, queues, hand size
    ("system", 30, 33, 64, 6),
    ("node-high", 40, 25, 64, 6),
    ("leader-election", 10, 0, 16, 4),
    ("workload-high", 40, 50, 128, 6),
    ("workload-low", 100, 90, 128, 6),
    ("global-default", 20, 50, 128, 6),
)
_QUEUE_LENGTH: Final = 50


def _of_flow_control(kind: str, name: str) -> Object:
    return {"kind": kind, "apiVersion": _FLOW_CONTROL, "metadata": {"name": name, "annotations": _AUTO_UPDATED}}


def _level(name: str, spec: Object) -> Object:
    return {**_of_flow_control("PriorityLevelConfiguration", name), "spec": spec, "status": {}}


def _limited(shares: int, lendable: int, response: Object) -> Object:
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable}
    return {"type": "Limited", "limited": limited}


def _queue(queues: int, hand: int) -> Object:
    return {"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": _QUEUE_LENGTH}}


def priority_levels(_now: str, _services: str) -> list[Object]:
    exempt = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}}
    return [
        _level("exempt", exempt),
        _level("catch-all", _limited(5, 0, {"type": "Reject"})),
        *(_level(name, _limited(shares, lent, _queue(queues, hand))) for name, shares, lent, queues, hand in _LEVELS),
    ]


def _group(name: str) -> Object:
    return {"kind": "Group", "group": {"name": name}}


def _user(name: str) -> Object:
    return {"kind": "User", "user": {"name": name}}


def _resources(verbs: list[str], group: str, names: list[str], *, where: str = "*", in_cluster: bool = False) -> Object:
    rule: Object = {"verbs": verbs, "apiGroups": [group], "resources": names}
    if in_cluster:
        rule["clusterScope"] = True
    return {**rule, "namespaces": [where]}


_ALL: Final = [_resources(["*"], "*", ["*"], in_cluster=True)]
_ALL_PATHS: Final = [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
_PROBES: Final = [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]
_LOCK_VERBS: Final = ["get", "create", "update"]
_LOCKS: Final = ["endpoints", "configmaps"]
_LEASES: Final = _resources(_LOCK_VERBS, "coordination.k8s.io", ["leases"])
_NODE_OBJECTS: Final = [
    _resources(["*"], "", ["nodes", "nodes/status"], in_cluster=True),
    _resources(["*"], "coordination.k8s.io", ["leases"]),
]
_EVERYONE: Final = [_group("system:unauthenticated"), _group("system:authenticated")]
_NODES: Final = [_group("system:nodes")]
_MANAGER, _SCHEDULER = _user("system:kube-controller-manager"), _user("system:kube-scheduler")
_SYSTEM_ACCOUNTS: Final = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": "*"}}

_SCHEMAS: Final[tuple[tuple[str, str, int, str, list[Object], list[Object], list[Object]], ...]] = (
    # name, priority level, precedence, distinguisher, subjects, rules of resources, of other paths
    ("exempt", "exempt", 1, "", [_group("system:masters")], _ALL, _ALL_PATHS),
    ("catch-all", "catch-all", 10000, "ByUser", _EVERYONE, _ALL, _ALL_PATHS),
    ("system-nodes", "system", 500, "ByUser", _NODES, _ALL, _ALL_PATHS),
    ("system-node-high", "node-high", 400, "ByUser", _NODES, _NODE_OBJECTS, []),
    ("probes", "exempt", 2, "", _EVERYONE, [], _PROBES),
    ("system-leader-election", "leader-election", 100, "ByUser", [_MANAGER, _SCHEDULER, _SYSTEM_ACCOUNTS],
     [_resources(_LOCK_VERBS, "", _LOCKS, where="kube-system"), _LEASES], []),
    ("workload-leader-election", "leader-election", 200, "ByUser", [_SYSTEM_ACCOUNTS],
     [_resources(_LOCK_VERBS, "", _LOCKS), _LEASES], []),
    ("endpoint-controller", "workload-high", 150, "ByUser",
     [_MANAGER, *({"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": name}}
                  for name in ("endpoint-controller", "endpointslicemirroring-controller"))],
     [_resources(["get", "create", "update"], "", ["endpoints"])], []),
    ("kube-controller-manager", "workload-high", 800, "ByNamespace", [_MANAGER], _ALL, _ALL_PATHS),
    ("kube-scheduler", "workload-high", 800, "ByNamespace", [_SCHEDULER], _ALL, _ALL_PATHS),
    ("kube-system-service-accounts", "workload-high", 900, "ByNamespace", [_SYSTEM_ACCOUNTS], _ALL, _ALL_PATHS),
    ("service-accounts", "workload-low", 9000, "ByUser", [_group("system:serviceaccounts")], _ALL, _ALL_PATHS),
    ("global-default", "global-default", 9900, "ByUser", _EVERYONE, _ALL, _ALL_PATHS),
)  # fmt: skip


def flow_schemas(_now: str, _services: str) -> list[Object]:
    schemas = []
    for name, level, precedence, distinguisher, subjects, resources, paths in _SCHEMAS:
        rule: Object = {"subjects": subjects}
        rule |= {"resourceRules": resources} if resources else {}
        rule |= {"nonResourceRules": paths} if paths else {}
        spec: Object = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence}
        spec |= {"distinguisherMethod": {"type": distinguisher}} if distinguisher else {}
        spec["rules"] = [rule]
        schemas.append({**_of_flow_control("FlowSchema", name), "spec": spec, "status": {}})
    return schemas


# -- the range of services ----------------------------------------------------------------------------------------------


def service_ranges(now: str, services: str) -> list[Object]:
    ready = {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "",
        "message": "Kubernetes default Service CIDR is ready",
    }
    return [
        {
            "kind": "ServiceCIDR",
            "apiVersion": "networking.k8s.io/v1",
            "metadata": {"name": "kubernetes"},
            "spec": {"cidrs": [services]},
            "status": {"conditions": [ready]},
        }
    ]


@lru_cache(maxsize=8)
def first_address(network: str) -> str:
    """The address of the Service `kubernetes`: the first one of a network of IPv4."""
    return str(IPv4Network(network)[1])


def addresses(_now: str, services: str) -> list[Object]:
    labels = {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    parent = {"resource": "services", "namespace": "default", "name": "kubernetes"}
    return [
        {
            "kind": "IPAddress",
            "apiVersion": "networking.k8s.io/v1",
            "metadata": {"name": first_address(services), "labels": labels},
            "spec": {"parentRef": parent},
        }
    ]


# -- APIServices --------------------------------------------------------------------------------------------------------


def api_service(group: str, version: str, priority: Priority, managed: str) -> Object:
    """The APIService of a group version that is served here. The server adds its condition."""
    return {
        "kind": "APIService",
        "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {"name": f"{version}.{group}", "labels": {AUTOMANAGED: managed}},
        "spec": {
            **({"group": group} if group else {}),
            "version": version,
            "groupPriorityMinimum": priority.group,
            "versionPriority": priority.version,
        },
    }


def api_services(now: str, _services: str) -> list[Object]:
    available = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "Local",
        "message": "Local APIServices are always available",
    }
    return [
        {**api_service(group, version, priority, ON_START), "status": {"conditions": [available]}}
        for (group, version), priority in PRIORITIES.items()
    ]


# -- stored objects -----------------------------------------------------------------------------------------------------


def manager_of(kind: str) -> str:
    """The field manager of the objects of a kind."""
    is_of_flow_control = kind in ("FlowSchema", "PriorityLevelConfiguration")
    return _FLOW_CONTROL_MANAGER if is_of_flow_control else APISERVER_MANAGER


def sent(manifest: Object) -> Object:
    """A manifest as a create request has it: without what the server sets."""
    paths = _SET_BY_SERVER.get(manifest["kind"], ())
    if not paths:
        return manifest
    manifest = copy(manifest)
    for path in paths:
        parent, _, name = path.rpartition(".")
        (manifest[parent] if parent else manifest).pop(name, None)
    return manifest


def stored(manifest: Object, uid: str, now: str, manager: str) -> Object:
    """What a create request of a field manager makes of a manifest."""
    written = manifest["metadata"]
    metadata: Object = {name: written[name] for name in ("name", "namespace") if name in written}
    metadata["uid"] = uid
    if manifest["kind"] in _WITH_GENERATION:
        metadata["generation"] = 1
    metadata["creationTimestamp"] = now
    metadata |= {name: written[name] for name in ("labels", "annotations") if name in written}
    if owned := _owned(manifest):
        metadata["managedFields"] = [
            {
                "manager": manager,
                "operation": "Update",
                "apiVersion": manifest["apiVersion"],
                "time": now,
                "fieldsType": "FieldsV1",
                "fieldsV1": owned,
            }
        ]
    return {"kind": manifest["kind"], "apiVersion": manifest["apiVersion"], **manifest, "metadata": metadata}


def _owned(manifest: Object) -> Object:
    """The fields of a manifest that its manager owns."""
    manifest = sent(manifest)
    apart = {"kind", "apiVersion", "metadata"} | ({"status"} if manifest["kind"] in _WITH_STATUS else set())
    named = {name: item for name, item in manifest.items() if name not in apart and item is not None}
    metadata = {name: item for name, item in manifest["metadata"].items() if name in _MAPS}
    lists = _SERVICE_KEYS if manifest["kind"] == "Service" else _LIST_KEYS
    return _fields({"metadata": metadata, **named} if metadata else named, lists)


def _fields(value: Object, lists: Mapping[str, Sequence[str]]) -> Object:
    return {f"f:{name}": _field(name, value[name], lists) for name in sorted(value)}


def _field(name: str, value: Json, lists: Mapping[str, Sequence[str]]) -> Object:
    if name in lists:
        return {".": {}, **{_item(item, lists[name]): {".": {}, **_fields(item, lists)} for item in value}}
    if not isinstance(value, dict) or name in _ATOMIC:
        return {}
    return {".": {}, **_fields(value, lists)} if name in _OWNED else _fields(value, lists)


def _item(value: Object, keys: Sequence[str]) -> str:
    """The name of an item: k:{"type":"Ready"}."""
    return "k:" + codec.encode({key: value[key] for key in keys}, sort_keys=True).decode()


# -- first objects ----------------------------------------------------------------------------------------------------


NOW: Final = "{now}"
_UID: Final = "{uid}"
_UID_BYTES, _NOW_BYTES = _UID.encode(), NOW.encode()


class FirstObject(NamedTuple):
    """An object, and the key of the controller that keeps it. `template` is that of its manifest.

    `every`: after so many seconds the key is reconciled; None: after a change.
    """

    key: Hashable
    resource: Resource
    manifest: Object
    template: bytes
    every: float | None = None

    @property
    def stored_key(self) -> Key:
        metadata = self.manifest["metadata"]
        return key_of(self.resource, metadata.get("namespace", ""), metadata["name"])

    def filled(self, uid: str, now: bytes) -> bytes:
        """What is stored."""
        return self.template.replace(_UID_BYTES, uid.encode()).replace(_NOW_BYTES, now)


class Creating(Protocol):
    """Of a controller, what it creates in a new store, and the keys whose objects are stored, with their times."""

    fresh: dict[Any, float | None]

    def first_objects(self) -> Iterable[FirstObject]: ...


def template(manifest: Object, manager: str) -> bytes:
    """What is stored of a complete manifest by a field manager."""
    return codec.encode(stored(manifest, _UID, NOW, manager), sort_keys=False)


async def create(
    controllers: Iterable[Creating], persistence: Persistence, clock: Clock, identifiers: Identifiers
) -> None:
    """Store the first objects of controllers that are not started yet. Their keys become fresh."""
    wanted = [(controller, first) for controller in controllers for first in controller.first_objects()]
    now, new_uid = rfc3339_now(clock).encode(), identifiers.new_uid
    stored = await persistence.create_all([(first.stored_key, first.filled(new_uid(), now)) for _, first in wanted])
    missing = {
        (controller, first.key) for (controller, first), is_stored in zip(wanted, stored, strict=True) if not is_stored
    }
    for controller, first in wanted:
        if (controller, first.key) not in missing:
            controller.fresh[first.key] = first.every
