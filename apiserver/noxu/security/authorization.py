"""Authorization: the modes of a server, and the refusal of a request (upstream's --authorization-mode).

The modes are asked in their order; the first one that allows a request ends it. If none does, the request is refused, and the
message has the reasons of all. Members of the group system:masters may do everything in every mode, so that bad rules cannot
lock out everyone. (pkg/kubeapiserver/authorizer; apiserver's pkg/authorization/union and authorizerfactory.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from noxu.api.errors import ApiError, Qualified, aggregate, forbidden
from noxu.go.text import quote
from noxu.registry.access import ALLOWED, AccessAttributes, Authorize, Decision, User, allow_everything
from noxu.security.rbac import NO_OPINION, RolePolicy
from noxu.values import Object

MASTERS: Final = "system:masters"
NOSNIFF: Final = ("X-Content-Type-Options", "nosniff")
"""The header of refusals."""
TOO_MANY: Final = "there are more rules than a review lists"
_DENIED: Final = Decision(allowed=False, reason="Everything is forbidden.")


def _deny_everything(asked: AccessAttributes) -> Decision:  # noqa: ARG001 - an `Authorize`
    return _DENIED


def _no_opinion(asked: AccessAttributes) -> Decision:  # noqa: ARG001 - an `Authorize`
    return NO_OPINION


def authorizer(modes: Sequence[str], policy: RolePolicy) -> Authorize:
    """The function that answers for these modes, which `features.modes` has accepted."""
    if modes[0] == "AlwaysAllow":
        return allow_everything
    authorizers: dict[str, Authorize] = {
        "AlwaysAllow": allow_everything,
        "AlwaysDeny": _deny_everything,
        "Node": _no_opinion,  # there are no kubelets whose nodes would need rights
        "RBAC": policy.authorize,
    }
    return _union([authorizers[mode] for mode in modes])


def _union(members: Sequence[Authorize]) -> Authorize:
    """Ask several until one allows it."""

    def authorize(asked: AccessAttributes) -> Decision:
        if MASTERS in asked.user.groups:
            return ALLOWED
        decisions = []
        for member in members:
            decision = member(asked)
            if decision.allowed:
                return decision
            decisions.append(decision)
        if len(decisions) == 1:
            return decisions[0]
        reasons = "\n".join(decision.reason for decision in decisions if decision.reason)
        errors = [decision.error for decision in decisions if decision.error]
        return Decision(allowed=False, reason=reasons, error=aggregate(errors) if errors else "")

    return authorize


class UserRules(NamedTuple):
    """What a user may do in a namespace, as reviews show it. `error` says what could not be found out."""

    resources: list[Object]
    paths: list[Object]
    error: str = ""
    incomplete: bool = False
    """There are more."""


RulesOf: TypeAlias = Callable[[User, str], UserRules]
"""(user, namespace): what the user may do there."""


def rules_of(modes: Sequence[str], policy: RolePolicy) -> RulesOf:
    """The function that lists rules. Those of all modes are listed; that masters may do everything is no rule."""

    def listed(user: User, namespace: str) -> UserRules:
        resources: list[Object] = []
        paths: list[Object] = []
        error, complete = "", True
        for mode in modes:
            if mode == "AlwaysAllow":
                resources.append({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
                paths.append({"verbs": ["*"], "nonResourceURLs": ["*"]})
            elif mode == "RBAC":
                rules, missing, complete = policy.rules_of(user, namespace)
                manifests = [rule.manifest for rule in rules]
                resources += [_without(rule, "nonResourceURLs") for rule in manifests if "resources" in rule]
                paths += [
                    _without(rule, "apiGroups", "resources", "resourceNames")
                    for rule in manifests
                    if "nonResourceURLs" in rule
                ]
                errors = [key.missing for key in missing] + ([] if complete else [TOO_MANY])
                error = aggregate(errors) if errors else ""
        return UserRules(resources, paths, error, not complete)

    return listed


def _without(rule: Object, *names: str) -> Object:
    return {name: item for name, item in rule.items() if name not in names}


def refusal(asked: AccessAttributes, decision: Decision, target: str = "") -> ApiError:
    """The error of a request that is not allowed (pkg/endpoints/handlers/responsewriters/errors.go).

    `target` is the request's, which the answer quotes if an authorizer has failed.
    """
    if decision.error:
        text = f"Internal Server Error: {quote(target)}: {decision.error}"
        return ApiError(500, text, "InternalError", text=text)
    because = f": {decision.reason}" if decision.reason else ""
    user = f"User {quote(asked.user.name)}"
    if asked.path is not None:
        why = f"{user} cannot {asked.verb} path {quote(asked.path)}"
        return ApiError(403, f"forbidden: {_sanitized(why)}{because}", "Forbidden", {})
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    scope = f"in the namespace {quote(asked.namespace)}" if asked.namespace else "at the cluster scope"
    why = f"{user} cannot {asked.verb} resource {quote(resource)} in API group {quote(asked.group)} {scope}"
    return forbidden(Qualified(asked.group, asked.resource), asked.name, f"{_sanitized(why)}{because}")


def _sanitized(text: str) -> str:
    """A text that browsers do not take for HTML, as upstream replaces what clients have sent."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
