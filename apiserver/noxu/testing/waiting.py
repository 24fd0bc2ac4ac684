"""Waiting until objects satisfy a condition: their newest states, then a watch from there.

The condition is evaluated where the caller is: in its thread, or in its coroutine. What is waited for is one object, or a
number of objects of a kind; several objects are waited for one after the other, until the same moment.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from typing import NamedTuple

from noxu.testing import calls, conditions
from noxu.testing.addresses import Address
from noxu.testing.circumstances import MAX_LISTED, circumstances, cut, shown
from noxu.testing.conditions import Condition, NotYet
from noxu.testing.errors import WaitTimeout, hidden
from noxu.testing.session import Session
from noxu.testing.watching import Watch, WatchEvent
from noxu.values import Object

__tracebackhide__ = hidden

Place = tuple[str, str]
"""The namespace and the name of an object."""


class _State(NamedTuple):
    """A state of an object, and whether it satisfies the condition; None: that is not known yet."""

    value: Object
    met: bool | None = None


class Waiting:
    """The state of a wait: the newest states of the objects, the time that is left. Raises ValueError for the condition.

    `count`: so many objects of the collection satisfy the condition, None: the object of the address does. `query` has the
    selectors of a collection.
    """

    def __init__(
        self,
        session: Session,
        address: Address,
        condition: Condition,
        timeout: float,
        *,
        count: int | None = None,
        query: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> None:
        self._session = session
        self._address = address
        self._check, self._text = conditions.parse(condition, address.resource)
        self._absence_counts = condition == conditions.DELETE
        self._count = count
        self._query = {"fieldSelector": f"metadata.name={address.name}"} if count is None else dict(query or {})
        self._states: dict[Place, _State] = {}
        self._last: Object = {}
        self._since = ""
        self._missing = ""
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout if deadline is None else deadline

    def blocking(self) -> Object | list[Object]:
        """Wait in a thread without a loop. Raises WaitTimeout, ApiError."""
        runner = self._session.runner
        calls.blocking(runner.submit(self._begin()))
        while not self._is_met():
            with self._watch() as events:
                while event := calls.blocking(runner.submit(self._next(events))):
                    self._see(event.type, event.object)
                    if self._is_met():
                        return self._result()
        return self._result()

    async def in_coroutine(self) -> Object | list[Object]:
        """The same in a coroutine."""
        runner = self._session.runner
        await calls.awaited(runner, self._begin())
        while not await self._is_met_in_coroutine():
            async with self._watch() as events:
                while event := await calls.awaited(runner, self._next(events)):
                    self._see(event.type, event.object)
                    if await self._is_met_in_coroutine():
                        return self._result()
        return self._result()

    def _result(self) -> Object | list[Object]:
        """The object, or those of the collection that satisfy the condition, in the order of their places."""
        if self._count is None:
            return self._last
        return [state.value for _, state in sorted(self._states.items()) if state.met]

    # -- where the caller is

    def _is_met(self) -> bool:
        self._missing = ""
        for place, state in self._undecided():
            try:
                met = self._check(state.value)
            except LookupError as error:
                met = self._lacks(error)
            if inspect.isawaitable(met):
                if inspect.iscoroutine(met):
                    met.close()
                raise TypeError("the condition is an async function, and this call is in no coroutine")
            self._states[place] = state._replace(met=bool(met))
        return self._has_enough()

    async def _is_met_in_coroutine(self) -> bool:
        self._missing = ""
        for place, state in self._undecided():
            try:
                met = self._check(state.value)
                met = bool(await met) if inspect.isawaitable(met) else bool(met)
            except LookupError as error:
                met = self._lacks(error)
            self._states[place] = state._replace(met=met)
        return self._has_enough()

    def _undecided(self) -> list[tuple[Place, _State]]:
        return [(place, state) for place, state in self._states.items() if state.met is None]

    def _has_enough(self) -> bool:
        met = sum(1 for state in self._states.values() if state.met)
        if self._count is not None:
            return met == self._count
        return not self._states if self._absence_counts else met == 1

    def _lacks(self, error: LookupError) -> bool:
        """A function has looked for something that the object does not have yet: the condition is not met."""
        self._missing = str(error) if isinstance(error, NotYet) else f"{type(error).__name__}: {error}"
        return False

    def _watch(self) -> Watch:
        resource, namespace, _ = self._address
        query = {**self._query, "resourceVersion": self._since}
        path = Address(resource, namespace).path()
        return Watch(self._session.runner, self._session.client, path, query, None, str(self._address))

    def _see(self, type_: str, value: Object) -> None:
        """A new state of an object."""
        metadata = value["metadata"]
        self._since = metadata["resourceVersion"]
        self._last = value
        place = metadata.get("namespace", ""), metadata["name"]
        if type_ == "DELETED":
            self._states.pop(place, None)
        else:
            self._states[place] = _State(value)

    # -- in the loop of the server

    async def _begin(self) -> None:
        """The states at the beginning."""
        resource, namespace, _ = self._address
        if self._absence_counts or self._count == 0:
            await self._session.check_namespace(namespace)
        found = (await self._session.client.send("GET", Address(resource, namespace).path(), self._query)).value
        self._states.clear()
        for item in found["items"]:
            self._see("ADDED", {"apiVersion": resource.api_version, "kind": resource.kind, **item})
        self._since = found["metadata"]["resourceVersion"]

    async def _next(self, events: Watch) -> WatchEvent | None:
        """The next event, None if the watch has ended. Raises WaitTimeout."""
        left = self._deadline - time.monotonic()
        try:
            return await events.next(max(left, 0))
        except WaitTimeout:
            raise WaitTimeout(await self._message()) from None

    async def _message(self) -> str:
        """What was waited for, the newest state, and what may be the reason."""
        missing = f" ({cut(self._missing)})" if self._missing else ""
        waited = f"waited {self._timeout:g} s until"
        if self._count is not None:
            return self._message_about_several(waited, missing)
        value = next((state.value for state in self._states.values()), None)
        state = "it does not exist" if value is None else f"now it is\n{shown(value)}"
        message = f"{self._address}: {waited} {self._text}{missing}; {state}"
        more = await circumstances(self._session.runner.running, self._address, value)
        return "\n".join([message, *more])

    def _message_about_several(self, waited: str, missing: str) -> str:
        met = [place for place, state in sorted(self._states.items()) if state.met]
        others = [place for place, state in sorted(self._states.items()) if not state.met]
        resource, namespace, _ = self._address
        name = f"{resource.group_resource}{f' in {namespace}' if namespace else ''}{_selected(self._query)}"
        head = f"{name}: {waited} {self._count} of them: {self._text}{missing}; it is so of {len(met)}"
        lines = [head]
        for title, places in (("these", met), ("and not of", others)):
            if places:
                more = f" and {len(places) - MAX_LISTED} more" if len(places) > MAX_LISTED else ""
                names = ", ".join("/".join(filter(None, place)) for place in places[:MAX_LISTED])
                lines.append(f"{title}: {names}{more}")
        if others:
            lines.append(f"one of these is now\n{shown(self._states[others[0]].value)}")
        return "\n".join(lines)


def _selected(query: Mapping[str, str]) -> str:
    return "".join(f" with {text}" for text in query.values())


class Several:
    """The waits for several objects, one after the other, until the same moment."""

    def __init__(self, session: Session, addresses: list[Address], condition: Condition, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        self._waits = [Waiting(session, each, condition, timeout, deadline=deadline) for each in addresses]

    def blocking(self) -> list[Object | list[Object]]:
        return [each.blocking() for each in self._waits]

    async def in_coroutine(self) -> list[Object | list[Object]]:
        return [await each.in_coroutine() for each in self._waits]
