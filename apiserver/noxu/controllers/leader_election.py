"""Leader election: of several servers with the same store, one runs the controllers of kube-controller-manager.

The rules are those of client-go's tools/leaderelection, with which a kube-controller-manager takes part in the same
election: the Lease `kube-controller-manager` in `kube-system` names the holder, which renews it every `retry_period`.

- A candidate acquires the Lease when it does not exist, has no holder, or has not changed for its `leaseDurationSeconds`.
  How long it has not changed is measured on the candidate's monotonic clock since it saw the last change. The times in the
  Lease, which other machines have written, are never compared with a clock.
- Each acquisition and renewal expects the state that it has seen, so of several candidates one succeeds.
- A holder that could not renew for `renew_deadline`, or finds another holder, stops its controllers at once. That is before
  others acquire the Lease: `renew_deadline` is shorter than the duration.
- A server that stops releases the Lease when its controllers have stopped: it then has no holder.

Candidates read the Lease from their own store, which follows all changes: they notice a release when it happens, and cost
the others nothing. Writes of the Lease are subject to no admission.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from random import uniform
from typing import Any, Final, NamedTuple

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.clock import Clock, process_clock
from noxu.config import JITTER, LeaderElection
from noxu.containment import Contained
from noxu.controllers.controller import CONTROLLER_MANAGER, KUBE_CONTROLLER_MANAGER, Reconciler
from noxu.go.time import MICRO, format_time
from noxu.registry.authors import AUTHOR, of_controller
from noxu.registry.draft import Action, Body, Options, Writer, WriteRequest
from noxu.registry.reader import Reader
from noxu.registry.resource import Resource
from noxu.registry.stored_object import key_of, object_at
from noxu.values import Object, copy
from noxu_storage.types import Event, Revision, StoreError

NAMESPACE: Final = "kube-system"
NAME: Final = "kube-controller-manager"
RELEASE_WITHIN: Final = 2.0  # seconds that the end of a server waits for it
RELEASED_SECONDS: Final = 1  # the duration in a Lease without a holder

log = logging.getLogger("noxu")


class Seen(NamedTuple):
    """The Lease as a candidate sees it. `since`: when it saw this `spec` first, on its monotonic clock."""

    spec: Object
    since: float


class Election:
    """A candidate, and the controllers that it runs while it is the leader. A `LogWatcher` of the cache."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        leases: Resource,
        clock: Clock,
        identity: str,
        controllers: Sequence[Reconciler[Any]],
        periods: LeaderElection,
    ) -> None:
        """`identity` is that of this process, different from all others."""
        self.reader = reader
        self.writer = writer
        self.clock = clock
        self._pauses = process_clock(clock)  # a leader stays one while object time stands still or jumps
        self.name = NAME
        self.identity = identity
        self.controllers = controllers
        self.periods = periods
        self.is_leader = False
        """Whether the controllers run here."""
        self._leases = leases
        self._key = key_of(leases, NAMESPACE, NAME)
        self._seen: Seen | None = None
        self._changed = asyncio.Event()  # the Lease, by another server
        self._running: asyncio.Task[None] | None = None
        for controller in controllers:
            controller.stands_by = True

    # -- start and stop

    async def start(self, *, is_new: bool) -> None:
        """Take part in the election. In a new store (`is_new`) the controllers of a leader have started when this returns."""
        self.reader.cache.watchers[self] = None
        leads = await self._attempt_within(self.periods.renew_deadline)
        if leads:
            await self._begin(wait=is_new)
        self._running = asyncio.create_task(self._run(), name="leader election")

    async def stop(self) -> None:
        """Stop the controllers, and release the Lease."""
        self.reader.cache.watchers.pop(self, None)
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._end()
        with suppress(ApiError, StoreError, TimeoutError):
            async with asyncio.timeout(RELEASE_WITHIN):
                await self._release()

    async def _run(self) -> None:
        AUTHOR.set(of_controller("leader-election"))  # in the context of its own task
        while True:
            with Contained("the leader election") as contained:
                if not self.is_leader:
                    await self._acquire()
                    await self._begin(wait=False)
                await self._renew()
            await self._end()
            if contained.error is not None:
                await self._pauses.sleep(self.periods.retry_period)

    async def _begin(self, *, wait: bool) -> None:
        log.info("%s is the leader: its controllers start", self.identity)
        self.is_leader = True
        for controller in self.controllers:
            controller.stands_by = False
            if wait:
                await controller.start()
            else:
                controller.start_in_background()

    async def _end(self) -> None:
        if self.is_leader:
            self.is_leader = False
            for controller in self.controllers:
                controller.stands_by = True
            await asyncio.gather(*(controller.stop() for controller in self.controllers))
            log.info("%s is no longer the leader: its controllers have stopped", self.identity)

    # -- the loops

    async def _acquire(self) -> None:
        while not await self._attempt_within(self.periods.renew_deadline):
            await self._pause(self.periods.retry_period * (1 + uniform(0, JITTER)))  # noqa: S311 - not a secret

    async def _renew(self) -> None:
        """Return when the Lease could not be renewed in time, or belongs to another."""
        while True:
            deadline = self._pauses.monotonic() + self.periods.renew_deadline
            await self._pause(self.periods.retry_period)
            while not await self._attempt_within(deadline - self._pauses.monotonic()):
                if self._is_held_by_another() or self._pauses.monotonic() >= deadline:
                    return
                await self._pause(min(self.periods.retry_period, deadline - self._pauses.monotonic()))

    async def _pause(self, seconds: float) -> None:
        """Wait, at most until another server has changed the Lease."""
        await self._first_of(seconds, self._changed.wait())
        self._changed.clear()

    async def _attempt_within(self, seconds: float) -> bool:
        """Acquire or renew the Lease; False: that failed, or took too long. It may happen nevertheless."""
        return seconds > 0 and bool(await self._first_of(seconds, self._attempt()))

    async def _first_of(self, seconds: float, work: Coroutine[Any, Any, object]) -> object:
        """The result of a coroutine, None if it takes longer than `seconds`: then it is cancelled."""
        working, sleeping = asyncio.ensure_future(work), asyncio.ensure_future(self._pauses.sleep(seconds))
        try:
            await asyncio.wait((working, sleeping), return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            working.cancel()
            sleeping.cancel()
            await asyncio.gather(working, sleeping, return_exceptions=True)

    # -- the Lease

    def deliver(self, events: Sequence[Event], revision: Revision) -> None:
        for event in events:
            if event.key == self._key and (event.value is None or self._holder_of(event.value) != self.identity):
                self._changed.set()

    def end(self) -> None:
        """The cache was reset."""
        self.reader.cache.watchers[self] = None
        self._changed.set()

    def _holder_of(self, stored: bytes) -> object:
        spec = codec.decode_stored(stored).get("spec")
        return spec.get("holderIdentity") if isinstance(spec, dict) else None

    def _is_held_by_another(self) -> bool:
        return self._seen is not None and self._seen.spec.get("holderIdentity") != self.identity

    async def _attempt(self) -> bool:
        """Acquire or renew the Lease (tryAcquireOrRenew)."""
        try:
            stored = await self.reader.stored(self._leases, NAMESPACE, NAME)
            lease = None if stored is None else object_at(stored, self._leases)
            spec = None if lease is None else lease.get("spec") or {}
            if spec is None:
                self._seen = None
            elif self._seen is None or self._seen.spec != spec:
                self._seen = Seen(copy(spec), self._pauses.monotonic())
            now = format_time(self.clock.now(), MICRO)
            mine = {
                "acquireTime": now,
                "holderIdentity": self.identity,
                "leaseDurationSeconds": int(self.periods.lease_duration),
                "leaseTransitions": 0,
                "renewTime": now,
            }
            if spec is not None and spec.get("holderIdentity") == self.identity:
                mine |= {name: spec[name] for name in ("acquireTime", "leaseTransitions") if name in spec}
            elif spec is not None:
                if self._is_held():
                    return False
                mine["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + 1
            await self._write(lease, mine)
        except (ApiError, StoreError) as error:
            level = logging.WARNING if self.is_leader else logging.DEBUG
            log.log(level, "the Lease %s is not acquired or renewed: %s", NAME, error)
            return False
        self._seen = Seen(mine, self._pauses.monotonic())
        return True

    def _is_held(self) -> bool:
        """Whether the Lease has a holder that may still renew it."""
        if self._seen is None or not self._seen.spec.get("holderIdentity"):
            return False
        duration = self._seen.spec.get("leaseDurationSeconds") or 0
        return bool(self._pauses.monotonic() < self._seen.since + duration)

    async def _release(self) -> None:
        stored = await self.reader.stored(self._leases, NAMESPACE, NAME)
        lease = None if stored is None else object_at(stored, self._leases)
        spec = {} if lease is None else lease.get("spec") or {}
        if spec.get("holderIdentity") != self.identity:
            return
        now = format_time(self.clock.now(), MICRO)
        released = {
            "acquireTime": now,
            "holderIdentity": "",
            "leaseDurationSeconds": RELEASED_SECONDS,
            "leaseTransitions": spec.get("leaseTransitions") or 0,
            "renewTime": now,
        }
        await self._write(lease, released)

    async def _write(self, lease: Object | None, spec: Object) -> None:
        """Create the Lease, or replace the one that was read. Raises ApiError, StoreError."""
        new: Object = lease or {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
        }
        request = WriteRequest(
            Action.CREATE if lease is None else Action.REPLACE,
            self._leases,
            NAMESPACE,
            "" if lease is None else NAME,
            body=Body({**new, "spec": {**(new.get("spec") or {}), **spec}}),
            options=Options(field_manager=CONTROLLER_MANAGER),
            user=KUBE_CONTROLLER_MANAGER,
            internal=True,
        )
        await self.writer.write(request)
