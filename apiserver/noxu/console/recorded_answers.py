"""What the page of the console asks, answered from a recording: answers by their paths, as a server would give them.

    {"/_noxu/console/session": {"version": "…", "mayWrite": false},
     "/_noxu/console/kinds": {"items": […]},                    the kinds of the objects at the end
     "/apis/example.com/v1/widgets": {"kind": "Table", …},      and the objects
     "/_noxu/console/timeline": {"marks": […]},                 writes and requests, as the live timeline has them
     "/_noxu/console/change?revision=812": {"before": …, "after": …},
     "/_noxu/console/recording": {"began": …, "steps": […]},    the conversations themselves
     "/_noxu/console/runs": {"sentence": …, "pairs": …}}        of two recordings, how they differ

Pure. The newest MAX_WRITES writes and MAX_STEPS steps are shown; `left` counts the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from noxu.console.timeline import is_refused, lane
from noxu.recordings.divergence import diverged
from noxu.recordings.lines import Place, ServerRecording, place_of
from noxu.values import Json, Object

MAX_WRITES: Final = 5_000
MAX_STEPS: Final = 5_000
MAX_EVENTS: Final = 200  # of a watch
BUILT_IN: Final = ("k8s.io",)
"""How groups end that are the server's own, besides those without a dot."""
_READS: Final = ("GET", "HEAD")


def answers(recording: ServerRecording) -> Object:
    """All that a page may ask."""
    writes = list(recording.writes)
    steps = list(_steps(recording.lines))
    before = _states(recording.stored)
    changes = list(_changes(writes, before))  # `before` becomes the state at the end
    kept = changes[-MAX_WRITES:]
    return {
        "/_noxu/console/session": {"version": recording.version, "url": "", "user": "", "mayWrite": False},
        "/_noxu/console/recording": {
            "began": recording.began,
            "version": recording.version,
            "cut": recording.cut,
            "writes": len(writes),
            "steps": steps[-MAX_STEPS:],
            "left": max(len(steps) - MAX_STEPS, 0),
        },
        "/_noxu/console/timeline": {"marks": marks(recording, [write for write, _ in kept], steps)},
        **{f"/_noxu/console/change?revision={write['revision']}": change for write, change in kept},
        **tables(before, recording.revision),
    }


def two_runs(one: ServerRecording, other: ServerRecording, titles: Sequence[str]) -> Object:
    """What a page may ask about two recordings: all of the second one, and how they differ."""
    found = diverged(one, other)
    runs = {
        "titles": [*titles],
        "sentence": found.sentence,
        "first": found.first,
        "pairs": [[*pair] for pair in found.pairs],
        "objects": [each._asdict() for each in found.objects],
    }
    return {**answers(other), "/_noxu/console/runs": runs}


# -- steps -------------------------------------------------------------------------------------------------------------


def _steps(lines: Sequence[Object]) -> Iterator[Object]:
    """The steps, each watch with its events."""
    events: dict[int, list[Json]] = {}
    for line in lines:
        if "events" in line:
            there = events.setdefault(line["of"], [])
            there += line["events"][: MAX_EVENTS - len(there)]
    for line in lines:
        if "watch" in line:
            yield {"method": "WATCH", "path": line["watch"], **line, "events": events.get(line["step"], [])}
        elif "step" in line:
            yield line


# -- objects -----------------------------------------------------------------------------------------------------------


def _place(line: Object) -> Place:
    return line["resource"], line["namespace"], line["name"]


def _states(stored: Iterator[Object]) -> dict[Place, Object]:
    return {_place(line): line["stored"] for line in stored if isinstance(line["stored"], dict)}


def _changes(writes: Sequence[Object], states: dict[Place, Object]) -> Iterator[tuple[Object, Object]]:
    """Each write with the object before and after. It moves the states on."""
    for write in writes:
        place = _place(write)
        before, after = states.pop(place, None), write.get("object")
        if isinstance(after, dict):
            states[place] = after
        yield write, {"before": before, "after": after}


