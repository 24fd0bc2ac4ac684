"""Connections to Pods, Services and nodes: how far a server without kubelets and without a network of Pods gets with them.

Everything that upstream checks before it dials is checked here, with the same errors (pkg/registry/core/pod.LogLocation,
ExecLocation, ResourceLocation and their like for Services and nodes). Nothing is ever dialled.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from noxu.api import errors, field
from noxu.api.errors import ApiError, Qualified
from noxu.api.field import FieldError
from noxu.api.names import check_path_name
from noxu.go.text import quote
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.served_resources import LiveResources
from noxu.registry.stored_object import object_at
from noxu.values import Object

NO_KUBELET: Final = "there is no kubelet: pods are stored, not run"
NOTHING_LISTENS: Final = "nothing runs in simulated pods: none of their ports is open"
_SCHEMES: Final = ("", "http", "https")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


def no_kubelet(*, upgrade: bool = True) -> ApiError:
    """What a connection to a kubelet ends with. `upgrade`: the client asks for another protocol, or need not."""
    if not upgrade:  # kubelets have no streams without one
        return errors.bad_request("Upgrade request required")
    return errors.internal_error(f"error dialing backend: {NO_KUBELET}")


def unreachable(*, simulated: bool = False) -> ApiError:
    """What a request that is forwarded ends with. `simulated`: there are nodes."""
    return service_unavailable(f"error trying to reach service: {NOTHING_LISTENS if simulated else NO_KUBELET}")


def service_unavailable(message: str) -> ApiError:
    return ApiError(503, message, "ServiceUnavailable")


class LogOptions(NamedTuple):
    """PodLogOptions, as far as they are checked. None: not given."""

    container: str = ""
    since_seconds: int | None = None
    since_time: str | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None


class Place(NamedTuple):
    """Where objects are read."""

    reader: Reader
    served_resources: LiveResources
    namespace: str

    async def get(self, plural: str, name: str) -> Object:
        """An object of the core group. Raises ApiError."""
        resource = self.served_resources.current.find("", "v1", plural)
        assert resource is not None
        check_path_name(name)
        return await self._get(resource, name)

    async def _get(self, resource: Resource, name: str) -> Object:
        namespace = self.namespace if resource.namespaced else ""
        value: Object = object_at(await self.reader.get(resource, namespace, name), resource)
        return value


# -- Pods -------------------------------------------------------------------------------------------------------------


async def log(place: Place, name: str, options: LogOptions) -> Object | None:
    """The Pod whose log a kubelet has; None: the log is empty, because the Pod is on no node. Raises ApiError."""
    problems = list(_log_errors(options))
    if problems:
        raise errors.invalid(Qualified("", "PodLogOptions"), name, problems)
    pod = await place.get("pods", name)
    _check_container(pod, options.container)
    if not _node_of(pod):
        return None
    await _check_node(place, _node_of(pod))  # the kubelet would be dialled: http has what follows
    return pod


def _log_errors(options: LogOptions) -> Iterator[FieldError]:
    """ValidatePodLogOptions."""
    if options.tail_lines is not None and options.tail_lines < 0:
        yield field.invalid("tailLines", options.tail_lines, "must be greater than or equal to 0")
    if options.limit_bytes is not None and options.limit_bytes < 1:
        yield field.invalid("limitBytes", options.limit_bytes, "must be greater than 0")
    if options.since_seconds is not None and options.since_time is not None:
        yield field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif options.since_seconds is not None and options.since_seconds < 1:
        yield field.invalid("sinceSeconds", options.since_seconds, "must be greater than 0")


async def stream(place: Place, name: str, container: str | None) -> Object:
    """exec, attach, and with container None portforward: the Pod whose kubelet would be dialled. Raises ApiError."""
    pod = await place.get("pods", name)
    if container is not None:
        _check_container(pod, container)
    if not _node_of(pod):
        raise errors.bad_request(f"pod {name} does not have a host assigned")
    await _check_node(place, _node_of(pod))  # the kubelet would be dialled: http has what follows
    return pod


def _node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _check_container(pod: Object, name: str) -> None:
    """Raises ApiError unless the name is that of a container, or absent and there is only one."""
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    if name:
        if not any(container.get("name") == name for part in _CONTAINERS for container in spec.get(part) or ()):
            raise errors.bad_request(f"container {name} is not valid for pod {pod_name}")
        return
    containers, initial = (_names(spec.get(part) or ()) for part in _CONTAINERS[:2])
    if len(spec.get("containers") or ()) == 1:
        return
    text = f"a container name must be specified for pod {pod_name}"
    if containers:
        text += f", choose one of: [{containers}]"
        text += f" or one of the init containers: [{initial}]" if initial else ""
    raise errors.bad_request(text)


def _names(containers: Iterable[Object]) -> str:
    return " ".join(container.get("name", "") for container in containers)


# -- nodes ------------------------------------------------------------------------------------------------------------


async def _check_node(place: Place, name: str) -> None:
    """Raises ApiError if the address of a kubelet cannot be determined."""
    node = await place.get("nodes", name)
    if not (node.get("status") or {}).get("addresses"):
        raise errors.plain_error("no preferred addresses found; known addresses: []")


# -- proxies ----------------------------------------------------------------------------------------------------------


async def proxy_pod(place: Place, target: str) -> None:
    """Check a target such as `http:name:port`. Raises ApiError."""
    _, name, _ = _split("pod", target)
    pod = await place.get("pods", name)
    if not _is_global_unicast((pod.get("status") or {}).get("podIP") or ""):
        raise errors.bad_request("address not allowed")


async def proxy_service(place: Place, target: str) -> None:
    """Check that a Service has an endpoint. Raises ApiError."""
    _, name, port = _split("service", target)
    if port.isascii() and port.lstrip("+-").isdigit():
        port = _port_name(await place.get("services", name), int(port))
    endpoints = await place.get("endpoints", name)
    subsets = endpoints.get("subsets") or ()
    ready = [subset.get("ports") or () for subset in subsets if subset.get("addresses")]
    if not any(entry.get("name", "") == port for ports in ready for entry in ports):
        asked = target if subsets else name
        raise service_unavailable(f"no endpoints available for service {quote(asked)}")


def _port_name(service: Object, number: int) -> str:
    for port in service["spec"].get("ports") or ():
        if port.get("port") == number:
            return str(port.get("name", ""))
    name = service["metadata"]["name"]
    raise service_unavailable(f"no service port {number} found for service {quote(name)}")


async def proxy_node(place: Place, target: str) -> None:
    """Check that a node exists and has an address. Raises ApiError."""
    _, name, _ = _split("node", target)
    await _check_node(place, name)


def _split(kind: str, target: str) -> tuple[str, str, str]:
    """Scheme, name and port of `name`, `name:port` or `scheme:name:port`. Raises ApiError."""
    parts = target.split(":")
    scheme, name, port = {1: ("", *parts, ""), 2: ("", *parts), 3: (*parts,)}.get(len(parts), ("", "", ""))
    if not name or scheme not in _SCHEMES:
        raise errors.bad_request(f"invalid {kind} request {quote(target)}")
    return scheme, name, port


def _is_global_unicast(text: str) -> bool:
    """Go's IP.IsGlobalUnicast, which private addresses are, too."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and address != ipaddress.IPv4Address("255.255.255.255")
