"""R4 and R5: flipped bits and corrupt files. Wrong data is never served; corrupt values are named and can be replaced.

NOXU_FLIPS is the number of flipped bits in values, NOXU_MUTATIONS that of corrupt files of each kind.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from noxu_storage.check import check
from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import EVERYTHING, Corrupt, Event, Key, KeyValue, OpenError, Page, Prefix, StoreError

pytestmark = pytest.mark.slow(every=10)

FLIPS = int(os.environ.get("NOXU_FLIPS", "60"))
SEEDS = 4
MUTATIONS = int(os.environ.get("NOXU_MUTATIONS", "20"))
NUMBER = 40


def key(number: int) -> Key:
    return Key("g/things", "p/", f"n{number:03}")


def value(number: int, version: int = 1) -> bytes:
    """A text that occurs once in the file. Every fifth spans several pages."""
    return (b"<%d-%d>" % (number, version)) * (3000 if number % 5 == 0 else 30)


async def _write(file: Path, *, close: bool) -> None:
    """Write every object twice and delete two. Unless `close`, leave the file as a killed server does."""
    store = await SqliteStore.open(file if close else file.with_name("running.db"), "normal")
    for number in range(NUMBER):
        await store.put(key(number), value(number, 0), expected=0)
    for number in range(NUMBER):
        await store.put(key(number), value(number), expected=number + 2)
    await store.delete(key(0), expected=NUMBER + 2)
    await store.delete(key(1), expected=NUMBER + 3)
    if not close:
        shutil.copy(file.with_name("running.db"), file)
        shutil.copy(file.with_name("running.db-wal"), f"{file}-wal")
    await store.close()


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("pristine") / "noxu.db"
    asyncio.run(_write(file, close=True))
    return file


@pytest.fixture
def file(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(pristine, tmp_path / "noxu.db"))


def flip(file: Path, offset: int, bit: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset)
        [byte] = opened.read(1)
        opened.seek(offset)
        opened.write(bytes([byte ^ 1 << bit]))


def within(file: Path, number: int, random: Random) -> int:
    """The offset of some byte of a value."""
    pattern = b"<%d-1>" % number
    places = [found.start() for found in re.finditer(pattern, file.read_bytes())]
    return random.choice(places) + random.randrange(len(pattern))


def revision(number: int) -> int:
    return NUMBER + 2 + number


# Flipped bits in values.


@pytest.mark.timeout(300 + FLIPS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_flipped_bit_of_a_value_is_detected_and_affects_only_that_object(
    file: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    random = Random(seed)
    original = file.read_bytes()
    record_property("flipped bits", FLIPS // SEEDS)
    for _ in range(FLIPS // SEEDS):
        number = random.randrange(2, NUMBER)
        flip(file, within(file, number, random), random.randrange(8))
        asyncio.run(_only_this_one(file, number))
        assert [problem.revision for problem in check(file).problems] == [revision(number)]
        file.write_bytes(original)


async def _only_this_one(file: Path, number: int) -> None:
    store = await SqliteStore.open(file)
    try:
        with pytest.raises(
            Corrupt, match=f"corrupt: g/things p/ {key(number).name} at revision {revision(number)}$"
        ) as corrupt:
            await store.get(key(number))
        assert corrupt.value.keys == {key(number): revision(number)}
        with pytest.raises(Corrupt, match=key(number).name) as corrupt:
            await store.list(EVERYTHING)
        assert corrupt.value.keys == {key(number): revision(number)}
        sound = [KeyValue(key(n), value(n), revision(n)) for n in range(2, NUMBER) if n != number]
        assert corrupt.value.page == Page(sound, store.revision, 0)
        for state in (sound[0], sound[-1]):
            assert await store.get(state.key) == state
    finally:
        await store.close()


async def test_a_page_of_a_list_names_its_corrupt_keys(file: Path) -> None:
    for number in (4, 5, 9):
        flip(file, within(file, number, Random(1)), 3)
    store = await SqliteStore.open(file)
    with pytest.raises(Corrupt) as corrupt:
        await store.list(Prefix("g/things"), limit=5)  # 2 3 4 5 6
    assert list(corrupt.value.keys) == [key(4), key(5)]
    page = corrupt.value.page
    assert page is not None
    assert ([item.key for item in page.items], page.remaining) == ([key(2), key(3), key(6)], NUMBER - 7)
    with pytest.raises(Corrupt) as corrupt:
        await store.list(Prefix("g/things"), limit=3, after=key(6))
    assert list(corrupt.value.keys) == [key(9)]
    assert len((await store.list(Prefix("g/things"), after=key(9))).items) == NUMBER - 10
    assert await store.count(EVERYTHING) == NUMBER - 2
    await store.close()


async def test_a_message_names_a_limited_number_of_corrupt_keys(file: Path) -> None:
    for number in range(2, 25):
        flip(file, within(file, number, Random(1)), 3)
    store = await SqliteStore.open(file)
    with pytest.raises(Corrupt, match=f"g/things p/ n011 at revision {revision(11)} and 13 more$") as corrupt:
        await store.list(EVERYTHING)
    assert len(corrupt.value.keys) == 23
    await store.close()


@pytest.mark.parametrize("how", ["put", "delete"])
async def test_a_corrupt_value_can_be_replaced_and_deleted(file: Path, how: str) -> None:
    flip(file, within(file, 7, Random(2)), 0)
    store = await SqliteStore.open(file)
    watch = store.watch(after=store.revision)
    with pytest.raises(Corrupt) as corrupt:
        await store.put(key(7), b"new", expected=0)  # the state that it conflicts with is unreadable
    expected = corrupt.value.keys[key(7)]
    if how == "put":
        new = await store.put(key(7), b"new", expected=expected)
        assert await store.get(key(7)) == KeyValue(key(7), b"new", new)
    else:
        new = await store.delete(key(7), expected=expected)
        assert await store.get(key(7)) is None
    [event] = (await anext(watch)).events
    assert event == Event(key(7), new, b"new" if how == "put" else None, KeyValue(key(7), b"", expected))
    assert len((await store.list(EVERYTHING)).items) == NUMBER - 2 - (how == "delete")
    await store.compact(store.revision)
    await store.close()
    assert check(file).problems == []


async def test_a_watch_does_not_skip_a_corrupt_event(file: Path) -> None:
    flip(file, within(file, 20, Random(3)), 6)
    store = await SqliteStore.open(file)
    with pytest.raises(Corrupt, match=f"the event at revision {revision(20)} is corrupt") as corrupt:
        await anext(store.watch(after=1))
    assert corrupt.value.keys == {key(20): revision(20)}
    events = (await anext(store.watch(after=revision(20)))).events
    assert [event.revision for event in events] == list(range(revision(20) + 1, store.revision + 1))
    await store.close()


# Random corruption.


async def _use(file: Path, written: set[bytes]) -> str:
    """Use a file with any corruption: only StoreErrors may be raised, and only values that were written be returned."""
    try:
        store = await SqliteStore.open(file, "normal")
    except OpenError as error:
        if "cannot be written" in str(error):
            return "read only"  # one byte of the header says so
        return "refused" if str(file) in str(error) else "refused without a reason"
    outcome = "used"
    try:
        for call in (
            store.list(EVERYTHING), store.list(Prefix("g/things"), revision=store.revision // 2, limit=7),
            store.count(EVERYTHING), store.get(key(10)), store.get(key(0)), _events(store),
            store.put(key(11), value(11), expected=revision(11)), store.put(Key("new", "", ""), value(1), expected=0),
            store.compact(store.revision), store.status(),
        ):  # fmt: skip
            [result] = await asyncio.gather(call, return_exceptions=True)
            if isinstance(result, BaseException):
                if not isinstance(result, StoreError):
                    raise result
                outcome = "corrupt"
                result = result.page if isinstance(result, Corrupt) else None
            if isinstance(result, Page):
                assert {item.value for item in result.items} <= written
            elif isinstance(result, KeyValue):
                assert result.value in written
    finally:
        await store.close()
    return outcome


async def _events(store: SqliteStore) -> Page:
    """The values of all events, as if they were a list."""
    values: list[KeyValue] = []
    reached = max(store.compacted, 1)
    watch = store.watch(after=reached)
    while reached < store.revision:
        batch = await anext(watch)
        reached = batch.revision
        values += [
            KeyValue(event.key, event.value, event.revision) for event in batch.events if event.value is not None
        ]
        values += [event.previous for event in batch.events if event.previous is not None and event.previous.value]
    return Page(values, reached, 0)


def _checked(file: Path) -> bool:
    try:
        return not check(file).problems
    except OpenError:
        return False


def bits(data: bytearray, random: Random) -> None:
    for _ in range(random.choice([1, 1, 1, 10])):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def header_bits(data: bytearray, random: Random) -> None:
    data[random.randrange(100)] ^= 1 << random.randrange(8)


def index_bits(data: bytearray, random: Random) -> None:
    """Names are in the rows and in the index."""
    places = [found.start() for found in re.finditer(b"g/things", data)]
    data[random.choice(places) + random.randrange(-6, 20)] ^= 1 << random.randrange(8)


def garbage(data: bytearray, random: Random) -> None:
    start, size = random.randrange(len(data)), random.choice([1, 16, 512, 8192])
    data[start : start + size] = random.randbytes(len(data[start : start + size]))


def zeros(data: bytearray, random: Random) -> None:
    start = random.randrange(len(data)) & -512
    data[start : start + 4096] = bytes(len(data[start : start + 4096]))


def cut(data: bytearray, random: Random) -> None:
    del data[random.randrange(len(data)) :]


def swapped(data: bytearray, random: Random) -> None:
    first, second = (random.randrange(len(data) // 8192) * 8192 for _ in range(2))
    data[first : first + 8192], data[second : second + 8192] = data[second : second + 8192], data[first : first + 8192]


@pytest.mark.timeout(300 + MUTATIONS)
@pytest.mark.parametrize("corrupt_file", [bits, header_bits, index_bits, garbage, zeros, cut, swapped])
def test_a_corrupt_file_is_refused_or_its_corrupt_values_are_detected(
    file: Path, corrupt_file: Callable[[bytearray, Random], None], record_property: Callable[[str, object], None]
) -> None:
    random = Random(corrupt_file.__name__)
    written = {value(number, version) for number in range(NUMBER) for version in (0, 1)}
    original = file.read_bytes()
    outcomes = set()
    record_property("corrupt files", MUTATIONS)
    for _ in range(MUTATIONS):
        data = bytearray(original)
        corrupt_file(data, random)
        file.write_bytes(data)
        sound = _checked(file)
        outcome = asyncio.run(_use(file, written))
        outcomes.add(outcome)
        assert outcome in ("used", "read only") or not sound, "check does not find what a read finds"
        for path in file.parent.iterdir():
            path.unlink()
    assert outcomes & {"refused", "corrupt"}
    assert outcomes <= {"refused", "read only", "corrupt", "used"}


@pytest.mark.timeout(300 + MUTATIONS)
@pytest.mark.parametrize("corrupt_file", [bits, garbage, zeros, cut])
def test_from_a_corrupt_wal_a_prefix_of_the_writes_is_recovered(
    tmp_path: Path, corrupt_file: Callable[[bytearray, Random], None], record_property: Callable[[str, object], None]
) -> None:
    file, wal = tmp_path / "noxu.db", tmp_path / "noxu.db-wal"
    asyncio.run(_write(file, close=False))
    random = Random(corrupt_file.__name__)
    originals = file.read_bytes(), wal.read_bytes()
    revisions = set()
    record_property("corrupt files", MUTATIONS)
    for _ in range(MUTATIONS):
        data = bytearray(originals[1])
        corrupt_file(data, random)
        file.write_bytes(originals[0])
        wal.write_bytes(data)
        revisions.add(asyncio.run(_prefix(file)))
        assert file.stat().st_size == 0 or check(file).problems == []
    assert len(revisions) > 3


async def _prefix(file: Path) -> int:
    store = await SqliteStore.open(file, "normal")
    newest = store.revision
    state = {item.key: item for item in (await store.list(EVERYTHING)).items}
    assert len((await _events(store)).items) >= newest - 3
    for number in range(NUMBER):
        first, second, gone = number + 2, revision(number), revision(NUMBER + number) if number < 2 else newest + 1
        expected = None
        if first <= newest < second:
            expected = KeyValue(key(number), value(number, 0), first)
        elif second <= newest < gone:
            expected = KeyValue(key(number), value(number), second)
        assert state.get(key(number)) == expected
    await store.close()
    return newest
