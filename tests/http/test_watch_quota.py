"""The number of open watches and the memory of their requests are limited; equal selectors count once."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.api.selectors import parse_fields, parse_labels
from noxu.http.watch_requests import COMPARISON_BYTES, TARGET_COPIES, WatchQuota
from noxu.registry.reader import Selection

NO_RESOURCE: Any = None
ALL = Selection(NO_RESOURCE)
TWO = Selection(NO_RESOURCE, labels=parse_labels("a,b"))
OTHER = Selection(NO_RESOURCE, labels=parse_labels("c"), fields=parse_fields("metadata.name=x"))
TARGET = "/" * 10
OWN = TARGET_COPIES * len(TARGET)

COUNTED: list[tuple[str, list[Selection], int]] = [
    ("without selectors", [ALL, ALL], 2 * OWN),
    ("with a selector", [TWO], OWN + 2 * COMPARISON_BYTES),
    ("with the same selector", [TWO, TWO, TWO], 3 * OWN + 2 * COMPARISON_BYTES),
    ("with several", [TWO, OTHER], 2 * OWN + 4 * COMPARISON_BYTES),
]


@pytest.mark.parametrize(("selections", "memory"), [row[1:] for row in COUNTED], ids=[row[0] for row in COUNTED])
def test_the_memory_of_watches(selections: list[Selection], memory: int) -> None:
    quota = WatchQuota()
    first = quota.taken(TARGET, selections[0])
    first.__enter__()
    with contextlib.ExitStack() as stack:
        for selection in selections[1:]:
            stack.enter_context(quota.taken(TARGET, selection))
        assert (quota.watches, quota.memory) == (len(selections), memory)
    assert quota.memory == OWN + COMPARISON_BYTES * selections[0].cost
    first.__exit__(None, None, None)
    assert (quota.watches, quota.memory, quota._users) == (0, 0, {})


LIMITED: list[tuple[str, WatchQuota, Selection, str]] = [
    ("the number", WatchQuota(max_watches=1), ALL, "there are 1 watches"),
    ("the memory", WatchQuota(max_memory=OWN + 2 * COMPARISON_BYTES + 1), ALL,
     "the selectors of all watches together are too large"),
]  # fmt: skip


@pytest.mark.parametrize(("quota", "selection", "why"), [row[1:] for row in LIMITED], ids=[row[0] for row in LIMITED])
def test_a_watch_beyond_the_limit_of_is_refused_until_another_ends(
    quota: WatchQuota, selection: Selection, why: str
) -> None:
    with quota.taken(TARGET, TWO):
        with pytest.raises(ApiError) as raised, quota.taken(TARGET, selection):
            pass
        error = raised.value
        assert (error.code, error.reason, error.retry_after) == (429, "TooManyRequests", 1)
        assert error.message == f"Too many requests, please try again later: {why}"
        text = ",".join(str(selector) for selector in (selection.labels, selection.fields) if selector)
        with pytest.raises(ApiError) as before:
            quota.check(TARGET, [text])
        assert before.value.message == error.message
    quota.check(TARGET, [""])
    with quota.taken(TARGET, selection):
        assert quota.watches == 1


def test_selectors_are_counted_before_they_are_parsed() -> None:
    quota = WatchQuota(max_memory=OWN + 3 * COMPARISON_BYTES)
    quota.check(TARGET, ["x,y,z", ""])
    quota.check(TARGET, ["x,y", "metadata.name=x"])
    quota.check(TARGET, [str(TWO.labels), "x,y,z"])  # others have parsed the first one
    for texts in (["x,y,z,v", ""], ["x,y", "p=x,q=y"], ["!!,!!,!!,!!", ""]):
        with pytest.raises(ApiError, match="the selectors of all watches together are too large"):
            quota.check(TARGET, texts)
