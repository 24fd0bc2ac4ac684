"""endpointslice-controller: the EndpointSlices of a Service with a selector are its pods (pkg/controller/endpointslice,
k8s.io/endpointslice: reconciler.go, utils.go).

A slice has endpoints of one family of addresses and one set of ports, at most MAX_ENDPOINTS of them: see slices.py. A Service
without any has one slice without endpoints. Slices have the labels of their Service, and are deleted with it by the garbage
collector. `spec.trafficDistribution` becomes hints; those of topology-aware routing are not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from noxu.values import Object
from noxu.workloads import service_pods
from noxu.workloads.engine import WorkloadController
from noxu.workloads.objects import ENDPOINT_SLICES, NODES, PODS, SERVICES, Objects, name_of
from noxu.workloads.pods import is_ready, is_terminating
from noxu.workloads.service_pods import Family
from noxu.workloads.slices import (
    MANAGED_BY,
    SERVICE_NAME,
    Endpoints,
    PortsKey,
    SliceChanges,
    carried_out,
    identity,
    is_managed,
    new_slice,
    packed,
    ports_key,
    service_of,
    slices_of,
)
from noxu.workloads.writes import Kind, NamespacedName, Steps

MAX_ENDPOINTS: Final = 100
MANAGER: Final = "endpointslice-controller.k8s.io"
ZONE: Final = "topology.kubernetes.io/zone"
_RESERVED: Final = (SERVICE_NAME, MANAGED_BY, service_pods.HEADLESS)
_NEAR: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")


class EndpointSliceController(WorkloadController):
    """Keys are the names of Services."""

    name = "endpointslice-controller"
    kind = SERVICES
    looks_at = (PODS, NODES, ENDPOINT_SLICES)
    component = "endpoint-slice-controller"
    workers = 5

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if kind == PODS:
            yield from service_pods.services_of(objects, old, new)
        elif kind == SERVICES:
            yield name_of(new or old or {})
        elif kind == NODES:
            if old is None or new is None:  # pods of a node that does not exist are no endpoints
                for pod in objects.on_node((new or old or {})["metadata"]["name"]):
                    yield from service_pods.services_of(objects, None, pod)
        else:
            for value in (old, new):
                if value is not None and is_managed(value, MANAGER) and (name := service_of(value)):
                    yield name

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        service = objects.get(SERVICES, key)
        if service is None or not service_pods.wants_endpoints(service):
            return None
        pods = service_pods.selected(objects, service)
        existing = slices_of(objects, key, MANAGER)
        families = service_pods.families(service)
        changes = SliceChanges(deleted=[old for old in existing if old["addressType"] not in families])
        for family in families:
            own = [old for old in existing if old["addressType"] == family]
            changes |= changes_of(service, _Situation(objects, pods, family), own)
        changes = _timed(changes, service, pods, existing)
        if is_terminating(service):
            changes = changes._replace(created=())  # the garbage collector deletes what is there
        return (yield from carried_out(changes.writes()))


class _Situation:
    """The pods of a Service and the nodes, as endpoints of one family."""

    def __init__(self, objects: Objects, pods: Sequence[Object], family: Family) -> None:
        self.family = family
        self._objects, self._pods = objects, pods

    def desired(self, service: Object) -> dict[PortsKey, tuple[list[Object], Endpoints]]:
        """By their ports, the ports and the endpoints."""
        result: dict[PortsKey, tuple[list[Object], Endpoints]] = {}
        publishes_all = service["spec"].get("publishNotReadyAddresses")
        for pod in self._pods:
            if not service_pods.belongs(pod, if_terminating=True):
                continue
            ports = _ports(service, pod)
            _, endpoints = result.setdefault(ports_key(ports), (ports, {}))
            node = self._objects.get(NODES, NamespacedName("", pod["spec"].get("nodeName") or ""))
            if node is None and not publishes_all:
                continue
            if addresses := service_pods.addresses(pod, self.family):
                endpoint = _endpoint(service, pod, node, addresses)
                endpoints[identity(endpoint)] = endpoint
        return result


def changes_of(service: Object, situation: _Situation, existing: Sequence[Object]) -> SliceChanges:
    """The changes of the slices of one family."""
    family, uid = situation.family, service["metadata"]["uid"]
    owned = [old for old in existing if _is_owned(old, uid)]
    foreign = [old for old in existing if not _is_owned(old, uid)]  # of a Service of the same name that is gone
    by_ports: dict[PortsKey, list[Object]] = {}
    for old in owned:
        by_ports.setdefault(ports_key(old.get("ports")), []).append(old)
    changes = SliceChanges(deleted=foreign)
    desired = situation.desired(service)
    for key, (ports, endpoints) in desired.items():

        def create(endpoints: list[Object], ports: list[Object] = ports) -> Object:
            return new_slice(service, _labels(service), family, ports, endpoints)

        def labelled(old: Object) -> Object | None:
            return _relabelled(old, service)

        changes |= packed(by_ports.pop(key, ()), endpoints, MAX_ENDPOINTS, labelled, create)
    changes |= SliceChanges(deleted=[old for values in by_ports.values() for old in values])
    if not changes.created and len(changes.deleted) == len(existing):
        placeholder = new_slice(service, _labels(service), family, [], [])
        [*_, last] = changes.deleted or [{}]
        if len(changes.deleted) == 1 and _is_placeholder(last, placeholder):
            return SliceChanges()
        changes |= SliceChanges(created=[placeholder])
    return _with_hints(changes, service, owned).recycled(lambda old: _is_owned(old, uid))


def _is_owned(value: Object, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in value["metadata"].get("ownerReferences") or ())


def _is_placeholder(old: Object, placeholder: Object) -> bool:
    wanted = placeholder["metadata"]
    return (
        not old.get("endpoints")
        and not old.get("ports")
        and old["metadata"].get("labels") == wanted["labels"]
        and old["metadata"].get("ownerReferences") == wanted["ownerReferences"]
    )


# -- labels and times -------------------------------------------------------------------------------------------------


def _labels(service: Object) -> Object:
    labels = {key: value for key, value in (service["metadata"].get("labels") or {}).items() if key not in _RESERVED}
    if service_pods.is_headless(service):
        labels[service_pods.HEADLESS] = ""
    return {**labels, SERVICE_NAME: service["metadata"]["name"], MANAGED_BY: MANAGER}


def _relabelled(old: Object, service: Object) -> Object | None:
    """A slice with the labels of its Service; None: it has them."""
    labels, wanted = old["metadata"].get("labels") or {}, _labels(service)
    if _own(labels) == _own(wanted):
        return None
    return {**old, "metadata": {**old["metadata"], "labels": wanted}}


def _own(labels: Object) -> Object:
    return {key: value for key, value in labels.items() if key not in _RESERVED}


def _timed(changes: SliceChanges, service: Object, pods: Sequence[Object], existing: Sequence[Object]) -> SliceChanges:
    """The changes with the time of what has caused them."""
    if not changes.created and not changes.updated:
        return changes
    before = _endpoints_of(existing)
    after = _endpoints_of((*changes.created, *changes.updated))
    different = {uid for uid, endpoint in after.items() if before.get(uid) != endpoint}
    changed = [pod for pod in pods if pod["metadata"]["uid"] in different] if existing else None
    time = service_pods.trigger_time(service, changed)

    def timed(value: Object) -> Object:
        return {**value, "metadata": service_pods.with_trigger_time(value["metadata"], time)}

    return changes._replace(
        created=[timed(value) for value in changes.created], updated=[timed(value) for value in changes.updated]
    )


def _endpoints_of(slices: Iterable[Object]) -> dict[str, object]:
    return {
        endpoint["targetRef"]["uid"]: endpoint.get("conditions")
        for value in slices
        for endpoint in value.get("endpoints") or ()
        if endpoint.get("targetRef")
    }


# -- endpoints --------------------------------------------------------------------------------------------------------


def _endpoint(service: Object, pod: Object, node: Object | None, addresses: list[str]) -> Object:
    serving, ending = is_ready(pod), is_terminating(pod)
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not ending)
    endpoint: Object = {
        "addresses": addresses,
        "conditions": {"ready": ready, "serving": serving, "terminating": ending},
        "targetRef": service_pods.reference(pod),
    }
    if name := service_pods.hostname(pod, service):
        endpoint["hostname"] = name
    if node_name := pod["spec"].get("nodeName"):
        endpoint["nodeName"] = node_name
    if node is not None and (zone := (node["metadata"].get("labels") or {}).get(ZONE)):
        endpoint["zone"] = zone
    return endpoint


def _ports(service: Object, pod: Object) -> list[Object]:
    ports = []
    for port in service["spec"].get("ports") or ():
        if (number := service_pods.port_of(pod, port)) is not None:
            value = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol") or "TCP"}
            ports.append({**value, **({"appProtocol": port["appProtocol"]} if port.get("appProtocol") else {})})
    return ports


def _with_hints(changes: SliceChanges, service: Object, existing: Sequence[Object]) -> SliceChanges:
    """The changes with hints that prefer near endpoints, or without any (trafficdist)."""
    preference = service["spec"].get("trafficDistribution")
    near = preference in _NEAR
    changed = {value["metadata"]["name"] for value in (*changes.updated, *changes.deleted)}
    unchanged = [value for value in existing if value["metadata"]["name"] not in changed]

    def hinted(value: Object) -> Object:
        return {**value, "endpoints": [_hinted(each, near, preference) for each in value.get("endpoints") or ()]}

    different = [new for old in unchanged if (new := hinted(old))["endpoints"] != (old.get("endpoints") or [])]
    return changes._replace(
        created=[hinted(value) for value in changes.created],
        updated=[*(hinted(value) for value in changes.updated), *different],
    )


def _hinted(endpoint: Object, near: bool, preference: str | None) -> Object:
    if near and not (endpoint.get("conditions") or {}).get("ready"):
        return endpoint
    hints: Object = {}
    if near and endpoint.get("zone"):
        hints["forZones"] = [{"name": endpoint["zone"]}]
    if preference == "PreferSameNode" and endpoint.get("nodeName"):
        hints["forNodes"] = [{"name": endpoint["nodeName"]}]
    rest = {key: value for key, value in endpoint.items() if key != "hints"}
    return {**rest, "hints": hints} if hints else rest
