"""meta/v1 besides ObjectMeta: the tables of lists, selectors, conditions and Status.

Every kind begins with the embedded TypeMeta, which protobuf has in the envelope instead.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from noxu.apiserver.api.meta import OBJECT_META
from noxu.apiserver.go.structs import (
    INT32,
    INT64,
    STRING,
    TIME,
    UID,
    Field,
    List,
    Map,
    Struct,
    Write,
    named,
)

ALWAYS: Final = Write.ALWAYS
POINTER: Final = Write.POINTER
NULL: Final = Write.NULL

TYPE_META: Final = (Field("kind", STRING, inline="TypeMeta"), Field("apiVersion", STRING, inline="TypeMeta"))

SHARD_INFO: Final = Struct("ShardInfo").define(
    Field("selector", STRING, 1, ALWAYS),
)
LIST_META: Final = Struct("ListMeta").define(
    Field("selfLink", STRING, 1),
    Field("resourceVersion", STRING, 2),
    Field("continue", STRING, 3),
    Field("remainingItemCount", INT64, 4, POINTER),
    Field("shardInfo", SHARD_INFO, 5, POINTER),
)
LABEL_SELECTOR_REQUIREMENT: Final = Struct("LabelSelectorRequirement").define(
    Field("key", STRING, 1, ALWAYS),
    Field("operator", named("v1.LabelSelectorOperator"), 2, ALWAYS),
    Field("values", List(STRING), 3, list_type="atomic"),
)
LABEL_SELECTOR: Final = Struct("LabelSelector").define(
    Field("matchLabels", Map(STRING), 1),
    Field("matchExpressions", List(LABEL_SELECTOR_REQUIREMENT), 2, list_type="atomic"),
)
FIELD_SELECTOR_REQUIREMENT: Final = Struct("FieldSelectorRequirement").define(
    Field("key", STRING, 1, ALWAYS),
    Field("operator", named("v1.FieldSelectorOperator"), 2, ALWAYS),
    Field("values", List(STRING), 3, list_type="atomic"),
)
CONDITION: Final = Struct("Condition").define(
    Field("type", STRING, 1, ALWAYS),
    Field("status", named("v1.ConditionStatus"), 2, ALWAYS),
    Field("observedGeneration", INT64, 3),
    Field("lastTransitionTime", TIME, 4, ALWAYS),
    Field("reason", STRING, 5, ALWAYS),
    Field("message", STRING, 6, ALWAYS),
)
STATUS_CAUSE: Final = Struct("StatusCause").define(
    Field("reason", named("v1.CauseType"), 1),
    Field("message", STRING, 2),
    Field("field", STRING, 3),
)
STATUS_DETAILS: Final = Struct("StatusDetails").define(
    Field("name", STRING, 1),
    Field("group", STRING, 2),
    Field("kind", STRING, 3),
    Field("uid", UID, 6),
    Field("causes", List(STATUS_CAUSE), 4, list_type="atomic"),
    Field("retryAfterSeconds", INT32, 5),
)
STATUS: Final = Struct("Status").define(
    *TYPE_META,
    Field("metadata", LIST_META, 1, ALWAYS),
    Field("status", STRING, 2),
    Field("message", STRING, 3),
    Field("reason", named("v1.StatusReason"), 4),
    Field("details", STATUS_DETAILS, 5, POINTER),
    Field("code", INT32, 6),
)
PARTIAL_OBJECT_METADATA: Final = Struct("PartialObjectMetadata").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
)
PARTIAL_OBJECT_METADATA_LIST: Final = Struct("PartialObjectMetadataList").define(
    *TYPE_META,
    Field("metadata", LIST_META, 1, ALWAYS),
    Field("items", List(PARTIAL_OBJECT_METADATA), 2, ALWAYS),
)


@cache
def list_of(item: Struct) -> Struct:
    """The list of a kind."""
    return Struct(f"{item.name}List", package=item.package).define(
        *TYPE_META,
        Field("metadata", LIST_META, 1, ALWAYS),
        Field("items", List(item), 2, ALWAYS),
    )
