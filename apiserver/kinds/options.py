"""The options of meta/v1: the body of a DELETE, and the structs of query parameters.

A query is decoded into the same structs (`dryRun=All&fieldManager=me` is CreateOptions).
"""

from __future__ import annotations

from typing import Final

from noxu.apiserver.go.structs import BOOL, INT64, STRING, UID, Field, List, Struct, named
from noxu.apiserver.kinds.meta import POINTER, TYPE_META

PRECONDITIONS: Final = Struct("Preconditions").define(
    Field("uid", UID, 1, POINTER),
    Field("resourceVersion", STRING, 2, POINTER),
)
DELETE_OPTIONS: Final = Struct("DeleteOptions").define(
    *TYPE_META,
    Field("gracePeriodSeconds", INT64, 1, POINTER),
    Field("preconditions", PRECONDITIONS, 2, POINTER),
    Field("orphanDependents", BOOL, 3, POINTER),
    Field("propagationPolicy", named("v1.DeletionPropagation"), 4, POINTER),
    Field("dryRun", List(STRING), 5, list_type="atomic"),
    Field("ignoreStoreReadErrorWithClusterBreakingPotential", BOOL, 6, POINTER),
)
CREATE_OPTIONS: Final = Struct("CreateOptions").define(
    *TYPE_META,
    Field("dryRun", List(STRING), 1, list_type="atomic"),
    Field("fieldManager", STRING, 3),
    Field("fieldValidation", STRING, 4),
)
UPDATE_OPTIONS: Final = Struct("UpdateOptions").define(
    *TYPE_META,
    Field("dryRun", List(STRING), 1, list_type="atomic"),
    Field("fieldManager", STRING, 2),
    Field("fieldValidation", STRING, 3),
)
PATCH_OPTIONS: Final = Struct("PatchOptions").define(
    *TYPE_META,
    Field("dryRun", List(STRING), 1, list_type="atomic"),
    Field("force", BOOL, 2, POINTER),
    Field("fieldManager", STRING, 3),
    Field("fieldValidation", STRING, 4),
)
LIST_OPTIONS: Final = Struct("ListOptions").define(
    *TYPE_META,
    Field("labelSelector", STRING, 1),
    Field("fieldSelector", STRING, 2),
    Field("watch", BOOL, 3),
    Field("allowWatchBookmarks", BOOL, 9),
    Field("resourceVersion", STRING, 4),
    Field("resourceVersionMatch", named("v1.ResourceVersionMatch"), 10),
    Field("timeoutSeconds", INT64, 5, POINTER),
    Field("limit", INT64, 7),
    Field("continue", STRING, 8),
    Field("sendInitialEvents", BOOL, 11, POINTER),
    Field("shardSelector", STRING, 15),
)
GET_OPTIONS: Final = Struct("GetOptions").define(
    *TYPE_META,
    Field("resourceVersion", STRING, 1),
)

ALL: Final = (DELETE_OPTIONS, CREATE_OPTIONS, UPDATE_OPTIONS, PATCH_OPTIONS, LIST_OPTIONS, GET_OPTIONS)
