"""`noxu migrate`: rewrite stored objects in the storage version of their CRDs.

It does what upstream's storage version migrator does. Every custom resource is written again without a change, which
stores it in the storage version. When all objects of a CRD are, only that version remains in `status.storedVersions`, and
other versions can be removed from the CRD. The writes are converted, validated and admitted like all writes. A concurrent
write migrates its object, too, so a conflict is no failure, nor is an object that has been deleted.

The command can be interrupted and repeated.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.commands import progress
from noxu.commands.api_client import ApiClient, RequestError, endpoint_from_options
from noxu.config import DEFAULT_DATA, Config, Etcd, StartError
from noxu.control_plane import WITHOUT_CONTROLLERS, ControlPlane, Seams, assemble, running
from noxu.crd import conditions, types
from noxu.crd.types import served_versions, storage_version
from noxu.http.webhooks import WebhookClient
from noxu.manifests import loading
from noxu.process import stores
from noxu.registry.draft import Action, Options, WriteRequest
from noxu.registry.resource import Resource
from noxu.registry.rewriting import outdated, rewrite
from noxu.registry.stored_object import object_at
from noxu.values import Object
from noxu_storage.store import Store
from noxu_storage.types import EVERYTHING, Progress, StoreError

Show: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
"""Shows how far a named work is."""
MANAGER: Final = "noxu-migrate"
MERGE_PATCH: Final = {"Content-Type": "application/merge-patch+json"}
DEFINITIONS: Final = f"/apis/{types.GROUP}/{types.VERSION}/{types.RESOURCE}"


class MigrationError(Exception):
    """Nothing can be migrated; the message says why and what to do."""


@dataclass
class Migration:
    """The result for one CRD. `version` is its storage version; `stored` are its storedVersions before."""

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


def run(options: argparse.Namespace) -> int:
    """Exit status 0: all objects are stored in their storage versions; 1: some are not."""
    show = partial(progress.shown, quiet=options.quiet)
    try:
        if options.server or options.kubeconfig:
            with contextlib.closing(ApiClient(endpoint_from_options(options))) as client:
                done = _migrate_over_http(client, options.names, show)
        else:
            config = Config(data=options.data or DEFAULT_DATA, etcd=options.etcd)
            done = asyncio.run(_migrate_store(config, options.names, show))
    except (MigrationError, RequestError, StoreError, StartError) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    if options.output == "json":
        print(codec.pretty({"migrations": [_as_json(migration) for migration in done]}, sort_keys=False).decode())
    else:
        _print_report(done)
    return 1 if any(migration.failures for migration in done) else 0


def _work(migration: Migration) -> str:
    return f"migrate {migration.crd}"


def _chosen(crds: Iterable[Object], names: list[str]) -> Iterator[tuple[Object, Migration]]:
    """The named CRDs; without names, those whose objects may be stored in other versions. Raises MigrationError."""
    crds_by_name = {crd["metadata"]["name"]: crd for crd in crds}
    if missing := [name for name in names if name not in crds_by_name]:
        raise MigrationError(f"CRD {', '.join(missing)} does not exist")
    for name in names or sorted(crds_by_name):
        crd = crds_by_name[name]
        version, stored = storage_version(crd) or "", crd["status"].get("storedVersions") or []
        established = conditions.is_true(crd, conditions.ESTABLISHED)
        if names or (established and not crd["metadata"].get("deletionTimestamp") and stored != [version]):
            yield crd, Migration(name, version, stored)


# -- a running server -------------------------------------------------------------------------------------------------


def _migrate_over_http(client: ApiClient, names: list[str], show: Show) -> list[Migration]:
    """Raises MigrationError or RequestError."""
    done = []
    for crd, migration in _chosen(client.list(DEFINITIONS), names):
        done.append(migration)
        if migration.version not in served_versions(crd):
            why = f"its storage version {migration.version} is not served; stop the server, and migrate its data"
            migration.failures.append(why)
            continue
        spec = crd["spec"]
        base = f"/apis/{spec['group']}/{migration.version}"
        with show(_work(migration)) as report:
            for value in progress.each(client.list(f"{base}/{spec['names']['plural']}"), report):
                _rewrite_over_http(client, base, spec["names"]["plural"], value, migration)
        if not migration.failures and migration.stored != [migration.version]:
            patch = _stored_versions_patch(migration.version, crd)
            path = f"{DEFINITIONS}/{migration.crd}/status"
            reply = client.send("PATCH", path, {"fieldManager": MANAGER}, patch, MERGE_PATCH)
            if reply.status != 200:
                migration.failures.append(_stored_versions_error(reply.status, reply.message))
    return done


def _rewrite_over_http(client: ApiClient, base: str, plural: str, value: Object, migration: Migration) -> None:
    """Send a patch that changes nothing, for this uid and resourceVersion of the object."""
    metadata = value["metadata"]
    namespace = f"/namespaces/{metadata['namespace']}" if metadata.get("namespace") else ""
    same = {"metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}}
    path = f"{base}{namespace}/{plural}/{metadata['name']}"
    reply = client.send("PATCH", path, {"fieldManager": MANAGER}, same, MERGE_PATCH)
    if reply.status == 200:
        written = (reply.value or {}).get("metadata") or {}
        migration.count(rewritten=written.get("resourceVersion") != metadata["resourceVersion"])
    elif reply.status in (404, 409):
        migration.count(rewritten=False)
    else:
        migration.fail(value, reply.message)


def _stored_versions_patch(version: str, crd: Object) -> Object:
    """A patch that sets storedVersions to `version`, for this resourceVersion of the CRD."""
    return {
        "metadata": {"resourceVersion": crd["metadata"]["resourceVersion"]},
        "status": {"storedVersions": [version]},
    }


def _stored_versions_error(code: int | None, why: str) -> str:
    if code == 409:
        return "the CRD was changed meanwhile; run the command again"
    return f"its storedVersions cannot be changed: {why}"


# -- a data directory, or etcd -------------------------------------------------------------------------------------------------


async def _migrate_store(config: Config, names: list[str], show: Show) -> list[Migration]:
    """Raises MigrationError, StartError or StoreError."""
    done = []
    async with _open_control_plane(config) as plane:
        definitions = plane.served_resources.current.find(types.GROUP, types.VERSION, types.RESOURCE)
        assert definitions is not None
        entries = (await plane.reader.collection(definitions)).entries.values()
        for crd, migration in _chosen([object_at(entry, definitions) for entry in entries], names):
            done.append(migration)
            versions = plane.served_resources.current.defined.get(migration.crd)
            if versions is None:
                migration.failures.append("it is not established")
                continue
            with show(_work(migration)) as report:
                await _rewrite_all(plane, versions.storage, migration, report)
            if not migration.failures and migration.stored != [migration.version]:
                await _update_stored_versions(plane, definitions, crd, migration)
    return done


@contextlib.asynccontextmanager
async def _open_control_plane(config: Config) -> AsyncIterator[ControlPlane]:
    """The control plane over etcd, or a data directory that no server uses. Raises MigrationError or StartError."""
    store = await _open_etcd(config.etcd) if config.etcd is not None else await _open_directory(config.data)
    outgoing = WebhookClient()
    try:
        async with running(assemble(WITHOUT_CONTROLLERS, store, Seams(caller=outgoing))) as plane:
            yield plane
    finally:
        await outgoing.close()


async def _open_directory(directory: Path | None) -> Store:
    """Raises MigrationError."""
    assert directory is not None
    if not (directory / stores.FILE).exists():
        hint = "name a data directory with --data, a running server with --server or --kubeconfig, or --etcd-servers"
        raise MigrationError(f"{directory / stores.FILE} does not exist; {hint}")
    try:
        return await stores.open_store(Config(data=directory))
    except StartError as error:
        hint = (
            f"; migrate it with --kubeconfig {directory / 'kubeconfig'}, or stop it" if "in use" in str(error) else ""
        )
        raise MigrationError(f"{error}{hint}") from None


async def _open_etcd(etcd: Etcd) -> Store:
    """Raises MigrationError, StartError."""
    store = await stores.open_store(Config(etcd=etcd))
    if not await store.count(EVERYTHING):
        await store.close()
        raise MigrationError(f"etcd at {', '.join(etcd.servers)} has no objects under {etcd.prefix}; see --etcd-prefix")
    return store


async def _rewrite_all(plane: ControlPlane, storage: Resource, migration: Migration, report: Progress) -> None:
    entries = (await plane.reader.collection(storage)).entries
    older = outdated(entries.values(), storage)
    migration.objects = done = len(entries) - len(older)
    options = Options(field_manager=MANAGER, field_validation="Ignore")
    request = WriteRequest(Action.PATCH, storage, options=options)
    report(0, len(entries))
    async for batch in rewrite(plane.writer, lambda: request, older):
        for result in batch:
            if result.error is None:
                migration.count(rewritten=result.stored)
            else:
                migration.fail(codec.decode_stored(result.entry.stored), result.error.message)
        done += len(batch)
        report(done, len(entries))
    migration.failures.sort()


async def _update_stored_versions(
    plane: ControlPlane, definitions: Resource, crd: Object, migration: Migration
) -> None:
    def with_stored_versions(old: Object) -> Object:
        patch = _stored_versions_patch(migration.version, crd)
        return {
            **old,
            "metadata": {**old["metadata"], **patch["metadata"]},
            "status": {**old["status"], **patch["status"]},
        }

    options = Options(field_manager=MANAGER)
    request = WriteRequest(Action.REPLACE, definitions, subresource="status", options=options)
    try:
        await loading.update(plane, request, migration.crd, with_stored_versions)
    except ApiError as error:
        migration.failures.append(_stored_versions_error(error.code, error.message))


# -- output -----------------------------------------------------------------------------------------------------------


def _print_report(done: list[Migration]) -> None:
    for migration in done:
        rewritten = f"{migration.rewritten} of {migration.objects} objects rewritten in {migration.version}"
        print(f"{migration.crd}: {rewritten}; {_stored_versions_text(migration)}")
        for failure in migration.failures:
            print(f"  {failure}".replace("\n", "\n  "))
    if not done:
        print("nothing to migrate: all objects are stored in their storage versions")


def _stored_versions_text(migration: Migration) -> str:
    stored = ", ".join(migration.stored)
    if migration.failures:
        return f"storedVersions remain {stored}"
    before = f", were {stored}" if migration.stored != [migration.version] else ""
    return f"storedVersions are {migration.version}{before}"


def _as_json(migration: Migration) -> Object:
    return {
        "crd": migration.crd,
        "version": migration.version,
        "storedVersions": migration.stored if migration.failures else [migration.version],
        "objects": migration.objects,
        "rewritten": migration.rewritten,
        "failures": migration.failures,
    }
