"""Snapshots in tests: what a test has changed is undone, and the server goes on.

    with noxu.rollback():
        noxu.apply(…)          # gone at the end of the block, with the functions that were registered in it

    base = noxu.snapshot()
    noxu.restore(base)         # as often as you like

They are those of `noxu.control.snapshots`, without HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from noxu.control.snapshots import Snapshots
from noxu.control_plane import ControlPlane
from noxu.testing import calls
from noxu.testing.calls import AnsweredCall
from noxu.testing.errors import hidden
from noxu.testing.session import Runner
from noxu.values import Object

if TYPE_CHECKING:
    from noxu.testing.calls import AwaitableNone, AwaitableObject, AwaitableObjects

__tracebackhide__ = hidden

T = TypeVar("T")


class SnapshotCalls:
    """The part of the handle that takes and restores snapshots."""

    _runner: Runner

    def snapshot(self, name: str = "") -> AwaitableObject:
        """Take a snapshot of all objects: `{"name", "revision", "time", "keys"}`. Without a name it gets one.

        It takes the same time however many there are. Raises ApiError for a name that another one has.
        """
        return cast("AwaitableObject", self._asked("snapshot", lambda snapshots: snapshots.create(name)))

    def snapshots(self) -> AwaitableObjects:
        """The snapshots of the server, the oldest first."""
        return cast("AwaitableObjects", self._asked("snapshots", lambda snapshots: snapshots.all()))

    def restore(self, snapshot: str | Object) -> AwaitableObject:
        """Make all objects what they were at a snapshot, given by its name or as `snapshot` has returned it.

        Returns `{"name", "revision", "deleted", "created", "changed"}`. Watches stay open. Neither admission nor finalizers
        are asked. Raises ApiError for an unknown snapshot.
        """
        name = _name(snapshot)
        return cast("AwaitableObject", self._asked("restore", lambda snapshots: snapshots.restore(name)))

    def delete_snapshot(self, snapshot: str | Object) -> AwaitableNone:
        """Delete a snapshot. Raises ApiError for an unknown one."""
        name = _name(snapshot)
        return cast("AwaitableNone", self._asked("delete_snapshot", lambda snapshots: snapshots.delete(name)))

    def rollback(self) -> Rollback:
        """For `with` and `async with`: what the block changes is undone at its end, also if it fails.

        Objects become what they were, and functions that were registered in the block are no longer called.
        """
        return Rollback(self._runner)

    def _asked(self, name: str, ask: Callable[[Snapshots], Coroutine[Any, Any, T]]) -> T:
        async def work() -> AnsweredCall[T]:
            return AnsweredCall(await ask(self._runner.running.control.part(Snapshots)))

        return calls.call(self._runner, name, work)


def _name(snapshot: str | Object) -> str:
    return snapshot if isinstance(snapshot, str) else str(snapshot["name"])


class Rollback:
    """What is undone at the end of a block. It may be nested, and used again."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._begun: list[tuple[str, Callable[[ControlPlane], None]]] = []  # the snapshots of the blocks that are open

    async def _begin(self) -> None:
        control = self._runner.running.control
        taken = await control.part(Snapshots).create()
        self._begun.append((taken["name"], _functions(control.server.plane)))

    async def _end(self) -> None:
        name, restore_functions = self._begun.pop()
        control = self._runner.running.control  # another one, if the server was restarted
        restore_functions(control.server.plane)
        await control.part(Snapshots).restore(name, release=True)

    def __enter__(self) -> Self:
        calls.blocking(self._runner.submit(self._begin()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner.is_running:  # else the block has stopped it for good
            calls.blocking(self._runner.submit(self._end()))

    async def __aenter__(self) -> Self:
        await calls.awaited(self._runner, self._begin())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner.is_running:
            await calls.awaited(self._runner, self._end())


def _functions(plane: ControlPlane) -> Callable[[ControlPlane], None]:
    """Remember the functions that are called in the place of webhooks: what makes them those of a control plane again."""
    chain = plane.admission
    mutating, validating = [*chain.local_mutating], [*chain.local_validating]
    converting = dict(plane.conversions.in_process)

    def restore(plane: ControlPlane) -> None:
        plane.admission.local_mutating[:] = mutating  # in place: the plug-ins of the chain have these very lists
        plane.admission.local_validating[:] = validating
        for definition in {*converting, *plane.conversions.in_process}:
            if plane.conversions.in_process.get(definition) is not converting.get(definition):
                plane.convert_in_process(definition, converting.get(definition))

    return restore
