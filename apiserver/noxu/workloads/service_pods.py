"""The pods behind Services, as both controllers of endpoints see them (k8s.io/endpointslice: utils.go, util/controller_utils.go)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from noxu.values import Object
from noxu.workloads.objects import SERVICES, Objects, labels_of, name_of
from noxu.workloads.pods import FINISHED, condition, is_ready, is_terminating, phase
from noxu.workloads.writes import NamespacedName

Family: TypeAlias = Literal["IPv4", "IPv6"]

HEADLESS: Final = "service.kubernetes.io/headless"
"""The label of endpoints without an address of their Service."""
LAST_CHANGE: Final = "endpoints.kubernetes.io/last-change-trigger-time"
ELECTION: Final = "control-plane.alpha.kubernetes.io/leader"
"""The annotation of Endpoints that elect a leader."""


def wants_endpoints(service: Object) -> bool:
    """Whether controllers write the endpoints of a Service: those of others are written by persons."""
    spec = service["spec"]
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"


def is_headless(service: Object) -> bool:
    return service["spec"].get("clusterIP", "") in ("", "None")


def selected(objects: Objects, service: Object) -> list[Object]:
    """The pods of a Service that has a selector."""
    return objects.pods_with(service["metadata"]["namespace"], service["spec"]["selector"])


def services_of(objects: Objects, old: Object | None, new: Object | None) -> Iterator[NamespacedName]:
    """The Services whose endpoints a change of a pod concerns."""
    pod = new or old
    if pod is None:
        return
    if old is not None and new is not None and not _is_concerned(old, new):
        return
    before, after = labels_of(old).items(), labels_of(new).items()
    for service in objects.within(SERVICES, pod["metadata"]["namespace"]):
        selector = service["spec"].get("selector")
        if selector and (selector.items() <= after or selector.items() <= before):
            yield name_of(service)


def _is_concerned(old: Object, new: Object) -> bool:
    """Whether endpoints may change when a pod does (podEndpointsChanged)."""
    return (
        old["metadata"].get("labels") != new["metadata"].get("labels")
        or is_terminating(old) != is_terminating(new)
        or is_ready(old) != is_ready(new)
        or (phase(old) in FINISHED) != (phase(new) in FINISHED)
        or _addresses(old) != _addresses(new)
    )


def _addresses(pod: Object) -> list[str]:
    """As they are written: `podIPs`, or the one of an older kubelet."""
    status = pod.get("status") or {}
    listed = [each["ip"] for each in status.get("podIPs") or () if each.get("ip")]
    return listed or ([status["podIP"]] if status.get("podIP") else [])


def belongs(pod: Object, *, if_terminating: bool) -> bool:
    """Whether a pod that a Service selects is one of its endpoints, ready or not (ShouldPodBeInEndpoints)."""
    return phase(pod) not in FINISHED and bool(_addresses(pod)) and (if_terminating or not is_terminating(pod))


def addresses(pod: Object, family: Family) -> list[str]:
    """Those that endpoints may have. Those of loopback, which a person may give to the pods of a node, they may not."""
    parsed = [ipaddress.ip_address(address) for address in _addresses(pod)]
    return [str(address) for address in parsed if family == f"IPv{address.version}" and not address.is_loopback]


def families(service: Object) -> list[Family]:
    """Those of a Service. Before it has any: that of its address, or both if it is headless."""
    spec = service["spec"]
    listed: list[Family] = [family for family in spec.get("ipFamilies") or () if family in ("IPv4", "IPv6")]
    if listed:
        return listed
    if is_headless(service):
        return ["IPv4", "IPv6"]
    return ["IPv6" if ":" in spec["clusterIP"] else "IPv4"]


def port_of(pod: Object, service_port: Object) -> int | None:
    """The number of a target port; None: no container has a port of that name (FindPort)."""
    target = service_port.get("targetPort")
    if isinstance(target, int):
        return target
    protocol = service_port.get("protocol") or "TCP"
    sidecars = [each for each in pod["spec"].get("initContainers") or () if each.get("restartPolicy") == "Always"]
    for container in (*pod["spec"]["containers"], *sidecars):
        for port in container.get("ports") or ():
            if port.get("name") == target and (port.get("protocol") or "TCP") == protocol:
                number: int = port["containerPort"]
                return number
    return None


def hostname(pod: Object, service: Object) -> str:
    """The hostname of a pod in the domain of a Service; "": it has none there."""
    spec = pod["spec"]
    return str(spec.get("hostname") or "") if spec.get("subdomain") == service["metadata"]["name"] else ""


def reference(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}


def trigger_time(service: Object, changed: Iterable[Object] | None) -> str:
    """When what has changed endpoints has happened; "": it is not known, such as for a pod that is gone.

    `changed`: the pods whose endpoints are new or different; None: the endpoints of the Service are new.
    """
    if changed is None:
        return str(service["metadata"].get("creationTimestamp") or "")
    ready = [condition(pod, "Ready") for pod in changed]
    return min((each["lastTransitionTime"] for each in ready if each and each.get("lastTransitionTime")), default="")


def with_trigger_time(metadata: Object, time: str) -> Object:
    """Metadata with the annotation of the time, or without it."""
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_CHANGE}
    if time:
        annotations[LAST_CHANGE] = time
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    return {**rest, "annotations": annotations} if annotations else rest
