"""rbac.authorization.k8s.io/v1: roles and their bindings.

The rules are those of k8s.io/kubernetes pkg/apis/rbac/validation. That users grant only what they hold is a matter of
authorization.
"""

from __future__ import annotations

from typing import Final

from noxu.api import field
from noxu.api.field import FieldError, Path
from noxu.api.names import path_segment_name, subdomain_name
from noxu.kinds import checks
from noxu.kinds.checks import Errors
from noxu.kinds.kind import Context, Rules
from noxu.kinds.selectors import label_selector_errors
from noxu.values import Object

GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ["ServiceAccount", "User", "Group"]


def _rule(rule: Object, path: Path, *, namespaced: bool) -> Errors:
    if not rule.get("verbs"):
        yield field.required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        where = f"{path}.nonResourceURLs"
        if namespaced:
            yield field.invalid(where, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            yield field.invalid(where, urls, "rules cannot apply to both regular resources and non-resource URLs")
        return
    if not rule.get("apiGroups"):
        yield field.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield field.required(f"{path}.resources", "resource rules must supply at least one resource")


def _validate_role(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return [error for n, rule in _rules(new) for error in _rule(rule, f"rules[{n}]", namespaced=True)]


def _rules(role: Object) -> enumerate[Object]:
    return enumerate(role.get("rules") or ())


def _validate_cluster_role(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    errors = [error for n, rule in _rules(new) for error in _rule(rule, f"rules[{n}]", namespaced=False)]
    aggregation = new.get("aggregationRule")
    if aggregation is not None:
        path, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or []
        if not selectors:
            rule = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(field.required(path, rule))
        known = ((old or {}).get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        any_value = any(label_selector_errors(selector, path) for selector in known)
        for n, selector in enumerate(selectors):
            errors += label_selector_errors(selector, field.index(path, n), any_value=any_value)
    return errors


def _binding(new: Object, old: Object | None, kinds: list[str], *, namespaced: bool) -> Errors:
    reference: Object = new.get("roleRef") or {}
    if reference.get("apiGroup", "") != GROUP:
        yield field.not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), [GROUP])
    if reference.get("kind", "") not in kinds:
        yield field.not_supported("roleRef.kind", reference.get("kind", ""), kinds)
    if not reference.get("name"):
        yield field.required("roleRef.name")
    else:
        yield from checks.named(reference["name"], path_segment_name, "roleRef.name")
    for n, subject in enumerate(new.get("subjects") or ()):
        yield from _subject(subject, f"subjects[{n}]", namespaced=namespaced)
    if old is not None:
        yield from checks.immutable(reference, old.get("roleRef") or {}, "roleRef", "rbac/v1.RoleRef")


def _subject(subject: Object, path: Path, *, namespaced: bool) -> Errors:
    name, kind, group = (subject.get(key, "") for key in ("name", "kind", "apiGroup"))
    if not name:
        yield field.required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from checks.named(name, subdomain_name, f"{path}.name")
        if group:
            yield field.not_supported(f"{path}.apiGroup", group, [""])
        if not namespaced and not subject.get("namespace"):
            yield field.required(f"{path}.namespace")
    elif kind in _SUBJECTS:
        if group != GROUP:
            yield field.not_supported(f"{path}.apiGroup", group, [GROUP])
    else:
        yield field.not_supported(f"{path}.kind", kind, _SUBJECTS)


def _validate_role_binding(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return list(_binding(new, old, ["Role", "ClusterRole"], namespaced=True))


def _validate_cluster_role_binding(new: Object, old: Object | None, context: Context) -> list[FieldError]:  # noqa: ARG001
    return list(_binding(new, old, ["ClusterRole"], namespaced=False))


RULES: Final = {
    "Role": Rules(validate=_validate_role),
    "ClusterRole": Rules(validate=_validate_cluster_role),
    "RoleBinding": Rules(validate=_validate_role_binding),
    "ClusterRoleBinding": Rules(validate=_validate_cluster_role_binding),
}
