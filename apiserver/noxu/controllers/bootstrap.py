"""The objects that kube-apiserver itself creates: system namespaces, the Service `kubernetes`, its identity lease …

Each is a row of a table: a manifest, which may depend on the facts of the server, and the seconds after which its existence
is checked again. So an object that was deleted comes back, as upstream. The rows are those of pkg/controlplane: controller/
systemnamespaces, kubernetesservice, legacytokentracking, and the identity lease in apiserver/server.go. (The ConfigMap
extension-apiserver-authentication exists only if the server authenticates clients by certificates.) Identity leases that
servers have left behind are deleted when they expire (controller/apiserverleasegc).

The objects of `default_objects` are in a second table, by kind. In a new store all of them are stored together
(`default_objects.create`); later they are created as clients do.

No collection is loaded for this: an object is read by its key.

Where several servers share a store, the endpoints of the Service `kubernetes` have the addresses of all that are running, as
with upstream's reconcilers/lease.go: each renews its lease before it writes them, and removes it when it stops. Their ports
are those of the server that has written them first: servers are expected to have the same one.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from typing import Final, NamedTuple

from noxu.api.errors import ApiError
from noxu.clock import Clock, SystemClock, rfc3339_now
from noxu.controllers import controller, default_objects
from noxu.controllers.controller import Controller, ControllerParts
from noxu.controllers.default_objects import NOW, SERVICE_RANGE, SYSTEM_NAMESPACES, FirstObject, first_address, template
from noxu.go.time import MICRO, format_time, unix_nanos
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, DeleteOptions, Options, Preconditions, WriteRequest
from noxu.registry.resource import Resource
from noxu.registry.server_leases import ServerLeases
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.values import Object, copy
from noxu_storage.types import Corrupt, KeyValue, Prefix, StoreError

SERVICE_PORT: Final = 443

NAMESPACES_EVERY: Final = 60.0  # seconds; upstream's
SERVICE_EVERY: Final = 10.0  # upstream's; leases of servers are renewed as often
WITHDRAW_WITHIN: Final = 1.0  # seconds that the end of a server waits until it is no endpoint; upstream: 20
FLOW_CONTROL_EVERY: Final = 60.0  # upstream's
TRACKING_EVERY: Final = 1800.0  # upstream's limit on the creation
LEASE_SECONDS: Final = 3600
IDENTITY: Final = "apiserver.kubernetes.io/identity"
"""The label of the identity leases of servers."""
EXPIRED_EVERY: Final = 3600.0  # upstream's
LEASE_EVERY: Final = LEASE_SECONDS / 6  # upstream: every 10 s; here an idle server writes next to nothing

log = logging.getLogger("noxu")


class Facts(NamedTuple):
    """A server. `identity` is unique to this process, and `port` that on which it listens.

    `address` is an IPv4 address of the host that is not on loopback, "" if it has none: an endpoint may not be on loopback.
    `services` is the network of the addresses of services; its first address is that of the Service `kubernetes`. `running` are
    the addresses of all servers with the same store, in their order, None: only this one. `keeps_ports`: endpoints that have
    ports keep them.
    """

    port: int
    hostname: str
    identity: str
    address: str = ""
    services: str = SERVICE_RANGE
    running: Sequence[str] | None = None
    keeps_ports: bool = False

    @property
    def endpoints(self) -> Sequence[str]:
        """The addresses of the Service `kubernetes`."""
        if self.running is None:
            return [self.address] if self.address else []
        return self.running

    @property
    def service_address(self) -> str:
        return first_address(self.services)


class Row(NamedTuple):
    """One object. `make` returns its manifest, with all defaults in the order of declaration; `renew` changes an existing
    object in place, and returns whether it did.
    """

    plural: str
    every: float
    make: Callable[[Facts, Clock], Object]
    group: str = ""
    renew: Callable[[Object, Facts, Clock], bool] | None = None


def _namespace(name: str) -> Object:
    return {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _service(facts: Facts, _: Clock) -> Object:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": SERVICE_PORT, "targetPort": facts.port}],
            "clusterIP": facts.service_address,
            "clusterIPs": [facts.service_address],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


def _endpoints(facts: Facts, _: Clock) -> Object:
    metadata = {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
    }
    endpoints: Object = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
    if facts.endpoints:
        port = {"name": "https", "port": facts.port, "protocol": "TCP"}
        endpoints["subsets"] = [{"addresses": [{"ip": address} for address in facts.endpoints], "ports": [port]}]
    return endpoints


def _endpoint_slice(facts: Facts, _: Clock) -> Object:
    metadata = {"name": "kubernetes", "namespace": "default", "labels": {"kubernetes.io/service-name": "kubernetes"}}
    endpoints = [{"addresses": [address], "conditions": {"ready": True}} for address in facts.endpoints]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "https", "protocol": "TCP", "port": facts.port}],
    }


def _reset_endpoints(value: Object, facts: Facts, clock: Clock) -> bool:
    wanted, subsets = _endpoints(facts, clock), value.get("subsets") or []
    if facts.keeps_ports and len(subsets) == 1 and subsets[0].get("ports") and "subsets" in wanted:
        wanted["subsets"][0]["ports"] = subsets[0]["ports"]
    return _reset(value, wanted, ("subsets",))


def _reset_endpoint_slice(value: Object, facts: Facts, clock: Clock) -> bool:
    wanted = _endpoint_slice(facts, clock)
    if facts.keeps_ports and value.get("ports"):
        wanted["ports"] = value["ports"]
    return _reset(value, wanted, ("endpoints", "ports"))


def _reset(value: Object, wanted: Object, names: tuple[str, ...]) -> bool:
    """Set the labels and the named fields of an object to those that are wanted."""
    labels = wanted["metadata"]["labels"]
    if value["metadata"].get("labels") == labels and all(value.get(name) == wanted.get(name) for name in names):
        return False
    value["metadata"]["labels"] = labels
    for name in names:
        value.pop(name, None)
        if name in wanted:
            value[name] = wanted[name]
    return True


def _token_tracking(_: Facts, clock: Clock) -> Object:
    metadata = {"name": "kube-apiserver-legacy-service-account-token-tracking", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"since": _today(clock)}}


def _correct_since(value: Object, _: Facts, clock: Clock) -> bool:
    """Replace a text that is no date."""
    data = value.setdefault("data", {})
    since = data.get("since", "")
    with suppress(ValueError):
        if date.fromisoformat(since).isoformat() == since:
            return False
    data["since"] = _today(clock)
    return True


def _today(clock: Clock) -> str:
    return clock.now().date().isoformat()


def _lease(facts: Facts, clock: Clock) -> Object:
    name = lease_name(facts.hostname)
    labels = {IDENTITY: "kube-apiserver", "kubernetes.io/hostname": facts.hostname}
    lease: Object = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {"holderIdentity": "", "leaseDurationSeconds": LEASE_SECONDS},
    }
    _renew_lease(lease, facts, clock)
    return lease


def _renew_lease(lease: Object, facts: Facts, clock: Clock) -> bool:
    holder = f"{lease['metadata']['name']}_{facts.identity}"
    lease.setdefault("spec", {}).update(holderIdentity=holder, renewTime=format_time(clock.now(), MICRO))
    return True


def _is_expired_identity(lease: Object, now: float) -> bool:
    """Whether it is the lease of a server that has not renewed it for its duration, or never. `now` in seconds since 1970."""
    if (lease["metadata"].get("labels") or {}).get(IDENTITY) != "kube-apiserver":
        return False
    spec = lease.get("spec") or {}
    renewed, seconds = spec.get("renewTime"), spec.get("leaseDurationSeconds")
    return not renewed or seconds is None or unix_nanos(renewed) / 1e9 + seconds < now


def lease_name(hostname: str) -> str:
    """The identity of an API server: a hash of its host and its kind (apiserver's server/config.go).

    Each text is preceded by its length in two bytes; the first 16 bytes of the SHA-256 sum are shown in base32.
    """
    texts = (hostname.encode(), b"kube-apiserver")
    hashed = hashlib.sha256(b"".join(len(text).to_bytes(2, "big") + text for text in texts)).digest()[:16]
    return "apiserver-" + base64.b32encode(hashed).decode().rstrip("=").lower()


EXPIRED_LEASES: Final = "leases of stopped servers"
ENDPOINTS: Final = "Endpoints kubernetes"
ENDPOINT_SLICE: Final = "EndpointSlice kubernetes"
SERVICE: Final = "Service kubernetes"
OWN_LEASE: Final = "Lease of this server"
OBJECTS: Final = {
    SERVICE: Row("services", SERVICE_EVERY, _service),
    ENDPOINTS: Row("endpoints", SERVICE_EVERY, _endpoints, renew=_reset_endpoints),
    ENDPOINT_SLICE: Row(
        "endpointslices", SERVICE_EVERY, _endpoint_slice, "discovery.k8s.io", renew=_reset_endpoint_slice
    ),
    "ConfigMap of token tracking": Row("configmaps", TRACKING_EVERY, _token_tracking, renew=_correct_since),
    OWN_LEASE: Row("leases", LEASE_EVERY, _lease, "coordination.k8s.io", renew=_renew_lease),
}
"""Objects in system namespaces."""
OF_SERVER: Final = (SERVICE, ENDPOINTS, ENDPOINT_SLICE, OWN_LEASE)
"""Those that are about the server."""


class BootstrapKind(NamedTuple):
    """The objects of one kind, which are not in namespaces. `make` returns their manifests, given the time and the network of services.

    `every` None: they are checked only at the start of the server.
    """

    group: str
    plural: str
    every: float | None
    make: Callable[[str, str], list[Object]]


_FLOW_CONTROL: Final = "flowcontrol.apiserver.k8s.io"
DEFAULTS: Final = {
    "priority classes": BootstrapKind("scheduling.k8s.io", "priorityclasses", None, default_objects.priority_classes),
    "priority levels": BootstrapKind(
        _FLOW_CONTROL, "prioritylevelconfigurations", FLOW_CONTROL_EVERY, default_objects.priority_levels
    ),
    "flow schemas": BootstrapKind(_FLOW_CONTROL, "flowschemas", FLOW_CONTROL_EVERY, default_objects.flow_schemas),
    "range of services": BootstrapKind(
        "networking.k8s.io", "servicecidrs", SERVICE_EVERY, default_objects.service_ranges
    ),
    "address of the API": BootstrapKind("networking.k8s.io", "ipaddresses", SERVICE_EVERY, default_objects.addresses),
    "APIServices": BootstrapKind("apiregistration.k8s.io", "apiservices", None, default_objects.api_services),
}


@cache
def _namespaces() -> list[tuple[str, Object, bytes]]:
    """(The name, the manifest and the template of each system namespace.)"""
    manifests = {name: _namespace(name) for name in SYSTEM_NAMESPACES}
    return [(name, manifest, template(manifest, controller.APISERVER_MANAGER)) for name, manifest in manifests.items()]


@lru_cache(maxsize=4)
def _default_templates(services: str) -> list[tuple[str, Object, bytes]]:
    """(The key in DEFAULTS, the manifest and the template of each object.)"""
    manifests = [(key, manifest) for key, kind in DEFAULTS.items() for manifest in kind.make(NOW, services)]
    return [
        (key, manifest, template(manifest, default_objects.manager_of(manifest["kind"]))) for key, manifest in manifests
    ]


_ANY_PORT: Final = 99_999
_ANY_IDENTITY: Final = "{identity}"
_ANY_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
"""What stands in the templates of rows: no server has any of it."""


class _AnyTime(SystemClock):
    def now(self) -> datetime:
        return _ANY_TIME


@lru_cache(maxsize=32)
def _row_template(key: str, facts: Facts) -> tuple[Object, bytes]:
    """The manifest and the template of a row, which nearly all servers of a process share."""
    manifest = OBJECTS[key].make(facts, _AnyTime())
    return manifest, template(manifest, controller.APISERVER_MANAGER)


class BootstrapController(Controller[str]):
    """Creates these objects. Keys are the names of system namespaces, and of rows."""

    name = "bootstrap-controller"
    follows = (("", "namespaces"),)
    on_process_time = True
    workers = len(SYSTEM_NAMESPACES) + len(OBJECTS)  # so that they share commits

    def __init__(self, parts: ControllerParts, facts: Facts | None) -> None:
        """Without facts, which only a server has, there are only the namespaces."""
        super().__init__(parts)
        self.facts = facts
        self._leases: ServerLeases | None = None
        if facts is not None and facts.address and self.reader.store.shared:
            self._leases = ServerLeases(self.reader.store, facts.address)
        self._has_ports: set[str] = set()  # the rows of endpoints whose ports this server has checked

    async def withdraw(self) -> None:
        """Stop, and remove this server from the endpoints that it shares with others."""
        await self.stop()
        leases, self._leases = self._leases, None
        if leases is None:
            return
        with suppress(ApiError, StoreError, TimeoutError):  # else the lease expires, and another server writes them
            async with asyncio.timeout(WITHDRAW_WITHIN):
                await leases.remove()
                assert self.facts is not None
                if others := await leases.addresses():
                    facts = self.facts._replace(running=others, keeps_ports=True)
                    await asyncio.gather(*(self._write_row(OBJECTS[key], facts) for key in (ENDPOINTS, ENDPOINT_SLICE)))

    def observe(self, change: Change) -> Iterable[str]:
        name = change.key.name
        return [name] if change.entry is None and name in SYSTEM_NAMESPACES else ()

    def resync(self) -> Iterable[str]:
        return SYSTEM_NAMESPACES if self.facts is None else (*SYSTEM_NAMESPACES, *OBJECTS, *DEFAULTS, EXPIRED_LEASES)

    def own_objects(self) -> Iterable[FirstObject]:
        """The objects that differ between servers because they are about the server: its port, its name."""
        if self.facts is not None:
            for key in OF_SERVER:
                yield self._first(key, self.facts)

    def _first(self, key: str, facts: Facts) -> FirstObject:
        """One of the rows, in a new store."""
        row, now = OBJECTS[key], self.clock.now()
        manifest, first = _row_template(key, facts._replace(port=_ANY_PORT, identity=_ANY_IDENTITY))
        for any_text, text in (
            (str(_ANY_PORT), str(facts.port)),
            (_ANY_IDENTITY, facts.identity),
            (format_time(_ANY_TIME, MICRO), format_time(now, MICRO)),
            (_ANY_TIME.date().isoformat(), now.date().isoformat()),
        ):
            first = first.replace(any_text.encode(), text.encode())
        return FirstObject(key, self._resource(row.group, row.plural), manifest, first, row.every)

    def first_objects(self) -> Iterable[FirstObject]:
        """Everything but endpoints that are shared with other servers, which have to be known."""
        for name, manifest, first in _namespaces():
            yield FirstObject(name, self.resource, manifest, first, NAMESPACES_EVERY)
        if self.facts is None:
            return
        if not self.reader.store.shared:
            self.fresh[EXPIRED_LEASES] = EXPIRED_EVERY  # there are none
        for key in OBJECTS:
            if self._leases is None or key not in (ENDPOINTS, ENDPOINT_SLICE):
                yield self._first(key, self.facts)
        resources = {key: self._resource(kind.group, kind.plural) for key, kind in DEFAULTS.items()}
        for key, manifest, first in _default_templates(self.facts.services):
            if self._is_wanted(manifest):
                yield FirstObject(key, resources[key], manifest, first, DEFAULTS[key].every)

    async def reconcile(self, key: str) -> float | None:
        if key in SYSTEM_NAMESPACES:
            if key_of(self.resource, "", key) not in self.collection.entries:
                await self._create(self.resource, _namespace(key))
            return NAMESPACES_EVERY
        if key in DEFAULTS:
            return await self._defaults(DEFAULTS[key])
        assert self.facts is not None
        if key == EXPIRED_LEASES:
            await self._delete_expired_leases(lease_name(self.facts.hostname))
            return EXPIRED_EVERY
        is_shared = key in (ENDPOINTS, ENDPOINT_SLICE) and self._leases is not None
        await self._write_row(OBJECTS[key], await self._shared_facts(key) if is_shared else self.facts)
        return OBJECTS[key].every

    async def _delete_expired_leases(self, own: str) -> None:
        """Delete the identity leases that have expired, except for this server's own, which it renews."""
        resource, now = self._resource("coordination.k8s.io", "leases"), self.clock.now().timestamp()
        for item in await self._stored_in(resource, "kube-system"):
            try:
                lease = object_at(StoredObject(item.key, item.value, item.revision), resource)
                if item.key.name != own and _is_expired_identity(lease, now):
                    await self._delete(resource, lease)
            except ApiError as error:  # it cannot be decoded, or another server was faster
                log.debug("the lease %s is not deleted: %s", item.key.name, error)

    async def _delete(self, resource: Resource, value: Object) -> None:
        """Delete an object unless it has changed since."""
        metadata = value["metadata"]
        version = metadata["resourceVersion"]
        await self.writer.write(
            WriteRequest(
                Action.DELETE,
                resource,
                metadata["namespace"],
                metadata["name"],
                delete_options=DeleteOptions(preconditions=Preconditions(resource_version=version)),
                options_sent={"preconditions": {"resourceVersion": version}},
                user=controller.APISERVER,
            )
        )

    async def _stored_in(self, resource: Resource, namespace: str) -> Sequence[KeyValue]:
        """The objects of a namespace, without corrupt ones. Raises StoreError."""
        try:
            return (await self.reader.store.list(Prefix(resource.collection, f"{namespace}/"))).items
        except Corrupt as error:
            return [] if error.page is None else error.page.items

    async def _shared_facts(self, key: str) -> Facts:
        """The facts about all running servers, of which this is one. The first time, a server that is alone sets the ports."""
        assert self.facts is not None
        assert self._leases is not None
        if key == ENDPOINTS:
            await self._leases.renew()
        running = sorted({*await self._leases.addresses(), self.facts.address})
        keeps_ports = key in self._has_ports or len(running) > 1
        self._has_ports.add(key)
        return self.facts._replace(running=running, keeps_ports=keeps_ports)

    async def _write_row(self, row: Row, facts: Facts) -> None:
        """Create an object, or renew it."""
        manifest = row.make(facts, self.clock)
        resource = self._resource(row.group, row.plural)
        namespace: str = manifest["metadata"].get("namespace", "")
        await self.queue.processed(namespace)
        stored = await self.reader.stored(resource, namespace, manifest["metadata"]["name"])
        if stored is None:
            await self._create(resource, manifest)
        elif row.renew is not None and row.renew(value := object_at(stored, resource), facts, self.clock):
            await self._write(Action.REPLACE, resource, value)

    def _resource(self, group: str, plural: str) -> Resource:
        resource = self.served_resources.current.find(group, "v1", plural)
        assert resource is not None, plural
        return resource

    async def _defaults(self, kind: BootstrapKind) -> float | None:
        resource, now = self._resource(kind.group, kind.plural), rfc3339_now(self.clock)
        assert self.facts is not None
        wanted = filter(self._is_wanted, kind.make(now, self.facts.services))
        await asyncio.gather(*(self._create_missing(resource, manifest) for manifest in wanted))
        return kind.every

    def _is_wanted(self, manifest: Object) -> bool:
        """Group versions that clients cannot use have no APIService."""
        if manifest["kind"] != "APIService":
            return True
        return self.served_resources.current.serves(manifest["spec"].get("group", ""), manifest["spec"]["version"])

    async def _create_missing(self, resource: Resource, manifest: Object) -> None:
        if await self.reader.stored(resource, "", manifest["metadata"]["name"]) is None:
            await self._create(resource, manifest)

    async def _create(self, resource: Resource, manifest: Object) -> None:
        try:
            await self._write(Action.CREATE, resource, default_objects.sent(manifest))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    async def _write(self, action: Action, resource: Resource, value: Object) -> None:
        metadata = value["metadata"]
        name = metadata["name"] if action is Action.REPLACE else ""
        await self.writer.write(
            WriteRequest(
                action,
                resource,
                metadata.get("namespace", ""),
                name,
                body=Body(copy(value)),
                options=Options(field_manager=default_objects.manager_of(value["kind"])),
                user=controller.APISERVER,
            )
        )
