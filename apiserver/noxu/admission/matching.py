"""The requests for a webhook or policy: rules and selectors (plugin/webhook/predicates, policy/matching).

A rule that does not name the request's version may name another one that serves the same objects: with matchPolicy
Equivalent it matches, and the objects are converted to that version.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from noxu.admission.attributes import Attributes, is_namespace
from noxu.api import errors
from noxu.api.errors import Qualified
from noxu.api.selectors import EVERYTHING, LabelSelector, label_selector
from noxu.registry.resource import Resource
from noxu.values import Object

_ANY: Final = "*"


class AdmissionRule(NamedTuple):
    """A RuleWithOperations. `resources` are (resource, subresource); `names` are for policies, empty for all names."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str = _ANY
    names: frozenset[str] = frozenset()


def rule_of(rule: Object) -> AdmissionRule:
    """Compile a decoded and defaulted rule."""
    resources = [name.partition("/") for name in rule.get("resources") or ()]
    return AdmissionRule(
        frozenset(rule.get("operations") or ()),
        frozenset(rule.get("apiGroups") or ()),
        frozenset(rule.get("apiVersions") or ()),
        tuple((resource, subresource) for resource, _, subresource in resources),
        rule.get("scope") or _ANY,
        frozenset(rule.get("resourceNames") or ()),
    )


@dataclass(frozen=True, slots=True)
class Criteria:
    """The requests that a webhook, policy or binding matches.

    `everything`: without rules every resource matches (policies; a webhook without rules matches nothing).
    """

    rules: tuple[AdmissionRule, ...]
    excluded: tuple[AdmissionRule, ...] = ()
    namespaces: LabelSelector = EVERYTHING
    objects: LabelSelector = EVERYTHING
    equivalent: bool = True
    everything: bool = False


def criteria_of_webhook(hook: Object) -> Criteria:
    """The criteria of a decoded and defaulted webhook. Raises ValueError for an invalid selector."""
    return _criteria(hook, hook.get("rules"), None, everything=False)


def criteria_of_policy(match: Object | None) -> Criteria:
    """The criteria in MatchResources of a policy or binding; None matches everything. Raises ValueError."""
    match = match or {"namespaceSelector": {}, "objectSelector": {}}
    return _criteria(match, match.get("resourceRules"), match.get("excludeResourceRules"), everything=True)


def _criteria(
    holder: Object, rules: Iterable[Object] | None, excluded: Iterable[Object] | None, *, everything: bool
) -> Criteria:
    return Criteria(
        tuple(map(rule_of, rules or ())),
        tuple(map(rule_of, excluded or ())),
        label_selector(holder.get("namespaceSelector")),
        label_selector(holder.get("objectSelector")),
        holder.get("matchPolicy", "Equivalent") == "Equivalent",
        everything,
    )


async def matched(criteria: Criteria, request: Attributes) -> Resource | None:
    """The version at which the objects are needed, None if the criteria do not match the request.

    Raises ApiError if that is unknown because the request's namespace does not exist.
    """
    resource = _by_rules(criteria, request)
    if resource is None or not _by_object(criteria, request):
        return None
    return resource if await _by_namespace(criteria, request) else None


def _by_rules(criteria: Criteria, request: Attributes) -> Resource | None:
    if criteria.excluded and _first(criteria.excluded, request, equivalent=criteria.equivalent) is not None:
        return None
    if not criteria.rules and criteria.everything:
        return request.resource
    return _first(criteria.rules, request, equivalent=criteria.equivalent)


def _first(rules: tuple[AdmissionRule, ...], request: Attributes, *, equivalent: bool) -> Resource | None:
    """The request's own version if a rule names it, else the first equivalent one that the first such rule names."""
    if any(meets(rule, request, request.resource) for rule in rules):
        return request.resource
    if not equivalent:
        return None
    others = [
        version for version in request.resource.versions.all if version.served and version is not request.resource
    ]
    return next((version for rule in rules for version in others if meets(rule, request, version)), None)


def meets(rule: AdmissionRule, request: Attributes, resource: Resource) -> bool:
    """Whether a rule matches a request as one for this version of its resource."""
    return (
        _includes(rule.groups, resource.group)
        and _includes(rule.operations, request.operation)
        and _includes(rule.versions, resource.version)
        and any(of in (_ANY, resource.plural) and sub in (_ANY, request.subresource) for of, sub in rule.resources)
        and _in_scope(rule.scope, request)
        and (not rule.names or request.name in rule.names)
    )


def _includes(names: frozenset[str], name: str) -> bool:
    return name in names or _ANY in names


def _in_scope(scope: str, request: Attributes) -> bool:
    if scope == _ANY:
        return True
    namespaced = bool(request.namespace) and not is_namespace(request.resource)
    return namespaced == (scope == "Namespaced")


def _by_object(criteria: Criteria, request: Attributes) -> bool:
    """Whether the selector matches the new or the old object."""
    return criteria.objects.empty or any(map(criteria.objects.matches, request.labels))


async def _by_namespace(criteria: Criteria, request: Attributes) -> bool:
    """Whether the selector matches the request's namespace. Raises ApiError NotFound."""
    if criteria.namespaces.empty or not request.namespace:
        return True
    labels = await request.namespace_labels()
    if labels is None:
        raise errors.not_found(Qualified("", "namespaces"), request.namespace)
    return criteria.namespaces.matches(labels)
