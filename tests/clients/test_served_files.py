"""Files that a server has loaded, and kubectl: `kubectl apply` of the same files has nothing to change, nor to warn about."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from noxu.testing.handle import Noxu
from tests.clients.conftest import WIDGETS
from tests.timing import HANGS_AFTER

OBJECTS: Final = """
apiVersion: v1
kind: Namespace
metadata: {name: attic}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: a, namespace: attic, annotations: {text: '<é & "x">'}}
spec: {size: 3, parts: [{name: x, count: 1}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{name: http, port: 80}, {name: https, port: 443}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, env: [{name: A, value: b}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: a, image: b, resources: {limits: {cpu: 100m}}}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
CHANGES: Final = (
    "label widget a -n attic team=x",
    "scale deployment web --replicas 5",
    "set env deployment/web C=d",
)


@pytest.fixture
def kubectl(tmp_path: Path, kubectls: list[Path]) -> Callable[[str], subprocess.CompletedProcess[str]]:
    def run(line: str) -> subprocess.CompletedProcess[str]:
        environment = {"KUBECONFIG": "data/kubeconfig", "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        return subprocess.run(
            [str(kubectls[-1] / "kubectl"), *line.split()],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANGS_AFTER, check=False,
        )  # fmt: skip

    return run


def test_kubectl_finds_what_it_would_have_applied(
    tmp_path: Path, kubectl: Callable[[str], subprocess.CompletedProcess[str]]
) -> None:
    (tmp_path / "crd.yaml").write_text(WIDGETS)
    (tmp_path / "objects.yaml").write_text(OBJECTS)
    files = [tmp_path / "crd.yaml", tmp_path / "objects.yaml"]
    with Noxu(tmp_path / "data", files, data=tmp_path / "store"):
        ran = kubectl("apply -f crd.yaml -f objects.yaml")
        assert ran.stderr == ""
        assert [line.rpartition(" ")[2] for line in ran.stdout.splitlines()] == ["unchanged"] * 7
        for line in CHANGES:
            assert kubectl(line).returncode == 0
    with Noxu(tmp_path / "data", files, data=tmp_path / "store") as noxu:
        assert noxu.get("Widget", "a", namespace="attic")["metadata"]["labels"] == {"team": "x"}
        deployment = noxu.get("Deployment", "web")["spec"]
        assert deployment["replicas"] == 5
        assert [each["name"] for each in deployment["template"]["spec"]["containers"][0]["env"]] == ["A", "C"]
        ran = kubectl("apply --server-side -f crd.yaml -f objects.yaml")
        assert (ran.returncode, ran.stderr) == (0, "")
