"""Which revision a text names, and what is said about a text that names none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import pytest

from noxu.api.errors import ApiError
from noxu.control.moments import Moment, Moments
from noxu_storage import pins
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Key, Revision
from tests.clocks import START, StoppedClock


class Written(NamedTuple):
    time: datetime


class Minutes:
    """Revision N was written N minutes before the newest one, which is written at START; from 4 on it is known when."""

    def __init__(self, newest: Revision) -> None:
        self.times = {revision: START - timedelta(minutes=newest - revision) for revision in range(4, newest + 1)}

    async def revision_at(self, seconds: float, /) -> Revision:
        return max((revision for revision, time in self.times.items() if time.timestamp() <= seconds), default=0)

    async def of(self, revision: Revision, /) -> Written | None:
        return Written(self.times[revision]) if revision in self.times else None


NEWEST: Final = 10


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore()
    for number in range(NEWEST - 1):
        await store.put(Key("things", "", str(number)), b"{}", expected=0)
    return store


@pytest.fixture
def moments(store: MemoryStore) -> Moments:
    return Moments(store, StoppedClock(), Minutes(NEWEST), snapshots)


async def snapshots() -> dict[str, int]:
    return {"monday": 5, "tuesday": 7}


async def test_snapshots_are_those_of_the_store() -> None:
    store = MemoryStore()
    pinned = await store.put(Key(pins.COLLECTION, "", "base"), b"{}", expected=0)
    await store.put(Key("/things", "", "a"), b"{}", expected=0)
    assert (await Moments(store, StoppedClock()).find("base")).revision == pinned


def ago(minutes: int) -> datetime:
    return START - timedelta(minutes=minutes)


MOMENTS: Final = [
    ("10", Moment(10, START)),
    ("7", Moment(7, ago(3))),
    ("2", Moment(2, None)),
    ("-0s", Moment(10, START)),
    ("now", Moment(10, START)),
    ("-1m", Moment(9, ago(1))),
    ("1m", Moment(9, ago(1))),
    ("-1m30s", Moment(8, START - timedelta(seconds=90))),
    ("2026-01-02T03:00:05.678901Z", Moment(6, ago(4))),
    ("2026-01-02T04:00:05.678901+01:00", Moment(6, ago(4))),
    ("2026-01-02T03:00:05Z", Moment(5, datetime(2026, 1, 2, 3, 0, 5, tzinfo=UTC))),
    ("tuesday", Moment(7, ago(3))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "moment"), MOMENTS, ids=[row[0] for row in MOMENTS])
async def test_the_revision_and_the_time_of_a_moment(moments: Moments, text: str, moment: Moment) -> None:
    assert await moments.find(text) == moment


FORMS: Final = "it is a revision (1042), a time (2026-03-01T12:00:00Z), how long ago (-5m), or the name of a snapshot; "
NONE: Final = [
    ("11", 400, "revision 11 does not exist yet: the newest is 10"),
    ("0", 400, "there is no revision 0: the first one is 1"),
    ("99999999999999999999", 400, '"99999999999999999999" is no duration such as -5m or -1h30m'),
    ("tuesdy", 404, f'there is no moment "tuesdy": {FORMS}there are the snapshots monday, tuesday; did you mean tuesday?'),
    ("-5", 400, '"-5" is no duration such as -5m or -1h30m'),
    ("--5m", 400, "2026-01-02T03:09:05.678901Z is in the future: it is 2026-01-02T03:04:05.678901Z"),
    ("2026-01-02T03:04:06Z", 400, "2026-01-02T03:04:06.000000Z is in the future: it is 2026-01-02T03:04:05.678901Z"),
    ("2026-01-02", 400, '"2026-01-02" is no time of RFC 3339 such as 2026-03-01T12:00:00Z'),
    ("0000-01-01T00:00:00Z", 400, '"0000-01-01T00:00:00Z" is no time of RFC 3339 such as 2026-03-01T12:00:00Z'),
    ("-1h", 410, "which revision was the newest at 2026-01-02T02:04:05.678901Z is not known: that is too long ago; "
     "`noxu serve --history` keeps more of the past"),
    ("-999999h", 410, "which revision was the newest at 1911-12-05T12:04:05.678901Z is not known: that is too long ago; "
     "`noxu serve --history` keeps more of the past"),
    ("x" * 257, 400, f"a moment has at most 256 characters: {FORMS.removeprefix('it is ').removesuffix('; ')}"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "message"), NONE, ids=[row[0][:30] for row in NONE])
async def test_what_is_no_moment(moments: Moments, text: str, code: int, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        await moments.find(text)
    assert (refused.value.code, refused.value.message) == (code, message)


async def test_what_is_compacted_is_gone(store: MemoryStore, moments: Moments) -> None:
    await store.compact(8)
    assert await moments.find("8") == Moment(8, ago(2))
    for text in ("7", "-3m", "monday"):
        with pytest.raises(
            ApiError, match="is gone: the past begins at revision 8; `noxu serve --history` keeps more"
        ) as gone:
            await moments.find(text)
        assert gone.value.reason == "Expired"


async def test_without_times_a_revision_has_to_be_named(store: MemoryStore) -> None:
    moments = Moments(store, StoppedClock())
    assert await moments.find("3") == Moment(3)
    with pytest.raises(ApiError, match="when revisions were written is not known: name a revision instead of 2026"):
        await moments.find("-1m")
    with pytest.raises(ApiError, match="there are no snapshots"):
        await moments.find("monday")
