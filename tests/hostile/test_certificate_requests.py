"""A request for a certificate means the same to admission, validation, the signer and authentication.

Whatever bytes the request has: one that admission lets pass, and that is signed, never makes a member of system:masters.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from noxu.controllers.certificate_issuing import RequestRefused, SigningCA, issue
from noxu.go.x509 import (
    BIT_STRING,
    COMMON_NAME,
    IDENTIFIER,
    INTEGER,
    OCTET_STRING,
    ORGANIZATION,
    SEQUENCE,
    SET,
    UNIT,
    encode_element,
)
from noxu.security.certificates import new_authority
from noxu.security.client_certificates import read
from tests.admission.cluster import Cluster, of_kind

SIGNER = "kubernetes.io/kube-apiserver-client"
MASTERS = "system:masters"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
ECDSA = encode_element(SEQUENCE, encode_element(IDENTIFIER, bytes.fromhex("2a8648ce3d040302")))
EXTENSION_REQUEST = bytes.fromhex("2a864886f70d01090e")
UTF8, NUMERIC, T61, IA5, UNIVERSAL, BMP = 0x0C, 0x12, 0x14, 0x16, 0x1C, 0x1E


@cache
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def authority() -> SigningCA:
    identity = new_authority(lambda: NOW).identity
    return SigningCA(identity.certificate, identity.key)


def attribute(kind: bytes, text: bytes, tag: int = UTF8) -> bytes:
    return encode_element(SEQUENCE, encode_element(IDENTIFIER, kind), encode_element(tag, text))


def signed(*sets: bytes, name: bytes = b"eve", attributes: bytes = b"") -> bytes:
    """A request in DER with a good signature. Its subject has these sets, and the common name behind them."""
    subject = encode_element(SEQUENCE, *sets, encode_element(SET, attribute(COMMON_NAME, name)))
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    info = encode_element(
        SEQUENCE,
        encode_element(INTEGER, b"\0"),
        subject,
        key().public_key().public_bytes(*form),
        encode_element(0xA0, attributes),
    )
    return encode_element(
        SEQUENCE, info, ECDSA, encode_element(BIT_STRING, b"\0" + key().sign(info, ec.ECDSA(hashes.SHA256())))
    )


def pem(der: bytes, kind: str = "CERTIFICATE REQUEST") -> bytes:
    return f"-----BEGIN {kind}-----\n{base64.encodebytes(der).decode()}-----END {kind}-----\n".encode()


def of(*groups: bytes, tag: int = UTF8) -> bytes:
    """A request for these groups, each in a set of its own."""
    return signed(*(encode_element(SET, attribute(ORGANIZATION, group, tag)) for group in groups))


def extension(kind: bytes, value: bytes) -> bytes:
    return encode_element(SEQUENCE, encode_element(IDENTIFIER, kind), encode_element(OCTET_STRING, value))


def asking(*extensions: bytes) -> bytes:
    asked = encode_element(SET, encode_element(SEQUENCE, *extensions))
    return signed(attributes=encode_element(SEQUENCE, encode_element(IDENTIFIER, EXTENSION_REQUEST), asked))


M = MASTERS.encode()
GOOD, EVIL = pem(of(b"dev")), pem(of(M))
ONE_LINE = EVIL.replace(b"\n", b"")
DIRECTORY_NAME = encode_element(0xA4, encode_element(SEQUENCE, encode_element(SET, attribute(ORGANIZATION, M))))
CA = extension(b"\x55\x1d\x13", encode_element(SEQUENCE, encode_element(0x01, b"\xff")))
NAMES = extension(b"\x55\x1d\x11", encode_element(SEQUENCE, encode_element(0x82, b"a.b"), DIRECTORY_NAME))
REQUESTS: list[tuple[str, bytes, str]] = [
    ("a group", GOOD, "dev"),
    ("no group", pem(signed()), ""),
    ("an empty group", pem(of(b"")), ""),
    ("the masters", EVIL, "refused"),
    ("the masters, second of two", pem(of(b"dev", M)), "refused"),
    ("the masters, second of a set", pem(signed(encode_element(SET, attribute(ORGANIZATION, b"dev"), attribute(ORGANIZATION, M)))), "refused"),
    ("the masters in the set of the unit", pem(signed(encode_element(SET, attribute(UNIT, b"dev"), attribute(ORGANIZATION, M)))), "refused"),
    ("the masters as a unit", pem(signed(encode_element(SET, attribute(UNIT, M)))), ""),
    ("the masters in capitals", pem(of(b"System:Masters")), "System:Masters"),
    ("the masters with a NUL", pem(of(M + b"\0", tag=IA5)), MASTERS + "\0"),
    ("the masters as a T61String", pem(of(M, tag=T61)), "refused"),
    ("the masters as an IA5String", pem(of(M, tag=IA5)), "refused"),
    ("the masters as a BMPString", pem(of(MASTERS.encode("utf-16-be"), tag=BMP)), "refused"),
    ("the masters as a BMPString with a terminator", pem(of(f"{MASTERS}\0".encode("utf-16-be"), tag=BMP)), "refused"),
    ("the masters as a UniversalString", pem(of(MASTERS.encode("utf-32-be"), tag=UNIVERSAL)), "refused"),
    ("the masters as a NumericString", pem(of(M, tag=NUMERIC)), "refused"),
    ("the masters as a VisibleString", pem(of(M, tag=0x1A)), "refused"),
    ("the masters as an OCTET STRING", pem(of(M, tag=OCTET_STRING)), "refused"),
    ("the masters as an integer", pem(of(M, tag=INTEGER)), "refused"),
    ("invalid UTF-8", pem(of(M + b"\xff")), "refused"),
    ("the masters as a type in a longer form", pem(signed(encode_element(SET, attribute(b"\x55\x80\x04\x0a", M)))), "refused"),
    ("the masters with a length in a longer form", pem(of(M).replace(b"\x0c\x0e" + M, b"\x0c\x81\x0e" + M)), "refused"),
    ("two common names", pem(signed(encode_element(SET, attribute(COMMON_NAME, b"bob")))), ""),
    ("a common name in a set twice", pem(signed(encode_element(SET, attribute(COMMON_NAME, b"bob") * 2))), ""),
    ("a space before the first", b" " + EVIL + GOOD, "dev"),
    ("a NUL before the first", b"\0" + EVIL + GOOD, "dev"),
    ("a form feed before the first", b"\f" + EVIL + GOOD, "dev"),
    ("text before the first", b"x" + EVIL + GOOD, "dev"),
    ("the first in one line", ONE_LINE + b"\n" + GOOD, "dev"),
    ("a form feed in the first", EVIL.replace(b"REQUEST-----\n", b"REQUEST-----\n\f", 1) + GOOD, "dev"),
    ("the masters after a group", GOOD + EVIL, "dev"),
    ("the masters before a group", EVIL + GOOD, "refused"),
    ("the masters behind a space", GOOD + b" " + EVIL, "dev"),
    ("another type first", pem(of(b"dev"), "CERTIFICATE") + EVIL, "refused"),
    ("the older name of the type", pem(of(M), "NEW CERTIFICATE REQUEST"), "refused"),
    ("the older name of the type first", pem(of(M), "NEW CERTIFICATE REQUEST") + GOOD, "refused"),
    ("headers", GOOD.replace(b"REQUEST-----\n", b"REQUEST-----\nx: y\n\n", 1), "dev"),
    ("headers before the masters", EVIL.replace(b"REQUEST-----\n", b"REQUEST-----\nx: y\n\n", 1) + GOOD, "refused"),
    ("line ends of Windows", GOOD.replace(b"\n", b"\r\n"), "dev"),
    ("the masters with line ends of Windows", EVIL.replace(b"\n", b"\r\n"), "refused"),
    ("old line ends of Macs", EVIL.replace(b"\n", b"\r"), "refused"),
    ("bytes behind the DER", pem(of(b"dev") + b"\0"), "refused"),
    ("a request behind the DER", pem(of(b"dev") + of(M)), "refused"),
    ("DER without PEM", of(M), "refused"),
    ("a name of a directory", pem(asking(NAMES)), ""),
    ("to be a CA", pem(asking(CA)), ""),
    ("an extension twice", pem(asking(NAMES, NAMES)), "refused"),
]  # fmt: skip


async def outcome(cluster: Cluster, request: bytes) -> str:
    """The groups of the certificate that a request gets, "refused" if it gets none."""
    spec = {"request": base64.b64encode(request).decode(), "signerName": SIGNER, "usages": ["client auth"]}
    new: Any = of_kind("CertificateSigningRequest", "certificates.k8s.io/v1", spec=spec)
    if await cluster.refusal("CertificateSubjectRestriction", new=new):
        return "refused"
    try:
        found = issue(request, SIGNER, ["client auth"], None, authority(), NOW)
    except (RequestRefused, ValueError):
        return "refused"
    certificate = x509.load_pem_x509_certificate(found)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert not constraints.ca
    user = read(certificate.public_bytes(serialization.Encoding.DER)).user
    assert user is not None
    assert user.name == "eve"
    return ",".join(group for group in user.groups if group != "system:authenticated")


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    found = Cluster()
    yield found
    await found.store.close()


@pytest.mark.parametrize(("request_", "expected"), [row[1:] for row in REQUESTS], ids=[row[0] for row in REQUESTS])
async def test_who_asks_for(cluster: Cluster, request_: bytes, expected: str) -> None:
    assert await outcome(cluster, request_) == expected


def test_names_of_other_kinds_are_not_in_the_certificate() -> None:
    found = x509.load_pem_x509_certificate(issue(pem(asking(NAMES)), SIGNER, ["client auth"], None, authority(), NOW))
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.DNSName("a.b")]


def test_a_node_may_have_a_long_name() -> None:
    name = b"system:node:" + b"n" * 200
    request = pem(signed(encode_element(SET, attribute(ORGANIZATION, b"system:nodes")), name=name))
    found = issue(request, f"{SIGNER}-kubelet", ["digital signature", "client auth"], None, authority(), NOW)
    certificate = x509.load_pem_x509_certificate(found).public_bytes(serialization.Encoding.DER)
    assert read(certificate).common_name == name.decode()
