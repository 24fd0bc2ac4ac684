"""autoscaling/v1: Scale, the body of every /scale subresource."""

from __future__ import annotations

from typing import Final

from noxu.apiserver.api.meta import OBJECT_META
from noxu.apiserver.go.structs import INT32, STRING, Field, Struct
from noxu.apiserver.kinds.meta import ALWAYS, TYPE_META

SCALE_SPEC: Final = Struct("ScaleSpec").define(
    Field("replicas", INT32, 1),
)
SCALE_STATUS: Final = Struct("ScaleStatus").define(
    Field("replicas", INT32, 1, ALWAYS),
    Field("selector", STRING, 2),
)
SCALE: Final = Struct("Scale").define(
    *TYPE_META,
    Field("metadata", OBJECT_META, 1, ALWAYS),
    Field("spec", SCALE_SPEC, 2, ALWAYS),
    Field("status", SCALE_STATUS, 3, ALWAYS),
)
