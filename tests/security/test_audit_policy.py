"""The audit policy: which rule decides, and what is wrong with a file. The tables are those of upstream's own tests."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from noxu.registry.access import AccessAttributes, User
from noxu.security.audit_policy import (
    COMPLETE,
    EVERYTHING,
    NO_USER,
    RECEIVED,
    STARTED,
    AuditPolicy,
    Level,
    load,
)
from tests.rows import rows

TIM = User("tim@k8s.io", "", ("humans", "developers"))
RBAC = "rbac.authorization.k8s.io"
ASKED = {
    "namespaced": AccessAttributes(TIM, "get", "", "v1", "pods", "", "default", "busybox"),
    "cluster": AccessAttributes(TIM, "get", RBAC, "v1beta1", "clusterroles", "", "", "edit"),
    "path": AccessAttributes(TIM, "get", path="/logs/kubelet.log"),
    "subresource": AccessAttributes(TIM, "get", "", "v1", "pods", "log", "default", "busybox"),
    "unauthorized": AccessAttributes(NO_USER, "get", "", "v1", "pods", "", "default", "busybox"),
    "update of a status": AccessAttributes(TIM, "update", RBAC, "v1beta1", "clusterroles", "status", "", "somerole"),
}
RULES = {
    "default": "{level: Metadata}",
    "create": "{level: Request, verbs: [create]}",
    "tims": "{level: Metadata, users: [tim@k8s.io]}",
    "humans": "{level: Metadata, userGroups: [humans]}",
    "accounts": "{level: Request, userGroups: ['system:serviceaccounts']}",
    "pods": "{level: RequestResponse, verbs: [get], resources: [{resources: [pods]}]}",
    "logs of pods": "{level: Request, verbs: [get], resources: [{resources: [pods/log]}]}",
    "everything in core": "{level: Request, verbs: [get], resources: [{resources: ['*']}]}",
    "every log": "{level: Request, verbs: [get], resources: [{resources: ['*/log']}]}",
    "pods and below": "{level: Request, verbs: [get], resources: [{resources: ['pods/*']}]}",
    "cluster roles": f"{{level: RequestResponse, verbs: [get], resources: [{{group: {RBAC}, resources: [clusterroles]}}], namespaces: ['']}}",
    "every status": "{level: RequestResponse, verbs: [update], resources: [{group: '*', resources: ['*/status']}]}",
    "paths of logs": "{level: RequestResponse, verbs: [get], nonResourceURLs: ['/logs*']}",
    "metrics": "{level: Request, verbs: [get], nonResourceURLs: [/metrics]}",
    "every path": "{level: Request, nonResourceURLs: ['*']}",
    "the role edit": f"{{level: Request, resources: [{{group: {RBAC}, resources: [clusterroles], resourceNames: [edit]}}]}}",
    "group only": f"{{level: Request, resources: [{{group: {RBAC}}}]}}",
    "namespace default": "{level: Request, namespaces: [default]}",
    "not received": "{level: Request, omitStages: [RequestReceived]}",
    "only panic": "{level: Request, omitStages: [RequestReceived, ResponseStarted, ResponseComplete]}",
}
NONE, METADATA, REQUEST, ALL = Level


def policy_of(*rules: str, **fields: Any) -> AuditPolicy:
    lines = [f"{name}: {value}" for name, value in fields.items()]
    text = "\n".join(
        ["apiVersion: audit.k8s.io/v1", "kind: Policy", *lines, "rules:", *(f"- {rule}" for rule in rules)]
    )
    return load(text.encode())


@rows(
    ("asked", "level", "rules"),
    [
        ("namespaced", METADATA, "default"),
        ("namespaced", NONE, "create"),
        ("namespaced", METADATA, "tims"),
        ("namespaced", METADATA, "humans"),
        ("namespaced", NONE, "accounts"),
        ("namespaced", ALL, "pods"),
        ("namespaced", NONE, "cluster roles"),
        ("namespaced", NONE, "paths of logs"),
        ("namespaced", NONE, "metrics"),
        ("namespaced", NONE, "every path"),
        ("namespaced", METADATA, "metrics, accounts, default"),
        ("namespaced", ALL, "metrics, pods, default"),
        ("namespaced", ALL, "logs of pods, pods"),
        ("namespaced", REQUEST, "pods and below"),
        ("namespaced", NONE, "every log"),
        ("namespaced", NONE, "group only"),
        ("namespaced", REQUEST, "namespace default"),
        ("cluster", METADATA, "default"),
        ("cluster", NONE, "create"),
        ("cluster", METADATA, "tims"),
        ("cluster", NONE, "pods"),
        ("cluster", ALL, "cluster roles"),
        ("cluster", REQUEST, "the role edit, cluster roles"),
        ("cluster", REQUEST, "group only"),
        ("cluster", NONE, "namespace default"),
        ("cluster", NONE, "everything in core"),
        ("cluster", METADATA, "metrics, accounts, default"),
        ("cluster", ALL, "metrics, cluster roles, default"),
        ("cluster", NONE, "logs of pods, pods"),
        ("path", METADATA, "default"),
        ("path", NONE, "create"),
        ("path", METADATA, "humans"),
        ("path", NONE, "pods"),
        ("path", NONE, "cluster roles"),
        ("path", NONE, "namespace default"),
        ("path", ALL, "paths of logs"),
        ("path", REQUEST, "every path"),
        ("path", NONE, "metrics"),
        ("path", ALL, "paths of logs, cluster roles, default"),
        ("subresource", REQUEST, "logs of pods, pods"),
        ("subresource", NONE, "pods"),
        ("subresource", REQUEST, "everything in core"),
        ("subresource", REQUEST, "every log"),
        ("subresource", REQUEST, "pods and below"),
        ("unauthorized", NONE, "tims"),
        ("unauthorized", METADATA, "tims, default"),
        ("unauthorized", NONE, "humans"),
        ("unauthorized", METADATA, "humans, default"),
        ("update of a status", ALL, "every status"),
        ("update of a status", NONE, "the role edit"),
    ],
)
def test_the_first_rule_that_matches_decides(asked: str, level: Level, rules: str) -> None:
    chosen = [RULES[name] for name in rules.split(", ")]
    for stages in ("[]", "[RequestReceived, ResponseStarted]"):
        recording = policy_of(*chosen, omitStages=stages).recording(ASKED[asked])
        assert recording.level is level
        assert recording.omit_stages == ({RECEIVED, STARTED} if stages != "[]" else set())


@pytest.mark.parametrize(
    ("of_policy", "rules", "omitted"),
    [
        ("[]", "not received, pods", {RECEIVED}),
        ("[]", "only panic, pods", {RECEIVED, STARTED, COMPLETE}),
        ("[ResponseStarted]", "not received", {RECEIVED, STARTED}),
        ("[ResponseStarted]", "default, not received", {STARTED}),
        ("[RequestReceived]", "not received", {RECEIVED}),
    ],
)
def test_stages_are_omitted_by_the_policy_and_by_the_rule(of_policy: str, rules: str, omitted: set[str]) -> None:
    chosen = [RULES[name] for name in rules.split(", ")]
    assert policy_of(*chosen, omitStages=of_policy).recording(ASKED["namespaced"]).omit_stages == omitted


@pytest.mark.parametrize(
    ("of_policy", "of_rule", "omits"),
    [(False, None, False), (True, None, True), (True, False, False), (False, True, True)],
)
def test_a_rule_overrides_whether_managed_fields_are_omitted(
    of_policy: bool, of_rule: bool | None, omits: bool
) -> None:
    rule = "{level: Metadata}" if of_rule is None else f"{{level: Metadata, omitManagedFields: {str(of_rule).lower()}}}"
    policy = policy_of(rule, omitManagedFields=str(of_policy).lower())
    assert policy.recording(ASKED["namespaced"]).omit_managed_fields is omits


def test_without_a_file_the_metadata_of_everything_is_recorded_in_one_line() -> None:
    for asked in ASKED.values():
        assert EVERYTHING.recording(asked).level is METADATA
        assert EVERYTHING.recording(asked).omit_stages == {RECEIVED}


ONE_STAGE = "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"


@rows(
    ("rule", "message"),
    [
        ("{}", "rules[0].level: Required value"),
        ("{verbs: [get]}", "rules[0].level: Required value"),
        (
            "{level: FooBar}",
            'rules[0].level: Unsupported value: "FooBar": supported values: "None", "Metadata", "Request", "RequestResponse"',
        ),
        (
            "{level: Metadata, namespaces: [default], nonResourceURLs: ['/logs*']}",
            'rules[0].nonResourceURLs: Invalid value: ["/logs*"]: rules cannot apply to both regular resources and non-resource URLs',
        ),
        (
            "{level: Metadata, resources: [{resources: [secrets]}], nonResourceURLs: ['/logs*']}",
            'rules[0].nonResourceURLs: Invalid value: ["/logs*"]: rules cannot apply to both regular resources and non-resource URLs',
        ),
        (
            "{level: Metadata, resources: [{group: rbac.authorization.k8s.io/v1beta1, resources: [roles]}]}",
            'rules[0].resources.group: Invalid value: "rbac.authorization.k8s.io/v1beta1": a lowercase RFC 1123 subdomain',
        ),
        (
            "{level: Metadata, nonResourceURLs: [logs, '/healthz*']}",
            "rules[0].nonResourceURLs[0]: Invalid value: \"logs\": non-resource URL rules must begin with a '/' character",
        ),
        (
            "{level: Metadata, nonResourceURLs: ['', '/healthz*']}",
            "rules[0].nonResourceURLs[0]: Invalid value: \"\": non-resource URL rules must begin with a '/' character",
        ),
        (
            "{level: Metadata, nonResourceURLs: ['/logs/*/*', /metrics]}",
            "non-resource URL wildcards '*' must be the final character of the rule",
        ),
        (
            "{level: Metadata, nonResourceURLs: ['logs*.log']}",
            "[rules[0].nonResourceURLs[0]: Invalid value: \"logs*.log\": non-resource URL rules must begin with a '/' character, "
            "rules[0].nonResourceURLs[0]: Invalid value: \"logs*.log\": non-resource URL wildcards '*' must be the final character of the rule]",
        ),
        (
            "{level: Metadata, resources: [{resourceNames: [leader]}]}",
            'rules[0].resources.resourceNames: Invalid value: ["leader"]: using resourceNames requires at least one resource',
        ),
        ("{level: Metadata, omitStages: [foo]}", f'rules[0].omitStages[0]: Invalid value: "foo": {ONE_STAGE}'),
        (
            "{level: Metadata, users: tim}",
            "failed decoding: json: cannot unmarshal string into Go struct field PolicyRule.rules.users of type []string",
        ),
    ],
)
def test_a_wrong_rule_is_refused(rule: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        policy_of(rule)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"),
        ("rules: [{level: None}]", "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy", "loaded illegal policy with 0 rules"),
        (
            "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: []",
            'failed decoding: no kind "Policy" is registered for version "audit.k8s.io/v1beta1" in scheme',
        ),
        (
            "apiVersion: audit.k8s.io/v1\nkind: Policies",
            'no kind "Policies" is registered for version "audit.k8s.io/v1"',
        ),
        (
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [foo]\nrules: [{level: None}]",
            "omitStages[0]: Invalid",
        ),
        ("- a list", "failed decoding: "),
        ("{", "failed decoding: "),
    ],
)
def test_a_wrong_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        load(text.encode())


def test_unknown_fields_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        policy = policy_of(
            "{level: None, resources: [{group: coordination.k8s.io, resources: [leases], verbs: [get]}]}"
        )
    assert len(policy.rules) == 1
    assert caplog.messages == [
        "Audit policy contains errors, falling back to lenient decoding: "
        'strict decoding error: unknown field "rules[0].resources[0].verbs"'
    ]
