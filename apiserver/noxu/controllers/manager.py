"""The controllers of kube-controller-manager: their names, and which of them a server runs.

`--controllers` is a list, as for kube-controller-manager (controller-manager's app/helper.go and options/generic.go). The
first item that names a controller decides: `NAME` enables it, `-NAME` disables it. A controller that no item names is
enabled if the list contains `*`. Names are upstream's (cmd/kube-controller-manager/names), and their older forms.

A profile is a list to begin with: `local` and `cluster` run all controllers, `envtest` runs none, as kube-apiserver by
itself. Controllers of kube-apiserver are not part of this: they run in every profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from noxu.config import EXEC_ANSWERS, JITTER, MAX_NODES, LeaderElection, Profile
from noxu.features import meant

ALL: Final = "*"
PROFILES: Final[dict[Profile, tuple[str, ...]]] = {"local": (ALL,), "cluster": (ALL,), "envtest": ()}
"""The list of controllers of each profile."""


class Known(NamedTuple):
    """A controller: its name, the older form of the name, and whether this server has it, always or with simulated nodes."""

    name: str
    alias: str = ""
    is_available: bool = False
    needs_nodes: bool = False


CONTROLLERS: Final = (
    Known("bootstrap-signer-controller", "bootstrapsigner"),
    Known("certificatesigningrequest-approving-controller", "csrapproving"),
    Known("certificatesigningrequest-cleaner-controller", "csrcleaner"),
    Known("certificatesigningrequest-signing-controller", "csrsigning", is_available=True),
    Known("cloud-node-lifecycle-controller", "cloud-node-lifecycle"),
    Known("clusterrole-aggregation-controller", "clusterrole-aggregation", is_available=True),
    Known("cronjob-controller", "cronjob", needs_nodes=True),
    Known("daemonset-controller", "daemonset", needs_nodes=True),
    Known("deployment-controller", "deployment", needs_nodes=True),
    Known("device-taint-eviction-controller"),
    Known("disruption-controller", "disruption", needs_nodes=True),
    Known("endpoints-controller", "endpoint", needs_nodes=True),
    Known("endpointslice-controller", "endpointslice", needs_nodes=True),
    Known("endpointslice-mirroring-controller", "endpointslicemirroring", needs_nodes=True),
    Known("ephemeral-volume-controller", "ephemeral-volume"),
    Known("garbage-collector-controller", "garbagecollector", is_available=True),
    Known("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling", needs_nodes=True),
    Known("job-controller", "job", needs_nodes=True),
    Known("kube-apiserver-serving-clustertrustbundle-publisher-controller"),
    Known("legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner"),
    Known("namespace-controller", "namespace", is_available=True),
    Known("node-ipam-controller", "nodeipam"),
    Known("node-lifecycle-controller", "nodelifecycle", needs_nodes=True),
    Known("node-route-controller", "route"),
    Known("persistentvolume-attach-detach-controller", "attachdetach"),
    Known("persistentvolume-binder-controller", "persistentvolume-binder", needs_nodes=True),
    Known("persistentvolume-expander-controller", "persistentvolume-expander"),
    Known("persistentvolume-protection-controller", "pv-protection", is_available=True),
    Known("persistentvolumeclaim-protection-controller", "pvc-protection", is_available=True),
    Known("pod-garbage-collector-controller", "podgc", needs_nodes=True),
    Known("podcertificaterequest-cleaner-controller"),
    Known("replicaset-controller", "replicaset", needs_nodes=True),
    Known("replicationcontroller-controller", "replicationcontroller", needs_nodes=True),
    Known("resourceclaim-controller", "resource-claim-controller"),
    Known("resourcequota-controller", "resourcequota", is_available=True),
    Known("root-ca-certificate-publisher-controller", "root-ca-cert-publisher", is_available=True),
    Known("selinux-warning-controller"),
    Known("service-cidr-controller"),
    Known("service-lb-controller", "service"),
    Known("serviceaccount-controller", "serviceaccount", is_available=True),
    Known("serviceaccount-token-controller", "serviceaccount-token", is_available=True),
    Known("statefulset-controller", "statefulset", needs_nodes=True),
    Known("storage-version-migrator-controller", is_available=True),
    Known("storageversion-garbage-collector-controller", "storage-version-gc"),
    Known("taint-eviction-controller", needs_nodes=True),
    Known("token-cleaner-controller", "tokencleaner"),
    Known("ttl-after-finished-controller", "ttl-after-finished", needs_nodes=True),
    Known("ttl-controller", "ttl"),
    Known("validatingadmissionpolicy-status-controller", is_available=True),
    Known("volumeattributesclass-protection-controller", is_available=True),
)
"""In the order of their names."""

AVAILABLE: Final = tuple(controller.name for controller in CONTROLLERS if controller.is_available)
OF_WORKLOADS: Final = tuple(controller.name for controller in CONTROLLERS if controller.needs_nodes)
"""Those of simulated nodes (noxu.workloads)."""
_NAMES: Final = {name: controller for controller in CONTROLLERS for name in (controller.name, controller.alias) if name}


def check_profile(profile: str) -> None:
    """Raises ValueError for an unknown profile."""
    if profile not in PROFILES:
        raise ValueError(f'"{profile}" is not a profile: there are {", ".join(PROFILES)}{meant(profile, PROFILES)}')


def check_controllers(items: Iterable[str], *, has_nodes: bool = False) -> None:
    """Raises ValueError for names that are unknown, and for a controller to enable that this server does not have."""
    faults = []
    for item in items:
        name = item.removeprefix("-")
        controller = _NAMES.get(name)
        if item == ALL:
            continue
        if controller is None:
            faults.append(f'"{name}" is not in the list of known controllers{meant(name, _NAMES)}')
        elif item == name and controller.needs_nodes and not has_nodes:
            faults.append(f'"{name}" is a controller of workloads, which run with simulated nodes: add --nodes')
        elif item == name and not (controller.is_available or controller.needs_nodes):
            faults.append(f'"{name}" is not available')
    if faults:
        text = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        has = AVAILABLE + OF_WORKLOADS if has_nodes else AVAILABLE
        raise ValueError(f"{text}: this server has {', '.join(has)}")


def check_workloads(
    nodes: int | None,
    *,
    stages: bool,
    exec: str,  # noqa: A002 - the option's name
    option: str = "",
) -> None:
    """Raises ValueError for what no server with simulated nodes can be, and for what needs them.

    `option` is what comes before a name where a person writes it, `--` in a command.
    """
    if nodes is not None and not 0 <= nodes <= MAX_NODES:
        raise ValueError(f"{option}nodes: {nodes} is not a number from 0 to {MAX_NODES}")
    if exec not in EXEC_ANSWERS:
        raise ValueError(f'{option}exec: "{exec}" is not {EXEC_ANSWERS[1]}{meant(exec, EXEC_ANSWERS[1:])}')
    for name, is_given in (("stages", stages), ("exec", bool(exec))):
        if is_given and nodes is None:
            raise ValueError(f"{option}{name} is about simulated nodes: add {option}nodes")


def check_leader_election(election: LeaderElection) -> None:
    """Raises ValueError, with client-go's message where it has one (tools/leaderelection)."""
    for name, seconds in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if seconds <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if not election.lease_duration.is_integer():
        raise ValueError("leaseDuration must be whole seconds, because a Lease has it so")
    if election.lease_duration <= election.renew_deadline:
        raise ValueError("leaseDuration must be greater than renewDeadline")
    if election.renew_deadline <= JITTER * election.retry_period:
        raise ValueError("renewDeadline must be greater than retryPeriod*JitterFactor")


def enabled(items: Sequence[str], *, of_workloads: bool = False) -> list[Known]:
    """The controllers of this server that a list enables; `of_workloads`: those of simulated nodes instead."""
    named: dict[str, bool] = {}
    for item in items:
        name = item.removeprefix("-")
        if name in _NAMES:
            named.setdefault(_NAMES[name].name, item == name)
    has = "needs_nodes" if of_workloads else "is_available"
    return [
        controller
        for controller in CONTROLLERS
        if getattr(controller, has) and named.get(controller.name, ALL in items)
    ]


def has_accounts(profile: Profile, controllers: Sequence[str] | None) -> bool:
    """Whether a controller creates the service account `default` of every namespace. None: the controllers of the profile."""
    items = PROFILES[profile] if controllers is None else controllers
    return any(controller.name == "serviceaccount-controller" for controller in enabled(items))
