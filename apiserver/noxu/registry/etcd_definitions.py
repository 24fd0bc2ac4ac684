"""CustomResourceDefinitions in etcd: v1beta1 as JSON, which apiextensions-apiserver writes whatever the media type.

Its codec encodes for the first version that it is given, v1beta1 (pkg/cmd/server/options), and reads both. The server
itself knows v1 only, so definitions are converted where they enter and leave etcd:

    the server    {"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1",…,"spec":{…,"versions":[…]},…}
    etcd          {"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",…,"spec":{…,"version":"v1",…},…}

Reading what was written gives the same bytes. What others wrote is read as Go would read it: decoded, defaulted, in the
order of declaration. A value that is not a definition is not changed: it fails when it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from noxu.api import codec
from noxu.crd import types, v1beta1
from noxu.go.structs import DecodedStruct
from noxu.values import Json, Object

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
        found = codec.decode_literals(value) if codec.has_minus_zero(value) else codec.decode_stored(value)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("kind") != types.KIND:
        return None
    version = found.get("apiVersion")
    decode = decoders.get(version) if isinstance(version, str) else None
    if decode is None:
        return None
    decoded = decode(found)
    return None if decoded.error else decoded.value
