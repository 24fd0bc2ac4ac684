"""The arguments about etcd."""

from __future__ import annotations

import argparse
from pathlib import Path

from noxu.arguments import values
from noxu.config import STORAGE_MEDIA_TYPES, Etcd


def add_etcd(
    command: argparse.ArgumentParser,
    purpose: str = "Keep objects in etcd, which several servers may share: see docs/etcd.md.",
    *,
    writes: bool = True,
) -> None:
    """`writes`: the command may write built-in kinds."""
    group = command.add_argument_group("etcd", purpose)
    values.repeated(group, "--etcd-servers", "URL[,URL...]", "the servers of etcd, like http://127.0.0.1:2379")
    group.add_argument(
        "--etcd-prefix",
        default=Etcd(()).prefix,
        metavar="PREFIX",
        help="the beginning of all keys (default: %(default)s)",
    )
    if writes:
        _media_type(group)
    _credentials(group)


def add_etcd_access(command: argparse.ArgumentParser, purpose: str) -> None:
    """Without the servers and the prefix, which are given otherwise."""
    group = command.add_argument_group("etcd", purpose)
    _media_type(group)
    _credentials(group)


def _media_type(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--storage-media-type",
        default=Etcd(()).media_type,
        choices=STORAGE_MEDIA_TYPES,
        help="the form in which built-in kinds are written to etcd; all are read (default: %(default)s)",
    )


def _credentials(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--etcd-username", default="", metavar="NAME", help="the user of etcd")
    group.add_argument("--etcd-password-file", type=Path, metavar="FILE", help="the file with the user's password")
    for name, what in (
        ("cafile", "CAs that certify etcd"),
        ("certfile", "the certificate for etcd"),
        ("keyfile", "its key"),
    ):
        group.add_argument(f"--etcd-{name}", type=Path, metavar="FILE", help=f"{what}, in PEM")


def etcd(options: argparse.Namespace) -> Etcd | None:
    """None without --etcd-servers. Raises ValueError."""
    servers = tuple(url for text in options.etcd_servers for url in text.split(",") if url)
    if not servers and any((options.etcd_cafile, options.etcd_certfile, options.etcd_keyfile, options.etcd_username)):
        raise ValueError("--etcd-cafile, --etcd-certfile, --etcd-keyfile and --etcd-username need --etcd-servers")
    check_credentials(options)
    if options.etcd_servers and not servers:
        raise ValueError("--etcd-servers names no server")
    if not servers and options.etcd_prefix != Etcd(()).prefix:
        raise ValueError("--etcd-prefix needs --etcd-servers")
    if not servers and _media_type_of(options) != Etcd(()).media_type:
        raise ValueError("--storage-media-type needs --etcd-servers: other stores have JSON")
    if not servers:
        return None
    if getattr(options, "memory", False):
        raise ValueError("--memory and --etcd-servers exclude each other")
    return of(options, servers, options.etcd_prefix)


def check_credentials(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    if (options.etcd_password_file is None) != (not options.etcd_username):
        raise ValueError("--etcd-username and --etcd-password-file need each other")
    if (options.etcd_certfile is None) != (options.etcd_keyfile is None):
        raise ValueError("--etcd-certfile and --etcd-keyfile need each other")


def of(options: argparse.Namespace, servers: tuple[str, ...], prefix: str) -> Etcd:
    """A prefix of these servers, with the credentials of the options."""
    return Etcd(
        servers,
        prefix,
        options.etcd_cafile,
        options.etcd_certfile,
        options.etcd_keyfile,
        options.etcd_username,
        options.etcd_password_file,
        _media_type_of(options),
    )


def _media_type_of(options: argparse.Namespace) -> str:
    return str(getattr(options, "storage_media_type", Etcd(()).media_type))
