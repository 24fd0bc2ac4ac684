"""The objects that workload controllers look at: decoded once a change, and indexed by namespace, controller (or none) and node.

All objects are shared: what reads them never changes them in place. `noxu.values.copy` makes one that may be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from noxu.values import Object
from noxu.workloads.label_index import LabelIndex
from noxu.workloads.writes import Kind, NamespacedName

EVENTS: Final[Kind] = ("", "events")
BINDINGS: Final[Kind] = ("", "bindings")
PODS: Final[Kind] = ("", "pods")
NODES: Final[Kind] = ("", "nodes")
NAMESPACES: Final[Kind] = ("", "namespaces")
SERVICES: Final[Kind] = ("", "services")
ENDPOINTS: Final[Kind] = ("", "endpoints")
ENDPOINT_SLICES: Final[Kind] = ("discovery.k8s.io", "endpointslices")
REPLICATION_CONTROLLERS: Final[Kind] = ("", "replicationcontrollers")
CLAIMS: Final[Kind] = ("", "persistentvolumeclaims")
VOLUMES: Final[Kind] = ("", "persistentvolumes")
STORAGE_CLASSES: Final[Kind] = ("storage.k8s.io", "storageclasses")
DEPLOYMENTS: Final[Kind] = ("apps", "deployments")
REPLICA_SETS: Final[Kind] = ("apps", "replicasets")
STATEFUL_SETS: Final[Kind] = ("apps", "statefulsets")
DAEMON_SETS: Final[Kind] = ("apps", "daemonsets")
REVISIONS: Final[Kind] = ("apps", "controllerrevisions")
JOBS: Final[Kind] = ("batch", "jobs")
CRON_JOBS: Final[Kind] = ("batch", "cronjobs")
BUDGETS: Final[Kind] = ("policy", "poddisruptionbudgets")
AUTOSCALERS: Final[Kind] = ("autoscaling", "horizontalpodautoscalers")
PRIORITY_CLASSES: Final[Kind] = ("scheduling.k8s.io", "priorityclasses")
LEASES: Final[Kind] = ("coordination.k8s.io", "leases")


def name_of(value: Object) -> NamespacedName:
    metadata = value["metadata"]
    return NamespacedName(metadata.get("namespace", ""), metadata["name"])


def labels_of(value: Object | None) -> Mapping[str, str]:
    return (value or _EMPTY).get("metadata", _EMPTY).get("labels") or _EMPTY


def controller_of(value: Object) -> Object | None:
    """The owner reference of the controller of an object (metav1.GetControllerOf)."""
    for owner in value["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            found: Object = owner
            return found
    return None


class Objects:
    """The newest state of the objects of some kinds. A kind that is not followed has none."""

    def __init__(self, objects: Iterable[tuple[Kind, Object]] = ()) -> None:
        self._kinds: dict[Kind, dict[str, dict[str, Object]]] = {}  # by namespace, by name
        self._controlled: dict[Kind, dict[str, dict[NamespacedName, Object]]] = {}  # by the uid of their controller
        self._orphans: dict[
            Kind, dict[str, dict[NamespacedName, Object]]
        ] = {}  # those without a controller, by namespace
        self._on_nodes: dict[str, dict[NamespacedName, Object]] = {}  # pods by node
        self._labels = LabelIndex()  # of pods
        for kind, value in objects:
            self.put(kind, value)

    # -- reading

    def get(self, kind: Kind, name: NamespacedName) -> Object | None:
        return self._kinds.get(kind, _NOTHING).get(name.namespace, _EMPTY).get(name.name)

    def all(self, kind: Kind) -> Iterator[Object]:
        """Those of all namespaces, in the order in which they came. It is a copy: what is written meanwhile is not in it."""
        for values in list(self._kinds.get(kind, _NOTHING).values()):
            yield from list(values.values())

    def within(self, kind: Kind, namespace: str) -> list[Object]:
        """Those of a namespace; "": those that are cluster-scoped."""
        return list(self._kinds.get(kind, _NOTHING).get(namespace, _EMPTY).values())

    def count(self, kind: Kind) -> int:
        """The number of those of all namespaces."""
        return sum(map(len, self._kinds.get(kind, _NOTHING).values()))

    def controlled_by(self, kind: Kind, uid: str) -> list[Object]:
        """Those whose controller has this uid."""
        return list(self._controlled.get(kind, {}).get(uid, {}).values())

    def orphans(self, kind: Kind, namespace: str) -> list[Object]:
        """Those of a namespace that have no controller: a selector may adopt them."""
        return list(self._orphans.get(kind, {}).get(namespace, {}).values())

    def on_node(self, node: str) -> list[Object]:
        """The pods that are bound to a node."""
        return list(self._on_nodes.get(node, {}).values())

    def pods_with(self, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """The pods of a namespace that have all these labels; all pods if there are none."""
        if not labels:
            return self.within(PODS, namespace)
        pods = self._kinds.get(PODS, _NOTHING).get(namespace, _EMPTY)
        return [
            pod
            for name in self._labels.names(namespace, labels)
            if labels.items() <= (pod := pods[name.name])["metadata"]["labels"].items()
        ]

    # -- following

    def put(self, kind: Kind, value: Object) -> Object | None:
        """Add an object or replace its older state, which is returned."""
        name = name_of(value)
        values = self._kinds.setdefault(kind, {}).setdefault(name.namespace, {})
        old = values.get(name.name)
        if old is not None:
            self._unindex(kind, name, old)
        values[name.name] = value
        if (owner := controller_of(value)) is not None:
            self._controlled.setdefault(kind, {}).setdefault(owner["uid"], {})[name] = value
        else:
            self._orphans.setdefault(kind, {}).setdefault(name.namespace, {})[name] = value
        if kind == PODS and (node := value["spec"].get("nodeName")):
            self._on_nodes.setdefault(node, {})[name] = value
        if kind == PODS:
            self._labels.put(name, labels_of(old), labels_of(value))
        return old

    def remove(self, kind: Kind, name: NamespacedName) -> Object | None:
        """Remove an object: its last state."""
        namespaces = self._kinds.get(kind, {})
        old = namespaces.get(name.namespace, {}).pop(name.name, None)
        if old is not None:
            self._unindex(kind, name, old)
            if kind == PODS:
                self._labels.put(name, labels_of(old), {})
            if not namespaces[name.namespace]:
                del namespaces[name.namespace]
        return old

    def clear(self) -> None:
        for index in (self._kinds, self._controlled, self._orphans, self._on_nodes, self._labels):
            index.clear()

    def _unindex(self, kind: Kind, name: NamespacedName, old: Object) -> None:
        if (owner := controller_of(old)) is not None:
            _drop(self._controlled[kind], owner["uid"], name)
        else:
            _drop(self._orphans[kind], name.namespace, name)
        if kind == PODS and (node := old["spec"].get("nodeName")):
            _drop(self._on_nodes, node, name)


_EMPTY: Final[dict[str, Any]] = {}  # never changed
_NOTHING: Final[dict[str, dict[str, Object]]] = {}


def _drop(index: dict[str, dict[NamespacedName, Object]], at: str, name: NamespacedName) -> None:
    entries = index[at]
    del entries[name]
    if not entries:
        del index[at]  # owners and nodes come and go
