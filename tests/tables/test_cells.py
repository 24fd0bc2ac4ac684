"""The cells of built-in kinds: each computation with what its fields may be, on the columns of the kinds that have it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from noxu.tables.printers import built_in_columns, scale_columns
from noxu.tables.table import Conversion, convert, convert_list
from tests.rows import rows

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
TEN_MINUTES_AGO = "2026-11-21T11:50:00Z"
HOUR_AGO = "2026-11-21T11:00:00Z"
DELETED = {"name": "n", "deletionTimestamp": HOUR_AGO}
TABLE = Conversion("Table", "v1")


def cells(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """The cells by the names of their columns. `kind` is an apiVersion and a kind, `apps/v1/Deployment`."""
    api_version, _, name = kind.rpartition("/")
    columns = built_in_columns(api_version, name)
    found = columns.cells_at({"metadata": {"name": "n"}, **value}, NOW)
    return dict(zip([column["name"] for column in columns.definitions], found, strict=True))


def conditions(**statuses: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status} for kind, status in statuses.items()]}


def template(*images: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": f"c{n}", "image": image} for n, image in enumerate(images)]}}


# -- pods -------------------------------------------------------------------------------------------------------------


def container(name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "ready": False, "restartCount": 0, "state": {}, "lastState": {}, **more}


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    return container(state={"waiting": {"reason": reason}}, **more)


def ended(code: int, reason: str = "", signal: int = 0, **more: Any) -> dict[str, Any]:
    terminated = {"exitCode": code} | ({"reason": reason} if reason else {}) | ({"signal": signal} if signal else {})
    return container(state={"terminated": terminated}, **more)


RUNNING = container(ready=True, state={"running": {}})
STARTING = container(state={"running": {}})
DONE = ended(0, "Completed")


def pod(
    *statuses: dict[str, Any], init: tuple[Any, ...] = (), sidecars: tuple[str, ...] = (), of: int = 1, **more: Any
) -> dict[str, Any]:
    """A pod with `of` containers and the statuses of these and of its init containers."""
    names = [status["name"] for status in init]
    spec = {
        "containers": [{"name": "c"}] * of,
        "initContainers": [
            {"name": name} | ({"restartPolicy": "Always"} if name in sidecars else {}) for name in names
        ],
    }
    status = {"phase": "Running", "containerStatuses": list(statuses), "initContainerStatuses": list(init)}
    return {"spec": spec, "status": status | more}


PODS = [
    ("new", {"spec": {"containers": [{}]}, "status": {"phase": "Pending"}}, ("0/1", "Pending")),
    (
        "gated",
        pod(phase="Pending", conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]),
        ("0/1", "SchedulingGated"),
    ),
    ("running", pod(RUNNING), ("1/1", "Running")),
    ("running, but not ready", pod(STARTING), ("0/1", "Running")),
    ("evicted", pod(phase="Failed", reason="Evicted"), ("0/1", "Evicted")),
    ("waiting for its image", pod(waiting("ImagePullBackOff"), phase="Pending"), ("0/1", "ImagePullBackOff")),
    ("waiting, also if it was called ready", pod(waiting("CrashLoopBackOff", ready=True)), ("0/1", "CrashLoopBackOff")),
    (
        "waiting and running, which counts as waiting",
        pod(container(ready=True, state={"running": {}, "waiting": {"reason": "A"}})),
        ("0/1", "A"),
    ),
    ("waiting without a reason", pod(container(state={"waiting": {}}), phase="Pending"), ("0/1", "Pending")),
    ("done", pod(DONE, phase="Succeeded"), ("0/1", "Completed")),
    ("failed with a reason", pod(ended(1, "Error"), phase="Failed"), ("0/1", "Error")),
    ("failed with a code", pod(ended(3)), ("0/1", "ExitCode:3")),
    ("killed", pod(ended(137, signal=9)), ("0/1", "Signal:9")),
    ("the first container counts", pod(waiting("A"), waiting("B"), of=2), ("0/2", "A")),
    ("one done, one running", pod(DONE, RUNNING, of=2), ("1/2", "NotReady")),
    ("one done, one running, and ready", pod(DONE, RUNNING, of=2, **conditions(Ready="True")), ("1/2", "Running")),
    ("one done, one failed", pod(DONE, ended(1, "Error"), of=2), ("0/2", "Error")),
    ("deleted", pod(RUNNING) | {"metadata": DELETED}, ("1/1", "Terminating")),
    ("deleted when it was done", pod(DONE, phase="Succeeded") | {"metadata": DELETED}, ("0/1", "Completed")),
    ("deleted from a lost node", pod(RUNNING, reason="NodeLost") | {"metadata": DELETED}, ("1/1", "Unknown")),
    ("initializing", pod(init=(STARTING, container("d")), phase="Pending"), ("0/1", "Init:0/2")),
    ("half initialized", pod(init=(DONE, container("d")), phase="Pending"), ("0/1", "Init:1/2")),
    ("initialization waits for its turn", pod(init=(waiting("PodInitializing"),)), ("0/1", "Init:0/1")),
    ("initialization waits for an image", pod(init=(waiting("ErrImagePull"),)), ("0/1", "Init:ErrImagePull")),
    ("initialization failed", pod(init=(ended(1, "Error"),)), ("0/1", "Init:Error")),
    ("initialization failed with a code", pod(init=(ended(2),)), ("0/1", "Init:ExitCode:2")),
    ("initialization was killed", pod(init=(ended(137, signal=9),)), ("0/1", "Init:Signal:9")),
    ("initialized", pod(RUNNING, init=(DONE,)), ("1/1", "Running")),
    (
        "an old init container does not hide containers",
        pod(RUNNING, init=(STARTING,), **conditions(Initialized="True")),
        ("1/1", "Init:0/1"),
    ),
    ("a sidecar starts", pod(init=(container(),), sidecars=("c",), phase="Pending"), ("0/2", "Init:0/1")),
    ("a sidecar is started", pod(RUNNING, init=(container(started=True),), sidecars=("c",)), ("1/2", "Running")),
    (
        "a sidecar is ready",
        pod(RUNNING, init=(container(started=True, ready=True),), sidecars=("c",)),
        ("2/2", "Running"),
    ),
    (
        "a sidecar is ready before the pod is initialized",
        pod(RUNNING, init=(container("s", started=True, ready=True), container("i")), sidecars=("s",)),
        ("1/2", "Init:1/2"),
    ),
]


@rows(("value", "expected"), [row[1:] for row in PODS], ids=[row[0] for row in PODS])
def test_a_pod_that_is(value: dict[str, Any], expected: tuple[str, str]) -> None:
    found = cells("v1/Pod", value)
    assert (found["Ready"], found["Status"]) == expected


def restarted(count: int, at: str = "", name: str = "c", **more: Any) -> dict[str, Any]:
    last = {"lastState": {"terminated": {"exitCode": 1, "finishedAt": at}}} if at else {}
    return container(name, restartCount=count, **last, **more)


RESTARTS = [
    ("never", pod(RUNNING), "0"),
    ("at an unknown time", pod(restarted(2)), "2"),
    ("ten minutes ago", pod(restarted(2, TEN_MINUTES_AGO)), "2 (10m ago)"),
    ("the last of several", pod(restarted(1, HOUR_AGO), restarted(3, TEN_MINUTES_AGO)), "4 (10m ago)"),
    ("not, only ended", pod(restarted(0, TEN_MINUTES_AGO)), "0"),
    ("in another zone", pod(restarted(1, "2026-11-21T09:50:00-02:00"), restarted(1, HOUR_AGO)), "2 (10m ago)"),
    ("during initialization", pod(restarted(1), init=(restarted(5, HOUR_AGO),)), "5 (60m ago)"),
    ("before and after the current init container", pod(init=(restarted(1), restarted(2, name="d"))), "1"),
    ("init containers of a running pod", pod(restarted(1), init=(restarted(5) | {"state": DONE["state"]},)), "1"),
    ("sidecars of a running pod", pod(restarted(1), init=(restarted(5, started=True),), sidecars=("c",)), "6"),
]  # fmt: skip


@rows(("value", "expected"), [row[1:] for row in RESTARTS], ids=[row[0] for row in RESTARTS])
def test_a_pod_restarted(value: dict[str, Any], expected: str) -> None:
    assert cells("v1/Pod", value)["Restarts"] == expected


def test_the_wide_columns_of_a_pod() -> None:
    status = {
        "podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}],
        "nominatedNodeName": "b",
        **conditions(x="True", y="False"),
    }
    spec = {"nodeName": "a", "readinessGates": [{"conditionType": "x"}, {"conditionType": "y"}, {"conditionType": "z"}]}
    wide = ("IP", "Node", "Nominated Node", "Readiness Gates")
    assert [cells("v1/Pod", {"spec": spec, "status": status})[name] for name in wide] == ["10.0.0.1", "a", "b", "1/3"]
    assert [cells("v1/Pod", {})[name] for name in wide] == ["<none>"] * 4


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("Running", None),
        ("Succeeded", ("Succeeded", "The pod has completed successfully.")),
        ("Failed", ("Failed", "The pod failed.")),
    ],
)
def test_the_row_of_a_pod_that_ended_has_a_condition(phase: str, expected: tuple[str, str] | None) -> None:
    value = {"metadata": {"name": "n"}, "status": {"phase": phase}}
    row = convert(value, TABLE, built_in_columns("v1", "Pod"), NOW)["rows"][0]
    if expected is None:
        assert list(row) == ["cells", "object"]
    else:
        assert list(row) == ["cells", "conditions", "object"]
        reason, message = expected
        assert row["conditions"] == [{"type": "Completed", "status": "True", "reason": reason, "message": message}]


# -- other kinds ------------------------------------------------------------------------------------------------------

SELECTOR = {
    "matchLabels": {"b": "2", "a": "1"},
    "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["y", "x"]},
        {"key": "aa", "operator": "DoesNotExist"},
    ],
}
INVALID_SELECTOR = {"matchExpressions": [{"key": "c", "operator": "Near"}]}
ENDPOINT = {"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "ports": [{"port": 80}, {"port": 443}]}


def hpa(spec: dict[str, Any], *statuses: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"metrics": [spec]}, "status": {"currentMetrics": list(statuses)}}


def cpu(target: dict[str, Any], name: str = "resource") -> dict[str, Any]:
    return {"type": name[0].upper() + name[1:], name: {"name": "cpu", "target": target}}


CELLS = [
    ("v1/ComponentStatus", "healthy", conditions(Healthy="True"), {"Status": "Healthy", "Message": "", "Error": ""}),
    (
        "v1/ComponentStatus",
        "not healthy",
        {"conditions": [{"type": "Healthy", "status": "False", "message": "m", "error": "e"}]},
        {"Status": "Unhealthy", "Message": "m", "Error": "e"},
    ),
    ("v1/ComponentStatus", "not checked", {}, {"Status": "Unknown"}),
    ("v1/Endpoints", "none", {}, {"Endpoints": "<none>"}),
    ("v1/Endpoints", "without addresses", {"subsets": [{"ports": [{"port": 1}]}]}, {"Endpoints": ""}),
    ("v1/Endpoints", "without ports", {"subsets": [{"addresses": [{"ip": "1.1.1.1"}]}]}, {"Endpoints": "1.1.1.1"}),
    (
        "v1/Endpoints",
        "more than three",
        {"subsets": [ENDPOINT, ENDPOINT]},
        {"Endpoints": "10.0.0.1:80,[fd00::1]:80,10.0.0.1:443 + 5 more..."},
    ),
    ("v1/Node", "new", {}, {"Status": "Unknown", "Roles": "<none>", "Version": "", "Internal-IP": "<none>"}),
    ("v1/Node", "ready", {"status": conditions(Ready="True")}, {"Status": "Ready"}),
    ("v1/Node", "silent", {"status": conditions(Ready="Unknown")}, {"Status": "NotReady"}),
    (
        "v1/Node",
        "cordoned",
        {"status": conditions(Ready="True"), "spec": {"unschedulable": True}},
        {"Status": "Ready,SchedulingDisabled"},
    ),
    (
        "v1/Node",
        "with roles",
        {
            "metadata": {
                "name": "n",
                "labels": {
                    "node-role.kubernetes.io/worker": "",
                    "node-role.kubernetes.io/": "",
                    "node-role.kubernetes.io/control-plane": "x",
                    "kubernetes.io/role": "worker",
                },
            }
        },
        {"Roles": "control-plane,worker"},
    ),
    (
        "v1/Node",
        "known",
        {
            "status": {
                "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kernelVersion": "6.1", "architecture": "arm64", "osImage": "Linux", "kubeletVersion": "v1"},
            }
        },
        {"Internal-IP": "10.0.0.1", "External-IP": "<none>", "Kernel-Version": "6.1 (arm64)", "OS-Image": "Linux",
         "Version": "v1", "Container-Runtime": "<unknown>"},
    ),
    ("v1/Node", "of unknown architecture", {"status": {"nodeInfo": {"kernelVersion": "6.1"}}}, {"Kernel-Version": "6.1"}),
    ("v1/Node", "without a kernel", {}, {"Kernel-Version": "<unknown>"}),
    (
        "v1/PersistentVolumeClaim",
        "bound",
        {
            "spec": {"volumeName": "v", "storageClassName": "fast", "volumeMode": "Block"},
            "status": {
                "phase": "Bound",
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteMany"],
            },
        },
        {"Status": "Bound", "Volume": "v", "Capacity": "1Gi", "Access Modes": "RWO,RWX", "StorageClass": "fast",
         "VolumeAttributesClass": "<unset>", "VolumeMode": "Block"},
    ),
    (
        "v1/PersistentVolumeClaim",
        "not bound",
        {"status": {"phase": "Pending", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}},
        {"Status": "Pending", "Volume": "", "Capacity": "", "Access Modes": "", "StorageClass": ""},
    ),
    ("v1/PersistentVolumeClaim", "bound, without a size", {"spec": {"volumeName": "v"}}, {"Capacity": "0"}),
    (
        "v1/PersistentVolumeClaim",
        "deleted, with an old annotation",
        {"metadata": DELETED | {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
         "spec": {"storageClassName": "new"}, "status": {"phase": "Bound"}},
        {"Status": "Terminating", "StorageClass": "old"},
    ),
    (
        "v1/PersistentVolumeClaim",
        "with an empty annotation",
        {"metadata": {"name": "n", "annotations": {"volume.beta.kubernetes.io/storage-class": ""}},
         "spec": {"storageClassName": "new"}},
        {"StorageClass": ""},
    ),
    (
        "v1/PersistentVolume",
        "claimed",
        {"spec": {"claimRef": {"namespace": "ns", "name": "c"}, "accessModes": ["ReadWriteOncePod", "ReadOnlyMany"],
                  "capacity": {"storage": "2Gi"}}},
        {"Claim": "ns/c", "Access Modes": "ROX,RWOP", "Capacity": "2Gi"},
    ),
    ("v1/PersistentVolume", "free", {}, {"Claim": "", "Capacity": "0", "Reason": ""}),
    (
        "v1/PodTemplate",
        "with two containers",
        {"template": template("i", "j") | {"metadata": {"labels": {"b": "2", "a": "1"}}}},
        {"Containers": "c0,c1", "Images": "i,j", "Pod Labels": "a=1,b=2"},
    ),
    ("v1/PodTemplate", "empty", {}, {"Containers": "", "Images": "", "Pod Labels": "<none>"}),
    (
        "v1/ReplicationController",
        "counted",
        {"spec": {"replicas": 3, "selector": {"a": "1"}}, "status": {"replicas": 2}},
        {"Desired": 3, "Current": 2, "Ready": 0, "Selector": "a=1"},
    ),
    (
        "v1/ResourceQuota",
        "with requests and limits",
        {"status": {"hard": {"pods": "10", "limits.cpu": "4", "cpu": "2"}, "used": {"pods": "1"}}},
        {"Request": "cpu: 0/2, pods: 1/10", "Limit": "limits.cpu: 0/4"},
    ),
    ("v1/ResourceQuota", "unused", {"spec": {"hard": {"pods": "10"}}}, {"Request": "", "Limit": ""}),
    ("v1/Service", "of another name", {"spec": {"type": "ExternalName", "externalName": "x.y"}}, {"External-IP": "x.y"}),
    ("v1/Service", "waiting", {"spec": {"type": "LoadBalancer"}}, {"External-IP": "<pending>"}),
    (
        "v1/Service",
        "with external addresses",
        {"spec": {"type": "NodePort", "externalIPs": ["2.2.2.2", "1.1.1.1"]}},
        {"External-IP": "2.2.2.2,1.1.1.1"},
    ),
    (
        "v1/Service",
        "with repeated addresses",
        {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "b"}, {"ip": "a"}, {"hostname": "b"}, {}]}}},
        {"External-IP": "a,b"},
    ),
    ("apiregistration.k8s.io/v1/APIService", "local", {}, {"Service": "Local", "Available": "Unknown"}),
    (
        "apiregistration.k8s.io/v1/APIService",
        "not there",
        {
            "spec": {"service": {"namespace": "ns", "name": "s"}},
            "status": {"conditions": [{"type": "Available", "status": "False", "reason": "ServiceNotFound"}]},
        },
        {"Service": "ns/s", "Available": "False (ServiceNotFound)"},
    ),
    (
        "apiregistration.k8s.io/v1/APIService",
        "there",
        {"status": {"conditions": [{"type": "Available", "status": "True", "reason": "Passed"}]}},
        {"Available": "True"},
    ),
    (
        "apps/v1/ControllerRevision",
        "owned",
        {
            "revision": 3,
            "metadata": {
                "name": "n",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Other", "name": "o"},
                    {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "controller": True},
                ],
            },
        },
        {"Controller": "statefulset.apps/s", "Revision": 3},
    ),
    ("apps/v1/ControllerRevision", "not owned", {}, {"Controller": "<none>", "Revision": 0}),
    (
        "apps/v1/DaemonSet",
        "on some nodes",
        {
            "spec": {"selector": SELECTOR, "template": {"spec": {"nodeSelector": {"os": "linux"}}}},
            "status": {"desiredNumberScheduled": 2, "numberReady": 1},
        },
        {"Desired": 2, "Current": 0, "Ready": 1, "Node Selector": "os=linux", "Selector": "a=1,!aa,b=2,c in (x,y)"},
    ),
    ("apps/v1/DaemonSet", "with an invalid selector", {"spec": {"selector": INVALID_SELECTOR}}, {"Selector": "<error>"}),
    (
        "apps/v1/Deployment",
        "new",
        {"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "1"}}, "template": template("i")}},
        {"Ready": "0/2", "Up-to-date": 0, "Available": 0, "Containers": "c0", "Images": "i", "Selector": "a=1"},
    ),
    ("apps/v1/Deployment", "for all pods", {"spec": {"selector": {}}}, {"Ready": "0/0", "Selector": ""}),
    ("apps/v1/Deployment", "with an invalid selector", {"spec": {"selector": INVALID_SELECTOR}}, {"Selector": "<invalid>"}),
    ("apps/v1/ReplicaSet", "for all pods", {"spec": {"selector": {}}}, {"Desired": 0, "Selector": "<none>"}),
    ("apps/v1/StatefulSet", "ready", {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}, {"Ready": "1/1"}),
    (
        "autoscaling/v2/HorizontalPodAutoscaler",
        "without metrics",
        {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3}},
        {"Reference": "Deployment/d", "Targets": "<none>", "MinPods": "<unset>", "MaxPods": 3, "Replicas": 0},
    ),
    ("autoscaling/v2/HorizontalPodAutoscaler", "with a minimum", {"spec": {"minReplicas": 2}}, {"MinPods": "2"}),
    (
        "autoscaling/v2/HorizontalPodAutoscaler",
        "with a target that is not measured",
        hpa(cpu({"averageUtilization": 80})),
        {"Targets": "cpu: <unknown>/80%"},
    ),
    (
        "autoscaling/v2/HorizontalPodAutoscaler",
        "with a utilization",
        hpa(cpu({"averageUtilization": 80}), {"type": "Resource", "resource": {"current": {"averageUtilization": 50}}}),
        {"Targets": "cpu: 50%/80%"},
    ),
    ("autoscaling/v2/HorizontalPodAutoscaler", "without a target", hpa(cpu({})), {"Targets": "cpu: <unknown>/<auto>"}),
    (
        "autoscaling/v2/HorizontalPodAutoscaler",
        "with an average of containers",
        hpa(
            cpu({"averageValue": "1"}, "containerResource"),
            {"type": "ContainerResource", "containerResource": {"current": {"averageValue": "500m"}}},
        ),
        {"Targets": "cpu: 500m/1"},
    ),
    (
        "autoscaling/v2/HorizontalPodAutoscaler",
        "with an average of pods",
        hpa(
            {"type": "Pods", "pods": {"target": {"averageValue": "10"}}},
            {"type": "Pods", "pods": {"current": {"averageValue": "7"}}},
        ),
        {"Targets": "7/10"},
    ),
    (
        "autoscaling/v2/HorizontalPodAutoscaler",
        "with an average of pods that is not measured",
        hpa({"type": "Pods", "pods": {"target": {"averageValue": "10"}}}),
        {"Targets": "<unknown>/10"},
    ),
    (
        "autoscaling/v2/HorizontalPodAutoscaler",
        "with the value of an object",
        hpa({"type": "Object", "object": {"target": {"value": "10"}}}, {"type": "Object", "object": {"current": {"value": "3"}}}),
        {"Targets": "3/10"},
    ),
    (
        "autoscaling/v2/HorizontalPodAutoscaler",
        "with an external average",
        hpa(
            {"type": "External", "external": {"target": {"averageValue": "10"}}},
            {"type": "External", "external": {"current": {"averageValue": "3"}}},
        ),
        {"Targets": "3/10 (avg)"},
    ),
    ("autoscaling/v2/HorizontalPodAutoscaler", "of another type", hpa({"type": "Moon"}), {"Targets": "<unknown type>"}),
    (
        "autoscaling/v2/HorizontalPodAutoscaler",
        "with three metrics",
        {"spec": {"metrics": [cpu({"averageUtilization": n}) for n in (1, 2, 3)]}},
        {"Targets": "cpu: <unknown>/1%, cpu: <unknown>/2% + 1 more..."},
    ),
    (
        "batch/v1/CronJob",
        "running",
        {
            "spec": {"schedule": "* * * * *", "suspend": False, "jobTemplate": {"spec": {"template": template("i")}}},
            "status": {"active": [{}, {}], "lastScheduleTime": TEN_MINUTES_AGO},
        },
        {"Schedule": "* * * * *", "Timezone": "<none>", "Suspend": "False", "Active": 2, "Last Schedule": "10m",
         "Images": "i", "Selector": "<none>"},
    ),
    (
        "batch/v1/CronJob",
        "suspended",
        {"spec": {"suspend": True, "timeZone": "Etc/UTC"}},
        {"Suspend": "True", "Timezone": "Etc/UTC", "Last Schedule": "<none>", "Active": 0},
    ),
    ("batch/v1/CronJob", "without the field", {}, {"Suspend": "<unset>"}),
    ("batch/v1/Job", "new", {"spec": {"completions": 3}}, {"Status": "Running", "Completions": "0/3", "Duration": ""}),
    ("batch/v1/Job", "parallel", {"spec": {"parallelism": 4}, "status": {"succeeded": 1}}, {"Completions": "1/1 of 4"}),
    ("batch/v1/Job", "with one pod", {"spec": {"parallelism": 1}}, {"Completions": "0/1"}),
    ("batch/v1/Job", "started", {"status": {"startTime": TEN_MINUTES_AGO}}, {"Duration": "10m"}),
    (
        "batch/v1/Job",
        "complete",
        {
            "metadata": DELETED,
            "status": {"startTime": HOUR_AGO, "completionTime": TEN_MINUTES_AGO, **conditions(SuccessCriteriaMet="True", Complete="True")},
        },
        {"Status": "Complete", "Duration": "50m"},
    ),
    ("batch/v1/Job", "failed", {"status": conditions(FailureTarget="True", Failed="True")}, {"Status": "Failed"}),
    ("batch/v1/Job", "failing", {"status": conditions(FailureTarget="True")}, {"Status": "FailureTarget"}),
    ("batch/v1/Job", "succeeding", {"status": conditions(SuccessCriteriaMet="True")}, {"Status": "SuccessCriteriaMet"}),
    ("batch/v1/Job", "suspended", {"status": conditions(Suspended="True")}, {"Status": "Suspended"}),
    ("batch/v1/Job", "resumed", {"status": conditions(Suspended="False")}, {"Status": "Running"}),
    ("batch/v1/Job", "deleted", {"metadata": DELETED, "status": conditions(Suspended="True")}, {"Status": "Terminating"}),
    (
        "certificates.k8s.io/v1/CertificateSigningRequest",
        "pending",
        {"spec": {"username": "u", "expirationSeconds": 3600}},
        {"SignerName": "<none>", "Requestor": "u", "RequestedDuration": "60m", "Condition": "Pending"},
    ),
    (
        "certificates.k8s.io/v1/CertificateSigningRequest",
        "issued",
        {"spec": {"signerName": "x.io/y"}, "status": conditions(Approved="True") | {"certificate": "Yg=="}},
        {"SignerName": "x.io/y", "RequestedDuration": "<none>", "Condition": "Approved,Issued"},
    ),
    (
        "certificates.k8s.io/v1/CertificateSigningRequest",
        "denied and failed",
        {"status": conditions(Failed="True", Denied="True", Approved="True")},
        {"Condition": "Denied,Failed"},
    ),
    ("certificates.k8s.io/v1/ClusterTrustBundle", "without a signer", {}, {"SignerName": "<none>"}),
    ("certificates.k8s.io/v1/PodCertificateRequest", "new", {"status": conditions(Other="True")}, {"State": "Pending"}),
    (
        "certificates.k8s.io/v1/PodCertificateRequest",
        "issued at last",
        {"status": conditions(Failed="False", Issued="False", Other="True"), "spec": {"unverifiedUserAnnotations": {"a/b": "c"}}},
        {"State": "Issued", "UnverifiedUserAnnotations": "a/b=c"},
    ),
    (
        "networking.k8s.io/v1/IngressClass",
        "default, with parameters",
        {
            "metadata": {"name": "n", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
            "spec": {"parameters": {"apiGroup": "x.io", "kind": "Config", "name": "c"}},
        },
        {"Name": "n (default)", "Parameters": "Config.x.io/c"},
    ),
    (
        "networking.k8s.io/v1/IngressClass",
        "with parameters of core",
        {
            "metadata": {"name": "n", "annotations": {"ingressclass.kubernetes.io/is-default-class": "false"}},
            "spec": {"parameters": {"kind": "ConfigMap", "name": "c"}},
        },
        {"Name": "n", "Parameters": "ConfigMap/c"},
    ),
    ("networking.k8s.io/v1/IngressClass", "without parameters", {}, {"Parameters": "<none>"}),
    ("networking.k8s.io/v1/Ingress", "empty", {}, {"Class": "<none>", "Hosts": "*", "Address": "", "Ports": "80"}),
    (
        "networking.k8s.io/v1/Ingress",
        "with TLS and three hosts",
        {
            "spec": {"ingressClassName": "c", "tls": [{}], "rules": [{"host": "a"}, {}, {"host": "b"}, {"host": "c"}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "h"}]}},
        },
        {"Class": "c", "Hosts": "a,b,c", "Address": "2.2.2.2,h", "Ports": "80, 443"},
    ),
    (
        "networking.k8s.io/v1/Ingress",
        "with four rules, the last of which has no host",
        {"spec": {"rules": [{"host": "a"}, {"host": "b"}, {"host": "c"}, {}]}},
        {"Hosts": "a,b,c + 1 more..."},
    ),
    (
        "networking.k8s.io/v1/NetworkPolicy",
        "for some pods",
        {"spec": {"podSelector": {"matchLabels": {"a": "1"}}}},
        {"Pod-Selector": "a=1"},
    ),
    ("networking.k8s.io/v1/NetworkPolicy", "for all pods", {"spec": {"podSelector": {}}}, {"Pod-Selector": "<none>"}),
    ("networking.k8s.io/v1/ServiceCIDR", "dual", {"spec": {"cidrs": ["10.0.0.0/8", "fd::/64"]}}, {"CIDRs": "10.0.0.0/8,fd::/64"}),
    (
        "policy/v1/PodDisruptionBudget",
        "with a number",
        {"spec": {"minAvailable": 1}, "status": {"disruptionsAllowed": 2}},
        {"Min Available": "1", "Max Unavailable": "N/A", "Allowed Disruptions": 2},
    ),
    ("policy/v1/PodDisruptionBudget", "with a part", {"spec": {"maxUnavailable": "50%"}}, {"Max Unavailable": "50%"}),
    ("policy/v1/PodDisruptionBudget", "with zero", {"spec": {"maxUnavailable": 0}}, {"Max Unavailable": "0"}),
    (
        "storage.k8s.io/v1/CSIDriver",
        "with everything",
        {"spec": {"attachRequired": False, "podInfoOnMount": True, "tokenRequests": [{"audience": ""}, {"audience": "b"}],
                  "volumeLifecycleModes": ["Persistent", "Ephemeral"]}},
        {"AttachRequired": False, "PodInfoOnMount": True, "TokenRequests": ",b", "Modes": "Persistent,Ephemeral"},
    ),
    (
        "storage.k8s.io/v1/CSIDriver",
        "with nothing",
        {},
        {"AttachRequired": True, "PodInfoOnMount": False, "TokenRequests": "<unset>", "Modes": "<none>"},
    ),
    ("storage.k8s.io/v1/CSINode", "with a driver", {"spec": {"drivers": [{}]}}, {"Drivers": 1}),
    (
        "storage.k8s.io/v1/StorageClass",
        "with defaults",
        {"provisioner": "p"},
        {"Provisioner": "p", "ReclaimPolicy": "Delete", "VolumeBindingMode": "Immediate", "AllowVolumeExpansion": False},
    ),
    (
        "storage.k8s.io/v1/VolumeAttachment",
        "attached",
        {"spec": {"attacher": "a", "nodeName": "m", "source": {"persistentVolumeName": "v"}}, "status": {"attached": True}},
        {"Attacher": "a", "PV": "v", "Node": "m", "Attached": True},
    ),
    ("scheduling.k8s.io/v1/PriorityClass", "plain", {"value": 5}, {"Value": 5, "Global-Default": False, "PreemptionPolicy": ""}),
    ("node.k8s.io/v1/RuntimeClass", "plain", {"handler": "runc"}, {"Handler": "runc"}),
    ("discovery.k8s.io/v1/EndpointSlice", "empty", {"addressType": "IPv4"}, {"Ports": "<unset>", "Endpoints": "<unset>"}),
    (
        "discovery.k8s.io/v1/EndpointSlice",
        "full",
        {
            "ports": [{"port": 80, "name": "http"}, {"name": "dns"}, {}, {"port": 443}],
            "endpoints": [{"addresses": ["a", "b"]}, {"addresses": ["c", "d"]}],
        },
        {"Ports": "80,dns,* + 1 more...", "Endpoints": "a,b,c + 1 more..."},
    ),
    (
        "resource.k8s.io/v1/DeviceTaintRule",
        "with a time",
        {"spec": {"taint": {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": TEN_MINUTES_AGO}}},
        {"Key": "k", "Value": "v", "Effect": "NoExecute", "TimeAdded": "10m"},
    ),
    ("resource.k8s.io/v1/DeviceTaintRule", "without a time", {}, {"TimeAdded": ""}),
    ("resource.k8s.io/v1/ResourceClaim", "pending", {}, {"State": "pending"}),
    ("resource.k8s.io/v1/ResourceClaim", "allocated", {"status": {"allocation": {}}}, {"State": "allocated"}),
    (
        "resource.k8s.io/v1/ResourceClaim",
        "reserved and deleted",
        {"metadata": DELETED, "status": {"allocation": {}, "reservedFor": [{}]}},
        {"State": "deleted,allocated,reserved"},
    ),
    ("resource.k8s.io/v1/ResourceClaim", "deleted", {"metadata": DELETED}, {"State": "deleted"}),
    (
        "flowcontrol.apiserver.k8s.io/v1/FlowSchema",
        "dangling",
        {"spec": {"matchingPrecedence": 9}, "status": conditions(Dangling="True")},
        {"MatchingPrecedence": 9, "DistinguisherMethod": "<none>", "MissingPL": "True"},
    ),
    ("flowcontrol.apiserver.k8s.io/v1/FlowSchema", "new", {}, {"MatchingPrecedence": 0, "MissingPL": "?"}),
    (
        "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration",
        "limited",
        {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 0, "limitResponse": {"queuing": {"queues": 64}}}}},
        {"Type": "Limited", "NominalConcurrencyShares": 0, "Queues": 64, "HandSize": "<none>"},
    ),
    (
        "storagemigration.k8s.io/v1/StorageVersionMigration",
        "running",
        {"spec": {"resource": {"resource": "things", "group": "x.io"}}, "status": conditions(Running="True", Failed="False")},
        {"Resource": "things.x.io", "Status": "Running"},
    ),
    (
        "storagemigration.k8s.io/v1/StorageVersionMigration",
        "of a core resource",
        {"spec": {"resource": {"resource": "pods"}}},
        {"Resource": "pods", "Status": "Unknown"},
    ),
]  # fmt: skip


@rows(
    ("kind", "value", "expected"),
    [(kind, value, expected) for kind, _, value, expected in CELLS],
    ids=[f"{kind.rpartition('/')[2]} {what}" for kind, what, *_ in CELLS],
)
def test_the_cells_of_a(kind: str, value: dict[str, Any], expected: dict[str, Any]) -> None:
    found = cells(kind, value)
    assert {name: found[name] for name in expected} == expected
    assert {name: type(found[name]) for name in expected} == {name: type(each) for name, each in expected.items()}


def test_an_ip_address_has_a_cell_without_a_column() -> None:
    parent = {"resource": "Services", "namespace": "ns", "name": "s"}
    value = {"metadata": {"name": "10.0.0.1", "creationTimestamp": HOUR_AGO}, "spec": {"parentRef": parent}}
    columns = built_in_columns("networking.k8s.io/v1", "IPAddress")
    assert [column["name"] for column in columns.definitions] == ["Name", "ParentRef"]
    assert columns.cells_at(value, NOW) == ["10.0.0.1", "services/ns/s", "60m"]
    value["spec"]["parentRef"] = {"group": "x.io", "resource": "gateways", "name": "g"}
    assert columns.cells_at(value, NOW)[1] == "gateways.x.io/g"


def storage_class(
    name: str, created: str, mark: str = "", annotation: str = "storageclass.kubernetes.io"
) -> dict[str, Any]:
    annotations = {f"{annotation}/is-default-class": mark} if mark else {}
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": annotations}, "provisioner": "p"}


DEFAULT_CLASSES = [
    ("no class is marked", [storage_class("a", HOUR_AGO), storage_class("b", HOUR_AGO, "false")], ["a", "b"]),
    ("one class is marked", [storage_class("a", HOUR_AGO), storage_class("b", HOUR_AGO, "true")], ["a", "b (default)"]),
    (
        "the old annotation counts, too",
        [storage_class("a", HOUR_AGO, "true", "storageclass.beta.kubernetes.io")],
        ["a (default)"],
    ),
    (
        "the newest counts",
        [storage_class("a", HOUR_AGO, "true"), storage_class("b", TEN_MINUTES_AGO, "true")],
        ["a", "b (default)"],
    ),
    (
        "of equally old ones the first by name counts",
        [storage_class("b", HOUR_AGO, "true"), storage_class("a", HOUR_AGO, "true")],
        ["b", "a (default)"],
    ),
]


@pytest.mark.parametrize(
    ("items", "names"), [row[1:] for row in DEFAULT_CLASSES], ids=[row[0] for row in DEFAULT_CLASSES]
)
def test_the_default_storage_class_in_a_list(items: list[dict[str, Any]], names: list[str]) -> None:
    columns = built_in_columns("storage.k8s.io/v1", "StorageClass").of_list(items)
    rows = convert_list(items, {}, TABLE, columns, NOW)["rows"]
    assert [row["cells"][0] for row in rows] == names
    assert [row["cells"][1] for row in rows] == ["p"] * len(items)


def test_a_single_storage_class_is_not_marked() -> None:
    columns = built_in_columns("storage.k8s.io/v1", "StorageClass")
    table = convert(storage_class("a", HOUR_AGO, "true"), TABLE, columns, NOW)
    assert table["rows"][0]["cells"][0] == "a"


def test_the_scale_of_a_built_in_kind() -> None:
    columns = scale_columns()
    shown = [(column["name"], column["type"]) for column in columns.definitions]
    assert shown == [("Name", "string"), ("Desired", "integer"), ("Available", "integer"), ("Age", "string")]
    scale = {"metadata": {"name": "d", "creationTimestamp": HOUR_AGO}, "spec": {}, "status": {"replicas": 2}}
    assert columns.cells_at(scale, NOW) == ["d", 0, 2, "60m"]
