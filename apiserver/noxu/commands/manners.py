"""`noxu report`: what the clients of a running server do badly; `noxu rbac`: the least roles that they need.

Both are answers of `noxu.control.manners_calls`.
"""

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
RBAC: Final = "/_noxu/rbac"


def run_report(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses."""
    return calls.answered(options, lambda client: _report(options, client))


def _report(options: argparse.Namespace, client: ApiClient) -> None:
    asked = {"client": options.client, "since": options.since}
    answer = client.call("GET", REPORT, {name: value for name, value in asked.items() if value})
    print(_REPORTS[options.output](answer))


def run_rbac(options: argparse.Namespace) -> int:
    """Likewise; 1 also if nothing was recorded."""
    return calls.answered(options, lambda client: _rbac(options, client))


def _rbac(options: argparse.Namespace, client: ApiClient) -> int:
    asked = {
        "client": options.client,
        "user": options.user,
        "since": options.since,
        "name": options.name,
        "bind": ",".join(options.bind),
        "names": "false" if options.any_name else None,
        "discovery": "true" if options.discovery else None,
    }
    answer = client.call("GET", RBAC, {name: value for name, value in asked.items() if value})
    for note in answer["notes"]:
        calls.complain(note)
    roles = answer["items"]
    if not roles:
        calls.complain(f"{answer['requests']} requests were recorded, and none of them needs a role")
        return 1
    listed: Object = {"apiVersion": "v1", "kind": "List", "items": roles}
    print(_json(listed) if options.output == "json" else "\n---\n".join(map(_yaml, roles)))
    return 0


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
