"""How a method of the handle is called: it blocks, or it is awaited.

Every method that asks the server has one name. Outside of a coroutine it blocks until it has its result, and returns
that. In a coroutine (the thread has a running event loop) it returns a coroutine, which has to be awaited: the loop is
never blocked. It works like any coroutine of asyncio: `asyncio.gather`, `asyncio.create_task`, timeouts.

    thread of the caller             what the caller gets
    no loop runs                     the result
    a loop runs                      a coroutine
    the loop of the server runs      a coroutine (an async function as a hook)

A coroutine that is not awaited does nothing. Python warns about it, and the pytest plugin fails the test, because such a
call looks like one that blocks. `unawaited` collects the calls for the plugin.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import warnings
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future
from types import CoroutineType, FrameType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, ParamSpec, TypeVar, cast

from noxu.testing.errors import EXPECTED, hidden
from noxu.testing.session import Runner

T = TypeVar("T")
P = ParamSpec("P")

__tracebackhide__ = hidden

_OURS: Final = "noxu."
_KEPT: Final = 1000  # calls of a test that may be in `unawaited`, before those that have begun are dropped

if TYPE_CHECKING:
    from noxu.control.recorded_requests import RecordedRequest
    from noxu.recordings.replaying import ReplayedStep

    # For type checkers, a result may be used at once or awaited: they do not know where a call is.

    class AwaitableObject(dict[str, Any]):
        def __await__(self) -> Generator[Any, None, dict[str, Any]]: ...

    class AwaitableObjects(list[dict[str, Any]]):
        def __await__(self) -> Generator[Any, None, list[dict[str, Any]]]: ...

    class AwaitableSteps(list[ReplayedStep]):
        def __await__(self) -> Generator[Any, None, list[ReplayedStep]]: ...

    class AwaitableNone:
        def __await__(self) -> Generator[Any, None, None]: ...

    class AwaitableRequests(list[RecordedRequest]):
        def __await__(self) -> Generator[Any, None, list[RecordedRequest]]: ...


_OWN_REFERENCES: Final = 2  # of a coroutine that only its Call has: that one, and the argument of getrefcount


class PendingCall(NamedTuple):
    """A call in a coroutine: the name of the method, and where it is."""

    name: str
    place: str
    coroutine: CoroutineType[Any, Any, Any]

    @property
    def has_begun(self) -> bool:
        return inspect.getcoroutinestate(self.coroutine) != inspect.CORO_CREATED

    @property
    def is_forgotten(self) -> bool:
        """It has not begun, and will not: only this call refers to it, no task and no variable."""
        return not self.has_begun and sys.getrefcount(self.coroutine) <= _OWN_REFERENCES


unawaited: list[PendingCall] | None = None
"""The calls in coroutines since the plugin has set it to []; None: they are not collected."""


def forgotten() -> list[PendingCall]:
    """The calls that are not awaited, which are closed; the others are not collected any more."""
    global unawaited  # noqa: PLW0603 - of the process, as its warnings are
    calls = [call for call in unawaited or () if call.is_forgotten]
    unawaited = None if unawaited is None else []
    for call in calls:
        call.coroutine.close()
    return calls


def collect() -> None:
    """Collect calls from now on."""
    global unawaited  # noqa: PLW0603
    unawaited = []


def in_coroutine() -> bool:
    """Whether the thread has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class AnsweredCall(NamedTuple, Generic[T]):
    """A result, and the warnings that came with it, for the line that has called."""

    value: T
    warnings: Sequence[Warning] = ()


def call(
    runner: Runner,
    name: str,
    work: Callable[P, Coroutine[Any, Any, AnsweredCall[T]]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """The result of `work`, a coroutine function that runs in the loop of the server; or a coroutine in its place."""
    if in_coroutine():
        return cast("T", pending(name, _awaited(runner, work, *args, **kwargs)))
    return _warned(blocking(runner.submit(work(*args, **kwargs))))


def blocking(future: Future[T]) -> T:
    """Wait for a result in a thread without a loop."""
    try:
        return future.result()
    except EXPECTED as error:
        raise error.with_traceback(None) from error.__cause__
    except BaseException:
        future.cancel()  # Ctrl-C
        raise


async def awaited(runner: Runner, work: Coroutine[Any, Any, T]) -> T:
    """Wait for a result in a coroutine."""
    try:
        if runner.is_running and asyncio.get_running_loop() is runner.loop:
            return await work
        return await asyncio.wrap_future(runner.submit(work))
    except EXPECTED as error:
        raise error.with_traceback(None) from error.__cause__


async def _awaited(
    runner: Runner, work: Callable[P, Coroutine[Any, Any, AnsweredCall[T]]], *args: P.args, **kwargs: P.kwargs
) -> T:
    return _warned(await awaited(runner, work(*args, **kwargs)))


def _warned(answered: AnsweredCall[T]) -> T:
    for warning in answered.warnings:
        warn(warning)
    return answered.value


def pending(name: str, coroutine: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """A coroutine for a caller, named after the method: Python's warning about one that is not awaited says the name."""
    original = cast("CoroutineType[Any, Any, T]", coroutine)
    original.__name__, original.__qualname__ = name, f"Noxu.{name}"
    if unawaited is not None:
        if len(unawaited) > _KEPT:
            unawaited[:] = [waiting for waiting in unawaited if not waiting.has_begun]
        frame = caller()
        unawaited.append(PendingCall(name, f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "?", original))
    return original


def caller() -> FrameType | None:
    """The innermost frame that is not of this package."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        frame = frame.f_back
    return frame


def warn(warning: Warning) -> None:
    """Warn at the line of the caller."""
    frame = caller()
    if frame is None:
        warnings.warn(warning, stacklevel=2)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    name = frame.f_globals.get("__name__", "<string>")
    place = frame.f_code.co_filename, frame.f_lineno
    warnings.warn_explicit(warning, type(warning), *place, module=name, registry=registry)
