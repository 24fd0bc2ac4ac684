"""What a report about manners is made of: recorded requests, and the revisions that they and others have written.

    requests   PUT widgets/a (id 1, at 10.0)   PUT widgets/a (id 2, at 10.5)   PUT widgets/a (id 3, at 11.0)
    writes     revision 7 of id 1: spec.size                                   revision 9 of id 3: status.ready

So the PUT with id 2 has changed nothing. A write has the time of its request; one that was not recorded, such as that of a
controller of the server, that of the newest recorded write before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Final, NamedTuple

from noxu.control.recorded_requests import RecordedRequest
from noxu.registry.authors import MAX_TEXT

PROXIES: Final = frozenset({"proxy", "exec", "attach", "portforward"})
"""Subresources that write no object."""
REPEATED: Final = frozenset({"leases.coordination.k8s.io", "events", "events.events.k8s.io"})
"""Resources that are written again and again by design."""
ERRORS: Final = 400
"""The first code of an error."""


class ObjectId(NamedTuple):
    """`resource` is like `widgets.example.com`."""

    resource: str
    namespace: str
    name: str


class ClientKey(NamedTuple):
    """A client is a user agent and a user."""

    agent: str
    user: str


class WriteAuthor(NamedTuple):
    """Who has written: a client and its field manager, or a controller of the server."""

    agent: str
    user: str
    manager: str
    controller: str = ""

    @property
    def is_client(self) -> bool:
        return not self.controller

    @property
    def client(self) -> ClientKey:
        return ClientKey(self.agent, self.user)

    def __str__(self) -> str:
        return self.controller or self.manager or self.agent or self.user


class ObservedWrite(NamedTuple):
    """A revision of an object. `changed` are the paths that differ from the revision before; None: that is not known.

    Of an object that was created or deleted it is None, too: it asks for something else than one of that name did before.
    """

    revision: int
    object: ObjectId
    writer: WriteAuthor
    request_id: str = ""
    changed: tuple[str, ...] | None = ()

    @property
    def changes_spec(self) -> bool:
        """Whether it has changed what the object asks for, as far as is known: not the metadata but its end, and not the status."""
        return self.changed is None or any(not path.startswith(_OF_SYSTEM) or path == _END for path in self.changed)


_OF_SYSTEM: Final = ("metadata", "status")
_END: Final = "metadata.deletionTimestamp"


def object_of(request: RecordedRequest) -> ObjectId:
    namespace = "" if request.resource == "namespaces" else request.namespace  # whose path is that of an object in it
    return ObjectId(request.resource, namespace, request.name)


def client_of(request: RecordedRequest) -> ClientKey:
    return ClientKey(request.user_agent[:MAX_TEXT], request.user)  # as authors of writes have it


def has_written(request: RecordedRequest) -> bool:
    """Whether a request was a write of an existing object that succeeded, whether or not it has changed something."""
    return (
        request.verb in ("update", "patch")
        and 0 < request.code < ERRORS
        and not request.dry_run
        and request.subresource not in PROXIES
    )


def burst(requests: Sequence[RecordedRequest], within: float) -> list[RecordedRequest]:
    """The most of these requests that arrived within so many seconds."""
    best, first = (0, 0), 0
    for last, request in enumerate(requests):
        while requests[first].at < request.at - within:
            first += 1
        best = max(best, (last + 1 - first, -first))
    return list(requests[-best[1] : -best[1] + best[0]])


class Observed:
    """All requests in the order of their arrival, and all writes in the order of their revisions.

    `knows_writes`: the writes of these requests are among them. Without that nothing is said about what they have changed.
    """

    def __init__(
        self,
        requests: Iterable[RecordedRequest],
        writes: Iterable[ObservedWrite] = (),
        *,
        knows_writes: bool = True,
    ) -> None:
        self.requests = list(requests)
        self.writes = list(writes)
        self.knows_writes = knows_writes

    @cached_property
    def by_client(self) -> dict[ClientKey, list[RecordedRequest]]:
        """The requests of each client, without those of the handle of a test, and those for `/_noxu/`."""
        found: defaultdict[ClientKey, list[RecordedRequest]] = defaultdict(list)
        for request in self.requests:
            if not request.by_handle and not request.path.startswith("/_noxu"):
                found[client_of(request)].append(request)
        return found

    @cached_property
    def by_id(self) -> dict[str, RecordedRequest]:
        return {request.id: request for request in self.requests}

    @cached_property
    def written_ids(self) -> Collection[str]:
        """The requests that have written a revision."""
        return {write.request_id for write in self.writes}

    @cached_property
    def by_object(self) -> dict[ObjectId, list[ObservedWrite]]:
        found: defaultdict[ObjectId, list[ObservedWrite]] = defaultdict(list)
        for write in self.writes:
            found[write.object].append(write)
        return found

    @cached_property
    def place_of(self) -> dict[str, int]:
        """By request, the index of its newest write among those of the object."""
        return {write.request_id: n for writes in self.by_object.values() for n, write in enumerate(writes)}

    def by_others(self, requests: Sequence[RecordedRequest], besides: ObjectId | None = None) -> int:
        """How many changes of others a client may have been shown since the request before these, up to the last of them.

        Each may be the reason for one of them. What it has never asked for does not count, nor does the object `besides`, which
        others may change because the client has.
        """
        client = client_of(requests[0])
        own, asked = self.by_client.get(client, []), self._asked_by.get(client, frozenset())
        before = (each.revision for each in reversed(own[: own.index(requests[0])]) if each.verb != "watch")
        since = bisect_right(self.writes, next(before, 0), key=attrgetter("revision"))
        until = bisect_right(self.writes, requests[-1].revision, key=attrgetter("revision"))
        return sum(
            write.object.resource in asked
            and write.object != besides
            and not (write.writer.is_client and write.writer.client == client)
            for write in self.writes[since:until]
        )

    @cached_property
    def _asked_by(self) -> Mapping[ClientKey, Collection[str]]:
        """The resources that each client reads or watches, without those that are written again and again by design."""
        return {
            client: {each.resource for each in requests if each.verb in ("get", "list", "watch")} - REPEATED
            for client, requests in self.by_client.items()
        }

    def time_of(self, write: ObservedWrite) -> float:
        """When a revision was written, in seconds since 1970; 0 for one before all that were recorded."""
        if (request := self.by_id.get(write.request_id)) is not None:
            return request.at
        revisions, times = self._known_times
        before = bisect_right(revisions, write.revision)
        return times[before - 1] if before else 0.0

    @cached_property
    def _known_times(self) -> tuple[Sequence[int], Sequence[float]]:
        known = [
            (write.revision, request.at)
            for write in self.writes
            if (request := self.by_id.get(write.request_id)) is not None
        ]
        return [revision for revision, _ in known], [at for _, at in known]
