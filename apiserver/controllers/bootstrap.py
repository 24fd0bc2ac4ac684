"""The objects that kube-apiserver itself creates: system namespaces, the Service `kubernetes`, its identity lease …

Each is a row of a table: a manifest, which may depend on the facts of the server, and the seconds after which its existence
is checked again. So an object that was deleted comes back, as upstream. The rows are those of pkg/controlplane: controller/
systemnamespaces, kubernetesservice, legacytokentracking, and the identity lease in apiserver/server.go. (The ConfigMap
extension-apiserver-authentication exists only if the server authenticates clients by certificates.)

No collection is loaded for this: an object is read by its key.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date
from typing import Final, NamedTuple

from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.clock import Clock
from noxu.apiserver.controllers import users
from noxu.apiserver.controllers.controller import Controller
from noxu.apiserver.go.time import MICRO, format_time
from noxu.apiserver.registry.catalog import LiveCatalog
from noxu.apiserver.registry.change import Change
from noxu.apiserver.registry.draft import Action, Body, Options, WriteRequest
from noxu.apiserver.registry.entry import key_of, object_at
from noxu.apiserver.registry.reader import Reader
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.registry.write import Writer
from noxu.apiserver.values import Object, copy

SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "default")
SERVICE_ADDRESS: Final = "10.0.0.1"  # the first one of upstream's default range, 10.0.0.0/24
SERVICE_PORT: Final = 443

NAMESPACES_EVERY: Final = 60.0  # seconds; upstream's
SERVICE_EVERY: Final = 10.0  # upstream's
TRACKING_EVERY: Final = 1800.0  # upstream's limit on the creation
LEASE_SECONDS: Final = 3600
LEASE_EVERY: Final = LEASE_SECONDS / 6  # upstream: every 10 s; here an idle server writes next to nothing


class Facts(NamedTuple):
    """A server. `identity` is unique to this process, and `port` that on which it listens."""

    port: int
    hostname: str
    identity: str


class Row(NamedTuple):
    """One object. `make` returns its manifest; `renew` changes an existing one in place, and returns whether it did."""

    plural: str
    every: float
    make: Callable[[Facts, Clock], Object]
    group: str = ""
    renew: Callable[[Object, Facts, Clock], bool] | None = None


def _service(facts: Facts, _: Clock) -> Object:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "clusterIP": SERVICE_ADDRESS,
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "protocol": "TCP", "port": SERVICE_PORT, "targetPort": facts.port}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    }


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
    labels = {"apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": facts.hostname}
    lease: Object = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "spec": {"leaseDurationSeconds": LEASE_SECONDS},
    }
    _renew_lease(lease, facts, clock)
    return lease


def _renew_lease(lease: Object, facts: Facts, clock: Clock) -> bool:
    holder = f"{lease['metadata']['name']}_{facts.identity}"
    lease.setdefault("spec", {}).update(holderIdentity=holder, renewTime=format_time(clock.now(), MICRO))
    return True


def lease_name(hostname: str) -> str:
    """The identity of an API server: a hash of its host and its kind (apiserver's server/config.go).

    Each text is preceded by its length in two bytes; the first 16 bytes of the SHA-256 sum are shown in base32.
    """
    texts = (hostname.encode(), b"kube-apiserver")
    hashed = hashlib.sha256(b"".join(len(text).to_bytes(2, "big") + text for text in texts)).digest()[:16]
    return "apiserver-" + base64.b32encode(hashed).decode().rstrip("=").lower()


OBJECTS: Final = {
    "Service kubernetes": Row("services", SERVICE_EVERY, _service),
    "ConfigMap of token tracking": Row("configmaps", TRACKING_EVERY, _token_tracking, renew=_correct_since),
    "Lease of this server": Row("leases", LEASE_EVERY, _lease, "coordination.k8s.io", renew=_renew_lease),
}
"""Objects in system namespaces."""


class BootstrapController(Controller[str]):
    """Creates these objects. Keys are the names of system namespaces, and of rows."""

    name = "bootstrap-controller"
    workers = len(SYSTEM_NAMESPACES) + len(OBJECTS)  # so that they share commits

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        catalog: LiveCatalog,
        namespaces: Resource,
        clock: Clock,
        facts: Facts | None,
    ) -> None:
        """Without facts, which only a server has, there are only the namespaces."""
        super().__init__(reader, namespaces, clock)
        self.writer = writer
        self.catalog = catalog
        self.facts = facts

    def observe(self, change: Change) -> Iterable[str]:
        name = change.key.name
        return [name] if change.entry is None and name in SYSTEM_NAMESPACES else ()

    def resync(self) -> Iterable[str]:
        return SYSTEM_NAMESPACES if self.facts is None else (*SYSTEM_NAMESPACES, *OBJECTS)

    async def reconcile(self, key: str) -> float:
        if key in SYSTEM_NAMESPACES:
            if key_of(self.resource, "", key) not in self.collection.entries:
                await self._create(self.resource, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": key}})
            return NAMESPACES_EVERY
        assert self.facts is not None
        row = OBJECTS[key]
        manifest = row.make(self.facts, self.clock)
        resource = self.catalog.current.find(row.group, "v1", row.plural)
        assert resource is not None, row.plural
        namespace: str = manifest["metadata"].get("namespace", "")
        await self.queue.processed(namespace)
        found = await self.reader.stored(resource, namespace, manifest["metadata"]["name"])
        if found is None:
            await self._create(resource, manifest)
        elif row.renew is not None and row.renew(value := object_at(found, resource), self.facts, self.clock):
            await self._write(Action.REPLACE, resource, value)
        return row.every

    async def _create(self, resource: Resource, manifest: Object) -> None:
        try:
            await self._write(Action.CREATE, resource, manifest)
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
                options=Options(field_manager=users.APISERVER_MANAGER),
                user=users.APISERVER,
            )
        )
