"""The server of one run: a handle of its own, which knows what was written, by whom, and what they had been shown."""

from __future__ import annotations

import contextlib
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from noxu.api.errors import ApiError
from noxu.clock import AdjustableClock
from noxu.config import ServiceName
from noxu.control.fault_triggers import WRITER
from noxu.control.idle import until_idle
from noxu.control.manners_calls import report_of
from noxu.control.program_work import WorkOfPrograms
from noxu.control.recorded_writes import RecordedWrite
from noxu.control.write_log import Searching, decoded, described, events_between, why
from noxu.exploration import elections
from noxu.exploration.moves import Moves
from noxu.exploration.recording import CONTROLLER, FAULT, WORKLOAD, ObjectPlace, RecordedChange, Shown
from noxu.registry import kind_names
from noxu.registry.access import User
from noxu.registry.authors import UNKNOWN
from noxu.testing.handle import Noxu
from noxu.values import Object
from noxu.workloads.volume_matching import PROVISIONER
from noxu.workloads.volumes.provisioner import SIMULATED
from noxu_storage.types import EVERYTHING, Event, Revision

SKIPPED: Final = ("events", "events.events.k8s.io")
"""What is not recorded, with the locks of elections: it says nothing about what a controller has reached."""
MAX_REQUESTS: Final = 50_000
MAX_SHOWN: Final = 100
"""Causes of a write: what a view of the past has shown is the oldest of them."""
LOOKS_FOR: Final = 0.1  # seconds
NAP: Final = 3.0  # seconds; shorter ones are no pause before another attempt, but those of leases and of runtimes


CLAIMS: Final = "persistentvolumeclaims"
_WAITS_FOR_A_POD: Final = "WaitForFirstConsumer"
"""The reason of an event about a claim: it is bound when a pod has it."""
_NO_VOLUME: Final = (
    f"PersistentVolumeClaim {{}} waits for the provisioner {{!r}}: volumes are made by {SIMULATED!r} here"
)


