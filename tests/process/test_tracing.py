"""Spans of a server arrive at a collector as OTLP over HTTP: which ones, with which parents and attributes."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from noxu import Noxu
from noxu.config import Config, StartError
from noxu.process import tracing
from noxu.process.server import Server
from tests.http.exchanges import MAPS
from tests.http.test_webhook_client import answering, http, serving
from tests.optional import has_package
from tests.timing import hang_guard

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT: Final = "00f067aa0ba902b7"
SAMPLED: Final = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
NOT_SAMPLED: Final = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
SERVER, CLIENT = 2, 3

needs_sdk: Final = pytest.mark.skipif(
    not has_package("opentelemetry.exporter.otlp.proto.http"), reason="package: opentelemetry.exporter.otlp.proto.http"
)


class Collector:
    """What a collector has received: spans, as dicts, with the resource of each."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.paths: list[str] = []

    def add(self, path: str, body: bytes) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        self.paths.append(path)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.spans += [_span(span, _attributes(resource.resource.attributes)) for span in scope.spans]

    def named(self, name: str) -> dict[str, Any]:
        [span] = [span for span in self.spans if span["name"] == name]
        return span


def _span(span: Any, resource: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": span.name,
        "kind": span.kind,
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "state": span.trace_state,
        "error": span.status.code == 2,
        "attributes": _attributes(span.attributes),
        "resource": resource,
    }


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    """A collector on loopback, and its address."""
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["Content-Type"] == "application/x-protobuf"
            found.add(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found, f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def configuration(directory: Path, endpoint: str = "", rate: int | None = None) -> Path:
    lines = ["apiVersion: apiserver.config.k8s.io/v1", "kind: TracingConfiguration"]
    lines += [f"endpoint: {endpoint}"] if endpoint else []
    lines += [f"samplingRatePerMillion: {rate}"] if rate is not None else []
    file = directory / "tracing.yaml"
    file.write_text("\n".join(lines))
    return file


@contextlib.asynccontextmanager
async def traced(file: Path | None, **more: Any) -> AsyncIterator[tuple[Server, aiohttp.ClientSession]]:
    async with (
        Server(Config(port=0, tracing_config_file=file, **more)) as server,
        aiohttp.ClientSession(server.url) as session,
    ):
        yield server, session


async def ask(session: aiohttp.ClientSession, method: str, path: str, body: Any = None, **headers: str) -> int:
    async with session.request(method, path, json=body, headers=headers) as answer:
        await answer.read()
        return answer.status


@needs_sdk
async def test_a_write_is_a_tree_of_spans_below_that_of_the_client(
    collector: tuple[Collector, str], tmp_path: Path
) -> None:
    found, address = collector
    seen: list[bytes] = []
    async with (
        serving(answering(http(), seen)) as port,
        traced(configuration(tmp_path, address)) as (_, session),
    ):
        hook = {
            "name": "a.example.com",
            "clientConfig": {"url": f"http://127.0.0.1:{port}/x"},
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        assert await ask(session, "POST", hooks, {"metadata": {"name": "a"}, "webhooks": [hook]}) == 201
        more = {"User-Agent": "operator/1", "Audit-Id": "audited", **SAMPLED}
        assert await ask(session, "POST", f"{MAPS}?fieldManager=me", {"metadata": {"name": "a"}}, **more) == 201
    whole = found.named("POST /api/v1/namespaces/{:namespace}/configmaps")
    called, written = found.named("POST"), found.named("create /configmaps")
    assert len(found.spans) == 3  # what no client has sampled is not
    assert {span["trace"] for span in found.spans} == {TRACE}
    assert {span["state"] for span in found.spans} == {"vendor=1"}
    assert (whole["parent"], called["parent"], written["parent"]) == (PARENT, whole["id"], whole["id"])
    assert (whole["kind"], called["kind"], written["kind"]) == (SERVER, CLIENT, CLIENT)
    assert whole["attributes"] == {
        "http.request.method": "POST",
        "http.route": "/api/v1/namespaces/{:namespace}/configmaps",
        "http.response.status_code": 201,
        "url.path": MAPS,
        "url.query": "fieldManager=me",
        "url.scheme": "http",
        "server.address": "127.0.0.1",
        "client.address": "127.0.0.1",
        "network.protocol.version": "1.1",
        "user_agent.original": "operator/1",
        "audit-id": "audited",
        "user.name": "system:anonymous",
        "k8s.verb": "create",
        "k8s.api.version": "v1",
        "k8s.resource": "configmaps",
        "k8s.namespace.name": "default",
        "k8s.object.name": "a",
    }
    assert called["attributes"]["http.response.status_code"] == 200
    assert written["attributes"]["db.system.name"] == "memory"
    assert whole["resource"]["service.name"] == "noxu"
    assert f"traceparent: 00-{TRACE}-{called['id']}-01".encode() in seen[0].lower()
    assert b"tracestate: vendor=1" in seen[0].lower()
    assert set(found.paths) == {"/v1/traces"}


@needs_sdk
async def test_webhooks_meet_faults_also_if_their_calls_have_spans(
    collector: tuple[Collector, str], tmp_path: Path
) -> None:
    _, address = collector
    async with traced(configuration(tmp_path, address)) as (_, session):
        assert await ask(session, "POST", "/_noxu/faults", {"rules": [{"webhook": "deny"}]}) < 300
        hook = {
            "name": "a.example.com",
            "clientConfig": {"url": "http://127.0.0.1:9/x"},  # nothing listens there
            "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        assert await ask(session, "POST", hooks, {"metadata": {"name": "a"}, "webhooks": [hook]}) == 201
        assert await ask(session, "POST", MAPS, {"metadata": {"name": "a"}}, **SAMPLED) == 403


@needs_sdk
async def test_names_are_those_of_routes_and_bugs_of_the_server_are_errors(
    collector: tuple[Collector, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, address = collector
    async with traced(configuration(tmp_path, address, 1_000_000)) as (server, session):
        await ask(session, "GET", f"{MAPS}/missing")
        await ask(session, "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x/status")
        await ask(session, "GET", "/version")
        await ask(session, "GET", "/secret-1/nothing")
        await ask(session, "GET", "/apis/nothing.example.com/v1/things/x")
        monkeypatch.setattr(server.plane.reader, "get", None)
        await ask(session, "GET", f"{MAPS}/broken", **NOT_SAMPLED)
        await ask(session, "GET", f"{MAPS}/broken", **SAMPLED)
    assert [(span["name"], span["attributes"]["http.response.status_code"], span["error"]) for span in found.spans] == [
        ("GET /api/v1/namespaces/{:namespace}/configmaps/{:name}", 404, False),
        ("GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/{:name}/status", 404, False),
        ("GET /version", 200, False),
        ("GET", 404, False),
        ("GET", 404, False),
        ("GET /api/v1/namespaces/{:namespace}/configmaps/{:name}", 500, True),
    ]
    assert found.spans[-1]["attributes"]["error.type"] == "InternalError"
    assert len({span["trace"] for span in found.spans}) == 6


@needs_sdk
def test_a_test_its_client_and_the_server_are_one_trace(collector: tuple[Collector, str], tmp_path: Path) -> None:
    found, address = collector
    with Noxu(tracing_config_file=configuration(tmp_path, address)) as noxu:
        asked = urllib.request.Request(f"{noxu.url}{MAPS}", headers=SAMPLED)
        with urllib.request.urlopen(asked) as answer:
            answer.read()
        assert [each.traceparent for each in noxu.requests()] == [SAMPLED["traceparent"]]
    [span] = found.spans
    assert (span["trace"], span["parent"]) == (TRACE, PARENT)


SAMPLING: list[tuple[str, int | None, dict[str, str], dict[str, str], int]] = [
    ("no rate", None, {}, {}, 0),
    ("no rate, and a sampled parent", None, {}, SAMPLED, 1),
    ("rate 0, and a sampled parent", 0, {}, SAMPLED, 1),
    ("every trace", 1_000_000, {}, {}, 1),
    ("every trace, and a parent that is not sampled", 1_000_000, {}, NOT_SAMPLED, 0),
    ("every trace, and a parent that is invalid", 1_000_000, {}, {"traceparent": "00-no"}, 1),
    ("the environment", None, {"OTEL_TRACES_SAMPLER": "always_on"}, {}, 1),
    ("a rate and the environment", 0, {"OTEL_TRACES_SAMPLER": "always_on"}, {}, 0),
]


@needs_sdk
@pytest.mark.parametrize(
    ("rate", "environment", "sent", "spans"), [row[1:] for row in SAMPLING], ids=[row[0] for row in SAMPLING]
)
async def test_what_is_sampled(
    rate: int | None,
    environment: dict[str, str],
    sent: dict[str, str],
    spans: int,
    collector: tuple[Collector, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, address = collector
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    async with traced(configuration(tmp_path, address, rate)) as (_, session):
        assert await ask(session, "GET", MAPS, **sent) == 200
    assert len(found.spans) == spans


@needs_sdk
async def test_the_environment_says_what_the_file_does_not(
    collector: tuple[Collector, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, address = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{address}/otlp")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "api")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a")
    async with traced(configuration(tmp_path, rate=1_000_000)) as (_, session):
        assert await ask(session, "GET", MAPS) == 200
    assert found.paths == ["/otlp/v1/traces"]
    [span] = found.spans
    assert (span["resource"]["service.name"], span["resource"]["team"]) == ("api", "a")


@needs_sdk
async def test_requests_of_tenants_have_spans_and_the_next_request_is_no_child(
    collector: tuple[Collector, str], tmp_path: Path
) -> None:
    found, address = collector
    async with (
        traced(configuration(tmp_path, address)) as (server, _),
        server.tenant() as tenant,
        aiohttp.ClientSession(tenant.url) as session,
    ):
        await ask(session, "POST", MAPS, {"metadata": {"name": "a"}}, **SAMPLED)
        await ask(session, "POST", MAPS, {"metadata": {"name": "b"}})
        await ask(session, "DELETE", f"{MAPS}/a", **SAMPLED)
    assert sorted(span["name"] for span in found.spans) == [
        "DELETE /api/v1/namespaces/{:namespace}/configmaps/{:name}",
        "POST /api/v1/namespaces/{:namespace}/configmaps",
        "create /configmaps",
        "delete /configmaps",
    ]


@needs_sdk
async def test_a_collector_that_is_not_there_is_logged_once_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from noxu.observability import span_export

    monkeypatch.setattr(span_export.SpanExport.__init__, "__defaults__", (0.01,))
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with socket.socket() as unused:  # bound, and nobody listens
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with caplog.at_level(logging.WARNING):
            async with hang_guard(), traced(configuration(tmp_path, address, 1_000_000)) as (_, session):
                for _ in range(3):
                    assert await ask(session, "GET", MAPS) == 200
    messages = [record.getMessage() for record in caplog.records]
    assert sum("cannot be sent" in message for message in messages) <= 1
    assert all(
        message.startswith(("spans cannot be sent to http://127", "the last spans were not sent to http://127"))
        for message in messages
    )


# -- without the extra, and without the flag ---------------------------------------------------------------------------


async def test_without_the_extra_a_server_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name="opentelemetry.sdk")

    monkeypatch.setattr(tracing, "import_module", missing)
    with pytest.raises(
        StartError, match=r"--tracing-config-file needs the package opentelemetry.*: pip install 'noxu\[otel\]'"
    ):
        async with traced(configuration(tmp_path)):
            pass


async def test_an_invalid_file_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"--tracing-config-file: .*sampling rate must be positive"):
        async with traced(configuration(tmp_path, rate=-1)):
            pass


OFF: Final = """
import asyncio, json, sys, urllib.request
from noxu.config import Config
from noxu.process.server import Server

async def main():
    async with Server(Config(port=0)) as server:
        def ask(**sent):
            with urllib.request.urlopen(urllib.request.Request(server.url + "/version", headers=sent)) as answer:
                return sorted(answer.headers), answer.read().decode()
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        return [await asyncio.to_thread(ask), await asyncio.to_thread(ask, traceparent=parent)]

answers = asyncio.run(main())
print(json.dumps([answers, sorted(sys.modules)]))
"""


def test_without_the_flag_nothing_is_imported_and_no_header_added() -> None:
    ran = subprocess.run([sys.executable, "-c", OFF], capture_output=True, text=True, check=True)
    [plain, sent], modules = json.loads(ran.stdout)
    own = (tracing.__name__, tracing.EXPORT, tracing.SPANS, "noxu.observability.tracing_configuration")
    assert [name for name in modules if name.startswith("opentelemetry") or name in own] == []
    assert plain == sent
    assert not [name for name in plain[0] if "trace" in name.lower()]
