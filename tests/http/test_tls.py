"""HTTPS of a running server: its clients, its names, and what handlers learn of a client's certificate."""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from noxu.commands.api_client import ApiClient, endpoint_from_kubeconfig
from noxu.config import Config, TlsOptions
from noxu.http.app import App
from noxu.http.exchange import Exchange
from noxu.process.server import Server
from noxu.security import tls
from noxu.security.certificates import names_in, new_authority, parse
from noxu.testing.handle import Noxu
from tests.controllers.test_certificate_signing import asked
from tests.hostile.raw_http import Target
from tests.optional import needs_program
from tests.security.handshakes import client_context
from tests.security.test_tls import self_signed, written
from tests.timing import eventually


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    with Noxu(tmp_path_factory.mktemp("noxu"), tls=True) as server:
        yield server


def test_the_kubeconfig_has_the_ca_and_a_client_certificate(noxu: Noxu) -> None:
    assert noxu.url.startswith("https://127.0.0.1:")
    config = json.loads(noxu.kubeconfig.read_text())
    assert sorted(config["clusters"][0]["cluster"]) == ["certificate-authority-data", "server"]
    assert sorted(config["users"][0]["user"]) == ["client-certificate-data", "client-key-data"]
    assert noxu.kubeconfig.stat().st_mode & 0o777 == 0o600


def test_commands_use_what_the_kubeconfig_has(noxu: Noxu) -> None:
    client = ApiClient(endpoint_from_kubeconfig(noxu.kubeconfig))
    names = [each["metadata"]["name"] for each in client.list("/api/v1/namespaces")]
    assert "default" in names
    root = client.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt")["data"]["ca.crt"]
    client.close()
    context = ssl.create_default_context(cadata=root)
    with pytest.raises(urllib.error.HTTPError, match="401") as refusal:  # the certificate is accepted; there is no user
        urllib.request.urlopen(f"{noxu.url}/version", context=context)
    refusal.value.close()


@needs_program("kubectl")
def test_kubectl_needs_no_insecure_options(noxu: Noxu, tmp_path: Path) -> None:
    ran = subprocess.run(
        ["kubectl", "--kubeconfig", noxu.kubeconfig, "get", "namespace", "default", "-o", "name"],
        check=True,
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin:" + str(Path(sys.executable).parent)},
    )
    assert (ran.stdout, ran.stderr) == ("namespace/default\n", "")


async def test_the_python_client_needs_no_insecure_options(noxu: Noxu) -> None:
    kubernetes = pytest.importorskip("kubernetes", reason="package: kubernetes")
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(str(noxu.kubeconfig), client_configuration=configuration)
    assert configuration.verify_ssl
    with kubernetes.client.ApiClient(configuration) as client:
        assert kubernetes.client.VersionApi(client).get_code().git_version.startswith("v1.37")


def test_an_approved_request_is_signed_by_the_ca_of_the_server(noxu: Noxu) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    noxu.apply(asked("ann"))
    client = ApiClient(endpoint_from_kubeconfig(noxu.kubeconfig))
    value = client.get(f"{path}/ann")
    value["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]}
    assert client.send("PUT", f"{path}/ann/approval", value=value).status == 200
    certificate = eventually(lambda: client.get(f"{path}/ann")["status"].get("certificate"))
    client.close()
    assert noxu._server.secured is not None
    assert noxu._server.secured.own().authority.has_issued(parse(b64decode(certificate)))


def test_the_names_of_the_server(noxu: Noxu) -> None:
    assert noxu._server.secured is not None
    names = names_in(parse(noxu._server.secured.tls.certificate))
    assert {"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"} <= set(names.dns)
    assert set(names.addresses) == {"127.0.0.1", "::1", "10.0.0.1"}


def test_the_certificate_is_valid_for_the_service_that_a_client_names(noxu: Noxu) -> None:
    target = Target.of(noxu)
    target.tls, context = None, target.tls
    assert context is not None
    with context.wrap_socket(target.connect(), server_hostname="kubernetes.default.svc") as peer:
        peer.sendall(b"GET /version HTTP/1.1\r\nHost: kubernetes.default.svc\r\n\r\n")
        assert peer.recv(12) == b"HTTP/1.1 200"


def test_a_client_that_prefers_http_2_gets_http_1_1(noxu: Noxu) -> None:
    target = Target.of(noxu)
    assert target.tls is not None
    target.tls.set_alpn_protocols(["h2", "http/1.1"])
    with target.connect() as peer:
        assert isinstance(peer, ssl.SSLSocket)
        assert peer.selected_alpn_protocol() == "http/1.1"
    assert target.send("GET", "/version").status == 200


@pytest.mark.parametrize("with_certificate", [True, False])
def test_requests_have_the_certificate_of_their_client(
    noxu: Noxu, monkeypatch: pytest.MonkeyPatch, with_certificate: bool
) -> None:
    found: list[bytes | None] = []
    handle = App._filtered

    async def recorded(self: App, exchange: Exchange, *more: Any) -> object:
        request = exchange.request
        assert request.connection.transport is not None
        found.append(request.connection.transport.get_extra_info("ssl_object").getpeercert(binary_form=True))
        return await handle(self, exchange, *more)

    monkeypatch.setattr(App, "_filtered", recorded)
    endpoint = endpoint_from_kubeconfig(noxu.kubeconfig)
    sent = endpoint.client_certificate
    client = ApiClient(endpoint if with_certificate else endpoint._replace(client_certificate=b""))
    assert client.send("GET", "/version").status == (200 if with_certificate else 401)
    client.close()
    assert found == [ssl.PEM_cert_to_DER_cert(sent.decode()) if with_certificate else None]


HOSTS: list[tuple[str, dict[str, str], int]] = [
    ("another name of the server", {"Host": "noxu.example.com"}, 200),
    ("a page of the server itself", {"Host": "noxu.example.com:6440", "Origin": "https://noxu.example.com:6440"}, 200),
    ("a page without TLS", {"Host": "noxu.example.com", "Origin": "http://noxu.example.com"}, 403),
    ("a page of another port of this machine", {"Origin": "http://localhost:3000"}, 403),
    ("a page of a neighbour", {"Sec-Fetch-Site": "same-site"}, 403),
    ("a page elsewhere", {"Origin": "https://example.com"}, 403),
    ("a page elsewhere, whose name is also that of the server", {"Host": "example.com", "Sec-Fetch-Site": "cross-site"}, 403),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "status"), [row[1:] for row in HOSTS], ids=[row[0] for row in HOSTS])
