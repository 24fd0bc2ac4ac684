"""A server in this process: it starts, takes manifests in every form, and leaves nothing behind."""

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

from apiserver.api.errors import ApiError
from apiserver.manifests import LoadError
from apiserver.server import StartError
from apiserver.testing.handle import Noxu

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def get(noxu: Noxu, path: str) -> Any:
    with urllib.request.urlopen(noxu.url + path) as answer:
        return json.load(answer)


def test_it_answers_where_the_kubeconfig_says(noxu: Noxu) -> None:
    config = yaml.safe_load(noxu.kubeconfig.read_text())
    assert config["clusters"][0]["cluster"]["server"] == noxu.url
    assert get(noxu, "/version")["major"] == "1"


def test_stopping_frees_everything(tmp_path: Path) -> None:
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


def test_servers_side_by_side_do_not_share_objects(noxu: Noxu, tmp_path: Path) -> None:
    noxu.apply(CONFIG_MAP)
    with Noxu(tmp_path) as other:
        assert get(other, "/api/v1/namespaces/default/configmaps")["items"] == []


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


def test_what_is_applied_is_not_changed(noxu: Noxu) -> None:
    before = json.dumps(CONFIG_MAP)
    noxu.apply(CONFIG_MAP)
    assert json.dumps(CONFIG_MAP) == before


def test_refusals_are_the_servers(noxu: Noxu) -> None:
    with pytest.raises(ApiError, match=r'ConfigMap "a" is invalid: data\[a/b\]: Invalid value: "a/b"') as error:
        noxu.apply({**CONFIG_MAP, "data": {"a/b": "c"}})
    assert (error.value.code, error.value.reason) == (422, "Invalid")


UNREADABLE = {
    "a file that is not there": ("nowhere.yaml", "no such file"),
    "text that is not YAML": ("a: [\n", "did not find"),
    "text without a kind": ("a: b\n", "no kind"),
}


@pytest.mark.parametrize(("source", "why"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_told(source: str, why: str, noxu: Noxu) -> None:
    with pytest.raises(LoadError, match=why):
        noxu.apply(source)


def test_what_cannot_be_loaded_at_the_start_is_told(tmp_path: Path) -> None:
    noxu = Noxu(tmp_path, [{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}])
    with pytest.raises(StartError, match='no matches for kind "Widget"'):
        noxu.start()
    assert not noxu.kubeconfig.exists()


async def test_async_tests_may_wait_for_it(noxu: Noxu) -> None:
    await asyncio.to_thread(noxu.apply, CONFIG_MAP)
    assert (await asyncio.to_thread(get, noxu, "/api/v1/configmaps"))["items"][0]["metadata"]["name"] == "a"
