"""`noxu migrate`: afterwards objects are stored in the storage version, and nothing else of them has changed."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.client import DEFINITIONS, Client
from conformance.stub import Stub
from noxu.config import Config
from noxu.process import server
from noxu.testing.handle import Noxu
from noxu_storage.snapshot import snapshot
from noxu_storage.types import Prefix
from tests.timing import HANGS_AFTER

pytestmark = pytest.mark.slow(every=6)

GROUP = "moved.example.com"
NAME = f"widgets.{GROUP}"
MERGE = "application/merge-patch+json"
SIZE = {"type": "integer", "maximum": 10}
CONVERT = {
    "v1": [["join", ["spec.host", "spec.port"], ":", "spec.address"]],
    "v2": [["split", "spec.address", ":", ["spec.host", "spec.port"]]],
}


def definition(storage: str = "v1", *, conversion: Any = None, unserved: str = "", **schema: Any) -> dict[str, Any]:
    """`schema`: more keywords of the root schema."""
    schemas = {
        "v1": {"address": {"type": "string"}, "size": SIZE},
        "v2": {"host": {"type": "string"}, "port": {"type": "string"}, "size": SIZE},
    }
    versions = [
        {
            "name": name,
            "served": name != unserved,
            "storage": name == storage,
            "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": schemas[name]}},
                    **schema,
                }
            },
        }
        for name in schemas
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
            "conversion": conversion or {"strategy": "None"},
        },
    }


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub() as stub:
        yield stub


@pytest.fixture
def webhook(stub: Stub) -> Any:
    """`spec.conversion` for a webhook that converts between v1 and v2."""
    stub.reset({"/convert": {"convert": CONVERT}})
    config = {"url": stub.fill_placeholders("{{STUB}}/convert"), "caBundle": stub.fill_placeholders("{{CA}}")}
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config}}


class RunningServer:
    """A server over a data directory, in a thread."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.url = ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with server.Server(Config(port=0, data=self.data)) as running:
            self.url = running.url
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> Client:
        self._thread.start()
        assert self._ready.wait(HANGS_AFTER)
        self.client = Client(self.url)
        return self.client

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def send(client: Client, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
    answer = client.send(method, path, body, content_type)
    assert answer.code in (200, 201), answer.body
    return answer.body


def widgets(version: str, name: str = "", namespace: str = "default") -> str:
    return f"/apis/{GROUP}/{version}/namespaces/{namespace}/widgets{f'/{name}' if name else ''}"


def create(client: Client, version: str, name: str, **spec: Any) -> Any:
    body = {"apiVersion": f"{GROUP}/{version}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
    return send(client, "POST", widgets(version), body)


def store_in(client: Client, version: str, **options: Any) -> None:
    spec = definition(version, **options)["spec"]
    send(client, "PATCH", f"{DEFINITIONS}/{NAME}", {"spec": {"versions": spec["versions"]}}, MERGE)


def stored_versions(client: Client) -> Any:
    return send(client, "GET", f"{DEFINITIONS}/{NAME}")["status"]["storedVersions"]


def stored(data: Path) -> dict[str, Any]:
    """What is stored, by name."""
    with snapshot(data / "noxu.db") as found:
        return {item.key.name: json.loads(item.value) for item in found.values(Prefix(f"{GROUP}/widgets"))}


def prepare(client: Client, conversion: Any = None) -> list[Any]:
    """Two objects are stored in v1, then v2 becomes the storage version, and a third one is stored in that."""
    send(client, "POST", DEFINITIONS, definition(conversion=conversion))
    before = [create(client, "v1", name, address=f"{name}:1", size=3) for name in "ab"]
    store_in(client, "v2")
    create(client, "v2", "c", host="c", port="1")
    return before


Run = Callable[..., Any]


# -- a data directory -------------------------------------------------------------------------------------------------


def test_a_data_directory_is_migrated(run: Run, tmp_path: Path, webhook: Any) -> None:
    with RunningServer(tmp_path / "data") as client:
        before = prepare(client, webhook)
    assert [value["apiVersion"] for value in stored(tmp_path / "data").values()] == [
        f"{GROUP}/{v}" for v in ("v1", "v1", "v2")
    ]
    ran = run("migrate --data data")
    assert ran == (0, f"{NAME}: 2 of 3 objects rewritten in v2; storedVersions are v2, were v1, v2\n", "")
    after = stored(tmp_path / "data")
    assert {value["apiVersion"] for value in after.values()} == {f"{GROUP}/v2"}
    assert [after[name]["spec"] for name in "abc"] == [
        {"host": "a", "port": "1", "size": 3},
        {"host": "b", "port": "1", "size": 3},
        {"host": "c", "port": "1"},
    ]
    for old, name in zip(before, "ab", strict=True):
        del old["metadata"]["resourceVersion"]
        assert after[name]["metadata"] == old["metadata"]
    with RunningServer(tmp_path / "data") as client:
        assert stored_versions(client) == ["v2"]
        assert send(client, "GET", widgets("v1", "a"))["spec"] == {"address": "a:1", "size": 3}


def test_a_second_migration_has_nothing_to_do(run: Run, tmp_path: Path, webhook: Any) -> None:
    with RunningServer(tmp_path / "data") as client:
        prepare(client, webhook)
    run("migrate --data data")
    assert run("migrate --data data") == (
        0,
        "nothing to migrate: all objects are stored in their storage versions\n",
        "",
    )
    output = f"{NAME}: 0 of 3 objects rewritten in v2; storedVersions are v2\n"
    assert run(f"migrate --data data {NAME}") == (0, output, "")


def test_without_a_webhook_fields_that_the_new_version_does_not_describe_are_pruned(run: Run, tmp_path: Path) -> None:
    with RunningServer(tmp_path / "data") as client:
        prepare(client)
    assert run("migrate --data data").status == 0
    assert [stored(tmp_path / "data")[name]["spec"] for name in "ab"] == [{"size": 3}, {"size": 3}]


def test_if_an_object_cannot_be_converted_stored_versions_do_not_change(
    run: Run, tmp_path: Path, webhook: Any, stub: Stub
) -> None:
    with RunningServer(tmp_path / "data") as client:
        prepare(client, webhook)
    stub.change({"/convert": {"result": {"status": "Failure", "message": "not today"}}})
    ran = run("migrate --data data")
    why = f"conversion webhook for {GROUP}/v1, Kind=Widget failed: not today"
    assert ran.status == 1
    assert ran.out == (
        f"{NAME}: 0 of 3 objects rewritten in v2; storedVersions remain v1, v2\n"
        f"  Widget default/a: {why}\n"
        f"  Widget default/b: {why}\n"
    )
    stub.change({"/convert": {"convert": CONVERT}})
    assert run("migrate --data data --output json").json == {
        "migrations": [
            {"crd": NAME, "version": "v2", "storedVersions": ["v2"], "objects": 3, "rewritten": 2, "failures": []}
        ]
    }


def test_invalid_objects_are_reported(run: Run, tmp_path: Path) -> None:
    with RunningServer(tmp_path / "data") as client:
        prepare(client)
        store_in(client, "v2", required=["status"])
    ran = run("migrate --data data")
    assert ran.status == 1
    assert f'  Widget default/a: Widget.{GROUP} "a" is invalid: status: Required value' in ran.out


def test_a_directory_that_a_server_uses_is_refused(run: Run, tmp_path: Path) -> None:
    with RunningServer(tmp_path / "data") as client:
        prepare(client)
        ran = run("migrate --data data")
    assert ran.status == 1
    assert "in use" in ran.err
    assert "--kubeconfig data/kubeconfig" in ran.err


def test_a_missing_directory_is_not_created(run: Run, tmp_path: Path) -> None:
    ran = run("migrate --data nowhere")
    assert ran.status == 1
    assert ran.err.startswith("noxu: nowhere/noxu.db does not exist; name a data directory")
    assert not (tmp_path / "nowhere").exists()


# -- a running server -------------------------------------------------------------------------------------------------


@pytest.fixture
def client(noxu: Noxu) -> Iterator[Client]:
    with Client(noxu.url) as client:
        yield client


def test_a_running_server_is_migrated(run: Run, noxu: Noxu, client: Client, webhook: Any, stub: Stub) -> None:
    before = prepare(client, webhook)
    output = f"{NAME}: 2 of 3 objects rewritten in v2; storedVersions are v2, were v1, v2\n"
    assert run(f"migrate --kubeconfig {noxu.kubeconfig}") == (0, output, "")
    assert stored_versions(client) == ["v2"]
    stub.take_calls()
    after = [send(client, "GET", widgets("v2", name)) for name in "ab"]
    assert stub.take_calls() == []  # they are stored in v2
    for old, new in zip(before, after, strict=True):
        assert new["metadata"] | {"resourceVersion": ""} == old["metadata"] | {"resourceVersion": ""}
    assert run(f"migrate --server {noxu.url}").out.startswith("nothing to migrate")
    versions = definition("v2")["spec"]["versions"][1:]
    send(client, "PATCH", f"{DEFINITIONS}/{NAME}", {"spec": {"versions": versions}}, MERGE)


def test_failures_of_a_running_server_are_reported(
    run: Run, noxu: Noxu, client: Client, webhook: Any, stub: Stub
) -> None:
    prepare(client, webhook)
    stub.change({"/convert": {"result": {"status": "Failure", "message": "not today"}}})
    ran = run(f"migrate --server {noxu.url}")
    assert ran.status == 1
    assert "not today" in ran.err
    assert stored_versions(client) == ["v1", "v2"]


def test_a_storage_version_that_is_not_served_cannot_be_written(run: Run, noxu: Noxu, client: Client) -> None:
    prepare(client)
    store_in(client, "v2", unserved="v2")
    ran = run(f"migrate --server {noxu.url}")
    assert ran.status == 1
    assert "its storage version v2 is not served; stop the server, and migrate its data" in ran.out
    assert stored_versions(client) == ["v1", "v2"]


def test_cluster_scoped_objects(run: Run, noxu: Noxu, client: Client) -> None:
    crd = definition()
    crd["spec"]["scope"] = "Cluster"
    send(client, "POST", DEFINITIONS, crd)
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}
    send(client, "POST", f"/apis/{GROUP}/v1/widgets", body)
    store_in(client, "v2")
    assert run(f"migrate --server {noxu.url}").out.startswith(f"{NAME}: 1 of 1 objects rewritten in v2")


def test_a_missing_crd(run: Run, noxu: Noxu) -> None:
    ran = run(f"migrate --server {noxu.url} gears.example.com")
    assert ran == (1, "", "noxu: CRD gears.example.com does not exist\n")


def test_a_server_that_does_not_answer(run: Run) -> None:
    ran = run("migrate --server http://127.0.0.1:1")
    assert ran.status == 1
    assert "does not answer" in ran.err
