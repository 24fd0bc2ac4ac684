"""The certificates of a server and of its administrator, made or read as its configuration says.

The server has a CA, kept in the data directory or in memory. It issues the server's certificate, unless the configuration
has another one, and the client certificate in the kubeconfig. Clients are certified by this CA, or by those of
`--client-ca-file`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Final, NamedTuple

from noxu.config import Authentication, Config, TlsOptions
from noxu.files import warn_if_shared
from noxu.security import pki
from noxu.security.authentication import CertificateAuthenticator
from noxu.security.certificates import CertifiedKey, TlsError, is_dns_name
from noxu.security.client_certificates import ClientCertificates, FrontProxy
from noxu.security.credentials import ADMINISTRATOR
from noxu.security.kubeconfig import Access
from noxu.security.tls import VERSIONS, Files, Material, ServerTls, parse_named

LOCAL: Final = ("localhost", "127.0.0.1", "::1")
SERVICE: Final = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "10.0.0.1",
)
"""The names and the address of the Service `kubernetes`."""


class Secured(NamedTuple):
    """What a server needs for TLS. `own` makes or reads the server's CA, which issues certificates of clients."""

    tls: ServerTls
    own: Callable[[], pki.Pki]
    certificate_authority: bytes
    """What clients need to trust the server, in PEM."""

    def authenticators(self, options: Authentication) -> list[CertificateAuthenticator]:
        """Those of client certificates, in order."""
        authenticators: list[CertificateAuthenticator] = [ClientCertificates(lambda: self.tls.client_authorities)]
        if options.requestheader_client_ca_file is not None:
            proxy = FrontProxy(
                lambda: self.tls.proxy_authorities,
                options.requestheader_allowed_names,
                options.requestheader_username_headers,
                options.requestheader_uid_headers,
                options.requestheader_group_headers,
                options.requestheader_extra_headers_prefix,
            )
            authenticators.insert(0, proxy)
        return authenticators

    def access(self, url: str) -> Access:
        """The access of the administrator, with a new client certificate."""
        client = self.own().authority.issue_client(ADMINISTRATOR.name, ADMINISTRATOR.groups)
        return Access(url, self.certificate_authority, client.certificate, client.key)


def secure(config: Config, tls: TlsOptions, own_names: Sequence[str]) -> Secured:
    """The certificates of a server that is also reached by these names and addresses of its host. Raises TlsError."""
    names = names_of(config, own_names)

    @cache
    def own() -> pki.Pki:
        return pki.in_memory(names, _now) if config.data is None else pki.kept(config.data / pki.DIRECTORY, names, _now)

    default = _files(tls, own)
    named = tuple(map(parse_named, tls.named))
    if default is not None:
        warn_if_shared(default.key, "--tls-private-key-file" if tls.key is not None else "--cert-dir")
    for host in named:
        warn_if_shared(host.files.key, "--tls-sni-cert-key")
    material = Material(
        own().server if default is None else default,
        named,
        (own().authority.certificate,) if tls.own_clients else (),
        tls.client_authority,
        config.authentication.requestheader_client_ca_file,
        VERSIONS[tls.minimum],
    )
    server_tls = ServerTls(material)
    # Who has issued another certificate is not known: with the CA in its file, or if it is self-signed, clients trust it.
    return Secured(server_tls, own, own().authority.certificate if default is None else server_tls.certificate)


def names_of(config: Config, own_names: Sequence[str]) -> tuple[str, ...]:
    """The names and addresses of the server, for its certificate. Raises TlsError."""
    named = [name for name in (config.host, config.external_hostname, config.advertise_address) if name]
    for name in named:
        if not is_name(name):
            raise TlsError(f"{name} is neither a DNS name nor an address, so no certificate can have it")
    names = map(_normal, (*LOCAL, *SERVICE, *named, *filter(is_name, own_names)))
    return tuple(dict.fromkeys(name for name in names if not _is_unspecified(name)))


def _files(tls: TlsOptions, own: Callable[[], pki.Pki]) -> Files | None:
    """The files of the server's certificate; None for its own. Raises TlsError."""
    if tls.certificate is not None and tls.key is not None:
        return Files(tls.certificate, tls.key)
    if tls.directory is None:
        return None
    files = Files(tls.directory / "apiserver.crt", tls.directory / "apiserver.key")

    def with_authority() -> CertifiedKey:
        authority, server = own()
        return CertifiedKey(server.certificate + authority.certificate, server.key)

    pki.written(*files, with_authority)
    return files


def _normal(name: str) -> str:
    """A name as certificates have it: addresses in their shortest form."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


def _is_unspecified(name: str) -> bool:
    """Whether it is the address for all addresses, by which nothing is reached."""
    return name in (str(ipaddress.IPv4Address(0)), str(ipaddress.IPv6Address(0)))


def is_name(name: str) -> bool:
    """Whether a certificate can have it, and a URL: a DNS name or an address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return is_dns_name(name)
    return True


def _now() -> datetime:
    return datetime.now(UTC)  # real time, see certificates
