"""Changes converted by a webhook, once for all watches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from noxu.api.errors import plain_error
from noxu.registry.cache import Change
from noxu.registry.conversion import converters
from noxu.registry.conversion.converters import changes_before_failure
from noxu.registry.resource import Converted, Resource, Versions
from noxu.registry.stored_object import StoredObject, key_of, new_entry
from noxu.values import Object
from tests.registry.world import GROUP, version, widget, widgets


class Recorder:
    """A converter that records `name` and `spec.size` of what it is sent, and fails for the sizes in `broken`."""

    timeout = 30

    def __init__(self) -> None:
        self.reviews: list[list[str]] = []
        self.broken: set[int] = set()

    async def convert(self, values: Sequence[Object], api_version: str, weight: int) -> Converted:
        self.reviews.append([f"{value['metadata']['name']}{value['spec']['size']}" for value in values])
        await asyncio.sleep(0)
        for value in values:
            if value["spec"]["size"] in self.broken:
                raise plain_error(f"cannot convert {value['spec']['size']}")
        return Converted([{**value, "apiVersion": api_version} for value in values], weight)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def v2(recorder: Recorder) -> Resource:
    versions = widgets(version(), version("v2"))
    versions.converter = recorder
    found = versions.find(f"{GROUP}/v2")
    assert found is not None
    return found


def entry(versions: Versions, size: int, revision: int) -> StoredObject:
    value = widget(metadata={"uid": "u", "generation": 1}, size=size)
    found = new_entry(key_of(versions.storage, "default", "a"), versions.storage, value)
    found.revision = revision
    return found


def change(v2: Resource, before: int | None, after: int | None, revision: int = 7) -> Change:
    """A change of the size of the Widget a; None: it does not exist."""
    states = [None if size is None else entry(v2.versions, size, revision) for size in (before, after)]
    return Change(key_of(v2, "default", "a"), revision, states[1], states[0])


SENT = {
    # before, after, whether old states are needed → the objects that are sent
    "created": (None, 1, True, [["a1"]]),
    "updated": (1, 2, True, [["a2", "a1"]]),
    "updated, for a watch without selector": (1, 2, False, [["a2"]]),
    "deleted": (1, None, True, [["a1"]]),
    "deleted, for a watch without selector": (1, None, False, [["a1"]]),
}


@pytest.mark.parametrize(("before", "after", "with_before", "sent"), SENT.values(), ids=SENT)
async def test_the_states_that_a_watch_needs_are_converted(
    v2: Resource, recorder: Recorder, before: int | None, after: int | None, with_before: bool, sent: list[list[str]]
) -> None:
    original = change(v2, before, after)
    found, error = await changes_before_failure([original], v2, with_before=with_before)
    assert (error, recorder.reviews) == (None, sent)
    [converted] = found
    assert (converted.key, converted.revision) == (original.key, original.revision)
    if after is not None:
        assert converted.entry is not None
        assert converted.entry.rendering.resource is v2
    else:
        assert converted.entry is None
        assert converted.before is not None
        assert converted.before.rendering.resource is v2
    assert converted.frames is original.frames


async def test_a_change_is_converted_once_for_all_watches(v2: Resource, recorder: Recorder) -> None:
    changes = [change(v2, None, 1), change(v2, 1, 2, 8)]
    results = await asyncio.gather(*[changes_before_failure(changes, v2, with_before=False) for _ in range(5)])
    results.append(await changes_before_failure(changes[1:], v2, with_before=False))
    assert recorder.reviews == [["a1", "a2"]]
    assert len({id(found[-1].entry) for found, _ in results}) == 1
    await changes_before_failure(changes, v2, with_before=True)
    assert recorder.reviews == [["a1", "a2"], ["a1"]]


async def test_the_changes_before_the_one_that_fails_are_converted(v2: Resource, recorder: Recorder) -> None:
    changes = [change(v2, None, size, size) for size in (1, 2, 3)]
    recorder.broken = {2}
    found, error = await changes_before_failure(changes, v2, with_before=False)
    assert [converted.revision for converted in found] == [1]
    assert error is not None
    assert error.message == "cannot convert 2"


async def test_a_failure_is_not_kept(v2: Resource, recorder: Recorder) -> None:
    changes = [change(v2, None, size, size) for size in (1, 2, 3)]
    recorder.broken = {2}
    await changes_before_failure(changes, v2, with_before=False)
    recorder.broken, recorder.reviews = set(), []
    found, error = await changes_before_failure(changes, v2, with_before=False)
    assert (len(found), error) == (3, None)
    assert [name for review in recorder.reviews for name in review] == ["a2", "a3"]  # a1 is kept


async def test_a_change_is_given_up_if_those_converted_with_it_fail_each_time(
    v2: Resource, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other watches start to convert it together with one that fails whenever its conversion is to be repeated."""
    bad, change_after = change(v2, None, 1, 1), change(v2, None, 2, 2)
    recorder.broken = {1}
    start, attempts = converters._start_conversions, 0

    def with_the_bad_one(of: Sequence[Change], resource: Resource, with_before: bool) -> None:
        nonlocal attempts
        attempts += 1
        bad.converted = None
        start([bad, *of], resource, with_before)

    monkeypatch.setattr(converters, "_start_conversions", with_the_bad_one)
    found, error = await changes_before_failure([change_after], v2, with_before=False)
    assert (found, attempts) == ([], 1 + converters.MAX_ATTEMPTS)
    assert error is not None
    assert "failed too often" in error.message


async def test_a_watch_that_ends_does_not_cancel_the_conversion_for_others(v2: Resource, recorder: Recorder) -> None:
    changes = [change(v2, None, 1)]
    ended, other = (asyncio.create_task(changes_before_failure(changes, v2, with_before=False)) for _ in range(2))
    await asyncio.sleep(0)
    ended.cancel()
    found, error = await other
    assert (len(found), error, recorder.reviews) == (1, None, [["a1"]])
