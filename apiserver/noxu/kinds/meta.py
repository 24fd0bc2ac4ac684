"""The structs that no kind owns: those of meta/v1, its options, discovery documents, and Scale.

- meta/v1 besides ObjectMeta: lists, selectors, conditions and Status. Every kind begins with the embedded TypeMeta,
  which protobuf has in the envelope instead.
- Options of meta/v1: the body of a DELETE, and query parameters, which are decoded into the same structs
  (`dryRun=All&fieldManager=me` is CreateOptions).
- Discovery documents: meta/v1 and aggregated (apidiscovery.k8s.io/v2).
- autoscaling/v1: Scale, the body of every /scale subresource.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from noxu.api.errors import no_kind_registered
from noxu.go.structs import STRING, Field, List, Presence, Struct
from noxu.kinds.facts import struct

ALWAYS: Final = Presence.ALWAYS
POINTER: Final = Presence.POINTER
NULL: Final = Presence.NULL

TYPE_META: Final = (Field("kind", STRING, inline="TypeMeta"), Field("apiVersion", STRING, inline="TypeMeta"))

LIST_META: Final = struct("meta/v1.ListMeta")
CONDITION: Final = struct("meta/v1.Condition")
STATUS: Final = struct("meta/v1.Status")
PARTIAL_OBJECT_METADATA: Final = struct("meta/v1.PartialObjectMetadata")
PARTIAL_OBJECT_METADATA_LIST: Final = struct("meta/v1.PartialObjectMetadataList")


@cache
def list_of(item: Struct) -> Struct:
    """The list of a kind."""
    return Struct(f"{item.name}List", package=item.package).define(
        *TYPE_META,
        Field("metadata", LIST_META, 1, ALWAYS),
        Field("items", List(item), 2, ALWAYS),
    )


# -- options ----------------------------------------------------------------------------------------------------------


DELETE_OPTIONS: Final = struct("meta/v1.DeleteOptions")
CREATE_OPTIONS: Final = struct("meta/v1.CreateOptions")
UPDATE_OPTIONS: Final = struct("meta/v1.UpdateOptions")
PATCH_OPTIONS: Final = struct("meta/v1.PatchOptions")
LIST_OPTIONS: Final = struct("meta/v1.ListOptions")
GET_OPTIONS: Final = struct("meta/v1.GetOptions")

ALL: Final = (DELETE_OPTIONS, CREATE_OPTIONS, UPDATE_OPTIONS, PATCH_OPTIONS, LIST_OPTIONS, GET_OPTIONS)

_EVERYWHERE: Final = ("Status", "APIGroup", "APIGroupList", "APIVersions", "APIResourceList", "CreateOptions", "UpdateOptions")  # fmt: skip
_SHAPES: Final = ("Table", "TableOptions", "PartialObjectMetadata", "PartialObjectMetadataList")
_IN_META: Final = {
    "meta.k8s.io/v1": {
        kind: f"v1.{kind}" for kind in (*_SHAPES, "PatchOptions", "GetOptions", "ListOptions", "WatchEvent")
    },
    "meta.k8s.io/v1beta1": {kind: f"v1.{kind}" for kind in _SHAPES}
    | {"PartialObjectMetadataList": "v1beta1.PartialObjectMetadataList"},
    "meta.k8s.io/__internal": {kind: f"v1.{kind}" for kind in (*_SHAPES, "GetOptions")}
    | {
        "PartialObjectMetadataList": "v1beta1.PartialObjectMetadataList",
        "ListOptions": "internalversion.ListOptions",
        "WatchEvent": "v1.InternalEvent",
    },
}
"""The Go types of the kinds in the scheme of meta/internalversion, which decodes options."""


def not_delete_options(kind: str, api_version: str) -> str:
    """Upstream's error about a body of another kind than DeleteOptions, whose fields are not read."""
    go = f"v1.{kind}" if kind in _EVERYWHERE else _IN_META.get(api_version, {}).get(kind)
    if go is None:
        return no_kind_registered(kind, api_version)
    return f"converting ({go}) to (v1.DeleteOptions): unknown conversion"


# -- discovery --------------------------------------------------------------------------------------------------------


API_GROUP: Final = struct("meta/v1.APIGroup")
API_GROUP_LIST: Final = struct("meta/v1.APIGroupList")
API_RESOURCE_LIST: Final = struct("meta/v1.APIResourceList")
API_VERSIONS: Final = struct("meta/v1.APIVersions")
API_GROUP_DISCOVERY: Final = struct("apidiscovery/v2.APIGroupDiscovery")
API_GROUP_DISCOVERY_LIST: Final = list_of(API_GROUP_DISCOVERY)


# -- autoscaling ------------------------------------------------------------------------------------------------------


SCALE: Final = struct("autoscaling/v1.Scale")
