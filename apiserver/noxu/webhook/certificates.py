"""Why a certificate does not verify, with the messages of Go's crypto/x509.

The TLS library has refused it; this examines the certificate again to explain why, in Go's order: its dates, its names,
its issuer. Only the fields needed for that are read from the DER.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from noxu.go import pem
from noxu.go import x509 as go_x509
from noxu.go.text import quote
from noxu.go.time import format_time

_MAX_NAMES: Final = 100  # in a message
_CONTEXT_0, _CONTEXT_3 = 0xA0, 0xA3
_UTC_TIME: Final = 0x17
_DNS_NAME, _IP_ADDRESS = 0x82, 0x87
_COMMON_NAME, _ORGANIZATION, _SUBJECT_ALT_NAME = b"\x55\x04\x03", b"\x55\x04\x0a", b"\x55\x1d\x11"
_WRONG_SIGNATURE: Final = {  # by the OID of the key's algorithm
    b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01": "crypto/rsa: verification error",
    b"\x2a\x86\x48\xce\x3d\x02\x01": "x509: ECDSA verification failure",
    b"\x2b\x65\x70": "x509: Ed25519 verification failure",
}


class Certificate(NamedTuple):
    """The fields that matter for errors. `issuer` and `subject` are DER; `names` is None without a SAN extension."""

    serial: int
    issuer: bytes
    subject: bytes
    not_before: datetime
    not_after: datetime
    key: bytes
    names: Sequence[str] | None
    addresses: Sequence[str]

    def named(self, attribute: bytes) -> str:
        """The first attribute of that OID in the subject, "" if there is none."""
        return next((value for name, value in _attributes(self.subject) if name == attribute), "")


def verification_error(der: bytes, host: str, bundle: bytes, now: datetime) -> str:
    """Why the certificate of `host` does not verify with a CA bundle."""
    try:
        leaf = parse(der)
        authorities = [parse(authority) for authority in pem.certificates(bundle)]
    except (ValueError, IndexError):
        return _message("certificate signed by unknown authority")
    return _message(_by_dates(leaf, now) or _by_name(leaf, host) or _by_issuer(leaf, authorities))


def _message(why: str) -> str:
    return f"tls: failed to verify certificate: x509: {why}"


def _by_dates(leaf: Certificate, now: datetime) -> str:
    for wrong, how, limit in (
        (now < leaf.not_before, "before", leaf.not_before),
        (now > leaf.not_after, "after", leaf.not_after),
    ):
        if wrong:
            current = f"current time {format_time(now)} is {how} {format_time(limit)}"
            return f"certificate has expired or is not yet valid: {current}"
    return ""


def _by_name(leaf: Certificate, host: str) -> str:
    try:
        address = str(ipaddress.ip_address(host))
    except ValueError:
        return _by_dns_name(leaf, host)
    if address in leaf.addresses:
        return ""
    if leaf.names is None and leaf.named(_COMMON_NAME).lower() == host:
        return "certificate relies on legacy Common Name field, use SANs instead"
    if not leaf.addresses:
        return f"cannot validate certificate for {host} because it doesn't contain any IP SANs"
    if len(leaf.addresses) >= _MAX_NAMES:
        return f"certificate is valid for {len(leaf.addresses)} IP SANs, but none matched {host}"
    return f"certificate is valid for {', '.join(leaf.addresses)}, not {host}"


def _by_dns_name(leaf: Certificate, host: str) -> str:
    names = leaf.names or ()
    if any(_matches(name.lower(), host.lower()) for name in names):
        return ""
    if leaf.names is None and _matches(leaf.named(_COMMON_NAME).lower(), host.lower()):
        return "certificate relies on legacy Common Name field, use SANs instead"
    if len(names) >= _MAX_NAMES:
        return f"certificate is valid for {len(names)} names, but none matched {host}"
    if not names:
        return f"certificate is not valid for any names, but wanted to match {host}"
    return f"certificate is valid for {', '.join(names)}, not {host}"


def _matches(pattern: str, host: str) -> bool:
    """Whether a pattern matches; a wildcard is the whole first label."""
    if pattern.startswith("*."):
        return bool(host.partition(".")[0]) and host.partition(".")[2] == pattern[2:]
    return pattern == host


def _by_issuer(leaf: Certificate, authorities: Sequence[Certificate]) -> str:
    """The hint names an authority with the issuer's name that did not sign the certificate."""
    text = "certificate signed by unknown authority"
    for candidate in authorities:
        if candidate.subject == leaf.issuer and candidate.key in _WRONG_SIGNATURE:
            name = candidate.named(_COMMON_NAME) or candidate.named(_ORGANIZATION) or f"serial:{candidate.serial}"
            hint = f"possibly because of {quote(_WRONG_SIGNATURE[candidate.key])}"
            return f"{text} ({hint} while trying to verify candidate authority certificate {quote(name)})"
    return text


# -- DER --------------------------------------------------------------------------------------------------------------


def parse(der: bytes) -> Certificate:
    """Read a certificate. Raises ValueError or IndexError if it is malformed."""
    fields = list(_elements(_content(_content(der))))
    if fields[0][0] == _CONTEXT_0:  # the version
        del fields[0]
    serial, _, issuer, validity, subject, key = fields[:6]
    not_before, not_after = (_time(*moment) for moment in _elements(validity[1]))
    names: list[str] | None = None
    addresses: list[str] = []
    for tag, content in fields[6:]:
        if tag == _CONTEXT_3 and (alternatives := _alternative_names(content)) is not None:
            names, addresses = alternatives
    algorithm = _content(_content(key[1]))
    return Certificate(
        int.from_bytes(serial[1], "big", signed=True),
        issuer[1],
        subject[1],
        not_before,
        not_after,
        algorithm,
        names,
        addresses,
    )


def _alternative_names(extensions: bytes) -> tuple[list[str], list[str]] | None:
    for _, extension in _elements(_content(extensions)):
        parts = list(_elements(extension))
        if parts[0] == (go_x509.IDENTIFIER, _SUBJECT_ALT_NAME):
            general_names = list(_elements(_content(parts[-1][1])))
            names = [content.decode("ascii", "replace") for tag, content in general_names if tag == _DNS_NAME]
            return names, [str(ipaddress.ip_address(content)) for tag, content in general_names if tag == _IP_ADDRESS]
    return None


def _attributes(name: bytes) -> Iterator[tuple[bytes, str]]:
    """The attributes of a distinguished name: (OID, text)."""
    for _, relative in _elements(name):
        for _, attribute in _elements(relative):
            (_, oid), (_, value) = _elements(attribute)
            yield oid, value.decode("utf-8", "replace")


def _time(tag: int, content: bytes) -> datetime:
    text = content.decode("ascii")
    if tag == _UTC_TIME:  # RFC 5280: 50 is 1950, 49 is 2049
        text = ("19" if text >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _content(der: bytes) -> bytes:
    """The content of the first element, empty if there is none."""
    return next(_elements(der), (0, b""))[1]


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Raises ValueError if one is malformed or cut off."""
    return go_x509.elements(der, "certificate")
