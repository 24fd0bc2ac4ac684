"""One corrupt row makes one object unreadable. The server serves all others and explains the remedy."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.client import Answer, Client
from noxu.config import Config
from noxu.process.server import Server

pytestmark = pytest.mark.slow(every=5)

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
KEY = "/registry/configmaps/default/b"
OPTION = "ignoreStoreReadErrorWithClusterBreakingPotential"


def serve(directory: Path, use: Callable[[Client], None]) -> None:
    """Run a server on a data directory while `use` uses it."""

    def run_client(url: str) -> None:
        with Client(url) as client:
            use(client)

    async def run() -> None:
        async with Server(Config(port=0, data=directory, profile="envtest")) as server:
            await asyncio.to_thread(run_client, server.url)

    asyncio.run(run())


def config_map(name: str, value: str = "v") -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}}


@pytest.fixture
def corrupt(tmp_path: Path) -> Path:
    """A data directory with the config maps a, b and c. One bit of b is flipped."""

    def fill(client: Client) -> None:
        for name in "abc":
            assert client.send("POST", CONFIG_MAPS, config_map(name)).code == 201

    serve(tmp_path, fill)
    with sqlite3.connect(tmp_path / "noxu.db") as connection:
        [(revision, value)] = connection.execute("SELECT revision, value FROM log WHERE name = 'b'").fetchall()
        flipped = bytearray(value)
        flipped[value.index(b'"data"') + 2] ^= 1
        connection.execute("UPDATE log SET value = ? WHERE revision = ?", (bytes(flipped), revision))
    connection.close()
    return tmp_path


def is_corrupt_object_error(answer: Answer) -> bool:
    text = f"StorageError: corrupt object, Code: 7, Key: {KEY}, ResourceVersion: 0, AdditionalErrorMsg: object not decodable"
    return answer.code == 500 and text in answer.body["message"] and OPTION in answer.body["message"]


def test_requests_for_other_objects_succeed(corrupt: Path) -> None:
    def use(client: Client) -> None:
        assert client.send("GET", f"{CONFIG_MAPS}/a").body["data"] == {"k": "v"}
        assert client.send("PUT", f"{CONFIG_MAPS}/c", config_map("c", "new")).code == 200
        assert client.send("POST", CONFIG_MAPS, config_map("d")).code == 201
        for method, path, body in (
            ("GET", f"{CONFIG_MAPS}/b", None),
            ("PUT", f"{CONFIG_MAPS}/b", config_map("b")),
            ("POST", CONFIG_MAPS, config_map("b")),
            ("DELETE", f"{CONFIG_MAPS}/b", None),
        ):
            assert is_corrupt_object_error(client.send(method, path, body)), method
        assert client.send("GET", "/readyz").code == 200

    serve(corrupt, use)


def test_a_list_that_contains_the_corrupt_object_fails(corrupt: Path) -> None:
    def use(client: Client) -> None:
        for path in (CONFIG_MAPS, "/api/v1/configmaps"):
            answer = client.send("GET", path)
            assert (answer.code, answer.body["reason"]) == (500, "StorageReadError")
            (cause,) = answer.body["details"]["causes"]
            assert (cause["reason"], cause["field"]) == ("UnexpectedServerResponse", KEY)
        assert client.send("GET", "/api/v1/namespaces/kube-public/configmaps").body["items"] == []

    serve(corrupt, use)


def test_the_corrupt_object_can_be_deleted_with_an_option(corrupt: Path) -> None:
    def use(client: Client) -> None:
        dry = client.send("DELETE", f"{CONFIG_MAPS}/b", {OPTION: True, "dryRun": ["All"]})
        assert dry.code == 200
        assert is_corrupt_object_error(client.send("GET", f"{CONFIG_MAPS}/b"))
        gone = client.send("DELETE", f"{CONFIG_MAPS}/b", {OPTION: True})
        assert (gone.code, gone.body["details"]) == (200, {"name": "b", "kind": "ConfigMap"})
        assert client.send("GET", f"{CONFIG_MAPS}/b").code == 404
        assert [item["metadata"]["name"] for item in client.send("GET", CONFIG_MAPS).body["items"]] == ["a", "c"]
        assert client.send("POST", CONFIG_MAPS, config_map("b")).code == 201

    serve(corrupt, use)


def test_the_option_changes_nothing_for_intact_objects(corrupt: Path) -> None:
    def use(client: Client) -> None:
        assert client.send("DELETE", f"{CONFIG_MAPS}/a", {OPTION: True}).body["details"]["kind"] == "configmaps"
        assert client.send("DELETE", f"{CONFIG_MAPS}/nothing?{OPTION}=true").code == 404

    serve(corrupt, use)
