"""What of an object differs from run to run by itself: it is masked before two runs are compared.

What a server sets for each object anew is always masked (`masked_objects`), and names that were made at random are (`shapes`). So is what
a cluster chooses for an object, such as the address of a pod: one that is made anew gets another one.

Everything else is learnt: a field that differs among clean runs, whenever they are settled, is noise of this controller.

    run 1    status.token: 7f3a    spec.size: 1
    run 2    status.token: 91bc    spec.size: 1         masked: status.token
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, TypeAlias

from noxu.exploration.masked_objects import MaskedObject, Path
from noxu.exploration.recording import ObjectPlace, RunRecording, at_step, ends_of_bursts
from noxu.exploration.shapes import MaskedNames, Shape
from noxu.values import Object

States: TypeAlias = Mapping[Shape, Sequence[MaskedObject]]
"""What is there, by shape; several objects may have one, and are in order of their content."""
_IGNORED_RESOURCES: Final = ("events", "events.events.k8s.io", "leases.coordination.k8s.io", "nodes")
_OWN_PLACES: Final = ("services", "endpoints", "endpointslices.discovery.k8s.io")
_CHOSEN: Final[Mapping[str, frozenset[Path]]] = {
    "pods": frozenset({
        ("spec", "nodeName"), ("status", "podIP"), ("status", "podIPs"), ("status", "hostIP"), ("status", "hostIPs"),
        ("status", "containerStatuses"), ("status", "initContainerStatuses"), ("status", "startTime"),
        ("metadata", "labels", "controller-revision-hash"), ("metadata", "labels", "pod-template-hash"),
    }),
    "services": frozenset({("spec", "clusterIP"), ("spec", "clusterIPs"), ("spec", "healthCheckNodePort")}),
    "persistentvolumeclaims": frozenset({("metadata", "annotations", "volume.kubernetes.io/selected-node")}),
    "persistentvolumes": frozenset({("spec", "nodeAffinity")}),
    "deployments.apps": frozenset({("status", "collisionCount")}),
    "statefulsets.apps": frozenset({("status", "collisionCount")}),
    "daemonsets.apps": frozenset({("status", "collisionCount")}),
}  # fmt: skip
"""What a cluster chooses for an object that is made anew: where it runs, its addresses, a hash of its template, and how often
that was taken. Each path has two or three steps."""


class ShapeMask(NamedTuple):
    """What is masked of the objects of one shape: fields that are noise, and others with all that is below them."""

    noise: frozenset[Path]
    chosen: frozenset[Path]
    ignored: Sequence[str]
    """Patterns of fields, such as `status.x` and `metadata.labels.*`."""

    def covers(self, path: Path) -> bool:
        if path in self.noise or path[:2] in self.chosen or path[:3] in self.chosen:
            return True
        return bool(self.ignored) and _is_ignored(".".join(step for step in path if step != "*"), self.ignored)


class Mask(NamedTuple):
    """`fields`: what is noise of each shape. `ignored`: patterns of a person, of shapes and of fields."""

    fields: Mapping[Shape, frozenset[Path]] = {}
    shapes: frozenset[Shape] = frozenset()
    """Those that are not in every clean run."""
    ignored: tuple[str, ...] = ()

    def of(self, shape: Shape) -> ShapeMask:
        patterns = (_pattern_of_fields(pattern, shape) for pattern in self.ignored)
        return ShapeMask(
            self.fields.get(shape, frozenset()),
            _CHOSEN.get(shape.resource, frozenset()),
            [pattern for pattern in patterns if pattern],
        )

    def hides(self, shape: Shape) -> bool:
        """Whether an object is not compared at all."""
        return (
            shape.resource in _IGNORED_RESOURCES
            or (shape.name == "kubernetes" and shape.resource in _OWN_PLACES)  # they have the port of the server
            or (shape.name == "kube-root-ca.crt" and shape.resource == "configmaps")  # it has its certificate
            or shape in self.shapes
            or any(_is_of(pattern, shape) for pattern in self.ignored)
        )


# -- what a person ignores --------------------------------------------------------------------------------------------


def _is_of(pattern: str, shape: Shape) -> bool:
    """Whether a pattern is one of objects, such as `configmaps/leader*`, and of this one."""
    kind, slash, name = pattern.partition("/")
    if not slash or "." in kind:
        return False
    return fnmatchcase(shape.resource.partition(".")[0], kind) and fnmatchcase(shape.name, name)


def _pattern_of_fields(pattern: str, shape: Shape) -> str:
    """`status.x` of `*.status.x`, `metadata.labels.a.b/c` of `widgets.metadata.labels.a.b/c`; "" if it is not about the shape."""
    before, slash, _ = pattern.partition("/")
    if slash and "." not in before:
        return ""
    kind, _, fields = pattern.partition(".")
    return fields if fnmatchcase(shape.resource.partition(".")[0], kind) else ""


def _is_ignored(field: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(field, pattern) or field.startswith(f"{pattern}.") for pattern in patterns)


# -- the objects of a run ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MaskedRun:
    """A run as it is compared with others. An object is masked once in each of its states, which may last for many steps."""

    recording: RunRecording
    mask: Mask
    names: MaskedNames
    _known: dict[ObjectPlace, list[MaskedObject]] = field(default_factory=dict)

    def until(self, step: int) -> MaskedRun:
        """The run up to the moment when a step was done; 0: the start."""
        return replace(self, recording=at_step(self.recording, step))

    def end(self) -> States:
        """What is there at the end."""
        found: dict[Shape, list[MaskedObject]] = {}
        for place, value in self.recording.objects:
            shape = self.names.shape(place)
            if not self.mask.hides(shape):
                found.setdefault(shape, []).append(self.masked(place, value))
        return {shape: _in_order(objects) for shape, objects in found.items()}

    def masked(self, place: ObjectPlace, value: Object) -> MaskedObject:
        known = self._known.setdefault(place, [])
        found = next((each for each in known if each.is_of(value)), None)
        if found is None:
            found = MaskedObject(value, self.mask.of(self.names.shape(place)).covers, self.names)
            known.append(found)
        return found


def masked(recording: RunRecording, mask: Mask) -> MaskedRun:
    return MaskedRun(recording, mask, MaskedNames(recording))


def _in_order(objects: Sequence[MaskedObject]) -> Sequence[MaskedObject]:
    return sorted(objects, key=lambda each: repr(each.fields)) if len(objects) > 1 else objects


# -- learning ---------------------------------------------------------------------------------------------------------


def learn(recordings: Sequence[RunRecording], ignored: Sequence[str] = ()) -> Mask:
    """What differs among clean runs, whenever they are settled."""
    bare = Mask(ignored=tuple(ignored))
    fields: dict[Shape, frozenset[Path]] = {}
    shapes: frozenset[Shape] = frozenset()
    runs = [masked(recording, bare) for recording in recordings]
    settled = [[run.until(step) for run in runs] for step in ends_of_bursts(recordings[0])]
    for moment in (*settled, runs):
        states = [run.end() for run in moment]
        shapes |= _sometimes(states)
        fields = _joined(fields, _noise(states))
    return Mask(fields, shapes, bare.ignored)


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
        noisy = {path for one, two in pairs for path, _, _ in one.differences(two)}
        if noisy:
            fields[shape] = frozenset(noisy)
    return fields
