"""A server in this process: it starts, accepts manifests in every form, and frees its resources when it stops."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from noxu.api.errors import ApiError
from noxu.config import StartError
from noxu.manifests.documents import LoadError
from noxu.testing.handle import Noxu

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def get(noxu: Noxu, path: str) -> Any:
    with urllib.request.urlopen(noxu.url + path) as answer:
        return json.load(answer)


def test_the_kubeconfig_contains_the_url(noxu: Noxu) -> None:
    config = yaml.safe_load(noxu.kubeconfig.read_text())
    assert config["clusters"][0]["cluster"]["server"] == noxu.url
    assert get(noxu, "/version")["major"] == "1"


def test_stopping_frees_all_resources(tmp_path: Path) -> None:
    threads = threading.active_count()
    with Noxu(tmp_path) as noxu:
        port = int(noxu.url.rpartition(":")[2])
    assert not noxu.kubeconfig.exists()
    assert threading.active_count() <= threads
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))
    noxu.stop()


def test_many_servers_one_after_the_other(tmp_path: Path) -> None:
    with Noxu(tmp_path):
        pass
    before = _open_files()
    for _ in range(10):
        with Noxu(tmp_path):
            pass
    assert _open_files() <= before + 2


def test_concurrent_servers_do_not_share_objects(noxu: Noxu, tmp_path: Path) -> None:
    noxu.apply(CONFIG_MAP)
    with Noxu(tmp_path) as other:
        names = [item["metadata"]["name"] for item in get(other, "/api/v1/namespaces/default/configmaps")["items"]]
        assert names == ["kube-root-ca.crt"]


SOURCES = {
    "an object": lambda _: CONFIG_MAP,
    "text in YAML": lambda _: yaml.safe_dump(CONFIG_MAP),
    "text in JSON": lambda _: json.dumps(CONFIG_MAP, indent=1),
    "a file": lambda path: path / "a.yaml",
    "the name of a file": lambda path: str(path / "a.yaml"),
    "a directory": lambda path: path,
    "a List": lambda _: {"apiVersion": "v1", "kind": "List", "items": [CONFIG_MAP]},
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_a_source_may_be(source: Any, noxu: Noxu, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(CONFIG_MAP))
    [stored] = noxu.apply(source(tmp_path))
    assert stored["data"] == {"a": "b"}
    assert get(noxu, "/api/v1/namespaces/default/configmaps/a") == stored


def test_applying_again_replaces(noxu: Noxu) -> None:
    [first] = noxu.apply(CONFIG_MAP)
    [second] = noxu.apply({**CONFIG_MAP, "data": {"c": "d"}})
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert second["data"] == {"c": "d"}


def test_applying_what_was_exported_replaces(noxu: Noxu) -> None:
    exported = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "exported", "uid": "3932ee50-4c2b-4e77-9bfb-45eeb4ec220f", "resourceVersion": "7"}}  # fmt: skip
    first, second = (noxu.apply(exported)[0] for _ in range(2))
    assert first["metadata"]["uid"] == second["metadata"]["uid"] != exported["metadata"]["uid"]


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_applying_again_keeps_what_the_server_has_added(noxu: Noxu, kind: str) -> None:
    """The selector of a Job, and the token of a pod's service account: without them an immutable spec would change."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}
    spec = pod if kind == "Pod" else {"template": {"metadata": {"labels": {"c": "d"}}, "spec": pod}}
    value = {"apiVersion": "v1" if kind == "Pod" else "batch/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    noxu.wait("serviceaccounts", "default", "create")
    first, second = (noxu.apply(value)[0] for _ in range(2))
    assert (first["spec"], first["metadata"]["uid"]) == (second["spec"], second["metadata"]["uid"])
    assert ("volumes" if kind == "Pod" else "selector") in second["spec"]
    labelled = noxu.apply({**value, "metadata": {"name": "a", "labels": {"e": "f"}}})[0]
    assert labelled["metadata"]["labels"]["e"] == "f"
    assert "e" not in noxu.apply(value)[0]["metadata"].get("labels", {})


def test_applying_does_not_change_the_argument(noxu: Noxu) -> None:
    before = json.dumps(CONFIG_MAP)
    noxu.apply(CONFIG_MAP)
    assert json.dumps(CONFIG_MAP) == before


def test_errors_are_those_of_the_server(noxu: Noxu) -> None:
    with pytest.raises(ApiError, match=r'ConfigMap "a" is invalid: data\[a/b\]: Invalid value: "a/b"') as error:
        noxu.apply({**CONFIG_MAP, "data": {"a/b": "c"}})
    assert (error.value.code, error.value.reason) == (422, "Invalid")


UNREADABLE = {
    "a missing file": ("nowhere.yaml", "no such file"),
    "text that is not YAML": ("a: [\n", "did not find"),
    "text without a kind": ("a: b\n", "no kind"),
}


@pytest.mark.parametrize(("source", "why"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_unreadable_sources_raise_load_error(source: str, why: str, noxu: Noxu) -> None:
    with pytest.raises(LoadError, match=why):
        noxu.apply(source)


def test_sources_that_cannot_be_loaded_at_the_start_raise_start_error(tmp_path: Path) -> None:
    noxu = Noxu(tmp_path, [{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}])
    with pytest.raises(StartError, match='no matches for kind "Widget"'):
        noxu.start()
    assert not noxu.kubeconfig.exists()


async def test_it_can_be_used_from_async_tests(noxu: Noxu) -> None:
    await asyncio.to_thread(noxu.apply, CONFIG_MAP)
    assert (await asyncio.to_thread(get, noxu, "/api/v1/configmaps"))["items"][0]["metadata"]["name"] == "a"
