"""`noxu report`: the manners of clients of a running server, which records them from its start or from the first report."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from noxu import Noxu, cli
from noxu.config import Config
from noxu.process.server import Server

Run = Callable[..., Any]


def ask(url: str, path: str, agent: str = "operator/v1") -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("GET", path, headers={"User-Agent": agent})
    connection.getresponse().read()
    connection.close()


def test_the_formats(noxu: Noxu, run: Run) -> None:
    with noxu.fault(verbs=["list"], error={"code": 429, "retryAfter": 3600}):
        for _ in range(2):
            ask(noxu.url, "/api/v1/configmaps")
    text = run(f"report --client operator --server {noxu.url}")
    assert (text.status, text.err) == (0, "")
    assert text.out.startswith("2 requests of 1 client, 1 bad manners\n\noperator/v1: 2 requests, 2 failed\n")
    assert "1 × retry before Retry-After" in text.out
    value = json.loads(run(f"report --since 1h -o json --client operator --server {noxu.url}").out)
    assert value["clients"][0]["habits"][0]["habit"] == "early_retries"
    assert "habit: early_retries" in run(f"report -o yaml --server {noxu.url}").out
    assert run(f"report -o html --server {noxu.url}").out.startswith("<!doctype html>")


def test_the_least_roles(noxu: Noxu, run: Run) -> None:
    ask(noxu.url, "/api/v1/configmaps")
    ask(noxu.url, "/api/v1/namespaces/shop/secrets/a")
    printed = run(f"rbac --client operator --bind system:serviceaccount:shop:op --server {noxu.url}")
    assert (printed.status, printed.err) == (0, "")
    roles = list(yaml.safe_load_all(printed.out))
    assert [role["kind"] for role in roles] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert roles[2]["rules"][0]["resourceNames"] == ["a"]
    listed = json.loads(run(f"rbac --user system:anonymous --any-name --name x -o json --server {noxu.url}").out)
    assert (listed["kind"], [role["metadata"]["name"] for role in listed["items"]]) == ("List", ["x", "x"])
    assert "resourceNames" not in str(listed)
    ask(noxu.url, "/version")
    assert "nonResourceURLs" not in run(f"rbac --client operator --server {noxu.url}").out
    assert "nonResourceURLs" in run(f"rbac --client operator --discovery --since 1h --server {noxu.url}").out
    nothing = run(f"rbac --client kubectl --server {noxu.url}")
    assert (nothing.status, nothing.out) == (1, "")
    assert "0 requests were recorded, and none of them needs a role" in nothing.err


def test_what_is_refused(noxu: Noxu, run: Run) -> None:
    refused = run(f"report --since yesterday --server {noxu.url}")
    assert (refused.status, refused.out) == (1, "")
    assert "since: 'yesterday' is no duration" in refused.err


@pytest.mark.parametrize("recorded", [True, False])
async def test_from_when_requests_are_recorded(recorded: bool) -> None:
    async with Server(Config(port=0, record_requests=recorded)) as server:
        await asyncio.to_thread(ask, server.url, "/api/v1/configmaps")
        record = server.interventions.requests()
        assert [request.verb for request in record.since()] == (["list"] if recorded else [])
        await asyncio.to_thread(ask, server.url, "/api/v1/configmaps/")
        assert [request.verb for request in record.since()][-1] == "list"
        assert server.interventions.requests() is record


def test_the_option_of_the_server() -> None:
    assert cli.options_of("serve", ["--record-requests", "--memory"]).config.record_requests
    assert not cli.options_of("serve", ["--memory"]).config.record_requests
