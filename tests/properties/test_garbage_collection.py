"""Laws of garbage collection: what is left after random operations is what a small model says.

Objects are created with references to any others, existing or not, and deleted in every way. When everything has come to
rest, the model and the server agree on which objects exist, and on their references. This also holds if the cache is reset
in between, and the graph is built again.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from noxu.api import codec
from noxu.control_plane import resource_of
from noxu.registry.draft import Action, Body, DeleteOptions, WriteRequest
from noxu.values import Object
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world
from tests.faults.flaky import FlakyStore
from tests.timing import HANGS_AFTER

NAMES: Final = "abcdef"
POLICIES: Final = ("Background", "Foreground", "Orphan")


class Create(NamedTuple):
    """Create an object. Owners are (name, blocks); an owner that does not exist gets an invented uid."""

    name: str
    owners: tuple[tuple[str, bool], ...]


class Refer(NamedTuple):
    """Replace the owners of an object."""

    name: str
    owners: tuple[tuple[str, bool], ...]


class Delete(NamedTuple):
    name: str
    policy: str


class Settle(NamedTuple):
    """Let the collector come to rest."""


class Reset(NamedTuple):
    """Let the cache fail, so that the collector has to scan the store again."""


Operation: TypeAlias = Create | Refer | Delete | Settle | Reset
_names = st.sampled_from(NAMES)
_owners = st.lists(st.tuples(_names, st.booleans()), max_size=3, unique_by=lambda owner: owner[0]).map(tuple)
operations = st.lists(
    st.one_of(
        st.builds(Create, _names, _owners),
        st.builds(Create, _names, _owners),
        st.builds(Refer, _names, _owners),
        st.builds(Delete, _names, st.sampled_from(POLICIES)),
        st.just(Settle()),
        st.just(Reset()),
    ),
    max_size=20,
)


class Model:
    """What exists, and the owners of each object by uid. Every operation is followed by its consequences.

    A name refers to the object that had it when the reference was made; uids are numbers of creations.
    """

    def __init__(self) -> None:
        self.uids: dict[str, int] = {}  # of existing objects by name
        self.owners: dict[str, list[int]] = {}
        self._created = 0

    def create(self, name: str, owners: list[int]) -> None:
        self._created += 1
        self.uids[name], self.owners[name] = self._created, owners
        self.collect()

    def refer(self, name: str, owners: list[int]) -> None:
        self.owners[name] = owners
        self.collect()

    def delete(self, name: str, policy: str) -> None:
        """Foreground and Background differ in the order of deletions, and in cycles of no other owner."""
        uid = self.uids[name]
        if policy == "Orphan":
            self.owners = {child: [one for one in owners if one != uid] for child, owners in self.owners.items()}
        self.remove(name)
        self.collect()

    def remove(self, name: str) -> None:
        del self.uids[name], self.owners[name]

    def collect(self) -> None:
        """Remove what has owners, none of which exists; and the other references to what does not exist."""
        while True:
            existing = set(self.uids.values())
            doomed = [name for name, owners in self.owners.items() if owners and not existing & set(owners)]
            if not doomed:
                break
            for name in doomed:
                self.remove(name)
        self.owners = {name: [one for one in owners if one in existing] for name, owners in self.owners.items()}


class Run:
    """A server and the model, side by side."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.resource = resource_of(world.plane.served_resources, "", "configmaps")
        self.model = Model()
        self.numbers: dict[str, int] = {}  # the number in the model by uid
        self.resets = 0

    async def perform(self, operation: Operation) -> None:
        match operation:
            case Settle():
                await self.check()
            case Reset():
                self.resets += 1
                self.world.store.watch_fails = RuntimeError("planned")
                await self.write(Action.CREATE, f"reset-{self.resets}", [])
                await self.world.settled()
            case Create(name, owners):
                await self.check()
                if name not in self.model.uids:
                    references, numbers = await self.references(name, owners)
                    uid = await self.write(Action.CREATE, name, references)
                    self.model.create(name, numbers)
                    self.numbers[uid] = self.model._created
            case Refer(name, owners):
                await self.check()
                if name in self.model.uids:
                    references, numbers = await self.references(name, owners)
                    await self.write(Action.REPLACE, name, references)
                    self.model.refer(name, numbers)
            case Delete(name, policy):
                await self.check()
                if name in self.model.uids:
                    options = DeleteOptions(propagation=policy)
                    request = WriteRequest(Action.DELETE, self.resource, "default", name, delete_options=options)
                    await self.world.plane.writer.write(request)
                    self.model.delete(name, policy)

    async def references(self, of: str, owners: tuple[tuple[str, bool], ...]) -> tuple[list[Object], list[int]]:
        found: list[Object] = []
        numbers: list[int] = []
        for name, blocks in owners:
            if name == of:
                continue  # deleted in the foreground it would wait for itself, as upstream
            owner = await self.world.find(self.resource, name, "default")
            uid = owner["metadata"]["uid"] if owner else f"invented-{name}"
            reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
            found.append(reference | {"blockOwnerDeletion": blocks})
            numbers.append(self.numbers.get(uid, -1))
        return found, numbers

    async def write(self, action: Action, name: str, references: list[Object]) -> str:
        metadata: Object = {"name": name, "ownerReferences": references}
        body = Body({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        request = WriteRequest(action, self.resource, "default", "" if action is Action.CREATE else name, body=body)
        written = await self.world.plane.writer.write(request)
        return str(codec.decode_stored(written.body(self.resource))["metadata"]["uid"])

    async def stored(self) -> dict[str, Object]:
        collection = await self.world.plane.reader.collection(self.resource)
        found = [await self.world.get(self.resource, key.name, "default") for key in collection.keys]
        return {value["metadata"]["name"]: value["metadata"] for value in found}

    async def check(self) -> None:
        await self.world.settled()
        found = {name: value for name, value in (await self.stored()).items() if name in NAMES}
        assert {name: value.get("deletionTimestamp") for name, value in found.items()} == dict.fromkeys(self.model.uids)
        assert {
            name: sorted(self.numbers[reference["uid"]] for reference in value.get("ownerReferences", ()))
            for name, value in found.items()
        } == {name: sorted(owners) for name, owners in self.model.owners.items()}


@given(operations)
def test_what_is_left_is_what_the_model_says(steps: list[Operation]) -> None:
    async def run() -> None:
        async with asyncio.timeout(HANGS_AFTER), a_world(FlakyStore(), ManualClock()) as world:
            running = Run(world)
            for step in steps:
                await running.perform(step)
            await running.check()

    asyncio.run(run())
