"""A client in a pod: its host and port from the environment, its token and CA from files, its rights from a Role."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from noxu.testing.handle import Noxu
from tests.clients.test_client_go import BUILD_TIMEOUT, build
from tests.optional import require_package, skip_without_platform
from tests.timing import HANGS_AFTER

OBJECTS: Final = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: app, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: app, namespace: default}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: app, namespace: default}
subjects: [{kind: ServiceAccount, name: app, namespace: default}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: app}
"""
TOKEN: Final = """
import sys
from kubernetes import client, config

api = client.CoreV1Api(config.new_client_from_config(sys.argv[1]))
request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
print(api.create_namespaced_service_account_token("app", "default", request).status.token, end="")
"""
AUTHORITY: Final = """
import sys
from kubernetes import client, config

api = client.CoreV1Api(config.new_client_from_config(sys.argv[1]))
print(api.read_namespaced_config_map("kube-root-ca.crt", "default").data["ca.crt"], end="")
"""
POD: Final = """
import sys
from kubernetes import client
from kubernetes.config.incluster_config import InClusterConfigLoader

token, authority, host, port = sys.argv[1:]
environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
configuration = client.Configuration()
InClusterConfigLoader(token, authority, environ=environment).load_and_set(configuration)
api = client.CoreV1Api(client.ApiClient(configuration))
print([item.metadata.name for item in api.list_namespaced_config_map("default").items])
try:
    api.list_namespaced_secret("default")
except client.ApiException as error:
    print(error.status)
"""


def test_a_client_in_a_pod_has_the_rights_of_its_service_account(tmp_path: Path) -> None:
    require_package("kubernetes")
    with Noxu(tmp_path, [OBJECTS], profile="cluster", tls=True) as server:
        token, authority = tmp_path / "token", tmp_path / "ca.crt"
        token.write_text(_printed(TOKEN, server.kubeconfig))
        authority.write_text(_printed(AUTHORITY, server.kubeconfig))
        address = urlsplit(server.url)
        assert _printed(POD, token, authority, address.hostname, address.port) == "['kube-root-ca.crt']\n403\n"


MOUNTED: Final = """
set -e
mount -t tmpfs none /run
[ -e /var/run/secrets ] || mkdir -p /var/run/secrets
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
mount --bind "$1" /var/run/secrets/kubernetes.io/serviceaccount
[ -z "$2" ] || exec "$2"
"""
"""The path is fixed in client-go, so it exists in a mount namespace of the program only. /var/run is /run on most machines."""


def in_a_pod(folder: Path, program: Path | None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program whose service account is in the folder; without one, only mount it."""
    unshare = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        MOUNTED,
        "sh",
        str(folder),
        str(program or ""),
    ]
    return subprocess.run(
        unshare, check=False, env=os.environ | environment, capture_output=True, text=True, timeout=HANGS_AFTER
    )


@pytest.mark.timeout(BUILD_TIMEOUT + 600)
def test_client_go_in_a_pod_has_the_rights_of_its_service_account(tmp_path: Path) -> None:
    require_package("kubernetes")
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    if not shutil.which("unshare") or in_a_pod(folder, None).returncode != 0:
        skip_without_platform("mounts in a namespace of a user")
    program = build(tmp_path / "go", "./pod")
    with Noxu(tmp_path, [OBJECTS], profile="cluster", tls=True) as server:
        (folder / "token").write_text(_printed(TOKEN, server.kubeconfig))
        (folder / "ca.crt").write_text(_printed(AUTHORITY, server.kubeconfig))
        (folder / "namespace").write_text("default")
        address = urlsplit(server.url)
        host, port = str(address.hostname), str(address.port)
        ran = in_a_pod(folder, program, KUBERNETES_SERVICE_HOST=host, KUBERNETES_SERVICE_PORT=port)
    assert (ran.returncode, ran.stdout) == (0, "kube-root-ca.crt\nForbidden\n"), ran.stdout + ran.stderr


def _printed(program: str, *arguments: object) -> str:
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
    ).stdout
