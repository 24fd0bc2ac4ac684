"""Bad habits that writes show, together with what they have changed: no-ops, hot loops, fights, lost updates.

A function gets what was observed and the requests of one client, and yields what it has seen. The objects of Leases and Events
are left out of loops and fights: they are written again and again by design, and by several.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from noxu.control.manners.habits import SeenHabit
from noxu.control.manners.observed import (
    ERRORS,
    REPEATED,
    ClientKey,
    ObjectId,
    Observed,
    ObservedWrite,
    WriteAuthor,
    burst,
    client_of,
    has_written,
    object_of,
)
from noxu.control.recorded_requests import RecordedRequest
from noxu.values import MAX_INT64

HOT: Final = 10
"""Writes of an object within HOT_WITHIN seconds; more of them are a hot loop."""
HOT_WITHIN: Final = 10.0
TURNS: Final = 3
"""How often a field changes hands in a fight."""
SHOWN_PATHS: Final = 5

Requests = Sequence[RecordedRequest]


def no_op_writes(observed: Observed, requests: Requests) -> Iterator[SeenHabit]:
    """An update or a patch that has written no revision."""
    for request in requests:
        if has_written(request) and request.id not in observed.written_ids:
            yield SeenHabit("no_op_writes", f"{_shown(object_of(request))} was so already", [request])


def hot_loops(observed: Observed, requests: Requests) -> Iterator[SeenHabit]:
    """An object that is written again and again, while nothing changes what it asks for.

    Changes of other objects by others account for a write each: a status may follow from them.
    """
    writes: defaultdict[ObjectId, list[RecordedRequest]] = defaultdict(list)
    for request in requests:
        if has_written(request) and request.resource not in REPEATED:
            writes[object_of(request)].append(request)
    for object_, written in writes.items():
        if len(written) <= HOT:
            continue
        parts = _between_changes(observed, written, observed.by_object.get(object_, ()))
        bursts = [found for part in parts if len(found := burst(part, HOT_WITHIN)) > HOT]
        loops = [found for found in bursts if len(found) - observed.by_others(found, object_) > HOT]
        if loops:
            busiest = max(loops, key=len)
            spent = busiest[-1].at - busiest[0].at
            note = f"{_shown(object_)}: {len(busiest)} writes in {spent:.3g} s, and no change of what it asks for"
            yield SeenHabit("hot_loops", note, busiest)


def _between_changes(
    observed: Observed, written: Requests, writes: Sequence[ObservedWrite]
) -> Iterator[list[RecordedRequest]]:
    """The requests between changes of the spec; one that makes a change begins a part."""
    # times have milliseconds: of those that are equal, the revision decides
    marks = deque(sorted((observed.time_of(write), write.revision) for write in writes if write.changes_spec))
    revisions = {write.request_id: write.revision for write in writes}
    part: list[RecordedRequest] = []
    for request in written:
        while marks and marks[0] <= (request.at, revisions.get(request.id, MAX_INT64)):
            marks.popleft()
            yield part
            part = []
        part.append(request)
    yield part


class _Turn(NamedTuple):
    """A writer that has set a field, whatever it was."""

    writer: WriteAuthor
    write: ObservedWrite


def fights(observed: Observed) -> Iterator[tuple[ClientKey, SeenHabit]]:
    """Two writers that set the same field of an object in turn; of each that is a client."""
    for object_, writes in observed.by_object.items():
        if object_.resource in REPEATED or len(writes) <= TURNS:
            continue
        found: dict[tuple[WriteAuthor, ...], tuple[list[_Turn], list[str]]] = {}
        for path, turns in _turns(observed, writes).items():
            run = _longest(turns)
            if len(run) > TURNS:
                both = tuple(sorted({turn.writer for turn in run}, key=lambda writer: (str(writer), writer)))
                found.setdefault(both, (run, []))[1].append(path)
        for both, (run, paths) in found.items():
            fields = ", ".join(paths[:SHOWN_PATHS]) + (" …" if len(paths) > SHOWN_PATHS else "")
            note = f"{_shown(object_)}: {' and '.join(map(str, both))} set {fields} in turn, {len(run)} times"
            evidence = [
                observed.by_id[turn.write.request_id] for turn in run if turn.write.request_id in observed.by_id
            ]
            for client in {writer.client for writer in both if writer.is_client}:
                yield client, SeenHabit("fights", note, evidence)


def _turns(observed: Observed, writes: Sequence[ObservedWrite]) -> dict[str, list[_Turn]]:
    """By path, who has set it one after the other. The handle of a test ends a run: what it sets is the test's wish."""
    turns: defaultdict[str, list[_Turn]] = defaultdict(list)
    for write in writes:
        request = observed.by_id.get(write.request_id)
        if request is not None and request.by_handle:
            for path in write.changed or ():
                turns.pop(path, None)
            continue
        for path in write.changed or ():
            if not turns[path] or turns[path][-1].writer != write.writer:
                turns[path].append(_Turn(write.writer, write))
    return turns


