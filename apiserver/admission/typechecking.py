"""The warnings in the status of ValidatingAdmissionPolicies: expressions that do not fit what the policy is about.

When a policy is evaluated its objects are dyn; here `object`, `oldObject` and `params` have the types of the schemas of
up to ten kinds that the rules name, and every validation is compiled for each of them (upstream's
policy/validating/typechecking.go). Warnings change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from apiserver.api.meta import OBJECT_META, GroupVersionKind
from apiserver.api.structs import List, Map, Scalar, Struct, Union, Wire
from apiserver.api.structs import Type as StructType
from apiserver.api.types import Object
from apiserver.cel import admission, types
from apiserver.cel.admission import Composition, Declared
from apiserver.cel.environment import Environment
from apiserver.cel.program import Program
from apiserver.cel.schema_types import DeclType, decl_type
from apiserver.cel.source import CompileError
from apiserver.registry.catalog import Catalog
from apiserver.registry.resource import Resource

MAX_KINDS: Final = 10  # of one rule
_MAX_DEPTH: Final = 64  # of a struct's type: those that contain themselves have no schema


def warnings(policy: Object, catalog: Catalog) -> list[Object]:
    """ExpressionWarnings."""
    environments = list(_environments(policy["spec"], catalog))
    found = []
    for n, validation in enumerate(policy["spec"].get("validations") or ()):
        for name in ("expression", "messageExpression"):
            text = validation.get(name)
            told = [f"{kind}: {wrong}\n" for kind, within in environments if text and (wrong := _wrong(text, within))]
            if told:
                found.append({"fieldRef": f"spec.validations[{n}].{name}", "warning": "\n".join(told)})
    return found


def _wrong(text: str, within: Environment) -> str:
    try:
        Program(text, within)
    except CompileError as error:
        return str(error)
    return ""


def _environments(spec: Object, catalog: Catalog) -> Iterator[tuple[str, Environment]]:
    """The kinds that the policy is about, and what expressions see of them."""
    params = spec.get("paramKind")
    declared = Declared(params is not None)
    names: dict[str, types.Type] = {}
    if params is not None:
        group, _, version = params["apiVersion"].rpartition("/")
        known = [one for one in catalog.in_version(group, version) if one.kind == params["kind"]]
        names[admission.PARAMS] = (_type_of(known[0]) if known else None) or types.DYN
    variables = [(one["name"], one["expression"]) for one in spec.get("variables") or ()]
    for resource in _resources(spec, catalog):
        seen = _type_of(resource)
        if seen is None:
            continue
        names |= {admission.OBJECT: seen, admission.OLD_OBJECT: seen}
        within = admission.environment(declared).extend(names)
        composition = Composition(variables, params=params is not None, within=within)
        kind = GroupVersionKind(resource.group, resource.version, resource.kind)
        yield f"{kind.group}/{kind.version}, Kind={kind.kind}", composition.environment(declared)


def _resources(spec: Object, catalog: Catalog) -> list[Resource]:
    """What the rules name without wildcards, sorted by group, version and kind."""
    found: set[Resource] = set()
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        count = 0
        for place in _places(rule):
            resource = catalog.find(*place)
            if resource is not None:
                found.add(resource)
                count += 1
            if count == MAX_KINDS:  # other rules are not looked at either
                return _sorted(found)
    return _sorted(found)


def _places(rule: Object) -> Iterator[tuple[str, str, str]]:
    groups, versions = rule.get("apiGroups") or [], rule.get("apiVersions") or []
    if any("*" in name for name in (*groups, *versions)):
        return
    resources = [one for one in rule.get("resources") or () if "*" not in one and "/" not in one]
    for group in sorted(groups):
        for version in sorted(versions):
            for resource in sorted(resources):
                yield group, version, resource


def _sorted(resources: set[Resource]) -> list[Resource]:
    return sorted(resources, key=lambda one: (one.group, one.version, one.kind))


# -- types ------------------------------------------------------------------------------------------------------------


def _type_of(resource: Resource) -> types.Type | None:
    """The type of a resource's objects, None if there is no schema for it."""
    struct = resource.behaviour.struct
    if struct is not None:
        declared = _declared(struct)
    else:
        declared = None if resource.schema is None else decl_type(resource.schema, is_root=True)
        if declared is not None and declared.fields is not None:
            metadata = _declared(OBJECT_META)
            assert metadata is not None
            declared = DeclType(fields={**declared.fields, "metadata": metadata})
    return None if declared is None else declared.named(f"{resource.kind}1")  # upstream makes up a number


_WIRES: Final = {
    Wire.STRING: types.STRING,
    Wire.BOOL: types.BOOL,
    Wire.INT32: types.INT,
    Wire.INT64: types.INT,
    Wire.DOUBLE: types.DOUBLE,
    Wire.BYTES: types.BYTES,
    Wire.TIME: types.TIMESTAMP,
    Wire.MICRO_TIME: types.TIMESTAMP,
    Wire.INT_OR_STRING: types.DYN,
}


@lru_cache(64)
def _declared(struct: Struct) -> DeclType | None:
    try:
        return _declare(struct, 0)
    except RecursionError:
        return None


def _declare(kind: StructType, depth: int) -> DeclType | None:
    """As OpenAPI describes it; what has no type there is not seen. Raises RecursionError for what contains itself."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    if isinstance(kind, Scalar):
        if kind.wire is Wire.JSON:
            return DeclType(fields={})
        return DeclType(_WIRES[kind.wire])
    if isinstance(kind, Union):
        return None
    if isinstance(kind, (List, Map)):
        element = _declare(kind.element, depth + 1)
        return None if element is None else DeclType(element=element, is_map=isinstance(kind, Map))
    fields = {name: _declare(field.type, depth + 1) for name, field in kind.fields.items()}
    return DeclType(fields={name: one for name, one in fields.items() if one is not None})
