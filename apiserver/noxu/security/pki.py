"""The files of a CA and of a server's certificate: made once, kept in a directory, and renewed in time.

    ca.crt  ca.key                  the CA. The file ca.crt is what clients need to trust the server
    apiserver.crt  apiserver.key    the server's certificate, issued by the CA

Missing files are made: first a key, then its certificate, each file completely or not at all. A certificate is made
again from its key when it ends soon, the server's also when it lacks a name or an address. Another file is never
replaced: one that cannot be used, or was not issued by the CA, is an error. Servers that start at the same time wait
for each other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from noxu.files import keep_private, locked, write_whole
from noxu.security import certificates
from noxu.security.certificates import Authority, CertifiedKey, TlsError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec

DIRECTORY: Final = "pki"
"""Its name in the data directory."""


class Pki(NamedTuple):
    """A CA, and the certificate of a server."""

    authority: Authority
    server: CertifiedKey


def in_memory(names: Collection[str], now: Callable[[], datetime]) -> Pki:
    authority = certificates.new_authority(now)
    return Pki(authority, authority.issue_server(names))


def kept(directory: Path, names: Collection[str], now: Callable[[], datetime]) -> Pki:
    """The files in a directory, made as needed. Raises TlsError."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(directory):
            authority = _authority(directory, now)
            return Pki(authority, _server(directory, authority, names, now))
    except OSError as error:
        place = error.filename or directory
        raise TlsError(f"cannot keep certificates in {place}: {error.strerror or error}") from None


def written(certificate: Path, key: Path, make: Callable[[], CertifiedKey]) -> None:
    """Make the files of an identity, if neither is there. Raises TlsError if only one is."""
    try:
        certificate.parent.mkdir(parents=True, exist_ok=True)
        with locked(certificate.parent):
            there = [path for path in (certificate, key) if path.exists()]
            if len(there) == 1:
                raise TlsError(f"{there[0]} is there without its certificate or key; add or remove the other file")
            if not there:
                pair = make()
                write_whole(key, pair.key, 0o600, durable=True)
                write_whole(certificate, pair.certificate, 0o644, durable=True)
    except OSError as error:
        raise TlsError(f"cannot keep certificates in {certificate.parent}: {error.strerror or error}") from None


def _authority(directory: Path, now: Callable[[], datetime]) -> Authority:
    """Raises TlsError, OSError."""
    path, key_path = directory / "ca.crt", directory / "ca.key"
    key = _key(key_path, path)
    der = _read(path)
    if der is not None:
        with _naming(path):
            authority = Authority(CertifiedKey(der, certificates.encode_key(key)), now)
        if authority.ends - now() > certificates.RENEWED_BEFORE:
            return authority
    der = certificates.authority_certificate(key, now())
    write_whole(path, der, 0o644, durable=True)
    return Authority(CertifiedKey(der, certificates.encode_key(key)), now)


def _server(directory: Path, authority: Authority, names: Collection[str], now: Callable[[], datetime]) -> CertifiedKey:
    """Raises TlsError, OSError."""
    path, key_path = directory / "apiserver.crt", directory / "apiserver.key"
    key = _key(key_path, path)
    der = _read(path)
    if der is not None:
        with _naming(path):
            certificate = certificates.parse(der)
            if not authority.has_issued(certificate):
                raise ValueError("it was not issued by ca.crt; --tls-cert-file serves another certificate")
            has = certificates.names_in(certificate)
            if certificate.public_key() != key.public_key():
                raise ValueError("its key is not the one in apiserver.key")
        is_new_enough = certificate.not_valid_after_utc - now() > certificates.RENEWED_BEFORE
        if is_new_enough and set(names) <= {*has.dns, *has.addresses}:
            return CertifiedKey(der, certificates.encode_key(key))
    issued = authority.issue_server(names, key)
    write_whole(path, issued.certificate, 0o644, durable=True)
    return issued


def _key(path: Path, certificate: Path) -> ec.EllipticCurvePrivateKey:
    """The key in a file, made if there is neither a key nor a certificate. Raises TlsError, OSError."""
    data = _read(path)
    if data is not None:
        keep_private(path)
        with _naming(path):
            return certificates.parse_key(data)
    if certificate.exists():
        raise TlsError(
            f"{certificate} has no key: {path.name} is missing; remove the certificate to have both made again"
        )
    key = certificates.new_key()
    write_whole(path, certificates.encode_key(key), 0o600, durable=True)
    return key


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file whose content raises ValueError."""
    try:
        yield
    except ValueError as error:
        raise TlsError(f"{path} cannot be used: {error}") from None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
