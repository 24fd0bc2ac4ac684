"""The controllers of workloads by their names, and how they are made: a server without nodes imports none of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from noxu.config import Config
from noxu.controllers.controller import ControllerParts, Reconciler
from noxu.controllers.manager import enabled
from noxu.workloads.engine import WorkloadController
from noxu.workloads.informer import Informer
from noxu.workloads.kubelet.kubelet import Kubelet
from noxu.workloads.nodes import NodeRegistration
from noxu.workloads.replica_sets import ReplicaSets, ReplicationControllers

SIMULATED: Final[Sequence[type[WorkloadController]]] = (NodeRegistration, Kubelet)
"""What no list of controllers disables: in a cluster these are not part of kube-controller-manager."""
CONTROLLERS: Final[Sequence[type[WorkloadController]]] = (
    ReplicaSets,
    ReplicationControllers,
)
"""Those of kube-controller-manager, in the order of their names."""
MAKERS: Final[dict[str, type[WorkloadController]]] = {made.name: made for made in CONTROLLERS}


def make(config: Config, items: Sequence[str], parts: ControllerParts) -> list[Reconciler[Any]]:
    """The informer, what simulates the nodes, and the controllers that a list enables; none of them runs."""
    chosen = [MAKERS[item.name] for item in enabled(items, of_workloads=True) if item.name in MAKERS]
    made_of = [*SIMULATED, *chosen]
    informer = Informer(parts, list(dict.fromkeys(kind for made in made_of for kind in made.follows())))
    return [informer, *(made(parts, informer, config) for made in made_of)]
