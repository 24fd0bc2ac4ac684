"""apiextensions-apiserver, the standalone server of custom resources, as a process of the tests.

It is built from its published source, outside of the repository (docs/etcd.md), and named by the environment variable
NOXU_APIEXTENSIONS_APISERVER, or on the PATH. It asks no other server about users: a client with a certificate of its CA,
in the group system:masters, may do everything. Admission that needs the objects of kube-apiserver is disabled.
"""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from noxu.security.certificates import CertifiedKey, new_authority
from tests.etcd_server import free_ports
from tests.timing import eventually

VARIABLE: Final = "NOXU_APIEXTENSIONS_APISERVER"
PROGRAM: Final = os.environ.get(VARIABLE) or shutil.which("apiextensions-apiserver") or ""
LACKING: Final = "" if PROGRAM else "program: apiextensions-apiserver"
PREFIX: Final = "/registry/apiextensions.kubernetes.io"
_ADMISSION: Final = "NamespaceLifecycle,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,ValidatingAdmissionPolicy,MutatingAdmissionPolicy"
_KUBECONFIG: Final = """
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: none, user: {}}]
"""  # required, and never used


class ApiextensionsServer:
    """One server. `tls` is for clients that may do everything."""

    def __init__(self, directory: Path, etcd: str, prefix: str = PREFIX) -> None:
        self.directory = directory
        [port] = free_ports(1)
        self.url = f"https://127.0.0.1:{port}"
        authority = new_authority()
        client = authority.issue_client("test", ["system:masters"])
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "kubeconfig").write_text(_KUBECONFIG)
        (directory / "ca.crt").write_bytes(authority.certificate)
        self.tls = _client_tls(directory, client)
        self._command = [
            PROGRAM, "--bind-address", "127.0.0.1", "--secure-port", str(port), "--cert-dir", str(directory),
            "--etcd-servers", etcd, "--etcd-prefix", prefix, "--client-ca-file", str(directory / "ca.crt"),
            "--authentication-skip-lookup", "--enable-priority-and-fairness=false",
            "--disable-admission-plugins", _ADMISSION,
            *(f"--{name}={directory / 'kubeconfig'}" for name in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")),
        ]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)
        eventually(self._is_ready)

    def _is_ready(self) -> bool:
        """Whether it is ready, apart from the objects of kube-apiserver."""
        assert self.process is not None
        assert self.process.poll() is None, (self.directory / "log").read_text()
        try:
            with urllib.request.urlopen(
                f"{self.url}/readyz?exclude=informer-sync", timeout=5, context=self.tls
            ) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def kill(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


def _client_tls(directory: Path, client: CertifiedKey) -> ssl.SSLContext:
    """The server's own certificate is not verified: it makes one when it starts."""
    pair = directory / "client.pem"
    pair.write_bytes(client.certificate + client.key)
    context = ssl._create_unverified_context()
    context.load_cert_chain(pair)
    return context


@contextmanager
def running_apiextensions_server(directory: Path, etcd: str) -> Iterator[ApiextensionsServer]:
    server = ApiextensionsServer(directory, etcd)
    try:
        server.start()
        yield server
    finally:
        server.kill()