def _longest(turns: Sequence[_Turn]) -> list[_Turn]:
    """The longest part in which two writers alternate."""
    best: list[_Turn] = []
    run: list[_Turn] = []
    for turn in turns:
        if len(run) >= 2 and turn.writer != run[-2].writer:
            run = run[-1:]
        run.append(turn)
        if len(run) > len(best):
            best = run.copy()
    return best


def lost_updates(observed: Observed, requests: Requests) -> Iterator[SeenHabit]:
    """A PUT without a resourceVersion, of a field that another writer has set since this client last read the object.

    A client with a watch of the resource may have seen that, so nothing is said about it.
    """
    read: dict[ObjectId, RecordedRequest] = {}
    watched = {request.resource for request in requests if request.verb == "watch"}
    for request in requests:
        object_ = object_of(request)
        if request.verb == "get" and 0 < request.code < ERRORS:
            read[object_] = request
        if not has_written(request) or request.resource in watched:
            continue
        if request.is_unconditional and request.verb == "update" and (before := read.get(object_)) is not None:
            yield from _overwritten(observed, object_, before, request)
        read[object_] = request  # its answer has the object


def _overwritten(
    observed: Observed, object_: ObjectId, before: RecordedRequest, request: RecordedRequest
) -> Iterator[SeenHabit]:
    writes, place = observed.by_object.get(object_, ()), observed.place_of.get(request.id)
    if place is None or place >= len(writes) or writes[place].request_id != request.id:
        return
    others: dict[str, ObservedWrite] = {}
    for n in range(place - 1, -1, -1):
        write = writes[n]
        if not _is_after(observed, write, before):
            break  # what was read has it, and all before it
        if not (write.writer.is_client and write.writer.client == client_of(request)):
            others |= {path: write for path in write.changed or () if path not in others}
    lost = [path for path in writes[place].changed or () if path in others]
    if lost:
        other = others[lost[0]]
        evidence = [observed.by_id[id_] for id_ in (before.id, other.request_id) if id_ in observed.by_id]
        note = f"{_shown(object_)}: {', '.join(lost[:SHOWN_PATHS])} of {other.writer} was overwritten"
        yield SeenHabit("lost_updates", note, [*evidence, request])


def _is_after(observed: Observed, write: ObservedWrite, read: RecordedRequest) -> bool:
    """Whether something was written after it was read. Times have milliseconds: of those that are equal, arrival decides."""
    request = observed.by_id.get(write.request_id)
    is_later = request is None or request.number > read.number
    return is_later and observed.time_of(write) >= read.at + read.seconds


def _shown(object_: ObjectId) -> str:
    return f"{object_.resource} {'/'.join(part for part in object_[1:] if part)}"


HABITS_OF_WRITES: Final = (no_op_writes, hot_loops, lost_updates)
"""Those of one client; `fights` are of two."""
