"""Certificates: the server's own CA, and the certificates that it issues to the server and to its users.

Keys are ECDSA P-256: every client knows it, and it costs a tenth of RSA in a handshake. The CA lives for ten years, its
certificates for one, as upstream's; both begin an hour early, because clocks differ. A user is the subject of a client
certificate, as kube-apiserver reads it: CN is the name, each O a group.

Keys are secrets: no `repr`, message or log contains them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from noxu.expressions import expression
from noxu.go import pem

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

# cryptography is imported by the functions that need it: a server without TLS does not.

AUTHORITY_LIFETIME: Final = timedelta(days=3650)
LIFETIME: Final = timedelta(days=365)
EARLY: Final = timedelta(hours=1)
RENEWED_BEFORE: Final = timedelta(days=90)
"""A certificate is renewed at a start when less of its lifetime is left: the server should run for that long."""

_DNS_NAME: Final = expression(
    r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?", re.IGNORECASE
)


def malformed() -> tuple[type[Exception], ...]:
    """What `cryptography` raises about malformed keys and certificates: it has no common class."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    of_certificates = (x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
    return (ValueError, TypeError, LookupError, UnsupportedAlgorithm, *of_certificates)


class TlsError(Exception):
    """A certificate, a key or a CA cannot be used. The message says which, and has nothing of a key."""


@dataclass(frozen=True, slots=True)
class CertifiedKey:
    """A certificate, with those that certify it, and its key; in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Names(NamedTuple):
    """The names in a certificate, as texts. Wildcards are DNS names."""

    common_name: str
    dns: tuple[str, ...]
    addresses: tuple[str, ...]


def _now() -> datetime:
    return datetime.now(UTC)


class Authority:
    """A CA that issues certificates. `certificate` is its own, in PEM.

    `now` is real time, also in tests that move the time of objects: clients verify certificates by their own clock.
    """

    def __init__(self, identity: CertifiedKey, now: Callable[[], datetime] = _now) -> None:
        """Raises ValueError if the certificate and the key are not those of a CA."""
        self.identity = identity
        self.certificate = identity.certificate
        self._issuer = parse(identity.certificate)
        self._key = parse_key(identity.key)
        self._now = now
        if self._key.public_key() != self._issuer.public_key():
            raise ValueError("the key is not that of the certificate")
        if not _is_authority(self._issuer):
            raise ValueError("the certificate is not that of a CA")

    @property
    def ends(self) -> datetime:
        return self._issuer.not_valid_after_utc

    def issue_client(self, name: str, groups: Iterable[str] = ()) -> CertifiedKey:
        """The certificate of a user, with a key of its own. Raises ValueError for names that are empty or too long."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        key = new_key()
        builder = _builder(x509.Name(attributes), key).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        return CertifiedKey(self._sign(builder), encode_key(key))

    def issue_server(self, names: Collection[str], key: ec.EllipticCurvePrivateKey | None = None) -> CertifiedKey:
        """The certificate of a server that is reached by these DNS names and addresses. Raises ValueError."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

        key = key or new_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
        builder = (
            _builder(subject, key)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        )
        return CertifiedKey(self._sign(builder), encode_key(key))

    def has_issued(self, certificate: x509.Certificate) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            certificate.verify_directly_issued_by(self._issuer)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def _sign(self, builder: x509.CertificateBuilder) -> bytes:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        now = self._now()
        signed = (
            builder.issuer_name(self._issuer.subject)
            .not_valid_before(now - EARLY)
            .not_valid_after(min(now + LIFETIME, self.ends))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return _encode(signed)


def new_authority(now: Callable[[], datetime] = _now) -> Authority:
    """A CA in memory."""
    key = new_key()
    return Authority(CertifiedKey(authority_certificate(key, now()), encode_key(key)), now)


def authority_certificate(key: ec.EllipticCurvePrivateKey, now: datetime) -> bytes:
    """A certificate that makes a key that of a CA, in PEM. The name of the CA depends on the key only."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"noxu-ca-{identifier.digest.hex()[:8]}")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(now + AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    return _encode(signed)


def _builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
    )


def _general_name(name: str) -> x509.GeneralName:
    """Raises ValueError."""
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def is_dns_name(text: str) -> bool:
    """Whether a text can be a DNS name in a certificate."""
    return len(text) <= 253 and _DNS_NAME.fullmatch(text) is not None


# -- PEM --------------------------------------------------------------------------------------------------------------


def new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A key in PEM: SEC 1, not encrypted, as client-go writes it (util/keyutil, MarshalPrivateKeyToPEM).

    fabric8's client reads the algorithm from the header, and takes a key in PKCS #8 for one of RSA.
    """
    from cryptography.hazmat.primitives import serialization as form

    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.TraditionalOpenSSL, form.NoEncryption())


def parse_key(data: bytes) -> ec.EllipticCurvePrivateKey:
    """Raises ValueError, without a part of the data, if it is no such key in PEM."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    try:
        key = load_der_private_key(next(pem.private_keys(data), b""), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("it is not a private key in PEM") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("its key is not one of ECDSA")
    return key


def parse(data: bytes) -> x509.Certificate:
    """The first certificate of a text in PEM. Raises ValueError."""
    from cryptography import x509

    try:
        return x509.load_der_x509_certificate(next(pem.certificates(data), b""))
    except ValueError:
        raise ValueError("it is not a certificate in PEM") from None


def names_in(certificate: x509.Certificate) -> Names:
    """Raises ValueError if it is malformed."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    common = [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return Names("".join(common[:1]), (), ())
    addresses = tuple(str(address) for address in alternatives.get_values_for_type(x509.IPAddress))
    return Names("".join(common[:1]), tuple(alternatives.get_values_for_type(x509.DNSName)), addresses)


def _is_authority(certificate: x509.Certificate) -> bool:
    from cryptography import x509

    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _encode(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)
