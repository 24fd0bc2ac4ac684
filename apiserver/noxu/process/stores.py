"""The store of a configuration: in memory, in a file of the data directory, or in etcd."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from noxu.config import Config, Etcd, StartError
from noxu.files import BACKUP, keep_private, warn_if_shared
from noxu.registry.builtin import built_in_versions
from noxu.registry.server_leases import LEASE_SECONDS
from noxu.registry.storage_form import SERVER_LEASES
from noxu_storage.memory import MemoryStore
from noxu_storage.store import Store
from noxu_storage.types import OpenError

if TYPE_CHECKING:
    from noxu_storage.etcd.channel import TlsFiles
    from noxu_storage.etcd.client import EtcdUser
    from noxu_storage.etcd.layout import Layout

FILE: Final = "noxu.db"
"""The name of the file in the data directory."""
INITIAL_STATE: Final = "noxu.process.initial_state"
"""A module that few servers need."""


_EXTRA: Final = "noxu[etcd]"
_PACKAGES: Final = {"google": "protobuf", "grpc": "grpcio"}
"""Of modules of the extra that have other names than their packages."""


class EtcdAccess(NamedTuple):
    """What is needed to connect to etcd, and where the objects are in it."""

    servers: tuple[str, ...]
    layout: Layout
    tls: TlsFiles
    user: EtcdUser | None


async def open_store(config: Config, before: Store | None = None) -> Store:
    """`before`: the closed store of a server that is restarted; what was in memory still is. Raises StartError."""
    if config.etcd is not None:
        access = etcd_access(config.etcd)
        from noxu_storage.etcd.store import EtcdStore

        try:
            return await EtcdStore.open(*access, lifetimes=lifetimes(config.event_ttl))
        except OpenError as error:
            raise StartError(str(error)) from None
    if config.initial is not None and before is None:
        return await _begin_with(config.initial, config)
    if config.data is None:
        if not isinstance(before, MemoryStore):
            return MemoryStore()
        before.reopen()
        return before
    from noxu_storage import database, sqlite  # 4 ms, which a server in memory does without

    try:
        database.create_directory(config.data)
        _keep_private(config.data)
        store = await sqlite.SqliteStore.open(config.data / FILE, durability=config.durability)
        for left in config.data.glob(f"{BACKUP}*"):  # the store is locked: no other server is making one
            shutil.rmtree(left, ignore_errors=True)
        return store
    except OpenError as error:
        raise StartError(str(error)) from None
    except OSError as error:
        raise StartError(f"cannot keep data in {config.data}: {error.strerror or error}") from None


async def _begin_with(initial: Path, config: Config) -> Store:
    """A new store with the objects of a file. Raises StartError."""
    initial_state = import_module(INITIAL_STATE)  # few servers begin with a file
    if config.data is None:
        return MemoryStore(await asyncio.to_thread(initial_state.in_memory, initial))
    await asyncio.to_thread(initial_state.in_file, initial, config.data / FILE)
    return await open_store(replace(config, initial=None))


def _keep_private(data: Path) -> None:
    """The files of the store have secrets. Whoever may write into the directory may replace them."""
    warn_if_shared(data, "--data")
    for suffix in ("", "-wal", "-shm"):
        path = data / f"{FILE}{suffix}"
        try:
            keep_private(path)
        except OSError:  # it is another user's, who lets this one write
            warn_if_shared(path)


def lifetimes(event_ttl: float) -> dict[str, int]:
    """The seconds after which etcd deletes objects, by collection; as upstream, whole ones."""
    tables = {versions.collection: versions.storage.table for versions in built_in_versions()}
    events = {name for name, table in tables.items() if table and table.lifetime and event_ttl}
    return {SERVER_LEASES: LEASE_SECONDS, **dict.fromkeys(events, max(int(event_ttl), 1))}


def etcd_access(options: Etcd) -> EtcdAccess:
    """Raises StartError: a package is missing, or the file with the password cannot be read."""
    try:
        from noxu_storage.etcd import channel, client
    except ImportError as error:
        package = _PACKAGES.get((error.name or "").partition(".")[0], error.name)
        raise StartError(f"--etcd-servers needs the package {package}: pip install '{_EXTRA}'") from None
    from noxu.registry.etcd_layout import KubernetesLayout

    collections = [SERVER_LEASES, *(versions.collection for versions in built_in_versions())]
    layout = KubernetesLayout(options.prefix, collections, options.media_type)
    tls = channel.TlsFiles(options.ca_file, options.certificate_file, options.key_file)
    try:
        password = options.password_file.read_text().rstrip("\n") if options.password_file is not None else ""
    except OSError as error:
        raise StartError(f"--etcd-password-file {options.password_file}: {error.strerror or error}") from None
    for option, path in (("--etcd-keyfile", options.key_file), ("--etcd-password-file", options.password_file)):
        if path is not None:
            warn_if_shared(path, option)
    user = client.EtcdUser(options.username, password) if options.username else None
    return EtcdAccess(options.servers, layout, tls, user)
