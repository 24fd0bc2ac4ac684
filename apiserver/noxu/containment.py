"""Contain bugs: catch, log and remember every Exception.

A bug in one request, one watch or one reconciliation must not end the server, and must not go unnoticed. Such work runs
inside `Contained` (or `call_all`), which logs an exception with its traceback, keeps it in `error`, and does not propagate
it. The caller decides what follows: the fan-out ends that watch, a controller retries. Two places that every request enters
catch it themselves, and call `log_bug`: the answer of a request (`http.app`), and the delivery to watchers (`registry.cache`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self, TypeVar

log: Final = logging.getLogger("noxu")

T = TypeVar("T")


def log_bug(activity: object, bug: Exception) -> None:
    """Log the exception that ended an activity, with its traceback. `activity` is the subject: "a watch of widgets"."""
    log.error("%s failed", activity, exc_info=bug)


class Contained:
    """A context manager; `error` is the exception that ended its body, None if none did.

    >>> with Contained("a watch of widgets") as contained:
    ...     deliver(changes)
    >>> if contained.error is not None:
    ...     end(watch)
    """

    __slots__ = ("_activity", "_passing", "error")

    def __init__(self, activity: object, passing: type[Exception] | tuple[type[Exception], ...] = ()) -> None:
        """`activity` is the subject of the log message: "a watch of widgets". Exceptions of type `passing` propagate."""
        self._activity = activity
        self._passing = passing
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, self._passing):  # cancellation propagates, too
            return False
        self.error = error
        log_bug(self._activity, error)
        return True


def call_all(activity: str, functions: Iterable[Callable[[T], object]], argument: T) -> None:
    """Call each function with the argument, all of them even if some fail. Costs less than a `Contained` for each.

    `activity` is the subject of the log message, in which %s is the argument: a text that is rarely needed.
    """
    for function in functions:
        try:
            function(argument)
        except Exception as bug:  # noqa: BLE001
            log_bug(activity.replace("%s", str(argument)), bug)
