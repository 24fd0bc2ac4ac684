"""The kubelets of all simulated nodes: each pod that is bound to a node comes up, and a pod that is being deleted ends at once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from noxu.config import Config
from noxu.controllers.controller import ControllerParts
from noxu.values import Object
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.kubelet import statuses
from noxu.workloads.kubelet.addresses import Addresses, host_addresses
from noxu.workloads.objects import NODES, PODS, Objects, name_of
from noxu.workloads.pods import FINISHED, is_terminating, phase
from noxu.workloads.writes import NORMAL, Delete, Event, Kind, Name, Steps, Update, done, stored, with_status


class Kubelet(WorkloadController):
    """Keys are the names of pods that are bound to a node."""

    name = "kubelet"
    kind = PODS
    looks_at = (NODES,)
    account = "kubelet"
    field_manager = "kubelet"
    workers = 8

    def __init__(self, parts: ControllerParts, informer: Informer, config: Config) -> None:
        super().__init__(parts, informer, config)
        self._addresses = Addresses()

    def keys(self, objects: Objects) -> Iterable[Name]:
        return [name_of(pod) for pod in objects.all(PODS) if pod["spec"].get("nodeName")]

    def affected(self, objects: Objects, kind: Kind, old: Object | None, new: Object | None) -> Iterable[Name]:
        if kind == PODS:
            if new is not None and new["spec"].get("nodeName"):
                yield name_of(new)
        elif new is not None and (old is None or not host_addresses(old)):
            yield from map(name_of, objects.on_node(new["metadata"]["name"]))

    def steps(self, objects: Objects, key: Name, now: datetime) -> Steps:
        pod = objects.get(PODS, key)
        if pod is None or not (node_name := pod["spec"].get("nodeName")):
            return None
        node = objects.get(NODES, Name("", node_name))
        if node is None or not host_addresses(node):
            return None
        if is_terminating(pod):
            for spec in pod["spec"]["containers"]:
                yield [Event(pod, NORMAL, "Killing", f"Stopping container {spec['name']}", host=node_name)]
            done((yield [Delete(PODS, pod, grace=0)]))
            return None
        if phase(pod) in FINISHED:
            return None
        hosts = tuple(host_addresses(node))
        in_host_network = pod["spec"].get("hostNetwork")
        address = (pod.get("status") or {}).get("podIP") or (
            hosts[0] if in_host_network else self._addresses.give(pod, node, objects)
        )
        at = statuses.Situation(hosts, address, now)
        if not (pod.get("status") or {}).get("containerStatuses"):
            pod = stored((yield [Update(PODS, with_status(pod, statuses.waiting(pod, at)), "status")])[0])
            if pod is None:
                return None
        starts = not pod["status"].get("podIP")
        status, again = statuses.running(pod, at)
        if starts:
            events = [
                Event(pod, NORMAL, reason, message, host=node_name)
                for spec in pod["spec"]["containers"]
                for reason, message in (
                    ("Pulled", f'Container image "{spec.get("image", "")}" already present on machine'),
                    ("Created", "Container created"),
                    ("Started", "Container started"),
                )
            ]
            yield events
        if status != pod["status"]:
            pod = stored((yield [Update(PODS, with_status(pod, status), "status")])[0])
        if pod is None:
            return None
        left = statuses.ends_after(pod, now)
        if left is None:
            return again
        if left > 0:
            return left
        done((yield [Update(PODS, with_status(pod, statuses.succeeded(pod, now)), "status")]))
        return None
