"""Where objects are in etcd, and in which form: as kube-apiserver stores them.

    custom resources         PREFIX/GROUP/PLURAL/[NAMESPACE/]NAME
    built-in kinds           PREFIX/PLURAL/[NAMESPACE/]NAME, without the group; a few have a name of their own (BUILT_IN_PATHS)

So custom resources with the names of a built-in kind are apart from its objects. Two built-in kinds have the group in their
keys: those of the servers that kube-apiserver contains. There upstream's keys coincide, and these do not:

    customresourcedefinitions       PREFIX/apiextensions.k8s.io/customresourcedefinitions/NAME
    custom resources of that name   PREFIX/apiextensions.k8s.io/customresourcedefinitions.custom/[NAMESPACE/]NAME

The standalone apiextensions-apiserver has the same keys under /registry/apiextensions.kubernetes.io. Values are JSON that
ends with a newline, which Go's encoder writes; what others stored may lack it. CustomResourceDefinitions are stored in
v1beta1, see below; built-in kinds may be stored as protobuf, see etcd_built_in.py.

The watch brings every write back: a value that was converted to be stored is remembered, and not converted back.

apiextensions-apiserver writes definitions as v1beta1 in JSON, whatever the media type, for that is the first version that
its codec is given (pkg/cmd/server/options); it reads both. This server knows v1 only, and converts at etcd:

    the server    {"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1",…,"spec":{…,"versions":[…]},…}
    etcd          {"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",…,"spec":{…,"version":"v1",…},…}

Reading what was written gives the same bytes. What others wrote is read as Go would read it: decoded, defaulted, in the
order of declaration. A value that is not a definition is not changed: it fails when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Final

from noxu.api import codec
from noxu.crd import types, v1beta1
from noxu.go.structs import DecodedStruct
from noxu.registry import etcd_built_in, storage_form
from noxu.registry.storage_form import BUILT_IN_PATHS, beside_custom
from noxu.values import Json, Object
from noxu_storage.etcd.layout import APART, PlainLayout, apart, end_of, from_apart
from noxu_storage.types import Key, Prefix

COLLECTION: Final = f"{types.GROUP}/{types.RESOURCE}"
_UPGRADES: Final[dict[str, tuple[Callable[[Json], DecodedStruct], Callable[[Object], Object]]]] = {
    types.API_VERSION: (types.decode, types.default),
    v1beta1.API_VERSION: (v1beta1.decode, v1beta1.upgrade),
}


def to_etcd(value: bytes) -> bytes:
    """A v1 definition as JSON, as apiextensions-apiserver stores it, without the newline."""
    decoded = _decoded(value, {types.API_VERSION: types.decode})
    return value if decoded is None else codec.encode(v1beta1.written(v1beta1.downgrade(decoded)), sort_keys=False)


def from_etcd(stored: bytes) -> bytes:
    """A definition that some server stored, as this server writes it: v1 in the order of declaration."""
    decoded = _decoded(stored, {version: decode for version, (decode, _) in _UPGRADES.items()})
    if decoded is None:
        return stored
    upgraded = _UPGRADES[decoded["apiVersion"]][1](decoded)
    return codec.encode(types.written(upgraded), sort_keys=False)


def _decoded(value: bytes, decoders: dict[str, Callable[[Json], DecodedStruct]]) -> Object | None:
    """The definition as its struct; None if it is none of these versions or Go cannot decode it."""
    try:
        definition = codec.decode_literals(value) if codec.has_minus_zero(value) else codec.decode_stored(value)
    except ValueError:
        return None
    if not isinstance(definition, dict) or definition.get("kind") != types.KIND:
        return None
    version = definition.get("apiVersion")
    decode = decoders.get(version) if isinstance(version, str) else None
    if decode is None:
        return None
    decoded = decode(definition)
    return None if decoded.error else decoded.value


# -- keys and values --------------------------------------------------------------------------------------------------


DEFAULT_PREFIX: Final = "/registry/noxu"
MAX_REMEMBERED: Final = 8 * 1024 * 1024  # bytes of values that were changed to be stored
MAX_DIRECTORIES: Final = 10_000  # beginnings of keys that are remembered
_WITH_GROUP: Final = frozenset({"apiregistration.k8s.io/apiservices", "apiextensions.k8s.io/customresourcedefinitions"})
"""Built-in resources whose keys have the group."""


class KubernetesLayout(PlainLayout):
    """The keys of kube-apiserver under a prefix, like `/registry`."""

    def __init__(self, prefix: str, built_in: Iterable[str], media_type: str = etcd_built_in.JSON) -> None:
        """`built_in` are the collections of the built-in kinds, like "/pods" and "apps/deployments"; `media_type` is the
        form in which they are written, one of `etcd_built_in.MEDIA_TYPES`."""
        super().__init__(f"/{prefix.strip('/')}/")
        self._built_in = frozenset(built_in) - {COLLECTION}
        self._paths = {name: BUILT_IN_PATHS.get(name, name.rpartition("/")[2]) for name in self._built_in - _WITH_GROUP}
        self._paths |= {
            storage_form.custom_collection(*name.split("/")): name for name in beside_custom() - _WITH_GROUP
        }
        self._as_protobuf = media_type == etcd_built_in.PROTOBUF
        self._collections = {path: name for name, path in self._paths.items()}
        self._written = ChangedValues()
        self._directories: dict[bytes, tuple[str, str]] = {}

    def key(self, key: Key) -> bytes:
        path = self._paths.get(key.collection)
        if path is None:
            return super().key(key)
        if "/" in key.name or not key.name:
            return self.prefix + apart(key)
        return self.prefix + f"{path}/{key.partition}{key.name}".encode()

    def key_of(self, key: bytes) -> Key | None:
        """A collection has one scope: what follows its path is a name, or a namespace and a name.

        Keys with three parts or more that differ in the last one only have the same collection and partition, which are
        remembered: `/registry/pods/default/a` tells those of `/registry/pods/default/b`.
        """
        directory, _, last = key.rpartition(b"/")
        place = self._directories.get(directory)
        if place is not None and last.isascii() and last:
            return Key(*place, last.decode())
        parsed = self._read_key(key)
        if parsed is not None and b"/" in directory.removeprefix(self.prefix) and APART not in directory:
            if len(self._directories) >= MAX_DIRECTORIES:
                self._directories.clear()  # they are read anew, one key each
            # by the loop and by threads: equal keys have equal values
            self._directories[directory] = parsed.collection, parsed.partition
        return parsed

    def _read_key(self, key: bytes) -> Key | None:
        rest = key.removeprefix(self.prefix)
        if rest.startswith(APART):
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
        if not value.startswith(b"{"):
            return value
        if key.collection == COLLECTION:
            stored = to_etcd(value) + b"\n"
        elif key.collection not in self._built_in:
            return value + b"\n"
        elif self._as_protobuf:
            stored = etcd_built_in.to_protobuf(key.collection, value)
        else:
            return etcd_built_in.to_json(key.collection, value) + b"\n"
        self._written.remember(stored, value)  # the watch will bring these bytes back
        return stored

    def from_etcd(self, key: Key, value: bytes) -> bytes:
        if key.collection == COLLECTION:
            original = self._written.get(value)
            return from_etcd(value) if original is None else original
        if key.collection in self._built_in:
            original = self._written.get(value) if etcd_built_in.is_protobuf(value) else None
            return etcd_built_in.from_etcd(key.collection, value) if original is None else original
        return value[:-1] if value.startswith(b"{") and value.endswith(b"\n") else value

    def weight(self, key: Key, value: bytes) -> int:
        is_changed = key.collection == COLLECTION or (
            key.collection in self._built_in and (self._as_protobuf or etcd_built_in.is_protobuf(value))
        )
        return len(value) if is_changed and self._written.get(value) is None else 0


class ChangedValues:
    """The newest values that were changed to be stored, by what is stored. Several threads may use it."""

    def __init__(self, limit: int = MAX_REMEMBERED) -> None:
        """`limit` is in bytes of both."""
        self._limit = limit
        self._values: dict[bytes, bytes] = {}
        self._bytes = 0
        self._lock = Lock()

    def get(self, stored: bytes) -> bytes | None:
        return self._values.get(stored)

    def remember(self, stored: bytes, value: bytes) -> None:
        with self._lock:
            self._forget(stored)  # so that it becomes the newest
            self._values[stored] = value
            self._bytes += len(stored) + len(value)
            while self._bytes > self._limit:
                self._forget(next(iter(self._values)))  # the oldest: a dict keeps the order of insertion

    def _forget(self, stored: bytes) -> None:
        value = self._values.pop(stored, None)
        if value is not None:
            self._bytes -= len(stored) + len(value)
