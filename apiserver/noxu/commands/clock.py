"""`noxu clock` and `noxu idle`: the time of a running server, and waiting until nothing happens in it.

They ask `noxu.control.clock` and `noxu.control.idle`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Final

from noxu.commands import calls
from noxu.commands.api_client import ApiClient
from noxu.values import Object

PATH: Final = "/_noxu/clock"
COLUMNS: Final = ("mode", "now", "offset", "speed", "due")
IDLE: Final = "/_noxu/idle"
IDLE_COLUMNS: Final = ("seconds", "requests", "quiet")

Request = tuple[str, str, Object | None]
REQUESTS: Final[Mapping[str, Callable[[str | None], Request]]] = {
    "show": lambda _: ("GET", PATH, None),
    "real": lambda _: ("PUT", PATH, {"mode": "real"}),
    "freeze": lambda at: ("PUT", PATH, {"mode": "frozen", "at": at}),
    "offset": lambda by: ("PUT", PATH, {"mode": "offset", "offset": by}),
    "speed": lambda factor: ("PUT", PATH, {"mode": "speed", "speed": float(factor or 0)}),
    "advance": lambda by: ("POST", f"{PATH}/advance", {"by": by}),
    "advance-to": lambda time: ("POST", f"{PATH}/advance", {"to": time}),
}
"""By what is done, with its value; those of `arguments.control.CLOCK_ACTIONS`."""


def run_clock(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses."""
    return calls.answered(options, lambda client: _ask(options, client))


def _ask(options: argparse.Namespace, client: ApiClient) -> None:
    method, path, body = REQUESTS[options.action](options.value)
    state = client.call(method, path, value=body)
    calls.show(state, options.output, lambda: calls.rows_of([state], COLUMNS))


def run_idle(options: argparse.Namespace) -> int:
    """Exit status 0: it is idle; 1: it was not in time, or does not answer. Who is busy is said on stderr."""
    return calls.answered(options, lambda client: _wait(options, client))


def _wait(options: argparse.Namespace, client: ApiClient) -> None:
    wanted = {name: getattr(options, name) for name in ("quiet", "timeout", "ignore")}
    query = {name: value for name, value in wanted.items() if value is not None}
    answer = client.call("GET", IDLE, query)
    calls.show(answer, options.output, lambda: calls.rows_of([answer], IDLE_COLUMNS))
