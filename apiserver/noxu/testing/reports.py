"""The server's part in the report of a failed test: the last requests with their codes and the
faults that hit them, and why writes were refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from noxu.http.recent_requests import Refusal
from noxu.testing import handle
from noxu.testing.calls import PendingCall
from noxu.testing.handle import Noxu

MAX_REFUSALS = 5
MAX_LINE = 300  # characters

Section = tuple[str, str]
"""A title and a text."""


def marks() -> dict[Noxu, int]:
    """The newest request of each server that runs, so that later ones can be told apart."""
    return {server: requests.last for server, requests in handle.running.items()}


def sections(before: dict[Noxu, int], shown: int) -> list[Section]:
    """The sections about the requests since `before`, for each server the last `shown` of them."""
    shown_sections: list[Section] = []
    for server, recent in sorted(handle.running.items(), key=lambda item: item[0].url):
        number = before.get(server, 0)
        requests = recent.since(number)
        if requests and shown:
            hit = server.rules_by_request()
            lines = [_cut(f"{request}{_marked(hit.get(request.id, ()))}") for request in requests[-shown:]]
            if len(requests) > shown:
                lines.insert(0, f"… {len(requests) - shown} before these")
            shown_sections.append((f"noxu requests ({server.url})", "\n".join(lines)))
        refused = recent.refused(number)[-MAX_REFUSALS:]
        explained = ["\n".join(lines) for refusal in refused if len(lines := list(_lines(refusal))) > 1]
        if explained:
            shown_sections.append(("noxu refused writes", "\n".join(explained)))
    return shown_sections


def _marked(rules: Sequence[str]) -> str:
    """Which faults have hit a request, or events of a watch."""
    return f"  [hit by {', '.join(dict.fromkeys(rules))}]" if rules else ""


def _lines(refusal: Refusal) -> Iterator[str]:
    """The request, and what is known about its refusal."""
    request = refusal.request
    yield _cut(f"{request.code}  {request.method} {request.path}")
    for note in refusal.notes():
        advice = f" ({note.hint})" if note.hint else ""
        yield f"  {note.path}: {note.message}{advice}"
        if note.rule and note.rule not in note.message:
            yield f"    rule: {note.rule}"
        yield from (f"    {name} = {value}" for name, value in note.values.items())


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


def forgotten(calls: Sequence[PendingCall]) -> str:
    """The message about calls that are not awaited."""
    lines = [f"{call.place}: noxu.{call.name}(…) is not awaited, so it has done nothing" for call in calls]
    return "\n".join([*lines, "In a coroutine, write `await noxu.…(…)`."])
