"""What a write may change in a CRD (upstream's pkg/registry/customresourcedefinition/strategy.go).

Status is for /status, spec for everything else. A version that is stored once is remembered in status.storedVersions.
"""

from __future__ import annotations

from typing import Final

from apiserver.api.gotext import quote
from apiserver.api.meta import OBJECT_META
from apiserver.api.structs import arrange, zero
from apiserver.api.types import Object
from apiserver.api.values import copy
from apiserver.crd.defaults import default
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
    """A CRD whose status replaces that of `old`. Metadata is the new one's, which upstream calls a mistake and keeps.

    It has the defaults with which it will be read: a status without stored versions gets the one that `old` stores.
    """
    generation = old["metadata"].get("generation", 0)
    return default({**new, "metadata": _with_generation(new["metadata"], generation), "spec": old["spec"]})


def _with_generation(metadata: Object, generation: int) -> Object:
    return arrange(OBJECT_META, {**metadata, "generation": generation})


def _storing(crd: Object) -> Object:
    version = storage_version(crd)
    stored = crd["status"]["storedVersions"] or []
    if version is None or version in stored:
        return crd
    return {**crd, "status": {**crd["status"], "storedVersions": [*stored, version]}}


def drop_optional_old_self(new: Object, old: Object | None) -> Object:
    """Upstream's dropDisabledFields where ratcheting is switched off: `optionalOldSelf` goes, unless it was there."""
    if old is not None and _rules_with(_OPTIONAL, old["spec"]):
        return new
    spec = copy(new["spec"])
    for rule in _rules_with(_OPTIONAL, spec):
        del rule[_OPTIONAL]
    return {**new, "spec": spec}


_OPTIONAL: Final = "optionalOldSelf"


def _rules_with(field: str, spec: Object) -> list[Object]:
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in spec["versions"] or []]
    rules = [
        rule for one in schemas if one for node in nodes(one) for rule in node.get("x-kubernetes-validations") or []
    ]
    return [rule for rule in rules if rule.get(field) is not None]


def warnings(new: Object, old: Object | None = None) -> list[str]:
    """What is accepted but does nothing: unknown formats, sets of what is not scalar. On update only new ones are told."""
    formats, sets = _idle(internal(new["spec"]))
    if old is not None:
        known, known_sets = _idle(internal(old["spec"]))
        formats, sets = [name for name in formats if name not in known], sets - known_sets
    return [f"unrecognized format {quote(name)}" for name in formats] + [
        f"{LIST_TYPE}: set for items of type {quote(type_)} is not supported by server-side apply or CEL validation rules"
        for type_ in sorted(sets)
    ]


def _idle(spec: Internal) -> tuple[list[str], set[str]]:
    """Unknown formats as often as they occur, and the composite types that there are sets of."""
    formats, sets = [], set()
    for schema in spec.schemas():
        for node in nodes(schema):
            if "format" in node and not is_recognized(node["format"], node.get("type", "")):
                formats.append(node["format"])
            if node.get(LIST_TYPE) == "set" and (items := single_items(node)) is not None:
                sets.add(items.get("type", ""))
    return formats, sets & {"array", "object"}
