"""Two recordings side by side: where their writes part, and how what was left at the end differs.

    one                                       the other
    create widgets.example.com default/a      create widgets.example.com default/a
    create pods default/a-<generated>         create pods default/a-<generated>
    patch status of widgets… default/a        create pods default/a-<generated>          <- here they part

Compared is what clients have written, in its order; what controllers of the server have written follows from that. Names that the
server has generated count as equal, and in objects what differs from server to server (`comparison.VOLATILE`). Leases, Events and
the server's own address are left out. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from noxu.recordings.comparison import VOLATILE
from noxu.recordings.lines import ServerRecording
from noxu.values import Json, Object

MAX_WRITES: Final = 1_000  # of each recording, the oldest: a comparison takes their product
MAX_OBJECTS: Final = 200
SKIPPED: Final = ("leases.coordination.k8s.io", "events", "events.events.k8s.io")
ADDRESS: Final = ("services", "endpoints", "endpointslices.discovery.k8s.io")
"""The resources of `default/kubernetes`, which has the port of the server."""
GENERATED: Final = "<generated>"
_LEFT_OUT: Final = VOLATILE | {"managedFields", "generation", "observedGeneration"}


class Pair(NamedTuple):
    """Two writes beside each other; "" where there is none."""

    one: str
    other: str

    @property
    def is_same(self) -> bool:
        return self.one == self.other


class EndDifference(NamedTuple):
    """An object at the end of both; None: it is not there."""

    place: str
    one: Object | None
    other: Object | None


class Divergence(NamedTuple):
    """`first`: the number of the first pair that differs, from 0; None: there is none."""

    pairs: Sequence[Pair]
    first: int | None
    objects: Sequence[EndDifference]

    @property
    def sentence(self) -> str:
        """What is to be said first."""
        number = len(self.objects)
        more = " or more" if number == MAX_OBJECTS else ""
        differ = "1 object differs" if number == 1 else f"{number}{more} objects differ"
        left = f"{differ} at the end" if number else "what is left at the end is the same"
        if self.first is None:
            writes = "The writes" if len(self.pairs) < MAX_WRITES else f"The first {MAX_WRITES:,} writes"
            return f"{writes} are the same, and {left}."
        one, other = self.pairs[self.first]
        if not one:
            return f"The first difference is a write of the other run alone: {other}; {left}."
        if not other:
            return f"The first difference is a write that the other run lacks: {one}; {left}."
        return f"The first difference: {other} instead of {one}; {left}."


def diverged(one: ServerRecording, other: ServerRecording) -> Divergence:
    """Compare two recordings."""
    pairs = list(_pairs(list(_written(one))[:MAX_WRITES], list(_written(other))[:MAX_WRITES]))
    first = next((number for number, pair in enumerate(pairs) if not pair.is_same), None)
    return Divergence(pairs, first, list(_different(_at_end(one), _at_end(other)))[:MAX_OBJECTS])


# -- writes ------------------------------------------------------------------------------------------------------------


def _written(recording: ServerRecording) -> Iterator[str]:
    """What clients have written, as lines."""
    states = {_place(line): line["stored"] for line in recording.stored}
    for write in recording.writes:
        value = write.get("object") or states.get(_place(write))
        states[_place(write)] = write.get("object")
        if not write["controller"] and write["resource"] not in SKIPPED:
            of = f" {write['subresource']} of" if write["subresource"] else ""
            yield f"{write['verb']}{of} {_named(write, value)}"


def _pairs(one: Sequence[str], other: Sequence[str]) -> Iterator[Pair]:
    for _, begin, end, begin_other, end_other in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        left, right = one[begin:end], other[begin_other:end_other]
        for number in range(max(len(left), len(right))):
            yield Pair(
                left[number] if number < len(left) else "",
                right[number] if number < len(right) else "",
            )


def _place(line: Object) -> tuple[str, str, str]:
    return line["resource"], line["namespace"], line["name"]


def _named(line: Object, value: Json) -> str:
    """`widgets.example.com default/a`, where a generated name is none."""
    metadata = (value.get("metadata") if isinstance(value, dict) else None) or {}
    prefix, name = metadata.get("generateName"), line["name"]
    if prefix and name.startswith(prefix):
        name = f"{prefix}{GENERATED}"
    return f"{line['resource']} {line['namespace']}/{name}" if line["namespace"] else f"{line['resource']} {name}"


# -- objects -----------------------------------------------------------------------------------------------------------


def _at_end(recording: ServerRecording) -> Mapping[str, Object]:
    """The objects at the end, without what differs from server to server. Of those with generated names, each has a number."""
    states: dict[tuple[str, str, str], Json] = {_place(line): line["stored"] for line in recording.stored}
    for write in recording.writes:
        states.pop(_place(write), None)
        if write.get("object"):
            states[_place(write)] = write["object"]
    found: dict[str, Object] = {}
    for (resource, namespace, name), value in states.items():
        if resource in SKIPPED or not isinstance(value, dict):
            continue
        if resource in ADDRESS and (namespace, name) == ("default", "kubernetes"):
            continue
        named = _named({"resource": resource, "namespace": namespace, "name": name}, value)
        number = 1
        while (place := f"{named} {number}" if number > 1 else named) in found:
            number += 1
        found[place] = _stable(value, name, named.rpartition("/")[2].rpartition(" ")[2])
    return found


def _stable(value: Json, name: str, shown: str) -> Json:
    """Without volatile fields, and with the generated name replaced."""
    if isinstance(value, dict):
        return {key: _stable(item, name, shown) for key, item in value.items() if key not in _LEFT_OUT}
    if isinstance(value, list):
        return [_stable(item, name, shown) for item in value]
    return shown if value == name and shown.endswith(GENERATED) else value


def _different(one: Mapping[str, Object], other: Mapping[str, Object]) -> Iterator[EndDifference]:
    for place in sorted(one.keys() | other.keys()):
        if one.get(place) != other.get(place):
            yield EndDifference(place, one.get(place), other.get(place))
