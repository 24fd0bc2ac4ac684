"""Contexts of a server: which certificate a client gets, whose certificate it may have, and files that change."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from noxu.security.certificates import CertifiedKey, TlsError, new_authority
from noxu.security.tls import RELOAD_EVERY, Files, Material, Named, ServerTls, parse_named
from tests.clocks import ManualClock
from tests.security.handshakes import client_context, handshake
from tests.timing import loop_turns

LATER: list[dt.timedelta] = []
CA = new_authority(lambda: dt.datetime.now(dt.UTC) - sum(LATER, dt.timedelta()))
SERVER = CA.issue_server(["localhost", "127.0.0.1", "kubernetes.default.svc"])


def self_signed(name: str, group: str, key_size: int = 2048) -> CertifiedKey:
    """A certificate of version 3 without extensions, RSA, which is its own CA, as kube-api-test makes them."""
    key = rsa.generate_private_key(65537, key_size)
    subject = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, name), x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)]
    )
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=365))
        .sign(key, hashes.SHA256())
    )
    form = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return CertifiedKey(certificate.public_bytes(Encoding.PEM), form)


def written(directory: Path, name: str, identity: CertifiedKey) -> Files:
    directory.mkdir(exist_ok=True)
    files = Files(directory / f"{name}.crt", directory / f"{name}.key")
    files.certificate.write_bytes(identity.certificate)
    files.key.write_bytes(identity.key)
    return files


# -- certificates of clients

OTHER = new_authority(lambda: dt.datetime.now(dt.UTC))
BUNDLES: list[tuple[str, bytes, list[bytes]]] = [
    ("one", CA.certificate, [CA.certificate]),
    ("two", CA.certificate + OTHER.certificate, [CA.certificate, OTHER.certificate]),
    ("one with text around it", b"x\n" + CA.certificate + b"y", [CA.certificate]),
    ("one behind a space", b" " + OTHER.certificate + CA.certificate, [CA.certificate]),
    ("one behind a NUL", b"\0" + OTHER.certificate + CA.certificate, [CA.certificate]),
    ("one in a single line", OTHER.certificate.replace(b"\n", b"") + b"\n" + CA.certificate, [CA.certificate]),
    ("one with headers", OTHER.certificate.replace(b"-\n", b"-\na: b\n\n", 1) + CA.certificate, [CA.certificate]),
    ("one of another type", OTHER.certificate.replace(b" CERT", b" X509 CERT") + CA.certificate, [CA.certificate]),
    ("one with the line ends of Windows", CA.certificate.replace(b"\n", b"\r\n"), [CA.certificate]),
]


@pytest.mark.parametrize(("bundle", "expected"), [row[1:] for row in BUNDLES], ids=[row[0] for row in BUNDLES])
def test_handshakes_and_authentication_know_the_same_cas(bundle: bytes, expected: list[bytes]) -> None:
    server = ServerTls(Material(SERVER, authorities=(bundle,)))
    certificates = {x509.load_pem_x509_certificate(each).public_bytes(Encoding.DER) for each in expected}
    assert server.client_authorities == certificates
    assert set(server.context("").get_ca_certs(binary_form=True)) == certificates


OWN = CA.issue_client("bob", ["g1", "g2"])
ALONE = self_signed("kubeapitest", "system:masters")
FOREIGN = new_authority().issue_client("eve", ["system:masters"])
ACCEPTED: list[tuple[str, tuple[bytes, ...], CertifiedKey | None]] = [
    ("none", (CA.certificate,), None),
    ("one that the CA has issued", (CA.certificate,), OWN),
    ("one that another of the CAs has issued", (new_authority().certificate, CA.certificate), OWN),
    ("one without extensions that is its own CA", (ALONE.certificate,), ALONE),
    ("one that is trusted itself, without its CA", (OWN.certificate,), OWN),
    ("several CAs in one file", (ALONE.certificate + CA.certificate,), OWN),
]


@pytest.mark.parametrize(("authorities", "sent"), [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_a_client_may_have(authorities: tuple[bytes, ...], sent: CertifiedKey | None) -> None:
    server = ServerTls(Material(SERVER, authorities=authorities))
    ends = handshake(client_context(CA.certificate, sent), server.context("127.0.0.1"))
    der = ends.server.getpeercert(binary_form=True)
    assert der == (None if sent is None else ssl.PEM_cert_to_DER_cert(sent.certificate.decode()))


def expired() -> CertifiedKey:
    LATER.append(dt.timedelta(days=400))
    issued = CA.issue_client("late")
    LATER.clear()
    return issued


REFUSED: list[tuple[str, CertifiedKey, str]] = [
    ("one of another CA", FOREIGN, "unable to get local issuer certificate"),
    ("a server's certificate (EKU serverAuth)", SERVER, "unsuitable certificate purpose"),
    ("one that is self-signed", ALONE, "self-signed certificate"),
    ("one that has ended", expired(), "certificate has expired"),
]


@pytest.mark.parametrize(("sent", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_client_may_not_have(sent: CertifiedKey, why: str) -> None:
    server = ServerTls(Material(SERVER, authorities=(CA.certificate,)))
    with pytest.raises(ssl.SSLCertVerificationError, match=why):
        handshake(client_context(CA.certificate, sent), server.context("127.0.0.1"))


# -- versions and protocols


def test_http_1_1_is_selected() -> None:
    client = client_context(CA.certificate)
    client.set_alpn_protocols(["h2", "http/1.1"])
    ends = handshake(client, ServerTls(Material(SERVER)).context(""))
    assert (ends.client.selected_alpn_protocol(), ends.client.version()) == ("http/1.1", "TLSv1.3")


def test_clients_as_strict_as_python_3_13_verify_the_certificate() -> None:
    handshake(client_context(CA.certificate, strict=True), ServerTls(Material(SERVER)).context(""), "127.0.0.1")


VERSIONS: list[tuple[str, ssl.TLSVersion, ssl.TLSVersion, str]] = [
    ("TLS 1.2", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, "TLSv1.2"),
    ("TLS 1.2 where 1.3 is required", ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2, ""),
]


@pytest.mark.parametrize(
    ("required", "has", "expected"), [row[1:] for row in VERSIONS], ids=[row[0] for row in VERSIONS]
)
def test_a_client_that_has(required: ssl.TLSVersion, has: ssl.TLSVersion, expected: str) -> None:
    server = ServerTls(Material(SERVER, minimum=required)).context("")
    client = client_context(CA.certificate)
    client.maximum_version = has
    if expected:
        assert handshake(client, server).client.version() == expected
    else:
        with pytest.raises(ssl.SSLError, match=r"(?i)unsupported protocol"):
            handshake(client, server)


# -- names (SNI)

SELECTED: list[tuple[str, str, str]] = [
    ("a name in no certificate", "other.example.com", "default"),
    ("a name in a certificate", "extracted.example.com", "extracted"),
    ("a pattern, whatever the certificate says", "pattern.example.org", "patterns"),
    ("a pattern before the name in another certificate", "both.example.com", "patterns"),
    ("a wildcard", "any.wild.example.org", "patterns"),
    ("an exact name before a wildcard", "exact.wild.example.org", "extracted"),
    ("a wildcard, which stands for one label", "a.b.wild.example.org", "default"),
    ("the name with capitals", "Extracted.Example.com", "extracted"),
    ("the earlier of two", "twice.example.org", "patterns"),
]


@pytest.fixture
def many(tmp_path: Path) -> ServerTls:
    """The certificates are recognised by a name that only one has."""
    made = {
        "default": ["default"],
        "extracted": ["extracted", "extracted.example.com", "both.example.com", "exact.wild.example.org", "127.0.0.2"],
        "patterns": ["patterns"],
        "last": ["last"],
    }
    files = {name: written(tmp_path, name, CA.issue_server(names)) for name, names in made.items()}
    patterns = "pattern.example.org,both.example.com,*.wild.example.org,twice.example.org"
    named = (
        Named(files["extracted"]),
        parse_named(f"{files['patterns'].certificate},{files['patterns'].key}:{patterns}"),
        Named(files["last"], ("twice.example.org", "127.0.0.3")),
    )
    return ServerTls(Material(files["default"], named))


def served(server: ServerTls, name: str, address: str = "127.0.0.1") -> str:
    client = client_context(CA.certificate)
    client.check_hostname = False
    found = handshake(client, server.context(address), name).client.getpeercert()
    assert found
    return found["subjectAltName"][0][1]  # type: ignore[index, return-value]


@pytest.mark.parametrize(("name", "expected"), [row[1:] for row in SELECTED], ids=[row[0] for row in SELECTED])
def test_the_certificate_for(many: ServerTls, name: str, expected: str) -> None:
    assert served(many, name) == expected


@pytest.mark.parametrize(
    ("address", "expected"), [("127.0.0.1", "default"), ("127.0.0.2", "extracted"), ("127.0.0.3", "last")]
)
def test_without_a_name_the_address_selects_the_certificate(many: ServerTls, address: str, expected: str) -> None:
    assert served(many, address, address) == expected  # no client sends an address as a name


NOT_NAMED = {
    "cert": "expected comma separated certificate and key file paths",
    "cert,": "expected comma separated certificate and key file paths",
    "a,b,c": "expected comma separated certificate and key file paths",
    "cert,key:a b": "'a b' is neither a DNS name, perhaps with a wildcard, nor an address",
}


@pytest.mark.parametrize(("text", "why"), NOT_NAMED.items())
def test_values_of_tls_sni_cert_key_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_named(text)


# -- files that cannot be used


def broken(name: str) -> Callable[[Path], Material]:
    """Material with a file that cannot be used."""

    def made(directory: Path) -> Material:
        files = written(directory, "server", SERVER)
        match name:
            case "absent":
                files.key.unlink()
            case "other key":
                files.key.write_bytes(OWN.key)
            case "no PEM":
                files.certificate.write_bytes(b"\x00secret")
            case "no key":
                files.key.write_bytes(b"")
            case "encrypted":
                key = ec.generate_private_key(ec.SECP256R1())
                form = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password"))
                files.key.write_bytes(form)
            case "CA":
                (directory / "ca").write_text("no certificate")
                return Material(SERVER, authority_file=directory / "ca")
        return Material(files)

    return made


UNUSABLE: list[tuple[str, str, str]] = [
    ("an absent key", "absent", "server.key: No such file or directory"),
    ("the key of another certificate", "other key", "server.key cannot be used: key values mismatch"),
    ("no certificate in PEM", "no PEM", "server.crt with .*server.key cannot be used: "),
    ("an empty key", "no key", "server.crt with .*server.key cannot be used: "),
    ("an encrypted key", "encrypted", "server.key cannot be used: the key is encrypted"),
    ("a CA that is none", "CA", "a CA of --client-ca-file or --requestheader-client-ca-file cannot be used: "),
]


@pytest.mark.parametrize(("name", "why"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE])
def test_a_server_does_not_start_with(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(TlsError, match=why) as raised:
        ServerTls(broken(name)(tmp_path))
    assert "secret" not in str(raised.value)


# -- files that change


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return written(tmp_path, "server", CA.issue_server(["old"]))


async def test_new_handshakes_use_the_certificate_of_files_that_have_changed(files: Files) -> None:
    server, clock = ServerTls(Material(files)), ManualClock()
    task = asyncio.create_task(server.reload_periodically(clock))
    await loop_turns()
    written(files.key.parent, "server", CA.issue_server(["new"]))
    assert served(server, "x") == "old"
    assert RELOAD_EVERY <= 60
    clock.advance(RELOAD_EVERY)
    await loop_turns()
    assert served(server, "x") == "new"
    task.cancel()


def test_the_ca_of_clients_changes_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "ca"
    file.write_bytes(new_authority().certificate)
    server = ServerTls(Material(SERVER, authority_file=file))
    with pytest.raises(ssl.SSLError):
        handshake(client_context(CA.certificate, OWN), server.context(""))
    file.write_bytes(CA.certificate)
    server.reload()
    handshake(client_context(CA.certificate, OWN), server.context(""))


def test_a_half_written_pair_is_not_used_and_logged_once(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "noxu")
    server, new = ServerTls(Material(files)), CA.issue_server(["new"])
    files.certificate.write_bytes(new.certificate)
    server.reload()
    server.reload()
    files.certificate.unlink()
    server.reload()
    server.reload()
    assert served(server, "x") == "old"
    files.certificate.write_bytes(new.certificate)
    files.key.write_bytes(new.key)
    server.reload()
    server.reload()
    assert served(server, "x") == "new"
    assert [record.getMessage() for record in caplog.records] == [
        f"{files.certificate} with {files.key} cannot be used: key values mismatch; the former certificates stay in use",
        f"{files.certificate}: No such file or directory; the former certificates stay in use",
        "the certificates have changed, and are used for new connections",
    ]
