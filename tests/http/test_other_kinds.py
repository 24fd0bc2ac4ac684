"""Built-in kinds over HTTP: two versions of an autoscaler, decisions about certificates, fields that are immutable."""

from __future__ import annotations

from typing import Any

from conformance.client import Client
from tests.http.conftest import ask
from tests.kinds.test_certificates import CA_PEM, CSR_PEM, base64

V1, V2 = (f"/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers" for version in ("v1", "v2"))
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
METRICS = "autoscaling.alpha.kubernetes.io/metrics"
TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
MERGE = "application/merge-patch+json"


def autoscaler(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, **spec}}


def test_an_autoscaler_has_two_versions(client: Client) -> None:
    code, made = ask(client, "POST", V1, autoscaler("a"))
    assert (code, made["apiVersion"], made["spec"]["targetCPUUtilizationPercentage"]) == (201, "autoscaling/v1", 80)
    code, found = ask(client, "GET", f"{V2}/a")
    assert (code, found["apiVersion"], found["metadata"]["uid"]) == (200, "autoscaling/v2", made["metadata"]["uid"])
    target = {"type": "Utilization", "averageUtilization": 80}
    assert found["spec"]["metrics"] == [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def test_what_v1_cannot_say_survives_its_updates(client: Client) -> None:
    assert ask(client, "POST", V2, autoscaler("a", metrics=[MEMORY]))[0] == 201
    code, shown = ask(client, "GET", f"{V1}/a")
    assert (code, METRICS in shown["metadata"]["annotations"]) == (200, True)
    shown["spec"]["maxReplicas"] = 5
    code, put = ask(client, "PUT", f"{V1}/a", shown)
    assert (code, put["metadata"]["generation"]) == (200, 2)
    _, found = ask(client, "GET", f"{V2}/a")
    assert (found["spec"]["maxReplicas"], found["spec"]["metrics"]) == (5, [MEMORY])
    assert "annotations" not in found["metadata"]
    code, patched = ask(client, "PATCH", f"{V1}/a", {"spec": {"targetCPUUtilizationPercentage": 50}}, MERGE)
    assert (code, patched["spec"]["targetCPUUtilizationPercentage"]) == (200, 50)
    _, found = ask(client, "GET", f"{V2}/a")
    assert [metric["resource"]["name"] for metric in found["spec"]["metrics"]] == ["memory", "cpu"]


def test_both_versions_are_listed_and_discovered(client: Client) -> None:
    ask(client, "POST", V2, autoscaler("a"))
    for path, version in ((V1, "autoscaling/v1"), (V2, "autoscaling/v2")):
        _, found = ask(client, "GET", path)
        assert (found["apiVersion"], [item["metadata"]["name"] for item in found["items"]]) == (version, ["a"])
    _, group = ask(client, "GET", "/apis/autoscaling")
    assert [version["version"] for version in group["versions"]] == ["v2", "v1"]


def test_errors_of_v1_are_those_of_v2(client: Client) -> None:
    code, refused = ask(client, "POST", V1, autoscaler("a", targetCPUUtilizationPercentage=0))
    field = "spec.metrics[0].resource.target.averageUtilization"
    assert (code, refused["details"]["causes"][0]["field"]) == (422, field)


def test_a_request_is_approved_and_signed(client: Client) -> None:
    spec = {"request": base64(CSR_PEM), "signerName": "example.com/s", "usages": ["client auth"], "username": "bob"}
    code, made = ask(client, "POST", REQUESTS, {"metadata": {"name": "a"}, "spec": spec})
    assert (code, made["spec"]["username"]) == (201, "system:anonymous")
    approval = {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}
    code, approved = ask(client, "PATCH", f"{REQUESTS}/a/approval", approval, MERGE)
    (condition,) = approved["status"]["conditions"]
    assert (code, bool(condition["lastUpdateTime"])) == (200, True)
    assert ask(client, "GET", f"{REQUESTS}/a/approval")[1] == approved
    denial = {"status": {"conditions": [condition, {"type": "Denied", "status": "True"}]}}
    assert ask(client, "PATCH", f"{REQUESTS}/a/approval", denial, MERGE)[0] == 422
    code, ignored = ask(client, "PATCH", f"{REQUESTS}/a", denial, MERGE)
    assert (code, ignored["status"]["conditions"]) == (200, [condition])
    signed = {"status": {"certificate": base64(CA_PEM)}}
    code, found = ask(client, "PATCH", f"{REQUESTS}/a/status", signed, MERGE)
    assert (code, found["status"]) == (200, {"conditions": [condition], **signed["status"]})
    assert (
        ask(client, "PATCH", f"{REQUESTS}/a/status", {"status": {"certificate": base64(CA_PEM * 2)}}, MERGE)[0] == 422
    )


def test_a_role_is_created_by_an_update_and_a_binding_keeps_its_role(client: Client) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    role = {"metadata": {"name": "r:1"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    assert ask(client, "PUT", f"{roles}/roles/r:1", role)[0] == 201
    binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r:1"}}
    code, made = ask(client, "POST", f"{roles}/rolebindings", binding)
    assert (code, made["roleRef"]["apiGroup"]) == (201, "rbac.authorization.k8s.io")
    code, refused = ask(client, "PATCH", f"{roles}/rolebindings/b", {"roleRef": {"name": "s"}}, MERGE)
    assert (code, refused["message"]) == (
        422,
        'RoleBinding.rbac.authorization.k8s.io "b" is invalid: roleRef: Invalid value: '
        '{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"s"}: field is immutable',
    )


def test_a_budget_is_updated_with_its_version(client: Client) -> None:
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}}
    assert ask(client, "POST", budgets, budget)[0] == 201
    code, refused = ask(client, "PUT", f"{budgets}/b", budget)
    assert (code, refused["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")


def test_an_update_creates_a_lease_but_no_pod(client: Client) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert ask(client, "PUT", f"{leases}/l", {"metadata": {"name": "l"}})[0] == 201
    code, refused = ask(client, "PUT", f"{leases}/l", {"metadata": {"name": "l"}})
    assert (code, refused["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    code, refused = ask(client, "PUT", "/api/v1/namespaces/default/pods/p", pod)
    assert (code, refused["message"]) == (404, 'pods "p" not found')


def test_a_new_claim_is_pending_and_protected(client: Client) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "c"}, "spec": spec}
    code, made = ask(client, "POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim)
    assert (code, made["metadata"]["finalizers"]) == (201, ["kubernetes.io/pvc-protection"])
    assert (made["status"], made["spec"]["volumeMode"]) == ({"phase": "Pending"}, "Filesystem")


def test_a_stateful_set_changes_its_template_and_readiness_but_not_its_service(client: Client) -> None:
    path = "/apis/apps/v1/namespaces/default/statefulsets"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert ask(client, "POST", path, {"metadata": {"name": "s"}, "spec": spec})[0] == 201
    change: dict[str, Any] = {"minReadySeconds": 5, "template": {"spec": {"hostname": "h"}}}
    code, changed = ask(client, "PATCH", f"{path}/s", {"spec": change}, MERGE)
    assert (code, changed["metadata"]["generation"]) == (200, 2)
    code, refused = ask(client, "PATCH", f"{path}/s", {"spec": {"serviceName": "t"}}, MERGE)
    why = 'StatefulSet.apps "s" is invalid: spec.serviceName: Invalid value: "t": field is immutable'
    assert (code, refused["message"]) == (422, why)


def test_the_pull_policy_follows_from_the_image(client: Client) -> None:
    images = {"nginx": "Always", "nginx:1": "IfNotPresent", "nginx@sha256:" + "0" * 64: "IfNotPresent"}
    containers = [{"name": f"c{n}", "image": image} for n, image in enumerate(images)]
    pod = {"metadata": {"name": "p"}, "spec": {"containers": containers}}
    code, made = ask(client, "POST", "/api/v1/namespaces/default/pods", pod)
    assert (code, [each["imagePullPolicy"] for each in made["spec"]["containers"]]) == (201, list(images.values()))
    code, deleted = ask(client, "DELETE", "/api/v1/namespaces/default/pods/p")
    assert (code, deleted["kind"], deleted["metadata"]["uid"]) == (200, "Pod", made["metadata"]["uid"])
