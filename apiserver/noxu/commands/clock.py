"""`noxu clock`: show, set and advance the object time of a running server (`noxu.control.clock`)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Final

from noxu.commands import calls
from noxu.commands.api_client import ApiClient
from noxu.values import Object

PATH: Final = "/_noxu/clock"
COLUMNS: Final = ("mode", "now", "offset", "speed", "due")

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


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses."""
    return calls.answered(options, lambda client: _ask(options, client))


def _ask(options: argparse.Namespace, client: ApiClient) -> None:
    method, path, body = REQUESTS[options.action](options.value)
    state = client.call(method, path, value=body)
    calls.show(state, options.output, lambda: calls.rows_of([state], COLUMNS))
