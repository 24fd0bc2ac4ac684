"""What webhooks and admission policies have in common: rules, match conditions, reserved names.

The texts are those of pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from apiserver.api import field
from apiserver.api.field import FieldError, Path
from apiserver.api.names import path_segment_name, qualified_name
from apiserver.api.types import Json, Object
from apiserver.registry.kinds import CheckExpression, Use, as_json
from apiserver.registry.kinds.expressions import is_internal
from apiserver.registry.kinds.selectors import label_selector_errors

FAILURE_POLICIES: Final = ["Fail", "Ignore"]
MATCH_POLICIES: Final = ["Equivalent", "Exact"]
REINVOCATION_POLICIES: Final = ["IfNeeded", "Never"]
_OPERATIONS: Final = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"]
_MUTABLE: Final = ["*", "CONNECT", "CREATE", "UPDATE"]
_SCOPES: Final = ["*", "Cluster", "Namespaced"]
_MAX_CONDITIONS: Final = 64
_RESERVED_SUFFIX: Final = ".static.k8s.io"

Errors: TypeAlias = list[FieldError]


def chosen(holder: Object, path: Path, name: str, allowed: list[str], *, required: bool = False) -> Errors:
    """One of a few words; a missing one is all right unless it is required."""
    value = holder.get(name)
    where = field.child(path, name)
    if value is None or (required and not value):
        return [field.required(where)] if required else []
    return [] if value in allowed else [field.not_supported(where, as_json(value), allowed)]


def repeats(values: Iterable[str]) -> set[int]:
    """The positions of values that stood there before."""
    seen: set[str] = set()
    again = set()
    for n, value in enumerate(values):
        if value in seen:
            again.add(n)
        seen.add(value)
    return again


def reserved_name_errors(new: Object, old: Object | None) -> Errors:
    """Only files that the server reads when it starts may have such names."""
    name = new["metadata"].get("name", "")
    if old is not None or not name.endswith(_RESERVED_SUFFIX):
        return []
    rule = (
        f'names ending with "{_RESERVED_SUFFIX}" are reserved for static manifest-based configurations '
        "and cannot be managed via the API"
    )
    return [field.invalid("metadata.name", name, rule)]


class Unevaluable(FieldError):
    """An expression that does not compile: whether that is an error or a warning is not said here."""

    __slots__ = ()


def expression_errors(path: Path, expression: str, use: Use, check: CheckExpression, shown: str = "") -> Errors:
    """`shown` is what the error prints, if not the expression as it is compiled."""
    wrong = check(expression, use)
    if not wrong:
        return []
    error = field.internal(path, wrong) if is_internal(wrong) else field.invalid(path, shown or expression, wrong)
    return [Unevaluable(*error)]


# Rules


def rule_errors(rule: Object, path: Path) -> Errors:
    """A RuleWithOperations."""
    operations = rule.get("operations") or []
    where = field.child(path, "operations")
    errors = _alone(operations, where, "other operations")
    for n, one in enumerate(operations):
        if one not in _OPERATIONS:
            errors.append(field.not_supported(field.index(where, n), as_json(one), _OPERATIONS))
    errors += _alone(rule.get("apiGroups") or [], field.child(path, "apiGroups"), "other API groups")
    versions, where = rule.get("apiVersions") or [], field.child(path, "apiVersions")
    errors += _alone(versions, where, "other API versions")
    errors += [field.required(field.index(where, n)) for n, one in enumerate(versions) if not one]
    errors += _resource_errors(rule.get("resources") or [], field.child(path, "resources"))
    return errors + chosen(rule, path, "scope", _SCOPES)


def _alone(values: list[str], path: Path, others: str) -> Errors:
    """There is something, and `*` stands alone."""
    if not values:
        return [field.required(path)]
    if len(values) == 1 or "*" not in values:
        return []
    return [field.invalid(path, values, f"if '*' is present, must not specify {others}")]


def _resource_errors(resources: list[str], path: Path) -> Errors:
    errors = [] if resources else [field.required(path)]
    all_subresources, all_resources = set(), set()  # x of x/*, y of */y
    plain = False  # of the last one without subresource: upstream does not remember the others
    for n, one in enumerate(resources):
        where = field.index(path, n)
        resource, slash, subresource = one.partition("/")
        if not one:
            errors.append(field.required(where))
            continue
        if not slash:
            plain = one != "*"
            continue
        if resource in all_subresources:
            errors.append(field.invalid(where, one, f"if '{resource}/*' is present, must not specify {one}"))
        if subresource in all_resources:
            errors.append(field.invalid(where, one, f"if '*/{subresource}' is present, must not specify {one}"))
        if subresource == "*":
            all_subresources.add(resource)
        if resource == "*":
            all_resources.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(field.invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        rule = "if '*' is present, must not specify other resources without subresources"
        errors.append(field.invalid(path, resources, rule))
    return errors


def default_rules(rules: Iterable[Object] | None) -> None:
    for rule in rules or ():
        if rule.get("scope") is None:
            rule["scope"] = "*"


# What policies and bindings match


def match_resources_errors(match: Object | None, path: Path) -> Errors:
    if match is None:
        return []
    errors = chosen(match, path, "matchPolicy", MATCH_POLICIES, required=True)
    for name in ("namespaceSelector", "objectSelector"):
        where = field.child(path, name)
        selector = match.get(name)
        errors += [field.required(where)] if selector is None else label_selector_errors(selector, where)
    for name in ("resourceRules", "excludeResourceRules"):
        for n, rule in enumerate(match.get(name) or ()):
            errors += _named_rule_errors(rule, field.index(field.child(path, name), n))
    return errors


def mutable_errors(match: Object | None, path: Path) -> Errors:
    """Nothing can be changed about a DELETE."""
    where = field.child(path, "resourceRules", "operations")
    rules = (match or {}).get("resourceRules") or ()
    operations = [one for rule in rules for one in rule.get("operations") or ()]
    return [field.not_supported(where, as_json(one), _MUTABLE) for one in operations if one not in _MUTABLE]


def _named_rule_errors(rule: Object, path: Path) -> Errors:
    errors: Errors = []
    names = rule.get("resourceNames") or []
    again = repeats(names)
    for n, name in enumerate(names):
        where = field.index(field.child(path, "resourceNames"), n)
        errors += [field.invalid(where, name, text) for text in path_segment_name(name)]
        if n in again:
            errors.append(field.duplicate(where, name))
    return errors + rule_errors(rule, path)


def default_match_resources(match: Object | None) -> None:
    if match is None:
        return
    defaults: tuple[tuple[str, Json], ...] = (
        ("namespaceSelector", {}),
        ("objectSelector", {}),
        ("matchPolicy", "Equivalent"),
    )
    for name, value in defaults:
        if match.get(name) is None:
            match[name] = value
    default_rules(match.get("resourceRules"))
    default_rules(match.get("excludeResourceRules"))


# Match conditions


def condition_errors(
    conditions: list[Object], path: Path, check: CheckExpression, *, params: bool, before: Iterable[str]
) -> Errors:
    """`before`: the expressions that the stored object already has."""
    known = set(before)
    errors = []
    if len(conditions) > _MAX_CONDITIONS:
        errors.append(field.too_many(path, len(conditions), _MAX_CONDITIONS))
    again = repeats(one.get("name", "") for one in conditions)
    for n, one in enumerate(conditions):
        where = field.index(path, n)
        expression, name = one.get("expression", "").strip(), one.get("name", "")
        if expression:
            use = Use("bool", params=params, stored=expression in known)
            errors += expression_errors(field.child(where, "expression"), expression, use, check)
        else:
            errors.append(field.required(field.child(where, "expression")))
        if name:
            errors += [field.invalid(field.child(where, "name"), name, text) for text in qualified_name(name)]
            errors += [field.duplicate(field.child(where, "name"), name)] if n in again else []
        else:
            errors.append(field.required(field.child(where, "name")))
    return errors
