"""What faults do to one stream of a watch: hold it at a revision, and lose, repeat or keep back its events.

A stream that faults may hit is not sent its events by the fan-out: it takes them itself, one by one, as a stream does that has
fallen behind. So what it has sent stays in order, and it goes on where it was when the faults are over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Literal

from noxu.control.faults.armed import Armed, Asked
from noxu_storage.types import Key, Revision

Step = Literal["send", "close", "expire"] | float
"""`float`: the stream waits for so many seconds; `expire`: it ends with 410, so its client lists again."""

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
        self._limit = min((revision for _, revision in views), default=None)
        self.holds = any(rule.effect.parameters["what"] == "hold" for rule, _ in views)
        """Whether the client must not see what it has missed when this is over."""
        self.sends_bookmarks = not any(
            rule.effect.parameters.get("what") == "silent" for rule in armed.rules_about(watch)
        )

    def limit(self) -> Revision | None:
        """The revision that the stream may show at most; None: all."""
        return self._limit

    def steps(self, key: Key) -> Sequence[Step]:
        """What happens instead of sending the event of an object."""
        asked = self._watch._replace(namespace=key.partition.removesuffix("/"), name=key.name)
        steps: list[Step] = ["send"]
        for hit in self._armed.hits(asked, self._now(), "event"):
            what = hit.rule.effect.parameters["what"]
            if what == "late":
                steps.insert(0, self._armed.delay(hit))
            elif what in _STEPS:
                steps = [step for before in steps for step in (_STEPS[what] if before == "send" else (before,))]
        return steps


def of(armed: Armed, watch: Asked, now: Callable[[], datetime]) -> StreamFaults | None:
    """The faults of a stream; None: there are no rules about it."""
    if not armed.views(watch, now()) and not armed.rules_about(watch):
        return None
    return StreamFaults(armed, watch, now)
