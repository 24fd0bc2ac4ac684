"""The kinds that a body may claim to be in a request to a built-in resource (upstream's runtime.Scheme).

Upstream decodes a body as the kind that it claims, and converts the result to the resource's internal type. So a body has
the fields of its own version, and only versions of the resource's kind can be converted:

    body                                    decoded as       then
    the resource's apiVersion and kind      itself
    another version of the kind             that version     converted
    the internal version, or no apiVersion  an empty object  a body has an apiVersion by default, a patched object has not
    another kind that is known              that kind        refused: unknown conversion
    any other                                                refused: no kind is registered
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from noxu.api.errors import no_kind_registered
from noxu.api.meta import GroupVersionKind, parse_api_version
from noxu.crd import types
from noxu.go.structs import DecodedStruct
from noxu.kinds.scheme import struct_of
from noxu.registry.resource import Resource
from noxu.values import Object

INTERNAL: Final = "__internal"

Decoder: TypeAlias = Callable[[Object], DecodedStruct]


def decode(resource: Resource, value: Object, decoders: Mapping[str, Decoder]) -> tuple[Object, list[str]]:
    """Decode an object as the version that it claims: (the object, the paths of unknown fields).

    `decoders`: by apiVersion, those of all versions that can be converted. The object has the apiVersion that it claims.
    Raises ValueError with upstream's message.
    """
    group, version = parse_api_version(value.get("apiVersion") or "")
    kind = value.get("kind") or resource.kind
    if not version and group in ("", resource.group):
        group, version = resource.group, INTERNAL
    claimed = GroupVersionKind(group, version, kind)
    if kind == resource.kind and (decoder := decoders.get(claimed.api_version)):
        decoded = decoder(value)
        if decoded.error:
            raise ValueError(decoded.error)
        new = decoded.value
        if new.get("apiVersion") != claimed.api_version or new.get("kind") != kind:
            new = _identity(claimed) | {name: item for name, item in new.items() if name not in _IDENTITY}
        return new, decoded.unknown
    if kind == resource.kind and group == resource.group and version == INTERNAL:
        return _identity(claimed), [name for name in value if name not in _IDENTITY]  # its fields have other names
    raise ValueError(_refusal(resource, claimed))


_IDENTITY: Final = frozenset({"kind", "apiVersion"})


def _identity(claimed: GroupVersionKind) -> Object:
    return {"kind": claimed.kind, "apiVersion": claimed.api_version}


def _refusal(resource: Resource, claimed: GroupVersionKind) -> str:
    go_type = _go_type(resource, claimed)
    if not go_type:
        return no_kind_registered(claimed.kind, claimed.api_version)
    internal = "core" if resource.kind == "Event" else resource.group.partition(".")[0] or "core"
    return f"converting ({go_type}) to ({internal}.{resource.kind}): unknown conversion"


def _go_type(resource: Resource, claimed: GroupVersionKind) -> str:
    """The Go type of a kind, "" if the resource's server does not know it: that of definitions has a scheme of its own."""
    if claimed.kind in _IN_EVERY_VERSION and claimed.group in ("", resource.group):
        return f"v1.{claimed.kind}"
    if claimed.api_version == "v1" and claimed.kind in _UNVERSIONED:
        return f"v1.{claimed.kind}"
    if claimed.group == types.GROUP:
        known = claimed.version in ("v1", "v1beta1") and claimed.kind in _EXTENSIONS
        return f"{claimed.version}.{claimed.kind}" if known and resource.group == types.GROUP else ""
    if resource.group == types.GROUP:
        return ""
    struct = struct_of(claimed.api_version, claimed.kind)
    return struct.go if struct is not None else ""


_EXTENSIONS: Final = frozenset({types.KIND, f"{types.KIND}List", "ConversionReview"})
_IN_EVERY_VERSION: Final = frozenset(
    {"WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"}
)
_UNVERSIONED: Final = frozenset({"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"})
