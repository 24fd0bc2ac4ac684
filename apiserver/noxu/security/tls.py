"""TLS as kube-apiserver speaks it, as far as Python's ssl can: the certificates of the server and of its clients.

- TLS 1.2 or later; HTTP/1.1 is all that ALPN offers, which every client accepts.
- A certificate is selected by the name in the handshake (SNI), without one by the address that the client has connected to:
  exact names before wildcards, patterns of `--tls-sni-cert-key` before the names in certificates, earlier options before
  later ones (upstream's dynamiccertificates). No match: the default certificate.
- A client may send a certificate, and need not. It has to be issued by one of the CAs, or be one of them, like a
  self-signed certificate: Go verifies so, and OpenSSL does with VERIFY_X509_PARTIAL_CHAIN and without
  VERIFY_X509_STRICT. A foreign one ends the handshake, where upstream would answer 401: ssl cannot ask for a certificate
  without verifying it.
- Files are read again every RELOAD_EVERY seconds. When their content has changed, new handshakes use it. Content that
  cannot be used, such as a certificate whose key is not written yet, is logged once; the former stays in use.
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from noxu import files
from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.go import pem
from noxu.security import certificates
from noxu.security.certificates import CertifiedKey, TlsError

RELOAD_EVERY: Final = 10.0  # seconds; upstream watches the files, and reads them every minute
_MISSING: Final = "a part in PEM is missing"
VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
"""Values of --tls-min-version. Upstream has older ones, too."""


log = logging.getLogger("noxu")


class Files(NamedTuple):
    """The files of a certificate, with those that certify it, and of its key."""

    certificate: Path
    key: Path


class Named(NamedTuple):
    """A certificate for names. Without patterns it is for those in the certificate."""

    files: Files
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Material:
    """What TLS is configured with. `authorities` are CAs of clients in PEM, `authority_file` is a file of more."""

    default: CertifiedKey | Files
    named: tuple[Named, ...] = ()
    authorities: tuple[bytes, ...] = ()
    authority_file: Path | None = None
    proxy_authority_file: Path | None = None
    """The CAs of front proxies, which certify no other clients."""
    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2


class _Loaded(NamedTuple):
    """The content of all files."""

    default: CertifiedKey
    named: tuple[CertifiedKey, ...]
    authorities: tuple[bytes, ...]
    proxy_authorities: tuple[bytes, ...]


class ServerTls:
    """The contexts of a server."""

    def __init__(self, material: Material) -> None:
        """Raises TlsError."""
        if material.named:
            _discard_malformed_names()
        self._material = material
        self._loaded = _load(material)
        self._default, self._by_name = _contexts(material, self._loaded)
        self._refused: _Loaded | str = ""

    @property
    def default(self) -> CertifiedKey:
        """The default certificate, with those that certify it, and its key."""
        return self._loaded.default

    @property
    def certificate(self) -> bytes:
        """The default certificate, with those that certify it, in PEM."""
        return self._loaded.default.certificate

    def trusting(self, authority: bytes) -> ServerTls:
        """The same certificates, for clients of one more CA, in PEM. Raises TlsError."""
        return ServerTls(replace(self._material, authorities=(*self._material.authorities, authority)))

    @property
    def client_authorities(self) -> frozenset[bytes]:
        """The CAs of clients, in DER."""
        return _in_der(self._loaded.authorities)

    @property
    def proxy_authorities(self) -> frozenset[bytes]:
        """The CAs of front proxies, in DER."""
        return _in_der(self._loaded.proxy_authorities)

    def context(self, address: str) -> ssl.SSLContext:
        """The context for a new connection to this address of the server."""
        return self._by_name.get(address, self._default)

    async def reload_periodically(self, clock: Clock = SYSTEM_CLOCK) -> None:
        while True:
            await clock.sleep(RELOAD_EVERY)
            self.reload()

    def reload(self) -> None:
        """Use the current content of the files. A failure is logged, and changes nothing."""
        loaded: _Loaded | None = None
        try:
            loaded = _load(self._material)
            if loaded in (self._loaded, self._refused):
                return
            self._default, self._by_name = _contexts(self._material, loaded)
        except TlsError as error:
            refused = loaded or str(error)
            if refused != self._refused:
                log.warning("%s; the former certificates stay in use", error)
            self._refused = refused
        else:
            self._loaded, self._refused = loaded, ""
            log.info("the certificates have changed, and are used for new connections")


def parse_named(text: str) -> Named:
    """A value of --tls-sni-cert-key: CERTIFICATE,KEY[:PATTERN,...]. Raises ValueError."""
    files, _, patterns = text.partition(":")
    certificate, comma, key = files.partition(",")
    if not comma or not certificate.strip() or not key.strip() or "," in key:
        raise ValueError("expected comma separated certificate and key file paths")
    names = tuple(name.strip() for name in patterns.split(",") if name.strip())
    for name in names:
        if not certificates.is_dns_name(name) and not _is_address(name):
            raise ValueError(f"{name!r} is neither a DNS name, perhaps with a wildcard, nor an address")
    return Named(Files(Path(certificate.strip()), Path(key.strip())), names)


# -- files ------------------------------------------------------------------------------------------------------------


def _load(material: Material) -> _Loaded:
    """Raises TlsError."""
    default = material.default if isinstance(material.default, CertifiedKey) else _identity(material.default)
    file = material.authority_file
    authorities = material.authorities + ((_read(file),) if file is not None else ())
    proxies = () if material.proxy_authority_file is None else (_read(material.proxy_authority_file),)
    return _Loaded(default, tuple(_identity(named.files) for named in material.named), authorities, proxies)


@lru_cache(maxsize=8)
def _in_der(authorities: tuple[bytes, ...]) -> frozenset[bytes]:
    """The certificates in texts in PEM: those that ssl has got."""
    return frozenset(block for bundle in authorities for block in pem.certificates(bundle))


def _in_one(bundle: bytes) -> bytes:
    """The certificates of a bundle in DER, one after the other, as ssl takes them. Raises ValueError if there is none."""
    joined = b"".join(pem.certificates(bundle))
    if not joined:
        raise ValueError(_MISSING)
    return joined


def _identity(files: Files) -> CertifiedKey:
    """Raises TlsError."""
    return CertifiedKey(_read(files.certificate), _read(files.key))


def _read(path: Path) -> bytes:
    """Raises TlsError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{path}: {error.strerror or error}") from None