def test_a_request_for(noxu: Noxu, headers: dict[str, str], status: int) -> None:
    assert Target.of(noxu).send("GET", "/version", headers=headers).status == status


# -- certificates that are configured


def whoami(target: Target) -> tuple[int, str, list[str]]:
    reply = target.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", b"{}")
    user = reply.json.get("status", {}).get("userInfo", {})
    return reply.status, user.get("username", ""), user.get("groups", [])


def test_a_self_signed_certificate_without_extensions_that_is_the_ca_of_clients_is_a_user(tmp_path: Path) -> None:
    identity = self_signed("kubeapitest", "system:masters")
    written(tmp_path, "client", identity)
    config = Config(port=0, tls=TlsOptions(client_authority=tmp_path / "client.crt"), authorization_modes=("RBAC",))
    with serving(config) as server:
        context = client_context(server.access().certificate_authority, identity)
        found = whoami(Target(server.url, context))
    assert found == (201, "kubeapitest", ["system:masters", "system:authenticated"])


def test_a_certificate_for_servers_is_no_user(tmp_path: Path) -> None:
    authority = new_authority()
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    config = Config(port=0, tls=TlsOptions(client_authority=tmp_path / "ca.crt"))
    with serving(config) as server:
        trusted = server.access().certificate_authority
        target = Target(server.url, client_context(trusted, authority.issue_server(["kubernetes-admin"])))
        with target.connect() as refused, pytest.raises(ssl.SSLError, match="alert"):
            refused.recv(1)  # the alert. Who writes first may find the connection closed
        target.tls = client_context(trusted, authority.issue_client("bob", ["system:masters"]))
        assert whoami(target)[1] == "bob"


def test_a_replaced_certificate_is_used_for_new_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "RELOAD_EVERY", 0.02)
    first, second = new_authority(), new_authority()
    written(tmp_path, "apiserver", first.issue_server(["127.0.0.1"]))
    config = Config(port=0, tls=TlsOptions(directory=tmp_path), authorization_modes=("RBAC",))
    with serving(config) as server:
        old = Target(server.url, client_context(first.certificate))
        new = Target(server.url, client_context(second.certificate))
        assert old.send("GET", "/livez").status == 200
        with old.connect() as kept:
            written(tmp_path, "apiserver", second.issue_server(["127.0.0.1"]))
            eventually(lambda: is_trusted(new))
            assert not is_trusted(old)
            kept.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            assert kept.recv(12) == b"HTTP/1.1 200"


def is_trusted(target: Target) -> bool:
    try:
        return target.send("GET", "/livez").status == 200
    except ssl.SSLCertVerificationError:
        return False


def test_a_certificate_directory_is_filled_once(tmp_path: Path) -> None:
    seen = set()
    for _ in range(2):
        with serving(Config(port=0, tls=TlsOptions(directory=tmp_path), authorization_modes=("RBAC",))) as server:
            trusted = server.access().certificate_authority
            assert Target(server.url, client_context(trusted)).send("GET", "/livez").status == 200
            seen.add(trusted)
    assert len(seen) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["apiserver.crt", "apiserver.key"]


@contextlib.contextmanager
def serving(config: Config) -> Iterator[Server]:
    """A server with this configuration, in a thread."""
    started: queue.Queue[tuple[Server | BaseException, asyncio.AbstractEventLoop, asyncio.Event]] = queue.Queue()

    async def serve() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with Server(config) as server:
                started.put((server, loop, stop))
                await stop.wait()
        except BaseException as error:
            started.put((error, loop, stop))
            raise

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    server, loop, stop = started.get()
    try:
        assert isinstance(server, Server), server
        yield server
    finally:
        if isinstance(server, Server):
            loop.call_soon_threadsafe(stop.set)
        thread.join()
