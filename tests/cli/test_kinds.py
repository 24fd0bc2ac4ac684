"""--kinds: the kinds of another server's OpenAPI documents are served, stored and shown to kubectl."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.client import Client
from noxu.config import Config, StartError
from noxu.process import server
from noxu.testing.handle import Noxu
from tests.crd.test_openapi_kinds import GROUP, ROOT, V3
from tests.optional import needs_program


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "metrics.json").write_text(json.dumps(V3))
    return folder


@pytest.fixture
def started(documents: Path, tmp_path: Path) -> Callable[[Callable[[str], None]], None]:
    """Calls a function with the URL of a server, in a thread."""

    def use(work: Callable[[str], None]) -> None:
        async def main() -> None:
            config = Config(port=0, kinds=(documents,), kubeconfig=tmp_path / "kubeconfig")
            async with server.Server(config) as running:
                await asyncio.to_thread(work, running.url)

        asyncio.run(main())

    return use


NODE = {
    "apiVersion": f"{GROUP}/v1beta1",
    "kind": "NodeMetrics",
    "metadata": {"name": "n"},
    "window": "10s",
    "usage": {"cpu": "250m", "memory": "1Gi"},
}


def test_objects_are_stored_by_their_schema(started: Any) -> None:
    def work(url: str) -> None:
        with Client(url) as client:
            made = client.send("POST", f"{ROOT}/nodes", {**NODE, "unknown": 1})
            assert (made.code, made.body["usage"], "unknown" in made.body) == (201, NODE["usage"], False)
            refused = client.send("POST", f"{ROOT}/nodes", {**NODE, "metadata": {"name": "m"}, "window": 1})
            assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (422, "window")
            pod = {
                "apiVersion": f"{GROUP}/v1beta1",
                "kind": "PodMetrics",
                "metadata": {"name": "p"},
                "containers": [{"name": "c"}],
            }
            assert client.send("POST", f"{ROOT}/namespaces/default/pods", pod).code == 201
            assert [item["metadata"]["name"] for item in client.send("GET", f"{ROOT}/pods").body["items"]] == ["p"]
            crds = client.send("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions").body["items"]
            assert crds == [], "They are no definitions of the API."

    started(work)


@needs_program("kubectl")
def test_kubectl_top_shows_metrics(started: Any, tmp_path: Path) -> None:
    def work(url: str) -> None:
        with Client(url) as client:
            node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "memory": "4Gi"}}}
            assert client.send("POST", "/api/v1/nodes", node).code == 201
            assert client.send("POST", f"{ROOT}/nodes", NODE).code == 201
        kubeconfig = tmp_path / "k"
        kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}],
        }))  # fmt: skip
        command = [
            "kubectl",
            "--kubeconfig",
            str(kubeconfig),
            "--cache-dir",
            str(tmp_path / "cache"),
            "top",
            "nodes",
            "--no-headers",
        ]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.stdout.split() == ["n", "250m", "25%", "1024Mi", "25%"], ran.stderr

    started(work)


BUDGETS = "/apis/policy/v1beta1/namespaces/{namespace}/poddisruptionbudgets"


def test_another_version_of_a_built_in_kind_is_one_of_its_views(tmp_path: Path) -> None:
    """Controllers of the cluster find its objects, and clients of the version that is built in."""
    kind = {"group": "policy", "version": "v1beta1", "kind": "PodDisruptionBudget"}
    schemas = {"PodDisruptionBudget": {"type": "object", "x-kubernetes-group-version-kind": [kind]}}
    listing = {"get": {"x-kubernetes-action": "list", "x-kubernetes-group-version-kind": kind}}
    document = tmp_path / "policy.json"
    document.write_text(json.dumps({"paths": {BUDGETS: listing}, "components": {"schemas": schemas}}))
    wanted: Any = {
        "apiVersion": "policy/v1beta1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "a"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    }
    with Noxu(kinds=document, nodes=0) as noxu:
        noxu.create(wanted)
        noxu.idle()
        found = noxu.get("policy/v1/PodDisruptionBudget", "a")
        assert (found["apiVersion"], found["spec"]) == ("policy/v1", wanted["spec"])
        assert found["status"]["observedGeneration"] == 1, "The disruption controller has seen it."
        old = noxu.get("policy/v1beta1/PodDisruptionBudget", "a")
        assert (old["apiVersion"], old["status"]) == ("policy/v1beta1", found["status"])


REFUSED = [
    ("a file that is absent", "missing.json", None, "missing.json: no such file or directory"),
    ("a file that is no document", "a.json", {"kind": "List", "items": []}, "a.json"),
    ("a document without kinds", "a.json", {"paths": {}, "definitions": {}}, "a.json: this is not an OpenAPI document"),
]


@pytest.mark.parametrize(("name", "content", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_the_start_fails_with_the_reason(tmp_path: Path, name: str, content: Any, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(json.dumps(content))

    async def main() -> None:
        async with server.Server(Config(port=0, kinds=(path,))):
            raise AssertionError("it must not start")

    with pytest.raises(StartError, match="--kinds") as raised:
        asyncio.run(main())
    assert message in str(raised.value)
