"""The server's handling of kubectl's annotation kubectl.kubernetes.io/last-applied-configuration.

It concerns only applies by the field manager `kubectl`: objects that were applied client-side before may be taken over
without `--force-conflicts`, and the annotation is kept up to date for older clients.
"""

from __future__ import annotations

from typing import Final

import orjson

from noxu.apply.comparison import compare
from noxu.apply.fieldset import FieldSet, difference
from noxu.apply.typed import to_set, validate
from noxu.apply.types import Type
from noxu.go.text import compact_json
from noxu.values import Object

KUBECTL: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATIONS: Final = 256 * 1024  # upstream's TotalAnnotationSizeLimitB


def _annotation(value: Object) -> str:
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return text if isinstance(text, str) else ""


def applied_client_side(live: Object, version: str, kind: Type) -> FieldSet | None:
    """The fields with the values of the annotation. None if there is no annotation of this version."""
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
    """The object with the annotation updated to the applied configuration, if it has the annotation."""
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
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    if isinstance(metadata["annotations"], dict):
        annotations = {name: text for name, text in metadata["annotations"].items() if name != ANNOTATION}
        rest["annotations"] = annotations
    return {**config, "metadata": rest}
