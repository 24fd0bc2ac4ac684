"""The warnings in the status of ValidatingAdmissionPolicies: expressions that do not fit the kinds that the policy applies to.

When a policy is evaluated its objects are dyn; here `object`, `oldObject` and `params` have the types of the schemas of
up to ten kinds that the rules name, and every validation is compiled for each of them (upstream's
policy/validating/typechecking.go). Warnings have no effect on requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noxu.api.meta import GroupVersionKind
from noxu.cel import Type, TypeChecker, object_type
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.values import Object

MAX_KINDS: Final = 10  # of one rule


def warnings(policy: Object, served_resources: ServedResources) -> list[Object]:
    """ExpressionWarnings."""
    checkers = list(_checkers(policy["spec"], served_resources))
    found = []
    for n, validation in enumerate(policy["spec"].get("validations") or ()):
        for name in ("expression", "messageExpression"):
            text = validation.get(name)
            errors = [f"{kind}: {error}\n" for kind, checker in checkers if text and (error := checker.error(text))]
            if errors:
                found.append({"fieldRef": f"spec.validations[{n}].{name}", "warning": "\n".join(errors)})
    return found


def _checkers(spec: Object, served_resources: ServedResources) -> Iterator[tuple[str, TypeChecker]]:
    """(kind, checker of expressions about its objects) of the kinds that the policy applies to."""
    params = spec.get("paramKind")
    params_type: Type | None = None
    if params is not None:
        group, _, version = params["apiVersion"].rpartition("/")
        known = [
            resource for resource in served_resources.in_version(group, version) if resource.kind == params["kind"]
        ]
        params_type = _type_of(known[0]) if known else None
    variables = [(variable["name"], variable["expression"]) for variable in spec.get("variables") or ()]
    for resource in _resources(spec, served_resources):
        type_ = _type_of(resource)
        if type_ is None:
            continue
        kind = GroupVersionKind(resource.group, resource.version, resource.kind)
        checker = TypeChecker(type_, variables, has_params=params is not None, params_type=params_type)
        yield f"{kind.group}/{kind.version}, Kind={kind.kind}", checker


def _resources(spec: Object, served_resources: ServedResources) -> list[Resource]:
    """The resources that the rules name without wildcards, sorted by group, version and kind."""
    found: set[Resource] = set()
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        count = 0
        for place in _places(rule):
            resource = served_resources.find(*place)
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
    resources = [name for name in rule.get("resources") or () if "*" not in name and "/" not in name]
    for group in sorted(groups):
        for version in sorted(versions):
            for resource in sorted(resources):
                yield group, version, resource


def _sorted(resources: set[Resource]) -> list[Resource]:
    return sorted(resources, key=lambda resource: (resource.group, resource.version, resource.kind))


def _type_of(resource: Resource) -> Type | None:
    """The type of a resource's objects, None if there is no schema for it."""
    return object_type(resource.kind, struct=resource.codec.struct, schema=resource.schema)
