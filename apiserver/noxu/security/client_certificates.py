"""Users by certificate: of the client itself, or named by a front proxy.

Users by client certificate: CN is the name, each O a group (pkg/authentication/request/x509).

Subjects have one reader, `go.x509`, which the signers of requests for certificates and admission use, too: all three
agree about the groups of a user. TLS has verified the chain. Each request checks the time, because a connection may
outlive the certificate, and the CA that has certified it: clients and front proxies have separate ones. A certificate
is read once.

Users of a front proxy: it has a client certificate, and names its user in headers
(pkg/authentication/request/headerrequest).

Headers count only with a certificate of the proxy's CA, whose name is allowed; without one they mean nothing.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from multidict import MultiMapping

from noxu.go import x509 as go_x509
from noxu.go.x509 import COMMON_NAME, ORGANIZATION
from noxu.registry.access import User
from noxu.security.certificates import malformed
from noxu.security.credentials import Credentials, Rejected, valid_text, with_authenticated
from noxu.security.impersonation import extra_key

CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
UID: Final = "1.3.6.1.4.1.57683.2"
"""The attribute of the subject that has the uid."""
_UID: Final = bytes.fromhex("2b0601040183c25302")
"""Its object identifier as certificates have it."""
MALFORMED: Final = "x509: malformed certificate"
MAX_CACHED: Final = 1024  # certificates

Authorities = Callable[[], frozenset[bytes]]
"""The certificates of CAs in DER, which may change."""


class ClientCertificate(NamedTuple):
    """What is read of a certificate. Times are in seconds since 1970."""

    common_name: str
    user: User | None
    """None without a common name."""
    begins: float
    ends: float
    is_for_clients: bool


class ClientCertificates:
    """A `CertificateAuthenticator`."""

    def __init__(self, authorities: Authorities, now: Callable[[], float] = time.time) -> None:
        """`now` is real time, by which TLS verifies, too."""
        self._authorities = authorities
        self._now = now

    def __call__(self, sent: Credentials) -> User | None:
        return verified(sent.chain, self._authorities(), self._now()).user


def verified(chain: tuple[bytes, ...], authorities: frozenset[bytes], now: float) -> ClientCertificate:
    """The certificate of a client, which one of these CAs has certified. Raises Rejected."""
    certificate = read(chain[0])
    if authorities.isdisjoint(chain) and not (len(chain) == 1 and _is_issued(chain[0], authorities)):
        raise Rejected("x509: certificate signed by unknown authority")
    if not certificate.begins <= now <= certificate.ends:
        raise Rejected("x509: certificate has expired or is not yet valid")
    if not certificate.is_for_clients:
        raise Rejected("x509: certificate specifies an incompatible key usage")
    return certificate


@lru_cache(maxsize=MAX_CACHED)
def _is_issued(der: bytes, authorities: frozenset[bytes]) -> bool:
    """Whether one of the CAs has issued a certificate itself.

    A session of TLS 1.2 that is resumed has the certificate, which was verified when the session began, but not its chain.
    """
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    for authority in authorities:
        try:
            x509.load_der_x509_certificate(der).verify_directly_issued_by(x509.load_der_x509_certificate(authority))
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


@lru_cache(maxsize=MAX_CACHED)
def read(der: bytes) -> ClientCertificate:
    """Read a certificate. Raises Rejected."""
    try:
        return _read(der)
    except malformed():
        raise Rejected(MALFORMED) from None


def _read(der: bytes) -> ClientCertificate:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    certificate = x509.load_der_x509_certificate(der)
    subject = go_x509.subject_of(der)
    name, groups = subject.last(COMMON_NAME), subject.values(ORGANIZATION)
    uid = _uid(subject.values(_UID))
    extra = ((CREDENTIAL_ID, (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)),)
    try:
        usages = list(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    return ClientCertificate(
        name,
        with_authenticated(User(name, uid, groups, extra)) if name else None,
        certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp(),
        any(usage in (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE) for usage in usages),
    )


def _uid(values: tuple[str, ...]) -> str:
    """Raises Rejected."""
    if not values:
        return ""
    if len(values) > 1:
        raise Rejected("expected 1 UID, but found multiple")
    if not values[0]:
        raise Rejected("UID cannot be an empty string")
    return values[0]


# -- front proxy ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """A `CertificateAuthenticator`. `names` are the common names that are allowed, empty: all."""

    authorities: Authorities
    names: Sequence[str]
    user_headers: Sequence[str]
    uid_headers: Sequence[str]
    group_headers: Sequence[str]
    extra_prefixes: Sequence[str]
    now: Callable[[], float] = time.time

    def __call__(self, sent: Credentials) -> User | None:
        """None if the proxy names no user. Raises Rejected."""
        name = verified(sent.chain, self.authorities(), self.now()).common_name
        if self.names and name not in self.names:
            raise Rejected("x509: the subject is not in the allowed list")
        user = _first(sent.headers, self.user_headers)
        if not user:
            return None
        groups = tuple(value for header in self.group_headers for value in _values(sent.headers, header) if value)
        return User(user, _first(sent.headers, self.uid_headers), groups, _extra(sent.headers, self.extra_prefixes))


def _values(headers: MultiMapping[str], name: str) -> Iterator[str]:
    return map(valid_text, headers.getall(name, []))


def _first(headers: MultiMapping[str], names: Sequence[str]) -> str:
    """The first header of the first name that is not empty."""
    return next((value for name in names for value in list(_values(headers, name))[:1] if value), "")


def _extra(headers: MultiMapping[str], prefixes: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    extra: dict[str, list[str]] = {}
    for prefix in prefixes:
        for name, value in headers.items():
            if name.lower().startswith(prefix.lower()):
                extra.setdefault(extra_key(valid_text(name)[len(prefix) :]), []).append(valid_text(value))
    return tuple((key, tuple(values)) for key, values in sorted(extra.items()))
