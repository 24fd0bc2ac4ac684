"""Errors of etcd, and what to do about them."""

from __future__ import annotations

from noxu_storage.etcd.errors import advised
from tests.rows import rows

CONNECT = "cannot connect to 127.0.0.1:2379: "


@rows(
    ("text", "advice"),
    [
        ("etcdserver: mvcc: database space exceeded", "etcdctl alarm disarm"),
        ("etcdserver: user name is empty", "give --etcd-username and --etcd-password-file"),
        ("etcdserver: authentication failed, invalid user ID or password", "--etcd-username or --etcd-password-file is wrong"),
        ("etcdserver: authentication is not enabled", "omit --etcd-username"),
        ("etcdserver: permission denied", "grant the user of --etcd-username a role"),
        ("etcdserver: request timed out", "do most members of etcd run"),
        ("Deadline Exceeded", "do most members of etcd run"),
        ("etcdserver: no leader", "do most members of etcd run"),
        (CONNECT + "certificate verify failed: unable to get local issuer certificate", "--etcd-cafile has to name the CA"),
        (CONNECT + "certificate verify failed: Hostname mismatch", "use a name in --etcd-servers"),
        (CONNECT + "Tls handshake failed: SSLV3_ALERT_BAD_CERTIFICATE", "--etcd-certfile and --etcd-keyfile"),
        (CONNECT + "the server has closed the connection after the handshake of TLS", "--etcd-certfile and --etcd-keyfile"),
        ("[X509: KEY_VALUES_MISMATCH] key values mismatch", "--etcd-keyfile is not the key of --etcd-certfile"),
        ("[X509: NO_CERTIFICATE_OR_CRL_FOUND] no certificate or crl found", "files in PEM"),
        (CONNECT + "the server has closed the connection during the handshake of TLS", "is its URL rightly http:// or https://?"),
        (CONNECT + "the server does not speak TLS", "is its URL rightly http:// or https://?"),
        (CONNECT + "the server has closed the connection", "is its URL rightly http:// or https://?"),
        (CONNECT + "the server does not speak HTTP/2", "is this etcd"),
        (CONNECT + "Connection refused", "does etcd run"),
    ],
)  # fmt: skip
def test_what_to_do_about_an_error(text: str, advice: str) -> None:
    found = advised(text)
    assert found.startswith(f"{text} (")
    assert advice in found


def test_nothing_is_said_about_other_errors() -> None:
    assert advised("etcdserver: leader changed") == "etcdserver: leader changed"
