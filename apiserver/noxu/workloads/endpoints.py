"""endpoints-controller: the Endpoints of a Service with a selector are its pods, those that are ready and those that are not
(pkg/controller/endpoint/endpoints_controller.go, pkg/api/endpoints/util.go).

Endpoints have the name of their Service, and go with it. At most MAX_ADDRESSES addresses are in them: ready ones first, then
they are annotated as truncated. EndpointSlices have all of them, see endpoint_slices.py.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from noxu.api.errors import ApiError
from noxu.values import Object
from noxu.workloads import service_pods
from noxu.workloads.engine import WorkloadController
from noxu.workloads.objects import ENDPOINTS, PODS, SERVICES, Objects, name_of
from noxu.workloads.pods import is_ready
from noxu.workloads.writes import (
    WARNING,
    Create,
    Delete,
    Kind,
    NamespacedName,
    NewEvent,
    Replace,
    Steps,
    done,
    is_namespace_ending,
    stored,
)

MAX_ADDRESSES: Final = 1000
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"


class EndpointsController(WorkloadController):
    """Keys are the names of Services."""

    name = "endpoints-controller"
    kind = SERVICES
    looks_at = (PODS, ENDPOINTS)
    account = "endpoint-controller"
    workers = 5

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        """Endpoints without a Service are left from one that was deleted meanwhile."""
        leftover = (value for value in objects.all(ENDPOINTS) if not _elects(value))
        return dict.fromkeys(name_of(value) for values in (objects.all(SERVICES), leftover) for value in values)

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if kind == PODS:
            yield from service_pods.services_of(objects, old, new)
        elif kind == SERVICES or new is None:
            yield name_of(new or old or {})

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        service, found = objects.get(SERVICES, key), objects.get(ENDPOINTS, key)
        if service is None:
            if found is not None and not _elects(found):
                done((yield [Delete(ENDPOINTS, found)]))
            return None
        if not service_pods.wants_endpoints(service):
            return None
        pods = service_pods.selected(objects, service)
        every = subsets(service, pods)
        fewer = truncated(every)
        wanted = every if fewer is None else fewer
        if found is not None and _is_up_to_date(found, service, wanted, fewer is not None):
            return None
        value = _endpoints(service, found, wanted, fewer is not None, _changed(pods, found, wanted))
        [result] = yield [Create(ENDPOINTS, value) if found is None else Replace(ENDPOINTS, value)]
        if isinstance(result, ApiError) and not (found is None and is_namespace_ending(result)):
            yield [_failure(value, found is None, result)]
            stored(result)
        return None


def _elects(endpoints: Object) -> bool:
    return service_pods.ELECTION in (endpoints["metadata"].get("annotations") or {})


# -- subsets ----------------------------------------------------------------------------------------------------------


def subsets(service: Object, pods: Iterable[Object]) -> list[Object]:
    """The addresses of pods, grouped by their ports (RepackSubsets). Each address is in one subset for all its ports."""
    [family, *_] = service_pods.families(service)
    any_is_ready = bool(service["spec"].get("publishNotReadyAddresses"))
    by_ports: dict[tuple[object, ...], tuple[list[Object], list[Object], list[Object]]] = {}
    for pod in pods:
        if not service_pods.belongs(pod, if_terminating=any_is_ready):
            continue
        ports = _ports(service, pod)
        if ports is None or not (own := service_pods.addresses(pod, family)):
            continue
        key = tuple(tuple(sorted(port.items())) for port in ports)
        _, ready, unready = by_ports.setdefault(key, (ports, [], []))
        (ready if any_is_ready or is_ready(pod) else unready).append(_address(pod, service, own[0]))
    return [
        _subset(ports, ready, unready)
        for ports, ready, unready in sorted(by_ports.values(), key=lambda group: str(group[0]))
    ]


def _ports(service: Object, pod: Object) -> list[Object] | None:
    """The ports of a pod; None: it has none of those of the Service."""
    listed = service["spec"].get("ports") or ()
    if not listed:
        return [] if service["spec"].get("clusterIP") == "None" else None
    ports = []
    for port in listed:
        if (number := service_pods.port_of(pod, port)) is not None:
            given = {key: port[key] for key in ("name", "appProtocol") if port.get(key)}
            ports.append({**given, "port": number, "protocol": port.get("protocol") or "TCP"})
    return sorted(ports, key=lambda port: (port.get("name", ""), port["protocol"], port["port"])) or None


def _address(pod: Object, service: Object, address: str) -> Object:
    value: Object = {"ip": address}
    if name := service_pods.hostname(pod, service):
        value["hostname"] = name
    if node := pod["spec"].get("nodeName"):
        value["nodeName"] = node
    return {**value, "targetRef": service_pods.reference(pod)}


def _subset(ports: list[Object], ready: list[Object], unready: list[Object]) -> Object:
    value: Object = {}
    for name, addresses in (("addresses", ready), ("notReadyAddresses", unready)):
        if addresses:
            value[name] = sorted(
                addresses, key=lambda each: (ipaddress.ip_address(each["ip"]).packed, each["targetRef"]["uid"])
            )
    return {**value, "ports": ports} if ports else value


def truncated(wanted: Sequence[Object]) -> list[Object] | None:
    """Subsets with MAX_ADDRESSES at most, in proportion to their sizes; None: there are not more (truncateEndpoints)."""
    ready, unready = (sum(len(each.get(name) or ()) for each in wanted) for name in ("addresses", "notReadyAddresses"))
    if ready + unready <= MAX_ADDRESSES:
        return None
    name, total, room = (
        ("addresses", ready, MAX_ADDRESSES)
        if ready > MAX_ADDRESSES
        else ("notReadyAddresses", unready, MAX_ADDRESSES - ready)
    )
    result, left = [], room
    for subset in wanted:
        addresses = subset.get(name) or []
        kept = addresses[: min(math.ceil(len(addresses) / total * room), left)]
        left -= len(kept)
        rest = {key: value for key, value in subset.items() if key not in (name, "notReadyAddresses")}
        result.append({**rest, **({name: kept} if kept else {})})
    return result


# -- the object -------------------------------------------------------------------------------------------------------


def _is_up_to_date(found: Object, service: Object, wanted: Sequence[Object], is_truncated: bool) -> bool:
    annotated = OVER_CAPACITY in (found["metadata"].get("annotations") or {})
    return (
        annotated == is_truncated
        and _comparable(found.get("subsets") or ()) == _comparable(wanted)
        and (found["metadata"].get("labels") or {}) == _labels(service)
    )


def _comparable(found: Iterable[Object]) -> list[Object]:
    """Without versions of pods, which change with what does not concern endpoints."""
    return [
        {
            key: [
                {
                    **each,
                    "targetRef": {
                        name: value for name, value in each["targetRef"].items() if name != "resourceVersion"
                    },
                }
                if "targetRef" in each
                else each
                for each in values
            ]
            for key, values in subset.items()
        }
        for subset in found
    ]


def _labels(service: Object) -> Object:
    own = service["metadata"].get("labels") or {}
    labels = {key: value for key, value in own.items() if key != service_pods.HEADLESS}
    labels[MANAGED_BY] = MANAGER
    if service_pods.is_headless(service):
        labels[service_pods.HEADLESS] = ""
    return labels


def _changed(pods: Iterable[Object], found: Object | None, wanted: Iterable[Object]) -> list[Object] | None:
    """The pods whose addresses are new, or have become ready or unready."""
    if found is None:
        return None
    before, after = _places(found.get("subsets") or ()), _places(wanted)
    return [pod for pod in pods if after.get(uid := pod["metadata"]["uid"]) != before.get(uid)]


def _places(found: Iterable[Object]) -> dict[str, object]:
    return {
        uid: (name, address["ip"])
        for subset in found
        for name in ("addresses", "notReadyAddresses")
        for address in subset.get(name) or ()
        if (uid := (address.get("targetRef") or {}).get("uid"))
    }


def _endpoints(
    service: Object, found: Object | None, wanted: Sequence[Object], is_truncated: bool, changed: list[Object] | None
) -> Object:
    metadata = service["metadata"]
    old = {"name": metadata["name"], "namespace": metadata["namespace"]} if found is None else found["metadata"]
    new = service_pods.with_trigger_time(old, service_pods.trigger_time(service, changed))
    annotations = {key: value for key, value in (new.get("annotations") or {}).items() if key != OVER_CAPACITY}
    if is_truncated:
        annotations[OVER_CAPACITY] = "truncated"
    new = {**new, "labels": _labels(service), "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": new, "subsets": wanted}


def _failure(value: Object, is_new: bool, error: ApiError) -> NewEvent:
    metadata = value["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    if is_new:
        about = {**value, "metadata": {"uid": "", **metadata}}
        return NewEvent(
            about, WARNING, "FailedToCreateEndpoint", f"Failed to create endpoint for service {name}: {error}"
        )
    return NewEvent(value, WARNING, "FailedToUpdateEndpoint", f"Failed to update endpoint {name}: {error}")
