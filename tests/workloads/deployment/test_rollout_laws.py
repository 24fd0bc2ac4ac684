"""Laws of roll-outs, whatever persons and nodes do: a small cluster on a `Play`, with the controllers and a kubelet of its own.

A person changes the template, scales, pauses and resumes; pods become ready, fail, and go with their node; the controllers
look as often as chance has it. No look of theirs makes

    the sizes of the ReplicaSets together   more than replicas + maxSurge
    the pods                                more than these sizes
    the available pods                      fewer than replicas - maxUnavailable

if it was not so before. And when nothing fails any more, all pods are of the newest template and available.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from noxu.values import Object
from noxu.workloads.deployment.deployments import Deployments
from noxu.workloads.deployment.sizes import maximum, minimum_available, rolls, total_wanted, wanted
from noxu.workloads.objects import DEPLOYMENTS, PODS, REPLICA_SETS
from noxu.workloads.pods import condition, is_active, is_ready
from noxu.workloads.replica_sets import ReplicaSets
from tests.workloads.deployments import deployment
from tests.workloads.plays import Play
from tests.workloads.replicas import ago, template

IMAGES = ("a", "b", "c", "d")
NODES = 3
LOOKS = 100  # more than a roll-out of so few pods needs

deployment_steps = object.__new__(Deployments).steps
replica_set_steps = object.__new__(ReplicaSets).steps


class SmallCluster:
    """A Deployment `web`, and what belongs to it."""

    def __init__(self, given: Object) -> None:
        self.play = Play((DEPLOYMENTS, given))

    @property
    def deployment(self) -> Object:
        return self.play.get(DEPLOYMENTS, "default/web")

    @property
    def replica_sets(self) -> list[Object]:
        return [*self.play.objects.all(REPLICA_SETS)]

    @property
    def pods(self) -> list[Object]:
        return [pod for pod in self.play.objects.all(PODS) if is_active(pod)]

    @property
    def available(self) -> int:
        return sum(map(is_ready, self.pods))

    @property
    def lasting(self) -> int:
        """The available pods that stay when each ReplicaSet has its size: those that are not go first."""
        controlled = self.play.objects.controlled_by
        return sum(
            min(
                wanted(found),
                sum(is_active(pod) and is_ready(pod) for pod in controlled(PODS, found["metadata"]["uid"])),
            )
            for found in self.replica_sets
        )

    # -- what persons do

    def change(self, **spec: Any) -> None:
        value = self.deployment
        metadata = {**value["metadata"], "generation": value["metadata"]["generation"] + 1}
        self.play.objects.put(DEPLOYMENTS, {**value, "metadata": metadata, "spec": {**value["spec"], **spec}})

    # -- what nodes do

    def start(self, number: int) -> None:
        """So many of the pods that are not ready become ready."""
        for pod in [pod for pod in self.pods if not is_ready(pod)][:number]:
            self._become(pod, "True", "Running")

    def fail(self, number: int) -> None:
        """A pod is not ready any more."""
        if ready := [pod for pod in self.pods if is_ready(pod)]:
            self._become(ready[number % len(ready)], "False", "Running")

    def lose(self, node: int) -> None:
        """All pods of a node fail for ever."""
        for pod in self.pods:
            if pod["spec"].get("nodeName") == f"node-{node}":
                self._become(pod, "False", "Failed")

    def _become(self, pod: Object, ready: str, phase: str) -> None:
        node = pod["spec"].get("nodeName") or f"node-{len(self.play.writes) % NODES}"
        conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": ago(0)}]
        status = {"phase": phase, "conditions": conditions}
        self.play.objects.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status})

    # -- what controllers do

    def look(self) -> None:
        """Each controller looks once, and keeps the laws."""
        for found in self.replica_sets:
            pods, available, sizes = len(self.pods), self.lasting, total_wanted(self.replica_sets)
            self.play.run(replica_set_steps, f"default/{found['metadata']['name']}")
            assert len(self.pods) <= max(pods, sizes)
            assert self.lasting == available
        before, available = total_wanted(self.replica_sets), self.lasting
        self.play.run(deployment_steps, "default/web")
        assert total_wanted(self.replica_sets) <= max(before, maximum(self.deployment))
        if rolls(self.deployment):
            assert self.lasting >= min(available, minimum_available(self.deployment))

    def settle(self) -> None:
        """All pods become ready, until no controller writes anything."""
        for _ in range(LOOKS):
            self.start(len(self.pods))
            self.play.done()
            self.look()
            if not self.play.done():
                return
        raise AssertionError("the roll-out does not end")


ACTIONS: dict[str, Callable[[SmallCluster, int], None]] = {
    "look": lambda cluster, number: cluster.look(),
    "look again": lambda cluster, number: (cluster.look(), cluster.look())[0],
    "start": lambda cluster, number: cluster.start(number),
    "start all": lambda cluster, number: cluster.start(99),
    "fail": lambda cluster, number: cluster.fail(number),
    "lose": lambda cluster, number: cluster.lose(number % NODES),
    "template": lambda cluster, number: cluster.change(template=template(IMAGES[number % len(IMAGES)])),
    "scale": lambda cluster, number: cluster.change(replicas=number),
    "pause": lambda cluster, number: cluster.change(paused=True),
    "resume": lambda cluster, number: cluster.change(paused=False),
}

actions = st.lists(st.tuples(st.sampled_from([*ACTIONS]), st.integers(0, 7)), max_size=25)
limits = st.sampled_from([(1, 0), (0, 1), (2, 2), ("25%", "25%"), ("50%", 0), (0, "100%"), (0, 0)])


@settings(max_examples=40)
@given(replicas=st.integers(0, 7), limits=limits, history=actions)
def test_no_look_leaves_the_limits_and_in_the_end_all_is_new(
    replicas: int, limits: tuple[int | str, int | str], history: list[tuple[str, int]]
) -> None:
    cluster = SmallCluster(deployment(replicas, *limits))
    for action, number in history:
        ACTIONS[action](cluster, number)
    cluster.change(paused=False)
    cluster.settle()
    _assert_is_complete(cluster)


@settings(max_examples=20)
@given(replicas=st.integers(0, 5), history=actions)
def test_recreate_never_runs_two_templates_at_once(replicas: int, history: list[tuple[str, int]]) -> None:
    cluster = SmallCluster(deployment(replicas, strategy="Recreate"))
    for action, number in history:
        if action != "lose":
            ACTIONS[action](cluster, number)
        assert len({pod["spec"]["containers"][0]["image"] for pod in cluster.pods}) <= 1
    cluster.change(paused=False)
    cluster.settle()
    _assert_is_complete(cluster)


def _assert_is_complete(cluster: SmallCluster) -> None:
    found, image = cluster.deployment, cluster.deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods} <= {image}
    assert len(cluster.pods) == cluster.available == wanted(found) == total_wanted(cluster.replica_sets)
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    assert (condition(found, "Progressing") or {})["reason"] == "NewReplicaSetAvailable"
    assert (condition(found, "Available") or {})["status"] == "True"
