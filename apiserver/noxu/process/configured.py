"""Derive the parts of a server from its configuration, check it, and read the files that it names."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Final

from noxu.api.errors import ApiError
from noxu.api.names import is_loopback
from noxu.clock import SYSTEM_CLOCK, AdjustableClock, Clock
from noxu.config import Config, StartError, TlsOptions
from noxu.control_plane import controllers_of, modes_of
from noxu.controllers import manager
from noxu.controllers.bootstrap import Facts
from noxu.controllers.certificate_issuing import SigningCA, check_authority
from noxu.features import RBAC
from noxu.files import warn_if_shared
from noxu.identifiers import Identifiers, seeded
from noxu.process.certificates import Secured, is_name, secure
from noxu.process.listeners import Listeners, host_address, own_names
from noxu.security import settings
from noxu.security.certificates import TlsError

CLOCK: Final = "noxu.control.clock"
DETERMINISTIC: Final = "frozen=2024-01-01T00:00:00Z"
"""How the clock of a deterministic server begins."""


def reachable(address: str) -> str:
    """An address by which this machine reaches a server that listens on `address`, which may mean all addresses."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address, address)  # noqa: S104 - nothing is bound


def protected(config: Config, *, on_loopback: bool) -> Config:
    """The configuration with what others' access requires: TLS in the profile cluster and off loopback, RBAC off loopback."""
    if config.tls is None and (config.profile == "cluster" or not on_loopback):
        config = dataclasses.replace(config, tls=TlsOptions())
    if config.authorization_modes is None and not on_loopback:
        config = dataclasses.replace(config, authorization_modes=(RBAC,))
    return config


def clock(config: Config, given: Clock) -> Clock:
    """The clock of a new server: one that can be set, unless a program has given its own. Raises StartError."""
    if given is not SYSTEM_CLOCK:
        return given
    own = AdjustableClock()
    if config.clock or config.deterministic is not None:
        begin = import_module(CLOCK).begin  # few servers begin at another time
        try:
            begin(own, config.clock or DETERMINISTIC)
        except (ValueError, ApiError) as error:
            raise StartError(f"--clock {config.clock}: {error}") from None
    return own


def identifiers(config: Config, given: Identifiers) -> Identifiers:
    """Where the identifiers of objects come from."""
    return given if config.deterministic is None else seeded(config.deterministic)


def check_controllers(config: Config) -> None:
    """Raises StartError for a profile, a controller or an election that is not available."""
    try:
        manager.check_profile(config.profile)
        manager.check_controllers(controllers_of(config), has_nodes=config.nodes is not None)
        manager.check_leader_election(config.leader_election)
    except ValueError as error:
        raise StartError(str(error)) from None


def check_names(config: Config) -> None:
    """Check the names by which clients reach the server; TLS has checks of its own. Raises StartError."""
    if config.external_hostname and config.tls is None and not is_name(config.external_hostname):
        raise StartError(f"--external-hostname {config.external_hostname} is neither a DNS name nor an address")
    if ":" in config.advertise_address:  # endpoints have the family of addresses of their service
        raise StartError(
            f'service IP family "{config.services}" must match public address family "{config.advertise_address}"'
        )


def authority(config: Config, listeners: Listeners, address: str) -> str:
    """The host and port by which clients reach the server: its external name, or else the address."""
    host = config.external_hostname or address
    return f"{f'[{host}]' if ':' in host else host}:{listeners.port}"


def facts(config: Config, listeners: Listeners, identity: str) -> Facts:
    """What a server knows about itself. Its address is the one on which it listens, unless --advertise-address says so."""
    advertised = config.advertise_address
    address = listeners.address
    if advertised:
        address = "" if is_loopback(advertised) else advertised
    elif is_loopback(address) or address != reachable(address) or ":" in address:
        address = host_address()
    return Facts(listeners.port, socket.gethostname(), identity, address, config.services)


def authentication_of(config: Config) -> settings.Settings:
    """How users are identified. Raises StartError."""
    try:
        return settings.read(config, modes_of(config))
    except ValueError as error:
        raise StartError(str(error)) from None


def signing_ca(config: Config, secured: Secured | None) -> Callable[[], SigningCA] | None:
    """The CA that signs requests for certificates: of files, which may be renewed, or the server's. Raises StartError."""
    certificate, key = config.cluster_signing_cert_file, config.cluster_signing_key_file
    if certificate is None and key is None:
        return None if secured is None else partial(_own_signing_ca, secured)
    if certificate is None or key is None:
        raise StartError("--cluster-signing-cert-file and --cluster-signing-key-file need each other")

    def read() -> SigningCA:
        return SigningCA(certificate.read_bytes(), key.read_bytes())

    warn_if_shared(key, "--cluster-signing-key-file")
    try:
        check_authority(read())
    except OSError as error:
        raise StartError(f"cannot read {error.filename}: {error.strerror or error}") from None
    except ValueError as error:
        raise StartError(f"{certificate}, {key}: {error}") from None
    return read


def _own_signing_ca(secured: Secured) -> SigningCA:
    authority = secured.own().authority.identity
    return SigningCA(authority.certificate, authority.key)


def secured(config: Config, *, on_loopback: bool) -> Secured | None:
    """Make or read the certificates; None: there is no TLS. Raises StartError."""
    if config.tls is None:
        return None
    try:
        return secure(config, config.tls, [] if on_loopback else own_names())
    except TlsError as error:
        raise StartError(str(error)) from None
