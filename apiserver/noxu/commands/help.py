"""`noxu help`: describe a command, as its option `--help` does."""

from __future__ import annotations

import argparse

from noxu.arguments.parsers import parser, parser_of


def run(options: argparse.Namespace) -> int:
    """Exit status 0."""
    (parser_of(options.about) if options.about else parser()).print_help()
    return 0
