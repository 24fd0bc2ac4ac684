"""The common parts of webhooks and admission policies: rules, match conditions, reserved names.

The messages are those of pkg/apis/admissionregistration/validation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from noxu.api import field
from noxu.api.field import FieldError, Path, as_json
from noxu.api.names import path_segment_name, qualified_name
from noxu.go.text import trim_space
from noxu.kinds.checks import label_selector_errors
from noxu.kinds.kind import CheckExpression, Unevaluable, Use, is_internal
from noxu.values import Object

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
    """The errors of a field with a few allowed values; it may be missing unless it is required."""
    value = holder.get(name)
    where = field.child(path, name)
    if value is None or (required and not value):
        return [field.required(where)] if required else []
    return [] if value in allowed else [field.not_supported(where, as_json(value), allowed)]


def repeats(values: Iterable[str]) -> set[int]:
    """The indexes of values that repeat an earlier one."""
    seen: set[str] = set()
    again = set()
    for n, value in enumerate(values):
        if value in seen:
            again.add(n)
        seen.add(value)
    return again


def reserved_name_errors(new: Object, old: Object | None) -> Errors:
    """Such names are reserved for files that the server reads at start-up."""
    name = new["metadata"].get("name", "")
    if old is not None or not name.endswith(_RESERVED_SUFFIX):
        return []
    rule = (
        f'names ending with "{_RESERVED_SUFFIX}" are reserved for static manifest-based configurations '
        "and cannot be managed via the API"
    )
    return [field.invalid("metadata.name", name, rule)]


def expression_errors(path: Path, expression: str, use: Use, check: CheckExpression, shown: str = "") -> Errors:
    """The errors of an expression. They print `shown`, if it is set, instead of the compiled text."""
    message = check(expression, use)
    if not message:
        return []
    error = field.internal(path, message) if is_internal(message) else field.invalid(path, shown or expression, message)
    return [Unevaluable(*error)]


# Rules


def rule_errors(rule: Object, path: Path) -> Errors:
    """The errors in a RuleWithOperations."""
    operations = rule.get("operations") or []
    where = field.child(path, "operations")
    errors = _alone(operations, where, "other operations")
    for n, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errors.append(field.not_supported(field.index(where, n), as_json(operation), _OPERATIONS))
    errors += _alone(rule.get("apiGroups") or [], field.child(path, "apiGroups"), "other API groups")
    versions, where = rule.get("apiVersions") or [], field.child(path, "apiVersions")
    errors += _alone(versions, where, "other API versions")
    errors += [field.required(field.index(where, n)) for n, version in enumerate(versions) if not version]
    errors += _resource_errors(rule.get("resources") or [], field.child(path, "resources"))
    return errors + chosen(rule, path, "scope", _SCOPES)


def _alone(values: list[str], path: Path, rest: str) -> Errors:
    """The errors of a list that must not be empty, and in which `*` must be alone."""
    if not values:
        return [field.required(path)]
    if len(values) == 1 or "*" not in values:
        return []
    return [field.invalid(path, values, f"if '*' is present, must not specify {rest}")]


def _resource_errors(resources: list[str], path: Path) -> Errors:
    errors = [] if resources else [field.required(path)]
    all_subresources, all_resources = set(), set()  # x of x/*, y of */y
    plain = False  # the last resource without subresource is not `*`; upstream ignores the others
    for n, name in enumerate(resources):
        where = field.index(path, n)
        resource, slash, subresource = name.partition("/")
        if not name:
            errors.append(field.required(where))
            continue
        if not slash:
            plain = name != "*"
            continue
        if resource in all_subresources:
            errors.append(field.invalid(where, name, f"if '{resource}/*' is present, must not specify {name}"))
        if subresource in all_resources:
            errors.append(field.invalid(where, name, f"if '*/{subresource}' is present, must not specify {name}"))
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
    """The errors about operations of mutating policies: a DELETE cannot be mutated."""
    where = field.child(path, "resourceRules", "operations")
    rules = (match or {}).get("resourceRules") or ()
    operations = [operation for rule in rules for operation in rule.get("operations") or ()]
    return [
        field.not_supported(where, as_json(operation), _MUTABLE)
        for operation in operations
        if operation not in _MUTABLE
    ]


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


# Match conditions


def condition_errors(
    conditions: list[Object], path: Path, check: CheckExpression, *, params: bool, before: Iterable[str]
) -> Errors:
    """The errors in match conditions; `before` are the expressions of the stored object."""
    stored_expressions = set(before)
    errors = []
    if len(conditions) > _MAX_CONDITIONS:
        errors.append(field.too_many(path, len(conditions), _MAX_CONDITIONS))
    again = repeats(condition.get("name", "") for condition in conditions)
    for n, condition in enumerate(conditions):
        where = field.index(path, n)
        expression, name = trim_space(condition.get("expression", "")), condition.get("name", "")
        if expression:
            use = Use("bool", params=params, stored=expression in stored_expressions)
            errors += expression_errors(field.child(where, "expression"), expression, use, check)
        else:
            errors.append(field.required(field.child(where, "expression")))
        if name:
            errors += [field.invalid(field.child(where, "name"), name, text) for text in qualified_name(name)]
            errors += [field.duplicate(field.child(where, "name"), name)] if n in again else []
        else:
            errors.append(field.required(field.child(where, "name")))
    return errors
