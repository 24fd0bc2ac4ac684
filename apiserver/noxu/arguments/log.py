"""The arguments of `noxu serve` about its own log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from noxu.config import Log

if TYPE_CHECKING:
    import argparse


def add(command: argparse.ArgumentParser) -> None:
    options = command.add_argument_group("log", "The server's own log, on stderr: see docs/logs.md.")
    options.add_argument("--log", choices=("text", "json"), default="text", help="its format (default: %(default)s)")
    options.add_argument("--log-requests", action="store_true", help="write a line for each request")
    levels = options.add_mutually_exclusive_group()
    levels.add_argument("--verbose", action="store_true", help="log more, such as why credentials are refused")
    levels.add_argument("--quiet", action="store_true", help="log warnings and errors only")


def log(options: argparse.Namespace) -> Log:
    return Log(options.log, _level(options), options.log_requests)


def _level(options: argparse.Namespace) -> int:
    if options.verbose:
        return logging.DEBUG
    return logging.WARNING if options.quiet else logging.INFO
