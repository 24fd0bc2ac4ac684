"""kubectl as several users of a server with RBAC, in the profile cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from noxu.testing.handle import Noxu

NAMESPACE: Final = """
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: devs, namespace: team}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: devs}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
"""
AGGREGATED: Final = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: view-leases, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch]}]
"""
ROLE: Final = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: pods, namespace: team}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: pods, namespace: team}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: jane}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: pods}
"""

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(tmp_path_factory.mktemp("cluster"), [NAMESPACE], profile="cluster", tls=True) as server:
        yield server


@pytest.fixture
def kubectl(cluster: Noxu, kubectls: list[Path], tmp_path: Path) -> Kubectl:
    """`kubectl(user, arguments, input)` is what kubectl prints, errors included; "" is the administrator."""
    kubeconfigs = {"": cluster.kubeconfig}

    def run(user: str, arguments: str, text: str = "") -> str:
        if user not in kubeconfigs:
            kubeconfigs[user] = cluster.user(user, groups=["devs"]).kubeconfig
        program = kubectls[0] / "kubectl"
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(kubeconfigs[user])}
        command = [str(program), *arguments.split()]
        done = subprocess.run(
            command, env=environment, input=text, capture_output=True, text=True, check=False, timeout=60
        )
        return done.stdout + done.stderr

    return run


SESSIONS: list[tuple[str, str, str, str]] = [
    ("what a role grants", "dev", "auth can-i list pods -n team", "yes\n"),
    ("what it does not grant", "dev", "auth can-i create pods -n team", "no\n"),
    ("elsewhere", "dev", "auth can-i list pods -n default", "no\n"),
    ("an aggregated rule", "dev", "auth can-i watch leases.coordination.k8s.io -n team", "yes\n"),
    ("a path", "dev", "auth can-i get /version", "yes\n"),
    ("the administrator", "", "auth can-i * *", "yes\n"),
    ("another user", "", "auth can-i list pods -n team --as somebody --as-group devs", "yes\n"),
    ("another user without its group", "", "auth can-i list pods -n team --as somebody", "no\n"),
    ("a service account", "", "auth can-i list pods -n team --as system:serviceaccount:team:default", "no\n"),
    ("a refusal", "dev", "get secrets -n team",
     'Error from server (Forbidden): secrets is forbidden: User "dev" cannot list resource "secrets" in API group "" in the '
     'namespace "team"\n'),
    ("a refusal of one object", "dev", "delete pod a -n default",
     'Error from server (Forbidden): pods "a" is forbidden: User "dev" cannot delete resource "pods" in API group "" in the '
     'namespace "default"\n'),
    ("an impersonation", "dev", "get pods -n team --as root",
     'Error from server (Forbidden): pods is forbidden: User "dev" cannot impersonate-on:user-info:list resource "pods" in API '
     'group "" in the namespace "team"\n'),
    ("what is allowed", "dev", "get pods -n team", "No resources found in team namespace.\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("user", "arguments", "expected"), [row[1:] for row in SESSIONS], ids=[row[0] for row in SESSIONS]
)
def test_kubectl(kubectl: Kubectl, user: str, arguments: str, expected: str) -> None:
    kubectl("", "apply -f -", AGGREGATED)
    found = kubectl(user, arguments)
    assert "".join(line for line in found.splitlines(keepends=True) if not line.startswith("Warning:")).endswith(
        expected
    )


def test_the_list_of_what_a_user_may_do(kubectl: Kubectl) -> None:
    listed = {tuple(line.split()) for line in kubectl("dev", "auth can-i --list -n team").splitlines()}
    assert ("configmaps", "[]", "[]", "[get", "list", "watch]") in listed
    assert ("selfsubjectreviews.authentication.k8s.io", "[]", "[]", "[create]") in listed
    assert ("[/healthz]", "[]", "[get]") in listed


def test_reconcile_adds_what_is_missing(kubectl: Kubectl) -> None:
    assert "role.rbac.authorization.k8s.io/pods reconciled" in kubectl("", "auth reconcile -f -", ROLE)
    assert kubectl("jane", "auth can-i list pods -n team") == "yes\n"
    wider = ROLE.replace("[get, list]", "[get, list, delete]")
    assert "missing rules added" in kubectl("", "auth reconcile -f -", wider)
    assert kubectl("jane", "auth can-i delete pods -n team") == "yes\n"
    refused = kubectl("dev", "get role pods -n team")  # kubectl 1.37 itself crashes if `auth reconcile` is refused
    assert 'User "dev" cannot get resource "roles"' in refused
