"""Client certificates over TLS: those of the server's CA, of other CAs, and of front proxies."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from noxu.config import Authentication
from noxu.security.certificates import Authority, CertifiedKey, new_authority
from noxu.testing.handle import Noxu
from tests.hostile.raw_http import JSON, Reply, Target
from tests.security.handshakes import client_context

REVIEWS: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REMOTE: Final = {"X-Remote-User": "remote", "X-Remote-Group": "g"}
TOKEN: Final = {"Authorization": "Bearer static"}
PROXIES: Final = new_authority()


@pytest.fixture(scope="module")
def noxu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Noxu]:
    directory = tmp_path_factory.mktemp("noxu")
    (directory / "proxies").write_bytes(PROXIES.certificate)
    (directory / "tokens").write_text("static,token-user,1,g\n")
    options = Authentication(
        requestheader_client_ca_file=directory / "proxies",
        requestheader_allowed_names=("proxy",),
        token_auth_file=directory / "tokens",
    )
    with Noxu(directory, tls=True, authentication=options, authorization_modes=("RBAC",)) as server:
        yield server


def authority(noxu: Noxu) -> Authority:
    assert noxu._server.secured is not None
    return noxu._server.secured.own().authority


def send(noxu: Noxu, identity: CertifiedKey | None, path: str = REVIEWS, **headers: str) -> Reply:
    target = Target(noxu.url, client_context(authority(noxu).certificate, identity))
    body = b"{}" if path == REVIEWS else None
    return target.send("POST" if body else "GET", path, body, {"Content-Type": JSON, **headers})


def whoami(noxu: Noxu, identity: CertifiedKey | None, headers: dict[str, str] | None = None) -> Any:
    reply = send(noxu, identity, REVIEWS, **headers or {})
    user = json.loads(reply.body).get("status", {}) if reply.status == 201 else {}
    return user["userInfo"]["username"] if user else reply.status


def test_the_user_of_a_certificate(noxu: Noxu) -> None:
    reply = send(noxu, authority(noxu).issue_client("jane", ["a", "b"]))
    user = json.loads(reply.body)["status"]["userInfo"]
    assert (user["username"], user["groups"]) == ("jane", ["a", "b", "system:authenticated"])
    assert user["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


def test_who_is_who(noxu: Noxu) -> None:
    jane = authority(noxu).issue_client("jane")
    proxy, other = PROXIES.issue_client("proxy"), PROXIES.issue_client("other")
    rows: list[tuple[str, CertifiedKey | None, dict[str, str], str | int]] = [
        ("nothing", None, {}, 403),  # who is anonymous may not ask
        ("headers without a proxy", None, REMOTE, 403),
        ("a client's certificate", jane, {}, "jane"),
        ("a client's certificate with a proxy's headers", jane, REMOTE, "jane"),
        ("a certificate before a token", jane, TOKEN, "jane"),
        ("a certificate with a bad token", jane, {"Authorization": "Bearer bad"}, "jane"),
        ("a proxy with headers", proxy, REMOTE, "remote"),
        ("a proxy without headers is no client", proxy, {}, 401),
        ("a proxy without headers, with a token", proxy, TOKEN, "token-user"),
        ("a proxy whose name is not allowed", other, REMOTE, 401),
        ("a proxy whose name is not allowed, with a token", other, TOKEN, "token-user"),
        ("a bad token", None, {"Authorization": "Bearer bad"}, 401),
    ]
    assert [(name, whoami(noxu, identity, headers)) for name, identity, headers, _ in rows] == [
        (name, expected) for name, _, _, expected in rows
    ]


def test_the_kubeconfig_is_that_of_an_administrator(noxu: Noxu) -> None:
    reply = Target.of(noxu).send("GET", "/api/v1/secrets")
    assert reply.status == 200


def test_a_connection_outlives_the_certificate(noxu: Noxu, monkeypatch: pytest.MonkeyPatch) -> None:
    jane = authority(noxu).issue_client("jane", ["system:masters"])
    assert send(noxu, jane, "/version").status == 200
    certificates = noxu._server.plane.authenticator._certificates[-1]
    monkeypatch.setattr(certificates, "_now", lambda: 1e11)
    assert send(noxu, jane, "/version").status == 401


def test_with_always_allow_nobody_is_anonymous(tmp_path: Path) -> None:
    with Noxu(tmp_path, tls=True) as running:
        assert [send(running, None, path).status for path in ("/version", "/healthz", "/x")] == [401] * 3
        assert whoami(running, authority(running).issue_client("jane")) == "jane"


def test_a_front_proxy_needs_tls(tmp_path: Path) -> None:
    (tmp_path / "ca").write_bytes(PROXIES.certificate)
    options = Authentication(requestheader_client_ca_file=tmp_path / "ca")
    with pytest.raises(Exception, match="--requestheader-client-ca-file needs --tls"):
        Noxu(tmp_path, authentication=options).start()


def test_a_session_of_tls_1_2_that_is_resumed_has_its_user(noxu: Noxu) -> None:
    """OpenSSL does not keep the chain of its certificate."""
    target = Target(noxu.url, client_context(authority(noxu).certificate, authority(noxu).issue_client("jane")))
    assert target.tls is not None
    target.tls.maximum_version = ssl.TLSVersion.TLSv1_2
    session, reused, users = None, [], []
    for _ in range(2):
        plain = socket.create_connection((target.host, target.port))
        with target.tls.wrap_socket(plain, server_hostname=target.host, session=session) as peer:
            head = f"POST {REVIEWS} HTTP/1.1\r\nHost: {target.host}\r\nContent-Type: {JSON}\r\nContent-Length: 2\r\n"
            peer.sendall(f"{head}Connection: close\r\n\r\n{{}}".encode())
            users.append(b'"jane"' in b"".join(iter(lambda peer=peer: peer.recv(65536), b"")))  # type: ignore[misc]
            session = peer.session
            reused.append(peer.session_reused)
    assert (reused, users) == ([False, True], [True, True])
