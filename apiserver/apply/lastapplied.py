"""kubectl's annotation kubectl.kubernetes.io/last-applied-configuration, where the server knows of it.

Only for the field manager `kubectl`, and only when it applies: objects that were applied client-side so far may be
taken over without `--force-conflicts`, and the annotation is kept up to date for older clients.
"""

from __future__ import annotations

from typing import Final

import orjson

from apiserver.api.gotext import compact_json
from apiserver.api.types import Object
from apiserver.apply.comparison import compare
from apiserver.apply.fieldset import FieldSet, difference
from apiserver.apply.typed import to_set, validate
from apiserver.apply.types import Type

KUBECTL: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATIONS: Final = 256 * 1024  # upstream's TotalAnnotationSizeLimitB


def _annotation(value: Object) -> str:
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return text if isinstance(text, str) else ""


def applied_client_side(live: Object, version: str, kind: Type) -> FieldSet | None:
    """The fields that are as the annotation says. None if there is no annotation of this version to go by."""
    try:
        config = orjson.loads(_annotation(live))
    except ValueError:
        return None
    if not isinstance(config, dict) or not config.get("kind") or config.get("apiVersion") != version:
        return None
    if validate(config, kind) or validate(live, kind):
        return None
    change = compare(config, live, kind)
    fields = to_set(config, kind)
    for differing in change:
        fields = difference(fields, differing)
    return fields


def renewed(value: Object, config: Object) -> Object:
    """The object with the annotation brought up to what was applied now, if it has the annotation."""
    if not _annotation(value):
        return value
    metadata = value["metadata"]
    annotations = metadata["annotations"] | {ANNOTATION: compact_json(_plain(config)) + "\n"}
    if sum(len(name.encode()) + len(text.encode()) for name, text in annotations.items()) > MAX_ANNOTATIONS:
        del annotations[ANNOTATION]
    return {**value, "metadata": {**metadata, "annotations": annotations}}


def _plain(config: Object) -> Object:
    """The configuration without the annotation."""
    metadata = config.get("metadata")
    if not isinstance(metadata, dict) or "annotations" not in metadata:
        return config
    rest = {name: one for name, one in metadata.items() if name != "annotations"}
    if isinstance(metadata["annotations"], dict):
        annotations = {name: text for name, text in metadata["annotations"].items() if name != ANNOTATION}
        rest["annotations"] = annotations
    return {**config, "metadata": rest}
