"""A run of an exploration as the recording of a server, so that the same page shows both (`noxu open`).

A run has no times and no requests of its own: what counts is the order of writes, so a write is a tenth of a second after the one
before. The author takes the place of the client.

`moments` says where in a run its plan has struck: a move at its revision; a fault at the write of the request that it hit, or
before that write if the request was refused and made again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from noxu.exploration.plans import views_of
from noxu.exploration.recording import VERBS, WORKLOAD, ObjectPlace, RecordedChange, RunRecording
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


# -- moments -----------------------------------------------------------------------------------------------------------


def moments(plan: Object, run: RunRecording) -> list[Object]:
    """`{"revision": 812, "before": false, "text": "the program is killed"}`; revision 0: no write is known of it."""
    rules = {str(rule.get("name", "")): rule for rule in plan.get("faults", ())}
    found = [_of_move(hit) if "move" in hit else _of_hit(hit, rules, run.changes) for hit in run.fired]
    return sorted(found, key=lambda moment: moment["revision"])


def _of_move(made: Object) -> Object:
    return {
        "revision": made["revision"],
        "before": False,
        "text": "; ".join(_done(made["move"])) or "a revision is marked",
    }


def _done(move: Object) -> Iterator[str]:
    for view in views_of(move):
        name = f" {view['name']}" if view.get("name") else ""
        yield f"the view of {view['resource']}{name} {'is held' if view.get('hold') else 'stays at an earlier state'}"
    if "faults" in move:
        yield "faults begin"
    if move.get("release"):
        yield "what is seen is the present again"
    if move.get("restart"):
        yield "the program is killed, and starts again"
    if "delete" in move:
        yield "an object is deleted"


def _of_hit(hit: Object, rules: dict[str, Object], changes: Sequence[RecordedChange]) -> Object:
    asked, rule = hit.get("request") or {}, rules.get(hit["rule"], {})
    effect = next((name for name in hit if name not in _OF_HITS), hit["rule"])
    about = " ".join(filter(None, (asked.get("verb"), asked.get("resource"), asked.get("name"))))
    text = _WORDS.get(effect, effect) + (f": {hit[effect]}" if isinstance(hit.get(effect), str) else "")
    same = [change for change in changes if change.is_of_controller and _is_about(change, asked)]
    number = int(rule.get("nth") or hit["number"])
    return {
        "revision": same[min(number, len(same)) - 1].revision if same else 0,
        "before": effect in _REFUSING,
        "text": f"{text} ({about})" if about else text,
    }


_OF_HITS: Final = ("rule", "number", "time", "request")
_WORDS: Final[Mapping[str, str]] = {
    "process": "the program is killed or paused",
    "error": "the request is refused",
    "reset": "the connection breaks",
    "watch": "an event is lost or late",
    "view": "an earlier state is shown",
    "store": "the storage fails",
}
_REFUSING: Final = ("error", "delay", "hang")
"""Effects after which there is no write, or a later one."""


def _is_about(change: RecordedChange, asked: Object) -> bool:
    return (
        change.place.resource == asked.get("resource")
        and asked.get("verb") in ("watch", VERBS.get(change.verb, change.verb))
        and change.subresource == asked.get("subresource", "")
        and asked.get("name", change.place.name) == change.place.name
    )
