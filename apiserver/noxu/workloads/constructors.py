"""The controllers of workloads by their names, and how they are made: a server without nodes imports none of them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

from noxu.config import Config
from noxu.controllers.controller import ControllerParts, Reconciler
from noxu.controllers.manager import enabled
from noxu.workloads.autoscaler.autoscaling import Autoscaler
from noxu.workloads.cron_jobs import CronJobController
from noxu.workloads.daemon_sets.daemon_sets import DaemonSets
from noxu.workloads.deployment.deployments import Deployments
from noxu.workloads.disruption import DisruptionController
from noxu.workloads.endpoint_slices import EndpointSliceController
from noxu.workloads.endpoints import EndpointsController
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.job.jobs import JobController
from noxu.workloads.kubelet.commands import Commands
from noxu.workloads.kubelet.commands import of as commands_of
from noxu.workloads.kubelet.heartbeats import NodeHeartbeats
from noxu.workloads.kubelet.kubelet import Kubelet
from noxu.workloads.mirrored_slices import EndpointSliceMirroringController
from noxu.workloads.node_lifecycle import NodeLifecycleController
from noxu.workloads.nodes import NodeRegistration
from noxu.workloads.pod_garbage import PodGarbageCollector
from noxu.workloads.replica_sets import ReplicaSets, ReplicationControllers
from noxu.workloads.scheduler.scheduling import Scheduler
from noxu.workloads.stateful_sets.stateful_sets import StatefulSets
from noxu.workloads.taint_eviction import TaintEvictionController
from noxu.workloads.ttl_after_finished import TtlAfterFinishedController
from noxu.workloads.volumes.provisioner import SimulatedProvisioner, StandardStorageClass
from noxu.workloads.volumes.volume_binder import VolumeBinder

SIMULATED: Final[Sequence[type[WorkloadController]]] = (
    NodeRegistration,
    NodeHeartbeats,
    Kubelet,
    Scheduler,
    SimulatedProvisioner,
    StandardStorageClass,
)
"""What no list of controllers disables: in a cluster these are not part of kube-controller-manager."""
CONTROLLERS: Final[Sequence[type[WorkloadController]]] = (
    CronJobController,
    DaemonSets,
    Deployments,
    DisruptionController,
    EndpointsController,
    EndpointSliceController,
    EndpointSliceMirroringController,
    Autoscaler,
    JobController,
    NodeLifecycleController,
    PodGarbageCollector,
    ReplicaSets,
    ReplicationControllers,
    StatefulSets,
    TaintEvictionController,
    TtlAfterFinishedController,
    VolumeBinder,
)
"""Those of kube-controller-manager, in the order of their names."""
READING: Final = "noxu.workloads.stages.reading"
STAGES: Final = "noxu.workloads.stages.controller"
MAKERS: Final[dict[str, type[WorkloadController]]] = {made.name: made for made in CONTROLLERS}


class SimulatedParts(NamedTuple):
    """What a server with nodes has besides other servers. `commands`: what commands in pods answer."""

    controllers: list[Reconciler[Any]]
    commands: Commands


def make(config: Config, items: Sequence[str], parts: ControllerParts) -> SimulatedParts:
    """The informer, what simulates the nodes, and the controllers that a list enables; none of them runs. Raises StartError."""
    chosen = [MAKERS[item.name] for item in enabled(items, of_workloads=True) if item.name in MAKERS]
    made_of = [*SIMULATED, *chosen]
    informer = Informer(parts, list(dict.fromkeys(kind for made in made_of for kind in made.follows())))
    controllers = [made(parts, informer, config) for made in made_of]
    made: list[Reconciler[Any]] = [informer, *controllers]
    commands = commands_of(config.exec)
    if config.stages:
        stages = import_module(READING).read_files(config.stages)  # few servers have them
        kubelet = next(each for each in controllers if isinstance(each, Kubelet))
        kubelet.obey(of_pods=stages.of_pods, only=stages.replace_pods)
        made.append(import_module(STAGES).StageController(parts, kubelet, stages))
        for rule in stages.commands:
            commands.add(rule)
    return SimulatedParts(made, commands)
