"""Certificates for CertificateSigningRequests: check a request by the rules of its signer, and issue the certificate.

As k8s.io/kubernetes: pkg/apis/certificates/helpers.go for the requests of kubelets, pkg/controller/certificates/signer
for users, and pkg/controller/certificates/authority for the certificate: subject and alternative names of the request, the
usages of the object, no other extension of the request, never a CA. It begins five minutes early, because clocks differ,
and ends at the latest with its issuer.

The names are those that `go.x509` has read and the signer has checked, and are written anew from what was read. Besides
them only the key of the request gets into the certificate.
"""

from __future__ import annotations

import ipaddress
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from noxu.go import x509 as go_x509
from noxu.go.x509 import COMMON_NAME, ORGANIZATION, CertificateRequest

if TYPE_CHECKING:
    from cryptography import x509

# cryptography is imported by the functions that need it: most servers sign nothing.

LIFETIME: Final = timedelta(days=365)
"""--cluster-signing-duration's default: the longest that can be asked for."""
_SHORTEST: Final = timedelta(minutes=10)
_EARLY: Final = timedelta(minutes=5)
_SHORT: Final = timedelta(hours=8)
"""Certificates that live shorter begin early, but last as long as was asked for."""

_DIGITAL, _ENCIPHERMENT = "digital signature", "key encipherment"
_SERVER, _CLIENT = "server auth", "client auth"
_NODE_GROUPS: Final = ("system:nodes",)
_NODE_PREFIX: Final = "system:node:"
_ECDSA_WITH_SHA256: Final = bytes.fromhex("2a8648ce3d040302")
_ATTRIBUTES: Final = 0xA0


class SigningCA(NamedTuple):
    """The certificate of a CA and its key, in PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "SigningCA()"  # a key is a secret


class RequestRefused(Exception):
    """The signer does not sign such a request. The message is upstream's."""


# -- signers ----------------------------------------------------------------------------------------------------------


def _check_client(asked: CertificateRequest, usages: Sequence[str]) -> None:  # noqa: ARG001
    for usage in usages:
        if usage not in (_DIGITAL, _ENCIPHERMENT, _CLIENT):
            raise RequestRefused(f"invalid usage for client certificate: {usage}")
    if _CLIENT not in usages:
        raise RequestRefused(f"missing required usage for client certificate: {_CLIENT}")


def _check_kubelet_client(asked: CertificateRequest, usages: Sequence[str]) -> None:
    if asked.subject.values(ORGANIZATION) != _NODE_GROUPS:
        raise RequestRefused("subject organization is not system:nodes")
    for names, what in ((asked.dns, "DNS"), (asked.emails, "Email"), (asked.addresses, "IP"), (asked.uris, "URI")):
        if names:
            raise RequestRefused(f"{what} subjectAltNames are not allowed")
    if not asked.subject.last(COMMON_NAME).startswith(_NODE_PREFIX):
        raise RequestRefused("subject common name does not begin with system:node:")
    _check_exactly(usages, _CLIENT)


def _check_kubelet_serving(asked: CertificateRequest, usages: Sequence[str]) -> None:
    if asked.subject.values(ORGANIZATION) != _NODE_GROUPS:
        raise RequestRefused("subject organization is not system:nodes")
    if not asked.dns and not asked.addresses:
        raise RequestRefused("DNS or IP subjectAltName is required")
    for names, what in ((asked.emails, "Email"), (asked.uris, "URI")):
        if names:
            raise RequestRefused(f"{what} subjectAltNames are not allowed")
    _check_exactly(usages, _SERVER)
    if not asked.subject.last(COMMON_NAME).startswith(_NODE_PREFIX):
        raise RequestRefused("subject common name does not begin with system:node:")


def _check_exactly(usages: Sequence[str], purpose: str) -> None:
    """Key encipherment is for keys of RSA, and may be absent."""
    if set(usages) - {_ENCIPHERMENT} != {_DIGITAL, purpose}:
        expected = " ".join(sorted((_DIGITAL, _ENCIPHERMENT, purpose)))
        raise RequestRefused(f"usages did not match [{expected}]")


def _accept(asked: CertificateRequest, usages: Sequence[str]) -> None: ...


SIGNERS: Final[dict[str, Callable[[CertificateRequest, Sequence[str]], None]]] = {
    "kubernetes.io/kube-apiserver-client": _check_client,
    "kubernetes.io/kube-apiserver-client-kubelet": _check_kubelet_client,
    "kubernetes.io/kubelet-serving": _check_kubelet_serving,
    "kubernetes.io/legacy-unknown": _accept,
}
"""The signers by name; each raises Refused."""


# -- issuing ----------------------------------------------------------------------------------------------------------