# -- contexts ---------------------------------------------------------------------------------------------------------


def _contexts(material: Material, loaded: _Loaded) -> tuple[ssl.SSLContext, dict[str, ssl.SSLContext]]:
    """The default context, and others by name or address. Raises TlsError."""
    by_name: dict[str, ssl.SSLContext] = {}
    authorities = loaded.authorities + loaded.proxy_authorities
    named = [
        (_context(identity, _shown(host.files), authorities, material.minimum), identity, host)
        for identity, host in zip(loaded.named, material.named, strict=True)
    ]
    for context, identity, host in reversed(named):
        if not host.patterns:
            by_name.update(dict.fromkeys(_names_in(identity.certificate, host.files.certificate), context))
    for context, _, host in reversed(named):
        by_name.update(dict.fromkeys(map(_normal, host.patterns), context))
    where = _shown(material.default) if isinstance(material.default, Files) else "the certificate of the server"
    default = _context(loaded.default, where, authorities, material.minimum)

    def select(connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        if name is not None and (selected := _find(by_name, name)) is not None:
            connection.context = selected

    if by_name:
        for context in (default, *by_name.values()):
            context.sni_callback = select
    return default, by_name


def _find(by_name: dict[str, ssl.SSLContext], name: str) -> ssl.SSLContext | None:
    """The context for a name in a handshake. A wildcard stands for the first label."""
    name = _normal(name)
    return by_name.get(name) or by_name.get(f"*.{name.partition('.')[2]}")


def _discard_malformed_names() -> None:
    """Do not print a traceback for a name beyond ASCII in a handshake: that ends the handshake, and is not `select`'s.

    ssl decodes the name before it calls `select`, and reports a failure to sys.unraisablehook.
    """
    before = sys.unraisablehook
    if getattr(before, "discards_malformed_names", False):
        return

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, UnicodeDecodeError) or not isinstance(unraisable.object, bytes):
            before(unraisable)

    hook.discards_malformed_names = True  # type: ignore[attr-defined]
    sys.unraisablehook = hook


def _normal(name: str) -> str:
    return name.lower().rstrip(".")


def _names_in(certificate: bytes, file: Path) -> list[str]:
    """The names for which a certificate is used without patterns. Raises TlsError."""
    try:
        names = certificates.names_in(certificates.parse(certificate))
    except ValueError as error:
        raise TlsError(f"{file} cannot be used: {error}") from None
    common = [names.common_name] if certificates.is_dns_name(names.common_name) else []
    return [_normal(name) for name in (*common, *names.dns, *names.addresses)]


def _context(
    identity: CertifiedKey, where: str, authorities: Sequence[bytes], minimum: ssl.TLSVersion
) -> ssl.SSLContext:
    """`where`: the files of the identity, for errors. Raises TlsError."""

    def no_password() -> str:
        raise TlsError(f"{where} cannot be used: the key is encrypted")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = minimum
    context.options |= ssl.OP_NO_RENEGOTIATION  # a client could make the server compute without end
    context.options &= (
        ~ssl.OP_CIPHER_SERVER_PREFERENCE
    )  # OpenSSL prefers AES-256; Go's clients AES-128, which costs less
    context.num_tickets = (
        0  # TLS 1.3: no client of the API resumes sessions, and each ticket costs as much as an answer
    )
    context.set_alpn_protocols(["http/1.1"])
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        files.load_certificate(context, identity.certificate, identity.key, no_password)
    except ssl.SSLError as error:
        raise TlsError(f"{where} cannot be used: {_reason(error)}") from None
    except OSError as error:
        raise TlsError(f"{where} cannot be loaded: {error.strerror or error}") from None
    if authorities:
        try:
            for bundle in authorities:
                context.load_verify_locations(cadata=_in_one(bundle))
        except (ssl.SSLError, ValueError) as error:
            reason = _reason(error) if isinstance(error, ssl.SSLError) else str(error)
            raise TlsError(
                f"a CA of --client-ca-file or --requestheader-client-ca-file cannot be used: {reason}"
            ) from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _shown(files: Files) -> str:
    return f"{files.certificate} with {files.key}"


def _reason(error: ssl.SSLError) -> str:
    """What OpenSSL says, in words: of what it has read nothing but the kind."""
    return error.reason.replace("_", " ").lower() if error.reason else _MISSING


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
