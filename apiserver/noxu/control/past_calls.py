"""What people ask about the past of an object: who wrote a line, and when a condition became true.

    GET /_noxu/blame?type=widgets&name=a                                       its lines, and the revision of each
    GET /_noxu/bisect?type=widgets&name=a&condition=self.status.size > 3       the first revision at which that was true

An object is shown as its kind was served at the moment: at its preferred version, unless the type names one. Work is done in
portions, each in a thread if it is long.
"""

from __future__ import annotations

from typing import Final

from noxu.api import errors
from noxu.control import object_states, writers
from noxu.control.arguments import BOOLEAN, TEXT, Argument, Arguments
from noxu.control.bisect import ConditionHistory
from noxu.control.blame import Blame
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.masked import MASK, masked
from noxu.control.moments import FORMS, NOW
from noxu.control.object_states import ObjectName, ObjectState, PastObject
from noxu.control.past import TimeTravel
from noxu.registry.known_fields import unknown
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.ownership import type_of
from noxu.registry.resource import Resource
from noxu.values import Object
from noxu_storage.types import Revision


async def _object(call: ControlCall) -> PastObject:
    """The object that a call is about. Raises ApiError."""
    travel, query = call.control.part(TimeTravel), call.query
    named = ObjectName(query["type"], query["name"], query["namespace"])
    return await object_states.find(travel, await travel.moments.find(query["at"]), named)


# -- blame -------------------------------------------------------------------------------------------------------------


async def blame(call: ControlCall) -> Object:
    """The lines of an object, each with the revision that wrote it last, and who wrote these revisions."""
    past, store = await _object(call), call.plane.store
    found = await object_states.existing(past, store)
    blamed = Blame(await offload(past.resource.size, type_of, past.resource))
    managers: dict[Revision, Object] = {}
    before: Object | None = None

    def add(states: list[ObjectState]) -> None:
        nonlocal before
        for revision, value in states:
            managers[revision] = writers.manager_of(before, value)
            before = value
            seen = masked(value) if call.query["mask"] else value
            blamed.add(revision, seen if call.query["managedFields"] else _without_owners(seen))

    async with object_states.looking_back():
        async for states in object_states.states(past, store, found.revisions):
            await offload(_weight(states), add, states)
    lines = await offload(LOOP_LIMIT + 1, _described, blamed)
    history = call.control.server.history
    return {
        "revision": past.moment.revision,
        "object": past.described,
        "complete": found.is_complete,
        "lines": lines,
        "writes": [
            await writers.writer(history, revision, managers[revision])
            for revision in sorted({line["revision"] for line in lines})
        ],
    }


def _described(blamed: Blame) -> list[Object]:
    return [line._asdict() for line in blamed.lines()]


def _weight(states: list[ObjectState]) -> int:
    """Few small states are compared in the loop."""
    return len(states) * 2048


def _without_owners(value: Object) -> Object:
    metadata = {name: item for name, item in value["metadata"].items() if name != "managedFields"}
    return {**value, "metadata": metadata}


# -- bisect ------------------------------------------------------------------------------------------------------------


async def bisect(call: ControlCall) -> Object:
    """The first revision at which a condition on an object was true, and all changes of the condition with their writers."""
    past, store, condition = await _object(call), call.plane.store, call.query["condition"]
    met = await offload(LOOP_LIMIT + 1, _condition, condition, past.resource)
    found = await object_states.existing(past, store)
    managers: dict[Revision, Object] = {}
    before: Object | None = None
    async with object_states.looking_back():
        async for states in object_states.states(past, store, found.revisions):
            seen = len(met.changes)
            await offload(LOOP_LIMIT + 1, met.add, states)  # in a thread: an expression may take long
            changed = {change.revision for change in met.changes[seen:]}
            for revision, value in states:
                if revision in changed:
                    managers[revision] = writers.manager_of(before, value)
                before = value
    history = call.control.server.history
    return {
        "object": past.described,
        "condition": condition,
        "revision": met.first,
        "states": met.states,
        "complete": found.is_complete,
        "changes": [
            {
                "met": change.is_met,
                **({"why": change.why} if change.why else {}),
                **await writers.writer(history, change.revision, managers[change.revision]),
            }
            for change in met.changes
        ],
    }


def _condition(text: str, resource: Resource) -> ConditionHistory:
    """Raises ApiError BadRequest."""
    try:
        history = ConditionHistory(text)
    except ValueError as error:
        raise errors.bad_request(f"condition: {text!r} is no condition on self in CEL: {error}") from None
    if impossible := unknown(text, resource):
        raise errors.bad_request(f"condition: {impossible}")
    return history


# -- routes ------------------------------------------------------------------------------------------------------------


_OBJECT: Final[Arguments] = {
    "type": Argument(TEXT, "any name of the kind, as kubectl knows it", required=True),
    "name": Argument(TEXT, "the name of the object", required=True),
    "namespace": Argument(TEXT, "its namespace, by default default", ""),
    "at": Argument(TEXT, f"the moment up to which its past is looked at: {FORMS}", NOW),
}
ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/blame",
        blame,
        "Show the revision that wrote each line of an object last.",
        {
            **_OBJECT,
            "managedFields": Argument(BOOLEAN, "whether to show managedFields", default=False),
            "mask": MASK,
        },
    ),
    ControlRoute(
        "GET",
        "/_noxu/bisect",
        bisect,
        "Find the first revision at which a condition on an object was true.",
        {**_OBJECT, "condition": Argument(TEXT, "a condition on self, in CEL", required=True)},
    ),
)
