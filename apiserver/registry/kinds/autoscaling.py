"""autoscaling/v1: Scale, what /scale of any resource takes and gives."""

from __future__ import annotations

from typing import Final

from apiserver.api import field
from apiserver.api.field import FieldError
from apiserver.api.meta import OBJECT_META
from apiserver.api.structs import INT32, STRING, Field, Struct
from apiserver.api.types import Object
from apiserver.registry.kinds.meta import ALWAYS, TYPE_META

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


def validate_scale(scale: Object) -> list[FieldError]:
    """pkg/apis/autoscaling/validation; metadata is judged as everywhere."""
    replicas = scale.get("spec", {}).get("replicas", 0)
    if replicas >= 0:
        return []
    return [field.invalid("spec.replicas", replicas, "must be greater than or equal to 0")]
