"""The arguments of the commands about stored objects: export, migrate, check, copy and snapshot."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from noxu.api.errors import ApiError
from noxu.api.selectors import parse_labels
from noxu.arguments import etcd, values
from noxu.config import DEFAULT_DATA, Etcd
from noxu.features import meant


def _location(command: argparse.ArgumentParser) -> None:
    """Add the options that say where stored objects are."""
    values.server(command.add_argument_group("location of the objects")).add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the data directory, which no server may be using (default: {DEFAULT_DATA})",
    )
    etcd.add_etcd(command, "The objects are in etcd. Servers that use it may run.", writes=False)


def _complete_location(options: argparse.Namespace) -> None:
    """Set `options.etcd`. Raises ValueError unless the options name one place."""
    options.etcd = etcd.etcd(options)
    values.check_location(options)
    values.check_server(options)


# -- noxu export -------------------------------------------------------------------------------------------------------


def add_export(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write objects as YAML that `kubectl apply` and `noxu serve` take: without their status, what servers set and "
        "allocate, and the objects that servers make. Exit status 1 if something cannot be read or written."
    )
    selection = command.add_argument_group("selection")
    selection.add_argument(
        "-n",
        "--namespace",
        action="append",
        default=[],
        metavar="NAMESPACE",
        help="objects in this namespace only; can be repeated",
    )
    selection.add_argument(
        "-A",
        "--all-namespaces",
        action="store_true",
        help="objects in all namespaces, and of the cluster (the default)",
    )
    selection.add_argument(
        "-l", "--selector", default="", metavar="SELECTOR", help="objects with these labels: a=b,c!=d"
    )
    selection.add_argument(
        "--owned",
        action="store_true",
        help="also objects that others own, such as the pods of a Job, without their owners",
    )
    command.add_argument(
        "--to",
        type=Path,
        metavar="FILE",
        help="a .yaml file to write, or a folder with a file for each object (default, and -: stdout)",
    )
    _location(command)
    values.quiet(command)
    command.add_argument(
        "kinds",
        nargs="*",
        metavar="KIND",
        help="the kinds to export, as kubectl names them: widgets,configmaps or widgets.example.com (default: all)",
    )


def complete_export(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    if options.to == Path("-"):
        options.to = None
    _complete_location(options)
    if options.namespace and options.all_namespaces:
        raise ValueError("--namespace and --all-namespaces exclude each other")
    try:
        options.labels = parse_labels(options.selector)
    except (ValueError, ApiError) as error:
        raise ValueError(f"argument --selector: {error}") from None


# -- noxu migrate ------------------------------------------------------------------------------------------------------


def add_migrate(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Rewrite stored objects in the storage version of their CRD, and remove other versions from its "
        "storedVersions. Exit status 1 if an object cannot be rewritten."
    )
    _location(command)
    values.output(command)
    values.quiet(command)
    command.add_argument(
        "names",
        nargs="*",
        metavar="CRD",
        help="the CRDs whose objects to rewrite (default: all CRDs with several storedVersions)",
    )


def complete_migrate(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    _complete_location(options)


# -- noxu check --------------------------------------------------------------------------------------------------------


def add_check(command: argparse.ArgumentParser) -> None:
    command.description = "Verify everything that a data file or etcd has. Exit status 1 if there are problems."
    values.quiet(command)
    etcd.add_etcd(command, "Verify what etcd has under a prefix, instead of a file.", writes=False)
    command.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the .db file, or the data directory")


def complete_check(options: argparse.Namespace) -> None:
    """Raises ValueError for a combination of options that is invalid."""
    options.etcd = etcd.etcd(options)
    if (options.file is None) == (options.etcd is None):
        raise ValueError("give either FILE or --etcd-servers")


# -- noxu copy ---------------------------------------------------------------------------------------------------------


def add_copy(command: argparse.ArgumentParser) -> None:
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
    values.quiet(command)
    etcd.add_etcd_access(command, "How to connect to etcd, wherever a STORE is one.")


def complete_copy(options: argparse.Namespace) -> None:
    """Make places of `options.source` and `options.destination`. Raises ValueError."""
    etcd.check_credentials(options)
    options.source = place(getattr(options, "from"), options)
    options.destination = place(options.to, options)
    if not isinstance(options.destination, Etcd) and options.storage_media_type != Etcd(()).media_type:
        raise ValueError("--storage-media-type needs --to in etcd: other stores have JSON")
    is_given = options.etcd_cafile or options.etcd_certfile or options.etcd_username
    if is_given and not any(isinstance(store, Etcd) for store in (options.source, options.destination)):
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


# -- noxu snapshot -----------------------------------------------------------------------------------------------------


SNAPSHOT_ACTIONS: Final = {"create": "[NAME]", "list": "", "delete": "NAME", "save": "FILE"}
"""What `noxu snapshot` asks a running server, and the value that it needs; one in brackets may be left out."""


def add_snapshot(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Take, list or delete snapshots of a running server, to which `noxu restore` returns; save all its objects in a file, which "
        "`noxu serve --from` starts with. Or, given a .db file, copy the stored objects of a data directory or of etcd into it, "
        "which `noxu copy` restores. Exit status 1 if something cannot be done."
    )
    command.add_argument(
        "action",
        metavar="ACTION | FILE",
        help="; ".join(f"{action} {value}".strip() for action, value in SNAPSHOT_ACTIONS.items())
        + "; or the .db file to make",
    )
    command.add_argument(
        "value", nargs="?", metavar="NAME | FILE", help="the name of a snapshot, or the file to save to"
    )
    command.add_argument(
        "--of", default="", metavar="NAME", help="save the objects of this snapshot instead of the present ones"
    )
    command.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"the data directory, which no server may be using, for a copy (default: {DEFAULT_DATA})",
    )
    values.control(command, "table")
    etcd.add_etcd(command, "For a copy: the objects are in etcd. Servers that use it may run.", writes=False)
    values.quiet(command)


def complete_snapshot(options: argparse.Namespace) -> None:
    """Set `options.source`, None: a server is asked; `options.destination` and `options.merge`. Raises ValueError."""
    options.etcd = etcd.etcd(options)
    wanted = SNAPSHOT_ACTIONS.get(options.action)
    if wanted is None:
        _complete_copy_to_file(options)
        return
    options.source = None
    values.check_control(options)
    if options.etcd is not None or options.data is not None:
        raise ValueError(
            f"{options.action} asks a running server: --data and --etcd-servers are for noxu snapshot FILE.db"
        )
    if options.value is not None and not wanted:
        raise ValueError(f"{options.action} takes no value")
    if options.value is None and wanted and not wanted.startswith("["):
        raise ValueError(f"{options.action} needs a {wanted}")
    if options.of and options.action != "save":
        raise ValueError("--of is for save")


def _complete_copy_to_file(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    if options.etcd is not None and options.data is not None:
        raise ValueError("--etcd-servers excludes --data")
    if not options.action.endswith(".db"):
        actions = ", ".join(SNAPSHOT_ACTIONS)
        raise ValueError(
            f"FILE has to end with .db; the actions are {actions}{meant(options.action, SNAPSHOT_ACTIONS)}"
        )
    for given, name in (
        (options.value, "NAME"),
        (options.server, "--server"),
        (options.kubeconfig, "--kubeconfig"),
        (options.of, "--of"),
    ):
        if given:
            raise ValueError(
                f"a copy into {options.action} asks no server, and takes no {name}: noxu snapshot save does"
            )
    options.source = options.etcd or options.data or DEFAULT_DATA
    options.destination, options.merge = Path(options.action), False
