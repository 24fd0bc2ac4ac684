"""Waiting until an object satisfies a condition: its newest state, then a watch from there.

The condition is evaluated where the caller is: in its thread, or in its coroutine.
"""

from __future__ import annotations

import inspect
import time

from noxu.apiserver.testing import calls, conditions
from noxu.apiserver.testing.addresses import Address
from noxu.apiserver.testing.conditions import Condition, NotYet
from noxu.apiserver.testing.errors import WaitTimeout, hidden
from noxu.apiserver.testing.session import Session
from noxu.apiserver.testing.watching import Watch, WatchEvent
from noxu.apiserver.values import Object

__tracebackhide__ = hidden


class Waiting:
    """The state of a wait: the newest state of the object, the time that is left. Raises ValueError for the condition."""

    def __init__(self, session: Session, address: Address, condition: Condition, timeout: float) -> None:
        self._session = session
        self._address = address
        self._check, self._text = conditions.parse(condition)
        self._value: Object | None = None
        self._last: Object = {}
        self._since = ""
        self._missing = ""
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout

    def blocking(self) -> Object:
        """Wait in a thread without a loop. Raises WaitTimeout, ApiError."""
        runner = self._session.runner
        calls.blocking(runner.submit(self._begin()))
        while not self._is_met():
            with self._watch() as events:
                while event := calls.blocking(runner.submit(self._next(events))):
                    self._see(event.type, event.object)
                    if self._is_met():
                        return self._last
        return self._last

    async def in_coroutine(self) -> Object:
        """The same in a coroutine."""
        runner = self._session.runner
        await calls.awaited(runner, self._begin())
        while not await self._is_met_in_coroutine():
            async with self._watch() as events:
                while event := await calls.awaited(runner, self._next(events)):
                    self._see(event.type, event.object)
                    if await self._is_met_in_coroutine():
                        return self._last
        return self._last

    # -- where the caller is

    def _is_met(self) -> bool:
        self._missing = ""
        try:
            met = self._check(self._value)
        except LookupError as error:
            return self._lacks(error)
        if inspect.isawaitable(met):
            if inspect.iscoroutine(met):
                met.close()
            raise TypeError("the condition is an async function, and this call is in no coroutine")
        return bool(met)

    async def _is_met_in_coroutine(self) -> bool:
        self._missing = ""
        try:
            met = self._check(self._value)
            return bool(await met) if inspect.isawaitable(met) else bool(met)
        except LookupError as error:
            return self._lacks(error)

    def _lacks(self, error: LookupError) -> bool:
        """A function has looked for something that the object does not have yet: the condition is not met."""
        self._missing = str(error) if isinstance(error, NotYet) else f"{type(error).__name__}: {error}"
        return False

    def _watch(self) -> Watch:
        resource, namespace, name = self._address
        query = {"fieldSelector": f"metadata.name={name}", "resourceVersion": self._since}
        path = Address(resource, namespace).path()
        return Watch(self._session.runner, self._session.client, path, query, None, str(self._address))

    def _see(self, type_: str, value: Object) -> None:
        """A new state of the object."""
        self._since = value["metadata"]["resourceVersion"]
        self._last = value
        self._value = None if type_ == "DELETED" else value

    # -- in the loop of the server

    async def _begin(self) -> None:
        """The state of the object at the beginning."""
        resource, namespace, name = self._address
        query = {"fieldSelector": f"metadata.name={name}"}
        found = (await self._session.client.send("GET", Address(resource, namespace).path(), query)).value
        for item in found["items"]:
            self._see("ADDED", {"apiVersion": resource.api_version, "kind": resource.kind, **item})
        self._since = found["metadata"]["resourceVersion"]

    async def _next(self, events: Watch) -> WatchEvent | None:
        """The next event, None if the watch has ended. Raises WaitTimeout."""
        left = self._deadline - time.monotonic()
        try:
            return await events.next(max(left, 0))
        except WaitTimeout:
            raise self._timed_out() from None

    def _timed_out(self) -> WaitTimeout:
        state = "it does not exist" if self._value is None else f"now it is\n{_shown(self._value)}"
        missing = f" ({self._missing})" if self._missing else ""
        return WaitTimeout(f"{self._address}: waited {self._timeout:g} s until {self._text}{missing}; {state}")


def _shown(value: Object) -> str:
    """An object for a message, without what is never waited for."""
    import yaml  # imported late: rarely needed

    metadata = {name: item for name, item in value["metadata"].items() if name != "managedFields"}
    text: str = yaml.safe_dump({**value, "metadata": metadata}, sort_keys=False)
    return text.rstrip()
