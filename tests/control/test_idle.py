"""When a server is idle, looked at step by step: what clients do is a list, one row for each look."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import pytest

from noxu.api.errors import ApiError
from noxu.control.idle import until_idle


class Scripted:
    """The activity of clients: what is under way at each look, and "asked" where a client asks for something."""

    def __init__(self, looks: Sequence[str]) -> None:
        self._looks = list(looks)
        self._last = asyncio.get_running_loop().time()
        self.requests = 0
        self.looked = 0

    def under_way(self, ignored: Collection[str]) -> list[str]:
        now = self._looks[self.looked] if self.looked < len(self._looks) else ""
        self.looked += 1
        if now == "asked":
            self._last = asyncio.get_running_loop().time()
            self.requests += 1
            return []
        return [now] if now and now not in ignored else []

    def connections(self) -> list[tuple[object, object]]:
        return []

    def last(self, ignored: Collection[str]) -> float:
        return self._last


@pytest.mark.parametrize(
    ("looks", "least"),
    [
        ([], 1),
        (["GET a"], 2),
        (["GET a", "GET a", "", ""], 3),
        (["", "GET a", "", "GET b", ""], 1),
        (["leases"], 1),
    ],
)
async def test_without_a_quiet_time_it_is_idle_when_nothing_is_under_way(looks: Sequence[str], least: int) -> None:
    activity = Scripted(looks)
    await until_idle(activity, (), quiet=0, ignore=("leases",))
    assert activity.looked == least


@pytest.mark.parametrize("looks", [["asked", "GET a"], ["GET a", "asked", "GET b"], ["asked"] * 5, ["GET a"] * 3])
async def test_the_quiet_time_begins_when_everything_has_ended(looks: Sequence[str]) -> None:
    quiet, activity, time = 0.02, Scripted(looks), asyncio.get_running_loop().time
    seen: list[float] = []
    look = activity.under_way

    def noted(ignored: Collection[str]) -> list[str]:
        if activity.looked < len(looks) and looks[activity.looked]:
            seen.append(time())
        return look(ignored)

    activity.under_way = noted  # type: ignore[method-assign]
    answer = await until_idle(activity, (), quiet=quiet)
    assert activity.looked >= len(looks)
    assert time() - seen[-1] >= quiet
    assert answer["requests"] == looks.count("asked")


async def test_when_the_time_is_up_it_says_who_is_busy() -> None:
    with pytest.raises(ApiError) as late:
        await until_idle(Scripted(["PUT widgets/a"] * 10_000), (), quiet=0, within=0.02)
    assert late.value.code == 504
    assert (
        late.value.message == "the server is not idle after 0.02 s: PUT widgets/a; 0 requests were answered meanwhile"
    )
