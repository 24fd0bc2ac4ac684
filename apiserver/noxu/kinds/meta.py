"""meta/v1 besides ObjectMeta: the tables of lists, selectors, conditions and Status.

Every kind begins with the embedded TypeMeta, which protobuf has in the envelope instead.
"""

from __future__ import annotations

from functools import cache
from typing import Final

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
