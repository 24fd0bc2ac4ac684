"""How endpoints are distributed among EndpointSlices (k8s.io/endpointslice: reconciler.go, util/endpointset.go).

An endpoint stays in the slice in which it is. New ones fill the slices that change anyway, the fullest first; then the one
unchanged slice that they fill best, if they all fit; then new slices. A slice that loses all its endpoints is deleted, or
becomes one that would have to be created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from noxu.values import Object
from noxu.workloads.objects import ENDPOINT_SLICES, Objects
from noxu.workloads.ownership import owner_reference
from noxu.workloads.writes import Create, Delete, NamespacedName, Replace, Steps, Write, is_namespace_ending, stored

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_MAX_PREFIX: Final = 252

Identity: TypeAlias = tuple[object, ...]
Endpoints: TypeAlias = dict[Identity, Object]
PortsKey: TypeAlias = tuple[Identity, ...]


def slices_of(objects: Objects, service: NamespacedName, manager: str) -> list[Object]:
    """The slices of a Service that a controller manages."""
    return [
        value
        for value in objects.within(ENDPOINT_SLICES, service.namespace)
        if is_managed(value, manager) and value["metadata"]["labels"].get(SERVICE_NAME) == service.name
    ]


def is_managed(value: Object, manager: str) -> bool:
    return (value["metadata"].get("labels") or {}).get(MANAGED_BY) == manager


def service_of(value: Object) -> NamespacedName | None:
    """The Service of a slice."""
    name = (value["metadata"].get("labels") or {}).get(SERVICE_NAME)
    return NamespacedName(value["metadata"]["namespace"], name) if name else None


def identity(endpoint: Object) -> Identity:
    """What makes an endpoint the same one, whatever its conditions are."""
    pod = endpoint.get("targetRef") or {}
    addresses = tuple(sorted(endpoint["addresses"]))
    return addresses, endpoint.get("hostname"), pod.get("namespace"), pod.get("name")


def ports_key(ports: Iterable[Object] | None) -> PortsKey:
    return tuple(sorted((tuple(sorted(port.items())) for port in ports or ()), key=str))


def are_equal(one: Object, other: Object) -> bool:
    """Whether two endpoints with the same identity are equal; the version of the pod does not count."""
    return _details(one) == _details(other)


def _details(endpoint: Object) -> tuple[object, ...]:
    conditions = endpoint.get("conditions") or {}
    pod = {key: value for key, value in (endpoint.get("targetRef") or {}).items() if key != "resourceVersion"}
    flags = tuple(conditions.get(name) for name in ("ready", "serving", "terminating"))
    return endpoint.get("nodeName"), endpoint.get("zone"), flags, pod


def name_prefix(name: str) -> str:
    return f"{name}-" if len(name) <= _MAX_PREFIX else name


def new_slice(owner: Object, labels: Object, family: str, ports: Sequence[Object], endpoints: list[Object]) -> Object:
    """A slice of a Service or of Endpoints, before it has a name."""
    metadata = owner["metadata"]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "generateName": name_prefix(metadata["name"]),
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(owner)],
        },
        "addressType": family,
        "endpoints": endpoints,
        "ports": list(ports),
    }


class SliceChanges(NamedTuple):
    """Slices to write. What is in `updated` has the metadata of the slice that it replaces."""

    created: Sequence[Object] = ()
    updated: Sequence[Object] = ()
    deleted: Sequence[Object] = ()

    def __or__(self, other: SliceChanges) -> SliceChanges:
        return SliceChanges(
            [*self.created, *other.created], [*self.updated, *other.updated], [*self.deleted, *other.deleted]
        )

    def recycled(self, may_replace: Callable[[Object], bool]) -> SliceChanges:
        """The same, where slices that are no longer needed become those that are."""
        created, updated, deleted = list(self.created), list(self.updated), []
        for old in self.deleted:
            same = [new for new in created if new["addressType"] == old["addressType"]]
            if not same or not may_replace(old):
                deleted.append(old)
                continue
            created.remove(same[-1])
            updated.append(replaced(old, same[-1]))
        return SliceChanges(created, updated, deleted)

    def writes(self) -> list[Write]:
        return [
            *(Create(ENDPOINT_SLICES, value) for value in self.created),
            *(Replace(ENDPOINT_SLICES, value) for value in self.updated),
            *(Delete(ENDPOINT_SLICES, value) for value in self.deleted),
        ]


def carried_out(writes: Sequence[Write]) -> Steps:
    """Write slices, and Events about them. Those that cannot be created because their namespace ends are no failure."""
    if writes:
        for write, result in zip(writes, (yield writes), strict=True):
            if not (isinstance(write, Create) and is_namespace_ending(result)):
                stored(result)
    return None


def replaced(old: Object, new: Object) -> Object:
    """A new slice in the place of an old one."""
    kept = {key: old["metadata"][key] for key in ("name", "uid", "resourceVersion", "creationTimestamp")}
    rest = {key: value for key, value in new["metadata"].items() if key != "generateName"}
    return {**new, "metadata": {**rest, **kept}}


def packed(
    existing: Sequence[Object],
    desired: Endpoints,
    capacity: int,
    labelled: Callable[[Object], Object | None],
    create: Callable[[list[Object]], Object],
) -> SliceChanges:
    """Distribute the desired endpoints of one set of ports.

    `labelled`: the slice with the labels that it should have; None: it has them. `create` makes one of endpoints.
    """
    left = dict(desired)
    updated: dict[str, Object] = {}
    unchanged: dict[str, Object] = {}
    deleted: list[Object] = []
    for old in existing:
        name, before = old["metadata"]["name"], old.get("endpoints") or []
        kept = [(each, new) for each in before if (new := left.pop(identity(each), None)) is not None]
        relabelled = labelled(old)
        if len(kept) == len(before) and all(are_equal(each, new) for each, new in kept):
            (unchanged if relabelled is None else updated)[name] = relabelled or old
        elif not kept:
            deleted.append(old)
        else:
            updated[name] = {**(relabelled or old), "endpoints": [new for _, new in kept]}
    waiting = list(left.values())
    for name, slice_ in sorted(updated.items(), key=lambda pair: -len(pair[1].get("endpoints") or ())):
        updated[name], waiting = _filled(slice_, waiting, capacity)
    created: list[Object] = []
    while waiting:
        name = _to_fill(unchanged, len(waiting), capacity)
        if name:
            updated[name], waiting = _filled(unchanged.pop(name), waiting, capacity)
        else:
            created.append(create(waiting[:capacity]))
            waiting = waiting[capacity:]
    return SliceChanges(created, list(updated.values()), deleted)


def _filled(slice_: Object, waiting: list[Object], capacity: int) -> tuple[Object, list[Object]]:
    endpoints = slice_.get("endpoints") or []
    room = max(capacity - len(endpoints), 0)
    return {**slice_, "endpoints": [*endpoints, *waiting[:room]]}, waiting[room:]


def _to_fill(unchanged: dict[str, Object], number: int, capacity: int) -> str:
    """The slice that is fullest with so many more endpoints; "": they fit into none."""
    room = {name: capacity - number - len(value.get("endpoints") or ()) for name, value in unchanged.items()}
    fitting = {name: left for name, left in room.items() if 0 <= left < capacity}
    return min(fitting, key=lambda name: fitting[name], default="")
