"""The life of a write: the stages of each action in order, and the driver that runs them. No other module defines an order.

    arrive   read → decode → PRUNE → refuse unknown fields → check the URL → default → find
    decide   track managers → MUTATE → PRUNE → default → prevent escalation → check the resourceVersion → set system fields
             → prepare → allocate → validate → authorize creation → VALIDATE
    store    encode → claim → persist → wait for controllers

Each action is a tuple of the same stages. A stage is a function of one `Draft`, in the module of its phase: `write.arrive` (of
/scale: `write.scale`), `write.decide` and `write.store`. It refuses a write by raising ApiError. One that waits returns an
awaitable, which the driver awaits in the event loop. Everything else may run in a thread: drafts that are large do. In the
event loop a stage that would take long raises LoopBudgetExceeded, and is repeated in a thread.

If another write changes the object meanwhile, the driver begins again with a new draft, which finds the new stored object. The
attempts are counted (`persistence.attempt_again`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final

from noxu.api.errors import ApiError
from noxu.clock import rfc3339_now
from noxu.cpu_budget import CURRENT
from noxu.registry import explain
from noxu.registry.conversion.converters import entry_at
from noxu.registry.draft import (
    OPERATIONS,
    Action,
    Draft,
    NameTaken,
    Outcome,
    Stage,
    Superseded,
    WriteEnvironment,
    WriteRequest,
    Written,
)
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.registry.persistence import attempt_again
from noxu.registry.resource import prepared
from noxu.registry.trace import Trace
from noxu.registry.turns import LoopBudget, LoopBudgetExceeded, loop_turn
from noxu.registry.write import arrive, decide, scale, store

_ARRIVE: Final[tuple[Stage, ...]] = (
    arrive.decode, arrive.prune, arrive.refuse_unknown, arrive.check_url, arrive.default
)  # fmt: skip
_OWN: Final[tuple[Stage, ...]] = (decide.drop_duplicate_owners, decide.track_managers)
_MUTATE: Final[tuple[Stage, ...]] = (
    decide.mutate, decide.prune_mutated, decide.default_mutated, decide.prevent_escalation
)  # fmt: skip
_CREATE: Final[tuple[Stage, ...]] = (decide.set_system_fields, decide.prepare, decide.allocate, decide.validate)
_UPDATE: Final[tuple[Stage, ...]] = (
    decide.check_resource_version, *_CREATE, decide.authorize_creation, decide.admit, decide.keep_times
)  # fmt: skip
_STORE: Final[tuple[Stage, ...]] = (store.encode, store.claim, store.persist, store.wait_for_controllers)
_SCALE: Final[tuple[Stage, ...]] = (
    decide.drop_duplicate_owners, *_MUTATE, scale.check_scale, *_UPDATE, decide.prune_applied, *_STORE
)  # fmt: skip

WRITE_STAGES: Final[dict[Action, tuple[Stage, ...]]] = {
    Action.CREATE: (
        arrive.read_body, *_ARRIVE, *_OWN, decide.refuse_terminating, *_MUTATE, *_CREATE, decide.admit, *_STORE
    ),
    Action.REPLACE: (arrive.read_body, *_ARRIVE, arrive.find, *_OWN, *_MUTATE, *_UPDATE, *_STORE),
    Action.PATCH: (arrive.read_patch, arrive.find, arrive.patch, *_ARRIVE, *_OWN, *_MUTATE, *_UPDATE, *_STORE),
    Action.APPLY: (
        arrive.find, arrive.read_applied, arrive.merge, arrive.retype, arrive.check_url, arrive.default,
        decide.drop_duplicate_owners, decide.refuse_terminating, *_MUTATE, *_UPDATE, decide.prune_applied, *_STORE
    ),
    Action.REPLACE_SCALE: (scale.read_scale, arrive.find, scale.set_scale, *_SCALE),
    Action.PATCH_SCALE: (scale.read_scale_patch, arrive.find, scale.patch_scale, *_SCALE),
    Action.APPLY_SCALE: (arrive.find, arrive.read_applied, scale.merge_scale, *_SCALE),
    Action.DELETE: (
        arrive.find, decide.check_preconditions, decide.await_grace, decide.mutate, decide.admit, decide.finalize, *_STORE
    ),
    Action.REVIEW: (arrive.read_body, *_ARRIVE, *_OWN, *_MUTATE, decide.validate, decide.admit, decide.answer),
    Action.ACT: (arrive.read_body, *_ARRIVE, *_OWN, *_MUTATE, decide.check_action, decide.admit, decide.act),
    Action.CONNECT: (decide.read_options, decide.mutate, decide.prune_options, decide.admit, decide.connect),
}  # fmt: skip

GENERATE_NAME_ATTEMPTS: Final = 8


async def write(
    environment: WriteEnvironment, request: WriteRequest, outcome: Outcome | None = None, trace: Trace | None = None
) -> Written:
    """Run the stages of a request. Raises ApiError, StoreError. See `draft.RunWrite`."""
    resource, outcome = request.resource, Outcome() if outcome is None else outcome
    if not resource.versions.is_prepared:
        await prepared(resource.versions)
    stages = WRITE_STAGES[request.action]
    outcome.trace, warned = trace, len(outcome.warnings)  # the first ones are those of the request itself
    operation = OPERATIONS[request.action]
    draft = Draft(request, resource, operation, environment, outcome, rfc3339_now(environment.clock), request.weight)
    names, attempts, is_certain = 1, 1, False
    try:
        while True:
            try:
                await (run(draft, stages) if trace is None else explain.run(draft, stages, run))
                break
            except NameTaken as taken:
                if names == GENERATE_NAME_ATTEMPTS:
                    raise taken.error from None
                names += 1
            except Superseded:
                pass
            decide.release(draft)
            attempts = await attempt_again(attempts, resource.group_resource, request.name)
            now = rfc3339_now(environment.clock)  # each attempt is a new write, at its own time
            # nothing of the last attempt remains but what it took, and the warnings of the request itself
            found = draft.outcome.of_next_attempt(warned)
            draft = Draft(request, resource, operation, environment, found, now, draft.weight)
        is_certain = True
    except ApiError as error:
        is_certain = error.code < 500  # else the object may be stored later: its addresses stay taken
        raise
    finally:
        if draft.chosen.reservation is not None:
            decide.release(draft, is_certain=is_certain)
        if draft.outcome is not outcome:
            outcome.take(draft.outcome)  # the caller holds the first one, and its lists
    written = draft.written
    assert written is not None
    shown = None if draft.stored is None else draft.stored.shown
    if resource.versions.converter is not None and written.entry not in (None, shown):
        written.entry = await entry_at(written.entry, resource)  # the stored entry itself is shared with the cache
    return written


async def run(draft: Draft, stages: Sequence[Stage]) -> None:
    """Run stages on a draft. Raises ApiError, StoreError, Superseded."""
    at = 0
    while at < len(stages):
        if draft.weight <= LOOP_LIMIT:
            if loop_turn.is_over:
                await loop_turn.free()
            budget = LoopBudget()
            token = CURRENT.set(budget)  # what loops asks it, wherever it is (`noxu.cpu_budget`)
            try:
                at, waits = _run_until_wait(draft, stages, at)
            finally:
                CURRENT.reset(token)
                if budget.until:
                    loop_turn.spend(budget.seconds())  # other requests come first, if it was long
        else:
            at, waits = await offload(draft.weight, _run_until_wait, draft, stages, at)
        if waits is not None:
            await waits


def _run_until_wait(draft: Draft, stages: Sequence[Stage], at: int) -> tuple[int, Awaitable[None] | None]:
    """Run stages from index `at` to the first that waits: (the index of the next stage, what to await or None).

    A stage that takes too long for the event loop makes the draft a large one; it is the next stage then.
    """
    while at < len(stages):
        try:
            waits = stages[at](draft)
        except LoopBudgetExceeded:
            draft.weight = LOOP_LIMIT + 1  # the stage may have changed the draft, and is repeated as a whole
            return at, None
        at += 1
        if waits is not None:
            return at, waits
    return at, None
