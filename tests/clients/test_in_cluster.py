"""A client in a pod: its host and port from the environment, its token and CA from files, its rights from a Role."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from noxu.apiserver.testing.handle import Noxu
from tests.optional import require_package
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


def _printed(program: str, *arguments: object) -> str:
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
    ).stdout
