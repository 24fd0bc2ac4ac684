"""Users grant only what they may do themselves (pkg/registry/rbac/{role,clusterrole,rolebinding,…}/policybased).

The guards of roles and bindings. They check a new object as a whole, after mutating admission: all rules of a role, or all
rules of the role of a binding, have to be among the rules of the user, in the namespace or in the cluster. Exempt are

- members of system:masters, and the server itself;
- users with the verb `escalate` on the role, or `bind` on the role of a binding;
- updates of nothing but owner references and finalizers, which are the garbage collector's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from noxu.api.errors import ApiError, Qualified, aggregate, forbidden, not_found, plain_error
from noxu.go.text import quote, quote_list
from noxu.kinds.policy_rules import (
    MAX_DESCRIBED,
    TooManyPermissions,
    compact,
    describe,
    length,
    missing,
    size,
)
from noxu.registry.access import AccessAttributes
from noxu.registry.draft import Draft
from noxu.registry.turns import LoopBudgetExceeded, in_loop
from noxu.security.authorization import MASTERS
from noxu.security.rbac import RoleKey, RolePolicy
from noxu.values import Object, equal

GROUP: Final = "rbac.authorization.k8s.io"
IN_LOOP: Final = 1_000
"""The most permissions, and the most rules of a user, that are compared in the event loop."""
_EVERYTHING: Final[tuple[Object, ...]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_PLURALS: Final = {"Role": "roles", "ClusterRole": "clusterroles"}
_OF_THE_COLLECTOR: Final = ("ownerReferences", "finalizers", "selfLink", "managedFields")


def guards(policy: RolePolicy) -> dict[str, Callable[[Draft], None]]:
    """By plural: what refuses an object that gives its writer rights. They raise ApiError Forbidden."""
    check_role, check_binding = partial(_check_role, policy), partial(_check_binding, policy)
    return {
        "roles": check_role,
        "clusterroles": check_role,
        "rolebindings": check_binding,
        "clusterrolebindings": check_binding,
    }


def _check_role(policy: RolePolicy, draft: Draft) -> None:
    request, resource = draft.request, draft.resource
    if MASTERS in request.user.groups or _may(draft, "escalate", resource.plural, request.name):
        return
    if _is_the_collectors(draft):
        return
    _check_held(policy, draft, draft.new.get("rules") or ())
    if not (_is_aggregated(draft.new) or _is_aggregated(draft.old or {})):
        return
    held, _ = _rules_of(policy, draft)
    if missing(held, _EVERYTHING):
        raise _forbidden(draft, "must have cluster-admin privileges to use the aggregationRule")


def _check_binding(policy: RolePolicy, draft: Draft) -> None:
    request = draft.request
    if MASTERS in request.user.groups:
        return
    reference: Object = draft.new.get("roleRef") or {}
    kind, name = reference.get("kind", ""), reference.get("name", "")
    if draft.old is not None and _is_the_collectors(draft):
        return
    if kind in _PLURALS and _may(draft, "bind", _PLURALS[kind], name, reference.get("apiGroup", "")):
        return
    key = RoleKey(kind, request.namespace if kind == "Role" else "", name)
    role = policy.role(key)
    if role is None and kind not in _PLURALS:
        raise plain_error(key.missing)
    if role is None:
        raise not_found(Qualified(GROUP, _PLURALS[kind]), name)
    if in_loop() and len(role.rules) > IN_LOOP:
        raise LoopBudgetExceeded
    _check_held(policy, draft, [rule.manifest for rule in role.rules])


def _may(draft: Draft, verb: str, plural: str, name: str, group: str = GROUP) -> bool:
    request = draft.request
    asked = AccessAttributes(request.user, verb, group, "*", plural, "", request.namespace, name)
    return request.authorize(asked).allowed


def _is_aggregated(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_the_collectors(draft: Draft) -> bool:
    """Whether an update changes only what the garbage collector changes."""
    return draft.old is not None and equal(_without_its_fields(draft.new), _without_its_fields(draft.old))


def _without_its_fields(value: Object) -> Object:
    metadata = {name: item for name, item in value["metadata"].items() if name not in _OF_THE_COLLECTOR and item}
    return {name: item for name, item in value.items() if item} | {"metadata": metadata}


def _rules_of(policy: RolePolicy, draft: Draft) -> tuple[list[Object], list[str]]:
    """(The rules of the user, the errors on the way)."""
    rules, lacking = policy.rules_held(draft.request.user, draft.request.namespace)
    if in_loop() and len(rules) > IN_LOOP:
        raise LoopBudgetExceeded
    return [rule.manifest for rule in rules], [key.not_found for key in lacking]


def _check_held(policy: RolePolicy, draft: Draft, rules: Sequence[Object]) -> None:
    """Refuse the object if its writer does not have all permissions of the rules (ConfirmNoEscalation)."""
    if in_loop() and sum(map(size, rules)) > IN_LOOP:
        raise LoopBudgetExceeded
    user = draft.request.user
    held, errors = _rules_of(policy, draft)
    why = f"user {quote(user.name)} (groups={quote_list(user.groups)}) is attempting to grant RBAC permissions not currently held:"
    try:
        lacking = missing(held, rules)
    except TooManyPermissions:
        raise _forbidden(draft, f"{why}\nthe rules have too many permissions to compare them one by one") from None
    if not lacking:
        return
    listed = compact(lacking)
    if length(listed) > MAX_DESCRIBED:
        raise _forbidden(draft, f"{why}\nthe rules have too many permissions to list them")
    lines = "\n".join(sorted({describe(rule) for rule in listed}))
    resolution = f"; resolution errors: [{aggregate(errors)}]" if errors else ""
    raise _forbidden(draft, f"{why}\n{lines}{resolution}")


def _forbidden(draft: Draft, why: str) -> ApiError:
    name = (draft.new.get("metadata") or {}).get("name") or ""
    return forbidden(draft.resource.group_resource, name, why)
