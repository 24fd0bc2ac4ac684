"""The arguments of the commands about recordings of a server."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from noxu.arguments import values


def add_replay(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Send the requests of a recording again, to a new server in memory or to a running one, and print where it answers "
        "otherwise than it did. `noxu serve --record FILE` makes recordings. Exit status 1: there are differences."
    )
    command.add_argument("file", type=Path, metavar="FILE", help="the recording")
    values.repeated(command, "--ignore", "FIELD", "a name of fields that are not compared")
    command.add_argument(
        "--wait",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="how long a read is repeated that is answered otherwise, and a watch has for its events (default: %(default)s)",
    )
    command.add_argument("--quiet", action="store_true", help="print differences alone")
    group = command.add_argument_group("server", "By default a new one in memory, with the objects of the recording.")
    values.server(group)


def _seconds(text: str) -> float:
    """Raises ValueError, of which argparse makes a sentence, and ArgumentTypeError."""
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds, such as 0 or 2.5")
    return seconds


def complete_replay(options: argparse.Namespace) -> None:
    """Raises ValueError."""
    values.check_control(options)


def add_open(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Show a recording in a browser, read only: what clients asked, what was written and why, the objects at the end. "
        "`noxu serve --record FILE` makes recordings, and so do explorations."
    )
    command.add_argument("file", type=Path, metavar="FILE", help="the recording")
    command.add_argument(
        "other", nargs="?", type=Path, metavar="OTHER", help="another one, which is shown, and compared with the first"
    )
    command.add_argument(
        "--html", type=Path, metavar="OUT", help="write one file that a browser opens without a server, and end"
    )
    command.add_argument(
        "--port", type=values.port, default=0, help="where it listens on 127.0.0.1 (default: a free one)"
    )
