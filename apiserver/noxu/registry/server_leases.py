"""Leases of servers: the addresses of those that share a store and are running.

They are those of kube-apiserver (pkg/controlplane/reconcilers/lease.go), which takes part where it uses the same etcd. Each
server writes an object under a key of its own every ten seconds, and etcd deletes what was not written for LEASE_SECONDS:

    PREFIX/masterleases/192.0.2.7    {"kind":"Endpoints","apiVersion":"v1","metadata":{"generation":3},
                                      "subsets":[{"addresses":[{"ip":"192.0.2.7"}]}]}

The generation counts the writes. Servers with the same address share a key: it is removed by the one that wrote it last.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from noxu.api import codec
from noxu.registry.storage_form import SERVER_LEASES
from noxu.values import Json, Object
from noxu_storage.store import Store
from noxu_storage.types import Conflict, Key, Prefix, Revision, Unavailable

MAX_ATTEMPTS: Final = 1000  # to renew a lease that servers with the same address renew, too
LEASE_SECONDS: Final = 15  # upstream's --apiserver-endpoint-reconciler-ttl


class ServerLeases:
    """The lease of this server, and those of all."""

    def __init__(self, store: Store, address: str) -> None:
        """`address` is an IP address that no other host has."""
        self.address = address
        self._store = store
        self._key = Key(SERVER_LEASES, "", address)
        self._revision: Revision = 0  # of the last write

    async def renew(self) -> None:
        """Write the own lease. Raises StoreError."""
        for _ in range(MAX_ATTEMPTS):
            stored = await self._store.get(self._key)
            generation = 0 if stored is None else _generation(_decoded(stored.value))
            value = codec.encode(_lease(self.address, generation + 1), sort_keys=False)
            try:
                self._revision = await self._store.put(self._key, value, expected=stored.revision if stored else 0)
                return
            except Conflict:
                await asyncio.sleep(0)  # it expired, or a server with the same address wrote it
        raise Unavailable(f"other servers renew the lease of {self.address}, too")

    async def addresses(self) -> list[str]:
        """The addresses of the servers whose leases exist, in lexical order. Raises StoreError."""
        page = await self._store.list(Prefix(SERVER_LEASES))
        addresses = {_address(_decoded(item.value)) for item in page.items}
        return sorted(addresses - {""})

    async def remove(self) -> None:
        """Remove the own lease, unless another server with the same address has written it since. Raises StoreError."""
        if self._revision:
            with suppress(Conflict):
                await self._store.delete(self._key, expected=self._revision)
            self._revision = 0  # nothing to remove any more


def _lease(address: str, generation: int) -> Object:
    return {
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": {"generation": generation},
        "subsets": [{"addresses": [{"ip": address}]}],
    }


def _decoded(value: bytes) -> Object:
    """A lease, which another program may have written; without content if it is none."""
    try:
        lease = codec.decode_stored(value)
    except ValueError:
        return {}
    return lease if isinstance(lease, dict) else {}


def _generation(lease: Object) -> int:
    metadata: Json = lease.get("metadata")
    generation = metadata.get("generation") if isinstance(metadata, dict) else 0
    return generation if isinstance(generation, int) else 0


def _address(lease: Object) -> str:
    """The first address of a lease, "" if it has none."""
    part: Json = lease
    for step in ("subsets", 0, "addresses", 0, "ip"):
        try:
            part = part[step]
        except (KeyError, IndexError, TypeError):
            return ""
    return part if isinstance(part, str) else ""
