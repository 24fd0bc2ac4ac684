"""Snapshots: named states of all objects, to which a running server returns.

A snapshot is a pin in the store (noxu_storage/pins.py): one write, however much is stored, and compaction keeps what came
after it. It lasts as long as its store, so those of a data directory survive a restart, and all servers of an etcd have
them.

A restore writes the difference between then and now (differences.py) as one transaction of new revisions. Nothing is asked:
neither admission nor finalizers nor quotas. Watches stay open and see what changes. No other write comes in between: clients
that write meanwhile wait, and find what a client finds that was overtaken. The controllers of this server are interrupted,
so that none finishes what it has begun for objects that are gone. When `restore` returns, definitions are
served or withdrawn, and the rules of RBAC apply.

Its last write moves the pin: the state there is the same, and the next restore reads only what came after this one.

What the server keeps about itself stays as it is: its Lease, that of its election, and the endpoints of the Service
`kubernetes`. All other Leases are objects like any.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.control.arguments import TEXT, Argument, refused
from noxu.control.calls import ControlCall, ControlRoute, Created
from noxu.control.differences import DEFINITIONS, Changes, changed_definitions, counted
from noxu.control.running import Control
from noxu.control_plane import ControlPlane
from noxu.controllers import leader_election
from noxu.controllers.bootstrap import lease_name
from noxu.expressions import expression
from noxu.features import listed_names, meant
from noxu.go.time import format_time
from noxu.registry.authors import AUTHOR, writing_as
from noxu.registry.offload import offload
from noxu.registry.resource import Versions
from noxu.registry.storage_form import SERVER_LEASES, is_temporary
from noxu.values import Object
from noxu_storage import pins
from noxu_storage.transactions import StagedWrite
from noxu_storage.types import (
    EVERYTHING,
    Compacted,
    Conflict,
    Key,
    KeyValue,
    OutcomeUnknown,
    Prefix,
    Revision,
    StoreError,
)

MAX_ATTEMPTS: Final = 100  # of a restore that other servers of the store overtake
MAX_NAME: Final = 63
NAME: Final = expression(r"[A-Za-z][A-Za-z0-9._-]*")
_OF_THE_API: Final = (
    Key("/endpoints", "default/", "kubernetes"),
    Key("discovery.k8s.io/endpointslices", "default/", "kubernetes"),
    Key("coordination.k8s.io/leases", f"{leader_election.NAMESPACE}/", leader_election.NAME),
)


def described(pin: KeyValue) -> Object:
    """A snapshot for people and programs. `keys` is the number of objects."""
    try:
        value = codec.decode_stored(pin.value)
    except ValueError:
        value = {}
    known = value if isinstance(value, dict) else {}
    return {"name": pin.key.name, "revision": pin.revision, "time": known.get("time"), "keys": known.get("keys")}


class Snapshots:
    """Those of one server. All methods raise ApiError and StoreError."""

    def __init__(self, control: Control) -> None:
        self._plane: ControlPlane = control.server.plane
        self._restoring = asyncio.Lock()

    async def create(self, name: str = "") -> Object:
        """Take a snapshot. Without a name it gets one."""
        if name and (len(name) > MAX_NAME or not NAME.fullmatch(name)):
            raise refused(
                "name", f"it has at most {MAX_NAME} letters, digits, '.', '_' and '-', and begins with a letter"
            )
        store = self._plane.store
        value = codec.encode(
            {"time": format_time(self._plane.clock.now()), "keys": await self._count()}, sort_keys=False
        )
        while True:
            key = pins.key_of(name or f"snapshot-{store.revision + 1}")
            try:
                revision = await store.put(key, value, expected=0)
            except Conflict as conflict:
                if not name or conflict.current is None:
                    continue  # another one was faster, or a restore, so the store has a new revision
                time = described(conflict.current)["time"]
                message = f"there is a snapshot {name!r} already, of {time}: delete it, or choose another name"
                raise ApiError(409, message, "AlreadyExists", {"name": name}) from None
            self._plane.persistence.note(revision)
            return described(KeyValue(key, value, revision))

    async def _count(self) -> int:
        store = self._plane.store
        number = await store.count(EVERYTHING)
        for collection in (pins.COLLECTION, SERVER_LEASES):
            number -= await store.count(Prefix(collection))
        return number

    async def all(self) -> list[Object]:
        """All snapshots, the oldest first."""
        return [described(pin) for pin in await pins.pinned(self._plane.store)]

    async def get(self, name: str) -> Object:
        return described(await self.find(name))

    async def find(self, name: str) -> KeyValue:
        """The pin of a snapshot, whose revision is that of the state."""
        pin = await self._plane.store.get(pins.key_of(name))
        if pin is None:
            names = [snapshot["name"] for snapshot in await self.all()]
            there = f"there are {listed_names(names)}{meant(name, names)}" if names else "there is none"
            raise ApiError(404, f"there is no snapshot {name!r}: {there}", "NotFound", {"name": name})
        return pin

    async def delete(self, name: str) -> Object:
        """Release what a snapshot pins. Returns the snapshot."""
        while True:
            pin = await self.find(name)
            try:
                revision = await self._plane.store.delete(pin.key, expected=pin.revision)
            except Conflict:
                continue  # a restore has moved it
            self._plane.persistence.note(revision)
            return described(pin)

    async def restore(self, name: str, *, release: bool = False, user: str = "") -> Object:
        """Make all objects what they were. Returns the new revision, and how many objects have changed in which way.

        `release`: the snapshot is deleted by the same transaction. `user` is who has asked for it.
        """
        async with self._restoring, self._plane.controllers_paused():  # of two restores the second one counts
            author = AUTHOR.get()._replace(verb="restore", user=user)  # a call over HTTP has said the rest
            with _explained(name, is_shared=self._plane.store.shared), writing_as(author):
                writes, revision = await self._write(name, release=release)
        return {"name": name, "revision": revision, **counted(writes)}

    async def _write(self, name: str, *, release: bool) -> tuple[Sequence[StagedWrite], Revision]:
        """(The difference to a snapshot, the revision at which it is written.) Raises Conflict if others always overtake it."""
        for attempt in range(MAX_ATTEMPTS):
            try:
                return await self._attempt(await self.find(name), release=release)
            except Conflict:
                if attempt == MAX_ATTEMPTS - 1:
                    raise
                await self._plane.store.catch_up()
        raise AssertionError

    async def _attempt(self, pin: KeyValue, *, release: bool) -> tuple[Sequence[StagedWrite], Revision]:
        store, left = self._plane.store, frozenset(self._left())
        changes = Changes(store, pin.revision, lambda key: key in left or is_temporary(key))
        writes: list[StagedWrite] = []
        refusing: list[Versions] = []

        async def decide() -> Sequence[StagedWrite]:
            await store.catch_up()
            await changes.follow()
            writes[:] = changes.writes()
            definitions = [write for write in writes if write.key.collection == DEFINITIONS]
            refusing[:] = await offload(
                sum(len(write.value or b"") for write in definitions), self._changed, definitions
            )
            for versions in refusing:
                # until its controller has seen what follows: no object is stored that the restored definition does not know
                versions.terminating = True
            return [*writes, *self._moved(pin, release=release)]

        await changes.follow()  # nearly all of it while others still write
        try:
            return writes, await self._plane.persistence.transact(decide)
        except BaseException:
            for versions in refusing:
                versions.terminating = False
            raise

    def _changed(self, writes: Sequence[StagedWrite]) -> list[Versions]:
        """What is served of definitions that a difference changes, unless they are being deleted."""
        defined = self._plane.served_resources.current.defined
        names = changed_definitions(writes)
        return [defined[name] for name in names if name in defined and not defined[name].terminating]

    def _left(self) -> Iterator[Key]:
        """The objects that this server keeps about itself."""
        yield from _OF_THE_API
        if (facts := self._plane.bootstrap.facts) is not None:
            yield Key("coordination.k8s.io/leases", "kube-system/", lease_name(facts.hostname))

    def _moved(self, pin: KeyValue, *, release: bool) -> Sequence[StagedWrite]:
        """What becomes of the pin. Where others write, the state after all writes need not be that of the snapshot."""
        if release:
            return (StagedWrite(pin.key, None, pin.revision, pin.value),)
        return () if self._plane.store.shared else (StagedWrite(pin.key, pin.value, pin.revision, pin.value),)


@contextlib.contextmanager
def _explained(name: str, *, is_shared: bool) -> Iterator[None]:
    """Errors of the store that say what a restore has changed, and what to do."""
    text = f"the snapshot {name!r} cannot be restored"
    try:
        yield
    except Compacted as error:
        raise ApiError(410, f"{text}: another program has compacted its history, {error}", "Expired") from None
    except OutcomeUnknown as error:
        raise errors.plain_error(
            f"whether the snapshot {name!r} is restored is not known, {error}: restore it again"
        ) from None
    except Conflict:
        raise ApiError(409, f"{text}: other servers write all the time; restore it again", "Conflict") from None
    except StoreError as error:
        changed = "perhaps a part is restored: restore it again" if is_shared else "nothing has changed"
        raise errors.plain_error(f"{text}, {error}: {changed}") from None


# -- the routes --------------------------------------------------------------------------------------------------------


def _of(call: ControlCall) -> Snapshots:
    return call.control.part(Snapshots)


async def _create(call: ControlCall) -> Created:
    return Created(await _of(call).create(call.body["name"]))


async def _list(call: ControlCall) -> Object:
    return {"items": await _of(call).all()}


async def _get(call: ControlCall) -> Object:
    return await _of(call).get(call.path["snapshot"])


async def _delete(call: ControlCall) -> Object:
    return await _of(call).delete(call.path["snapshot"])


async def _restore(call: ControlCall) -> Object:
    return await _of(call).restore(call.path["snapshot"], user=call.user.name)


_ONE: Final = "/_noxu/snapshots/{snapshot}"
ROUTES: Final = (
    ControlRoute(
        "POST",
        "/_noxu/snapshots",
        _create,
        "Take a snapshot of all objects.",
        body={"name": Argument(TEXT, "its name; without one it gets one", "")},
    ),
    ControlRoute("GET", "/_noxu/snapshots", _list, "List the snapshots."),
    ControlRoute("GET", _ONE, _get, "Get a snapshot."),
    ControlRoute("DELETE", _ONE, _delete, "Delete a snapshot, and let its history be compacted."),
    ControlRoute("POST", f"{_ONE}/restore", _restore, "Make all objects what they were when the snapshot was taken."),
)
