"""Bad habits that the requests of one client show: retries, polling, lists and watches, unknown fields, deprecated versions.

Each function gets the requests of a client in the order of their arrival, and yields what it has seen. Times are seconds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from statistics import median
from typing import Final
from urllib.parse import parse_qsl, urlencode

from noxu.control.manners.habits import SeenHabit
from noxu.control.manners.observed import ERRORS, burst, object_of
from noxu.control.recorded_requests import RecordedRequest

RETRY_SOON: Final = 1.0  # a repetition that comes later is no retry
RETRIES: Final = 4
"""Repetitions in a row that are judged: client-go waits 5, 10, 20 and 40 ms between its first attempts."""
BACKOFF: Final = 0.005  # the first wait of client-go, which doubles it
AT_ONCE: Final = 0.02
EARLY: Final = 0.9  # of Retry-After: clocks differ
POLLS: Final = 10
"""The same question so many times, at regular intervals."""
REGULAR: Final = 0.8
"""The part of the intervals that are about as long as usual."""
POLL_EVERY: Final = 60.0  # the longest interval that counts as polling
LARGE: Final = 500
"""Objects that a list should not have at once: the size of a page of kubectl and client-go."""
AGAIN: Final = 5
"""Watches that begin again within WATCHED seconds."""
WATCHED: Final = 60.0
_CONFLICT: Final = 409
_NOT_FOUND: Final = 404
_LEASES: Final = "leases.coordination.k8s.io"

Requests = Sequence[RecordedRequest]


def conflicts(requests: Requests) -> Iterator[SeenHabit]:
    """Each write that was refused because another one was faster."""
    for request in requests:
        if request.code == _CONFLICT and request.reason == "Conflict":
            yield SeenHabit("conflicts", f"{_place(request)} was changed by others since it was read", [request])


def early_retries(requests: Requests) -> Iterator[SeenHabit]:
    """The same request again, before the time that Retry-After has asked for."""
    for earlier, later in _pairs(requests):
        if earlier.retry_after and (waited := _gap(earlier, later)) < earlier.retry_after * EARLY:
            note = f"repeated after {_seconds(waited)}, Retry-After was {earlier.retry_after} s"
            yield SeenHabit("early_retries", note, [earlier, later])


def retries_without_backoff(requests: Requests) -> Iterator[SeenHabit]:
    """The same request at once after each failure, and the waits do not grow."""
    for run in _runs(_by(requests, _question), _is_retry):
        gaps = [_gap(earlier, later) for earlier, later in pairwise(run)]
        if len(gaps) >= RETRIES and (max(gaps[1:]) < max(2 * gaps[0], AT_ONCE) or _are_too_short(gaps)):
            note = f"{len(gaps)} times again after {_failure(run[0])}, every {_seconds(median(gaps))}"
            yield SeenHabit("retries_without_backoff", note, run)


def _are_too_short(gaps: Sequence[float]) -> bool:
    """Whether most waits of the second half are shorter than those of client-go, and no longer than those of the first half.

    A busy machine makes waits longer, and never shorter: some long ones are no back-off. An event may be the reason for an attempt
    in between, so one wait may be missing.
    """
    half = len(gaps) // 2
    short = sum(gap < EARLY * BACKOFF * 2 ** (n - 1) for n, gap in enumerate(gaps) if n >= half)
    return 2 * short > len(gaps) - half and median(gaps[half:]) < max(2 * median(gaps[:half]), AT_ONCE)


def polling(requests: Requests) -> Iterator[SeenHabit]:
    """The same GET or LIST at regular intervals, without a write of the client in between."""
    groups: dict[str, list[list[RecordedRequest]]] = {}
    written: defaultdict[str, int] = defaultdict(int)  # writes of this client, by collection
    seen: dict[str, int] = {}
    for request in requests:
        collection = f"{request.resource}/{request.namespace}"
        if request.verb not in ("get", "list"):
            if request.verb != "watch":
                written[collection] += 1
            continue
        if not request.code or request.resource == _LEASES or "continue=" in request.path:
            continue
        runs = groups.setdefault(request.path, [[]])
        if seen.get(request.path) != written[collection]:
            runs.append([])
        seen[request.path] = written[collection]
        runs[-1].append(request)
    for runs in groups.values():
        for run in runs:
            yield from _regular(run)


def _regular(run: Requests) -> Iterator[SeenHabit]:
    gaps = [later.at - earlier.at for earlier, later in pairwise(run)]
    if len(run) < POLLS or (usual := median(gaps)) > POLL_EVERY:
        return
    regular = sum(abs(gap - usual) <= max(usual * 0.25, 0.05) for gap in gaps)
    if regular >= len(gaps) * REGULAR:
        yield SeenHabit("polling", f"{len(run)} times, every {_seconds(usual)}", run)


def unlimited_lists(requests: Requests) -> Iterator[SeenHabit]:
    """A list of a large collection, neither in pages nor from the cache of the server."""
    for request in requests:
        if request.verb != "list" or request.objects <= LARGE or not 0 < request.code < ERRORS:
            continue
        query = _query(request)
        if query.get("limit", "0") in ("", "0") and not query.get("continue") and not query.get("resourceVersion"):
            yield SeenHabit("unlimited_lists", f"{request.objects} objects in one answer", [request])


def watches_again(requests: Requests) -> Iterator[SeenHabit]:
    """A watch that has ended begins again, and again."""
    for run in _reconnections(requests).values():
        busiest = burst(run, WATCHED)
        if len(busiest) >= AGAIN:
            lasted = median(request.seconds for request in busiest)
            spent = max(busiest[-1].at - busiest[0].at, 0.0)
            note = f"{len(busiest)} times again in {_seconds(spent)}, after lasting {_seconds(lasted)}"
            yield SeenHabit("watches_again", note, busiest)


def watches_from_start(requests: Requests) -> Iterator[SeenHabit]:
    """A watch that has ended begins again without the resourceVersion that it had come to."""
    for run in _reconnections(requests).values():
        starts = [request for request in run if _query(request).get("resourceVersion", "") in ("", "0")]
        if len(starts) >= 2:  # once is a program that was started again
            yield SeenHabit("watches_from_start", f"{len(starts)} times again from the start", starts)


def _reconnections(requests: Requests) -> dict[str, list[RecordedRequest]]:
    """By place, the watches that begin when an earlier one of the same place has ended. Several at once are no reconnection."""
    ending: defaultdict[str, list[float]] = defaultdict(list)  # heaps of when the watches of a place end
    ended: Counter[str] = Counter()  # watches that no other one has followed
    again: defaultdict[str, list[RecordedRequest]] = defaultdict(list)
    for request in requests:
        if request.verb != "watch" or request.code >= ERRORS:
            continue
        place = _watched(request)
        while ending[place] and ending[place][0] <= request.at:
            heappop(ending[place])
            ended[place] += 1
        if ended[place]:
            ended[place] -= 1
            again[place].append(request)
        if request.seconds:
            heappush(ending[place], request.at + request.seconds)
    return again


def unknown_fields(requests: Requests) -> Iterator[SeenHabit]:
    """Fields that the schema does not have; each of a resource once."""
    found: defaultdict[tuple[str, str], list[RecordedRequest]] = defaultdict(list)
    for request in requests:
        for path in request.unknown:
            found[request.resource, path].append(request)
    for (resource, path), sent in found.items():
        yield SeenHabit("unknown_fields", f"{path} of {resource}, {_times(len(sent))}", sent)


def deprecated_versions(requests: Requests) -> Iterator[SeenHabit]:
    """Each deprecated version of a resource once."""
    found: defaultdict[str, list[RecordedRequest]] = defaultdict(list)
    for request in requests:
        if request.deprecation:
            found[request.deprecation].append(request)
    for warning, asked in found.items():
        yield SeenHabit("deprecated_versions", f"{warning}, {_times(len(asked))}", asked)


# -- requests that belong together -------------------------------------------------------------------------------------


def _question(request: RecordedRequest) -> str:
    """What is asked: the same text is the same request."""
    return f"{request.method} {request.path} {request.name}"


def _by(requests: Iterable[RecordedRequest], key: Callable[[RecordedRequest], str]) -> Iterable[list[RecordedRequest]]:
    found: defaultdict[str, list[RecordedRequest]] = defaultdict(list)
    for request in requests:
        found[key(request)].append(request)
    return found.values()


def _pairs(requests: Requests) -> Iterator[tuple[RecordedRequest, RecordedRequest]]:
    """Each request that failed, and the next one that asks the same."""
    for same in _by(requests, _question):
        for earlier, later in pairwise(same):
            if earlier.code >= ERRORS and _gap(earlier, later) >= 0:
                yield earlier, later


def _is_retry(earlier: RecordedRequest, later: RecordedRequest) -> bool:
    return _has_failed(earlier) and 0 <= _gap(earlier, later) < RETRY_SOON


def _has_failed(request: RecordedRequest) -> bool:
    """Whether an answer is a reason to wait. What a GET does not find is an answer; conflicts are a habit of their own."""
    is_answer = request.verb == "get" and request.code == _NOT_FOUND
    return request.code >= ERRORS and not is_answer and request.reason != "Conflict"


def _runs(
    groups: Iterable[list[RecordedRequest]], continues: Callable[[RecordedRequest, RecordedRequest], bool]
) -> Iterator[list[RecordedRequest]]:
    """The longest parts of the groups in which each request continues the one before."""
    for group in groups:
        run = group[:1]
        for request in group[1:]:
            if not continues(run[-1], request):
                yield run
                run = []
            run.append(request)
        yield run


def _gap(earlier: RecordedRequest, later: RecordedRequest) -> float:
    """From an answer to the next request; negative if that was sent before."""
    return later.at - (earlier.at + earlier.seconds)


# -- texts -------------------------------------------------------------------------------------------------------------


def _query(request: RecordedRequest) -> dict[str, str]:
    return dict(parse_qsl(request.path.partition("?")[2], keep_blank_values=True))


_OF_ONE_WATCH: Final = frozenset(
    {"resourceVersion", "resourceVersionMatch", "timeoutSeconds", "timeout", "allowWatchBookmarks", "sendInitialEvents"}
)
"""Parameters that say how to watch, and not what."""


def _watched(request: RecordedRequest) -> str:
    """What a watch is for."""
    asked = sorted((name, value) for name, value in _query(request).items() if name not in _OF_ONE_WATCH)
    return f"{request.path.partition('?')[0]}?{urlencode(asked)}"


def _place(request: RecordedRequest) -> str:
    return " ".join(
        part for part in (request.resource, "/".join(part for part in object_of(request)[1:] if part)) if part
    )


def _failure(request: RecordedRequest) -> str:
    return f"{request.code} {request.reason}".rstrip()


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _seconds(seconds: float) -> str:
    """A time for people: `20 ms`, `1.5 s`."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"


HABITS_OF_REQUESTS: Final = (
    conflicts,
    early_retries,
    retries_without_backoff,
    polling,
    unlimited_lists,
    watches_again,
    watches_from_start,
    unknown_fields,
    deprecated_versions,
)
