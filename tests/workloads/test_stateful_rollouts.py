"""Roll-outs of StatefulSets and DaemonSets as a person sees them: kubectl's commands against simulated nodes, on a clock that stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.workloads.conftest import Kubectl

DATA = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}

BROKEN = '{"spec":{"template":{"metadata":{"annotations":{"noxu.dev/simulate":"never-ready"}}}}}'


@pytest.fixture(autouse=True)
def _deleted(server: Noxu) -> Iterator[None]:
    """Sets are deleted after each test: others have fewer pods to move."""
    yield
    for kind in ("statefulsets", "daemonsets"):
        for value in server.list(kind):
            server.delete(value)


def stateful_set(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 3, "serviceName": name, **_template(name), **spec},
    }


def daemon_set(name: str, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": {**_template(name), **spec}}


def _template(name: str) -> Object:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
    return {"selector": {"matchLabels": {"app": name}}, "template": template}


def ready(server: Noxu, value: Object) -> None:
    server.apply(value)
    is_daemon = value["kind"] == "DaemonSet"
    wanted = "self.status.numberAvailable == 3" if is_daemon else "self.status.availableReplicas == self.spec.replicas"
    server.wait(value, wanted)


def images(server: Noxu, app: str) -> list[str]:
    pods = sorted(server.list("pods", labels={"app": app}), key=lambda pod: str(pod["metadata"]["name"]))
    return [pod["spec"]["containers"][0]["image"] for pod in pods]


def recorded(server: Noxu, name: str, reason: str) -> list[str]:
    """The messages of a set's Events, in the order of their names."""
    events = [one for one in server.list("events") if one["involvedObject"]["name"] == name and one["reason"] == reason]
    return [one["message"] for one in sorted(events, key=lambda one: str(one["metadata"]["name"]))]


# -- StatefulSets -----------------------------------------------------------------------------------------------------


