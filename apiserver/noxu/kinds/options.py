"""The options of meta/v1: the body of a DELETE, and the structs of query parameters.

A query is decoded into the same structs (`dryRun=All&fieldManager=me` is CreateOptions).
"""

from __future__ import annotations

from typing import Final

from noxu.api.errors import no_kind_registered
from noxu.kinds.facts import struct

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
