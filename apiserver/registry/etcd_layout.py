"""Where objects are in etcd, and in which form: as kube-apiserver stores them.

    custom resources         PREFIX/GROUP/PLURAL/[NAMESPACE/]NAME
    built-in kinds           PREFIX/PLURAL/[NAMESPACE/]NAME, without the group; a few have a name of their own (BUILT_IN_PATHS)

The standalone apiextensions-apiserver has the same keys under /registry/apiextensions.kubernetes.io. Values are JSON that
ends with a newline, which Go's encoder writes; what others stored may lack it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from noxu.apiserver.registry.corrupt_objects import BUILT_IN_PATHS
from noxu.storage.etcd_layout import PlainLayout, apart, end_of, from_apart
from noxu.storage.types import Key, Prefix

DEFAULT_PREFIX: Final = "/registry/noxu"
_WITH_GROUP: Final = frozenset({"apiregistration.k8s.io/apiservices", "apiextensions.k8s.io/customresourcedefinitions"})
"""Built-in resources of servers that kube-apiserver contains, whose keys have the group."""


class KubernetesLayout(PlainLayout):
    """The keys of kube-apiserver under a prefix, like `/registry`."""

    def __init__(self, prefix: str, built_in: Iterable[str]) -> None:
        """`built_in` are the collections of the built-in kinds, like "/pods" and "apps/deployments"."""
        super().__init__(f"/{prefix.strip('/')}/")
        self._paths = {
            name: BUILT_IN_PATHS.get(name, name.rpartition("/")[2]) for name in built_in if name not in _WITH_GROUP
        }
        self._collections = {path: name for name, path in self._paths.items()}

    def key(self, key: Key) -> bytes:
        path = self._paths.get(key.collection)
        if path is None:
            return super().key(key)
        if "/" in key.name or not key.name:
            return self.prefix + apart(key)
        return self.prefix + f"{path}/{key.partition}{key.name}".encode()

    def key_of(self, key: bytes) -> Key | None:
        """A collection has one scope: what follows its path is a name, or a namespace and a name."""
        rest = key.removeprefix(self.prefix)
        if rest.startswith(b"\0"):
            return from_apart(rest)
        first, _, below = rest.decode("utf-8", "replace").partition("/")
        second, _, deeper = below.partition("/")
        for path, name in ((f"{first}/{second}", deeper), (first, below)):
            collection = self._collections.get(path)
            if collection is not None:
                partition, slash, last = name.rpartition("/")
                return Key(collection, partition + slash, last) if last and "/" not in partition else None
        return super().key_of(key)

    def range(self, prefix: Prefix) -> tuple[bytes, bytes] | None:
        collection, partition = prefix
        if collection is None:
            return None
        first = self.prefix + f"{self._paths.get(collection, collection)}/{partition or ''}".encode()
        return first, end_of(first)

    def to_etcd(self, key: Key, value: bytes) -> bytes:
        return value + b"\n" if value.startswith(b"{") else value

    def from_etcd(self, key: Key, value: bytes) -> bytes:
        return value[:-1] if value.startswith(b"{") and value.endswith(b"\n") else value
