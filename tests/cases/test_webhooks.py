"""A case whose write an admission webhook would see cannot be run; other cases can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from noxu.cases import running
from tests.rows import rows

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


@rows(
    "what, kind, hook, case, verdict",
    [
        ("a new object", "Validating", {"rules": [RULE]}, {"object": MAP}, "unusable"),
        ("a mutating webhook", "Mutating", {"rules": [RULE]}, {"object": MAP}, "unusable"),
        ("another operation", "Validating", {"rules": [RULE]}, {"old": MAP, "patch": {"data": {"b": "c"}}}, "passed"),
        ("everything", "Validating", {"rules": [{**RULE, "operations": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}, {"old": MAP, "delete": True}, "unusable"),
        ("another kind", "Validating", {"rules": [{**RULE, "resources": ["pods"]}]}, {"object": MAP}, "passed"),
        ("another version, exactly", "Validating", {"rules": [{**RULE, "apiVersions": ["v2"]}], "matchPolicy": "Exact"}, {"object": MAP}, "passed"),
    ],
)  # fmt: skip
def test_a_write_that_a_webhook_would_see(
    what: str, kind: str, hook: dict[str, Any], case: dict[str, Any], verdict: str, tmp_path: Path
) -> None:
    webhook = {
        "name": "maps.example.com",
        "clientConfig": {"url": "https://127.0.0.1/"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        **hook,
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "maps"},
        "webhooks": [webhook],
    }
    file = tmp_path / "a_test.yaml"
    cases = [{"name": what, **case, "expect": {"allowed": True}}]
    test = {"apiVersion": "noxu.dev/v1", "kind": "Test", "given": {"objects": [configuration]}, "cases": cases}
    file.write_text(json.dumps(test))
    [[outcome]] = [ran.outcomes for ran in running.run_paths([file])]
    assert outcome.verdict == verdict, outcome
    if verdict == "unusable":
        assert "the webhook maps.example.com in `given` would be asked" in outcome.problems[0].message
