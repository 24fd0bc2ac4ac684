"""CA bundles as Go reads them; the messages were made by client-go."""

from __future__ import annotations

import base64

from noxu.go.pem import certificates
from noxu.go.x509 import load_error
from tests.rows import rows


def der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag]) + (bytes([size]) if size < 0x80 else bytes([0x80 + len(digits)]) + digits) + content


SEQUENCE, INTEGER, BITS, ALGORITHM = 0x30, 2, 3, b"\x30\x03\x06\x01\x2a"
FILL = der(SEQUENCE, b"x" * 200)
TBS = der(SEQUENCE, der(0xA0, b"\2\1\2"), der(INTEGER, b"\1"), ALGORITHM, FILL, FILL, FILL, FILL)
CERTIFICATE = der(SEQUENCE, TBS, ALGORITHM, der(BITS, b"\0sig"))


def pem(content: bytes, type_: str = "CERTIFICATE", headers: str = "") -> str:
    body = base64.encodebytes(content).decode()
    return f"-----BEGIN {type_}-----\n{headers}{body}-----END {type_}-----\n"


GOOD = pem(CERTIFICATE)
PREFIX = "unable to load root certificates: "
BUNDLES: list[tuple[str, str, str]] = [
    ("nothing", "", ""),
    ("a certificate", GOOD, ""),
    ("text around it", f"hello\n{GOOD}world", ""),
    ("one good certificate is enough", pem(b"x") + GOOD, ""),
    ("text", "foo", "unable to parse bytes as PEM block"),
    ("a key", pem(b"x", "PRIVATE KEY"), "no valid certificate authority data seen"),
    ("a key and text", pem(b"x", "PRIVATE KEY") + "foo", "unable to parse bytes as PEM block"),
    ("a certificate with headers", pem(CERTIFICATE, headers="A: b\n\n"), "no valid certificate authority data seen"),
    ("ends do not match", GOOD.replace("END CERTIFICATE", "END CERT"), "unable to parse bytes as PEM block"),
    ("not base64", GOOD.replace("\n-----END", "\n%\n-----END"), "unable to parse bytes as PEM block"),
    ("no certificate inside", pem(b"foo"), "failed to parse certificate: x509: malformed certificate"),
    ("a cut certificate", pem(CERTIFICATE[:-1]), "failed to parse certificate: x509: malformed certificate"),
    ("one byte too many", pem(CERTIFICATE + b"x"), "failed to parse certificate: x509: trailing data"),
    ("an empty certificate", pem(der(SEQUENCE)), "failed to parse certificate: x509: malformed tbs certificate"),
    ("no serial number", pem(der(SEQUENCE, der(SEQUENCE))), "failed to parse certificate: x509: malformed serial number"),
    ("two algorithms", pem(der(SEQUENCE, TBS, ALGORITHM[:-1] + b"\x2b", der(BITS, b"\0s"))), "failed to parse certificate: x509: inner and outer signature algorithm identifiers don't match"),
    ("no signature", pem(der(SEQUENCE, TBS, ALGORITHM)), "failed to parse certificate: x509: malformed signature"),
]  # fmt: skip


@rows(("bundle", "message"), [row[1:] for row in BUNDLES], ids=[row[0] for row in BUNDLES])
def test_why_a_bundle_cannot_be_loaded(bundle: str, message: str) -> None:
    assert load_error(bundle.encode()) == (PREFIX + message if message else "")


def test_the_certificates_of_a_bundle() -> None:
    bundle = f"text\n{GOOD}{pem(b'key', 'PRIVATE KEY')}{pem(CERTIFICATE, headers='A: b' + chr(10) * 2)}{GOOD}"
    assert list(certificates(bundle.encode())) == [CERTIFICATE, CERTIFICATE]
    assert list(certificates(b"")) == []
