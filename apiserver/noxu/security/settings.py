"""The configuration of authentication, read once at the start."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from noxu.config import Config
from noxu.features import ALWAYS_ALLOW
from noxu.files import keep_private, warn_if_shared
from noxu.go.pem import private_keys
from noxu.registry.access import User
from noxu.security.authentication import CertificateAuthenticator
from noxu.security.keys import Keys, read_public_keys, read_signing_key
from noxu.security.static_tokens import read_file

T = TypeVar("T")

log = logging.getLogger("noxu")

OWN_KEY: Final = Path("pki", "sa.key")
"""Below the data directory."""


class Settings(NamedTuple):
    """`users` are those of static tokens, by digest. `keys` None: one that is made in memory."""

    users: Mapping[bytes, User] = {}
    keys: Keys | None = None
    issuers: tuple[str, ...] = ()
    audiences: tuple[str, ...] = ()
    lookup: bool = True
    max_seconds: int = 0
    anonymous: bool = True
    certificates: Sequence[CertificateAuthenticator] = ()


DEFAULT: Final = Settings()


def read(config: Config, modes: Sequence[str]) -> Settings:
    """The settings that a configuration asks for, but those of certificates. `modes` are those of authorization.

    Raises ValueError, which says what is wrong with which option.
    """
    options, data = config.authentication, config.data
    if options.requestheader_client_ca_file is not None and config.tls is None:
        raise ValueError("--requestheader-client-ca-file needs --tls: a front proxy is known by its certificate")
    if options.service_account_jwks_uri and urlsplit(options.service_account_jwks_uri).scheme != "https":
        raise ValueError(
            "service-account-jwks-uri requires https scheme, parsed as: " + options.service_account_jwks_uri
        )
    for issuer in options.service_account_issuers:
        _check_issuer(issuer)
    users = {}
    if options.token_auth_file is not None:
        users = _read("--token-auth-file", options.token_auth_file, read_file)
        warn_if_shared(options.token_auth_file, "--token-auth-file")
    verifying = [
        key
        for path in options.service_account_key_files
        for key in _read("--service-account-key-file", path, lambda path: read_public_keys(path.read_bytes()))
    ]
    signing = None
    if options.service_account_signing_key_file is not None:
        path = options.service_account_signing_key_file
        signing = _read("--service-account-signing-key-file", path, lambda path: read_signing_key(path.read_bytes()))
        warn_if_shared(path, "--service-account-signing-key-file")
    for path in options.service_account_key_files:
        if _read("--service-account-key-file", path, _has_private_key):
            warn_if_shared(path, "--service-account-key-file")
    if data is not None:
        _read("the key of service account tokens", data / OWN_KEY, keep_private)
    return Settings(
        users,
        Keys(verifying, signing, None if data is None else data / OWN_KEY),
        options.service_account_issuers,
        options.api_audiences,
        options.service_account_lookup,
        int(options.service_account_max_token_expiration),
        _allows_anonymous(config, modes),
    )


def _has_private_key(path: Path) -> bool:
    return next(private_keys(path.read_bytes()), None) is not None


def _allows_anonymous(config: Config, modes: Sequence[str]) -> bool:
    """Whether requests need no credentials. With TLS, AlwaysAllow does not include the anonymous user, as upstream."""
    allowed = config.authentication.anonymous_auth
    if config.tls is None or ALWAYS_ALLOW not in modes:
        return allowed is not False
    if allowed:
        log.warning("AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false.")
    return False


def _read(option: str, path: Path, read: Callable[[Path], T]) -> T:
    """Raises ValueError."""
    try:
        return read(path)
    except OSError as error:
        raise ValueError(f"{option} {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"{option} {path}: {error}") from None


def _check_issuer(issuer: str) -> None:
    """Raises ValueError (pkg/kubeapiserver/options: an issuer with a colon is a URL)."""
    if not issuer:
        raise ValueError("--service-account-issuer: must not be empty")
    if ":" in issuer:
        try:
            urlsplit(issuer)
        except ValueError as error:
            raise ValueError(f"--service-account-issuer {issuer}: {error}") from None
