"""What the signers of kubernetes.io accept, and the certificates that they issue."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from noxu.controllers.certificate_issuing import (
    RequestRefused,
    SigningCA,
    check_authority,
    issue,
)
from noxu.security.certificates import new_authority
from tests.rows import rows

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CLIENT, KUBELET, SERVING, LEGACY = (
    f"kubernetes.io/{name}"
    for name in ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving", "legacy-unknown")
)
CLIENT_USAGES = ["digital signature", "key encipherment", "client auth"]
SERVER_USAGES = ["digital signature", "key encipherment", "server auth"]
NAMES = {"O": NameOID.ORGANIZATION_NAME, "CN": NameOID.COMMON_NAME}


@cache
def authority() -> SigningCA:
    identity = new_authority(lambda: NOW).identity
    return SigningCA(identity.certificate, identity.key)


@cache
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def request(subject: str = "CN=ann", names: tuple[x509.GeneralName, ...] = ()) -> bytes:
    """A request in PEM for a subject such as `O=dev,CN=ann`."""
    attributes = [
        x509.NameAttribute(NAMES[name], value)
        for name, value in (part.split("=") for part in subject.split(",") if part)
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key(), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def issued(
    asked: bytes, signer: str = CLIENT, usages: Any = ("client auth",), seconds: int | None = None
) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issue(asked, signer, usages, seconds, authority(), NOW))


NODE = "O=system:nodes,CN=system:node:n"
DNS, IP, MAIL = x509.DNSName("n"), x509.IPAddress(ipaddress.ip_address("10.1.2.3")), x509.RFC822Name("a@b.c")
URI = x509.UniformResourceIdentifier("spiffe://a/b")
NOT_EXACTLY = "usages did not match [client auth digital signature key encipherment]"
REQUESTS: list[tuple[str, str, bytes, list[str], str]] = [
    ("a user", CLIENT, request(), CLIENT_USAGES, ""),
    ("a user with client auth only", CLIENT, request(), ["client auth"], ""),
    ("a user without client auth", CLIENT, request(), ["digital signature"], "missing required usage for client certificate: client auth"),
    ("a user with another usage", CLIENT, request(), ["client auth", "server auth"], "invalid usage for client certificate: server auth"),
    ("a kubelet", KUBELET, request(NODE), CLIENT_USAGES, ""),
    ("a kubelet with a key that is not RSA", KUBELET, request(NODE), ["digital signature", "client auth"], ""),
    ("a kubelet of no group", KUBELET, request("CN=system:node:n"), CLIENT_USAGES, "subject organization is not system:nodes"),
    ("a kubelet of two groups", KUBELET, request(f"O=a,{NODE}"), CLIENT_USAGES, "subject organization is not system:nodes"),
    ("a kubelet with a DNS name", KUBELET, request(NODE, (DNS,)), CLIENT_USAGES, "DNS subjectAltNames are not allowed"),
    ("a kubelet with a mail address", KUBELET, request(NODE, (MAIL,)), CLIENT_USAGES, "Email subjectAltNames are not allowed"),
    ("a kubelet with an address", KUBELET, request(NODE, (IP,)), CLIENT_USAGES, "IP subjectAltNames are not allowed"),
    ("a kubelet with a URI", KUBELET, request(NODE, (URI,)), CLIENT_USAGES, "URI subjectAltNames are not allowed"),
    ("a kubelet with another name", KUBELET, request("O=system:nodes,CN=n"), CLIENT_USAGES, "subject common name does not begin with system:node:"),
    ("a kubelet that only signs", KUBELET, request(NODE), ["digital signature"], NOT_EXACTLY),
    ("a kubelet that serves, too", KUBELET, request(NODE), [*CLIENT_USAGES, "server auth"], NOT_EXACTLY),
    ("the server of a kubelet", SERVING, request(NODE, (DNS, IP)), SERVER_USAGES, ""),
    ("a server without names", SERVING, request(NODE), SERVER_USAGES, "DNS or IP subjectAltName is required"),
    ("a server with a URI", SERVING, request(NODE, (DNS, URI)), SERVER_USAGES, "URI subjectAltNames are not allowed"),
    ("a server that is a client", SERVING, request(NODE, (DNS,)), CLIENT_USAGES, "usages did not match [digital signature key encipherment server auth]"),
    ("anything of old clients", LEGACY, request("CN=x", (MAIL,)), ["any"], ""),
]  # fmt: skip


@rows(("signer", "asked", "usages", "why"), [row[1:] for row in REQUESTS], ids=[row[0] for row in REQUESTS])
def test_requests(signer: str, asked: bytes, usages: list[str], why: str) -> None:
    if not why:
        assert issued(asked, signer, usages).subject == x509.load_pem_x509_csr(asked).subject
        return
    with pytest.raises(RequestRefused) as refused:
        issue(asked, signer, usages, None, authority(), NOW)
    assert str(refused.value) == why


def test_a_certificate_has_the_names_of_the_request_and_the_usages_of_the_object() -> None:
    asked = request(NODE, (DNS, IP))
    found = issued(asked, SERVING, SERVER_USAGES)
    found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority().certificate))
    extensions = {each.oid._name: (each.critical, each.value) for each in found.extensions}
    assert set(extensions) == {
        "basicConstraints",
        "authorityKeyIdentifier",
        "keyUsage",
        "extendedKeyUsage",
        "subjectAltName",
    }
    assert extensions["basicConstraints"] == (True, x509.BasicConstraints(ca=False, path_length=None))
    assert list(extensions["subjectAltName"][1]) == [DNS, IP]
    assert list(extensions["extendedKeyUsage"][1]) == [ExtendedKeyUsageOID.SERVER_AUTH]
    is_critical, usage = extensions["keyUsage"]
    assert (is_critical, usage.digital_signature, usage.key_encipherment, usage.key_cert_sign) == (
        True,
        True,
        True,
        False,
    )
    assert found.public_key() == key().public_key()


def test_names_without_a_subject_are_critical() -> None:
    found = issued(request("", (DNS,)))
    assert found.extensions.get_extension_for_class(x509.SubjectAlternativeName).critical


LIFETIMES: list[tuple[str, int | None, timedelta, timedelta]] = [
    ("by default", None, timedelta(minutes=-5), timedelta(days=365, minutes=-5)),
    ("a day", 86_400, timedelta(minutes=-5), timedelta(days=1, minutes=-5)),
    ("an hour, of which nothing is lost", 3600, timedelta(minutes=-5), timedelta(hours=1)),
    ("less than ten minutes", 60, timedelta(minutes=-5), timedelta(minutes=10)),
    ("more than a year", 2 * 365 * 86_400, timedelta(minutes=-5), timedelta(days=365, minutes=-5)),
]


@pytest.mark.parametrize(
    ("seconds", "begins", "ends"), [row[1:] for row in LIFETIMES], ids=[row[0] for row in LIFETIMES]
)
def test_a_certificate_lasts(seconds: int | None, begins: timedelta, ends: timedelta) -> None:
    found = issued(request(), seconds=seconds)
    assert (found.not_valid_before_utc, found.not_valid_after_utc) == (NOW + begins, NOW + ends)


def test_a_certificate_ends_with_its_issuer() -> None:
    late = NOW + timedelta(days=3640)
    found = x509.load_pem_x509_certificate(issue(request(), CLIENT, ["client auth"], None, authority(), late))
    assert found.not_valid_after_utc == NOW + timedelta(days=3650)


def test_a_wrong_signature_is_an_error() -> None:
    asked = x509.load_pem_x509_csr(request()).public_bytes(serialization.Encoding.DER)
    other = x509.load_pem_x509_csr(request("CN=bob")).public_bytes(serialization.Encoding.DER)
    forged = x509.load_der_x509_csr(asked[: asked.index(b"ann")] + b"bob" + asked[asked.index(b"ann") + 3 :])
    assert other != asked
    with pytest.raises(ValueError, match="unable to verify certificate request signature"):
        issue(forged.public_bytes(serialization.Encoding.PEM), CLIENT, ["client auth"], None, authority(), NOW)


@pytest.mark.parametrize("kind", ["RSA", "Ed25519"])
def test_a_ca_may_have_a_key_of(kind: str) -> None:
    own: Any = rsa.generate_private_key(65537, 2048) if kind == "RSA" else ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(own.public_key()).serial_number(1)
        .not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
        .sign(own, None if kind == "Ed25519" else hashes.SHA256())
    )  # fmt: skip
    pem = serialization.Encoding.PEM
    private = own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    ca = SigningCA(made.public_bytes(pem), private)
    check_authority(ca)
    x509.load_pem_x509_certificate(issue(request(), CLIENT, ["client auth"], None, ca, NOW)).verify_directly_issued_by(
        made
    )


def test_a_ca_consists_of_a_certificate_and_its_key() -> None:
    check_authority(authority())
    own = authority()
    for ca, why in (
        (own._replace(certificate=b"x"), "the certificate of the signing CA is not a certificate in PEM"),
        (own._replace(key=b"x"), "the key of the signing CA is not a private key in PEM"),
        (own._replace(key=new_authority().identity.key), "the key of the signing CA is not that of its certificate"),
    ):
        with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole message is compared
            check_authority(ca)
        assert str(raised.value) == why
    assert "PRIVATE" not in repr(own)
