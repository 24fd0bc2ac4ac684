"""The options of meta/v1: the body of a DELETE, and the structs of query parameters.

A query is decoded into the same structs (`dryRun=All&fieldManager=me` is CreateOptions).
"""

from __future__ import annotations

from typing import Final

from noxu.apiserver.kinds.facts import struct

DELETE_OPTIONS: Final = struct("meta/v1.DeleteOptions")
CREATE_OPTIONS: Final = struct("meta/v1.CreateOptions")
UPDATE_OPTIONS: Final = struct("meta/v1.UpdateOptions")
PATCH_OPTIONS: Final = struct("meta/v1.PatchOptions")
LIST_OPTIONS: Final = struct("meta/v1.ListOptions")
GET_OPTIONS: Final = struct("meta/v1.GetOptions")

ALL: Final = (DELETE_OPTIONS, CREATE_OPTIONS, UPDATE_OPTIONS, PATCH_OPTIONS, LIST_OPTIONS, GET_OPTIONS)
