"""How a write changes a CRD (upstream's pkg/registry/customresourcedefinition/strategy.go).

Only writes to /status change the status, all others only the rest. status.storedVersions keeps every version that has
been a storage version.
"""

from __future__ import annotations

from typing import Final

from noxu.api.meta import OBJECT_META
from noxu.crd.internal import Internal, internal, nodes, same
from noxu.crd.lists import LIST_TYPE, single_items
from noxu.crd.types import SPEC, STATUS, default, storage_version
from noxu.go.structs import arrange, zero
from noxu.go.text import quote
from noxu.releases import NEWEST
from noxu.schema.formats import is_recognized
from noxu.values import Object, copy


def prepare_for_create(crd: Object) -> Object:
    """A decoded and defaulted CRD to be created: with an empty status, in generation 1."""
    return _with_stored_version({**crd, "metadata": _with_generation(crd["metadata"], 1), "status": zero(STATUS)})


def prepare_for_update(new: Object, old: Object) -> Object:
    """A decoded and defaulted CRD to replace `old`: with the old status, in a new generation if the spec changed."""
    generation = old["metadata"].get("generation", 0)
    if not same(SPEC, new["spec"], old["spec"]):
        generation += 1
    return _with_stored_version(
        {**new, "metadata": _with_generation(new["metadata"], generation), "status": old["status"]}
    )


def prepare_for_status_update(new: Object, old: Object) -> Object:
    """A CRD whose status replaces that of `old`. It has the new metadata, which upstream calls a mistake, but keeps.

    It is defaulted as when it is read: a status without stored versions gets the storage version of `old`.
    """
    generation = old["metadata"].get("generation", 0)
    return default({**new, "metadata": _with_generation(new["metadata"], generation), "spec": old["spec"]})


def _with_generation(metadata: Object, generation: int) -> Object:
    return arrange(OBJECT_META, {**metadata, "generation": generation})


def _with_stored_version(crd: Object) -> Object:
    version = storage_version(crd)
    stored = crd["status"]["storedVersions"] or []
    if version is None or version in stored:
        return crd
    return {**crd, "status": {**crd["status"], "storedVersions": [*stored, version]}}


def drop_optional_old_self(new: Object, old: Object | None) -> Object:
    """Upstream's dropDisabledFields without ratcheting: `optionalOldSelf` is dropped, unless the stored CRD has it."""
    if old is not None and _rules_with(_OPTIONAL, old["spec"]):
        return new
    spec = copy(new["spec"])
    for rule in _rules_with(_OPTIONAL, spec):
        del rule[_OPTIONAL]
    return {**new, "spec": spec}


def drop_selectable_fields(new: Object, old: Object | None) -> Object:
    """Upstream's dropDisabledFields without field selectors: `selectableFields` are dropped, unless the stored CRD has some."""
    if old is not None and any(version.get(_SELECTABLE) for version in old["spec"]["versions"]):
        return new
    versions = [
        {name: value for name, value in version.items() if name != _SELECTABLE}
        for version in new["spec"]["versions"] or []
    ]
    return {**new, "spec": {**new["spec"], "versions": versions}}


_SELECTABLE: Final = "selectableFields"
_OPTIONAL: Final = "optionalOldSelf"


def _rules_with(field: str, spec: Object) -> list[Object]:
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in spec["versions"] or []]
    rules = [
        rule
        for schema in schemas
        if schema
        for node in nodes(schema)
        for rule in node.get("x-kubernetes-validations") or []
    ]
    return [rule for rule in rules if rule.get(field) is not None]


_FORMATS_WARNED: Final = 34
_SETS_WARNED: Final = 37


def warnings(new: Object, old: Object | None = None, release: int = NEWEST) -> list[str]:
    """Warnings about keywords without effect: unknown formats, sets of items that are not scalars. Updates report new ones only.

    Releases of Kubernetes warn about formats from 1.34 on, about sets from 1.37 on.
    """
    if release < _FORMATS_WARNED:
        return []
    formats, sets = _ineffective(internal(new["spec"]))
    if release < _SETS_WARNED:
        sets = set()
    if old is not None:
        old_formats, old_sets = _ineffective(internal(old["spec"]))
        formats, sets = [name for name in formats if name not in old_formats], sets - old_sets
    return [f"unrecognized format {quote(name)}" for name in formats] + [
        f"{LIST_TYPE}: set for items of type {quote(type_)} is not supported by server-side apply or CEL validation rules"
        for type_ in sorted(sets)
    ]


def _ineffective(spec: Internal) -> tuple[list[str], set[str]]:
    """(unknown formats with repetitions, the composite types of items in sets)."""
    formats, sets = [], set()
    for schema in spec.schemas():
        for node in nodes(schema):
            if "format" in node and not is_recognized(node["format"], node.get("type", "")):
                formats.append(node["format"])
            if node.get(LIST_TYPE) == "set" and (items := single_items(node)) is not None:
                sets.add(items.get("type", ""))
    return formats, sets & {"array", "object"}
