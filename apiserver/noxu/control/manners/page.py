"""A report about manners as one HTML page: it needs no script, no other file, and no server.

Everything in a report that clients have sent (user agents, users, paths, fields) is text of others. It is escaped in one
place, `_element`, through which all of the page goes but for its frame; and the page forbids itself everything but its own
style. Tests have names that would be markup.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from noxu.control.manners.report import client_name, summary
from noxu.values import Object

Markup = str
"""What is escaped already."""

_STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; overflow-wrap: anywhere; }
h3 { margin-bottom: 0.25rem; }
table { border-collapse: collapse; }
td, th { padding: 0.15rem 1rem 0.15rem 0; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
li { margin-bottom: 0.5rem; }
.good { color: light-dark(#1a7f37, #4ac26b); }
.bad { color: light-dark(#b35900, #f0a050); }
"""
_HEAD: Final = (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">\n"""
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    f"<title>Manners of clients</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
)


def as_page(report: Object) -> str:
    """The page."""
    parts = [
        _element("h1", "Manners of clients"),
        _element("p", summary(report), "bad" if any(client["habits"] for client in report["clients"]) else "good"),
        *(_element("p", note) for note in report["notes"]),
        *(part for client in report["clients"] for part in _client(client)),
    ]
    return "\n".join([_HEAD, *parts, "</body>\n</html>\n"])


def _client(client: Object) -> Iterable[Markup]:
    yield _element("h2", client_name(client))
    yield _element("p", f"User {client['user']}, user agent {client['userAgent'] or '(none)'}")
    yield _table(
        ("requests", "errors", "verb", "resource"),
        [(item["requests"], item["errors"], item["verb"], item["resource"]) for item in client["asked"]],
    )
    for habit in client["habits"]:
        tolerated = f" ({habit['tolerated']} tolerated)" if habit["tolerated"] else ""
        yield _element("h3", f"{habit['count']} × {habit['title']}{tolerated}", "bad")
        yield _element("p", habit["advice"])
        yield _whole("ul", [_seen(seen) for seen in habit["seen"]])
        if habit["count"] > len(habit["seen"]):
            yield _element("p", f"and {habit['count'] - len(habit['seen'])} more")


def _seen(seen: Object) -> Markup:
    """An occurrence, with the requests that show it."""
    rows = [(each["time"], each["code"] or "…", each["request"], each["requestID"]) for each in seen["requests"]]
    left_out = seen["number"] - len(rows)
    more = [_element("p", f"and {left_out} more requests")] if left_out > 0 else []
    return _whole("li", [_element("span", seen["note"]), _table(("time", "code", "request", "Audit-Id"), rows), *more])


def _table(titles: Iterable[str], rows: Iterable[Iterable[str | int]]) -> Markup:
    head = _whole("tr", [_element("th", title) for title in titles])
    body = [
        _whole("tr", [_element("td", str(cell), "number" if isinstance(cell, int) else "") for cell in row])
        for row in rows
    ]
    return _whole("table", [head, *body])


def _element(name: str, text: str, class_: str = "") -> Markup:
    """An element with a text, which is escaped. What HTML cannot have, such as U+0000, is shown as in Python."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
    attributes = f' class="{class_}"' if class_ else ""
    return f"<{name}{attributes}>{escape(shown)}</{name}>"


def _whole(name: str, parts: Iterable[Markup]) -> Markup:
    """An element of others."""
    return f"<{name}>{''.join(parts)}</{name}>"
