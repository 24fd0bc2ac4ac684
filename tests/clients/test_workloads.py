"""Operators that wait for a StatefulSet, a Service and a PodDisruptionBudget, in Go, Python and Java: docs/workloads.md.

They are written as for a cluster, and run to Ready on simulated nodes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from noxu.testing.handle import Noxu
from tests.clients.conftest import Session
from tests.clients.test_client_go import BUILD_TIMEOUT, build
from tests.docs.blocks import blocks
from tests.optional import require_package, require_program
from tests.timing import HANGS_AFTER, eventually

PROGRAMS: Final = Path(__file__).with_name("programs")
DEFINITION: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: databases, singular: database, kind: Database}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {replicas: {type: integer, default: 2}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {ready: {type: boolean}}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(tmp_path_factory.mktemp("server"), [DEFINITION], nodes=2) as server:
        yield server


def go(server: Noxu, namespace: str, folder: Path) -> list[str]:
    return [str(build(folder / "module", "./database")), str(server.kubeconfig), namespace]


def python(server: Noxu, namespace: str, _: Path) -> list[str]:
    for package in ("kopf", "kubernetes"):
        require_package(package)
    return [sys.executable, str(PROGRAMS / "database_kopf.py"), str(server.kubeconfig), namespace]


def java(server: Noxu, namespace: str, _: Path) -> list[str]:
    return [require_program("java"), "-XX:TieredStopAtLevel=1", str(PROGRAMS / "Database.java"), server.url, namespace]


@pytest.mark.timeout(BUILD_TIMEOUT + 600)
@pytest.mark.parametrize("command", [go, python, java], ids=lambda command: command.__name__)
def test_an_operator_that_waits_for_workloads_comes_to_its_end(
    command: Callable[[Noxu, str, Path], list[str]],
    server: Noxu,
    new_namespace: Callable[[], str],
    tmp_path: Path,
) -> None:
    namespace, output = new_namespace(), tmp_path / "output"
    words = command(server, namespace, tmp_path)
    database = {"apiVersion": "example.com/v1", "kind": "Database", "metadata": {"name": "db", "namespace": namespace}}

    def ready() -> object:
        assert process.poll() is None, output.read_text()
        return server.get("databases", "db", namespace=namespace).get("status", {}).get("ready")

    with output.open("wb") as file, subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT) as process:
        try:
            server.create({**database, "spec": {}})
            eventually(lambda: ready() is True)
            assert [pod["metadata"]["name"] for pod in server.list("pods", namespace=namespace)] == ["db-0", "db-1"]
            claims = server.list("persistentvolumeclaims", namespace=namespace)
            assert [claim["status"]["phase"] for claim in claims] == ["Bound", "Bound"]
            server.pods.fail(f"{namespace}/db-1", "crash-loop")
            server.delete("pods", "db-1", namespace=namespace)
            eventually(lambda: ready() is False)
            server.pods.ready(f"{namespace}/db-1")
            eventually(lambda: ready() is True)
            server.delete(database)
            eventually(lambda: server.list("pods", namespace=namespace) == [])
        finally:
            process.kill()
            process.wait(HANGS_AFTER)


def test_the_session_of_the_page(session: Session) -> None:
    [block] = [each for each in blocks() if each.page == "docs/workloads.md" and each.language == "console"]
    session(block.text)
