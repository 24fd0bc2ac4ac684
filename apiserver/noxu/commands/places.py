"""Places of the stored objects that a command reads: a running server, a data directory that no server uses, or etcd.

`validate --stored` and `export` take the same options for it (`--server`, `--kubeconfig`, `--etcd-servers`, `--data`),
and have the same errors about the place. Each reads it in its own way.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Iterator
from typing import Protocol

from noxu.commands import progress
from noxu.commands.api_client import ApiClient, endpoint_from_options
from noxu.config import DEFAULT_DATA
from noxu.process import stores
from noxu_storage.snapshot import snapshot
from noxu_storage.types import EVERYTHING, Key, KeyValue, OpenError, Prefix, Revision


class StoreState(Protocol):
    """The state of a store at one revision: `snapshot.Snapshot`, `etcd_state.EtcdSnapshot`."""

    corrupt: dict[Key, Revision]

    def values(self, prefix: Prefix) -> Iterator[KeyValue]: ...

    def count(self, prefix: Prefix) -> int: ...


class UnusablePlace(Exception):
    """There is nothing to read; the message says why and what to do."""


@contextlib.contextmanager
def opened(options: argparse.Namespace, instead: str) -> Iterator[ApiClient | StoreState]:
    """The place that the options name: a client of a running server, or the state of a store.

    `instead`: what to do with a server that uses the data directory, such as `export from it`. Raises Unusable, RequestError,
    StartError.
    """
    if options.server or options.kubeconfig:
        with contextlib.closing(ApiClient(endpoint_from_options(options))) as client:
            yield client
        return
    if options.etcd is not None:
        access = stores.etcd_access(options.etcd)
        from noxu_storage.etcd import state as etcd_state

        with progress.shown("read etcd", "keys", quiet=options.quiet) as show:
            read = asyncio.run(etcd_state.snapshot(*access, progress=show))
        if not read.count(EVERYTHING):
            where = f"etcd at {', '.join(options.etcd.servers)}"
            raise UnusablePlace(f"{where} has no objects under {options.etcd.prefix}; see --etcd-prefix")
        yield read
        return
    directory = options.data or DEFAULT_DATA
    try:
        with snapshot(directory / stores.FILE) as state:
            yield state
    except OpenError as error:
        hint = ""
        if "in use" in str(error):
            hint = f"; {instead} with --kubeconfig {directory / 'kubeconfig'}, or stop it"
        elif not (directory / stores.FILE).exists():
            hint = (
                "; name a data directory with --data, a running server with --server or --kubeconfig, or --etcd-servers"
            )
        raise UnusablePlace(f"{error}{hint}") from None
