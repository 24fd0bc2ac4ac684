"""What a CA issues, and who trusts it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from noxu.security.certificates import (
    Authority,
    CertifiedKey,
    is_dns_name,
    names_in,
    new_authority,
    parse,
    parse_key,
)
from tests.rows import rows

NOW = datetime(2026, 3, 1, tzinfo=UTC)

USERS: list[tuple[str, str, list[str]]] = [
    ("an administrator", "kubernetes-admin", ["system:masters"]),
    ("a user of several groups", "bob", ["g2", "g1", "g3"]),
    ("a user without groups", "system:serviceaccount:ns:sa", []),
    ("names beyond ASCII", "Zoë", ["Größe, a=b"]),
]


@pytest.mark.parametrize(("name", "groups"), [row[1:] for row in USERS], ids=[row[0] for row in USERS])
def test_the_certificate_of(name: str, groups: Sequence[str]) -> None:
    authority = new_authority(lambda: NOW)
    issued = authority.issue_client(name, groups)
    certificate = parse(issued.certificate)
    assert [each.value for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [name]
    assert [each.value for each in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == groups
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert parse_key(issued.key).public_key() == certificate.public_key()
    assert authority.has_issued(certificate)
    assert not new_authority(lambda: NOW).has_issued(certificate)


def test_the_certificate_of_a_server() -> None:
    issued = new_authority(lambda: NOW).issue_server(["localhost", "*.example.com", "127.0.0.1", "::1"])
    certificate = parse(issued.certificate)
    assert names_in(certificate) == ("kube-apiserver", ("localhost", "*.example.com"), ("127.0.0.1", "::1"))
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_certificates_begin_before_now_and_end_with_their_ca() -> None:
    moment = NOW
    authority = new_authority(lambda: moment)
    first = parse(authority.issue_client("a").certificate)
    assert first.not_valid_before_utc == NOW - timedelta(hours=1)
    assert first.not_valid_after_utc == NOW + timedelta(days=365)
    moment = authority.ends - timedelta(days=7)
    assert parse(authority.issue_client("a").certificate).not_valid_after_utc == authority.ends


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_name_that_no_certificate_can_have(name: str) -> None:
    with pytest.raises(ValueError, match="length"):
        new_authority(lambda: NOW).issue_client(name)


def test_an_authority_is_a_ca_and_its_key() -> None:
    authority, other = new_authority(), new_authority()
    leaf = authority.issue_client("a")
    with pytest.raises(ValueError, match="the certificate is not that of a CA"):
        Authority(leaf)
    with pytest.raises(ValueError, match="the key is not that of the certificate"):
        Authority(CertifiedKey(other.certificate, leaf.key))


def test_a_key_appears_in_no_representation() -> None:
    issued = new_authority().issue_client("a")
    assert issued.key.startswith(b"-----BEGIN EC PRIVATE KEY-----\n")  # clients in Java see the algorithm by that
    assert "PRIVATE KEY" not in repr(issued)


DNS_NAMES = {
    "localhost": True,
    "kubernetes.default.svc": True,
    "*.example.com": True,
    "my_host": True,
    "example.com.": True,
    "a.*.com": False,
    "-a.com": False,
    "a b": False,
    "": False,
    "xn--bcher-kva.example": True,
    "bücher.example": False,
    "a" * 254: False,
}


@rows(("text", "expected"), DNS_NAMES.items())
def test_dns_names(text: str, expected: bool) -> None:
    assert is_dns_name(text) == expected
