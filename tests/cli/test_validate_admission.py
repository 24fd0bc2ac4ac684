"""`noxu validate` with admission webhooks and policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Make = Callable[..., Any]

WEBHOOK = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: all}
webhooks:
- name: all.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://127.0.0.1:1/x"}
  rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
"""
POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small}
spec:
  matchConstraints: {resourceRules: [{operations: ["*"], apiGroups: [example.com], apiVersions: ["*"], resources: ["*"]}]}
  validations: [{expression: object.spec.size < 5}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: small}
spec: {policyName: small, validationActions: [Deny]}
"""


def test_admission_webhooks_are_not_called(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("crd.json", crd(size={"type": "integer"}))
    write("hook.yaml", WEBHOOK)
    write("widget.json", widget("a", size=9))
    assert run("validate -f crd.json -f hook.yaml -f widget.json").status == 0


def test_admission_policies_are_evaluated(run: Make, write: Make, crd: Make, widget: Make) -> None:
    write("crd.json", crd(size={"type": "integer"}))
    write("policy.yaml", POLICY)
    write("widget.json", widget("a", size=9))
    ran = run("validate -f crd.json -f policy.yaml -f widget.json")
    assert (ran.status, "denied request: failed expression: object.spec.size < 5" in ran.out) == (1, True)
