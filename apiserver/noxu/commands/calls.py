"""The calls of `/_noxu/` as commands: ask a running server, print the answer, and say in a sentence what went wrong.

    def run(options: argparse.Namespace) -> int:
        return calls.answered(options, lambda client: calls.show(client.call("GET", "/_noxu/tenants"), options.output, …))

Without --server and --kubeconfig the server is that of the user's kubeconfig, as for kubectl.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Final

from noxu.api import codec
from noxu.commands.api_client import ApiClient, RequestError, endpoint_from_options
from noxu.observability.logs import coloured, shown_on
from noxu.values import Json, Object

GAP: Final = 3  # spaces between columns, as kubectl has them


def answered(options: argparse.Namespace, ask: Callable[[ApiClient], int | None]) -> int:
    """Ask the server that the options name. Exit status: that of `ask`, None is 0; 1: it does not answer, or refuses."""
    try:
        with contextlib.closing(ApiClient(endpoint_from_options(options))) as client:
            return ask(client) or 0
    except RequestError as error:
        complain(str(error))
        return 1


def complain(message: str) -> None:
    """Say on stderr why a command fails."""
    print(f"{coloured('noxu:', 'red', shown=shown_on(sys.stderr))} {message}", file=sys.stderr)


def show(value: Json, output: str, rows: Callable[[], Sequence[Sequence[str]]]) -> None:
    """Print an answer as `json`, `yaml`, or as a `table` of these rows, of which the first one has the titles."""
    if output == "json":
        print(codec.pretty(value, sort_keys=False).decode().rstrip("\n"))
    elif output == "yaml":
        print(codec.to_yaml(value).decode().rstrip("\n"))
    else:
        print("\n".join(table(rows())))


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns of the same width, the titles in upper case, as kubectl prints tables."""
    titles, *others = rows
    shown = [[title.upper() for title in titles], *([cell or "<none>" for cell in row] for row in others)]
    widths = [max(map(len, column)) + GAP for column in zip(*shown, strict=True)]
    return ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]


def rows_of(objects: Sequence[Object], columns: Sequence[str]) -> list[list[str]]:
    """The rows of objects: the fields that the titles name, such as `created` for CREATED."""
    return [[*columns], *([_cell(each.get(column)) for column in columns] for each in objects)]


def _cell(value: Json) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "" if value is None else str(value)
