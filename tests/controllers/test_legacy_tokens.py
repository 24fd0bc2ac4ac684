"""The label that says on which day the token of a Secret was last used."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from noxu.control_plane import ControlPlane
from noxu.controllers.account_tokens import LAST_USED, LegacyTokenController, Used
from noxu.registry.stored_object import object_at
from noxu.security.credentials import Token, Unloaded
from noxu.values import Object
from tests.clocks import ManualClock
from tests.security.planes import ACCOUNT, SECRET, create, delete, plane_with_account
from tests.timing import eventually_async

DAY = 86_400


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def plane(clock: ManualClock) -> AsyncIterator[ControlPlane]:
    async with plane_with_account(clock) as running:
        yield running


async def secret_of(plane: ControlPlane, labels: dict[str, str]) -> str:
    """Create the Secret, and return its token."""
    account = await create(plane, ACCOUNT)
    text = plane.tokens.issue_legacy(account, "s")
    data = {"token": base64.b64encode(text.encode()).decode()}
    await create(plane, {**SECRET, "data": data, "metadata": {**SECRET["metadata"], "labels": labels}})
    return text


async def stored(plane: ControlPlane) -> Object:
    resource = plane.served_resources.current.find("", "v1", "secrets")
    assert resource is not None
    collection = await plane.reader.collection(resource)
    (entry,) = [entry for key, entry in collection.entries.items() if key.name == "s"]
    return object_at(entry, resource)


async def use(plane: ControlPlane, text: str) -> None:
    while True:
        try:
            assert plane.tokens(Token(text), plane.tokens.audiences) is not None
        except Unloaded as missing:
            await plane.reader.collection(missing.resource)
        else:
            return


def tracking(plane: ControlPlane) -> LegacyTokenController:
    (found,) = [one for one in plane.background_controllers if isinstance(one, LegacyTokenController)]
    return found


async def settled(plane: ControlPlane) -> None:
    await tracking(plane).queue.processed(Used("default", "s"))


async def test_the_day_of_the_last_use_is_recorded(plane: ControlPlane, clock: ManualClock) -> None:
    text = await secret_of(plane, {"a": "b"})
    for _ in range(2):
        await use(plane, text)
        today = clock.now().date().isoformat()

        async def recorded(today: str = today) -> bool:
            labels: Any = (await stored(plane))["metadata"]["labels"]
            return bool(labels == {"a": "b", LAST_USED: today})

        await eventually_async(recorded)
        clock.advance(DAY)
    (entry,) = [one for one in (await stored(plane))["metadata"]["managedFields"] if one["manager"] == "kube-apiserver"]
    assert entry["fieldsV1"] == {"f:metadata": {"f:labels": {f"f:{LAST_USED}": {}}}}


@pytest.mark.parametrize("days", [0, 1], ids=["today", "tomorrow, by a server whose clock is ahead"])
async def test_what_is_recorded_is_not_written_again(plane: ControlPlane, clock: ManualClock, days: int) -> None:
    clock.advance(days * DAY)
    day = clock.now().date().isoformat()
    clock.advance(-days * DAY)
    text = await secret_of(plane, {LAST_USED: day})
    before = (await stored(plane))["metadata"]
    await use(plane, text)
    await settled(plane)
    assert (await stored(plane))["metadata"] == before


async def test_a_secret_that_is_gone_is_forgotten(plane: ControlPlane) -> None:
    await secret_of(plane, {})
    await delete(plane, SECRET)
    tracking(plane).used("default", "s")
    await settled(plane)
    assert tracking(plane).health() == ""
