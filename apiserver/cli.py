"""The `noxu` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from apiserver.config import DEFAULT_HOST, DEFAULT_PORT, Config

DEFAULT_DATA = Path(".noxu")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="noxu", description="The Kubernetes API for your CustomResourceDefinitions.")
    top.add_argument("--version", action="version", version=f"noxu {_version()}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _serve(commands.add_parser("serve", help="run the server"))
    _check(commands.add_parser("check", help="verify a data file"))
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
        "files", nargs="*", type=Path, metavar="FILE", help="CRDs and objects to load: YAML or JSON files, directories"
    )


def _check(command: argparse.ArgumentParser) -> None:
    command.description = "Verify every row of a data file; exit status 1 if anything is damaged."
    command.add_argument("file", type=Path, metavar="FILE", help="the .db file, or the directory given to --data")


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return port


def _version() -> str:
    from importlib.metadata import version

    return version("noxu")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status: 0 done, 1 refused or failed, 2 wrong arguments."""
    top = parser()
    given = top.parse_args(arguments)
    if given.command == "check":
        return _run_check(given.file)
    if given.tls:
        top.error("--tls is not available yet: the server speaks plain HTTP, on loopback only")
    config = Config(
        host=given.host,
        port=given.port,
        data=None if given.memory else given.data or DEFAULT_DATA,
        durability=given.durability,
        kubeconfig=given.kubeconfig,
        files=tuple(given.files),
    )
    return _run_server(config)


def _run_server(config: Config) -> int:
    from apiserver import server

    try:
        server.run(config)
    except server.StartError as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    return 0


def _run_check(path: Path) -> int:
    from storage.check import check
    from storage.types import Unusable

    try:
        report = check(path / "noxu.db" if path.is_dir() else path)
    except Unusable as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    print(
        f"{report.path}: format {report.version}, revision {report.revision}, compacted to {report.compacted}, "
        f"{report.keys} keys, {report.rows} rows"
    )
    for damage in report.damage:
        print(f"  damaged: {damage}")
    print(f"{len(report.damage)} damaged" if report.damage else "sound")
    return 1 if report.damage else 0


if __name__ == "__main__":
    sys.exit(main())
