"""Writes of a run that clean runs do not have: what was deleted, or created once more. All functions are pure.

    deleted      the controller deleted something that it leaves alone in clean runs
    created      it created something once more than in clean runs

The sentence names what the client had been shown before, and what was true by then. Of several states that were old, it names
one that the plan has made old, then one of what the workload is about, and not of what follows from it, such as a pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from noxu.exploration.findings import MADE, TRANSIENT, CleanRuns, RunFinding, author_of
from noxu.exploration.masks import MaskedRun
from noxu.exploration.plans import RunPlan
from noxu.exploration.recording import CONTROLLER, FAULT, WORKLOAD, RecordedChange, RunRecording, Shown, bursts
from noxu.exploration.shapes import Shape
from noxu.exploration.transitions import is_deleting
from noxu.values import Object

COLLECTORS: Final = ("garbage-collector-controller", "namespace-controller", "pod-garbage-collector-controller")


def counts(run: MaskedRun, effect: str) -> Counter[Shape]:
    """How often each shape was created or deleted, as far as that is the controller's doing."""
    return Counter({shape: len(writes) for shape, writes in _by_shape(run, effect).items()})


def _by_shape(run: MaskedRun, effect: str) -> dict[Shape, list[RecordedChange]]:
    found: dict[Shape, list[RecordedChange]] = {}
    for change in _writes_of(run.recording, effect):
        found.setdefault(run.names.shape(change.place), []).append(change)
    return found


def _writes_of(recording: RunRecording, effect: str) -> list[RecordedChange]:
    """Its creations, or its deletions and those that no one else accounts for. What waits for a finalizer counts when it begins:
    who removes the last one has not asked for the end.

    A controller may see that an object is gone before it sees that its owner is, and makes it once more; the garbage collector
    takes that away, and nothing has happened.
    """
    asked = _deletions(recording)
    collected = {uid for uid, author in asked.items() if author in COLLECTORS}
    begun = {_uid(change) for change in recording.changes if _begins(change)} if effect == "delete" else set[str]()
    return [
        change
        for change in recording.changes
        if ((change.effect == effect and _uid(change) not in begun) or (effect == "delete" and _begins(change)))
        and (_is_its_own(change, asked) if effect == "delete" else change.is_of_controller)
        and not (effect == "create" and _uid(change) in collected)
    ]


def _deletions(recording: RunRecording) -> dict[str, str]:
    """By uid, who has asked for the deletion of an object: that may wait for a finalizer, which another one removes."""
    asked: dict[str, str] = {}
    for change in recording.changes:
        if change.after is None or change.verb == "delete" or is_deleting(change.after):
            asked.setdefault(_uid(change), change.author)
    return asked


def in_bursts(run: MaskedRun) -> Iterator[tuple[str, Shape, int]]:
    begun = bursts(run.recording)
    for change in run.recording.changes:
        if change.effect == "create":
            yield MADE, run.names.shape(change.place), begun[change.step]
    for effect in ("create", "delete"):
        for shape, writes in _by_shape(run, effect).items():
            for change in writes:
                yield effect, shape, begun[change.step]


def _extra(
    effect: str, shape: Shape, writes: Sequence[RecordedChange], begun: Sequence[int], clean: CleanRuns
) -> tuple[RecordedChange, int]:
    """Of the writes of a shape the one that the clean runs do not have, and the step with which its burst began."""
    seen = Counter[int]()
    for write in writes:
        step = begun[write.step]
        seen[step] += 1
        if seen[step] > clean.in_bursts.get((effect, shape, step), 0):
            return write, step
    return writes[-1], begun[writes[-1].step]


def _in_vain(
    shape: Shape, deletions: Sequence[RecordedChange], begun: Sequence[int], clean: CleanRuns, run: MaskedRun
) -> set[int]:
    """The revisions of deletions that take back what was made because of an old view, in the burst in which it was made.

    Any controller makes again what it does not know to be gone; as it takes that away when it knows, nothing has happened. What is
    made in that burst of the clean runs, too, was not made because of the view.
    """
    begins = [made["revision"] for made in run.recording.fired if _views(made.get("move") or {})]
    if not begins:
        return set()
    seen, found = Counter[int](), set[int]()
    made, makes = dict[str, int](), Counter[int]()
    for change in run.recording.changes:
        if change.effect == "create" and run.names.shape(change.place) == shape:
            step = begun[change.step]
            makes[step] += 1
            if change.revision > begins[0] and makes[step] > clean.in_bursts.get((MADE, shape, step), 0):
                made[_uid(change)] = step
    usual = {step: clean.in_bursts.get(("delete", shape, step), 0) for step in begun}
    for change in deletions:
        step = begun[change.step]
        seen[step] += 1
        if seen[step] > usual[step] and made.get(_uid(change)) == step:
            found.add(change.revision)
    return found


def _are_ahead(
    shape: Shape, writes: Sequence[RecordedChange], begun: Sequence[int], clean: CleanRuns, plan: RunPlan
) -> bool:
    """Whether more was deleted in all than in the clean runs, or until some step: then it was deleted too early.

    What is deleted too early may be gone by when it should be, so at the end the numbers may be equal. Steps are those of the
    clean runs unless the plan has some of its own.
    """
    deleted = Counter(begun[change.step] for change in writes)
    if deleted.total() > clean.deleted.get(shape, 0):
        return True
    ahead = 0
    for step in () if plan.steps else sorted({*begun}):
        ahead += deleted[step] - clean.in_bursts.get(("delete", shape, step), 0)
        if ahead > 0:
            return True
    return False