def issue(
    request: bytes, signer: str, usages: Sequence[str], seconds: int | None, authority: SigningCA, now: datetime
) -> bytes:
    """The certificate in PEM for a request in PEM. `seconds` is spec.expirationSeconds.

    Raises Refused, and ValueError if the request or the CA cannot be used.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        asked = go_x509.read_request(request)
    except ValueError as error:
        raise RequestRefused(f"unable to parse csr: {error}") from None
    SIGNERS[signer](asked, usages)
    try:
        signed = x509.load_der_x509_csr(asked.der)
        is_valid = signed.is_signature_valid
        key: Any = signed.public_key()
    except (ValueError, TypeError, LookupError, UnsupportedAlgorithm, x509.InvalidVersion):
        raise RequestRefused("unable to parse csr: its key or its signature cannot be used") from None
    if not is_valid:
        raise ValueError("unable to verify certificate request signature")
    return _sign(asked, key, usages, _lifetime(seconds), authority, now)


def _lifetime(seconds: int | None) -> timedelta:
    return LIFETIME if seconds is None else min(max(timedelta(seconds=seconds), _SHORTEST), LIFETIME)


def _subject(request: CertificateRequest) -> x509.Name:
    """The subject, written anew.

    `cryptography` makes no Name from DER but in a request, which is put together here: its key and its signature mean
    nothing. What it says about long names does not matter: those of nodes may exceed RFC 5280's 64 bytes.
    """
    from cryptography import x509

    name = go_x509.write_name(request.subject)
    algorithm = go_x509.encode_element(go_x509.SEQUENCE, go_x509.encode_element(go_x509.IDENTIFIER, _ECDSA_WITH_SHA256))
    nothing = go_x509.encode_element(go_x509.BIT_STRING, b"\0")
    key = go_x509.encode_element(go_x509.SEQUENCE, algorithm, nothing)
    info = go_x509.encode_element(
        go_x509.SEQUENCE, go_x509.encode_element(go_x509.INTEGER, b"\0"), name, key, go_x509.encode_element(_ATTRIBUTES)
    )
    with warnings.catch_warnings(action="ignore"):
        return x509.load_der_x509_csr(go_x509.encode_element(go_x509.SEQUENCE, info, algorithm, nothing)).subject


def _alternative_names(asked: CertificateRequest) -> list[x509.GeneralName]:
    """Those of one kind after those of another, as Go writes them. Raises Refused."""
    from cryptography import x509

    try:
        return [
            *map(x509.DNSName, asked.dns),
            *map(x509.RFC822Name, asked.emails),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in asked.addresses),
            *map(x509.UniformResourceIdentifier, asked.uris),
        ]
    except ValueError as error:
        raise RequestRefused(f"unable to parse csr: {error}") from None


def _sign(
    asked: CertificateRequest,
    public_key: Any,
    usages: Sequence[str],
    lifetime: timedelta,
    authority: SigningCA,
    now: datetime,
) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ed448, ed25519

    issuer = x509.load_pem_x509_certificate(authority.certificate)
    key = cast("Any", _key_of(authority))
    subject = _subject(asked)
    begins = now - _EARLY
    ends = now + lifetime if lifetime < _SHORT else begins + lifetime
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(min(ends, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    if key_usage := _key_usage(usages):
        builder = builder.add_extension(key_usage, critical=True)
    if purposes := [oid for name, oid in _PURPOSES.items() if name in usages]:
        oids = [x509.ObjectIdentifier(oid) for oid in dict.fromkeys(purposes)]
        builder = builder.add_extension(x509.ExtendedKeyUsage(oids), critical=False)
    if others := _alternative_names(asked):
        is_only_name = not list(subject)
        builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=is_only_name)
    digest = None if isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey) else hashes.SHA256()
    return builder.sign(key, digest).public_bytes(serialization.Encoding.PEM)


def _key_of(authority: SigningCA) -> object:
    """Raises ValueError, which has nothing of the key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(authority.key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("the key of the signing CA is not a private key in PEM") from None


_KEY_USAGES: Final = {
    "digital_signature": ("signing", _DIGITAL),
    "content_commitment": ("content commitment",),
    "key_encipherment": (_ENCIPHERMENT,),
    "data_encipherment": ("data encipherment",),
    "key_agreement": ("key agreement",),
    "key_cert_sign": ("cert sign",),
    "crl_sign": ("crl sign",),
    "encipher_only": ("encipher only",),
    "decipher_only": ("decipher only",),
}
_PURPOSES: Final = {
    "any": "2.5.29.37.0",
    _SERVER: "1.3.6.1.5.5.7.3.1",
    _CLIENT: "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}
"""The object identifiers of extended usages, in the order in which Go writes them."""


def _key_usage(usages: Sequence[str]) -> x509.KeyUsage | None:
    from cryptography import x509

    bits = {bit: any(name in usages for name in names) for bit, names in _KEY_USAGES.items()}
    if not bits["key_agreement"]:  # without it the last two are undefined (RFC 5280, 4.2.1.3)
        bits["encipher_only"] = bits["decipher_only"] = False
    return x509.KeyUsage(**bits) if any(bits.values()) else None


def check_authority(authority: SigningCA) -> None:
    """Raises ValueError if the certificate and the key cannot sign together."""
    from cryptography import x509

    try:
        issuer = x509.load_pem_x509_certificate(authority.certificate)
    except ValueError:
        raise ValueError("the certificate of the signing CA is not a certificate in PEM") from None
    key = cast("Any", _key_of(authority))
    if key.public_key() != issuer.public_key():
        raise ValueError("the key of the signing CA is not that of its certificate")
