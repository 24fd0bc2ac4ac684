"""/metrics of a server: what a scenario produces, that Prometheus can read it, and that scrapes do not disturb others."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from noxu.apiserver.config import Config
from noxu.apiserver.server import Server
from noxu.storage.types import Prefix, Unavailable
from tests.http.exchanges import MAPS
from tests.timing import eventually_async

DOCUMENTED = Path(__file__).parents[2] / "docs" / "metrics.md"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Client:
    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, str]:
        """(code, Content-Type, body)."""
        async with self.session.request(method, self.server.url + path, json=body, headers=headers) as answer:
            return answer.status, answer.headers["Content-Type"], await answer.text()

    async def scrape(self, path: str = "/metrics") -> Samples:
        code, content_type, text = await self.send("GET", path)
        assert (code, content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in parse(text)
            for sample in family.samples
        }

    async def value(self, name: str, /, **labels: str) -> float:
        """The sum of all samples of that name with these labels."""
        found = await self.scrape()
        return sum(
            value for (one, given), value in found.items() if one == name and labels.items() <= dict(given).items()
        )


@contextlib.asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[Client]:
    async with Server(Config(port=0, **options)) as server, aiohttp.ClientSession() as session:
        yield Client(server, session)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with serving() as found:
        yield found


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


async def test_requests_are_counted(client: Client) -> None:
    for name in "ab":
        await client.send("POST", MAPS, config_map(name))
    await client.send("GET", f"{MAPS}/none")
    about = {"resource": "configmaps", "version": "v1", "scope": "resource", "component": "apiserver"}
    assert await client.value("apiserver_request_total", verb="POST", code="201", **about) == 2
    assert await client.value("apiserver_request_total", verb="GET", code="404", **about) == 1
    assert await client.value("apiserver_request_duration_seconds_count", verb="POST", **about) == 2
    assert await client.value("apiserver_request_body_size_bytes_sum", resource="configmaps", verb="create") > 100
    assert await client.value("apiserver_response_sizes_sum", resource="configmaps", verb="GET") > 100


async def test_objects_are_counted_in_collections_that_nothing_has_read_too(client: Client) -> None:
    before = await client.value("apiserver_resource_objects", group="", resource="configmaps")
    await client.send("POST", MAPS, config_map("a"))
    assert await client.value("apiserver_resource_objects", group="", resource="configmaps") == before + 1
    assert await client.value("apiserver_storage_objects", resource="configmaps") == before + 1
    assert await client.value("apiserver_storage_objects", resource="deployments.apps") == 0
    assert "deployments.apps" not in client.server.plane.cache.collections
    assert [dict(labels) for name, labels in await client.scrape() if name == "apiserver_resource_objects"].count(
        {"group": "", "resource": "events"}
    ) == 1


async def test_objects_that_cannot_be_counted_are_minus_one(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def count(prefix: Prefix) -> int:
        raise Unavailable("no")

    monkeypatch.setattr(client.server.plane.store, "count", count)
    assert await client.value("apiserver_storage_objects", resource="deployments.apps") == -1


async def test_watches_are_long_running(client: Client) -> None:
    async with client.session.get(f"{client.server.url}{MAPS}?watch=1"):
        about = {"verb": "WATCH", "resource": "configmaps", "scope": "namespace"}
        assert await client.value("apiserver_longrunning_requests", **about) == 1

    async def has_none() -> bool:
        return await client.value("apiserver_longrunning_requests") == 0

    await eventually_async(has_none)


async def test_controllers_have_queues(client: Client) -> None:
    await client.send("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    name = {"name": "serviceaccount-controller"}
    adds, done = "workqueue_adds_total", "workqueue_work_duration_seconds_count"

    async def is_idle() -> bool:
        return await client.value(adds, **name) == await client.value(done, **name) > 0

    await eventually_async(is_idle)
    assert await client.value("workqueue_depth", **name) == 0
    assert await client.value("workqueue_unfinished_work_seconds", **name) == 0
    assert await client.value("workqueue_retries_total", **name) == 0


async def test_the_results_of_health_checks_have_a_page_of_their_own(client: Client) -> None:
    for path in ("/livez", "/livez", "/readyz?exclude=ping"):
        await client.send("GET", path)
    found = await client.scrape("/metrics/slis")
    names = {name for name, _ in found}
    assert names == {"kubernetes_healthcheck", "kubernetes_healthchecks_total", "process_start_time_seconds"}

    def of(**labels: str) -> list[float]:
        return [value for (_, given), value in found.items() if dict(given) == labels]

    assert of(name="ping", type="livez") == [1]
    assert of(name="ping", type="livez", status="success") == [2]
    assert of(name="ping", type="readyz") == []


# path, code
PATHS = [
    ("/metrics", 200), ("/metrics/slis", 200), ("/metrics/", 404), ("/metrics/other", 404), ("/metrics/slis/", 404),
    ("/debug/pprof", 404), ("/debug/pprof/profile", 404), ("/debug/flags/v", 404), ("/statusz", 404), ("/flagz", 404),
    ("/logs", 404), ("/logs/", 404),
]  # fmt: skip


@pytest.mark.parametrize(("path", "code"), PATHS)
async def test_the_paths(client: Client, path: str, code: int) -> None:
    found, content_type, text = await client.send("GET", path)
    assert found == code
    if code == 404:
        assert content_type == "application/json"
        assert '"/metrics"' in text


def documented() -> list[str]:
    """The names in the tables of the documentation."""
    return re.findall(r"^\| `([a-z0-9_]+)` ", DOCUMENTED.read_text(), re.MULTILINE)


async def test_a_scrape_during_load(client: Client) -> None:
    """Each scrape is complete, and counters do not go back."""

    async def write(n: int) -> None:
        for k in range(20):
            await client.send("POST", MAPS, config_map(f"a-{n}-{k}"))

    async def scrape() -> list[float]:
        return [await client.value("apiserver_request_total", verb="POST", resource="configmaps") for _ in range(5)]

    found, *_ = await asyncio.gather(scrape(), *(write(n) for n in range(5)))
    assert found == sorted(found)
    assert await client.value("apiserver_request_total", verb="POST", resource="configmaps", code="201") == 100


async def test_every_metric_of_the_documentation_is_produced(client: Client) -> None:
    await scenario(client)
    async with client.session.get(f"{client.server.url}{MAPS}?watch=1"):
        produced = {name for path in ("/metrics", "/metrics/slis") for name, _ in await client.scrape(path)}
    families = {re.sub("_(bucket|count|sum)$", "", name) for name in produced} | produced
    assert set(documented()) - families == set()


async def test_every_metric_is_documented(client: Client) -> None:
    _, _, text = await client.send("GET", "/metrics")
    found = re.findall("^# TYPE ([a-z_]+) ([a-z]+)$", text, re.MULTILINE)
    types = dict(re.findall(r"^\| `([a-z0-9_]+)` \| ([a-z]+) \|", DOCUMENTED.read_text(), re.MULTILINE))
    assert dict(found).items() <= types.items()


async def scenario(client: Client) -> None:
    """Requests that together produce all metrics."""
    await client.send("POST", MAPS, config_map("scenario"))
    await client.send("GET", MAPS)
    await client.send("GET", "/readyz")
