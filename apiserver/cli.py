"""The `noxu` command: what can be given. What is done about it is in `apiserver.commands`, imported when it is asked for."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from apiserver.config import DEFAULT_DATA, DEFAULT_HOST, DEFAULT_PORT, HTTPS_PORT, ServiceName
from apiserver.features import GATES
from apiserver.features import parse as parse_gates

_OUTPUTS: Final = ("text", "json")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="noxu", description="The Kubernetes API for your CustomResourceDefinitions.")
    top.add_argument("--version", action=_Version, help="print the version, and leave")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, define, told in _COMMANDS:
        command = commands.add_parser(name, help=told)
        command.set_defaults(parser=command)
        define(command)
    return top


def _serve(command: argparse.ArgumentParser) -> None:
    command.description = "Run the server until SIGINT or SIGTERM."
    command.add_argument("--host", default=DEFAULT_HOST, help="address to listen on (default: %(default)s)")
    command.add_argument("--port", type=_port, default=DEFAULT_PORT, help="0 picks a free one (default: %(default)s)")
    where = command.add_mutually_exclusive_group()
    where.add_argument("--data", type=Path, metavar="DIR", help=f"keep objects here (default: {DEFAULT_DATA})")
    where.add_argument("--memory", action="store_true", help="keep nothing")
    command.add_argument(
        "--durability",
        choices=("full", "normal"),
        default="full",
        help="full: an answered write survives a power cut; normal: it survives a crash of the server (default: full)",
    )
    command.add_argument("--tls", action="store_true", help="serve HTTPS (not available yet)")
    command.add_argument("--kubeconfig", type=Path, metavar="FILE", help="written once the server answers")
    command.add_argument(
        "--annotate-invalid",
        action="store_true",
        help="mark stored objects that their CRD refuses since it was changed, by an annotation",
    )
    command.add_argument(
        "--webhook-service",
        action="append",
        default=[],
        type=_service,
        metavar="NAMESPACE/NAME[:PORT]=HOST:PORT",
        help="where webhooks are that a service of a cluster stands for; may be given several times",
    )
    _feature_gates(command)
    command.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="CRDs and objects to load: YAML or JSON files, directories, - for stdin",
    )


def _feature_gates(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help=f"switch features on or off: {', '.join(GATES)}",
    )


def _validate(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Tell what a server would say to objects, without a server. Exit status 1 if anything is refused."
    )
    command.add_argument(
        "-f",
        dest="files",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="CRDs and objects: YAML or JSON files, directories, - for stdin; may be given several times",
    )
    command.add_argument("--strict", action="store_true", help="unknown and repeated fields are refused")
    command.add_argument(
        "--ignore-unknown-kinds", action="store_true", help="skip objects of kinds that nothing in the files defines"
    )
    _feature_gates(command)
    command.add_argument("--output", choices=_OUTPUTS, default="text", help="(default: %(default)s)")
    stored = command.add_argument_group(
        "stored objects",
        "Which of them do the CRDs of today refuse? CRDs given with -f count instead of the stored ones.",
    )
    stored.add_argument("--stored", action="store_true", help="validate the objects that are stored")
    where = _server(stored)
    where.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"in this data directory, of which no server runs (default: {DEFAULT_DATA})",
    )


def _server(options: argparse._ArgumentGroup) -> argparse._MutuallyExclusiveGroup:
    """How to reach a running server; what else may be meant goes into the group that is returned."""
    where = options.add_mutually_exclusive_group()
    where.add_argument("--server", metavar="URL", help="the server that answers there")
    where.add_argument("--kubeconfig", type=Path, metavar="FILE", help="the server that this file leads to")
    options.add_argument("--context", metavar="NAME", help="of the kubeconfig (default: its current one)")
    options.add_argument("--insecure-skip-tls-verify", action="store_true", help="believe any certificate")
    return where


def _explain_write(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Tell what a write does to objects stage by stage, and why: what is pruned, defaulted, changed by admission, "
        "refused, forgiven. Exit status 1 if anything is refused."
    )
    command.add_argument(
        "-f",
        dest="files",
        action="append",
        required=True,
        type=Path,
        metavar="PATH",
        help="objects, and without a server their CRDs: YAML or JSON files, directories, - for stdin",
    )
    _feature_gates(command)
    command.add_argument("--output", choices=_OUTPUTS, default="text", help="(default: %(default)s)")
    server = command.add_argument_group("running server", "Without one the objects are written in memory.")
    _server(server)
    server.add_argument("--write", action="store_true", help="write for good; else it is a dry run")


def _lint(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Tell what a server would say to CRDs, of v1 or v1beta1, and what is to be done about it. "
        "Exit status 1 if not all of them are structural."
    )
    command.add_argument("--fix", action="store_true", help="write the structural v1 form, where there is only one")
    command.add_argument("--in-place", action="store_true", help="with --fix: into the files instead of to stdout")
    command.add_argument("--output", choices=_OUTPUTS, default="text", help="(default: %(default)s)")
    command.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="YAML or JSON files, directories, - for stdin"
    )


def _skeleton(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Print the skeleton of every schema in a file, which says what pruning keeps. Exit status 1 if somewhere it is "
        "a struct and a map at once."
    )
    command.add_argument("--output", choices=("yaml", "json"), default="yaml", help="(default: %(default)s)")
    command.add_argument("file", type=Path, metavar="FILE", help="CRDs, or a bare OpenAPI v3 schema; - for stdin")


def _migrate(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Rewrite stored objects in the storage version of their CRD, and forget the versions that they were stored in "
        "before. Exit status 1 if some cannot be rewritten."
    )
    where = _server(command.add_argument_group("where the objects are"))
    where.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help=f"in this data directory, of which no server runs (default: {DEFAULT_DATA})",
    )
    command.add_argument("--output", choices=_OUTPUTS, default="text", help="(default: %(default)s)")
    command.add_argument(
        "names", nargs="*", metavar="CRD", help="their objects only (default: of all CRDs with several storedVersions)"
    )


def _check(command: argparse.ArgumentParser) -> None:
    command.description = "Verify every row of a data file; exit status 1 if anything is damaged."
    command.add_argument("file", type=Path, metavar="FILE", help="the .db file, or the directory given to --data")


_COMMANDS: Final = (
    ("serve", _serve, "run the server"),
    ("validate", _validate, "what would a server say to these objects?"),
    ("explain-write", _explain_write, "what does a write do to these objects, and why?"),
    ("lint", _lint, "are CRDs structural, and how do they become so?"),
    ("skeleton", _skeleton, "print what pruning goes by in a schema"),
    ("migrate", _migrate, "rewrite stored objects in their storage version"),
    ("check", _check, "verify a data file"),
)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return int(text)


_SERVICE: Final = re.compile(r"(?P<namespace>[^/=:]+)/(?P<name>[^/=:]+)(:(?P<port>[0-9]+))?=(?P<address>[^=]+:[0-9]+)")


def _service(text: str) -> tuple[ServiceName, str]:
    found = _SERVICE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError("it is like default/my-webhook:443=127.0.0.1:9443")
    port = _port(found["port"]) if found["port"] else HTTPS_PORT
    return ServiceName(found["namespace"], found["name"], port), found["address"]


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002 - argparse's name
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"noxu {version('noxu')}")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status: 0 done, 1 refused or failed, 2 wrong arguments."""
    given = parser().parse_args(arguments)
    if complaint := _complaint(given):
        given.parser.error(complaint)
    command = import_module(f"apiserver.commands.{given.command.replace('-', '_')}")
    try:
        status: int = command.run(given)
        sys.stdout.flush()
    except BrokenPipeError:  # `noxu validate … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to be flushed goes there
        return 1
    except KeyboardInterrupt:
        return 130
    return status


def _complaint(given: argparse.Namespace) -> str:
    """What does not go together."""
    if "feature_gates" in given:
        try:
            given.features = parse_gates(given.feature_gates)
        except ValueError as error:
            return f"argument --feature-gates: {error}"
    match given.command:
        case "validate" if not given.stored and any(
            (given.data, given.server, given.kubeconfig, given.context, given.insecure_skip_tls_verify)
        ):
            return "--data, --server, --kubeconfig and what belongs to them need --stored"
        case "validate" if not given.stored and not given.files:
            return "nothing to validate: give -f or --stored"
        case "explain-write" if given.write and not (given.server or given.kubeconfig):
            return "--write needs a server: give --server or --kubeconfig"
        case "serve" if given.tls:
            return "--tls is not available yet: the server speaks plain HTTP, on loopback only"
        case "lint" if given.in_place and not given.fix:
            return "--in-place needs --fix"
        case "lint" if given.in_place and (given.output == "json" or Path("-") in given.files):
            return "--in-place goes neither with --output json nor with stdin"
    return ""


if __name__ == "__main__":
    sys.exit(main())
