"""When a server is idle: nothing is under way, each client has what it watches, and no client has asked for anything for a while.

    {"quiet": 0.1, "seconds": 0.32, "requests": 14}        what the wait has taken, and what was asked meanwhile

It replaces sleeps and polls in tests of controllers. A controller that has something to do reads or writes; one that has not
is silent, but for the renewal of its Lease and for Events, which are ignored by default. So the server is idle when

- no request is being handled, apart from watches and from those below /_noxu/,
- every watch has sent the newest event of what it selects, and its client has taken it: on Linux the kernel knows of unsent and
  unacknowledged bytes, elsewhere only the quiet time says so,
- no controller of this server has a key to reconcile,
- no program that Noxu has started is at work (`program_work`; on Linux only),
- for `quiet` seconds all of this was so, and no client has asked for anything.

A client that polls is never quiet, and another client that computes for longer than the quiet time looks idle. Views that are
held by a fault do not count: their clients have seen what they may see.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from noxu.api.errors import ApiError, bad_request
from noxu.control.arguments import DURATION, TEXTS, Argument
from noxu.control.calls import ControlCall, ControlRoute
from noxu.control.program_work import ProgramLooks, WorkOfPrograms
from noxu.control.running import Activity
from noxu.control.settling import busy
from noxu.controllers.controller import Reconciler
from noxu.values import Object

QUIET: Final = 0.1  # seconds
WITHIN: Final = 10.0  # seconds
LONGEST: Final = 3600.0  # seconds
IGNORED: Final = ("leases", "events")
LOOK_EVERY: Final = 0.005  # seconds
_SHOWN: Final = 10
"""What is listed of each kind when the time is up."""


async def until_idle(
    activity: Activity,
    controllers: Sequence[Reconciler[Any]],
    *,
    quiet: float = QUIET,
    within: float = WITHIN,
    ignore: Collection[str] = IGNORED,
    programs: WorkOfPrograms | None = None,
    next_own: Callable[[], float] | None = None,
) -> Object:
    """Return when the server has been idle for `quiet` seconds. `ignore` are plurals; `programs` those of the server.

    `next_own`: in how many seconds the server itself will do something. If there are no other clients than the programs, it is
    given, and the answer comes when it is known that nothing will happen in the quiet time (`program_sleep`): "until" says for
    how many seconds from now.

    Raises ApiError 504 after `within` seconds.
    """
    if not 0 <= quiet <= within <= LONGEST:
        raise bad_request(
            f"quiet is at most timeout, and that at most an hour: quiet={quiet:g} s, timeout={within:g} s"
        )
    time = asyncio.get_running_loop().time
    began, before = time(), activity.requests
    busy_until, looks = 0.0, ProgramLooks(programs, quiet, foresees=next_own is not None)
    while True:
        has_programs = looks.look(activity)
        if has_programs:  # what they had sent when they were looked at arrives before the requests are looked at
            await _read_sockets()
        reasons = _reasons(activity, controllers, ignore)
        now = time()
        if reasons:
            busy_until = now
        quiet_since, working = looks.judged(now, max(busy_until, activity.last(ignore)))
        quiet_since = max(quiet_since, began)
        if not reasons and now - quiet_since >= quiet:
            return {"quiet": quiet, "seconds": round(now - began, 6), "requests": activity.requests - before}
        if not reasons and next_own is not None:
            until = min(looks.sleep_until(quiet_since), now + next_own())
            if until > quiet_since + quiet:
                return {
                    "quiet": quiet,
                    "seconds": round(now - began, 6),
                    "requests": activity.requests - before,
                    "until": until - now,
                }
        if now - began >= within:
            asked = f"{activity.requests - before} requests were answered meanwhile"
            why = "; ".join(reasons) or working or f"no {quiet:g} s passed without a request"
            raise ApiError(504, f"the server is not idle after {within:g} s: {why}; {asked}", "Timeout", {})
        every = looks.pause(busy=bool(reasons)) if has_programs else LOOK_EVERY
        await asyncio.sleep(every if reasons else min(every, max(quiet_since + quiet - now, 0.0005)))


async def _read_sockets() -> None:
    """Let the event loop read what has arrived, and begin the requests in it."""
    for _ in range(2):
        await asyncio.sleep(0)


def _reasons(activity: Activity, controllers: Sequence[Reconciler[Any]], ignored: Collection[str]) -> list[str]:
    """Why the server is not idle, in words; [] if it is."""
    reasons = activity.under_way(ignored)
    for name, keys in busy(controllers).items():
        reasons.append(
            f"{name} has {', '.join(keys[:_SHOWN])}{f' and {len(keys) - _SHOWN} more' if len(keys) > _SHOWN else ''}"
        )
    return [*reasons[:_SHOWN], f"and {len(reasons) - _SHOWN} more"] if len(reasons) > _SHOWN else reasons


async def _idle(call: ControlCall) -> Object:
    asked = {**call.query, "within": call.query["timeout"]}
    del asked["timeout"]
    activity, programs = call.control.server.interventions.activity(), call.control.part(WorkOfPrograms)
    return await until_idle(activity, call.plane.all_controllers, **asked, programs=programs)


ROUTES: Final = (
    ControlRoute(
        "GET",
        "/_noxu/idle",
        _idle,
        "Answer when nothing is under way, and no client has asked for anything for a while.",
        query={
            "quiet": Argument(DURATION, "for how long no client asks for anything", QUIET),
            "timeout": Argument(DURATION, "after which time to give up, with 504", WITHIN),
            "ignore": Argument(TEXTS, "resources that do not count", IGNORED),
        },
    ),
)
