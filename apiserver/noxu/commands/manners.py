"""`noxu report`: what the clients of a running server do badly (`noxu.control.manners_calls`)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Final

from noxu.api import codec
from noxu.commands import calls
from noxu.commands.api_client import ApiClient
from noxu.control.manners.page import as_page
from noxu.control.manners.text import as_text
from noxu.values import Object

REPORT: Final = "/_noxu/report"


def run_report(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses."""
    return calls.answered(options, lambda client: _report(options, client))


def _report(options: argparse.Namespace, client: ApiClient) -> None:
    asked = {"client": options.client, "since": options.since}
    answer = client.call("GET", REPORT, {name: value for name, value in asked.items() if value})
    print(_REPORTS[options.output](answer))


def _json(value: Object) -> str:
    return codec.pretty(value, sort_keys=False).decode().rstrip("\n")


def _yaml(value: Object) -> str:
    return codec.to_yaml(value).decode().rstrip("\n")


_REPORTS: Final[Mapping[str, Callable[[Object], str]]] = {
    "text": as_text,
    "json": _json,
    "yaml": _yaml,
    "html": as_page,
}
