"""Waiting until objects satisfy a condition: their newest states, then a watch from there.

The condition is evaluated where the caller is: in its thread, or in its coroutine. It is about one object, or about a
number of objects of a kind; several objects are waited for one after the other, with one deadline.

When the time is over, the message says what holds the object, and what happened to it. The message is made from the
store, so it needs no further requests. A message has a limited size, whatever the objects are.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from noxu.api import codec
from noxu.process.server import Server
from noxu.registry.storage_form import as_json
from noxu.testing import calls, conditions
from noxu.testing.addresses import Address
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
        listed = (await self._session.client.send("GET", Address(resource, namespace).path(), self._query)).value
        self._states.clear()
        for item in listed["items"]:
            self._see("ADDED", {"apiVersion": resource.api_version, "kind": resource.kind, **item})
        self._since = listed["metadata"]["resourceVersion"]

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
        self._waits = [Waiting(session, address, condition, timeout, deadline=deadline) for address in addresses]

    def blocking(self) -> list[Object | list[Object]]:
        return [wait.blocking() for wait in self._waits]

    async def in_coroutine(self) -> list[Object | list[Object]]:
        return [await wait.in_coroutine() for wait in self._waits]


# -- what is known when the time is over -------------------------------------------------------------------------------


MAX_STATE: Final = 4000  # characters of the state of an object
MAX_LINE: Final = 300  # characters
MAX_LISTED: Final = 10  # Events, dependents, names
_EVENT: Final = "Event"


async def circumstances(server: Server, address: Address, value: Object | None) -> list[str]:
    """Lines about an object; `value` is its state, None if it does not exist. In the loop of the server."""
    uid = str(value["metadata"].get("uid", "")) if value else ""
    related = await _naming(server, f'"name":"{address.name}"', uid)  # an Event need not have the uid
    lines: list[str] = []
    if value is None:
        lines += await _others(server, address)
    else:
        lines += _held(value, [stored for stored in related if _owned_by(stored, uid)])
        lines += await _owners(server, value)
    events = [event for event in related if event.get("kind") == _EVENT and _is_about(event, address, uid)]
    return [cut(line) for line in (*lines, *_shown_events(events))]


async def _naming(server: Server, *texts: str) -> list[Object]:
    """The stored objects that contain one of the texts."""
    matching: list[Object] = []
    async for states in server.plane.store.scan([text.encode() for text in texts if text]):
        for state in states:
            try:
                value = codec.decode_stored(as_json(state.value))
            except ValueError:
                continue
            if isinstance(value, dict) and isinstance(value.get("metadata"), dict):
                matching.append(value)
    return matching


def _held(value: Object, dependents: list[Object]) -> Iterator[str]:
    """What keeps an object from being deleted."""
    metadata = value["metadata"]
    finalizers = metadata.get("finalizers") or []
    if since := metadata.get("deletionTimestamp"):
        grace = metadata.get("deletionGracePeriodSeconds")
        kept = f"finalizers keep it: {_listed(finalizers)}" if finalizers else f"its grace period is {grace or 0} s"
        yield f"it is being deleted (deletionTimestamp {since}); {kept}"
    elif finalizers:
        yield f"its finalizers: {_listed(finalizers)}"
    if dependents:
        yield f"its dependents: {_listed(map(_named, dependents))}"


async def _owners(server: Server, value: Object) -> list[str]:
    """The owners of an object, and which of them do not exist."""
    lines = []
    for owner in (value["metadata"].get("ownerReferences") or [])[:MAX_LISTED]:
        uid = str(owner.get("uid", ""))
        exists = any(holder["metadata"].get("uid") == uid for holder in await _naming(server, uid)) if uid else False
        lines.append(f"its owner: {owner.get('kind')} {owner.get('name')}{'' if exists else ', which does not exist'}")
    return lines


async def _others(server: Server, address: Address) -> list[str]:
    """The names that a missing object might have been meant by."""
    if not address.resource.is_stored:
        return []
    collection = await server.plane.reader.collection(address.resource)
    names = sorted(f"{key.partition}{key.name}" for key in collection.entries)
    kind = address.resource.kind
    return [f"there is {_listed(names)}" if names else f"there is no {kind} at all"]


def _owned_by(value: Object, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in value["metadata"].get("ownerReferences") or ())


def _is_about(event: Object, address: Address, uid: str) -> bool:
    subject = event.get("involvedObject") or event.get("regarding") or {}
    if uid and subject.get("uid"):
        return bool(subject["uid"] == uid)
    named = subject.get("kind"), subject.get("name"), subject.get("namespace") or ""
    return named == (address.resource.kind, address.name, address.namespace)


def _shown_events(events: list[Object]) -> Iterator[str]:
    if not events:
        return
    yield "Events:" if len(events) <= MAX_LISTED else f"Events (the last {MAX_LISTED} of {len(events)}):"
    for event in sorted(events, key=time_of)[-MAX_LISTED:]:
        count = event.get("count") or 1
        times = f" ({count} times)" if count > 1 else ""
        message = " ".join(str(event.get("message") or event.get("note") or "").split())
        yield f"  {event.get('type', '')} {event.get('reason', '')}: {message}{times}"


def time_of(event: Object) -> tuple[str, int]:
    """When an Event happened last, for sorting."""
    metadata = event["metadata"]
    when = event.get("lastTimestamp") or event.get("eventTime") or metadata.get("creationTimestamp") or ""
    return str(when), int(metadata.get("resourceVersion") or 0)


def shown(value: Object) -> str:
    """An object for a message, without what is never waited for; of a large one, what controllers write comes first."""
    metadata = {name: item for name, item in value["metadata"].items() if name != "managedFields"}
    text = _yaml({**value, "metadata": metadata})
    if len(text) <= MAX_STATE:
        return text
    first = {name: value[name] for name in ("apiVersion", "kind", "status") if name in value}
    rest = {name: item for name, item in value.items() if name not in (*first, "metadata")}
    return cut(_yaml({**first, "metadata": metadata, **rest}), MAX_STATE)


def _yaml(value: Any) -> str:
    import yaml  # imported late: rarely needed

    text: str = yaml.safe_dump(value, sort_keys=False)
    return text.rstrip()


def _named(value: Object) -> str:
    metadata = value["metadata"]
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{value.get('kind')} {place}{metadata.get('name')}"


def _listed(texts: Iterable[object]) -> str:
    items = [str(text) for text in texts]
    more = f" and {len(items) - MAX_LISTED} more" if len(items) > MAX_LISTED else ""
    return f"{', '.join(items[:MAX_LISTED])}{more}"


def cut(text: str, length: int = MAX_LINE) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
