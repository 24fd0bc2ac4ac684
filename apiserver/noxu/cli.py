"""The `noxu` command: find the module of a subcommand, parse its arguments, and run it.

The arguments of each command are in `noxu.arguments`, its work is in `noxu.commands`. Both modules are imported only
for the command that is run.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

from noxu import garbage
from noxu.arguments.commands import AGO, RUNS_A_COMMAND, WITH_MOMENTS, arguments_of
from noxu.arguments.commands import COMMANDS as COMMANDS
from noxu.arguments.parsers import parser
from noxu.arguments.parsers import parser_of as parser_of
from noxu.commands.about import COMPLETE, candidates
from noxu.process.limits import sentence

SHARED: Final = {
    **dict.fromkeys(("completion", "help", "version"), "noxu.commands.about"),
    **dict.fromkeys(("copy", "check"), "noxu.commands.copy"),
    "restore": "noxu.commands.snapshot",
    **dict.fromkeys(("diff", "blame", "bisect"), "noxu.commands.past"),
    **dict.fromkeys(("report", "rbac"), "noxu.commands.manners"),
    **dict.fromkeys(("clock", "idle"), "noxu.commands.clock"),
    "envtest": "noxu.envtest.assets",
}
"""The modules of commands that have none of their own."""
INTERRUPTED: Final = 128 + signal.SIGINT
"""The exit status after Ctrl-C, as shells have it."""
UNWRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)
"""Errors that commands do not expect of files: they are those of the standard output."""
EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
"""Errors that any call of the system may have: a limit is reached."""


def command() -> NoReturn:
    """The `noxu` command: run it, and end the process, without freeing its memory: that takes an eighth of `noxu validate`."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see noxu.__main__
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _open_closed_streams()
        if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
            sys.stdout.reconfigure(errors="surrogateescape")  # names of files have any bytes, and lines contain them
        status = main(own_process=True)
    except KeyboardInterrupt:
        status = INTERRUPTED
    garbage.end_process(status)


def _open_closed_streams() -> None:
    """Open standard streams that are closed, as by `noxu serve >&-`, to nowhere.

    Else the next file or socket would have the number of one of them, and what is printed would go there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which has the lowest number that is free; no command inherits it
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - until the end of the process
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the end of the process


def main(arguments: Sequence[str] | None = None, *, own_process: bool = False) -> int:
    """Run a command. Returns its exit status: 0 success, 1 refused or failed, 2 invalid arguments.

    `own_process`: the process does nothing else, so the command may end it.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == [COMPLETE]:
        print("\n".join(candidates(words[1:])))  # for the scripts of `noxu completion`
        return 0
    if not words:
        parser().print_help()
        return 0
    name = words[0]
    if name not in COMMANDS:
        top = parser()
        top.parse_args(words)  # options such as --version, which exit, or an error
        top.error("the first argument has to be a command or an option")  # a command after `--`, since Python 3.14
    options = options_of(name, words[1:])
    options.own_process = own_process
    try:
        run = _runner(name)
        if own_process and name != "serve":  # a server begins when it is ready
            garbage.begin()
        status = run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # `noxu validate … | head`: the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the remaining output is discarded
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.errno not in (*UNWRITABLE, *EXHAUSTED):
            raise
        if error.errno in EXHAUSTED:
            print(f"noxu: {sentence(error)}", file=sys.stderr)
        else:
            print(f"noxu: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    return status


def _runner(name: str) -> Callable[[argparse.Namespace], int]:
    """What a command does: `run` in the module of its name, or `run_NAME` in one that has several commands."""
    suffix = name.replace("-", "_")
    if name not in SHARED:
        return import_module(f"noxu.commands.{suffix}").run  # type: ignore[no-any-return]
    return getattr(import_module(SHARED[name]), f"run_{suffix}")  # type: ignore[no-any-return]


def options_of(name: str, words: Sequence[str]) -> argparse.Namespace:
    """The options of a command. Invalid ones end the process with status 2."""
    command = parser_of(name)
    own, passed_on = list(words), []
    if name in RUNS_A_COMMAND and "--" in own:
        end = own.index("--")
        own, passed_on = own[:end], own[end + 1 :]
    if name in WITH_MOMENTS:
        own = [word.removeprefix("-") if AGO.fullmatch(word) else word for word in own]  # no option begins so
    options = command.parse_intermixed_args(own)
    options.passed_on = passed_on
    options.command = name
    complete = arguments_of(name).complete
    if complete is not None:
        try:
            complete(options)
        except ValueError as error:
            command.error(str(error))
    return options


if __name__ == "__main__":
    command()
