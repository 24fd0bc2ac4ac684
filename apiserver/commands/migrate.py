"""`noxu migrate`: rewrite stored objects in the storage version, and forget the versions that they were stored in.

As upstream's storage version migrator does: every custom resource is written once more as it is, which stores it in the
storage version of its CRD; when all of them are, this is the only version left in `status.storedVersions`, and others
may be removed from the CRD. Writes go the way of all writes: they are converted, validated and admitted. Whoever writes
an object meanwhile migrates it, too, so a conflict is no failure, nor is an object that is gone.

It may be interrupted, and run again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from apiserver import server
from apiserver.api import codec
from apiserver.api.errors import ApiError
from apiserver.api.types import Object
from apiserver.commands.cluster import Cluster, Unreachable, access
from apiserver.config import DEFAULT_DATA, Config
from apiserver.crd import conditions, types
from apiserver.crd.versions import served_versions, storage_version
from apiserver.http.outgoing import Outgoing
from apiserver.registry.entry import Entry, object_at
from apiserver.registry.pipeline import Draft, Options
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry
from storage.types import StoreError

MANAGER: Final = "noxu-migrate"
AT_ONCE: Final = 64  # objects that are written together: they share a commit
MERGE_PATCH: Final = {"Content-Type": "application/merge-patch+json"}
DEFINITIONS: Final = f"/apis/{types.GROUP}/{types.VERSION}/{types.RESOURCE}"


class Failure(Exception):
    """Nothing can be migrated; the message says why and what to do."""


@dataclass
class Migration:
    """What became of the objects of one CRD. `stored` are the versions that they may have been stored in."""

    crd: str
    version: str
    stored: list[str]
    objects: int = 0
    rewritten: int = 0
    failures: list[str] = field(default_factory=list)

    def count(self, *, rewritten: bool) -> None:
        self.objects += 1
        self.rewritten += rewritten

    def fail(self, value: Object, why: str) -> None:
        metadata = value["metadata"]
        namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
        self.objects += 1
        self.failures.append(f"{value['kind']} {namespace}{metadata['name']}: {why}")


def run(given: argparse.Namespace) -> int:
    """0: all objects are stored in their storage versions; 1: some are not."""
    try:
        if given.server or given.kubeconfig:
            with contextlib.closing(Cluster(access(given))) as cluster:
                done = _online(cluster, given.names)
        else:
            done = asyncio.run(_offline(given.data or DEFAULT_DATA, given.names))
    except (Failure, Unreachable, StoreError, server.StartError) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    if given.output == "json":
        print(codec.pretty({"migrations": [_as_json(one) for one in done]}, sort_keys=False).decode())
    else:
        _tell(done)
    return 1 if any(one.failures for one in done) else 0


def _chosen(crds: Iterable[Object], names: list[str]) -> Iterator[tuple[Object, Migration]]:
    """The CRDs that are named, or else those whose objects may be stored in other versions. Raises Failure."""
    known = {crd["metadata"]["name"]: crd for crd in crds}
    if missing := [name for name in names if name not in known]:
        raise Failure(f"there is no CRD {', '.join(missing)}")
    for name in names or sorted(known):
        crd = known[name]
        version, stored = storage_version(crd) or "", crd["status"].get("storedVersions") or []
        established = conditions.is_true(crd, conditions.ESTABLISHED)
        if names or (established and not crd["metadata"].get("deletionTimestamp") and stored != [version]):
            yield crd, Migration(name, version, stored)


# -- a running server -------------------------------------------------------------------------------------------------


def _online(cluster: Cluster, names: list[str]) -> list[Migration]:
    """Raises Failure or Unreachable."""
    done = []
    for crd, migration in _chosen(cluster.list(DEFINITIONS), names):
        done.append(migration)
        if migration.version not in served_versions(crd):
            why = f"its storage version {migration.version} is not served; stop the server, and migrate its data"
            migration.failures.append(why)
            continue
        spec = crd["spec"]
        base = f"/apis/{spec['group']}/{migration.version}"
        for value in cluster.list(f"{base}/{spec['names']['plural']}"):
            _rewrite_over_http(cluster, base, spec["names"]["plural"], value, migration)
        if not migration.failures and migration.stored != [migration.version]:
            change = _only(migration.version, crd)
            path = f"{DEFINITIONS}/{migration.crd}/status"
            reply = cluster.send("PATCH", path, {"fieldManager": MANAGER}, change, MERGE_PATCH)
            if reply.status != 200:
                migration.failures.append(_not_forgotten(reply.status, reply.told))
    return done


def _rewrite_over_http(cluster: Cluster, base: str, plural: str, value: Object, migration: Migration) -> None:
    """A patch that changes nothing, of exactly this state of this object."""
    metadata = value["metadata"]
    namespace = f"/namespaces/{metadata['namespace']}" if metadata.get("namespace") else ""
    same = {"metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}}
    path = f"{base}{namespace}/{plural}/{metadata['name']}"
    reply = cluster.send("PATCH", path, {"fieldManager": MANAGER}, same, MERGE_PATCH)
    if reply.status == 200:
        written = (reply.value or {}).get("metadata") or {}
        migration.count(rewritten=written.get("resourceVersion") != metadata["resourceVersion"])
    elif reply.status in (404, 409):
        migration.count(rewritten=False)
    else:
        migration.fail(value, reply.told)


def _only(version: str, crd: Object) -> Object:
    """The change of a CRD's status, if it still is as it was."""
    return {
        "metadata": {"resourceVersion": crd["metadata"]["resourceVersion"]},
        "status": {"storedVersions": [version]},
    }


