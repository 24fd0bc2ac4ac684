"""Where a bug stops: the one place that catches every Exception.

A bug in one request, one watch or one pass of a controller must not end the server, and must not pass unseen. Code at
such a border runs inside `Contained`; the exception is logged with its traceback, kept in `error`, and goes no further.
What a border does next is its own business: the HTTP server answers 500, the fan-out ends that watch, a controller
retries.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Final, Self

log: Final = logging.getLogger("noxu")


class Contained:
    """A context manager; `error` is the exception that ended its body, None if none did.

    >>> with Contained("a watch of widgets") as contained:
    ...     deliver(changes)
    >>> if contained.error is not None:
    ...     end(watch)
    """

    __slots__ = ("_activity", "_passing", "error")

    def __init__(self, activity: object, passing: type[Exception] | tuple[type[Exception], ...] = ()) -> None:
        """The log says that `activity` failed: "a watch of widgets". Exceptions of type `passing` go through."""
        self._activity = activity
        self._passing = passing
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, self._passing):  # cancellation goes through, too
            return False
        self.error = error
        log.error("%s failed", self._activity, exc_info=error)
        return True
