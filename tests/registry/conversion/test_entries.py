"""Entries converted by a webhook: the reviews that are sent, and what remains if one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import pytest

from noxu.api.errors import ApiError, plain_error
from noxu.registry.conversion import converters as conversion
from noxu.registry.conversion.converters import at_storage_version, entries_at, entries_before_failure, entry_at
from noxu.registry.resource import Converted, Resource, Versions
from noxu.registry.stored_object import StoredObject, key_of, new_entry, object_at
from noxu.values import Object
from tests.registry.world import GROUP, version, widget, widgets

COLORS: Final = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}},
}


class Recorder:
    """A converter that records the names in each review. It fails for objects in `broken`, and for reviews in `refused`."""

    timeout = 30

    def __init__(self, broken: Sequence[str] = (), *, most: int = 1000) -> None:
        self.reviews: list[list[str]] = []
        self.concurrent = self.most_concurrent = 0
        self._broken = broken
        self._most = most

    async def convert(self, values: Sequence[Object], api_version: str, weight: int) -> Converted:
        names = [value["metadata"]["name"] for value in values]
        self.reviews.append(names)
        self.concurrent += 1
        self.most_concurrent = max(self.concurrent, self.most_concurrent)
        await asyncio.sleep(0)
        self.concurrent -= 1
        if found := [name for name in names if name in self._broken]:
            raise plain_error(f"cannot convert {found[0]}")
        if len(values) > self._most:
            raise plain_error("too many objects")
        return Converted(
            [{**value, "apiVersion": api_version, "spec": {**value["spec"], "color": "red"}} for value in values],
            weight,
        )


@pytest.fixture
def two() -> Versions:
    return widgets(version(), version("v2", COLORS))


def at(versions: Versions, name: str) -> Resource:
    found = versions.find(f"{GROUP}/{name}")
    assert found is not None
    return found


def stored(versions: Versions, *names: str) -> list[StoredObject]:
    """Entries that were read from the store. A name that begins with 2 is stored at v2, one with 0 at v0, others at v1."""
    found = []
    for name in names:
        number = name[0] if name[0] in "02" else "1"
        value = widget(name, api_version=f"{GROUP}/v{number}", metadata={"uid": "u", "generation": 1}, size=3)
        entry = new_entry(key_of(versions.storage, "default", name), versions.storage, value)
        found.append(StoredObject(entry.key, entry.stored, 7))
    return found


def names(entries: Sequence[StoredObject]) -> list[str]:
    return [entry.key.name for entry in entries]


async def test_without_a_webhook_entries_are_returned_unchanged(two: Versions) -> None:
    entries = stored(two, "a", "2")
    found, error = await entries_before_failure(entries, at(two, "v2"))
    assert (found == entries, error) == (True, None)
    assert await entry_at(entries[0], at(two, "v2")) is entries[0]


async def test_entries_that_have_the_version_are_not_sent(two: Versions) -> None:
    two.converter = recorder = Recorder()
    entries = stored(two, "2a", "2b")
    assert [entry is old for entry, old in zip(await entries_at(entries, at(two, "v2")), entries, strict=True)] == [
        True
    ] * 2
    assert recorder.reviews == []


async def test_a_converted_entry_is_pruned_and_keeps_its_key_and_revision(two: Versions) -> None:
    two.converter = Recorder()
    [entry] = stored(two, "a")
    found = await entry_at(entry, at(two, "v2"))
    assert (found.key, found.revision) == (entry.key, 7)
    value = object_at(found, at(two, "v2"))
    assert (value["apiVersion"], value["spec"], value["metadata"]["resourceVersion"]) == (
        f"{GROUP}/v2",
        {"color": "red"},
        "7",
    )


async def test_the_order_of_entries_of_several_versions_is_kept(two: Versions) -> None:
    two.converter = recorder = Recorder()
    found = await entries_at(stored(two, "a", "b", "2c", "d", "2e", "2f", "g"), at(two, "v2"))
    assert names(found) == ["a", "b", "2c", "d", "2e", "2f", "g"]
    assert sorted(recorder.reviews) == [["a", "b"], ["d"], ["g"]]


async def test_a_review_has_a_limited_number_of_objects(two: Versions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "MAX_OBJECTS", 2)
    two.converter = recorder = Recorder()
    await entries_at(stored(two, *"abcde"), at(two, "v2"))
    assert recorder.reviews == [["a", "b"], ["c", "d"], ["e"]]


async def test_a_review_has_a_limited_size_to_which_its_last_object_does_not_count(
    two: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = stored(two, *"abcde")
    monkeypatch.setattr(conversion, "MAX_BYTES", len(entries[0].stored))
    two.converter = recorder = Recorder()
    await entries_at(entries, at(two, "v2"))
    assert recorder.reviews == [["a", "b"], ["c", "d"], ["e"]]


async def test_a_limited_number_of_reviews_is_sent_at_a_time(two: Versions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "MAX_OBJECTS", 1)
    two.converter = recorder = Recorder()
    found = await entries_at(stored(two, *"abcdefghi"), at(two, "v2"))
    assert "".join(names(found)) == "abcdefghi"
    assert recorder.most_concurrent == conversion.CONCURRENCY


FAILURES: Final[dict[str, tuple[Recorder, list[str], str]]] = {
    "the first object": (Recorder(["a"]), [], "cannot convert a"),
    "one in the middle": (Recorder(["c"]), ["a", "b"], "cannot convert c"),
    "several": (Recorder(["d", "b"]), ["a"], "cannot convert b"),
    "reviews of several objects": (Recorder(most=1), ["a", "b", "c", "d"], ""),
}


@pytest.mark.parametrize(("recorder", "expected", "message"), FAILURES.values(), ids=FAILURES)
async def test_entries_before_the_first_that_fails_are_converted(
    two: Versions, recorder: Recorder, expected: list[str], message: str
) -> None:
    two.converter = recorder
    found, error = await entries_before_failure(stored(two, *"abcd"), at(two, "v2"))
    assert names(found) == expected
    assert (error.message if error else "") == message
    if message:
        with pytest.raises(ApiError, match=message):
            await entries_at(stored(two, *"abcd"), at(two, "v2"))


async def test_a_review_that_timed_out_is_not_repeated_for_each_object(two: Versions) -> None:
    recorder = Recorder(["a"])
    recorder.timeout = 0
    two.converter = recorder
    found, error = await entries_before_failure(stored(two, *"abcd"), at(two, "v2"))
    assert (found, recorder.reviews) == ([], [["a", "b", "c", "d"]])
    assert error is not None


@pytest.mark.parametrize("webhook", [False, True])
async def test_entries_before_one_whose_version_no_longer_exists_are_shown(two: Versions, webhook: bool) -> None:
    two.converter = Recorder() if webhook else None
    found, error = await entries_before_failure(stored(two, "a", "0b", "c"), at(two, "v2"))
    assert names(found) == ["a"]
    assert error is not None
    assert "invalid group/version: example.com/v0" in error.message


async def test_an_object_is_stored_pruned_and_without_its_resource_version(two: Versions) -> None:
    two.converter = Recorder()
    value = widget(api_version=f"{GROUP}/v2", metadata={"resourceVersion": "7", "uid": "u"}, size=3, unknown=4)
    [converted], weight = await at_storage_version(value, two.storage, 10)
    assert converted == widget(metadata={"uid": "u"}, size=3, color="red")
    assert weight == 10
    assert value["metadata"]["resourceVersion"] == "7"
