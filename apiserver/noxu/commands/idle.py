"""`noxu idle`: wait until a running server is idle (`noxu.control.idle`)."""

from __future__ import annotations

import argparse

from noxu.commands import calls
from noxu.commands.api_client import ApiClient

PATH = "/_noxu/idle"
COLUMNS = ("seconds", "requests", "quiet")


def run(options: argparse.Namespace) -> int:
    """Exit status 0: it is idle; 1: it was not in time, or does not answer. Who is busy is said on stderr."""
    return calls.answered(options, lambda client: _wait(options, client))


def _wait(options: argparse.Namespace, client: ApiClient) -> None:
    wanted = {name: getattr(options, name) for name in ("quiet", "timeout", "ignore")}
    query = {name: value for name, value in wanted.items() if value is not None}
    answer = client.call("GET", PATH, query)
    calls.show(answer, options.output, lambda: calls.rows_of([answer], COLUMNS))
