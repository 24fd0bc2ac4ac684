"""A server that was stopped is started again: at its address, with what it had, as after a restart of a real one."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from noxu import Noxu, Stopped, WatchEvent
from tests.testing.widgets import DEFINITION, size, widget


def contents(noxu: Noxu) -> dict[str, bytes]:
    """The files of its clients."""
    files = [noxu.kubeconfig, *(user.kubeconfig for user in noxu.users.values())]
    return {str(file): file.read_bytes() for file in files}


KINDS: dict[str, dict[str, Any]] = {
    "in memory": {},
    "with RBAC": {"authorization_modes": "RBAC"},
    "over TLS": {"tls": True},
}


@pytest.mark.parametrize("kind", [*KINDS, "in a directory", "in a directory, over TLS"])
def test_clients_find_the_server_as_it_was(kind: str, tmp_path: Path) -> None:
    options = KINDS.get(kind, {"data": tmp_path / "data", "tls": "TLS" in kind})
    with Noxu(manifests=[DEFINITION], users={"jane": ["system:masters"]}, **options) as noxu:
        jane = noxu.users["jane"]
        created = noxu.create(widget("a"))
        old, seen = contents(noxu), []
        noxu.validating("widgets.example.com")(lambda request: seen.append(request["userInfo"]["username"]))
        noxu.stop()
        with pytest.raises(Stopped, match="the server does not run"):
            noxu.get(created)
        assert not noxu.kubeconfig.exists()
        noxu.start()
        assert contents(noxu) == old
        assert noxu.get(created) == created
        assert jane.get("widgets", "a") == noxu.users["jane"].get(created)
        assert size(jane.patch(created, {"spec": {"size": 4}})) == 4
        assert seen == ["jane"]
        assert [each.name for each in noxu.requests("widgets", verb="patch", user="jane", by_handle=True)] == ["a"]


def test_what_has_changed_is_not_loaded_again(tmp_path: Path) -> None:
    with Noxu(manifests=[DEFINITION, widget("a"), widget("b")], data=tmp_path / "data") as noxu:
        noxu.patch("widgets", "a", {"spec": {"size": 3}})
        noxu.delete("widgets", "b")
        noxu.stop()
        noxu.start()
        assert [(item["metadata"]["name"], size(item)) for item in noxu.list("widgets")] == [("a", 3)]


def test_a_watch_goes_on_where_it_was() -> None:
    with Noxu(manifests=[DEFINITION]) as noxu:
        version = noxu.create(widget("a"))["metadata"]["resourceVersion"]
        noxu.create(widget("b"))
        noxu.stop()
        noxu.start()
        noxu.create(widget("c"))
        with noxu.watch("widgets", since=version) as events:
            found: list[WatchEvent] = [next(events), next(events)]
        assert [event.object["metadata"]["name"] for event in found] == ["b", "c"]


def test_functions_convert_after_a_restart() -> None:
    with Noxu(manifests=[DEFINITION]) as noxu:

        @noxu.converting("widgets.example.com")
        def convert(value: dict[str, Any], version: str) -> None:
            value.setdefault("metadata", {}).setdefault("annotations", {})["at"] = version

        noxu.create(widget("a"))
        noxu.stop()
        noxu.start()
        assert noxu.get("widgets.v1alpha1.example.com", "a")["metadata"]["annotations"] == {
            "at": "example.com/v1alpha1"
        }


async def test_in_a_coroutine_both_are_awaited() -> None:
    async with Noxu(manifests=[DEFINITION], profile="envtest") as noxu, aiohttp.ClientSession() as session:
        for number in range(3):
            created = await noxu.create(widget(f"w{number}"))
            async with session.get(f"{noxu.url}/apis/example.com/v1/widgets") as answer:
                assert len((await answer.json())["items"]) == number + 1
            await noxu.stop()
            with pytest.raises(aiohttp.ClientError):
                await session.get(noxu.url)
            assert await noxu.start() is noxu
            assert await noxu.get(created) == created


def test_a_connection_of_a_client_ends_and_its_port_is_used_again() -> None:
    """The server closes it first, so that its side is in TIME_WAIT."""
    with Noxu(profile="envtest") as noxu:
        port = int(noxu.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert client.recv(9) == b"HTTP/1.1 "
            noxu.stop()
            while client.recv(65536):
                pass
        noxu.start()
        assert noxu.url.endswith(f":{port}")
        noxu.list("namespaces")


def test_a_start_that_fails_can_be_repeated() -> None:
    with Noxu(profile="envtest") as noxu:
        port = int(noxu.url.rpartition(":")[2])
        noxu.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        noxu.stop()
        with socket.create_server(("127.0.0.1", port)), pytest.raises(Exception, match="another server is using it"):
            noxu.start()
        noxu.start()
        assert noxu.get("configmaps", "a")
