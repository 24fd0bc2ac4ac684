"""The stages of each kind of write in order, and the driver that runs them. No other module defines an order of stages.

    read → decode → PRUNE → refuse unknown fields → address → default → find → own → MUTATE → PRUNE → default → guard
         → lock → identify → prepare → allocate → validate → authorize creation → VALIDATE → encode → claim → persist → settle

Each action is a tuple of the same stages, here CREATE and REPLACE; they are in `registry.stages`, those that delete in
`registry.finalizing`, and the last ones in `registry.storing`. The driver runs them in order, small drafts in the event
loop, and drafts that are large, or take too long, in a thread. If another write changes the object meanwhile, the driver
restarts the tuple with the new stored object. Decoding is repeated, too, because the decoded body has become part of the
new object. The restarts are counted (`persistence.attempt_again`).

After mutating admission the object is pruned again, as KEP-2332 says (the reference does not do this).
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Final

from noxu.api.errors import ApiError
from noxu.cpu_budget import CURRENT
from noxu.go.time import format_time
from noxu.registry import explain
from noxu.registry.conversion.converters import entry_at
from noxu.registry.draft import Action, Draft, Environment, Outcome, WriteRequest, Written, draft_of
from noxu.registry.finalizing import await_grace, check_preconditions, finalize
from noxu.registry.offload import LOOP_LIMIT, loop_turn, offload
from noxu.registry.persistence import attempt_again
from noxu.registry.preparation import prepared
from noxu.registry.scaling import (
    check_scale,
    merge_scale,
    patch_scale,
    read_scale,
    read_scale_patch,
    set_scale,
)
from noxu.registry.stages import (
    NameTaken,
    Stage,
    Superseded,
    act,
    address,
    admit,
    allocate,
    answer,
    authorize_creation,
    check_action,
    claim,
    connect,
    decode,
    default,
    default_mutated,
    drop_duplicate_owners,
    find,
    guard,
    identify,
    keep_times,
    lock,
    merge,
    mutate,
    own,
    patch,
    prepare,
    prune,
    prune_applied,
    prune_mutated,
    prune_options,
    read_applied,
    read_body,
    read_options,
    read_patch,
    refuse_terminating,
    refuse_unknown,
    release,
    retype,
    validate,
)
from noxu.registry.storing import encode, persist, settle
from noxu.registry.trace import Trace
from noxu.registry.turns import LoopBudget, LoopBudgetExceeded

GENERATE_NAME_ATTEMPTS: Final = 8

_ARRIVE: Final[tuple[Stage, ...]] = (decode, prune, refuse_unknown, address, default)
_MUTATE: Final[tuple[Stage, ...]] = (mutate, prune_mutated, default_mutated, guard)
_DECIDE: Final[tuple[Stage, ...]] = (lock, identify, prepare, allocate, validate, authorize_creation, admit, keep_times)
_STORE: Final[tuple[Stage, ...]] = (encode, claim, persist, settle)

CREATE: Final = (
    read_body, *_ARRIVE, drop_duplicate_owners, own, refuse_terminating, *_MUTATE, identify, prepare, allocate, validate, admit,
    *_STORE
)  # fmt: skip
REPLACE: Final = (read_body, *_ARRIVE, find, drop_duplicate_owners, own, *_MUTATE, *_DECIDE, *_STORE)
PATCH: Final = (read_patch, find, patch, *_ARRIVE, drop_duplicate_owners, own, *_MUTATE, *_DECIDE, *_STORE)
APPLY: Final = (
    find, read_applied, merge, retype, address, default, drop_duplicate_owners, refuse_terminating, *_MUTATE, *_DECIDE,
    prune_applied, *_STORE
)  # fmt: skip
REPLACE_SCALE: Final = (
    read_scale,
    find,
    set_scale,
    drop_duplicate_owners,
    *_MUTATE,
    check_scale,
    *_DECIDE,
    prune_applied,
    *_STORE,
)
PATCH_SCALE: Final = (
    read_scale_patch,
    find,
    patch_scale,
    drop_duplicate_owners,
    *_MUTATE,
    check_scale,
    *_DECIDE,
    prune_applied,
    *_STORE,
)
APPLY_SCALE: Final = (
    find,
    read_applied,
    merge_scale,
    drop_duplicate_owners,
    *_MUTATE,
    check_scale,
    *_DECIDE,
    prune_applied,
    *_STORE,
)
DELETE: Final = (find, check_preconditions, await_grace, mutate, admit, finalize, *_STORE)
REVIEW: Final = (read_body, *_ARRIVE, drop_duplicate_owners, own, *_MUTATE, validate, admit, answer)
ACT: Final = (read_body, *_ARRIVE, drop_duplicate_owners, own, *_MUTATE, check_action, admit, act)
CONNECT: Final = (read_options, mutate, prune_options, admit, connect)

WRITE_STAGES: Final[dict[Action, tuple[Stage, ...]]] = {
    Action.CREATE: CREATE,
    Action.REPLACE: REPLACE,
    Action.PATCH: PATCH,
    Action.APPLY: APPLY,
    Action.REPLACE_SCALE: REPLACE_SCALE,
    Action.PATCH_SCALE: PATCH_SCALE,
    Action.APPLY_SCALE: APPLY_SCALE,
    Action.DELETE: DELETE,
    Action.REVIEW: REVIEW,
    Action.ACT: ACT,
    Action.CONNECT: CONNECT,
}


async def write(
    environment: Environment, request: WriteRequest, outcome: Outcome | None = None, trace: Trace | None = None
) -> Written:
    """Run the stages of a request. Raises ApiError, StoreError.

    `outcome` collects warnings and annotations, also of a refused write. `trace` collects a step for each stage; None
    disables tracing.
    """
    if not request.resource.versions.is_prepared:
        await prepared(request.resource.versions)
    draft = draft_of(request, environment, outcome, trace)
    stages = WRITE_STAGES[request.action]
    warned, names, attempts, is_certain = len(draft.outcome.warnings), 1, 1, False
    try:
        while True:
            draft.now = format_time(environment.clock.now())
            try:
                await (run(draft, stages) if trace is None else explain.run(draft, stages, run))
                break
            except NameTaken as taken:
                if names == GENERATE_NAME_ATTEMPTS:
                    raise taken.error from None
                names += 1
            except Superseded:
                pass
            release(draft)
            attempts = await attempt_again(attempts, request.resource.group_resource, request.name)
            draft.restart(warned)
        is_certain = True
    except ApiError as error:
        is_certain = error.code < 500
        raise
    finally:
        release(draft, is_certain=is_certain)
    written = draft.written
    assert written is not None
    if request.resource.versions.converter is not None and written.entry not in (None, draft.shown):
        written.entry = await entry_at(written.entry, request.resource)
    return written


async def run(draft: Draft, stages: Sequence[Stage]) -> None:
    """Run stages on a draft. Raises ApiError, StoreError, Superseded."""
    at = 0
    while at < len(stages):
        draft.in_loop = draft.weight <= LOOP_LIMIT
        if draft.in_loop:
            if loop_turn.is_over:
                await loop_turn.free()
            budget = LoopBudget()
            token = CURRENT.set(budget)
            try:
                at, waits = _run_until_wait(draft, stages, at)
            finally:
                CURRENT.reset(token)
                if budget.until:
                    loop_turn.spend(budget.seconds())
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
            draft.weight = LOOP_LIMIT + 1
            return at, None
        at += 1
        if waits is not None:
            return at, waits
    return at, None
