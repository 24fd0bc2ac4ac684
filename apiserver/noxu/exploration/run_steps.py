"""The steps of a run, and when it is idle after each: the programs run, watch what they have watched in the clean runs, and are silent.

Every wait has a limit. A controller with a view of the past may be busy in vain: it is waited for only a while.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from noxu.api.errors import ApiError
from noxu.exploration import run_programs, steps
from noxu.exploration.fair_clock import slowness
from noxu.exploration.findings import TRANSIENT
from noxu.exploration.meanwhile import meanwhile
from noxu.exploration.moves import Moves
from noxu.exploration.passing import pass_time
from noxu.exploration.recording import CONTROLLER, ObjectPlace, StepResult
from noxu.exploration.run_programs import RunPrograms, tail
from noxu.exploration.server import ExploredServer
from noxu.exploration.settings import Exploration
from noxu.exploration.transitions import is_deleting
from noxu.testing.errors import WaitTimeout
from noxu.values import Object

FIRST_QUIET: Final = 1.0  # seconds without a request, after which a program has started that is not known yet
LOOKS_EVERY: Final = 0.02  # seconds
WITH_VIEW: Final = 1.5  # seconds for a run to become idle whose controller sees the past
SILENT: Final = 0.3  # seconds
LISTS_WITHIN: Final = 5.0  # seconds
LOOKS_AT_SLEEP: Final = 1.0  # seconds
MOST_SLEEP: Final = 70.0  # seconds between two attempts: kopf waits for a minute
BEFORE_SLEEP: Final = 8.0  # seconds: kopf ends what it has for an object when nothing has come of it for 5 s


class RunFailed(Exception):
    """A run cannot begin or go on. The message says why."""


def start(server: ExploredServer, programs: RunPrograms, exploration: Exploration) -> StepResult:
    """Wait for the first request of each program, and until it is idle."""
    began, until = time.monotonic(), programs.clock() + exploration.start_within
    while True:
        asked = {request.user for request in server.requests()}
        if asked.issuperset(programs.users):
            break
        if ended := run_programs.ended_beside(programs, exploration):
            raise RunFailed(ended)
        if all(program.statuses for program in programs.started):
            statuses = ", ".join(str(program.statuses[0]) for program in programs.started)
            raise RunFailed(
                f"the controller ended with status {statuses} before it asked for anything:\n{tail(programs.log)}"
            )
        if programs.clock() > until:
            raise RunFailed(
                f"the controller has not asked for anything within {exploration.start_within:g} s: does it use "
                f"$KUBECONFIG?\n{tail(programs.log)}"
            )
        time.sleep(LOOKS_EVERY)
    quiet = exploration.quiet if programs.known.watches else max(exploration.quiet, FIRST_QUIET)
    # informers of client-go whose lists are refused three times wait up to eleven seconds before they watch
    never_idle = _settle(server, programs, quiet, max(programs.known.idle_within, exploration.start_within))
    return StepResult("start", time.monotonic() - began, never_idle=never_idle)


def run_step(
    server: ExploredServer,
    programs: RunPrograms,
    step: steps.WorkloadStep,
    exploration: Exploration,
    number: int,
    moves: Moves,
) -> StepResult:
    """A view lasts until the workload waits for something: the controller cannot reach what it does not see.

    Or until it goes on while something ends: the controller cannot let go what it does not see, and the workload would change that.
    """
    began = time.monotonic()
    failure = ""
    waits = step.kind != "wait" or number > moves.through
    ends = waits if step.kind == "wait" else _hides_an_end(server, moves)
    if ends and server.end_views(moves):
        _await_lists(server, moves)
        time.sleep(exploration.quiet)  # as at the end
        _settle(server, programs, exploration.quiet)
    if not waits:
        programs.left_out = max(programs.left_out, step.wanted["timeout"])
    else:
        try:
            with _ending_views(server, programs, moves) if step.kind == "wait" else contextlib.nullcontext():
                steps.run(step, server)
        except (ApiError, WaitTimeout, LookupError, ValueError) as error:
            failure = _after_sleep(server, programs, step, exploration, str(error))
    _await_lists(server, moves)
    never_idle = settle_with_moves(server, programs, exploration.quiet, moves)
    if programs.left_out and not never_idle and not moves.views:
        pass_time(server, programs.left_out)
        programs.left_out = 0.0
        never_idle = _settle(server, programs, exploration.quiet)
    return StepResult(f"step {number}: {step.title}", time.monotonic() - began, failure, never_idle, bool(moves.views))


def _hides_an_end(server: ExploredServer, moves: Moves) -> bool:
    """Whether an object waits for its finalizers that is shown to the controller as it was before."""
    return bool(moves.frozen) and any(
        place.resource in moves.frozen and is_deleting(value) for place, value in server.stored()
    )


def _after_sleep(
    server: ExploredServer,
    programs: RunPrograms,
    step: steps.WorkloadStep,
    exploration: Exploration,
    failure: str,
) -> str:
    """What a `wait` says when the programs have slept until a moment of their own: they may try again then."""
    if step.kind == "wait" and exploration.sleeps:
        for pause in _pauses(server, programs, exploration, 0.0):
            time.sleep(pause)
            try:
                steps.run(step._replace(wanted={**step.wanted, "timeout": LOOKS_EVERY}), server)
            except WaitTimeout:
                continue
            return ""
    return failure


def _pauses(
    server: ExploredServer, programs: RunPrograms, exploration: Exploration, patience: float
) -> Iterator[float]:
    """How long to wait before each further look at what a controller may still do: until it is known to do nothing.

    `patience`: for so many seconds if it is not known. It is patience anew when the programs have slept until a moment of their
    own, of which all in a run are `exploration.sleeps` seconds at most. One that sleeps again and again is not waited for longer.
    """
    latest = time.monotonic() + patience + exploration.sleeps + BEFORE_SLEEP
    until = time.monotonic() + (max(patience, BEFORE_SLEEP) if exploration.sleeps else patience)
    while True:
        left = exploration.sleeps - programs.slept
        asleep = server.asleep_for(left) if left > 0 else 0.0
        if asleep:
            asleep = min(asleep, LOOKS_AT_SLEEP)  # it may wake sooner
            programs.slept += asleep
            until = time.monotonic() + asleep + BEFORE_SLEEP
        elif time.monotonic() >= until or server.is_silent_until(until):
            return
        if time.monotonic() >= latest:
            return
        yield asleep + exploration.quiet


def _ending_views(server: ExploredServer, programs: RunPrograms, moves: Moves) -> AbstractContextManager[None]:
    """A view that begins while the workload waits ends when the controller has had the time to act on it."""
    return meanwhile("views", lambda over: end_views_after_a_while(server, programs, moves, over.wait))


def end_views_after_a_while(
    server: ExploredServer, programs: RunPrograms, moves: Moves, is_over: Callable[[float], bool]
) -> None:
    """`is_over` waits, for so many seconds at most."""
    acting = _ActingOnTheView(server, programs, WITH_VIEW)
    while not is_over(LOOKS_EVERY):
        if moves.views and acting.is_over(or_silent=True):  # the workload asks, too, so the run is not idle
            server.end_views(moves)
            return


class _ActingOnTheView:
    """How long a controller that sees the past is given to act on it.

    It has a while from when it runs and watches, as before it sees nothing of the past; and longer if it still does what it has not
    done before. What it tries in vain, again and again, because it sees no reason not to, is no fault of its own.
    """

    def __init__(self, server: ExploredServer, programs: RunPrograms, least: float) -> None:
        self._server, self._programs, self._least = server, programs, least
        self._lasts = max(least, 2 * programs.known.start)
        self._runs_since: float | None = None  # seconds since 1970; None: it does not run yet
        self._silent_from = self._at_latest = 0.0  # of the clock of the programs

    def is_over(self, *, or_silent: bool = False) -> bool:
        """Ask this while there is a view. `or_silent`: it has done all when it asks for nothing more."""
        now = self._programs.clock()
        self._at_latest = self._at_latest or now + self._programs.known.idle_within + self._lasts
        if self._runs_since is None and not run_programs.lacking(self._server, self._programs):
            self._runs_since, self._silent_from = time.time(), now + self._lasts
            self._at_latest = self._silent_from + self._programs.known.idle_within
        if now > self._at_latest or self._runs_since is None:
            return now > self._at_latest
        asked = run_programs.requests_since(self._server, self._programs, self._runs_since)
        is_in_vain = time.time() >= self._runs_since + self._least and run_programs.is_in_vain(asked)
        is_silent = now >= self._silent_from and all(request.at < time.time() - SILENT for request in asked)
        return is_in_vain or (or_silent and is_silent)


def _await_lists(server: ExploredServer, moves: Moves) -> None:
    """A client whose stream has ended lists again, after a pause of its own. One that does not is not waited for."""
    until = time.monotonic() + LISTS_WITHIN
    while moves.to_list and time.monotonic() < until:
        time.sleep(LOOKS_EVERY)
        asked = [request for request in server.requests(verb="watch") if request.user.startswith(CONTROLLER)]
        for resource, since in [*moves.to_list.items()]:
            if any(request.resource == resource and request.at >= since for request in asked):
                del moves.to_list[resource]
    moves.to_list.clear()


def settle_with_moves(server: ExploredServer, programs: RunPrograms, quiet: float, moves: Moves) -> str:
    """Wait until the run is idle. Returns why it is not, "" if it is.

    With a view of the past, which a move may bring at any moment, only until the controller has acted on it.
    """
    until = programs.clock() + programs.known.idle_within
    acting = _ActingOnTheView(server, programs, max(WITH_VIEW, 3 * quiet))
    while True:
        had_views = bool(moves.views)  # one that begins from now on is not acted on when the run is idle
        if had_views and acting.is_over():
            return ""
        never_idle = _settle(server, programs, quiet, 2 * quiet)
        if had_views and moves.views and not never_idle:
            return ""
        if not moves.views and (not never_idle or programs.clock() > until - LOOKS_EVERY):
            return never_idle


def until_restored(
    server: ExploredServer, programs: RunPrograms, exploration: Exploration, before: Mapping[ObjectPlace, Object]
) -> None:
    """Wait until what was there is there again, for as long as the controller may sleep."""
    until = time.monotonic() + exploration.resync
    while time.monotonic() < until and not is_as_before(before, dict(server.stored())):
        time.sleep(LOOKS_EVERY * 10)
    _settle(server, programs, exploration.quiet)


def is_as_before(before: Mapping[ObjectPlace, Object], now: Mapping[ObjectPlace, Object]) -> bool:
    """Whether each object is there that was, with what is wanted of it."""
    return all(
        place.resource in TRANSIENT or (place in now and _wanted(now[place]) == _wanted(value))
        for place, value in before.items()
    )


def _wanted(value: Object) -> Object:
    return {name: part for name, part in value.items() if name not in ("metadata", "status")} | {
        "labels": (value.get("metadata") or {}).get("labels")
    }


def end(server: ExploredServer, programs: RunPrograms, moves: Moves, exploration: Exploration) -> StepResult:
    """The faults are over: what the controller sees is the present, and it may catch up."""
    began = time.monotonic()
    if server.end_views(moves):
        _await_lists(server, moves)
        time.sleep(exploration.quiet)  # what is shown only now has to arrive: it is no request
    return StepResult("end", time.monotonic() - began, never_idle=_settle(server, programs, exploration.quiet))


def more_time(
    server: ExploredServer,
    programs: RunPrograms,
    exploration: Exploration,
    end: StepResult,
    is_usual: Callable[[Sequence[tuple[ObjectPlace, Object]]], bool],
) -> StepResult:
    """The end is not the usual one: a controller that is silent may be about to go on, unless it is known to sleep for longer.

    And a pod may be about to be ready: as much object time passes as while the workload waits.
    """
    began, never_idle = time.monotonic(), ""
    passes = max((step.wanted["timeout"] for step in exploration.workload if step.kind == "wait"), default=0.0)
    if passes and not is_usual(server.stored()):
        pass_time(server, passes)
        never_idle = _settle(server, programs, exploration.quiet)
    for pause in _pauses(server, programs, exploration, programs.known.patience):
        if never_idle or is_usual(server.stored()):
            break
        time.sleep(pause)
        never_idle = _settle(server, programs, exploration.quiet)
    return StepResult(end.title, end.seconds + time.monotonic() - began, never_idle=never_idle)


def tries_again(server: ExploredServer, programs: RunPrograms, fired: Sequence[Object]) -> bool:
    """Whether a plan has refused the last attempts of a program, which has tried again before, and sleeps until the next one."""
    *earlier, last = [hit for hit in fired if "request" in hit] or [{}]
    if not any(hit["rule"] == last["rule"] for hit in earlier):
        return False
    asked = last["request"]
    same = [
        request.id
        for request in server.requests()
        if request.user in programs.users and (request.verb, request.resource) == (asked["verb"], asked["resource"])
    ]
    return same[-1:] == [asked["id"]] and server.asleep_for(MOST_SLEEP, 0.0) > 0


def _settle(server: ExploredServer, programs: RunPrograms, quiet: float, within: float = 0.0) -> str:
    """Wait until the run is idle, and each program runs and watches. Returns why it is not, "" if it is.

    `within`: so many seconds, at most; 0: as many as the clean runs suggest.
    """
    began, began_fair = time.monotonic(), programs.clock()
    until = began_fair + (within or programs.known.idle_within)
    longest = max(until, began_fair + programs.known.idle_within)  # for a program that an answer has asked to wait
    while True:
        left = max(until - programs.clock(), quiet)
        try:
            server.await_silence(quiet, left)
        except ApiError as error:
            reason = error.message.partition(": ")[2] or error.message  # how long it has taken the step knows
            elapsed = programs.clock()
            if elapsed < until - LOOKS_EVERY:
                continue  # for the rest of the time it has waited for a processor
            return reason + slowness(time.monotonic() - began, elapsed - began_fair)
        lacking = run_programs.lacking(server, programs)
        elapsed = programs.clock()
        # on a busy machine an answer is read late, and what follows its time as well
        late = max((time.monotonic() - began) - (elapsed - began_fair), 0.0)
        waits = _waits(server, programs.users, quiet + late)
        if not lacking and not waits:
            return ""
        if not lacking and elapsed + waits < longest:
            time.sleep(waits)  # it has been asked to wait, and is silent until then
            continue
        if elapsed > until:
            return lacking and lacking + slowness(time.monotonic() - began, elapsed - began_fair)
        time.sleep(LOOKS_EVERY)


def _waits(server: ExploredServer, users: list[str], quiet: float) -> float:
    """For how many seconds more an answer has asked a program to wait (Retry-After), and may it be silent after that."""
    asked = [
        request.at + request.seconds + request.retry_after
        for request in server.requests()
        if request.retry_after and request.user in users
    ]
    return max(max(asked, default=0.0) + quiet - time.time(), 0.0)