def test_a_partition_holds_an_update_and_lets_it_go(server: Noxu, kubectl: Kubectl) -> None:
    web = stateful_set("part", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    ready(server, web)
    kubectl("set image sts/part c=two")
    printed = kubectl("rollout status sts/part")
    assert printed.splitlines()[-1] == "partitioned roll out complete: 1 new pods have been updated..."
    assert images(server, "part") == ["one", "one", "two"]
    server.patch(web, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    kubectl("rollout status sts/part")
    assert images(server, "part") == ["two"] * 3
    assert recorded(server, "part", "SuccessfulDelete") == [
        f"delete Pod part-{n} in StatefulSet part successful" for n in (2, 1, 0)
    ]


def test_an_update_is_undone_and_has_a_history(server: Noxu, kubectl: Kubectl) -> None:
    ready(server, stateful_set("undo"))
    kubectl("set image sts/undo c=two")
    kubectl("rollout status sts/undo")
    kubectl("rollout undo sts/undo")
    kubectl("rollout status sts/undo")
    assert images(server, "undo") == ["one"] * 3
    history = kubectl("rollout history sts/undo").split()
    assert [word for word in history if word.isdecimal()] == ["2", "3"]


def test_with_on_delete_a_person_deletes_the_pods(server: Noxu, kubectl: Kubectl) -> None:
    ready(server, stateful_set("hand", updateStrategy={"type": "OnDelete"}))
    kubectl("set image sts/hand c=two")
    server.idle()
    assert images(server, "hand") == ["one"] * 3
    kubectl("delete pod hand-1")
    server.wait("statefulsets", "hand", "self.status.updatedReplicas == 1 && self.status.readyReplicas == 3")
    assert images(server, "hand") == ["one", "two", "one"]


def test_a_set_scales_down_in_order_and_its_claims_go_by_its_policy(server: Noxu, kubectl: Kubectl) -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    data = stateful_set("data", volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=policy)
    ready(server, data)
    assert len(server.list("persistentvolumeclaims", labels={"app": "data"})) == 3
    kubectl("scale sts/data --replicas=1")
    server.wait("persistentvolumeclaims", count=1, labels={"app": "data"})
    assert recorded(server, "data", "SuccessfulDelete") == [
        f"delete Pod data-{n} in StatefulSet data successful" for n in (2, 1)
    ]
    kubectl("delete sts data")
    server.wait("pods", count=0, labels={"app": "data"})
    assert [one["metadata"]["name"] for one in server.list("persistentvolumeclaims", labels={"app": "data"})] == [
        "data-data-0"
    ]


def test_a_pod_of_a_broken_update_is_deleted_by_hand(server: Noxu, kubectl: Kubectl) -> None:
    ready(server, stateful_set("stuck"))
    kubectl(f"patch sts stuck -p {BROKEN}")
    server.wait("pods", "stuck-2", "'noxu.dev/simulate' in self.metadata.annotations && self.status.phase == 'Running'")
    kubectl("rollout undo sts/stuck")
    server.idle()
    assert "noxu.dev/simulate" in server.get("pods", "stuck-2")["metadata"]["annotations"]
    kubectl("delete pod stuck-2")
    kubectl("rollout status sts/stuck")
    assert "annotations" not in server.get("pods", "stuck-2")["metadata"]
    assert recorded(server, "stuck", "SuccessfulDelete") == ["delete Pod stuck-2 in StatefulSet stuck successful"]


def test_pods_of_a_set_become_available_when_time_passes(server: Noxu) -> None:
    web = stateful_set("slow", minReadySeconds=600, podManagementPolicy="Parallel")
    server.apply(web)
    server.wait(web, "self.status.readyReplicas == 3")
    server.idle()
    assert server.get(web)["status"]["availableReplicas"] == 0
    server.clock.advance("10m")
    server.wait(web, "self.status.availableReplicas == 3")


def test_orphaned_pods_are_adopted_by_a_new_set(server: Noxu, kubectl: Kubectl) -> None:
    web = stateful_set("kept")
    ready(server, web)
    before = [pod["metadata"]["uid"] for pod in server.list("pods", labels={"app": "kept"})]
    kubectl("delete sts kept --cascade=orphan")
    ready(server, web)
    assert [pod["metadata"]["uid"] for pod in server.list("pods", labels={"app": "kept"})] == before


# -- DaemonSets -------------------------------------------------------------------------------------------------------


def test_a_daemon_set_surges(server: Noxu, kubectl: Kubectl) -> None:
    surging = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    ready(server, daemon_set("surge", updateStrategy=surging))
    kubectl("set image ds/surge c=two")
    assert kubectl("rollout status ds/surge").splitlines()[-1] == 'daemon set "surge" successfully rolled out'
    server.wait("pods", count=3, labels={"app": "surge"})
    assert images(server, "surge") == ["two"] * 3
    kubectl("rollout undo ds/surge")
    kubectl("rollout status ds/surge")
    server.wait("pods", count=3, labels={"app": "surge"})
    assert images(server, "surge") == ["one"] * 3


def test_a_drained_node_keeps_its_daemon_and_loses_the_others(server: Noxu, kubectl: Kubectl) -> None:
    agent, moved = daemon_set("agent"), stateful_set("moved")
    for value in (agent, moved):
        value["spec"]["template"]["metadata"]["labels"]["drained"] = "yes"
        ready(server, value)
    kubectl("drain node-1 --ignore-daemonsets --pod-selector=drained=yes")
    server.wait("statefulsets", "moved", "self.status.availableReplicas == 3")
    nodes = {pod["spec"]["nodeName"] for pod in server.list("pods", labels={"app": "moved"})}
    assert "node-1" not in nodes
    assert len(server.list("pods", labels={"app": "agent"}, fields={"spec.nodeName": "node-1"})) == 1
    for pod in server.list("pods", labels={"app": "agent"}):
        server.delete(pod)
    server.wait("daemonsets", "agent", "self.status.numberAvailable == 3")  # a cordon does not keep it off
    kubectl("uncordon node-1")


def test_a_taint_drives_a_daemon_off_its_node_until_it_is_taken_away(server: Noxu, kubectl: Kubectl) -> None:
    ready(server, daemon_set("off"))
    kubectl("taint node node-2 mine=x:NoExecute")
    server.wait("daemonsets", "off", "self.status.desiredNumberScheduled == 2")
    server.wait("pods", count=2, labels={"app": "off"})
    kubectl("taint node node-2 mine-")
    server.wait("daemonsets", "off", "self.status.numberAvailable == 3")
