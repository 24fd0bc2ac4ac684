"""log, exec, attach, portforward and proxy: how far a server gets that has no kubelet, and never dials."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from conformance.client import Client
from noxu.testing.handle import Noxu
from tests.http.conftest import Things
from tests.http.pods import CORE, PODS, Pods

NODES: Final = "/api/v1/nodes"
SERVICES: Final = f"{CORE}/services"
ENDPOINTS: Final = f"{CORE}/endpoints"
NO_KUBELET: Final = "there is no kubelet: pods are stored, not run"
DIALING: Final = f"Internal error occurred: error dialing backend: {NO_KUBELET}"
REACHING: Final = f"error trying to reach service: {NO_KUBELET}"
NO_ADDRESS: Final = "no preferred addresses found; known addresses: []"


@pytest.fixture
def pods(served: Client) -> Iterator[Pods]:
    """Pods p (on no node), q (two containers and an initial one), r (on node n) and s (on node m, which is absent)."""
    found = Pods(Things(served))
    found.clear()
    found.create("p")
    found.create("q", containers=("a", "b"), initContainers=[{"name": "i", "image": "i"}])
    found.create("r", nodeName="n")
    found.create("s", nodeName="m")
    found.create("t", nodeName="o")
    for name in ("n", "o"):
        found.api.ask("POST", NODES, {"metadata": {"name": name}})
    found.set_status(f"{NODES}/n", addresses=[{"type": "InternalIP", "address": "127.0.0.1"}])
    yield found
    found.clear()
    found.api.ask("DELETE", NODES)
    found.api.ask("DELETE", SERVICES)
    found.api.ask("DELETE", ENDPOINTS)


CHOOSE: Final = "a container name must be specified for pod q, choose one of: [a b] or one of the init containers: [i]"
LOGS: list[tuple[str, str, int, str]] = [
    ("a Pod on no node", "p/log", 200, ""),
    ("its container", "p/log?container=c", 200, ""),
    ("another container", "p/log?container=x", 400, "container x is not valid for pod p"),
    ("one of several containers", "q/log?container=b", 200, ""),
    ("an initial container", "q/log?container=i", 200, ""),
    ("none of several", "q/log", 400, CHOOSE),
    ("follow", "p/log?follow=true&timestamps=true", 200, ""),
    ("no Pod", "x/log", 404, 'pods "x" not found'),
    ("a node without a kubelet", "r/log", 500, DIALING),
    ("no node", "s/log", 404, 'nodes "m" not found'),
    ("a node without an address", "t/log", 500, NO_ADDRESS),
    ("no number", "p/log?tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    ("a negative number", "p/log?tailLines=-1", 422,
     'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0'),
    ("no bytes", "p/log?limitBytes=0", 422,
     'PodLogOptions "p" is invalid: limitBytes: Invalid value: 0: must be greater than 0'),
    ("no seconds", "p/log?sinceSeconds=0", 422,
     'PodLogOptions "p" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0'),
    ("both times", "p/log?sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z", 422,
     'PodLogOptions "p" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified'),
    ("options are checked before the Pod", "x/log?sinceSeconds=0", 422,
     'PodLogOptions "x" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0'),
]  # fmt: skip


@pytest.mark.slow(every=4)
@pytest.mark.parametrize(("rest", "code", "message"), [row[1:] for row in LOGS], ids=[row[0] for row in LOGS])
def test_the_log_of_a_pod(pods: Pods, rest: str, code: int, message: str) -> None:
    reply = pods.api.ask("GET", f"{PODS}/{rest}")
    assert (reply.code, reply.body if code == 200 else reply.message) == (code, message)


def test_a_log_is_text(pods: Pods, served: Client) -> None:
    code, headers, text = served.exchange("GET", f"{PODS}/p/log", None, {"Accept": "application/json, */*"})
    assert (code, dict(headers)["Content-Type"], text) == (200, "text/plain", b"")


UPGRADES: Final = {
    "no upgrade": {},
    "WebSocket": {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
    },
    "SPDY": {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"},
}
NO_HOST: Final = "pod p does not have a host assigned"
STREAMS: list[tuple[str, str, int, str]] = [
    ("exec on no node", "p/exec?command=ls&stdout=true", 400, NO_HOST),
    ("attach on no node", "p/attach?stdout=true", 400, NO_HOST),
    ("portforward on no node", "p/portforward?ports=80", 400, NO_HOST),
    ("another container", "p/exec?container=x", 400, "container x is not valid for pod p"),
    ("none of several", "q/attach", 400, CHOOSE),
    ("forwarding needs no container", "q/portforward", 400, "pod q does not have a host assigned"),
    ("no Pod", "x/exec", 404, 'pods "x" not found'),
    ("no node", "s/exec", 404, 'nodes "m" not found'),
    ("a node without an address", "t/attach", 500, NO_ADDRESS),
]


@pytest.mark.slow(every=13)
@pytest.mark.parametrize("headers", UPGRADES.values(), ids=UPGRADES)
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(("rest", "code", "message"), [row[1:] for row in STREAMS], ids=[row[0] for row in STREAMS])
def test_a_stream_is_refused_before_anything_is_dialled(
    pods: Pods, method: str, headers: dict[str, str], rest: str, code: int, message: str
) -> None:
    reply = pods.api.ask(method, f"{PODS}/{rest}", **headers)
    assert (reply.code, reply.message) == (code, message)


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
def test_a_stream_ends_where_the_kubelet_would_be_dialled(pods: Pods, subresource: str) -> None:
    for name, headers in UPGRADES.items():
        reply = pods.api.ask("POST", f"{PODS}/r/{subresource}", **headers)
        expected = (400, "Upgrade request required") if name == "no upgrade" else (500, DIALING)
        assert (reply.code, reply.message) == expected, name


@pytest.mark.parametrize("headers", [UPGRADES["WebSocket"], UPGRADES["SPDY"]], ids=["WebSocket", "SPDY"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_connection_is_never_upgraded(pods: Pods, noxu_session: Noxu, method: str, headers: dict[str, str]) -> None:
    address = urlsplit(noxu_session.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        request = f"{method} {PODS}/r/exec?command=ls HTTP/1.1\r\nHost: {address.netloc}\r\n{head}\r\n"
        connection.sendall(request.encode())
        received = connection.recv(65536).decode()
    assert received.startswith("HTTP/1.1 500 ")
    assert json.loads(received.partition("\r\n\r\n")[2])["message"] == DIALING


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_streams_have_two_methods(pods: Pods, method: str) -> None:
    for subresource in ("exec", "attach", "portforward"):
        assert pods.api.ask(method, f"{PODS}/p/{subresource}", {}).code == 405
    assert pods.api.ask("POST", f"{PODS}/p/log", {}).code == 405


@pytest.fixture
def backends(pods: Pods) -> Pods:
    """Services a (an endpoint for port http), b (none ready) and c (no endpoints); Pod r has an address."""
    pods.set_status(f"{PODS}/r", podIP="10.0.0.7", podIPs=[{"ip": "10.0.0.7"}])
    pods.set_status(f"{PODS}/s", podIP="127.0.0.1", podIPs=[{"ip": "127.0.0.1"}])
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "more", "port": 81}]
    for name in ("a", "b", "c"):
        reply = pods.api.ask("POST", SERVICES, {"metadata": {"name": name}, "spec": {"ports": ports}})
        assert reply.code == 201, reply
    address, port = [{"ip": "10.0.0.7"}], [{"name": "http", "port": 8080}]
    for name, subset in (("a", {"addresses": address}), ("b", {"notReadyAddresses": address})):
        body = {"metadata": {"name": name}, "subsets": [{**subset, "ports": port}]}
        assert pods.api.ask("POST", ENDPOINTS, body).code == 201
    return pods


PROXIES: list[tuple[str, str, int, str]] = [
    ("a Pod without an address", f"{PODS}/p/proxy", 400, "address not allowed"),
    ("a Pod on loopback", f"{PODS}/s/proxy", 400, "address not allowed"),
    ("a Pod with an address", f"{PODS}/r/proxy", 503, REACHING),
    ("its port", f"{PODS}/r:80/proxy", 503, REACHING),
    ("its scheme", f"{PODS}/https:r:80/proxy/", 503, REACHING),
    ("a path", f"{PODS}/r/proxy/a/b/c?d=e", 503, REACHING),
    ("another scheme", f"{PODS}/ftp:r:80/proxy", 400, 'invalid pod request "ftp:r:80"'),
    ("too many parts", f"{PODS}/a:b:c:d/proxy", 400, 'invalid pod request "a:b:c:d"'),
    ("no Pod", f"{PODS}/x/proxy", 404, 'pods "x" not found'),
    ("a Service by the name of a port", f"{SERVICES}/a:http/proxy/x", 503, REACHING),
    ("by its number", f"{SERVICES}/a:80/proxy", 503, REACHING),
    ("by a port that it lacks", f"{SERVICES}/a:82/proxy", 503, 'no service port 82 found for service "a"'),
    ("by a port without endpoints", f"{SERVICES}/a:more/proxy", 503, 'no endpoints available for service "a:more"'),
    ("none is ready", f"{SERVICES}/b:http/proxy", 503, 'no endpoints available for service "b:http"'),
    ("no endpoints", f"{SERVICES}/c:http/proxy", 404, 'endpoints "c" not found'),
    ("another scheme of a Service", f"{SERVICES}/ftp:a:http/proxy", 400, 'invalid service request "ftp:a:http"'),
    ("no Service", f"{SERVICES}/x:80/proxy", 404, 'services "x" not found'),
    ("a node", f"{NODES}/n/proxy", 503, REACHING),
    ("its path", f"{NODES}/n/proxy/metrics", 503, REACHING),
    ("its port of a node", f"{NODES}/n:10250/proxy/healthz", 503, REACHING),
    ("a node without an address to proxy to", f"{NODES}/o/proxy", 500, NO_ADDRESS),
    ("no such node", f"{NODES}/x/proxy", 404, 'nodes "x" not found'),
    ("another scheme of a node", f"{NODES}/ftp:n:1/proxy", 400, 'invalid node request "ftp:n:1"'),
]


@pytest.mark.slow(every=8)
@pytest.mark.parametrize(("path", "code", "message"), [row[1:] for row in PROXIES], ids=[row[0] for row in PROXIES])
def test_a_proxy(backends: Pods, path: str, code: int, message: str) -> None:
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        reply = backends.api.ask(method, path)
        assert (reply.code, reply.message) == (code, message), method


def test_a_proxy_upgrades_nothing(backends: Pods) -> None:
    reply = backends.api.ask("GET", f"{PODS}/r/proxy", **UPGRADES["WebSocket"])
    assert (reply.code, reply.message) == (500, DIALING)


def test_other_subresources_have_no_paths(pods: Pods, **_: Any) -> None:
    for path in (f"{PODS}/p/exec/x", f"{PODS}/p/log/x", f"{PODS}/p/status/x"):
        assert pods.api.ask("GET", path).code == 404
