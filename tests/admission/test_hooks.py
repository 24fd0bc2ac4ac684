"""Webhooks as compiled from a configuration: identity, defaults, and errors that are kept for the requests that match."""

from __future__ import annotations

from typing import Any

from noxu.admission.reviews import Hook, hooks_of
from noxu.values import Object
from tests.rows import rows

RULE: Object = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "*"}
WEBHOOK: Object = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://h.example.com/x"},
    "rules": [RULE],
    "namespaceSelector": {},
    "objectSelector": {},
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "timeoutSeconds": 10,
    "failurePolicy": "Fail",
}


def hooks(*changes: dict[str, Any]) -> list[Hook]:
    return hooks_of({"metadata": {"name": "c"}, "webhooks": [{**WEBHOOK, **change} for change in changes]})


FIELDS: list[tuple[str, dict[str, Any], str, Any]] = [
    ("failurePolicy Fail fails closed", {}, "fails_closed", True),
    ("failurePolicy Ignore fails open", {"failurePolicy": "Ignore"}, "fails_closed", False),
    ("reinvocationPolicy IfNeeded", {"reinvocationPolicy": "IfNeeded"}, "reinvoke", True),
    ("reinvocationPolicy Never", {"reinvocationPolicy": "Never"}, "reinvoke", False),
    ("a validating webhook has no reinvocationPolicy", {}, "reinvoke", False),
    ("its timeout", {"timeoutSeconds": 3}, "timeout", 3),
    ("its side effects", {"sideEffects": "NoneOnDryRun"}, "side_effects", "NoneOnDryRun"),
    ("its review versions in order", {"admissionReviewVersions": ["v1beta1", "v1"]}, "versions", ["v1beta1", "v1"]),
    ("without match conditions", {}, "conditions", ()),
    ("no error", {}, "client_error", ""),
    ("valid selectors", {}, "selector_error", ""),
    ("it is called over the network", {}, "caller", None),
]


@rows(("change", "name", "value"), [row[1:] for row in FIELDS], ids=[row[0] for row in FIELDS])
def test_fields_of_a_webhook(change: dict[str, Any], name: str, value: Any) -> None:
    [hook] = hooks(change)
    assert getattr(hook, name) == value


def test_webhooks_of_the_same_name_have_different_uids() -> None:
    uids = [hook.uid for hook in hooks({}, {"name": "b"}, {}, {"name": "b"})]
    assert uids == ["c/a.example.com/0", "c/b/0", "c/a.example.com/1", "c/b/1"]


def test_a_configuration_may_have_no_webhooks() -> None:
    assert hooks_of({"metadata": {"name": "c"}}) == hooks_of({"metadata": {"name": "c"}, "webhooks": None}) == []


def test_an_invalid_selector_is_kept_and_its_rules_match() -> None:
    [hook] = hooks({"objectSelector": {"matchLabels": {"a": "no label"}}})
    assert "a valid label must be" in hook.selector_error
    assert hook.criteria.objects.empty
    assert len(hook.criteria.rules) == 1


def test_an_unusable_client_configuration_is_kept() -> None:
    [hook] = hooks({"clientConfig": {"url": "https://h.example.com", "caBundle": "Zm9v"}})
    assert hook.endpoint is None
    assert "certificate" in hook.client_error


def test_match_conditions_are_compiled_once() -> None:
    [hook] = hooks({"matchConditions": [{"name": "c", "expression": "true"}]})
    assert hook.compiled
    assert hook.compiled is hook.compiled