class ExploredServer(Noxu):
    """A server whose controllers are explored."""

    @property
    def revision(self) -> Revision:
        """The newest one."""
        return self._server.plane.store.revision

    def interrupt(self) -> None:
        """End the server from another thread: what waits for it in its own raises an exception."""
        self._runner.stop()

    def __init__(self, *, services: Sequence[ServiceName] = (), address: str = "", **arguments: Any) -> None:
        """`arguments` are those of `Noxu`. Webhooks of `services` are at the address, HOST:PORT."""
        self._webhook_services = tuple((service, address) for service in services)
        self._decoded = cache(decoded)  # what is there before a write is what was there after the last one
        super().__init__(**arguments)

    def await_silence(self, quiet: float, within: float) -> None:
        """Return when the run is idle. Raises ApiError 504 after `within` seconds.

        It has no other clients than the programs and the thread that asks. So where it is known that all of them sleep for so long,
        the quiet time is not waited for.
        """
        self._call(self._quiet(quiet, within))

    def is_silent_until(self, moment: float) -> bool:
        """Whether it is known that nothing happens before a moment of the monotonic clock. It waits for a few looks only."""
        seconds = moment - time.monotonic()
        with contextlib.suppress(ApiError):
            until = self._call(self._quiet(0.0 if seconds < 0 else min(seconds, LOOKS_FOR), LOOKS_FOR))
            return until >= moment
        return False

    def asleep_for(self, most: float, least: float = NAP) -> float:
        """In how many seconds at most the first program wakes by itself, if that is known and in `least` to `most` seconds; else 0."""
        with contextlib.suppress(ApiError):
            self._call(self._quiet(LOOKS_FOR, 2 * LOOKS_FOR))
            seconds = self._server.control.part(WorkOfPrograms).sleep.latest() - time.monotonic()
            return seconds if least <= seconds <= most else 0.0
        return 0.0

    async def _quiet(self, quiet: float, within: float) -> float:
        """Until when nothing happens, at least; -inf: that is not known."""
        server = self._server
        activity, controllers = server.interventions.activity(), server.plane.all_controllers
        programs = server.control.part(WorkOfPrograms)
        answer = await until_idle(
            activity, controllers, quiet=quiet, within=within, programs=programs, next_own=self._next_own
        )
        return time.monotonic() + float(answer.get("until", -math.inf))

    def _next_own(self) -> float:
        """In how many seconds the server itself does something, at the earliest."""
        server = self._server
        due = [at for controller in server.plane.all_controllers for at in controller.queue.due().values()]
        if not isinstance(server.clock, AdjustableClock):
            return 0.0  # what sleeps there is not known
        clock = server.clock.state
        if clock.due is not None and clock.speed:
            due.append((clock.due - clock.now).total_seconds() / clock.speed)
        return min(due, default=math.inf)

    def token(self, name: str) -> str:
        """A new token of an administrator."""

        async def issue() -> str:
            return self._server.plane.static_tokens.issue(User(name, "", ("system:masters",)))

        return self._call(issue())

    def unknown(self, name: str) -> str:
        """Why there is no resource of a name; "" if there is one."""

        async def look() -> str:
            try:
                kind_names.find(self._server.plane.served_resources.current, name)
            except LookupError as error:
                return str(error)
            return ""

        return self._call(look())

    def habits(self) -> list[tuple[str, int, str]]:
        """The bad habits of the controller: each one's name, how often it was seen beyond what is tolerated, and the first note."""
        value = self._call(report_of(self._server))
        found: dict[str, tuple[str, int, str]] = {}
        for client in value["clients"]:
            for habit in client["habits"] if client["user"].startswith(CONTROLLER) else ():
                name, number = habit["habit"], habit["count"] - habit["tolerated"]
                known = found.get(name, ("", 0, ""))
                if number > 0:
                    found[name] = name, known[1] + number, known[2] or habit["seen"][0]["note"]
        return [found[name] for name in sorted(found)]

    def warnings(self) -> list[str]:
        """What events warn of, the newest last: `FailedCreate StatefulSet db: serviceaccount "db" not found`.

        And claims without a volume that wait for a pod, or for another provisioner than the simulated one: nothing else would say so.
        """
        return self._call(self._warnings())

    async def _warnings(self) -> list[str]:
        found: dict[str, Revision] = {}
        items = (await self._server.plane.store.list(EVERYTHING)).items
        there = [(described(item.key)["resource"], self._decoded(item.value), item.revision) for item in items]
        pending = {
            value["metadata"]["uid"] for resource, value, _ in there if resource == CLAIMS and _is_pending(value)
        }
        for resource, value, revision in there:
            if resource == CLAIMS and (provisioner := _awaited_provisioner(value)):
                found[_NO_VOLUME.format(value["metadata"]["name"], provisioner)] = revision
            if resource not in SKIPPED:
                continue
            about = value.get("involvedObject") or value.get("regarding") or {}
            if value.get("type") == "Warning" or (
                value.get("reason") == _WAITS_FOR_A_POD and about.get("uid") in pending
            ):
                said = value.get("message") or value.get("note") or ""
                found[f"{value.get('reason')} {about.get('kind')} {about.get('name')}: {said}"] = revision
        return sorted(found, key=lambda text: found[text])

    def moves(self, moves: Sequence[Object], user: str, restart: Callable[[], None]) -> Moves:
        """The moves of a plan, which are made from now on."""

        async def begin() -> Moves:
            made = Moves(self._server.control, moves, user, restart)
            made.begin()
            return made

        return self._call(begin())

    def begin_step(self, moves: Moves, number: int) -> None:
        """Make the moves that wait for a step of the workload."""

        async def begin() -> None:
            moves.begin_step(number)

        self._call(begin())

    def end_views(self, moves: Moves) -> bool:
        """Show the present. Returns whether there was a view of the past."""

        async def end() -> bool:
            return moves.end_views()

        return self._call(end())

    def changes(self, after: Revision, steps: Sequence[Revision]) -> list[RecordedChange]:
        """The writes after a revision, in order. `steps` are the revisions at which the steps of the workload began."""
        return self._call(self._changes(after, steps))

    async def _changes(self, after: Revision, steps: Sequence[Revision]) -> list[RecordedChange]:
        server, changes = self._server, list[RecordedChange]()
        store, history = server.plane.store, server.history
        assert history is not None  # an explored server keeps one
        searching, until_then = Searching(), dict[str, tuple[Shown, ...]]()
        async for event in events_between(store, EVERYTHING, after, store.revision):
            named = described(event.key)
            place = ObjectPlace(named["resource"], named["namespace"], named["name"])
            write = await history.of(event.revision)
            author = _author(write)
            shown: tuple[Shown, ...] = ()
            if write is not None and author.startswith(CONTROLLER):
                causes = map(_shown, await why(store, history, write, searching, MAX_SHOWN))
                shown = (*causes, *until_then.pop(author, ()))
            old, new = self._states(event)
            if _is_skipped(place, new or old or {}):
                until_then[author] = shown  # that it has said so is no reason for its next write
                continue
            recorded, step = UNKNOWN if write is None else write.author, bisect_right(steps, event.revision - 1)
            change = RecordedChange(
                event.revision, recorded.verb, recorded.subresource, place, author, old, new, shown, step
            )
            changes.append(change)
        return changes

    def _states(self, event: Event) -> tuple[Object | None, Object | None]:
        """Before and after a write. They are shared, and not changed."""
        before = b"" if event.previous is None else event.previous.value
        return (self._decoded(before) if before else None, self._decoded(event.value) if event.value else None)

    def stored(self) -> list[tuple[ObjectPlace, Object]]:
        """All objects that are recorded, in the order of their keys."""
        return self._call(self._stored())

    async def _stored(self) -> list[tuple[ObjectPlace, Object]]:
        plane, found = self._server.plane, list[tuple[ObjectPlace, Object]]()
        page = await plane.store.list(EVERYTHING)
        for item in page.items:
            named = described(item.key)
            place = ObjectPlace(named["resource"], named["namespace"], named["name"])
            value = self._decoded(item.value)
            if not _is_skipped(place, value):
                found.append((place, value))
        return found

    def release_locks(self, user: str) -> None:
        """Let the locks of elections run out that this user was the last one to write."""
        for place, patch in elections.patches(self._call(self._locks_of(user))):
            with contextlib.suppress(ApiError, LookupError):  # another one has it by now
                self.patch(place.resource, place.name, patch, namespace=place.namespace)

    async def _locks_of(self, user: str) -> list[tuple[ObjectPlace, Object]]:
        plane, history, found = self._server.plane, self._server.history, list[tuple[ObjectPlace, Object]]()
        assert history is not None
        for item in (await plane.store.list(EVERYTHING)).items:
            named = described(item.key)
            place, value = ObjectPlace(named["resource"], named["namespace"], named["name"]), self._decoded(item.value)
            if elections.is_lock(place, value):
                write = await history.of(item.revision)
                if write is not None and write.author.user == user:
                    found.append((place, value))
        return found


def _is_skipped(place: ObjectPlace, value: Object) -> bool:
    return place.resource in SKIPPED or elections.is_lock(place, value)


def _author(write: RecordedWrite | None) -> str:
    author = UNKNOWN if write is None else write.author
    if author.controller:
        return author.controller
    if author.user == WRITER.name:
        return FAULT
    return author.user if author.user.startswith(CONTROLLER) else WORKLOAD


def _shown(cause: Object) -> Shown:
    place = ObjectPlace(cause.get("resource", ""), cause.get("namespace", ""), cause.get("name", ""))
    return Shown(cause["how"], cause.get("revision", 0), cause.get("event", ""), place)


def _awaited_provisioner(claim: Object) -> str:
    """The one that is to make a volume for a claim, and is not there; "" if none is."""
    asked = str(((claim.get("metadata") or {}).get("annotations") or {}).get(PROVISIONER, ""))
    return asked if asked != SIMULATED and _is_pending(claim) else ""


def _is_pending(claim: Object) -> bool:
    return (claim.get("status") or {}).get("phase") == "Pending"
