"""The arguments of `noxu serve` about who sends a request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from noxu.arguments import values
from noxu.config import DEFAULT_ISSUER, Authentication

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group(
        "authentication", "Who sends a request: see docs/authentication.md. The options are kube-apiserver's."
    )
    group.add_argument(
        "--anonymous-auth",
        type=values.boolean,
        metavar="BOOL",
        help="allow requests without credentials (default: true)",
    )
    group.add_argument(
        "--token-auth-file", type=Path, metavar="FILE", help='static tokens: lines of token,user,uid,"group1,group2"'
    )
    group.add_argument(
        "--service-account-signing-key-file",
        type=Path,
        metavar="FILE",
        help="the private key that signs tokens of service accounts (default: pki/sa.key in the data directory, which the "
        "server makes)",
    )
    group.add_argument(
        "--service-account-key-file",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="further keys that verify tokens of service accounts: public or private keys, or certificates; can be repeated",
    )
    group.add_argument(
        "--service-account-issuer",
        action="append",
        default=[],
        metavar="URL",
        help=f"the issuer of tokens of service accounts (default: {DEFAULT_ISSUER}); further ones are accepted; can be "
        "repeated",
    )
    group.add_argument(
        "--service-account-lookup",
        type=values.boolean,
        default=True,
        metavar="BOOL",
        help="refuse the token of a Secret that was deleted (default: true)",
    )
    group.add_argument(
        "--service-account-max-token-expiration",
        type=values.seconds,
        default=0.0,
        metavar="DURATION",
        help="the longest time for which tokens of service accounts are issued; 0: no limit (default: 0s)",
    )
    group.add_argument(
        "--service-account-jwks-uri",
        default="",
        metavar="URL",
        help="the URL of the keys in the document of OpenID Connect (default: this server's)",
    )
    group.add_argument(
        "--requestheader-client-ca-file",
        type=Path,
        metavar="FILE",
        help="the CAs of front proxies, which name their users in headers; needs TLS",
    )
    for name, what in (
        ("allowed-names", "the common names of front proxies (default: all that the CAs have certified)"),
        ("username-headers", "the headers for the user (default: X-Remote-User)"),
        ("uid-headers", "the headers for its uid (default: X-Remote-Uid)"),
        ("group-headers", "the headers for its groups (default: X-Remote-Group)"),
        ("extra-headers-prefix", "the prefixes of headers for extra (default: X-Remote-Extra-)"),
    ):
        group.add_argument(
            f"--requestheader-{name}", action="append", default=[], metavar="NAME,...", help=f"{what}; can be repeated"
        )
    group.add_argument(
        "--api-audiences",
        action="append",
        default=[],
        metavar="AUDIENCE,...",
        help="the audiences of this server, for which a token must be (default: the issuers); can be repeated",
    )


def authentication(options: argparse.Namespace) -> Authentication:
    headers = {
        name: given
        for name in (
            "requestheader_allowed_names",
            "requestheader_username_headers",
            "requestheader_uid_headers",
            "requestheader_group_headers",
            "requestheader_extra_headers_prefix",
        )
        if (given := values.items(getattr(options, name)))
    }
    return Authentication(
        anonymous_auth=options.anonymous_auth,
        token_auth_file=options.token_auth_file,
        service_account_key_files=tuple(options.service_account_key_file),
        service_account_signing_key_file=options.service_account_signing_key_file,
        service_account_issuers=tuple(options.service_account_issuer),
        service_account_lookup=options.service_account_lookup,
        service_account_max_token_expiration=options.service_account_max_token_expiration,
        service_account_jwks_uri=options.service_account_jwks_uri,
        api_audiences=values.items(options.api_audiences),
        requestheader_client_ca_file=options.requestheader_client_ca_file,
        **headers,
    )
