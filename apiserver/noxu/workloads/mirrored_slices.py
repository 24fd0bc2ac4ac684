"""endpointslice-mirroring-controller: Endpoints that persons write for a Service without a selector become EndpointSlices
(pkg/controller/endpointslicemirroring).

A slice has the addresses of one family in a subset, at most MAX_ADDRESSES, and the labels and annotations of the Endpoints. What
is labelled `skip-mirror` or elects a leader is left alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.objects import ENDPOINT_SLICES, ENDPOINTS, SERVICES, Objects, name_of
from noxu.workloads.pods import is_terminating
from noxu.workloads.service_pods import ELECTION, LAST_CHANGE
from noxu.workloads.slices import (
    MANAGED_BY,
    SERVICE_NAME,
    Endpoints,
    PortsKey,
    SliceChanges,
    are_equal,
    carried_out,
    identity,
    is_managed,
    new_slice,
    ports_key,
    replaced,
    service_of,
    slices_of,
)
from noxu.workloads.writes import WARNING, Kind, NamespacedName, NewEvent, Steps, Write

MAX_ADDRESSES: Final = 1000
MANAGER: Final = "endpointslicemirroring-controller.k8s.io"
SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_NOT_MIRRORED: Final = (LAST_CHANGE, "kubectl.kubernetes.io/last-applied-configuration")


class EndpointSliceMirroringController(WorkloadController):
    """Keys are the names of Endpoints, which are those of their Services."""

    name = "endpointslice-mirroring-controller"
    kind = ENDPOINTS
    looks_at = (SERVICES, ENDPOINT_SLICES)
    account = "endpointslicemirroring-controller"
    component = "endpoint-slice-mirroring-controller"
    workers = 5

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if kind != ENDPOINT_SLICES:
            yield name_of(new or old or {})
            return
        for value in (old, new):
            if value is not None and is_managed(value, MANAGER) and (name := service_of(value)):
                yield name

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        endpoints, service = objects.get(ENDPOINTS, key), objects.get(SERVICES, key)
        existing = slices_of(objects, key, MANAGER)
        writes: list[Write]
        if endpoints is None or service is None or not _is_mirrored(endpoints) or service["spec"].get("selector"):
            writes = SliceChanges(deleted=existing).writes()
        else:
            desired = _Desired(endpoints)
            changes = _changes(endpoints, desired, existing)
            if is_terminating(endpoints):
                changes = changes._replace(created=())
            writes = changes.writes()
            if writes:
                writes += _events(endpoints, desired)
        return (yield from carried_out(writes))


def _is_mirrored(endpoints: Object) -> bool:
    metadata = endpoints["metadata"]
    skipped = (metadata.get("labels") or {}).get(SKIP) == "true"
    return not skipped and ELECTION not in (metadata.get("annotations") or {})


# -- what is desired --------------------------------------------------------------------------------------------------


def _addresses(subset: Object) -> Iterator[tuple[Object, bool]]:
    """The addresses of a subset, and whether they are ready."""
    for address in subset.get("addresses") or ():
        yield address, True
    for address in subset.get("notReadyAddresses") or ():
        yield address, False


def _endpoint(address: Object, ready: bool) -> tuple[str, Object] | None:
    """The family of an address, and the endpoint; None: it is invalid."""
    try:
        parsed = ipaddress.ip_address(address["ip"])
    except ValueError:
        return None
    endpoint: Object = {"addresses": [str(parsed)], "conditions": {"ready": ready}}
    endpoint |= {key: address[key] for key in ("targetRef", "nodeName", "hostname") if address.get(key)}
    return f"IPv{parsed.version}", endpoint


class _Desired:
    """The endpoints by family and ports, and how many addresses have no place."""

    def __init__(self, endpoints: Object) -> None:
        self.slices: dict[tuple[str, PortsKey], tuple[list[Object], Endpoints]] = {}
        self.invalid = self.skipped = 0
        for subset in endpoints.get("subsets") or ():
            self._add(subset)

    def _add(self, subset: Object) -> None:
        ports = [{**port, "name": port.get("name", "")} for port in subset.get("ports") or ()]
        every, added = list(_addresses(subset)), 0
        for address, ready in every:
            if added == MAX_ADDRESSES:
                break
            found = _endpoint(address, ready)
            if found is None:
                self.invalid += 1
                continue
            added += 1
            family, endpoint = found
            self.slices.setdefault((family, ports_key(ports)), (ports, {}))[1][identity(endpoint)] = endpoint
        self.skipped += len(every) - added


def _events(endpoints: Object, desired: _Desired) -> list[Write]:
    events: list[Write] = []
    if desired.invalid:
        text = f"Skipped {desired.invalid} invalid IP addresses when mirroring to EndpointSlices"
        events.append(NewEvent(endpoints, WARNING, "InvalidIPAddress", text))
    if desired.skipped > desired.invalid:
        text = f"A max of {MAX_ADDRESSES} addresses can be mirrored to EndpointSlices per Endpoints subset."
        events.append(
            NewEvent(endpoints, WARNING, "TooManyAddressesToMirror", f"{text} {desired.skipped} addresses were skipped")
        )
    return events


# -- what changes -----------------------------------------------------------------------------------------------------


def _changes(endpoints: Object, desired: _Desired, existing: Iterable[Object]) -> SliceChanges:
    by_key: dict[tuple[str, PortsKey], list[Object | None]] = {}
    for old in existing:
        by_key.setdefault((old["addressType"], ports_key(old.get("ports"))), []).append(old)
    changes = SliceChanges()
    for key, (ports, wanted) in desired.slices.items():
        new = _new(endpoints, key[0], ports, list(wanted.values())[:MAX_ADDRESSES])
        [first, *others] = by_key.pop(key, [None])
        changes |= SliceChanges(deleted=[old for old in others if old is not None])
        if first is None:
            changes |= SliceChanges(created=[new])
        elif not _is_same(first, new, wanted):
            changes |= SliceChanges(updated=[replaced(first, new)])
    changes |= SliceChanges(deleted=[old for left in by_key.values() for old in left if old is not None])
    return changes.recycled(lambda _: True)


def _new(endpoints: Object, family: str, ports: list[Object], values: list[Object]) -> Object:
    metadata = endpoints["metadata"]
    labels = {**(metadata.get("labels") or {}), SERVICE_NAME: metadata["name"], MANAGED_BY: MANAGER}
    value = new_slice(endpoints, labels, family, ports, values)
    annotations = {key: text for key, text in (metadata.get("annotations") or {}).items() if key not in _NOT_MIRRORED}
    return {**value, "metadata": {**value["metadata"], "annotations": annotations}} if annotations else value


def _is_same(old: Object, new: Object, desired: Endpoints) -> bool:
    before = {identity(each): each for each in old.get("endpoints") or ()}
    return (
        before.keys() == desired.keys()
        and all(are_equal(each, desired[key]) for key, each in before.items())
        and all(
            (old["metadata"].get(field) or {}) == (new["metadata"].get(field) or {})
            for field in ("labels", "annotations")
        )
    )
