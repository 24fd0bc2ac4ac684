"""Roll-outs of Deployments as a person sees them: kubectl's commands against simulated nodes, on a clock that stands."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.workloads.conftest import Kubectl

pytestmark = pytest.mark.slow

BROKEN = {"spec": {"template": {"metadata": {"annotations": {"noxu.dev/simulate": "never-ready"}}}}}
REVISION = "deployment.kubernetes.io/revision"


def deployment(name: str, replicas: int = 3, surge: int | str = 1, unavailable: int | str = 0, **spec: Any) -> Object:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": rolling,
            "template": template,
            **spec,
        },
    }


def rolled_out(server: Noxu, value: Object) -> Object:
    server.apply(value)
    server.wait(value, "self.status.availableReplicas == self.spec.replicas")
    server.idle()
    return value


def images(server: Noxu, app: str) -> dict[str, int]:
    """How many pods have which image."""
    pods = server.list("pods", labels={"app": app})
    return dict(Counter(pod["spec"]["containers"][0]["image"] for pod in pods))


def sizes(server: Noxu, app: str) -> list[int]:
    """The replicas of its ReplicaSets, by their revisions."""
    found = sorted(server.list("replicasets", labels={"app": app}), key=_revision)
    return [one["spec"]["replicas"] for one in found]


def _revision(value: Object) -> int:
    return int(value["metadata"]["annotations"][REVISION])


def recorded(server: Noxu, name: str) -> list[str]:
    """What its Events say of its ReplicaSets: `up 1 0 → 3` for the one of revision 1."""
    names = {one["metadata"]["name"]: _revision(one) for one in server.list("replicasets", labels={"app": name})}
    said = []
    for event in sorted(server.events("deployments", name), key=lambda one: str(one["metadata"]["name"])):
        words = event["message"].split()  # Scaled up replica set web-abc from 0 to 3
        said.append(f"{words[1]} {names[words[4]]} {words[6]} → {words[8]}")
    return said


def progress(server: Noxu, name: str) -> str:
    conditions = server.get("deployments", name)["status"]["conditions"]
    return next(str(found["reason"]) for found in conditions if found["type"] == "Progressing")


# -- updates ----------------------------------------------------------------------------------------------------------


def test_an_update_surges_is_undone_and_has_a_history(server: Noxu, kubectl: Kubectl) -> None:
    rolled_out(server, deployment("update"))
    kubectl("set image deploy/update c=two")
    assert kubectl("rollout status deploy/update").splitlines()[-1] == 'deployment "update" successfully rolled out'
    server.idle()
    assert images(server, "update") == {"two": 3}
    assert recorded(server, "update") == [
        "up 1 0 → 3",
        *("up 2 0 → 1", "down 1 3 → 2", "up 2 1 → 2", "down 1 2 → 1", "up 2 2 → 3", "down 1 1 → 0"),
    ]
    assert progress(server, "update") == "NewReplicaSetAvailable"

    kubectl("rollout undo deploy/update")
    kubectl("rollout status deploy/update")
    server.idle()
    assert images(server, "update") == {"one": 3}
    history = kubectl("rollout history deploy/update").split()
    assert [word for word in history if word.isdecimal()] == ["2", "3"]
    assert "image" in kubectl("rollout history deploy/update --revision=2").lower()

    kubectl("rollout undo deploy/update --to-revision=2")
    server.idle()
    assert images(server, "update") == {"two": 3}
    assert server.get("deployments", "update")["metadata"]["annotations"][REVISION] == "4"


def test_an_update_without_surge_shrinks_first(server: Noxu, kubectl: Kubectl) -> None:
    rolled_out(server, deployment("shrink", 4, surge=0, unavailable="50%"))
    kubectl("set image deploy/shrink c=two")
    server.idle()
    assert recorded(server, "shrink")[:3] == ["up 1 0 → 4", "down 1 4 → 2", "up 2 0 → 2"]
    assert images(server, "shrink") == {"two": 4}


def test_a_restart_makes_new_pods_of_the_same_image(server: Noxu, kubectl: Kubectl) -> None:
    web = rolled_out(server, deployment("restart"))
    before = {pod["metadata"]["uid"] for pod in server.list("pods", labels={"app": "restart"})}
    kubectl("rollout restart deploy/restart")
    server.idle()
    after = server.list("pods", labels={"app": "restart"})
    assert len(after) == 3
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in after)
    annotations = server.get(web)["spec"]["template"]["metadata"]["annotations"]
    assert list(annotations) == ["kubectl.kubernetes.io/restartedAt"]


def test_recreate_begins_when_the_old_pods_are_gone(server: Noxu, kubectl: Kubectl) -> None:
    rolled_out(server, deployment("recreate", strategy={"type": "Recreate"}))
    kubectl("set image deploy/recreate c=two")
    kubectl("rollout status deploy/recreate")
    server.idle()
    assert recorded(server, "recreate") == ["up 1 0 → 3", "down 1 3 → 0", "up 2 0 → 3"]
    assert images(server, "recreate") == {"two": 3}


def test_pods_become_available_when_time_passes(server: Noxu) -> None:
    web = deployment("later", minReadySeconds=60)
    server.apply(web)
    server.wait(web, "self.status.readyReplicas == 3")
    server.idle()
    assert "availableReplicas" not in server.get(web)["status"]
    server.clock.advance("60s")
    server.idle()
    assert server.get(web)["status"]["availableReplicas"] == 3
    server.patch(web, {"spec": {"template": {"spec": {"hostname": "other"}}}})
    server.idle()
    assert sizes(server, "later") == [3, 1]
    server.clock.advance("60s")
    server.idle()
    assert sizes(server, "later") == [2, 2]


# -- what hangs -------------------------------------------------------------------------------------------------------


def test_an_update_that_hangs_exceeds_its_deadline_and_is_undone(server: Noxu, kubectl: Kubectl) -> None:
    web = rolled_out(server, deployment("hangs", progressDeadlineSeconds=30))
    kubectl(f"patch deploy hangs -p {json.dumps(BROKEN, separators=(',', ':'))}")
    server.idle()
    assert (sizes(server, "hangs"), progress(server, "hangs")) == ([3, 1], "ReplicaSetUpdated")
    server.clock.advance("30s")
    server.idle()
    assert progress(server, "hangs") == "ProgressDeadlineExceeded"
    failed = kubectl("rollout status deploy/hangs", fails=True)
    assert failed.splitlines()[-1] == 'error: deployment "hangs" exceeded its progress deadline'
    assert server.get(web)["status"]["availableReplicas"] == 3
    kubectl("rollout undo deploy/hangs")
    kubectl("rollout status deploy/hangs")
    server.idle()
    assert (sizes(server, "hangs"), progress(server, "hangs")) == ([0, 3], "NewReplicaSetAvailable")


def test_an_update_of_an_update_that_hangs(server: Noxu, kubectl: Kubectl) -> None:
    web = rolled_out(server, deployment("over"))
    server.patch(web, BROKEN)
    server.idle()
    server.patch(web, {"spec": {"template": {"metadata": {"annotations": None}, "spec": {"hostname": "third"}}}})
    kubectl("rollout status deploy/over")
    server.idle()
    assert sizes(server, "over") == [0, 0, 3]
    assert server.get(web)["status"]["replicas"] == 3


def test_a_quota_is_told_until_there_is_room(server: Noxu) -> None:
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "small"}})
    quota = {"metadata": {"name": "q", "namespace": "small"}, "spec": {"hard": {"pods": "2"}}}
    server.create({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    server.idle()
    web = deployment("small")
    web["metadata"]["namespace"] = "small"
    server.apply(web)
    server.wait(web, "self.status.conditions.exists(c, c.type == 'ReplicaFailure')")
    failure = next(found for found in server.get(web)["status"]["conditions"] if found["type"] == "ReplicaFailure")
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert failure["message"].endswith(
        "is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
    )
    server.delete("resourcequotas", "q", namespace="small")
    server.clock.advance("5m")  # the next attempt
    server.wait(web, "self.status.availableReplicas == 3")
    server.wait(web, "!self.status.conditions.exists(c, c.type == 'ReplicaFailure')")


# -- scale and pause --------------------------------------------------------------------------------------------------


def test_a_scale_is_shared_while_an_update_hangs(server: Noxu, kubectl: Kubectl) -> None:
    web = rolled_out(server, deployment("shared", 10, surge=3, unavailable=2))
    server.patch(web, BROKEN)
    server.idle()
    assert sizes(server, "shared") == [8, 5]
    kubectl("scale deploy/shared --replicas=15")
    server.idle()
    assert sizes(server, "shared") == [11, 7]  # as in the documentation of Deployments
    kubectl("scale deploy/shared --replicas=0")
    server.idle()
    assert sizes(server, "shared") == [0, 0]


def test_a_scale_goes_up_and_down(server: Noxu, kubectl: Kubectl) -> None:
    web = rolled_out(server, deployment("scale", 2))
    kubectl("scale deploy/scale --replicas=5")
    server.wait(web, "self.status.availableReplicas == 5")
    newest = server.list("pods", labels={"app": "scale"})[0]["metadata"]
    server.patch(
        "pods", newest["name"], {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}
    )
    kubectl("scale deploy/scale --replicas=4 --current-replicas=5")
    server.wait("pods", count=4, labels={"app": "scale"})
    assert newest["uid"] not in {pod["metadata"]["uid"] for pod in server.list("pods", labels={"app": "scale"})}
    server.idle()
    assert recorded(server, "scale") == ["up 1 0 → 2", "up 1 2 → 5", "down 1 5 → 4"]


def test_a_pause_collects_changes(server: Noxu, kubectl: Kubectl) -> None:
    web = rolled_out(server, deployment("pause"))
    kubectl("rollout pause deploy/pause")
    kubectl("set image deploy/pause c=two")
    server.patch(web, {"spec": {"replicas": 4}})
    server.idle()
    assert (images(server, "pause"), progress(server, "pause")) == ({"one": 4}, "DeploymentPaused")
    kubectl("rollout resume deploy/pause")
    server.idle()
    assert (images(server, "pause"), progress(server, "pause")) == ({"two": 4}, "NewReplicaSetAvailable")
    assert sizes(server, "pause") == [0, 4]


# -- owners -----------------------------------------------------------------------------------------------------------


def test_old_revisions_go(server: Noxu) -> None:
    web = rolled_out(server, deployment("history", 1, revisionHistoryLimit=1))
    for image in ("two", "three", "four"):
        server.patch(web, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
        server.idle()
    found = server.list("replicasets", labels={"app": "history"})
    assert sorted(map(_revision, found)) == [3, 4]


def test_what_an_orphaned_deployment_leaves_is_adopted(server: Noxu, kubectl: Kubectl) -> None:
    rolled_out(server, deployment("left"))
    before = {one["metadata"]["uid"] for kind in ("replicasets", "pods") for one in server.list(kind, labels={"app": "left"})}  # fmt: skip
    kubectl("delete deploy left --cascade=orphan")
    server.idle()
    rolled_out(server, deployment("left"))
    after = {one["metadata"]["uid"] for kind in ("replicasets", "pods") for one in server.list(kind, labels={"app": "left"})}  # fmt: skip
    assert after == before
    kubectl("delete deploy left")
    server.wait("pods", count=0, labels={"app": "left"})
    assert not server.list("replicasets", labels={"app": "left"})


def test_a_pod_that_is_taken_out_or_deleted_is_replaced(server: Noxu, kubectl: Kubectl) -> None:
    web = rolled_out(server, deployment("out", 2))
    first, second = (pod["metadata"]["name"] for pod in server.list("pods", labels={"app": "out"}))
    kubectl(f"label pod {first} app=taken-out --overwrite")
    kubectl(f"delete pod {second}")
    server.idle()
    assert "ownerReferences" not in server.get("pods", first)["metadata"]
    names = {pod["metadata"]["name"] for pod in server.list("pods", labels={"app": "out"})}
    assert len(names) == 2
    assert names.isdisjoint((first, second))
    assert server.get(web)["status"]["availableReplicas"] == 2


def test_a_node_that_is_drained_loses_its_pods_to_others(server: Noxu, kubectl: Kubectl) -> None:
    web = rolled_out(server, deployment("drain", 3))
    kubectl("drain node-1 --ignore-daemonsets --force --pod-selector=app=drain")
    server.wait(web, "self.status.availableReplicas == 3")
    server.idle()
    nodes = {pod["spec"]["nodeName"] for pod in server.list("pods", labels={"app": "drain"})}
    kubectl("uncordon node-1")
    assert nodes == {"node-2", "node-3"}


def test_the_pods_of_a_lost_node_come_up_on_others(server: Noxu) -> None:
    web = rolled_out(server, deployment("lost", 6))
    lost = sum(pod["spec"]["nodeName"] == "node-2" for pod in server.list("pods", labels={"app": "lost"}))
    assert lost > 0
    try:
        server.nodes.lose("node-2")
        server.clock.advance("1m")  # its lease has expired
        server.idle()
        after_a_minute = server.get(web)["status"]
        server.clock.advance("6m")  # what its pods tolerate has passed
        server.idle()
        after_seven = server.get(web)["status"]
    finally:
        server.nodes.restore("node-2")
        server.clock.advance("1m")
        server.wait("nodes", "node-2", "!has(self.spec.taints)")
    server.idle()
    assert after_a_minute["unavailableReplicas"] == lost
    assert (after_seven["availableReplicas"], after_seven["terminatingReplicas"]) == (6, lost)
    assert server.get(web)["status"]["terminatingReplicas"] == 0


def test_a_replication_controller_scales(server: Noxu, kubectl: Kubectl) -> None:
    web = {**deployment("rc", 2), "apiVersion": "v1", "kind": "ReplicationController"}
    web["spec"] = {"replicas": 2, "selector": {"app": "rc"}, "template": web["spec"]["template"]}
    rolled_out(server, web)
    kubectl("scale rc rc --replicas=4")
    server.wait(web, "self.status.availableReplicas == 4")
    assert images(server, "rc") == {"one": 4}
