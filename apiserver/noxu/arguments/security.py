"""The arguments of `noxu serve` about security: authentication, authorization, TLS, certificates, the audit log."""

from __future__ import annotations

import argparse
from pathlib import Path

from noxu import features
from noxu.arguments import values
from noxu.config import DEFAULT_ISSUER, Audit, Authentication, TlsOptions

# -- authentication ----------------------------------------------------------------------------------------------------


def add_authentication(command: argparse.ArgumentParser) -> None:
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
    values.repeated(
        group,
        "--service-account-key-file",
        "FILE",
        "further keys that verify tokens of service accounts: public or private keys, or certificates",
        parse=Path,
    )
    values.repeated(
        group,
        "--service-account-issuer",
        "URL",
        f"the issuer of tokens of service accounts (default: {DEFAULT_ISSUER}); further ones are accepted",
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
        values.repeated(group, f"--requestheader-{name}", "NAME,...", what)
    values.repeated(
        group,
        "--api-audiences",
        "AUDIENCE,...",
        "the audiences of this server, for which a token must be (default: the issuers)",
    )


def authentication(options: argparse.Namespace) -> Authentication:
    headers = {
        name: items
        for name in (
            "requestheader_allowed_names",
            "requestheader_username_headers",
            "requestheader_uid_headers",
            "requestheader_group_headers",
            "requestheader_extra_headers_prefix",
        )
        if (items := values.items(getattr(options, name)))
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


# -- authorization -----------------------------------------------------------------------------------------------------


def add_authorization(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("authorization", "What users may do: see docs/authorization.md.")
    group.add_argument(
        "--authorization-mode",
        action="append",
        default=None,
        metavar="MODE,...",
        help=f"who decides what users may do, asked in the given order: {', '.join(features.MODES)} (default: AlwaysAllow; "
        "RBAC in the profile cluster, and on other addresses than loopback)",
    )


def authorization_modes(options: argparse.Namespace) -> tuple[str, ...] | None:
    """None: those of the profile. Raises ValueError."""
    if options.authorization_mode is None:
        return None
    try:
        return features.modes(options.authorization_mode)
    except ValueError as error:
        raise ValueError(f"argument --authorization-mode: {error}") from None


# -- certificates of users ---------------------------------------------------------------------------------------------


def add_signing(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group(
        "certificates of users", "The CA that signs approved CertificateSigningRequests: see docs/profiles.md."
    )
    for what, name in (("certificate", "cert"), ("key", "key")):
        group.add_argument(
            f"--cluster-signing-{name}-file",
            type=Path,
            metavar="FILE",
            help=f"the {what} of that CA, in PEM (default: a CA of the server)",
        )


# -- TLS ---------------------------------------------------------------------------------------------------------------


def add_tls(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("TLS", "Each of these options, and --secure-port, makes the server serve HTTPS.")
    group.add_argument(
        "--tls", action="store_true", help="serve HTTPS, with a CA and a certificate that are made if needed"
    )
    group.add_argument(
        "--tls-cert-file", type=Path, metavar="FILE", help="the certificate, followed by those that certify it, in PEM"
    )
    group.add_argument("--tls-private-key-file", type=Path, metavar="FILE", help="its key")
    group.add_argument(
        "--cert-dir",
        type=Path,
        metavar="DIR",
        help="the directory of apiserver.crt and apiserver.key, which are made if they do not exist",
    )
    values.repeated(
        group,
        "--tls-sni-cert-key",
        "CERT,KEY[:PATTERN,...]",
        "a certificate for the names in it, or for these patterns",
        parse=_named_certificate,
    )
    group.add_argument(
        "--tls-min-version",
        choices=("VersionTLS12", "VersionTLS13"),
        help="the oldest version of TLS (default: VersionTLS12)",
    )
    group.add_argument(
        "--client-ca-file", type=Path, metavar="FILE", help="CAs that certify clients, besides the server's own"
    )


def tls(options: argparse.Namespace) -> TlsOptions | None:
    """None if there are no options of TLS. Raises ValueError."""
    if (options.tls_cert_file is None) != (options.tls_private_key_file is None):
        raise ValueError("--tls-cert-file and --tls-private-key-file need each other")
    chosen = TlsOptions(
        options.tls_cert_file,
        options.tls_private_key_file,
        options.cert_dir,
        tuple(options.tls_sni_cert_key),
        options.client_ca_file,
        options.tls_min_version or TlsOptions().minimum,
    )
    is_given = options.tls or options.tls_min_version is not None or options.secure_port is not None
    return chosen if is_given or chosen != TlsOptions() else None


# -- the audit log -----------------------------------------------------------------------------------------------------


def add_audit(command: argparse.ArgumentParser) -> None:
    options = command.add_argument_group("audit log", "Who asked for what, and how it was answered: see docs/audit.md.")
    options.add_argument(
        "--audit-policy-file", type=Path, metavar="FILE", help="what to record (default: the metadata of every request)"
    )
    options.add_argument("--audit-log-path", default="", metavar="FILE", help="the file to write to; - for stdout")
    options.add_argument(
        "--audit-log-format",
        choices=("json", "legacy"),
        default="json",
        help="the format of a line (default: %(default)s)",
    )
    options.add_argument(
        "--audit-log-mode",
        choices=("batch", "blocking", "blocking-strict"),
        default="blocking",
        help="if the log is written too slowly: batch: events are dropped; blocking: requests wait; blocking-strict: requests "
        "wait for the log, and fail if it cannot be written (default: %(default)s)",
    )
    for name, default, unit, what in (
        ("maxsize", 100, "MB", "the size at which the file is rotated; 0: never"),
        ("maxage", 366, "DAYS", "the days for which rotated files are retained; 0: for ever"),
        ("maxbackup", 100, "N", "the number of rotated files that are retained; 0: all"),
    ):
        options.add_argument(
            f"--audit-log-{name}",
            type=values.count,
            default=default,
            metavar=unit,
            help=f"{what} (default: %(default)s)",
        )
    options.add_argument("--audit-log-compress", action="store_true", help="compress rotated files with gzip")
    options.add_argument(
        "--audit-webhook-config-file", metavar="FILE", help="not supported: the audit log is a file, or stdout"
    )


def audit(options: argparse.Namespace) -> Audit:
    """Raises ValueError."""
    if options.audit_webhook_config_file is not None:
        raise ValueError("--audit-webhook-config-file: audit events are not sent to webhooks; use --audit-log-path")
    return Audit(
        policy_file=options.audit_policy_file,
        log_path=options.audit_log_path,
        format=options.audit_log_format,
        mode=options.audit_log_mode,
        max_size=options.audit_log_maxsize,
        max_age=options.audit_log_maxage,
        max_backups=options.audit_log_maxbackup,
        compress=options.audit_log_compress,
    )


def _named_certificate(text: str) -> str:
    from noxu.security.tls import parse_named  # it has ssl and asyncio, which the shell's completion does without

    try:
        parse_named(text)
    except ValueError as error:
        raise values.refused(str(error)) from None
    return text
