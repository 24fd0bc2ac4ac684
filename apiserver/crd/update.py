"""What a write may change in a CRD (upstream's pkg/registry/customresourcedefinition/strategy.go).

Status is for /status, spec for everything else. A version that is stored once is remembered in status.storedVersions.
"""

from __future__ import annotations

from apiserver.api.gotext import quote
from apiserver.api.meta import OBJECT_META
from apiserver.api.structs import arrange, zero
from apiserver.api.types import Object
from apiserver.crd.internal import Internal, internal, nodes, same
from apiserver.crd.lists import LIST_TYPE, single_items
from apiserver.crd.types import SPEC, STATUS
from apiserver.crd.versions import storage_version
from apiserver.schema.formats import is_recognized


def prepare_for_create(crd: Object) -> Object:
    """A decoded and defaulted CRD as it is created: without a status of its own, in its first generation."""
    return _storing({**crd, "metadata": _with_generation(crd["metadata"], 1), "status": zero(STATUS)})


def prepare_for_update(new: Object, old: Object) -> Object:
    """A decoded and defaulted CRD as it replaces `old`: with the old status, in a new generation if the spec changed."""
    generation = old["metadata"].get("generation", 0)
    if not same(SPEC, new["spec"], old["spec"]):
        generation += 1
    return _storing({**new, "metadata": _with_generation(new["metadata"], generation), "status": old["status"]})


def prepare_for_status_update(new: Object, old: Object) -> Object:
    """A CRD whose status replaces that of `old`. Metadata is the new one's, which upstream calls a mistake and keeps."""
    generation = old["metadata"].get("generation", 0)
    return {**new, "metadata": _with_generation(new["metadata"], generation), "spec": old["spec"]}


def _with_generation(metadata: Object, generation: int) -> Object:
    return arrange(OBJECT_META, {**metadata, "generation": generation})


def _storing(crd: Object) -> Object:
    version = storage_version(crd)
    stored = crd["status"]["storedVersions"] or []
    if version is None or version in stored:
        return crd
    return {**crd, "status": {**crd["status"], "storedVersions": [*stored, version]}}


def warnings(new: Object, old: Object | None = None) -> list[str]:
    """What is accepted but does nothing: unknown formats, sets of what is not scalar. On update only new ones are told."""
    now = internal(new["spec"])
    before = internal(old["spec"]) if old is not None else None
    known = set(_unknown_formats(before)) if before else set()
    formats = [f"unrecognized format {quote(name)}" for name in _unknown_formats(now) if name not in known]
    sets = _composite_sets(now) - (_composite_sets(before) if before else set())
    return formats + [
        f"{LIST_TYPE}: set for items of type {quote(type_)} is not supported by server-side apply or CEL validation rules"
        for type_ in sorted(sets)
    ]


def _unknown_formats(spec: Internal) -> list[str]:
    return [
        node["format"]
        for schema in spec.schemas()
        for node in nodes(schema)
        if node.get("format") and not is_recognized(node["format"], node.get("type", ""))
    ]


def _composite_sets(spec: Internal) -> set[str]:
    items = (
        single_items(node) or {} for schema in spec.schemas() for node in nodes(schema) if node.get(LIST_TYPE) == "set"
    )
    return {one["type"] for one in items if one.get("type") in ("object", "array")}
