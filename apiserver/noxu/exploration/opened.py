"""A run of an exploration as the recording of a server, so that the same page shows both (`noxu open`).

A run has no times and no requests of its own: what counts is the order of writes, so a write is a tenth of a second after the one
before. The author takes the place of the client.
"""

from __future__ import annotations

from typing import Final

from noxu.exploration.recording import WORKLOAD, ObjectPlace, RecordedChange, RunRecording
from noxu.recordings.lines import ServerRecording
from noxu.values import Object

APART: Final = 0.1  # seconds between two writes
BEGAN: Final = "1970-01-01T00:00:00Z"
_EVENTS: Final = {"create": "ADDED", "update": "MODIFIED", "delete": "DELETED"}


def recording_of(plan: Object, run: RunRecording) -> ServerRecording:
    """The writes of a run, and what was there before them. `plan` is what was done to it."""
    first: dict[ObjectPlace, Object | None] = {}
    for change in run.changes:
        first.setdefault(change.place, change.before)
    there = {place: value for place, value in run.objects if place not in first}
    there |= {place: value for place, value in first.items() if value is not None}
    lines: list[Object] = [
        {"stored": value, "revision": 0, **place._asdict()} for place, value in sorted(there.items())
    ]
    lines += [{"write": _write(change), "at": number * APART} for number, change in enumerate(run.changes, 1)]
    return ServerRecording(BEGAN, 0, str(plan.get("title", "")), {}, lines)


def _write(change: RecordedChange) -> Object:
    return {
        "revision": change.revision,
        "verb": change.verb or change.effect,
        "event": _EVENTS[change.effect],
        **change.place._asdict(),
        "subresource": change.subresource,
        "user": "",
        "userAgent": change.author,
        "controller": "" if change.is_of_controller or change.author == WORKLOAD else change.author,
        "requestID": "",
        "why": [{"how": shown.how, "revision": shown.revision, "event": shown.event} for shown in change.why],
        "object": change.after,
    }
