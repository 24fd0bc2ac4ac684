"""Fields whose feature gate is off in a release are dropped when an object is written (upstream's dropDisabledFields).

`noxu.releases.gated_fields` says which. A field is dropped wherever its type is: `Container.resizePolicy` in each container
of a pod, and in those of the pods in templates. An update keeps it if the old object has one of the gate's fields anywhere.

The paths are found in the structs of a kind when its first object is written, and only in releases that drop something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from noxu.go.structs import List, Map, Struct, Type
from noxu.kinds.kind import Drop
from noxu.releases.gated_fields import GATED, LAST, GatedFields
from noxu.values import Json, Object

Steps: TypeAlias = tuple[str, ...]
"""A path: names of fields, and `*` for every item of a list or every value of a map."""

_EACH: Final = "*"
_IMAGE_VOLUME: Final = ("volumes", _EACH, "image")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


class _Row(NamedTuple):
    gated: GatedFields
    paths: list[Steps]


@cache
def dropper(struct: Struct, release: int) -> Drop | None:
    """What drops fields from objects of a kind (new, old), in place; None if the release keeps them all."""
    gates = [gated for gated in GATED if release <= gated.until] if release <= LAST else []
    found = [(f"{owner}.{steps[-1]}", steps) for owner, steps in _fields(struct)] if gates else []
    rows = [_Row(gated, [steps for name, steps in found if name in gated.fields]) for gated in gates]
    used = [row for row in rows if row.paths]

    def drop(new: Object, old: Object | None) -> None:
        for gated, paths in used:
            if old is None or not any(_uses(old, steps, gated.forced) for steps in paths):
                for steps in paths:
                    _drop(new, steps, gated)

    return drop if used else None


def _fields(type_: Type, before: Steps = (), within: tuple[Struct, ...] = ()) -> Iterator[tuple[str, Steps]]:
    """(the struct that declares a field, its path) of all fields below a type."""
    if isinstance(type_, (List, Map)):
        yield from _fields(type_.element, (*before, _EACH), within)
    elif isinstance(type_, Struct) and type_ not in within:
        for name, field in type_.fields.items():
            if name != "metadata":
                yield field.inline.rpartition(".")[2] or type_.name, (*before, name)
                yield from _fields(field.type, (*before, name), (*within, type_))


def _values(value: Json, steps: Steps) -> Iterator[Json]:
    """The values at a path."""
    if not steps:
        yield value
    elif steps[0] == _EACH:
        for item in (value.values() if isinstance(value, dict) else value) or ():
            yield from _values(item, steps[1:])
    elif isinstance(value, dict) and value.get(steps[0]) is not None:
        yield from _values(value[steps[0]], steps[1:])


def _uses(old: Object, steps: Steps, forced: str) -> bool:
    return any(value not in (None, "", [], forced) for value in _values(old, steps))


def _drop(new: Object, steps: Steps, gated: GatedFields) -> None:
    if steps[-3:] == _IMAGE_VOLUME:
        for spec in _values(new, steps[:-3]):
            _drop_image_volumes(spec)
        return
    for holder in _values(new, steps[:-1]):
        if steps[-1] in holder:
            if gated.forced:
                holder[steps[-1]] = gated.forced  # in place: the object that is being written
            else:
                del holder[steps[-1]]
    if gated.emptied:
        _drop_empty(new, steps[:-1])


def _drop_empty(new: Object, steps: Steps) -> None:
    """Drop the struct at a path if nothing is in it, then the one around it; not the item of a list."""
    if len(steps) > 1 and steps[-1] != _EACH:
        for holder in _values(new, steps[:-1]):
            if holder.get(steps[-1]) == {}:
                del holder[steps[-1]]  # in place: the object that is being written
        _drop_empty(new, steps[:-1])


def _drop_image_volumes(spec: Object) -> None:
    """Drop whole volumes of images, and where they are mounted."""
    names = {volume.get("name") for volume in spec.get("volumes") or () if volume.get("image") is not None}
    if names:
        _keep(spec, "volumes", lambda volume: volume.get("image") is None)
        for containers in _CONTAINERS:
            for container in spec.get(containers) or ():
                _keep(container, "volumeMounts", lambda mount: mount.get("name") not in names)


def _keep(holder: Object, name: str, wanted: Callable[[Object], bool]) -> None:
    """Keep the items of a list that are wanted, and no empty list."""
    items = [item for item in holder.pop(name, None) or () if wanted(item)]
    if items:
        holder[name] = items
