"""The objects that a new store has from the start: what controllers would create one by one, stored together.

In a new store no webhook and no policy can refuse or change objects, and there is nothing that was written before. So a controller
that knows what it will create says so (`Reconciler.first_objects`), with manifests that have all defaults, in the order of
declaration. `create` stores what a create request would make of them, in one transaction where the store has transactions.
What this skips is the pipeline of a write. A test compares the result with that of writes, byte by byte.

A manifest may contain NOW for the time. What is stored of one is a template, made once in a process, in which the uid and
the times are filled in:

    {"kind":"Namespace",…,"uid":"{uid}","creationTimestamp":"{now}",…,"time":"{now}","fieldsType":"FieldsV1",…}

A key of a controller whose objects are all stored is `fresh`: it is reconciled when its time comes. Objects that could not
be stored, because another server was faster or the store failed, are created as always: by reconciling their key.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple, Protocol

from noxu.api import codec
from noxu.clock import Clock
from noxu.controllers import default_objects
from noxu.go.time import format_time
from noxu.identifiers import Identifiers
from noxu.registry.entry import key_of
from noxu.registry.persistence import Persistence
from noxu.registry.resource import Resource
from noxu.values import Object
from noxu_storage.types import Key

NOW: Final = "{now}"
_UID: Final = "{uid}"
_UID_BYTES, _NOW_BYTES = _UID.encode(), NOW.encode()


class FirstObject(NamedTuple):
    """An object, and the key of the controller that keeps it. `template` is that of its manifest.

    `every`: after so many seconds the key is reconciled; None: after a change.
    """

    key: Hashable
    resource: Resource
    manifest: Object
    template: bytes
    every: float | None = None


class Creating(Protocol):
    """Of a controller, what it creates in a new store, and the keys whose objects are stored, with their times."""

    fresh: dict[Any, float | None]

    def first_objects(self) -> Iterable[FirstObject]: ...


def template(manifest: Object, manager: str) -> bytes:
    """What is stored of a complete manifest by a field manager."""
    return codec.encode(default_objects.stored(manifest, _UID, NOW, manager), sort_keys=False)


async def create(
    controllers: Iterable[Creating], persistence: Persistence, clock: Clock, identifiers: Identifiers
) -> None:
    """Store the first objects of controllers that are not started yet. Their keys become fresh."""
    wanted = [(controller, first) for controller in controllers for first in controller.first_objects()]
    now, new_uid = format_time(clock.now()).encode(), identifiers.new_uid
    stored = await persistence.create_all(
        [
            (_key(first), first.template.replace(_UID_BYTES, new_uid().encode()).replace(_NOW_BYTES, now))
            for _, first in wanted
        ]
    )
    missing = {
        (controller, first.key) for (controller, first), is_stored in zip(wanted, stored, strict=True) if not is_stored
    }
    for controller, first in wanted:
        if (controller, first.key) not in missing:
            controller.fresh[first.key] = first.every


def _key(first: FirstObject) -> Key:
    metadata = first.manifest["metadata"]
    return key_of(first.resource, metadata.get("namespace", ""), metadata["name"])
