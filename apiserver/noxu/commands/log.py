"""`noxu log`: what was written to a running server, one line for each write (`noxu.control.write_log`).

    REVISION   TIME                   VERB     OBJECT                          WHO                     CHANGED
    12         2026-03-01T12:00:00Z   update   widgets.example.com default/a   jane (kubectl-edit)     spec.size
                                      because  gadgets.example.com default/b   MODIFIED at 11 (watch)

With --follow it asks every EVERY seconds for what is newer, until Ctrl-C; an object of JSON is one line then.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import sleep
from typing import Final

from noxu.api import codec
from noxu.commands import calls
from noxu.commands.api_client import ApiClient
from noxu.values import Object

PATH: Final = "/_noxu/log"
TITLES: Final = ("revision", "time", "verb", "object", "who", "changed")
EVERY: Final = 1.0  # seconds
MOST: Final = 5_000  # writes in one answer
PATHS: Final = 4  # changed paths of a line


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 1: the server does not answer, or refuses."""
    return calls.answered(options, lambda client: _list(options, client))


def _list(options: argparse.Namespace, client: ApiClient) -> None:
    answer = _ask(options, client)
    if options.follow:
        _follow(options, client, answer)
    calls.show(answer, options.output, lambda: _rows(answer["items"]))
    _say(answer)


def _ask(options: argparse.Namespace, client: ApiClient, **more: str | int) -> Object:
    query: dict[str, str | int | None] = {
        "type": options.type,
        "name": options.name,
        "namespace": options.namespace,
        "since": options.since,
        "limit": options.limit,
        "why": "true" if options.why else None,
    } | more
    return client.call("GET", PATH, {name: value for name, value in query.items() if value})


def _follow(options: argparse.Namespace, client: ApiClient, answer: Object) -> None:
    """Does not return."""
    titles: Sequence[Sequence[str]] = [TITLES]
    while True:
        items = answer["items"]
        if options.output == "json":
            for item in items:
                print(codec.encode(item, sort_keys=False).decode())
        elif items or titles:
            lines = calls.table([TITLES, *_rows(items)[1:]])
            print("\n".join(lines if titles else lines[1:]))
            titles = ()
        _say(answer)
        sys.stdout.flush()
        sleep(EVERY)
        answer = _ask(options, client, since=str(answer["revision"]), limit=MOST)


def _say(answer: Object) -> None:
    if "note" in answer:
        calls.complain(answer["note"])


def _rows(items: Sequence[Object]) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [TITLES]
    for item in items:
        changed = item["changed"]
        shown = ", ".join(changed[:PATHS]) + (f" and {len(changed) - PATHS} more" if len(changed) > PATHS else "")
        time_of, dot, _ = item["time"].partition(".")
        verb = f"{item['verb']}/{item['subresource']}" if item["subresource"] else item["verb"]
        rows.append(
            (
                str(item["revision"]),
                f"{time_of}Z" if dot else item["time"],
                verb,
                _object(item),
                _who(item),
                shown or "-",
            )
        )
        rows += [(" ", " ", "because", *_cause(cause), " ") for cause in item.get("why", ())]
    return [tuple(map(_printable, row)) for row in rows]


def _printable(text: str) -> str:
    """A cell that cannot control a terminal: clients choose their user agents, and the names of fields."""
    return (
        text
        if text.isprintable()
        else "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    )


def _object(what: Object) -> str:
    name = "/".join(part for part in (what["namespace"], what["name"]) if part)
    return f"{what['resource']} {name}".rstrip()


def _who(item: Object) -> str:
    if item["controller"]:
        return f"{item['controller']} (of the server)"
    agent = item["userAgent"].partition(" ")[0]
    how = " ".join(dict.fromkeys(part for part in (item["manager"], agent) if part))
    return f"{item['user']} ({how})" if how else item["user"]


def _cause(cause: Object) -> tuple[str, str]:
    """The object, and how the client was shown it."""
    if cause["how"] == "more":
        return f"… and {cause['number']} more", " "
    return _object(cause), f"{cause.get('event', 'read')} at {cause['revision']} ({cause['how']})"
