"""What of an object differs from run to run by itself: it is masked before two runs are compared.

Always masked are the fields that a server sets for each object anew (uid, times, resourceVersion, generation, managedFields).
Uids in other fields, such as those of owners, become the shape of the object that has the uid. The *shape* of an
object is its resource, namespace and name; a generated name becomes `*`, behind what it was generated from, and so does a uid in
a name.

So is what a cluster chooses for an object, such as the address of a pod: one that is made anew gets another one. An annotation
that is a time says when something was done, and is left out: it is there or not, as that was done or not.

Everything else is learnt: a field that differs among clean runs, whenever they are settled, is noise of this controller.

    run 1    status.token: 7f3a    spec.size: 1
    run 2    status.token: 91bc    spec.size: 1         masked: status.token
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, TypeAlias

from noxu.exploration.recording import ObjectPlace, RunRecording, at_step, ends_of_bursts
from noxu.values import Object

Path: TypeAlias = tuple[str, ...]
"""Fields and `*` for the items of a list."""
_ALWAYS: Final = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink", "deletionTimestamp"}
)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
TIME: Final = "<time>"
"""What a text becomes that is a time."""
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_IGNORED_RESOURCES: Final = ("events", "events.events.k8s.io", "leases.coordination.k8s.io", "nodes")
_OWN_PLACES: Final = ("services", "endpoints", "endpointslices.discovery.k8s.io")


_CHOSEN: Final[Mapping[str, Sequence[Path]]] = {
    "pods": (
        ("spec", "nodeName"), ("status", "podIP"), ("status", "podIPs"), ("status", "hostIP"), ("status", "hostIPs"),
        ("status", "containerStatuses"), ("status", "initContainerStatuses"), ("status", "startTime"),
    ),
    "services": (("spec", "clusterIP"), ("spec", "clusterIPs"), ("spec", "healthCheckNodePort")),
    "persistentvolumeclaims": (("metadata", "annotations", "volume.kubernetes.io/selected-node"),),
    "persistentvolumes": (("spec", "nodeAffinity"),),
}  # fmt: skip
"""What a cluster chooses for an object that is made anew: where it runs, and its addresses."""


class Shape(NamedTuple):
    """An object as it is the same in each run. A name that was generated ends with `*`."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


States: TypeAlias = Mapping[Shape, Sequence[Mapping[Path, tuple[Any, ...]]]]
"""What is there, by shape; several objects may have one."""


class Mask(NamedTuple):
    """`fields`: what is noise of each shape. `ignored`: patterns of a person, of shapes and of fields."""

    fields: Mapping[Shape, frozenset[Path]] = {}
    shapes: frozenset[Shape] = frozenset()
    """Those that are not in every clean run."""
    ignored: tuple[str, ...] = ()

    def covers(self, shape: Shape, path: Path) -> bool:
        if any(path[: len(chosen)] == chosen for chosen in _CHOSEN.get(shape.resource, ())):
            return True
        return path in self.fields.get(shape, frozenset()) or any(
            _matches(pattern, shape, path) for pattern in self.ignored
        )

    def hides(self, shape: Shape) -> bool:
        """Whether an object is not compared at all."""
        return (
            shape.resource in _IGNORED_RESOURCES
            or (shape.name == "kubernetes" and shape.resource in _OWN_PLACES)  # they have the port of the server
            or (shape.name == "kube-root-ca.crt" and shape.resource == "configmaps")  # it has its certificate
            or shape in self.shapes
            or any(_matches(pattern, shape, ()) for pattern in self.ignored)
        )


def shape_of(place: ObjectPlace, value: Object, names: MaskedNames) -> Shape:
    return Shape(place.resource, place.namespace, names.masked(place, value))


class MaskedNames:
    """How names are masked that a server or a controller has made at random: by generateName, or after a masked owner."""

    def __init__(self, recording: RunRecording) -> None:
        self._masked: dict[ObjectPlace, str] = {}
        self._uids: dict[str, str] = {}
        for change in recording.changes:
            value = change.object
            self._see(change.place, value)
        for place, value in recording.objects:
            self._see(place, value)

    def _see(self, place: ObjectPlace, value: Object) -> None:
        metadata = value.get("metadata") or {}
        if prefix := metadata.get("generateName"):
            self._masked[place] = f"{prefix}*"
        elif _UID.search(place.name):
            self._masked[place] = _UID.sub("*", place.name)
        if uid := metadata.get("uid"):
            self._uids[uid] = f"<uid of {place.resource} {self._masked.get(place, place.name)}>"

    def masked(self, place: ObjectPlace, value: Object) -> str:
        return self._masked.get(place, place.name)

    def text(self, text: str) -> str:
        """A text, in which uids and times are masked."""
        if _TIME.fullmatch(text):
            return TIME
        return _UID.sub(lambda found: self._uids.get(found[0], "<uid>"), text)


