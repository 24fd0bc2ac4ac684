"""StorageVersionMigrations: the objects of a resource are stored in its storage version (upstream's storage-version-migrator).

Of the migrations of one resource one runs at a time, the oldest first. Its status shows how far it is
(pkg/controller/storageversionmigrator):

    Running     True    MigrationRunning                    it is its turn; its resourceVersion is that of the store then
                False   MigrationCompleted                  it has ended
    Succeeded   True    StorageVersionMigrationSucceeded    every object that existed at this resourceVersion was rewritten
    Failed      True    StorageVersionMigrationFailed       the message has the first error that does not pass

The definition of a custom resource has the condition StorageMigrating meanwhile. After a success only its storage version
remains in `storedVersions`, unless its spec has changed since the beginning. It changes before the migration shows its success.
After a failure `storedVersions` remain, as objects may: upstream shortens them then, too.

A resource may appear within a minute after the migration. Errors that pass (429, 500, 503, 504) are retried.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Self

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.clock import rfc3339_now
from noxu.controllers import controller
from noxu.controllers.controller import Controller, ControllerParts
from noxu.crd import conditions, types
from noxu.crd.types import storage_version
from noxu.go.time import unix_nanos
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.offload import offload
from noxu.registry.reader import unlistable
from noxu.registry.resource import APPLY_PATCH, Resource
from noxu.registry.rewriting import outdated, rewrite
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.values import Object

RUNNING: Final = "Running"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
MIGRATING: Final = "StorageMigrating"
RUNNER: Final = "migration-runner-controller"
"""The field manager of the status of definitions."""
APPEARS_WITHIN: Final = 60.0  # seconds since the creation of a migration
PASSING: Final = frozenset({429, 500, 503, 504})  # codes of errors that are retried
ROUNDS: Final = 10  # until no write stores an object in an older version any more
NEEDED: Final = frozenset({"list", "patch", "update"})
ABSENT: Final = "resource does not exist in discovery"
UNSUITABLE: Final = "resource is not migratable"


class MigrationTarget(NamedTuple):
    """The resource of a migration."""

    group: str
    plural: str

    @property
    def definition(self) -> str:
        """The name of its definition, if it is a custom resource."""
        return f"{self.plural}.{self.group}"


class StorageMigrationController(Controller[MigrationTarget]):
    """Runs migrations. Keys are their resources."""

    name = "storage-version-migrator-controller"
    follows = (("storagemigration.k8s.io", "storageversionmigrations"),)
    workers = 5
    user = controller.controller(name)

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        self.definitions = parts.resource(types.GROUP, types.RESOURCE)
        self._targets: dict[str, MigrationTarget] = {}  # by name of a migration
        self._absent: set[MigrationTarget] = set()  # those that may appear
        self.served_resources.followers.append(self._follow)

    def _take_over(self, idle: Self) -> None:
        super()._take_over(idle)
        self._targets, self._absent = idle._targets.copy(), idle._absent.copy()

    def _follow(self) -> None:
        """The served resources have changed."""
        for target in self._absent:
            self.queue.add(target)

    def observe(self, change: Change) -> Iterable[MigrationTarget]:
        return self._note(change.key.name, change.entry)

    def resync(self) -> Iterable[MigrationTarget]:
        self._targets = {}
        return {target for key, entry in self.collection.entries.items() for target in self._note(key.name, entry)}

    def _note(self, name: str, entry: StoredObject | None) -> set[MigrationTarget]:
        """Keep the resource of a migration; None: it was deleted. The resources that this concerns."""
        before = self._targets.pop(name, None)
        with suppress(ApiError):  # what another program has stored may be unreadable
            if entry is not None:
                resource = (object_at(entry, self.resource).get("spec") or {}).get("resource") or {}
                self._targets[name] = MigrationTarget(resource.get("group", ""), resource.get("resource", ""))
        return {target for target in (before, self._targets.get(name)) if target is not None}

    async def reconcile(self, target: MigrationTarget) -> float | None:
        self._absent.discard(target)
        migration = self._current(target)
        if migration is None:
            await self._release(target)
            return None
        return await self._migrate(target, migration)

    def _current(self, target: MigrationTarget) -> Object | None:
        """The migration that runs, or whose turn it is; None: all have ended."""
        of_target = [name for name, of_name in self._targets.items() if of_name == target]
        pending = [
            migration for migration in map(self._read, of_target) if migration is not None and not _has_ended(migration)
        ]
        return min(pending, key=_turn, default=None)

    def _exists(self, migration: Object) -> bool:
        live = self._read(migration["metadata"]["name"])
        return live is not None and live["metadata"]["uid"] == migration["metadata"]["uid"]

    def _read(self, name: str) -> Object | None:
        entry = self.collection.entries.get(key_of(self.resource, "", name))
        return None if entry is None else object_at(entry, self.resource)

    async def _migrate(self, target: MigrationTarget, migration: Object) -> float | None:
        """Run a migration to its end, or return when to go on. Raises ApiError to go on after a while."""
        name = migration["metadata"]["name"]
        if not _is_true(migration, RUNNING):
            await self._mark(target, "True", "MigrationRunning", f"Migration {name} is running")
            migration = await self._write(migration, (RUNNING, "True", "MigrationRunning", "The migration is running"))
        resources = self._resources(target)
        if not resources and (remaining := self._appears_within(migration)) > 0:
            self._absent.add(target)
            return remaining
        if not resources:
            fault = ABSENT
        elif not all(resource.is_stored and NEEDED.issubset(resource.verbs) for resource in resources):
            fault = UNSUITABLE
        else:
            if not migration["status"].get("resourceVersion"):
                await self.reader.store.catch_up()
                migration = await self._write(migration, version=str(self.reader.store.revision))
            fault = await self._rewrite_all(target, migration, resources)
        await self._finish(target, migration, fault)
        return None

    def _appears_within(self, migration: Object) -> float:
        """The seconds in which the resource may still appear."""
        created = unix_nanos(migration["metadata"]["creationTimestamp"]) / 1e9
        return APPEARS_WITHIN - (self.clock.now().timestamp() - created)

    def _resources(self, target: MigrationTarget) -> list[Resource]:
        """The best version of each collection: custom resources may have the names of a built-in kind."""
        served_resources, resources = self.served_resources.current, dict[str, Resource]()
        for version in reversed(served_resources.groups.get(target.group, ())):
            resource = served_resources.by_path.get((target.group, version, target.plural))
            if resource is not None:
                resources[resource.collection] = resource
        return list(resources.values())

    # -- the objects

    async def _rewrite_all(self, target: MigrationTarget, migration: Object, resources: Sequence[Resource]) -> str:
        """Rewrite the objects that are not newer than the migration. Returns the first error that does not pass.

        A write that began before the storage version changed may have stored an older version meanwhile, so those are
        rewritten, too, whatever their revision is. Raises ApiError for errors that pass.
        """
        newest = min(int(migration["status"]["resourceVersion"]), self.reader.store.revision)
        await self.reader.cache.reached(newest)
        for resource in resources:
            collection = await self.reader.collection(resource)
            entries = [entry for entry in collection.entries.values() if entry.revision <= newest]
            for _ in range(ROUNDS):
                if fault := await self._rewrite(target, migration, resource, entries):
                    return fault
                if not self._exists(migration):
                    raise errors.not_found(self.resource.group_resource, migration["metadata"]["name"])
                collection = await self.reader.collection(resource)
                if collection.corrupt:
                    return _unhandled(unlistable(resource, collection.corrupt))
                current = self._preferred(target, resource.collection)
                if current is None:
                    return ABSENT
                live = list(collection.entries.values()) if current.is_custom else []
                size = sum(len(entry.stored) for entry in live)
                entries = await offload(size, outdated, live, current.versions.storage)
                if not entries:
                    break
            else:
                raise errors.plain_error("objects are still written in an older version")
        return ""

    async def _rewrite(
        self, target: MigrationTarget, migration: Object, resource: Resource, entries: Sequence[StoredObject]
    ) -> str:
        def request() -> WriteRequest | None:
            current = self._preferred(target, resource.collection)
            if current is None or not self._exists(migration):
                return None
            options = Options(field_manager=self.name, field_validation="Ignore")
            return WriteRequest(Action.PATCH, current, options=options, user=self.user)

        async for batch in rewrite(self.writer, request, entries):
            for result in batch:
                if result.error is not None and result.error.code in PASSING:
                    raise result.error
                if result.error is not None:
                    return _unhandled(result.error)
        return ""

    def _preferred(self, target: MigrationTarget, collection: str) -> Resource | None:
        return next((resource for resource in self._resources(target) if resource.collection == collection), None)

    # -- the status

    async def _finish(self, target: MigrationTarget, migration: Object, fault: str) -> None:
        """Show the end of a migration; `fault` is empty if it has succeeded."""
        if fault:
            await self._mark(target, "False", "MigrationFailed", "The migration has failed")
            final = FAILED, "True", "StorageVersionMigrationFailed", fault
        else:
            await self._mark(target, "False", "MigrationSucceeded", "The migration has succeeded", migrated=True)
            final = SUCCEEDED, "True", "StorageVersionMigrationSucceeded", ""
        await self._write(migration, (RUNNING, "False", "MigrationCompleted", "Migration completed"), final)

    async def _write(self, migration: Object, *changes: tuple[str, str, str, str], version: str = "") -> Object:
        """Change conditions (type, status, reason, message) and the resourceVersion; the migration after that.

        Raises ApiError, also if it has changed since it was read.
        """
        status, metadata = dict(migration.get("status") or {}), migration["metadata"]
        current = [dict(condition) for condition in status.get("conditions") or ()]
        for change in changes:
            _set(current, *change, metadata.get("generation", 0), rfc3339_now(self.clock))
        status["conditions"] = current
        if version:
            status["resourceVersion"] = version
        written = await self.writer.write(
            WriteRequest(
                Action.REPLACE,
                self.resource,
                name=metadata["name"],
                subresource="status",
                body=Body({**migration, "status": status}),
                options=Options(field_manager=controller.CONTROLLER_MANAGER),
                user=self.user,
            )
        )
        assert written.entry is not None
        return object_at(written.entry, self.resource)

    async def _release(self, target: MigrationTarget) -> None:
        """The migration that ran was deleted: its end has to be shown."""
        crd = await self._definition(target)
        if crd is not None and conditions.is_true(crd, MIGRATING):
            await self._mark(target, "False", "MigrationFailed", "The migration has failed")

    async def _mark(
        self, target: MigrationTarget, status: str, reason: str, message: str, *, migrated: bool = False
    ) -> None:
        """Apply the condition StorageMigrating to the definition, if there is one. Raises ApiError.

        `migrated`: only the storage version remains in its storedVersions, if its generation is still the one that the
        condition has. The field is applied in any case, because what is applied no longer would be removed.
        """
        while (crd := await self._definition(target)) is not None:
            stored, generation = crd["status"]["storedVersions"], crd["metadata"].get("generation", 0)
            text = message
            if migrated:
                seen = conditions.find(crd, MIGRATING)
                if seen is not None and seen.get("observedGeneration") == generation:
                    text += " and the stored versions have been updated"
                    stored = [storage_version(crd)]
                else:
                    text += " but the stored versions have not been updated due to a generation mismatch"
            condition = {
                "type": MIGRATING,
                "status": status,
                "lastTransitionTime": rfc3339_now(self.clock),
                "reason": reason,
                "message": text,
                "observedGeneration": generation,
            }
            wanted = {
                "apiVersion": types.API_VERSION,
                "kind": types.KIND,
                "metadata": {"name": target.definition, "resourceVersion": crd["metadata"]["resourceVersion"]},
                "status": {"conditions": [condition], "storedVersions": stored},
            }
            try:
                await self.writer.write(
                    WriteRequest(
                        Action.APPLY,
                        self.definitions,
                        name=target.definition,
                        subresource="status",
                        body=Body(codec.encode(wanted, sort_keys=False), APPLY_PATCH),
                        options=Options(field_manager=RUNNER, force=True),
                        user=self.user,
                    )
                )
                return
            except ApiError as error:
                if error.reason not in ("Conflict", "NotFound"):
                    raise

    async def _definition(self, target: MigrationTarget) -> Object | None:
        collection = await self.reader.collection(self.definitions)
        entry = collection.entries.get(key_of(self.definitions, "", target.definition))
        return None if entry is None else object_at(entry, self.definitions)


def _unhandled(error: ApiError) -> str:
    return f"migration encountered unhandled error: {error.message}"


def _turn(migration: Object) -> tuple[bool, str, str]:
    """The order in which migrations of one resource run; the one that runs already is the first."""
    metadata = migration["metadata"]
    return not _is_true(migration, RUNNING), metadata["creationTimestamp"], metadata["name"]


def _has_ended(migration: Object) -> bool:
    return _is_true(migration, SUCCEEDED) or _is_true(migration, FAILED)


def _is_true(migration: Object, type_: str) -> bool:
    reported = (migration.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == type_ and condition["status"] == "True" for condition in reported)


def _set(written: list[Object], type_: str, status: str, reason: str, message: str, generation: int, now: str) -> None:
    """Set or add a condition, in place (apimachinery's SetStatusCondition)."""
    new: Object = {"type": type_, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
    if generation:
        new["observedGeneration"] = generation
    for n, old in enumerate(written):
        if old["type"] == type_:
            if old["status"] == status:
                new["lastTransitionTime"] = old["lastTransitionTime"]
            written[n] = new
            return
    written.append(new)
