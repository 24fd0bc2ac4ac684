"""The moves of a plan, made while its run goes on: each one when its trigger fires, after the one before.

The `nth` of a trigger counts the changes since the first step of the workload began, whichever moves were made by then.
A move looks at a change before its writer is answered, as a trigger of a fault does. So the next thing that the controller is
shown or asks for is under the move.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from noxu.api.errors import ApiError
from noxu.control.fault_routes import Faults
from noxu.control.fault_triggers import WRITER, fired_by
from noxu.control.faults import triggers
from noxu.control.faults.triggers import Trigger
from noxu.control.running import Control
from noxu.exploration.plans import views_of
from noxu.registry import kind_names
from noxu.registry.authors import Author, writing_as
from noxu.registry.draft import Action, WriteRequest
from noxu.registry.resource import Resource
from noxu.values import Object
from noxu_storage.types import Event, Revision

VIEW: Final = "explored-view"


class Moves:
    """A `LogWatcher`. `made` says what was done, for the report. `restart` kills the program, which is started again."""

    def __init__(self, control: Control, moves: Sequence[Object], user: str, restart: Callable[[], None]) -> None:
        self.made: list[Object] = []
        self._control = control
        self._moves = list(moves)
        self._user = user
        self._restart = restart
        self._triggers = [_trigger(move) for move in moves]
        self._seen = [0] * len(moves)  # changes that fire the trigger of each move, since the first step began
        self._marks: dict[str, Revision] = {}
        self.views: list[str] = []
        """The names of the views that are on."""
        self.through = 0
        """The number of the last step of the workload that is not to wait while they are on."""
        self.to_list: dict[str, float] = {}
        """The resources that the controller has to list again, because states of them were held; since when, in seconds since 1970."""
        self._held: set[str] = set()
        self.frozen: set[str] = set()
        """The resources of the views that are on and show one state."""
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> None:
        if self._moves:
            self._control.server.plane.cache.watchers[self] = None

    def begin_step(self, number: int) -> None:
        """A step of the workload begins."""
        revision = self._control.server.plane.store.revision
        while (n := len(self.made)) < len(self._moves) and self._moves[n]["when"].get("step") == number:
            self.made.append({"move": self._moves[n], "revision": revision})
            self._make(self._moves[n], revision)

    def end_views(self) -> bool:
        """What the controller sees is the present again. Returns whether it was not."""
        faults = self._control.part(Faults)
        there = {rule.name for rule in faults.armed.rules}
        for name in self.views:
            if name in there:
                faults.remove(name)
        had_views, self.views, self.through = bool(self.views), [], 0
        self.to_list |= dict.fromkeys(self._held, time.time())
        self._held.clear()
        self.frozen.clear()
        return had_views

    def stop(self) -> None:
        """Make no further move."""
        self._control.server.plane.cache.watchers.pop(self, None)

    # -- the log

    def deliver(self, events: Sequence[Event], revision: Revision) -> None:
        for event in events:
            fired = [self._fires(trigger, event) for trigger in self._triggers]
            self._seen = [seen + fires for seen, fires in zip(self._seen, fired, strict=True)]
            previous: Trigger | None = None
            while (n := len(self.made)) < len(self._moves) and fired[n]:
                trigger = self._triggers[n]
                if trigger is None or self._seen[n] < trigger.nth or trigger == previous:
                    break  # the same trigger again is about a later change
                self.made.append({"move": self._moves[n], "revision": event.revision})
                self._make(self._moves[n], event.revision)
                previous = (
                    None if self._moves[n].get("before") else trigger
                )  # of what is there before, the change is next

    def end(self) -> None:
        """What was missed while the cache was reset makes no move."""

    def _fires(self, trigger: Trigger | None, event: Event) -> bool:
        if trigger is None:
            return False
        resource = self._resource(trigger)
        if resource is None or event.key.collection != resource.collection:
            return False
        return fired_by(trigger, resource, event)

    def _resource(self, trigger: Trigger) -> Resource | None:
        """None: it is not served yet, so nothing of it can change."""
        try:
            served = self._control.server.plane.served_resources.current
            return kind_names.find(served, trigger.resource).versions.storage
        except LookupError:
            return None

    # -- making

    def _make(self, move: Object, revision: Revision) -> None:
        if "mark" in move:
            self._marks[move["mark"]] = revision - bool(move.get("before"))
        self.through = int(move.get("through", self.through))
        if move.get("release"):
            asyncio.get_running_loop().call_soon(self.end_views)
        for view in views_of(move):
            self._freeze(view, revision)
        if "faults" in move:
            self._control.part(Faults).add(move["faults"])
        if move.get("restart"):
            self._restart()
        if "delete" in move:
            task = asyncio.ensure_future(self._delete(move["delete"]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _freeze(self, view: Object, revision: Revision) -> None:
        name = f"{VIEW}-{len(self.views) + 1}"
        match = {field: view[field] for field in ("resource", "namespace", "name") if view.get(field)}
        rule = {
            "name": name,
            "match": {**match, "user": self._user},
            "view": "hold" if view.get("hold") else "freeze",
        }
        self.views.append(name)
        (self._held if view.get("hold") else self.frozen).add(view["resource"])
        at = self._marks.get(view.get("from", ""), revision)
        # not among the watchers of the log, which a rule changes
        asyncio.get_running_loop().call_soon(lambda: self._control.part(Faults).add([rule], at))

    async def _delete(self, wanted: Any) -> None:
        """Delete an object behind the controller's back."""
        plane = self._control.server.plane
        named = wanted if isinstance(wanted, dict) else {}
        resource = kind_names.find(plane.served_resources.current, named["resource"])
        request = WriteRequest(Action.DELETE, resource, named.get("namespace", ""), named["name"], user=WRITER)
        with writing_as(Author(verb="delete", user=WRITER.name)):
            try:
                await plane.writer.write(request)
            except ApiError:
                return  # it is gone already


def _trigger(move: Object) -> Trigger | None:
    """None: it waits for a step."""
    if "step" in move["when"]:
        return None
    trigger, _ = triggers.parse(move["when"])
    assert trigger is not None  # it was checked when the plan was read
    return trigger
