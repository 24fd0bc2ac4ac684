"""PodSecurity: the Pod Security Standards, and the labels of namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.admission.builtin.pod_security import PodSecurityLevels, Standard, policy_of
from noxu.api.errors import ApiError
from tests.admission.cluster import Cluster, container, of_kind, pod

PREFIX = "pod-security.kubernetes.io/"


def namespace(name: str = "default", **labels: str) -> Any:
    labels = {PREFIX + label.replace("_", "-"): value for label, value in labels.items()}
    return of_kind("Namespace", name=name, metadata={"labels": labels})


def secured(**security: Any) -> Any:
    """A container with a securityContext."""
    return container(securityContext=security)


GOOD = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
    "capabilities": {"drop": ["ALL"]},
}
APPARMOR = "container.apparmor.security.beta.kubernetes.io/c"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"

BASELINE: list[tuple[str, Any, str]] = [
    ("a plain pod", pod(), ""),
    ("AppArmor", pod(securityContext={"appArmorProfile": {"type": "Unconfined"}}, containers=[secured(appArmorProfile={"type": "Unconfined"})]),
     'forbidden AppArmor profile (pod and container "c" must not set AppArmor profile type to "Unconfined")'),
    ("AppArmor by annotation", pod({"annotations": {APPARMOR: "unconfined"}}),
     f'forbidden AppArmor profile (annotation must not set AppArmor profile type to "{APPARMOR}="unconfined"")'),
    ("a local profile", pod({"annotations": {APPARMOR: "localhost/x"}}, securityContext={"appArmorProfile": {"type": "Localhost"}}), ""),
    ("capabilities", pod(containers=[secured(capabilities={"add": ["SYS_ADMIN", "NET_RAW", "CHOWN"]})]),
     'non-default capabilities (container "c" must not include "NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add)'),
    ("namespaces of the node", pod(hostNetwork=True, hostPID=True, hostIPC=True),
     "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"),
    ("paths of the node", pod(volumes=[{"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "hostPath": {"path": "/"}}]),
     'hostPath volumes (volumes "a", "b")'),
    ("ports of the node", pod(containers=[container(ports=[{"containerPort": 1, "hostPort": 80}]), container("d", ports=[{"containerPort": 1, "hostPort": 443}])]),
     'hostPort (containers "c", "d" use hostPorts 443, 80)'),
    ("hosts of probes", pod(containers=[container(livenessProbe={"httpGet": {"port": 80, "host": "h"}})]),
     'probe or lifecycle host (container "c" uses probe or lifecycle host "h")'),
    ("privileged", pod(containers=[secured(privileged=True)]),
     'privileged (container "c" must not set securityContext.privileged=true)'),
    ("/proc", pod(containers=[secured(procMount="Unmasked")]),
     'procMount (container "c" must not set securityContext.procMount to "Unmasked")'),
    ("/proc in a user namespace", pod(hostUsers=False, containers=[secured(procMount="Unmasked")]), ""),
    ("SELinux", pod(securityContext={"seLinuxOptions": {"type": "spc_t", "user": "u", "role": "r"}}),
     'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; role may not be set)'),
    ("an allowed type", pod(securityContext={"seLinuxOptions": {"type": "container_engine_t"}}), ""),
    ("seccomp", pod(securityContext={"seccompProfile": {"type": "Unconfined"}}),
     'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")'),
    ("sysctls", pod(securityContext={"sysctls": [{"name": "kernel.x", "value": "1"}, {"name": "net.ipv4.tcp_rmem", "value": "1"}]}),
     "forbidden sysctls (kernel.x)"),
    ("processes of the node", pod(securityContext={"windowsOptions": {"hostProcess": True}}),
     "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"),
    ("init and ephemeral containers", pod(initContainers=[{**secured(privileged=True), "name": "i"}], ephemeralContainers=[{**secured(privileged=True), "name": "e"}]),
     'privileged (containers "i", "e" must not set securityContext.privileged=true)'),
    ("several", pod(hostPID=True, containers=[secured(privileged=True)]),
     'host namespaces (hostPID=true), privileged (container "c" must not set securityContext.privileged=true)'),
]  # fmt: skip
RESTRICTED: list[tuple[str, Any, str]] = [
    ("a good pod", pod(containers=[secured(**GOOD)]), ""),
    ("a plain pod", pod(),
     'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), '
     'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), '
     'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
     'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'),
    ("Windows", pod(os={"name": "windows"}, securityContext={"runAsNonRoot": True}), ""),
    ("a user namespace", pod(hostUsers=False, containers=[secured(**GOOD | {"runAsNonRoot": False, "runAsUser": 0})]), ""),
    ("settings of the pod", pod(securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "Localhost"}},
        containers=[secured(allowPrivilegeEscalation=False, capabilities={"drop": ["ALL"]})]), ""),
    ("more capabilities", pod(containers=[secured(**GOOD | {"capabilities": {"drop": ["ALL"], "add": ["CHOWN", "NET_BIND_SERVICE"]}})]),
     'unrestricted capabilities (container "c" must not include "CHOWN" in securityContext.capabilities.add)'),
    ("volumes", pod(containers=[secured(**GOOD)], volumes=[{"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "nfs": {"server": "s", "path": "/"}}, {"name": "c", "emptyDir": {}}]),
     'restricted volume types (volumes "a", "b" use restricted volume types "hostPath", "nfs")'),
    ("root", pod(containers=[secured(**GOOD | {"runAsUser": 0})]), 'runAsUser=0 (container "c" must not set runAsUser=0)'),
    ("root is allowed", pod(securityContext={"runAsNonRoot": False}, containers=[secured(**GOOD)]),
     "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"),
    ("no seccomp", pod(containers=[secured(**GOOD | {"seccompProfile": {"type": "Unconfined"}})]),
     'seccompProfile (container "c" must not set securityContext.seccompProfile.type to "Unconfined")'),
    ("/proc in a user namespace", pod(hostUsers=False, containers=[secured(**GOOD, procMount="Unmasked")]),
     'procMount (container "c" must not set securityContext.procMount to "Unmasked")'),
]  # fmt: skip
OLD: list[tuple[str, str, str, Any, str]] = [
    ("hosts of probes before 1.34", "baseline", "v1.33", pod(containers=[container(livenessProbe={"tcpSocket": {"port": 80, "host": "h"}})]), ""),
    ("sysctls before 1.32", "baseline", "v1.31", pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "1"}]}),
     "forbidden sysctls (net.ipv4.tcp_rmem)"),
    ("seccomp before 1.19", "baseline", "v1.18", pod({"annotations": {SECCOMP: "unconfined"}}),
     f'seccompProfile (forbidden annotation {SECCOMP}="unconfined")'),
    ("capabilities before 1.22", "restricted", "v1.21", pod(containers=[secured(**GOOD | {"capabilities": {"add": ["NET_RAW"]}})]),
     'non-default capabilities (container "c" must not include "NET_RAW" in securityContext.capabilities.add)'),
    ("a version to come", "restricted", "v1.99", pod(containers=[secured(**GOOD)]), ""),
]  # fmt: skip
STANDARDS = [
    *((f"baseline: {name}", "baseline", "latest", new, why) for name, new, why in BASELINE),
    *((f"restricted: {name}", "restricted", "latest", new, why) for name, new, why in RESTRICTED),
    *OLD,
]


@pytest.mark.parametrize(
    ("level", "version", "new", "why"), [row[1:] for row in STANDARDS], ids=[row[0] for row in STANDARDS]
)
async def test_a_pod_is_refused_for(cluster: Cluster, level: str, version: str, new: Any, why: str) -> None:
    await cluster.put(namespace(enforce=level, enforce_version=version))
    expected = f'violates PodSecurity "{level}:{version}": {why}' if why else ""
    assert await cluster.refusal("PodSecurity", new=new) == expected


async def test_a_namespace_without_labels_enforces_nothing(cluster: Cluster) -> None:
    await cluster.put(namespace())
    assert await cluster.refusal("PodSecurity", new=pod(hostPID=True)) == ""


async def test_a_namespace_that_does_not_exist(cluster: Cluster) -> None:
    why = '500 Internal error occurred: failed to lookup namespace "default"'
    assert await cluster.refusal("PodSecurity", new=pod()) == why


WOULD = 'would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)'
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": pod(hostPID=True)["spec"]}
SPEC = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
WARNED: list[tuple[str, Any]] = [
    ("a pod", pod(hostPID=True)),
    ("a deployment", of_kind("Deployment", "apps/v1", spec=SPEC)),
    ("a job", of_kind("Job", "batch/v1", spec={"template": TEMPLATE})),
    ("a cron job", of_kind("CronJob", "batch/v1", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}})),
    ("a template", of_kind("PodTemplate", template=TEMPLATE)),
    ("a replication controller", of_kind("ReplicationController", spec={"template": TEMPLATE})),
]  # fmt: skip


@pytest.mark.parametrize("new", [row[1] for row in WARNED], ids=[row[0] for row in WARNED])
async def test_warnings_and_annotations_for(cluster: Cluster, new: Any) -> None:
    await cluster.put(namespace(warn="baseline", audit="baseline"))
    outcome = (await cluster.write("PodSecurity", new=new)).outcome
    assert outcome.warnings == [WOULD]
    assert outcome.audit_annotations[f"{PREFIX}audit-violations"] == WOULD


async def test_what_makes_pods_is_not_refused_but_warned_about(cluster: Cluster) -> None:
    await cluster.put(namespace(enforce="baseline"))
    draft = await cluster.write("PodSecurity", new=of_kind("Deployment", "apps/v1", spec=SPEC))
    assert draft.outcome.warnings == [WOULD]
    without = of_kind("ReplicationController", spec={"replicas": 0})
    assert (await cluster.write("PodSecurity", new=without)).outcome.warnings == []


async def test_only_updates_of_containers_are_checked(cluster: Cluster) -> None:
    await cluster.put(namespace(enforce="baseline"))
    bad, other = pod(hostPID=True), pod(hostPID=True, containers=[container(image="other")])
    why = 'violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'
    assert await cluster.refusal("PodSecurity", new=bad, old=bad) == ""
    assert await cluster.refusal("PodSecurity", new=other, old=bad) == why
    assert await cluster.refusal("PodSecurity", new=other, old=bad, subresource="status") == ""
    debugged = pod(hostPID=True, ephemeralContainers=[container("d")])
    assert await cluster.refusal("PodSecurity", new=debugged, old=bad, subresource="ephemeralcontainers") == why


BASE, STRICT, NONE = Standard("baseline"), Standard("restricted"), Standard()
POLICIES: list[tuple[str, dict[str, str], PodSecurityLevels]] = [
    ("nothing", {}, PodSecurityLevels()),
    ("enforce sets warn, too", {"enforce": "baseline", "enforce-version": "v1.30"},
     PodSecurityLevels(Standard("baseline", "v1.30"), NONE, Standard("baseline", "v1.30"))),
    ("unless it is set", {"enforce": "baseline", "warn": "privileged"}, PodSecurityLevels(BASE)),
    ("its version may be set", {"enforce": "baseline", "warn-version": "v1.20"}, PodSecurityLevels(BASE, NONE, Standard("baseline", "v1.20"))),
    ("an unknown level enforces the strictest", {"enforce": "x", "audit": "x", "warn": "x"}, PodSecurityLevels(STRICT)),
    ("an unknown version is the latest", {"enforce": "baseline", "enforce-version": "1.30"}, PodSecurityLevels(BASE, NONE, BASE)),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "policy"), [row[1:] for row in POLICIES], ids=[row[0] for row in POLICIES])
def test_labels(labels: dict[str, str], policy: PodSecurityLevels) -> None:
    assert policy_of({PREFIX + name: value for name, value in labels.items()})[0] == policy


async def test_invalid_labels_are_refused_when_they_are_new(cluster: Cluster) -> None:
    bad = namespace("n", enforce="x", warn_version="1.30")
    with pytest.raises(ApiError) as refused:
        await cluster.write("PodSecurity", new=bad)
    assert (refused.value.code, refused.value.message) == (
        422,
        f'Namespace "n" is invalid: [metadata.labels[{PREFIX}enforce]: Invalid value: "x": must be one of privileged, '
        f'baseline, restricted, metadata.labels[{PREFIX}warn-version]: Invalid value: "1.30": must be "latest" or "v1.x"]',
    )
    assert await cluster.refusal("PodSecurity", new=bad, old=bad) == ""
    assert (await cluster.refusal("PodSecurity", new=bad, old=namespace("n"))).startswith("422")


STRICTER: list[tuple[str, Any, Any, bool]] = [
    ("a stricter level", namespace("n"), namespace("n", enforce="baseline"), True),
    ("another version", namespace("n", enforce="baseline"), namespace("n", enforce="baseline", enforce_version="v1.30"), True),
    ("a more lenient level", namespace("n", enforce="restricted"), namespace("n", enforce="baseline"), False),
    ("no level", namespace("n", enforce="restricted"), namespace("n"), False),
    ("another mode", namespace("n"), namespace("n", warn="baseline"), False),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "warned"), [row[1:] for row in STRICTER], ids=[row[0] for row in STRICTER])
async def test_pods_that_violate_a_new_level_are_counted_for(
    cluster: Cluster, old: Any, new: Any, warned: bool
) -> None:
    pods = [pod({"name": name, "namespace": "n"}, hostPID=True) for name in ("b", "a", "c")]
    await cluster.put(
        *pods,
        pod({"name": "d", "namespace": "n"}, hostNetwork=True, hostIPC=True),
        pod({"name": "e", "namespace": "n"}),
    )
    warnings = (await cluster.write("PodSecurity", new=new, old=old)).outcome.warnings
    level = policy_of(new["metadata"]["labels"])[0].enforce
    assert warnings == (
        [
            f'existing pods in namespace "n" violate the new PodSecurity enforce level "{level}"',
            "a (and 3 other pods): host namespaces",
        ]
        if warned
        else []
    )
