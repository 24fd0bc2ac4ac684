"""The arguments of the commands about the past of a running server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from noxu.arguments import values

_MOMENT: Final = "a revision (1042), a time (2026-03-01T12:00:00Z), how long ago (5m), now, or the name of a snapshot"


def add_diff(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Compare what a running server had at two moments: all objects that were created, deleted and changed in between, "
        "those of a kind, or one, as YAML in the format of diff -u. Of two files or directories the CRDs are compared: what "
        "breaks when the second ones take the place of the first ones; exit status 1 if something does."
    )
    command.add_argument("since", metavar="FROM", help=f"{_MOMENT}; or a file or directory with the former CRDs")
    command.add_argument("to", nargs="?", metavar="TO", help="another moment (default: now), or the new CRDs")
    command.add_argument(
        "what", nargs="?", metavar="TYPE[/NAME]", help="a kind, or an object; one with a / may follow FROM directly"
    )
    _namespace(command, "all without a NAME, else default")
    command.add_argument(
        "--limit", type=int, metavar="NUMBER", help=f"of two moments: objects at most (default: {OBJECTS})"
    )
    values.control(command, "text", *values.CONTROL_OUTPUTS, *_OF_FILES, metavar="FORMAT")
    files = command.add_argument_group("CRDs in files")
    files.add_argument("--no-examples", action="store_true", help="look for no objects that show what breaks")
    files.add_argument("--strict", action="store_true", help="exit status 1 if something may break, too")
    files.add_argument(
        "--verbose", action="store_true", help="list compatible changes, and those that repeat one by one"
    )


OBJECTS: Final = 500
"""How many objects `noxu diff` compares at most, unless --limit says so."""
_OF_FILES: Final = ("junit", "markdown", "sarif", "github")
_OF_SERVERS: Final = ("table", "yaml")
_MANIFESTS: Final = (".yaml", ".yml", ".json")


def complete_diff(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)
    options.compares_files = _compares_files(options)
    if options.compares_files:
        _complete_files(options)
        return
    if options.output in _OF_FILES or options.no_examples or options.strict or options.verbose:
        raise ValueError(f"--no-examples, --strict, --verbose and -o {', '.join(_OF_FILES)} are for CRDs in files")
    if options.to is not None and options.what is None and "/" in options.to:
        options.to, options.what = None, options.to
    options.to, options.limit = options.to or "now", OBJECTS if options.limit is None else options.limit
    options.type, _, options.name = (options.what or "").partition("/")


def _compares_files(options: argparse.Namespace) -> bool:
    """Whether the arguments are files: the first one cannot be a moment, or both exist and no server is named."""
    if options.server or options.kubeconfig or options.what:
        return False
    first, second = options.since, options.to
    if first == "-" or "/" in first or first.endswith(_MANIFESTS):
        return True
    return second is not None and Path(first).exists() and (second == "-" or Path(second).exists())


def _complete_files(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    if options.to is None:
        raise ValueError("give the new CRDs, too: noxu diff OLD NEW")
    if options.output in _OF_SERVERS:
        raise ValueError(f"-o {options.output} is for moments of a server")
    if options.namespace or options.context or options.insecure_skip_tls_verify:
        raise ValueError("-n and --context are for moments of a server, and so is --insecure-skip-tls-verify")
    if options.limit is not None:
        raise ValueError("--limit is for moments of a server: of CRDs in files all changes are listed")
    options.old, options.files, options.allow_empty = [Path(options.since)], [Path(options.to)], True


def add_blame(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Show an object of a running server as YAML, and beside each line the revision that wrote it last, its time, and the "
        "field manager or user."
    )
    command.add_argument("what", metavar="TYPE/NAME", help="the object")
    command.add_argument("--show-managed-fields", action="store_true", help="also show metadata.managedFields")
    _object(command, "text")


def complete_blame(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    _complete_object(options)


def add_bisect(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Find the first revision at which a condition on an object was true, and all at which it became true or false "
        "since. The object's states are looked at in their order."
    )
    command.add_argument("what", metavar="TYPE/NAME", help="the object")
    command.add_argument("condition", metavar="CONDITION", help="an expression in CEL over self: self.status.size > 3")
    _object(command, "table")


def complete_bisect(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    _complete_object(options)


def _object(command: argparse.ArgumentParser, output: str) -> None:
    _namespace(command, "default")
    command.add_argument(
        "--at", default="now", metavar="MOMENT", help=f"the moment up to which its past is looked at: {_MOMENT}"
    )
    values.control(command, output)


def _namespace(command: argparse.ArgumentParser, default: str) -> None:
    command.add_argument(
        "-n", "--namespace", default="", metavar="NAMESPACE", help=f"the namespace (default: {default})"
    )


def _complete_object(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)
    options.type, _, options.name = options.what.partition("/")
    if not options.type or not options.name:
        raise ValueError(f"{options.what} is no TYPE/NAME, such as widgets/a")
