"""Admission plug-ins about built-in kinds, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.client import Answer, Client
from noxu.testing.handle import Noxu
from tests.timing import eventually

NAMESPACE = "/api/v1/namespaces/default"


pytestmark = pytest.mark.noxu(profile="envtest", controllers=["resourcequota-controller"])


def create(client: Client, plural: str, kind: str, name: str = "x", **fields: Any) -> Answer:
    value = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}
    return client.send("POST", f"{NAMESPACE}/{plural}", value)


CONTAINER = {"name": "c", "image": "nginx"}
TOLERATION = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def test_a_minimal_pod(client: Client) -> None:
    answer = create(client, "pods", "Pod", spec={"containers": [CONTAINER]})
    assert answer.code == 201
    assert list(answer.body["spec"].items()) == list(
        {
            "containers": [
                {
                    "name": "c",
                    "image": "nginx",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "Always",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", **TOLERATION},
                {"key": "node.kubernetes.io/unreachable", **TOLERATION},
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        }.items()
    )
    assert answer.body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert client.send("GET", f"{NAMESPACE}/pods/x").body == answer.body


def test_fields_that_plugins_set_have_no_owner(client: Client) -> None:
    owned = str(create(client, "pods", "Pod", spec={"containers": [CONTAINER]}).body["metadata"]["managedFields"])
    assert "f:dnsPolicy" in owned
    assert not any(name in owned for name in ("f:tolerations", "f:priority", "f:preemptionPolicy"))


def test_a_minimal_node(client: Client) -> None:
    answer = client.send("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    assert answer.body["spec"] == {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(("metadata", "name"), [({"generateName": "p-"}, "p-"), ({"name": "p"}, "p")])
def test_errors_name_the_object_or_the_base_of_its_name(client: Client, metadata: dict[str, Any], name: str) -> None:
    value = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"priorityClassName": "x", "containers": [CONTAINER]},
    }
    answer = client.send("POST", f"{NAMESPACE}/pods", value)
    why = f'pods "{name}" is forbidden: no PriorityClass with name x was found'
    details = {"name": name, "kind": "pods"}
    assert (answer.code, answer.body["message"], answer.body["details"]) == (403, why, details)


def test_a_policy_sees_what_plugins_have_set(noxu: Noxu, client: Client) -> None:
    seen: list[Any] = []
    noxu.mutating("pods")(lambda request: seen.append(request["object"]["spec"]["priority"]))
    assert create(client, "pods", "Pod", spec={"containers": [CONTAINER]}).code == 201
    assert seen == [0]


def test_plugins_complete_what_a_webhook_has_added(noxu: Noxu, client: Client) -> None:
    @noxu.mutating("pods")
    def add(request: Any) -> None:
        containers = request["object"]["spec"]["containers"]
        if len(containers) == 1:
            containers.append({"name": "sidecar", "image": "x"})

    limits = [{"type": "Container", "defaultRequest": {"cpu": "1"}}]
    assert create(client, "limitranges", "LimitRange", spec={"limits": limits}).code == 201
    answer = create(client, "pods", "Pod", spec={"containers": [CONTAINER]})
    resources = {each["name"]: each["resources"] for each in answer.body["spec"]["containers"]}
    assert resources == {"c": {"requests": {"cpu": "1"}}, "sidecar": {"requests": {"cpu": "1"}}}


def test_quotas_also_limit_custom_resources(noxu: Noxu, client: Client) -> None:
    names = {"plural": "widgets", "kind": "Widget"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    definition = {"kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}, "spec": spec}
    api = "apiextensions.k8s.io/v1"
    path = f"/apis/{api}/customresourcedefinitions"
    assert client.send("POST", path, {"apiVersion": api, **definition}).code == 201
    hard = {"count/widgets.example.com": "1"}
    assert create(client, "resourcequotas", "ResourceQuota", "q", spec={"hard": hard}).code == 201
    eventually(lambda: "used" in client.send("GET", f"{NAMESPACE}/resourcequotas/q").body["status"])
    widgets = "/apis/example.com/v1/namespaces/default/widgets"
    answers = [
        client.send("POST", widgets, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}})
        for name in ("a", "b")
    ]
    limit = "count/widgets.example.com=1"
    why = (
        f'widgets.example.com "b" is forbidden: exceeded quota: q, requested: {limit}, used: {limit}, limited: {limit}'
    )
    assert [answers[0].code, answers[1].code, answers[1].body["message"]] == [201, 403, why]
    assert client.send("DELETE", f"{widgets}/a").code == 200
    eventually(
        lambda: (
            client.send(
                "POST", widgets, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "b"}}
            ).code
            == 201
        )
    )


def test_a_dry_run_uses_nothing(client: Client) -> None:
    assert create(client, "resourcequotas", "ResourceQuota", "q", spec={"hard": {"pods": "1"}}).code == 201
    eventually(lambda: "used" in client.send("GET", f"{NAMESPACE}/resourcequotas/q").body["status"])
    value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}}
    for _ in range(2):
        assert client.send("POST", f"{NAMESPACE}/pods?dryRun=All", value).code == 201
    assert client.send("GET", f"{NAMESPACE}/resourcequotas/q").body["status"]["used"] == {"pods": "0"}


def test_plugins_can_be_disabled_and_enabled(tmp_path: Path) -> None:
    disabled, enabled = ["Priority"], ["ServiceAccount"]
    made = Noxu(tmp_path, profile="envtest", disable_admission_plugins=disabled, enable_admission_plugins=enabled)
    with made as noxu, Client(noxu.url) as client:
        assert create(client, "serviceaccounts", "ServiceAccount", "robot").code == 201
        spec = create(client, "pods", "Pod", spec={"serviceAccountName": "robot", "containers": [CONTAINER]}).body[
            "spec"
        ]
        assert "priority" not in spec
        assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"


def test_in_the_profile_local_pods_run_as_the_default_account(tmp_path: Path) -> None:
    with Noxu(tmp_path) as noxu, Client(noxu.url) as client:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
        assert client.send("POST", "/api/v1/namespaces", namespace).code == 201
        value = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [CONTAINER]}}
        answer = client.send("POST", "/api/v1/namespaces/new/pods", value)
        assert (answer.code, answer.body["spec"]["serviceAccountName"]) == (201, "default")
