"""Certificate verification errors, in the wording of Go."""

from __future__ import annotations

import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from noxu.webhook.certificates import parse, verification_error
from tests.optional import needs_program

pytestmark = needs_program("openssl")

NOW = datetime.now(UTC) + timedelta(hours=12)
VERIFY = "tls: failed to verify certificate: x509: "
UNKNOWN = f"{VERIFY}certificate signed by unknown authority"


def certificate(directory: Path, *arguments: str, key: str = "P-256") -> tuple[bytes, bytes]:
    """A certificate that signs itself: DER and PEM."""
    pem = directory / "made.pem"
    new_key = ["-newkey", key] if ":" in key else ["-newkey", "ec", "-pkeyopt", f"ec_paramgen_curve:{key}"]
    if key == "ed25519":
        new_key = ["-newkey", "ed25519"]
    command = ["openssl", "req", "-x509", *new_key, "-nodes", "-days", "2", "-keyout", str(directory / "made.key")]
    subprocess.run([*command, "-out", str(pem), *arguments], check=True, stderr=subprocess.DEVNULL)
    text = pem.read_text()
    return ssl.PEM_cert_to_DER_cert(text), text.encode()


NAMES: list[tuple[str, list[str], str, str]] = [
    # its subject and names, the host, what is wrong
    ("another address", ["/CN=x", "IP:10.0.0.1,IP:::1"], "127.0.0.1", "certificate is valid for 10.0.0.1, ::1, not 127.0.0.1"),
    ("no address at all", ["/CN=x", "DNS:localhost"], "127.0.0.1", "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"),
    ("another name", ["/CN=x", "DNS:a.example.com,DNS:b.example.com"], "c.example.com", "certificate is valid for a.example.com, b.example.com, not c.example.com"),
    ("a wildcard two levels up", ["/CN=x", "DNS:*.example.com"], "a.b.example.com", "certificate is valid for *.example.com, not a.b.example.com"),
    ("only addresses", ["/CN=x", "IP:10.0.0.1"], "localhost", "certificate is not valid for any names, but wanted to match localhost"),
    ("a common name", ["/CN=localhost", ""], "localhost", "certificate relies on legacy Common Name field, use SANs instead"),
    ("nothing of the kind", ["/CN=x", ""], "localhost", "certificate is not valid for any names, but wanted to match localhost"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "host", "why"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_a_certificate_for_another_host(tmp_path: Path, made: list[str], host: str, why: str) -> None:
    subject, names = made
    extension = ["-addext", f"subjectAltName={names}"] if names else []
    der, pem = certificate(tmp_path, "-subj", subject, *extension)
    assert verification_error(der, host, pem, NOW) == VERIFY + why


@pytest.mark.parametrize("host", ["a.example.com", "A.EXAMPLE.com", "x.w.example.com", "10.0.0.1", "::1"])
def test_a_certificate_for_this_host_is_of_an_unknown_authority_then(tmp_path: Path, host: str) -> None:
    names = "subjectAltName=DNS:a.example.com,DNS:*.w.example.com,IP:10.0.0.1,IP:::1"
    der, _ = certificate(tmp_path, "-subj", "/CN=x", "-addext", names)
    assert verification_error(der, host, b"", NOW) == UNKNOWN


def test_a_certificate_out_of_its_time(tmp_path: Path) -> None:
    der, pem = certificate(tmp_path, "-subj", "/CN=x", "-addext", "subjectAltName=DNS:x")
    made = parse(der)
    late, early = made.not_after + timedelta(days=1), made.not_before - timedelta(days=1)
    time = "%Y-%m-%dT%H:%M:%SZ"
    messages = f"{VERIFY}certificate has expired or is not yet valid: current time"
    assert verification_error(der, "y", pem, late) == f"{messages} {late:{time}} is after {made.not_after:{time}}"
    assert verification_error(der, "y", pem, early) == f"{messages} {early:{time}} is before {made.not_before:{time}}"


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("rsa:2048", "crypto/rsa: verification error"),
        ("P-256", "x509: ECDSA verification failure"),
        ("ed25519", "x509: Ed25519 verification failure"),
    ],
)
def test_an_authority_of_the_same_name_that_did_not_sign_it(tmp_path: Path, key: str, why: str) -> None:
    arguments = ["-subj", "/CN=hook", "-addext", "subjectAltName=DNS:hook"]
    (der, _), (_, other) = certificate(tmp_path, *arguments), certificate(tmp_path, *arguments, key=key)
    hint = f'(possibly because of "{why}" while trying to verify candidate authority certificate "hook")'
    assert verification_error(der, "hook", other, NOW) == f"{UNKNOWN} {hint}"


@pytest.mark.parametrize(("subject", "name"), [("/O=Makers/OU=x", "Makers"), ("/OU=x", "serial:77")])
def test_authorities_without_a_common_name(tmp_path: Path, subject: str, name: str) -> None:
    arguments = ["-subj", subject, "-addext", "subjectAltName=DNS:hook", "-set_serial", "77"]
    (der, _), (_, other) = certificate(tmp_path, *arguments), certificate(tmp_path, *arguments)
    assert verification_error(der, "hook", other, NOW).endswith(f'candidate authority certificate "{name}")')


@pytest.mark.parametrize("der", [b"", b"x", b"\x30\x82\xff\xff", b"\x30\x03\x02\x01\x01"])
def test_bytes_that_are_no_certificate(der: bytes) -> None:
    assert verification_error(der, "hook", b"", NOW) == UNKNOWN
