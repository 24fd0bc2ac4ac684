"""What faults do to one stream of a watch: hold it at a revision, and lose, repeat or keep back its events.

A stream that faults may hit is not sent its events by the fan-out: it takes them itself, one by one, as a stream does that has
fallen behind. So what it has sent stays in order, and it goes on where it was when the faults are over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Literal

from noxu.control.faults.armed import Armed, Asked, ClientView
from noxu.control.faults.partial import Hidden, as_seen
from noxu_storage.types import Key, Revision

Step = Literal["send", "close", "expire"] | float
"""`float`: the stream waits for so many seconds; `expire`: it ends with 410, so its client lists again."""

Ending = Literal["stays", "expires if behind", "expires"]
"""How a stream goes on when a view is over: where it was, or it ends with 410."""

_STEPS: Final[dict[str, Sequence[Step]]] = {
    "drop": (),
    "duplicate": ("send", "send"),
    "close": ("close",),
    "expire": ("expire",),
}


class StreamFaults:
    """Faults of the stream that `watch` has asked for. `now` is object time."""

    def __init__(self, armed: Armed, watch: Asked, now: Callable[[], datetime]) -> None:
        self._armed = armed
        self._watch = watch
        self._now = now
        views = armed.views(watch, now())
        self._limit = min((view.revision for view in views if view.is_whole), default=None)
        self.hidden = hidden_of(views)
        """Objects that are shown as they were."""
        self.missed: set[str] = set()
        """The rules that have kept back an event."""
        self.held = {
            view.rule.name for view in views if view.rule.effect.parameters["what"] == "hold" and view.is_whole
        }
        self.sends_bookmarks = not any(
            rule.effect.parameters.get("what") == "silent" for rule in armed.rules_about(watch)
        )

    as_seen = staticmethod(as_seen)

    def limit(self) -> Revision | None:
        """The revision that the stream may show at most; None: all."""
        return self._limit

    def steps(self, key: Key, revision: Revision) -> Sequence[Step]:
        """What happens instead of sending the event of an object. A stream may be behind: what was before a view is shown."""
        missed = {objects.rule for objects in self.hidden if objects.has(key) and objects.revision < revision}
        if missed:
            self.missed |= missed  # in place: it lasts as long as the views do
            return ()
        asked = self._watch._replace(namespace=key.partition.removesuffix("/"), name=key.name)
        steps: list[Step] = ["send"]
        for hit in self._armed.hits(asked, self._now(), "event"):
            what = hit.rule.effect.parameters["what"]
            if what == "late":
                steps.insert(0, self._armed.delay(hit))
            elif what in _STEPS:
                steps = [step for before in steps for step in (_STEPS[what] if before == "send" else (before,))]
        return steps

    def follow(self, before: StreamFaults | None) -> Ending:
        """Go on where the faults before ended. How a stream goes on whose view is over."""
        if before is None:
            return "stays"
        there = {objects.rule for objects in self.hidden}
        self.missed |= before.missed & there
        return _ending(before.missed - there, before.held - self.held)

    def end(self) -> Ending:
        """How a stream goes on when there are no faults about it any more."""
        return _ending(self.missed, self.held)


def _ending(missed: set[str], held: set[str]) -> Ending:
    return "expires" if missed else "expires if behind" if held else "stays"


def hidden_of(views: Sequence[ClientView]) -> list[Hidden]:
    """The objects of views that are not about everything that was asked for."""
    return [
        Hidden(view.rule.name, _partition(view.rule.match.namespace), view.rule.match.name, view.revision)
        for view in views
        if not view.is_whole
    ]


def _partition(namespace: str | None) -> str | None:
    return None if namespace is None else f"{namespace}/"


def of(armed: Armed, watch: Asked, now: Callable[[], datetime]) -> StreamFaults | None:
    """The faults of a stream; None: there are no rules about it."""
    if not armed.views(watch, now()) and not armed.rules_about(watch):
        return None
    return StreamFaults(armed, watch, now)
