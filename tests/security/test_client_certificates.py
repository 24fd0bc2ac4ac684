"""Client certificates: who their users are, and when they are good."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict

from noxu.registry.access import User
from noxu.security.client_certificates import CREDENTIAL_ID, MALFORMED, UID, ClientCertificates, FrontProxy, read
from noxu.security.credentials import AUTHENTICATED, Credentials, Rejected

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
NOW = (BEGIN + timedelta(hours=1)).timestamp()
KEY = ec.generate_private_key(ec.SECP256R1())
CN, O = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME  # noqa: E741 - its name in certificates
UID_ATTRIBUTE = ObjectIdentifier(UID)
CLIENT, SERVER, ANY = (
    ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
)  # fmt: skip
CA = b"the CA"


def certificate(*attributes: tuple[Any, str], usages: tuple[Any, ...] = (), together: bool = False) -> bytes:
    """`together`: all attributes are one, as Go writes several O."""
    named = [x509.NameAttribute(oid, value) for oid, value in attributes]
    parts = (
        [x509.RelativeDistinguishedName(named)] if together else [x509.RelativeDistinguishedName([n]) for n in named]
    )
    builder = x509.CertificateBuilder().subject_name(x509.Name(parts)).issuer_name(x509.Name([]))
    builder = builder.public_key(KEY.public_key()).serial_number(1)
    builder = builder.not_valid_before(BEGIN).not_valid_after(BEGIN + timedelta(days=1))
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


def authenticated(der: bytes, now: float = NOW, issuer: bytes = CA) -> User | None:
    return ClientCertificates(lambda: frozenset([CA]), lambda: now)(Credentials(CIMultiDict(), (der, issuer)))


USERS: list[tuple[str, bytes, str, str, tuple[str, ...]]] = [
    ("a name", certificate((CN, "jane")), "jane", "", ()),
    ("groups", certificate((CN, "jane"), (O, "a"), (O, "b")), "jane", "", ("a", "b")),
    ("groups in one part of the subject", certificate((O, "a"), (O, "b"), (CN, "jane"), together=True), "jane", "", ("a", "b")),
    ("a uid", certificate((CN, "jane"), (UID_ATTRIBUTE, "7")), "jane", "7", ()),
    ("several names, of which the last counts", certificate((CN, "x"), (CN, "jane")), "jane", "", ()),
    ("a usage", certificate((CN, "jane"), usages=(SERVER, CLIENT)), "jane", "", ()),
    ("any usage", certificate((CN, "jane"), usages=(ANY,)), "jane", "", ()),
]  # fmt: skip


@pytest.mark.parametrize(("der", "name", "uid", "groups"), [row[1:] for row in USERS], ids=[row[0] for row in USERS])
def test_the_user_of_a_certificate_with(der: bytes, name: str, uid: str, groups: tuple[str, ...]) -> None:
    user = authenticated(der)
    extra = ((CREDENTIAL_ID, (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)),)
    assert user is not None
    assert (user.name, user.uid, sorted(user.groups), user.extra) == (
        name,
        uid,
        sorted((*groups, AUTHENTICATED)),
        extra,
    )


def test_without_a_name_there_is_no_user() -> None:
    assert authenticated(certificate((O, "a"))) is None


JANE = certificate((CN, "jane"))
GROUP = certificate((CN, "jane"), (O, "dev"))
ENDED = "x509: certificate has expired or is not yet valid"
REJECTED: list[tuple[str, bytes, float, bytes, str]] = [
    ("before it is valid", JANE, BEGIN.timestamp() - 1, CA, ENDED),
    ("after it is valid", JANE, BEGIN.timestamp() + 86401, CA, ENDED),
    ("of another CA", JANE, NOW, b"another", "x509: certificate signed by unknown authority"),
    ("for servers", certificate((CN, "jane"), usages=(SERVER,)), NOW, CA,
     "x509: certificate specifies an incompatible key usage"),
    ("with two uids", certificate((CN, "jane"), (UID_ATTRIBUTE, "1"), (UID_ATTRIBUTE, "2")), NOW, CA,
     "expected 1 UID, but found multiple"),
    ("with a group of a type that Go does not know", GROUP.replace(b"\x0c\x03dev", b"\x1c\x03dev"), NOW, CA, MALFORMED),
    ("that is cut off", JANE[:-1], NOW, CA, MALFORMED),
    ("that is none", b"", NOW, CA, MALFORMED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("der", "now", "issuer", "error"), [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED]
)
def test_a_certificate_is_rejected(der: bytes, now: float, issuer: bytes, error: str) -> None:
    with pytest.raises(Rejected) as rejected:
        authenticated(der, now, issuer)
    assert str(rejected.value) == error


def test_a_self_signed_certificate_may_be_the_ca() -> None:
    found = ClientCertificates(lambda: frozenset([JANE]), lambda: NOW)(Credentials(CIMultiDict(), (JANE,)))
    assert found is not None
    assert found.name == "jane"


@pytest.mark.filterwarnings(
    "ignore::cryptography.utils.CryptographyDeprecationWarning"
)  # it reads a serial number of 0
@given(st.integers(0, len(JANE) - 1), st.binary(min_size=1, max_size=4))
@example(13, b"\0")
def test_a_changed_certificate_is_read_or_rejected(position: int, data: bytes) -> None:
    der = JANE[:position] + data + JANE[position + len(data) :]
    try:
        read(der)
    except Rejected as rejected:
        text = str(rejected)
        assert text
        return
    assert isinstance(read(der).common_name, str)


# -- front proxies ------------------------------------------------------------------------------------------------------

PROXY_CA = b"the CA of proxies"
PROXY = certificate((CN, "proxy"))


def behind_proxy(
    *headers: tuple[str, str], der: bytes = PROXY, issuer: bytes = PROXY_CA, names: tuple[str, ...] = ("proxy",)
) -> User | None:
    proxy = FrontProxy(
        lambda: frozenset([PROXY_CA]), names, ["X-Remote-User", "X-Other-User"], ["X-Remote-Uid"], ["X-Remote-Group"],
        ["X-Remote-Extra-", "X-More-"], lambda: NOW,
    )  # fmt: skip
    return proxy(Credentials(CIMultiDict(headers), (der, issuer)))


HEADERS: list[tuple[str, list[tuple[str, str]], User | None]] = [
    ("none", [], None),
    ("a user", [("x-remote-user", "jane")], User("jane", groups=())),
    ("a user in the second header", [("X-Remote-User", ""), ("X-Other-User", "jane")], User("jane", groups=())),
    ("groups and a uid", [("X-Remote-User", "jane"), ("X-Remote-Group", "a"), ("X-Remote-Group", ""),
                          ("X-Remote-Group", "b,c"), ("X-Remote-Uid", "7")], User("jane", "7", ("a", "b,c"))),
    ("extra", [("X-Remote-User", "jane"), ("X-Remote-Extra-Acme.com%2FA", "1"), ("X-More-b", "2"), ("x-remote-extra-b", "3")],
     User("jane", groups=(), extra=(("acme.com/a", ("1",)), ("b", ("3", "2"))))),
    ("groups without a user", [("X-Remote-Group", "system:masters")], None),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "user"), [row[1:] for row in HEADERS], ids=[row[0] for row in HEADERS])
def test_the_user_whom_a_proxy_names(headers: list[tuple[str, str]], user: User | None) -> None:
    assert behind_proxy(*headers) == user


def test_a_proxy_is_known_by_its_certificate() -> None:
    jane = ("X-Remote-User", "jane")
    assert behind_proxy(jane, names=()) is not None
    for more in ({"issuer": CA}, {"names": ("x",)}, {"der": certificate((CN, "proxy"), usages=(SERVER,))}):
        with pytest.raises(Rejected):
            behind_proxy(jane, **more)
