"""Defaults of built-in kinds: what the data says about each type holds wherever a value of the type is."""

from __future__ import annotations

import pytest

from noxu.go.structs import decode
from noxu.kinds import defaults
from noxu.kinds.scheme import by_group_kind
from noxu.values import Json, Object, copy
from tests.rows import rows


def defaulted(api_version: str, kind: str, **body: Json) -> Object:
    table = by_group_kind()[api_version, kind]
    decoded = decode(table.struct, {"metadata": {"name": "x"}, **body})
    assert (decoded.error, decoded.unknown) == ("", [])
    table.default(decoded.value)
    once = copy(decoded.value)
    table.default(decoded.value)
    assert decoded.value == once, "Defaulting is idempotent."
    return once


def pod(**spec: Json) -> Object:
    found: Object = defaulted("v1", "Pod", spec={"containers": [{"name": "c", "image": "nginx:1"}], **spec})["spec"]
    return found


def test_a_minimal_pod() -> None:
    assert pod() == {
        "containers": [
            {
                "name": "c",
                "image": "nginx:1",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }


IMAGES = [
    ("nginx", "Always"),
    ("nginx:latest", "Always"),
    ("nginx:1", "IfNotPresent"),
    ("nginx@sha256:00", "IfNotPresent"),
    ("localhost:5000/nginx", "Always"),
    ("localhost:5000/nginx:1", "IfNotPresent"),
    ("nginx:latest@sha256:00", "Always"),
    ("", "Always"),
]


@pytest.mark.parametrize(("image", "policy"), IMAGES)
def test_the_pull_policy_depends_on_the_tag(image: str, policy: str) -> None:
    assert defaults.pull_policy(image) == policy


PODS = [
    ("an account under its old name has both", {"serviceAccount": "a"},
     {"serviceAccount": "a", "serviceAccountName": "a"}),
    ("the new name of an account counts", {"serviceAccount": "a", "serviceAccountName": "b"},
     {"serviceAccount": "b", "serviceAccountName": "b"}),
    ("a negative grace period is a second", {"terminationGracePeriodSeconds": -5}, {"terminationGracePeriodSeconds": 1}),
    ("a grace period of zero remains", {"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 0}),
    ("a volume without a source is an empty directory", {"volumes": [{"name": "v"}]},
     {"volumes": [{"name": "v", "emptyDir": {}}]}),
    ("modes of files", {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
     {"volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}]}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), [row[1:] for row in PODS], ids=[row[0] for row in PODS])
def test_pods(given: Object, expected: Object) -> None:
    found = pod(**given)
    assert {name: found[name] for name in expected} == expected


CONTAINERS = [
    ("requests default to limits", {"resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}}}, False,
     {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1", "memory": "1Gi"}}}),
    ("resources are rounded up to thousandths", {"resources": {"requests": {"cpu": "0.0001"}}}, False,
     {"resources": {"requests": {"cpu": "1m"}}}),
    ("a port has a protocol", {"ports": [{"containerPort": 80}]}, False,
     {"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
    ("in the host's network it is the host's port, too", {"ports": [{"containerPort": 80}]}, True,
     {"ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]}),
    ("probes", {"livenessProbe": {"httpGet": {"port": 80}}}, False,
     {"livenessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10,
                        "successThreshold": 1, "failureThreshold": 3}}),
    ("references to fields", {"env": [{"name": "E", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}, False,
     {"env": [{"name": "E", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "host_network", "expected"), [row[1:] for row in CONTAINERS], ids=[row[0] for row in CONTAINERS]
)
def test_containers(given: Object, host_network: bool, expected: Object) -> None:
    container = {"name": "c", "image": "nginx:1", **given}
    network = {"hostNetwork": True} if host_network else {}
    (found,) = pod(containers=[container], **network)["containers"]
    assert {name: found[name] for name in expected} == expected


TEMPLATE: Object = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
WORKLOADS = [
    ("apps/v1", "Deployment", {"template": TEMPLATE},
     {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
      "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}}),
    ("apps/v1", "Deployment", {"template": TEMPLATE, "strategy": {"type": "Recreate"}, "replicas": 0},
     {"replicas": 0, "strategy": {"type": "Recreate"}}),
    ("apps/v1", "StatefulSet", {"template": TEMPLATE},
     {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
      "podManagementPolicy": "OrderedReady"}),
    ("apps/v1", "DaemonSet", {"template": TEMPLATE},
     {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}}),
    ("batch/v1", "Job", {"template": TEMPLATE},
     {"completions": 1, "parallelism": 1, "backoffLimit": 6, "podReplacementPolicy": "TerminatingOrFailed"}),
    ("batch/v1", "Job", {"template": TEMPLATE, "parallelism": 2, "backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": []}},
     {"parallelism": 2, "backoffLimit": 2147483647, "podReplacementPolicy": "Failed"}),
    ("batch/v1", "CronJob", {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}},
     {"concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}),
    ("networking.k8s.io/v1", "NetworkPolicy", {"egress": [{}]}, {"policyTypes": ["Ingress", "Egress"]}),
    ("v1", "ReplicationController", {"template": TEMPLATE}, {"replicas": 1, "selector": {"a": "b"}}),
    ("v1", "LimitRange", {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1"}}]},
     {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1"}, "default": {"cpu": "2"},
                  "defaultRequest": {"cpu": "2", "memory": "1"}}]}),
]  # fmt: skip


@rows(("api_version", "kind", "spec", "expected"), WORKLOADS)
def test_specs(api_version: str, kind: str, spec: Object, expected: Object) -> None:
    found = defaulted(api_version, kind, spec=spec)["spec"]
    assert {name: found.get(name) for name in expected} == expected


def test_defaults_of_templates_are_those_of_pods() -> None:
    found = defaulted("batch/v1", "CronJob", spec={"jobTemplate": {"spec": {"template": TEMPLATE}}})["spec"]
    job = found["jobTemplate"]["spec"]
    assert job["template"]["spec"]["dnsPolicy"] == "ClusterFirst"
    assert "backoffLimit" not in job, "The defaults of jobs do not hold in templates."


def test_addresses_of_a_pod_agree() -> None:
    assert defaulted("v1", "Pod", status={"podIP": "1.2.3.4"})["status"]["podIPs"] == [{"ip": "1.2.3.4"}]
    assert defaulted("v1", "Pod", status={"podIPs": [{"ip": "1.2.3.4"}]})["status"]["podIP"] == "1.2.3.4"


def test_each_rule_of_the_data_is_understood() -> None:
    for kind in by_group_kind().values():
        kind.default(decode(kind.struct, {"metadata": {"name": "x"}}).value)


def test_empty_structs_have_defaults() -> None:
    spec = pod(volumes=[{"name": "v", "downwardAPI": {}}], containers=[{"name": "c", "startupProbe": {}}])
    assert spec["volumes"] == [{"name": "v", "downwardAPI": {"defaultMode": 420}}]
    assert spec["containers"][0]["startupProbe"] == {
        "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3
    }  # fmt: skip
