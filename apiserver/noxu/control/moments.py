"""The moments that people name: a revision, a time, how long ago, a snapshot.

    1042                           a revision: the state that it left
    2026-03-01T12:00:00Z           the newest revision that was written at or before that time (RFC 3339)
    -5m, -1h30m, 5m                likewise, so long ago (a duration of Go; the sign may be left out)
    now                            the newest revision
    before-the-upgrade             the revision of a snapshot

The past goes back to the revision to which the store is compacted: that one can still be read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Protocol

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.clock import Clock
from noxu.control.arguments import duration
from noxu.expressions import expression
from noxu.features import meant
from noxu.go.text import quote
from noxu.go.time import MICRO, format_time, unix_nanos
from noxu_storage import pins
from noxu_storage.store import Store
from noxu_storage.types import FIRST, Revision

MAX_TEXT: Final = 256
"""Characters of a moment."""
NOW: Final = "now"
KEEP_MORE: Final = "`noxu serve --history` keeps more of the past"
_REVISION: Final = expression(r"[0-9]{1,19}")
_TIME: Final = expression(r"[0-9]{4}-[0-9]{2}-.*")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NAMES: Final = 20  # of snapshots in a message


class Moment(NamedTuple):
    """A revision, and its time, None if that is not known."""

    revision: Revision
    time: datetime | None = None


class TimedWrite(Protocol):
    """What is known of a revision."""

    @property
    def time(self) -> datetime: ...


class Times(Protocol):
    """When revisions were written."""

    async def revision_at(self, seconds: float, /) -> Revision:
        """The newest revision at a time (seconds since 1970); 0 if that is not known."""
        ...

    async def of(self, revision: Revision, /) -> TimedWrite | None:
        """A write, None if nothing is known of it."""
        ...


NamedRevisions = Callable[[], Awaitable[dict[str, Revision]]]
"""Returns the revisions of all snapshots by their names."""


class Moments:
    """Finds the moments of one server. All methods raise ApiError with a sentence that says what to do."""

    def __init__(
        self, store: Store, clock: Clock, times: Times | None = None, snapshots: NamedRevisions | None = None
    ) -> None:
        """`snapshots` None: those that the store has pinned."""
        self._store = store
        self._clock = clock
        self._times = times
        self._snapshots = snapshots or self._pinned

    async def find(self, text: str) -> Moment:
        """The moment that a text names."""
        if len(text) > MAX_TEXT:
            raise errors.bad_request(f"a moment has at most {MAX_TEXT} characters: {FORMS}")
        if _REVISION.fullmatch(text):
            return await self.at(int(text))
        if text == NOW:
            return Moment(self._store.revision, self._clock.now())
        if text.startswith("-") or (text[:1].isdecimal() and not _TIME.fullmatch(text)):
            return await self._at_time(self._clock.now() - _ago(text))
        if _TIME.fullmatch(text):
            return await self._at_time(_time(text))
        snapshots = await self._snapshots()
        if text not in snapshots:
            raise _unknown(text, sorted(snapshots))
        return await self.at(snapshots[text])

    async def _pinned(self) -> dict[str, Revision]:
        return {pin.key.name: pin.revision for pin in await pins.pinned(self._store)}

    async def at(self, revision: Revision) -> Moment:
        """The moment of a revision."""
        if revision > self._store.revision:  # another server of the same etcd may have answered with it
            await self._store.catch_up()
        newest = self._store.revision
        if revision > newest:
            raise errors.bad_request(f"revision {revision} does not exist yet: the newest is {newest}")
        if revision < FIRST:
            raise errors.bad_request(f"there is no revision {revision}: the first one is {FIRST}")
        self.require_kept(revision)
        write = await self._times.of(revision) if self._times is not None else None
        return Moment(revision, write.time if write is not None else None)

    def require_kept(self, revision: Revision) -> None:
        """Raises ApiError Expired if the state of a revision is gone."""
        first = self._store.compacted
        if revision < first:
            raise errors.expired(f"revision {revision} is gone: the past begins at revision {first}; {KEEP_MORE}")

    async def _at_time(self, time: datetime) -> Moment:
        now = self._clock.now()
        shown = format_time(time, MICRO)
        if time > now:
            raise errors.bad_request(f"{shown} is in the future: it is {format_time(now, MICRO)}")
        if self._times is None:
            raise errors.bad_request(
                f"when revisions were written is not known: name a revision instead of {shown}, or {KEEP_TIMES}"
            )
        revision = await self._times.revision_at(time.timestamp())
        if not revision:
            raise errors.expired(
                f"which revision was the newest at {shown} is not known: that is too long ago; {KEEP_MORE}"
            )
        self.require_kept(revision)
        return Moment(revision, time)


KEEP_TIMES: Final = "start the server with `noxu serve --history 30m`"
FORMS: Final = "a revision (1042), a time (2026-03-01T12:00:00Z), how long ago (-5m), or the name of a snapshot"


def _ago(text: str) -> timedelta:
    try:
        return timedelta(seconds=duration(text.removeprefix("-")))
    except (ValueError, OverflowError):
        raise errors.bad_request(f"{quote(text)} is no duration such as -5m or -1h30m") from None


def _time(text: str) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=unix_nanos(text) // 1000)
    except (ValueError, OverflowError):
        raise errors.bad_request(f"{quote(text)} is no time of RFC 3339 such as 2026-03-01T12:00:00Z") from None


def _unknown(text: str, snapshots: list[str]) -> ApiError:
    there = f"there are the snapshots {', '.join(snapshots[:_NAMES])}" if snapshots else "there are no snapshots"
    return ApiError(
        404, f"there is no moment {quote(text)}: it is {FORMS}; {there}{meant(text, snapshots)}", "NotFound", {}
    )