def _not_forgotten(code: int | None, why: str) -> str:
    if code == 409:
        return "the CRD was changed meanwhile: run it again"
    return f"its storedVersions cannot be changed: {why}"


# -- a data directory -------------------------------------------------------------------------------------------------


async def _offline(directory: Path, names: list[str]) -> list[Migration]:
    """Raises Failure, StartError or StoreError."""
    done = []
    async with _opened(directory) as registry:
        definitions = registry.catalog.find(types.GROUP, types.VERSION, types.RESOURCE)
        assert definitions is not None
        entries = (await registry.collection(definitions)).entries.values()
        for crd, migration in _chosen([object_at(entry, definitions) for entry in entries], names):
            done.append(migration)
            versions = registry.catalog.defined.get(migration.crd)
            if versions is None:
                migration.failures.append("it is not established")
                continue
            await _rewrite_all(registry, versions.storage, migration)
            if not migration.failures and migration.stored != [migration.version]:
                await _forget(registry, definitions, crd, migration)
    return done


@contextlib.asynccontextmanager
async def _opened(directory: Path) -> AsyncIterator[Registry]:
    """The registry of a data directory that no server uses. Raises Failure or StartError."""
    if not (directory / "noxu.db").exists():
        hint = "name a data directory with --data, or a running server with --server or --kubeconfig"
        raise Failure(f"{directory / 'noxu.db'} does not exist; {hint}")
    try:
        store = await server.open_store(Config(data=directory))
    except server.StartError as error:
        hint = (
            f"; migrate it with --kubeconfig {directory / 'kubeconfig'}, or stop it" if "in use" in str(error) else ""
        )
        raise Failure(f"{error}{hint}") from None
    outgoing = Outgoing()
    try:
        async with server.at_work(store, caller=outgoing) as registry:
            yield registry
    finally:
        await outgoing.close()


async def _rewrite_all(registry: Registry, storage: Resource, migration: Migration) -> None:
    entries = list((await registry.collection(storage)).entries.values())
    for start in range(0, len(entries), AT_ONCE):
        await asyncio.gather(*[_rewrite(registry, storage, one, migration) for one in entries[start : start + AT_ONCE]])
    migration.failures.sort()  # they came in any order


async def _rewrite(registry: Registry, storage: Resource, entry: Entry, migration: Migration) -> None:
    stored: Object = codec.decode_stored(entry.stored)
    if stored.get("apiVersion") == storage.api_version:
        migration.count(rewritten=False)
        return

    async def same(old: Object) -> Draft:
        return registry.draft(
            storage,
            "UPDATE",
            old,
            namespace=entry.namespace,
            name=entry.key.name,
            options=Options(field_manager=MANAGER, field_validation="Ignore"),
        )

    try:
        await registry.update(storage, entry.namespace, entry.key.name, same)
    except ApiError as error:
        if error.reason == "NotFound":
            migration.count(rewritten=False)
        else:
            migration.fail(stored, error.message)
    else:
        migration.count(rewritten=True)


async def _forget(registry: Registry, definitions: Resource, crd: Object, migration: Migration) -> None:
    async def only(old: Object) -> Draft:
        change = _only(migration.version, crd)
        new = {
            **old,
            "metadata": {**old["metadata"], **change["metadata"]},
            "status": {**old["status"], **change["status"]},
        }
        options = Options(field_manager=MANAGER)
        draft = registry.draft(definitions, "UPDATE", new, name=migration.crd, options=options)
        draft.subresource = "status"
        return draft

    try:
        await registry.update(definitions, "", migration.crd, only)
    except ApiError as error:
        migration.failures.append(_not_forgotten(error.code, error.message))


# -- telling ----------------------------------------------------------------------------------------------------------


def _tell(done: list[Migration]) -> None:
    for one in done:
        print(f"{one.crd}: {one.rewritten} of {one.objects} objects rewritten in {one.version}; {_told_versions(one)}")
        for failure in one.failures:
            print(f"  {failure}".replace("\n", "\n  "))
    if not done:
        print("nothing to migrate: all objects are stored in their storage versions")


def _told_versions(one: Migration) -> str:
    stored = ", ".join(one.stored)
    if one.failures:
        return f"storedVersions stay {stored}"
    return f"storedVersions are {one.version}{f', were {stored}' if one.stored != [one.version] else ''}"


def _as_json(one: Migration) -> Object:
    return {
        "crd": one.crd,
        "version": one.version,
        "storedVersions": one.stored if one.failures else [one.version],
        "objects": one.objects,
        "rewritten": one.rewritten,
        "failures": one.failures,
    }
