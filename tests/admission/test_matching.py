"""Which requests match a webhook or a policy."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.admission.matching import Criteria, criteria_of_policy, criteria_of_webhook, matched, meets, rule_of
from noxu.api.errors import ApiError
from noxu.registry.draft import WriteEnvironment
from tests.admission.requests import GROUP, request_of, versions, widget
from tests.rows import rows

RULES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    # name, changes of the default rule, the request, does it match?
    ("everything named", {}, {}, True),
    ("wildcards", {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}, {}, True),
    ("another operation", {"operations": ["UPDATE", "DELETE"]}, {}, False),
    ("one of the operations", {"operations": ["UPDATE", "CREATE"]}, {}, True),
    ("another group", {"apiGroups": ["other.example.com"]}, {}, False),
    ("the core group", {"apiGroups": [""]}, {}, False),
    ("another version", {"apiVersions": ["v2"]}, {}, False),
    ("another resource", {"resources": ["gadgets"]}, {}, False),
    ("a resource is not its subresources", {}, {"subresource": "status"}, False),
    ("all resources are not the subresources", {"resources": ["*"]}, {"subresource": "status"}, False),
    ("the subresource", {"resources": ["widgets/status"]}, {"subresource": "status"}, True),
    ("another subresource", {"resources": ["widgets/scale"]}, {"subresource": "status"}, False),
    ("all subresources of it", {"resources": ["widgets/*"]}, {"subresource": "status"}, True),
    ("and the resource itself", {"resources": ["widgets/*"]}, {}, True),
    ("that subresource of all", {"resources": ["*/status"]}, {"subresource": "status"}, True),
    ("but not the resources", {"resources": ["*/status"]}, {}, False),
    ("all of all", {"resources": ["*/*"]}, {"subresource": "scale"}, True),
    ("all of all is also the resources", {"resources": ["*/*"]}, {}, True),
    ("a deletion", {"operations": ["DELETE"]}, {"operation": "DELETE"}, True),
    ("only what is in namespaces", {"scope": "Namespaced"}, {}, True),
    ("only what is not", {"scope": "Cluster"}, {}, False),
    ("any scope", {"scope": "*"}, {}, True),
    ("a name", {"resourceNames": ["a", "b"]}, {}, True),
    ("other names", {"resourceNames": ["b"]}, {}, False),
]  # fmt: skip


@rows(("rule", "about", "met"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_a_rule(rule: dict[str, Any], about: dict[str, Any], met: bool) -> None:
    default = {"operations": ["CREATE"], "apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["widgets"]}
    request = request_of(None, **about)
    assert meets(rule_of(default | rule), request, request.resource) is met


@pytest.mark.parametrize(("scope", "met"), [("Namespaced", False), ("Cluster", True), ("*", True)])
def test_the_scope_of_requests_without_a_namespace(scope: str, met: bool) -> None:
    [of] = versions("v1", namespaced=False)
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": scope}
    request = request_of(None, of=of)
    assert meets(rule_of(rule), request, of) is met


@pytest.mark.parametrize(("scope", "met"), [("Namespaced", False), ("Cluster", True)])
async def test_namespaces_are_in_themselves_but_cluster_scoped(
    registry: WriteEnvironment, scope: str, met: bool
) -> None:
    of = registry.served_resources.current.find("", "v1", "namespaces")
    assert of is not None
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["*"], "scope": scope}
    new = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "n", "labels": {"team": "blue"}}}
    request = request_of(registry, of=of, new=new)
    assert request.namespace == "n"
    assert meets(rule_of(rule), request, of) is met
    assert await request.namespace_labels() == {"team": "blue"}


def hook(**given: Any) -> Criteria:
    default = {"operations": ["*"], "apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["widgets"]}
    return criteria_of_webhook({"rules": [default], "namespaceSelector": {}, "objectSelector": {}} | given)


EQUIVALENT: list[tuple[str, list[str], list[list[str]], bool, str | None]] = [
    # name, the versions (those with - are not served), those that the rules name, Equivalent?, the version shown
    ("the request's own version", ["v2", "v1"], [["v1", "v2"]], True, "v2"),
    ("another version", ["v2", "v1"], [["v1"]], True, "v1"),
    ("another version, and Exact", ["v2", "v1"], [["v1"]], False, None),
    ("the own one, and Exact", ["v2", "v1"], [["v2"]], False, "v2"),
    ("its own in a later rule", ["v2", "v1"], [["v1"], ["v2"]], True, "v2"),
    ("the first rule decides", ["v3", "v1", "v2"], [["v2"], ["v1"]], True, "v2"),
    ("within a rule the order of the versions", ["v3", "v1", "v2"], [["v2", "v1"]], True, "v1"),
    ("one that is not served", ["v2", "-v1"], [["v1"]], True, None),
    ("one that there is not", ["v2", "v1"], [["v9"]], True, None),
    ("no rule at all", ["v2", "v1"], [], True, None),
]


@pytest.mark.parametrize(
    ("names", "rules", "equivalent", "shown"), [row[1:] for row in EQUIVALENT], ids=[row[0] for row in EQUIVALENT]
)
async def test_a_rule_for_an_equivalent_version(
    names: list[str], rules: list[list[str]], equivalent: bool, shown: str | None, registry: WriteEnvironment
) -> None:
    made = versions(*names)
    given = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": rule, "resources": ["*"]} for rule in rules]
    criteria = hook(rules=given, matchPolicy="Equivalent" if equivalent else "Exact")
    found = await matched(criteria, request_of(registry, of=made[0]))
    assert (found.version if found else None) == shown


OBJECTS: list[tuple[str, Any, Any, Any, bool]] = [
    # operation, labels of the new object, those of the old one, matches `on: yes`?
    ("CREATE", {"on": "yes"}, None, True),
    ("CREATE", {"on": "no"}, None, False),
    ("CREATE", None, None, False),
    ("UPDATE", None, {"on": "yes"}, True),
    ("UPDATE", {"on": "yes"}, None, True),
    ("UPDATE", {"on": "no"}, {"on": "no"}, False),
    ("DELETE", None, {"on": "yes"}, True),
    ("DELETE", None, {"on": "no"}, False),
]


@pytest.mark.parametrize(("operation", "new", "old", "match"), OBJECTS)
async def test_an_object_selector_matches_either_object(
    operation: str, new: Any, old: Any, match: bool, registry: WriteEnvironment
) -> None:
    before = None if operation == "CREATE" else widget(labels=old)
    request = request_of(registry, operation, new=widget(labels=new), old=before)
    criteria = hook(objectSelector={"matchLabels": {"on": "yes"}})
    assert (await matched(criteria, request) is not None) is match


@pytest.mark.parametrize("labels", [5, "x", ["on"]])
async def test_malformed_labels_match_nothing(labels: Any, registry: WriteEnvironment) -> None:
    new = {**widget(), "metadata": {"name": "a", "labels": labels}}
    assert await matched(hook(objectSelector={"matchLabels": {"on": "yes"}}), request_of(registry, new=new)) is None


@pytest.mark.parametrize(
    ("selector", "match"),
    [
        ({}, True),
        ({"matchLabels": {"team": "red"}}, True),
        ({"matchLabels": {"team": "blue"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, True),
    ],
)
async def test_a_namespace_selector(selector: dict[str, Any], match: bool, registry: WriteEnvironment) -> None:
    found = await matched(hook(namespaceSelector=selector), request_of(registry))
    assert (found is not None) is match


async def test_a_namespace_selector_ignores_requests_without_a_namespace(registry: WriteEnvironment) -> None:
    [of] = versions("v1", namespaced=False)
    criteria = hook(namespaceSelector={"matchLabels": {"team": "blue"}})
    assert await matched(criteria, request_of(registry, of=of)) is of


async def test_a_missing_namespace_is_an_error_only_if_the_rules_match(registry: WriteEnvironment) -> None:
    request = request_of(registry, namespace="gone")
    selector = {"matchLabels": {"team": "red"}}
    with pytest.raises(ApiError, match='namespaces "gone" not found'):
        await matched(hook(namespaceSelector=selector), request)
    assert await matched(hook(namespaceSelector=selector, rules=[]), request) is None
    assert await matched(hook(namespaceSelector=selector, objectSelector={"matchLabels": {"a": "b"}}), request) is None


def policy(**given: Any) -> Criteria:
    return criteria_of_policy({"namespaceSelector": {}, "objectSelector": {}} | given)


async def test_a_policy_without_rules_matches_everything(registry: WriteEnvironment) -> None:
    assert await matched(policy(), request_of(registry)) is not None
    assert await matched(criteria_of_policy(None), request_of(registry)) is not None


async def test_resources_excluded_by_a_policy(registry: WriteEnvironment) -> None:
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["*"]}
    assert await matched(policy(excludeResourceRules=[rule]), request_of(registry)) is None
    assert await matched(policy(excludeResourceRules=[{**rule, "resourceNames": ["b"]}]), request_of(registry))
    newer = versions("v2", "v1")[0]
    request = request_of(registry, of=newer)
    assert await matched(policy(excludeResourceRules=[rule]), request) is None, "an equivalent version is excluded"
    assert await matched(policy(excludeResourceRules=[rule], matchPolicy="Exact"), request) is newer


def test_a_malformed_selector_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not a valid label selector operator"):
        hook(objectSelector={"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]})
