"""The report about the manners of clients: a pure function of what was observed, and what is done with its value.

    {"since": "…", "requests": 240, "notes": [],
     "clients": [{"userAgent": "operator/v1", "user": "system:anonymous", "requests": 240, "errors": 3,
                  "asked": [{"verb": "update", "resource": "widgets.example.com", "requests": 200, "errors": 3}],
                  "habits": [{"habit": "no_op_writes", "title": "…", "count": 12, "tolerated": 5, "advice": "…",
                              "seen": [{"note": "…", "number": 1,
                                        "requests": [{"time": "…", "requestID": "…", "request": "PUT /apis/…", "code": 200}]}]}]}]}

A report is JSON, so that it goes over HTTP and between processes. `merged` makes one of those of several servers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from noxu.control.manners.asking import HABITS_OF_REQUESTS, RETRIES
from noxu.control.manners.habits import HABITS, SeenHabit, tolerated
from noxu.control.manners.observed import ERRORS, ClientKey, Observed
from noxu.control.manners.writing import HABITS_OF_WRITES, fights
from noxu.control.recorded_requests import RecordedRequest
from noxu.go.time import MICRO, format_time
from noxu.values import Object

MAX_SEEN: Final = 20
"""Occurrences of a habit that are listed; the others are counted."""
MAX_EVIDENCE: Final = 5
"""Requests that are listed of an occurrence."""


def report(observed: Observed, since: float = 0.0, notes: Sequence[str] = ()) -> Object:
    """The report. `since`: requests are recorded since then, in seconds since 1970."""
    fighting: defaultdict[ClientKey, list[SeenHabit]] = defaultdict(list)
    for client, seen in fights(observed) if observed.knows_writes else ():
        fighting[client].append(seen)
    clients = [_of_client(observed, client, fighting[client]) for client in observed.by_client]
    return {
        "since": _time(since),
        "requests": sum(client["requests"] for client in clients),
        "clients": sorted(clients, key=_order),
        "notes": list(notes),
    }


def _of_client(observed: Observed, client: ClientKey, fighting: Sequence[SeenHabit]) -> Object:
    requests = observed.by_client[client]
    asking = (each for habit in HABITS_OF_REQUESTS for each in habit(requests))
    seen: list[SeenHabit] = [*fighting, *(each for each in asking if not _has_reasons(observed, each))]
    if observed.knows_writes:
        seen += [each for habit in HABITS_OF_WRITES for each in habit(observed, requests)]
    return {
        "userAgent": client.agent,
        "user": client.user,
        "requests": len(requests),
        "errors": sum(request.code >= ERRORS for request in requests),
        "asked": _asked(requests),
        "habits": [_habit(name, of_habit) for name in HABITS if (of_habit := [s for s in seen if s.habit == name])],
    }


def _has_reasons(observed: Observed, seen: SeenHabit) -> bool:
    """Whether changes by others account for so many attempts that the rest are no row of retries."""
    if seen.habit != "retries_without_backoff":
        return False
    return len(seen.requests) - 1 - observed.by_others(seen.requests) < RETRIES


def _asked(requests: Iterable[RecordedRequest]) -> list[Object]:
    """How often each verb was asked for each resource, the most frequent ones first."""
    asked: Counter[tuple[str, str]] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    for request in requests:
        resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
        key = (request.verb or request.method.lower(), resource or "documents")
        asked[key] += 1
        failed[key] += request.code >= ERRORS
    listed = sorted(asked.items(), key=lambda item: (-item[1], item[0]))
    return [
        {"verb": verb, "resource": resource, "requests": number, "errors": failed[verb, resource]}
        for (verb, resource), number in listed
    ]


def _habit(name: str, seen: Sequence[SeenHabit]) -> Object:
    habit = HABITS[name]
    return {
        "habit": name,
        "title": habit.title,
        "count": len(seen),
        "tolerated": habit.tolerated,
        "advice": habit.advice,
        "seen": [
            {
                "note": each.note,
                "number": len(each.requests),
                "requests": [_evidence(request) for request in each.requests[:MAX_EVIDENCE]],
            }
            for each in seen[:MAX_SEEN]
        ],
    }


def _evidence(request: RecordedRequest) -> Object:
    return {
        "time": _time(request.at),
        "requestID": request.id,
        "request": f"{request.method} {request.path}",
        "code": request.code,
    }


def _time(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC), MICRO) if seconds else ""


def _order(client: Object) -> tuple[bool, int, str, str]:
    """Those with bad habits first, then by the number of their requests."""
    return not client["habits"], -client["requests"], client["userAgent"], client["user"]


# -- what is done with a report ----------------------------------------------------------------------------------------


def merged(reports: Iterable[Object]) -> Object:
    """One report of several servers."""
    reports = list(reports)
    by_client: dict[ClientKey, list[Object]] = {}
    for each in reports:
        for client in each["clients"]:
            by_client.setdefault(ClientKey(client["userAgent"], client["user"]), []).append(client)
    clients = [_merged_client(key, parts) for key, parts in by_client.items()]
    return {
        "since": min((each["since"] for each in reports if each["since"]), default=""),
        "requests": sum(each["requests"] for each in reports),
        "clients": sorted(clients, key=_order),
        "notes": list(dict.fromkeys(note for each in reports for note in each["notes"])),
    }


def _merged_client(key: ClientKey, parts: Sequence[Object]) -> Object:
    asked: dict[tuple[str, str], Object] = {}
    for item in (item for part in parts for item in part["asked"]):
        known = asked.setdefault((item["verb"], item["resource"]), {**item, "requests": 0, "errors": 0})
        known["requests"] += item["requests"]  # a value of this function
        known["errors"] += item["errors"]
    habits: dict[str, list[Object]] = {}
    for habit in (habit for part in parts for habit in part["habits"]):
        habits.setdefault(habit["habit"], []).append(habit)
    return {
        "userAgent": key.agent,
        "user": key.user,
        "requests": sum(part["requests"] for part in parts),
        "errors": sum(part["errors"] for part in parts),
        "asked": sorted(asked.values(), key=lambda item: (-item["requests"], item["verb"], item["resource"])),
        "habits": [
            {
                **habits[name][0],
                "count": sum(habit["count"] for habit in habits[name]),
                "seen": [seen for habit in habits[name] for seen in habit["seen"]][:MAX_SEEN],
            }
            for name in HABITS
            if name in habits
        ],
    }


def impolite(value: Object, thresholds: Mapping[str, int | None]) -> list[str]:
    """A sentence for each habit of a client that occurs more often than it is tolerated, with its first evidence.

    `thresholds` are the numbers that differ from those of HABITS; None: always tolerated. Raises ValueError.
    """
    limits = tolerated(thresholds)
    return [
        sentence(client, habit, limit)
        for client in value["clients"]
        for habit in client["habits"]
        if (limit := limits[habit["habit"]]) is not None and habit["count"] > limit
    ]


def sentence(client: Object, habit: Object, limit: int | None = None) -> str:
    """What a client does, what to change, and the first evidence."""
    first = habit["seen"][0]
    number = f"{habit['count']} × {habit['title']}" + (f" ({limit} tolerated)" if limit else "")
    lines = [f"{client_name(client)}: {number}: {first['note']}. {habit['advice']}"]
    lines += [evidence_line(request) for request in first["requests"][:2]]
    return "\n    ".join(lines)


def summary(value: Object) -> str:
    """The first line of a report."""
    number = sum(habit["count"] for client in value["clients"] for habit in client["habits"])
    clients = len(value["clients"])
    return f"{value['requests']} requests of {clients} client{'s' * (clients != 1)}, {number or 'no'} bad manners"


def client_name(client: Object) -> str:
    agent = client["userAgent"].partition(" ")[0] or "a client without a user agent"
    return agent if client["user"] == "system:anonymous" else f"{agent} ({client['user']})"


def evidence_line(request: Object) -> str:
    return f"{request['time']}  {request['code'] or '...'}  {request['request']}  ({request['requestID']})"
