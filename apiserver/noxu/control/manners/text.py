"""A report about manners as text, for a terminal or a log. Characters that a terminal would obey are escaped."""

from __future__ import annotations

from collections.abc import Iterator

from noxu.control.manners.report import client_name, evidence_line, summary
from noxu.values import Object

MAX_ASKED = 8  # verbs of resources that are listed of a client
MAX_SHOWN = 3  # occurrences of a habit, and requests of each


def as_text(report: Object) -> str:
    """The lines of a report, of all clients, those with bad habits first."""
    return "\n".join(_printable(line) for line in _lines(report))


def _lines(report: Object) -> Iterator[str]:
    yield summary(report)
    yield from (f"note: {note}" for note in report["notes"])
    for client in report["clients"]:
        yield ""
        failed = f", {client['errors']} failed" if client["errors"] else ""
        yield f"{client_name(client)}: {client['requests']} requests{failed}"
        yield from _asked(client)
        for habit in client["habits"]:
            yield from _habit(habit)


def _asked(client: Object) -> Iterator[str]:
    asked = client["asked"]
    for item in asked[:MAX_ASKED]:
        failed = f", {item['errors']} failed" if item["errors"] else ""
        yield f"  {item['requests']:>6}  {item['verb']} {item['resource']}{failed}"
    if len(asked) > MAX_ASKED:
        rest = sum(item["requests"] for item in asked[MAX_ASKED:])
        yield f"  {rest:>6}  others"


def _habit(habit: Object) -> Iterator[str]:
    tolerated = f" ({habit['tolerated']} tolerated)" if habit["tolerated"] else ""
    yield f"  {habit['count']} × {habit['title']}{tolerated}"
    yield f"    {habit['advice']}"
    for seen in habit["seen"][:MAX_SHOWN]:
        yield f"    - {seen['note']}"
        yield from (f"        {evidence_line(request)}" for request in seen["requests"][:MAX_SHOWN])
        if seen["number"] > MAX_SHOWN:
            yield f"        … and {seen['number'] - MAX_SHOWN} more"
    if habit["count"] > MAX_SHOWN:
        yield f"    … and {habit['count'] - MAX_SHOWN} more"


def _printable(line: str) -> str:
    """A line without control characters: agents, users and paths are what clients send."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in line)