def _uid(change: RecordedChange) -> str:
    return str((change.object.get("metadata") or {}).get("uid", ""))


def _begins(change: RecordedChange) -> bool:
    """Whether the controller has asked for a deletion that waits for finalizers, such as one that leaves pods behind."""
    return change.is_of_controller and change.verb == "delete" and change.effect == "update"


def _is_its_own(change: RecordedChange, asked: Mapping[str, str]) -> bool:
    """Whether the controller has asked for a deletion, or one of the cluster has: it follows from something."""
    author = asked.get(_uid(change), change.author)
    if author.startswith(CONTROLLER):
        return True
    return author not in (WORKLOAD, FAULT, *COLLECTORS) and change.place.resource not in TRANSIENT


def taken_away(clean: CleanRuns, plan: RunPlan, run: MaskedRun) -> Iterator[RunFinding]:
    begun = bursts(run.recording)
    for shape, deletions in _by_shape(run, "delete").items():
        if clean.mask.hides(shape) or shape.resource in TRANSIENT or _planned(plan, shape):
            continue
        if plan.klass == "drift" and not _is_made(shape, clean):
            continue  # it puts back what has come of the drift
        in_vain = _in_vain(shape, deletions, begun, clean, run)
        writes = [change for change in deletions if change.revision not in in_vain]
        if not _are_ahead(shape, writes, begun, clean, plan):
            continue
        last, step = _extra("delete", shape, writes, begun, clean)
        yield RunFinding(
            "deleted",
            str(shape),
            f"{author_of(last)} deleted {shape} at revision {last.revision}"
            + _compared(len(writes), clean.deleted.get(shape, 0))
            + _because(last, plan, run.recording),
            tuple(change.revision for change in writes),
            step=step,
        )


def _is_made(shape: Shape, clean: CleanRuns) -> bool:
    """Whether anyone makes such an object in a clean run."""
    return any(what == MADE and made == shape for what, made, _ in clean.in_bursts)


def _compared(number: int, usual: int) -> str:
    if not usual:
        return ""
    return f", {number} times instead of {usual}" if number > usual else ", earlier than in clean runs"


def made_again(clean: CleanRuns, plan: RunPlan, run: MaskedRun) -> Iterator[RunFinding]:
    begun, gone = bursts(run.recording), counts(run, "delete")
    for shape, writes in _by_shape(run, "create").items():
        number, usual = len(writes), clean.created.get(shape, 0)
        replaced = max(gone.get(shape, 0) - clean.deleted.get(shape, 0), 0) + _planned(plan, shape)
        if number <= usual + replaced or clean.mask.hides(shape):
            continue
        last, step = _extra("create", shape, writes, begun, clean)
        yield RunFinding(
            "created",
            str(shape),
            f"the controller created {shape} {number} times instead of {usual}, once more at revision {last.revision}"
            + _because(last, plan, run.recording),
            tuple(change.revision for change in writes),
            step=step,
        )


def _because(change: RecordedChange, plan: RunPlan, recording: RunRecording) -> str:
    """What the client had been shown, and what was true by then."""
    viewed = {view["resource"] for move in plan.moves for view in _views(move)}
    seen = sorted(change.why, key=lambda shown: (shown.place.resource not in viewed, shown.place.resource in TRANSIENT))
    for shown in seen:  # in which the newest ones come first
        if (newer := _newer(shown, change, viewed, recording)) is not None:
            what = newer.place if shown.how == "list" else "the object"
            return f", after {_shown(shown)}; at {newer.revision} {what} had been {_happened(newer)}"
    if change.why:
        return f", after {_shown(change.why[0])}"
    return ""


def _views(move: Object) -> list[Object]:
    return [view for view in (move.get("view"), *move.get("views", ())) if view]


def _newer(
    shown: Shown, write: RecordedChange, viewed: Collection[str], recording: RunRecording
) -> RecordedChange | None:
    """A later state of what was shown that was there before the write; of a list, if the plan has made that old."""
    for change in recording.changes:
        is_same = change.place == shown.place
        if shown.how == "list":  # which is of all objects, and has something newer nearly always
            is_same = change.place.resource == shown.place.resource and shown.place.resource in viewed
        if is_same and shown.revision < change.revision < write.revision:
            return change
    return None


def _shown(shown: Shown) -> str:
    how = {"watch": "a watch had delivered", "get": "it had read", "list": "it had listed"}[shown.how]
    event = f" ({shown.event})" if shown.event else ""
    what = shown.place.resource if shown.how == "list" and not shown.place.name else shown.place
    return f"{how} {what}{event} at revision {shown.revision}"


def _happened(change: RecordedChange) -> str:
    return {"create": "created anew", "update": "changed", "delete": "deleted"}[change.effect]


def _planned(plan: RunPlan, shape: Shape) -> bool:
    """Whether a plan takes the object away, or changes it."""
    text = repr(plan.steps) + repr([fault for fault in plan.faults if "mutate" in fault])
    return bool(plan.steps or plan.faults) and f"'name': '{shape.name}'" in text and shape.resource in text