# -- comparing --------------------------------------------------------------------------------------------------------


def leaves(value: Any, names: MaskedNames, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The fields of an object that are compared, with their masked values. Items of a list are compared as a multiset."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            if name in _ALWAYS and (not path or path[0] == "metadata" or name in ("uid", "resourceVersion")):
                continue
            yield from leaves(item, names, (*path, name))
    elif isinstance(value, list) and value:
        items = [sorted(_frozen(leaves(item, names, (*path, "*")))) for item in value]
        for item in sorted(items):
            yield from item
    else:
        yield path, names.text(value) if isinstance(value, str) else value


def _frozen(fields: Iterable[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    return [(path, value if isinstance(value, str) else repr(value)) for path, value in fields]


def state(value: Object, shape: Shape, mask: Mask, names: MaskedNames) -> dict[Path, tuple[Any, ...]]:
    """The fields of an object that are compared: the values by path, several for the items of a list."""
    found: dict[Path, list[Any]] = {}
    generation = (value.get("metadata") or {}).get("generation")
    for path, item in leaves(value, names):
        if not mask.covers(shape, path) and not _says_when(path, item):
            is_of_generation = path[-1] == "observedGeneration" and generation is not None
            found.setdefault(path, []).append(_observed(item, generation) if is_of_generation else item)
    return {path: tuple(values) for path, values in found.items()}


def _says_when(path: Path, item: Any) -> bool:
    """An annotation that is a time says when something was done, as a log does, and not how the object is."""
    return path[:2] == ("metadata", "annotations") and item == TIME


def _observed(item: Any, generation: Any) -> str:
    """Generations count what has happened; what matters is whether the newest one was seen."""
    return "<the newest>" if str(item) == str(generation) else "<an older one>"


def end_state(recording: RunRecording, mask: Mask) -> States:
    """What is there at the end, by shape; several objects may have one, and are in order of their content."""
    names = MaskedNames(recording)
    found: dict[Shape, list[dict[Path, tuple[Any, ...]]]] = {}
    for place, value in recording.objects:
        shape = shape_of(place, value, names)
        if not mask.hides(shape):
            found.setdefault(shape, []).append(state(value, shape, mask, names))
    return {shape: sorted(states, key=repr) for shape, states in found.items()}


def learn(recordings: Sequence[RunRecording], ignored: Sequence[str] = ()) -> Mask:
    """What differs among clean runs, whenever they are settled."""
    bare = Mask(ignored=tuple(ignored))
    fields: dict[Shape, frozenset[Path]] = {}
    shapes: frozenset[Shape] = frozenset()
    for step in ends_of_bursts(recordings[0]):
        states = [end_state(at_step(recording, step), bare) for recording in recordings]
        shapes |= _sometimes(states)
        fields = _joined(fields, _noise(states))
    states = [end_state(recording, bare) for recording in recordings]
    return Mask(_joined(fields, _noise(states)), shapes | _sometimes(states), tuple(ignored))


def _joined(one: Mapping[Shape, frozenset[Path]], two: Mapping[Shape, frozenset[Path]]) -> dict[Shape, frozenset[Path]]:
    return {shape: one.get(shape, frozenset()) | two.get(shape, frozenset()) for shape in one.keys() | two.keys()}


def _sometimes(states: Sequence[States]) -> frozenset[Shape]:
    """What is not in every run, or not as often."""
    shapes = {shape for each in states for shape in each}
    return frozenset(shape for shape in shapes if len({len(each.get(shape, ())) for each in states}) > 1)


def _noise(states: Sequence[States]) -> dict[Shape, frozenset[Path]]:
    """The fields that differ among runs, of what is as often in each of them."""
    fields: dict[Shape, frozenset[Path]] = {}
    sometimes = _sometimes(states)
    for shape, first in states[0].items():
        pairs = (
            [] if shape in sometimes else [pair for each in states[1:] for pair in zip(first, each[shape], strict=True)]
        )
        noisy = {path for one, two in pairs for path in one.keys() | two.keys() if one.get(path) != two.get(path)}
        if noisy:
            fields[shape] = frozenset(noisy)
    return fields


def _matches(pattern: str, shape: Shape, path: Path) -> bool:
    """`configmaps/leader*` is an object, `*.status.x` and `widgets.metadata.labels.a.b/c` are fields of a resource."""
    resource = shape.resource.partition(".")[0]
    kind, slash, name = pattern.partition("/")
    if slash and "." not in kind:
        return not path and fnmatchcase(resource, kind) and fnmatchcase(shape.name, name)
    kind, dot, field = pattern.partition(".")
    if not dot or not path or not fnmatchcase(resource, kind):
        return False
    text = ".".join(step for step in path if step != "*")
    return fnmatchcase(text, field) or text.startswith(f"{field}.")
