"""The kubelets of all simulated nodes: a pod that is bound to a node comes up, lives as its annotation says, and ends when it is deleted.

    bound         it is accepted: it has the addresses of its node, and its containers start
    then          containers run, are ready, end and start again: see statuses.py
    deleted       it ends at once: neither preStop nor the grace period is waited for
    node lost     nothing happens to it, until the node is there again

A node is simulated if it has an address. With no delay, a pod is ready after two writes of its status: what watches it sees
`ContainerCreating`, as in a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from datetime import datetime
from typing import Final, Protocol, Self

from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.kubelet import statuses
from noxu.workloads.kubelet.addresses import Addresses, host_addresses
from noxu.workloads.kubelet.behaviours import NORMAL_LIFE, PodBehaviour
from noxu.workloads.kubelet.simulation import PodRule, Simulation
from noxu.workloads.nodes import is_lost
from noxu.workloads.objects import NODES, PODS, Objects, name_of
from noxu.workloads.pods import FINISHED, SIMULATE, is_terminating, phase
from noxu.workloads.writes import (
    NORMAL,
    WARNING,
    Delete,
    Kind,
    NamespacedName,
    NewEvent,
    Replace,
    Result,
    Steps,
    Write,
    done,
    stored,
    with_status,
)

MAX_WARNED: Final = 1000
_FIELDS: Final = (("spec.initContainers", "initContainerStatuses"), ("spec.containers", "containerStatuses"))


class SelectingStage(Protocol):
    """A stage, as this room knows it: `stages.stage.Stage`."""

    def is_about(self, value: Object) -> bool: ...


class Kubelet(WorkloadController):
    """Keys are the names of pods that are bound to a node."""

    name = "kubelet"
    kind = PODS
    looks_at = (NODES,)
    account = "kubelet"
    field_manager = "kubelet"
    workers = 8  # what they write at the same time becomes one transaction

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self.lives = PodLives()

    @property
    def simulation(self) -> Simulation:
        return self.lives.simulation

    def inherit(self, before: Self) -> None:
        self.simulation.rules = list(before.simulation.rules)

    def keys(self, objects: Objects) -> Iterable[NamespacedName]:
        return [name_of(pod) for pod in objects.all(PODS) if pod["spec"].get("nodeName")]

    def affected(
        self, objects: Objects, kind: Kind, old: Object | None, new: Object | None
    ) -> Iterable[NamespacedName]:
        if kind == PODS:
            if new is not None and new["spec"].get("nodeName"):
                yield name_of(new)
        elif new is not None and (old is None or _looks(old) != _looks(new)):
            yield from map(name_of, objects.on_node(new["metadata"]["name"]))

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        return self.lives.steps(objects, key, now)

    def obey(self, of_pods: Sequence[SelectingStage], *, only: bool) -> None:
        """Leave pods to stages: those that one of them selects, or with `only` all."""
        self.lives.leaves = lambda pod: only or any(stage.is_about(pod) for stage in of_pods)

    def simulate(self, pods: str, text: str) -> list[NamespacedName]:
        """Add a rule. The pods that it fits, which are looked at now. Raises ValueError."""
        rule = PodRule(pods, text)
        self.simulation.add(rule)
        return self.look_again(rule.fits)

    def look_again(self, concerns: Callable[[Object], bool] = lambda _pod: True) -> list[NamespacedName]:
        """Look at the pods that something new is asked of, which are returned."""
        concerned = [name_of(pod) for pod in self.objects.all(PODS) if concerns(pod)]
        for name in concerned:
            self.queue.add(name)
        return concerned


class PodLives:
    """What happens to pods, and what has to be remembered for that: addresses that were given, and what is asked of pods."""

    def __init__(self) -> None:
        self.simulation = Simulation()
        self.addresses = Addresses()
        self.leaves: Callable[[Object], bool] = lambda _pod: False
        """Whether something else decides what happens to a pod: stages."""
        self._warned: set[tuple[str, str]] = set()

    def steps(self, objects: Objects, key: NamespacedName, now: datetime) -> Steps:
        pod = objects.get(PODS, key)
        if pod is None or not (node_name := pod["spec"].get("nodeName")):
            return None
        node = objects.get(NODES, NamespacedName("", node_name))
        hosts = tuple(host_addresses(node)) if node is not None else ()
        if node is None or not hosts or is_lost(node) or self.leaves(pod):
            return None
        behaviour = yield from self._behaviour(pod, node_name)
        if behaviour.is_lost:
            return None
        if is_terminating(pod):
            yield from _end(pod, node_name, now)
            return None
        if phase(pod) in FINISHED:
            return None
        at = statuses.Situation(hosts, self._address(pod, node, hosts, objects), now)
        if not (pod.get("status") or {}).get("containerStatuses"):
            # its containers are being created: what watches a pod sees that, as in a cluster
            [result] = yield [Replace(PODS, with_status(pod, statuses.accepted(pod, at)), "status")]
            pod = stored(result) or pod
        step = statuses.advance(pod, behaviour, at)
        events = [NewEvent(pod, said.type, said.reason, said.message, node_name, field) for field, said in step.said]
        if step.status != pod.get("status"):
            done((yield [*events, Replace(PODS, with_status(pod, step.status), "status")]))
        elif events:
            yield events
        return step.again

    def _behaviour(self, pod: Object, node: str) -> Generator[Sequence[Write], Sequence[Result], PodBehaviour]:
        """What is asked of a pod. A pod is warned once of what is not known, which is ignored then."""
        try:
            return self.simulation.behaviour(pod)
        except ValueError as error:
            warned = (pod["metadata"]["uid"], str(error))
            if warned not in self._warned:
                if len(self._warned) >= MAX_WARNED:
                    self._warned.clear()
                self._warned.add(warned)
                yield [NewEvent(pod, WARNING, "UnknownSimulation", f"{SIMULATE}: {error}", node)]
            return NORMAL_LIFE

    def _address(self, pod: Object, node: Object, hosts: Sequence[str], objects: Objects) -> str:
        if pod["spec"].get("hostNetwork"):
            return hosts[0]
        return (pod.get("status") or {}).get("podIP") or self.addresses.give(pod, node, objects)


def _looks(node: Object) -> object:
    """What the pods of a node depend on."""
    return is_lost(node), host_addresses(node)


def _end(pod: Object, node: str, now: datetime) -> Steps:
    """Stop what runs, and let the pod go."""
    if pod["metadata"].get("deletionGracePeriodSeconds") == 0:
        return None  # only finalizers keep it
    running = [
        (f"{path}{{{status['name']}}}", status["name"])
        for path, field in _FIELDS
        for status in (pod.get("status") or {}).get(field) or ()
        if "running" in status["state"]
    ]
    yield [NewEvent(pod, NORMAL, "Killing", f"Stopping container {name}", node, path) for path, name in running]
    if pod["metadata"].get("finalizers") and phase(pod) not in FINISHED:
        # those who hold it look at how it has ended
        [result] = yield [Replace(PODS, with_status(pod, statuses.ended(pod, now)), "status")]
        pod = stored(result) or pod
    done((yield [Delete(PODS, pod, grace=0)]))
    return None