def tables(states: Mapping[Place, Object], revision: int) -> Object:
    """The kinds, and for each of them the objects as a Table."""
    by_resource: dict[str, list[Object]] = {}
    for (resource, _, _), value in sorted(states.items()):
        by_resource.setdefault(resource, []).append(value)
    kinds, found = [], {}
    for resource, values in by_resource.items():
        plural, _, group = resource.partition(".")
        version = str(values[0].get("apiVersion", ""))
        path = f"/{'apis' if group else 'api'}/{version}/{plural}"
        kinds.append(
            {
                "resource": resource,
                "kind": values[0].get("kind", ""),
                "version": version.rpartition("/")[2],
                "path": path,
                "namespaced": any("namespace" in value.get("metadata", {}) for value in values),
                "custom": "." in group and not group.endswith(BUILT_IN),
                "count": len(values),
            }
        )
        found[path] = _table(values)
    kinds.sort(key=lambda kind: (not kind["custom"], kind["resource"]))
    return {"/_noxu/console/kinds": {"items": kinds, "revision": revision}, **found}


def _table(values: Sequence[Object]) -> Object:
    metadata = [value.get("metadata") or {} for value in values]
    return {
        "kind": "Table",
        "metadata": {},
        "columnDefinitions": [{"name": "Name", "type": "string"}, {"name": "Created At", "type": "date"}],
        "rows": [
            {"cells": [about.get("name", ""), about.get("creationTimestamp", "")], "object": {"metadata": about}}
            for about in metadata
        ],
    }


# -- the timeline ------------------------------------------------------------------------------------------------------


def marks(recording: ServerRecording, writes: Sequence[Object], steps: Sequence[Object]) -> list[Object]:
    """Writes, refusals and reads in the order of their times."""
    began = datetime.fromisoformat(recording.began).timestamp() if recording.began else 0.0
    by_id = {step["id"]: step for step in steps if "id" in step}
    at = {line["write"]["revision"]: line["at"] for line in recording.lines if "write" in line}
    to = _receivers(recording.lines)
    found: list[Object] = []
    for write in writes:
        step = by_id.pop(write["requestID"], None)
        found.append(_mark_of_write(write, step, began + at[write["revision"]], to.get(write["revision"], [])))
    found += [_mark_of_step(step, began + step["at"]) for step in by_id.values()]
    return sorted(found, key=lambda mark: mark["at"])


def _receivers(lines: Sequence[Object]) -> dict[int, list[str]]:
    """By revision, the clients whose watches have been sent it."""
    watches = {line["step"]: lane(**line["client"]) for line in lines if "watch" in line}
    found: dict[int, dict[str, None]] = {}
    for line in lines:
        for event in line.get("events", ()):
            value = event.get("object") if isinstance(event, dict) else None
            revision = str(
                ((value if isinstance(value, dict) else {}).get("metadata") or {}).get("resourceVersion", "")
            )
            if revision.isdecimal() and event.get("type") != "BOOKMARK":
                found.setdefault(int(revision), {})[watches.get(line["of"], "")] = None
    return {revision: [*clients] for revision, clients in found.items()}


def _mark_of_write(write: Object, step: Object | None, at: float, to: Sequence[str]) -> Object:
    mark: Object = {
        "key": str(write["revision"]),
        "at": at,
        "lane": lane(write["user"], write["userAgent"], write["controller"]),
        "what": "write",
        **{name: write[name] for name in ("verb", "subresource", "resource", "namespace", "name", "revision", "event")},
        "because": [cause["revision"] for cause in write.get("why", ()) if "revision" in cause],
        "to": [*to],
    }
    return mark if step is None else mark | _answered(step)


def _mark_of_step(step: Object, at: float) -> Object:
    code = step.get("expect", {}).get("code", 200)
    reads = step["method"] in _READS
    asked = "watch" if "watch" in step else "read" if reads else "unchanged"
    body = step.get("expect", {}).get("body")
    refusal = {name: body.get(name, "") for name in ("reason", "message")} if isinstance(body, dict) else {}
    return {
        "key": f"r{step['step']}",
        "at": at,
        "lane": lane(**step["client"]),
        "what": "refused" if is_refused(code, reads=reads) else asked,
        "verb": asked if "watch" in step else step["method"].lower(),
        "subresource": "",
        **dict(zip(("resource", "namespace", "name"), place_of(step["path"]), strict=True)),
        **_answered(step),
        **(refusal if code >= 400 else {}),
    }


def _answered(step: Object) -> Object:
    code = step.get("expect", {}).get("code", 200)
    return {"code": code, "request": step["step"], "method": step["method"], "path": step["path"], "seconds": 0}
