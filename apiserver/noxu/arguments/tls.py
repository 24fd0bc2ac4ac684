"""The arguments of `noxu serve` about TLS."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from noxu.arguments import values
from noxu.config import Tls

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
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
    group.add_argument(
        "--tls-sni-cert-key",
        action="append",
        default=[],
        type=values.named_certificate,
        metavar="CERT,KEY[:PATTERN,...]",
        help="a certificate for the names in it, or for these patterns; can be repeated",
    )
    group.add_argument(
        "--tls-min-version",
        choices=("VersionTLS12", "VersionTLS13"),
        help="the oldest version of TLS (default: VersionTLS12)",
    )
    group.add_argument(
        "--client-ca-file", type=Path, metavar="FILE", help="CAs that certify clients, besides the server's own"
    )


def tls(options: argparse.Namespace) -> Tls | None:
    """None if there are no options of TLS. Raises ValueError."""
    if (options.tls_cert_file is None) != (options.tls_private_key_file is None):
        raise ValueError("--tls-cert-file and --tls-private-key-file need each other")
    given = Tls(
        options.tls_cert_file,
        options.tls_private_key_file,
        options.cert_dir,
        tuple(options.tls_sni_cert_key),
        options.client_ca_file,
        options.tls_min_version or Tls().minimum,
    )
    is_given = options.tls or options.tls_min_version is not None or options.secure_port is not None
    return given if is_given or given != Tls() else None
