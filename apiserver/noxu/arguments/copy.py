"""The arguments of `noxu copy`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from noxu.arguments import etcd, shared
from noxu.config import Etcd

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Copy all stored objects from one place to another: data directories that no server uses, files of `noxu snapshot`, "
        "and prefixes of etcd. Exit status 1 if something cannot be copied."
    )
    for name, what in (("from", "where the objects are"), ("to", "where they are copied to")):
        command.add_argument(
            f"--{name}",
            dest=name,
            required=True,
            metavar="STORE",
            help=f"{what}: a data directory, a .db file, or URL[,URL...][/PREFIX] of etcd, like "
            "http://127.0.0.1:2379/registry/noxu",
        )
    command.add_argument(
        "--merge",
        action="store_true",
        help="copy to a place that has objects: those of the same kind and name are replaced, and all others remain",
    )
    shared.quiet(command)
    etcd.add_access(command, "How to connect to etcd, wherever a STORE is one.")


def complete(options: argparse.Namespace) -> None:
    """Make places of `options.source` and `options.destination`. Raises ValueError."""
    etcd.check_credentials(options)
    options.source = place(getattr(options, "from"), options)
    options.destination = place(options.to, options)
    if not isinstance(options.destination, Etcd) and options.storage_media_type != Etcd(()).media_type:
        raise ValueError("--storage-media-type needs --to in etcd: other stores have JSON")
    is_given = options.etcd_cafile or options.etcd_certfile or options.etcd_username
    if is_given and not any(isinstance(each, Etcd) for each in (options.source, options.destination)):
        raise ValueError("--etcd-cafile, --etcd-certfile, --etcd-keyfile and --etcd-username need a STORE in etcd")
    if options.source == options.destination:
        raise ValueError("--from and --to are the same place")


def place(text: str, options: argparse.Namespace) -> Path | Etcd:
    """A file or directory, or etcd. Raises ValueError."""
    if not text.startswith(("http://", "https://")):
        return Path(text)
    servers, prefixes = [], set()
    for url in text.split(","):
        scheme, _, rest = url.partition("://")
        address, slash, prefix = rest.partition("/")
        servers.append(f"{scheme}://{address}")
        if prefix.strip("/"):
            prefixes.add(f"{slash}{prefix.rstrip('/')}")
    if len(prefixes) > 1:
        raise ValueError(f"{text} has several prefixes")
    return etcd.of(options, tuple(servers), prefixes.pop() if prefixes else Etcd(()).prefix)
