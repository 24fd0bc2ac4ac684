"""Limits on the open watches of a server: their number, and the memory that their requests take.

A watch keeps its selectors and its target until it ends, which takes up to an hour. Watches with equal selectors share
them (`api.selectors`), so a selector counts once. For example, with the selectors A and B of 20,000 requirements each:

    two watches with A        2 × the target, 1 × A (8 MB)
    one watch with B          3 × the target, A and B (16 MB)
    both with A end           1 × the target, B (8 MB)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from noxu.api.errors import ApiError
from noxu.api.selectors import cost_of
from noxu.registry.reader import Fields, Labels, Selection

MAX_WATCHES: Final = 10_000
MAX_MEMORY: Final = 64 * 1024 * 1024  # bytes
TARGET_COPIES: Final = 3  # the target, its query, and the URL that aiohttp makes of it
COMPARISON_BYTES: Final = 400  # of a selector at most, for each comparison that a match may take
RETRY_AFTER: Final = 1  # seconds

Selector = Labels | Fields


class WatchQuota:
    """The open watches of one server. `memory` is the sum in bytes."""

    def __init__(self, max_watches: int = MAX_WATCHES, max_memory: int = MAX_MEMORY) -> None:
        self.watches = 0
        self.memory = 0
        self._max_watches = max_watches
        self._max_memory = max_memory
        self._users: dict[int, int] = {}  # the number of watches with a selector, by its identity

    def check(self, target: str, texts: Sequence[str]) -> None:
        """Refuse a watch that will certainly be refused, before its selectors are parsed. Raises ApiError TooManyRequests."""
        if self.watches >= self._max_watches:
            raise _too_many(f"there are {self._max_watches} watches")
        added = TARGET_COPIES * len(target) + COMPARISON_BYTES * sum(map(cost_of, texts))
        if self.memory + added > self._max_memory:
            raise _too_many("the selectors of all watches together are too large")

    @contextlib.contextmanager
    def taken(self, target: str, selection: Selection) -> Iterator[None]:
        """Count a watch while it lasts. Raises ApiError TooManyRequests beyond a limit."""
        selectors = [selector for selector in (selection.labels, selection.fields) if selector is not None]
        own = TARGET_COPIES * len(target)
        added = own + sum([_memory_of(selector) for selector in selectors if id(selector) not in self._users])
        if self.watches >= self._max_watches:
            raise _too_many(f"there are {self._max_watches} watches")
        if self.memory + added > self._max_memory:
            raise _too_many("the selectors of all watches together are too large")
        self.watches += 1
        self.memory += added
        for selector in selectors:
            self._users[id(selector)] = self._users.get(id(selector), 0) + 1
        try:
            yield
        finally:
            self.watches -= 1
            self.memory -= own
            for selector in selectors:
                self._release(selector)

    def _release(self, selector: Selector) -> None:
        self._users[id(selector)] -= 1
        if not self._users[id(selector)]:
            del self._users[id(selector)]
            self.memory -= _memory_of(selector)


def _memory_of(selector: Selector) -> int:
    return COMPARISON_BYTES * selector.cost


def _too_many(why: str) -> ApiError:
    message = f"Too many requests, please try again later: {why}"
    return ApiError(429, message, "TooManyRequests", {"retryAfterSeconds": RETRY_AFTER})
