"""The `noxu` command: what it can do, and how it is run.

The arguments of each command are in `noxu.apiserver.arguments`, and what it does is in `noxu.apiserver.commands`. Both
modules are imported only for the command that is run.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Final, NoReturn

INTERRUPTED: Final = 128 + signal.SIGINT
"""The exit status after Ctrl-C, as shells have it."""
COMMANDS: Final = {
    "serve": "run the server",
    "envtest": "write the programs that envtest starts",
    "validate": "validate objects without a server",
    "explain-write": "show what each stage of a write does to objects",
    "lint": "check that CRDs are structural, and fix them",
    "skeleton": "print the skeletons of schemas, which determine pruning",
    "migrate": "rewrite stored objects in their storage version",
    "check": "verify what is stored",
}


def parser() -> argparse.ArgumentParser:
    """The parser of arguments without a command."""
    top = argparse.ArgumentParser(prog="noxu", description="The Kubernetes API for your CustomResourceDefinitions.")
    top.add_argument("--version", action=_Version, help="print the version and exit")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary)
    return top


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of the arguments of a command."""
    command = argparse.ArgumentParser(prog=f"noxu {name}")
    _arguments(name).add(command)
    return command


def _arguments(name: str) -> ModuleType:
    """`add(parser)` adds the arguments; `complete(options)`, which not all have, raises ValueError for invalid ones."""
    return import_module(f"noxu.apiserver.arguments.{name.replace('-', '_')}")


class _Version(argparse.Action):
    """Looks up the version only when the option is given."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:  # noqa: A002 - argparse's name
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"noxu {version('noxu')}")
        parser.exit()


def command() -> NoReturn:
    """The `noxu` command: run it, and exit."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see noxu.__main__
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status = main(own_process=True)
    except KeyboardInterrupt:
        status = INTERRUPTED
    sys.exit(status)


def main(arguments: Sequence[str] | None = None, *, own_process: bool = False) -> int:
    """Run a command. Returns its exit status: 0 success, 1 refused or failed, 2 invalid arguments.

    `own_process`: the process does nothing else, so the command may end it.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    name = given[0] if given and given[0] in COMMANDS else parser().parse_args(given).command
    options = options_of(name, given[1:])
    options.own_process = own_process
    try:
        module = import_module(f"noxu.apiserver.commands.{name.replace('-', '_')}")
        status: int = module.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # `noxu validate … | head`: the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the remaining output is discarded
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def options_of(name: str, given: Sequence[str]) -> argparse.Namespace:
    """The options of a command. Invalid ones end the process with status 2."""
    command = parser_of(name)
    options = command.parse_args(given)
    if complete := getattr(_arguments(name), "complete", None):
        try:
            complete(options)
        except ValueError as error:
            command.error(str(error))
    return options


if __name__ == "__main__":
    command()
