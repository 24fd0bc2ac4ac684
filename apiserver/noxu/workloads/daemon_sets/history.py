"""The revisions of a DaemonSet's template: the current one, and the older ones (pkg/controller/daemon/update.go)."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import NamedTuple

from noxu.values import Object
from noxu.workloads import revisions
from noxu.workloads.objects import PODS, REVISIONS, Objects
from noxu.workloads.revisions import REVISION
from noxu.workloads.writes import Delete, Replace, Result, Write, done, stored


class TemplateHistory(NamedTuple):
    """`digest`: the label of pods of the current template. `collisions`: None, as long as no name was taken."""

    digest: str
    old: Sequence[Object]
    collisions: int | None


def construct(objects: Objects, daemon_set: Object) -> Generator[Sequence[Write], Sequence[Result], TemplateHistory]:
    """Create the revision of the template, or give it the highest number; several equal ones become one."""
    known = yield from revisions.owned(objects, daemon_set)
    known = yield from _labelled(known)
    current = [one for one in known if revisions.has_template_of(one, daemon_set)]
    old = [one for one in known if one not in current]
    number = revisions.number_of(old[-1]) + 1 if old else 1
    collisions: int | None = (daemon_set.get("status") or {}).get("collisionCount")
    if current:
        kept = current[-1]
        yield from _merge(objects, daemon_set, kept, current[:-1])
        if revisions.number_of(kept) < number:
            kept = yield from revisions.renumbered(kept, number)
    else:
        kept, collisions = yield from revisions.create(objects, daemon_set, number, REVISION, collisions)
    return TemplateHistory(kept["metadata"]["labels"][REVISION], old, collisions)


def _labelled(known: Sequence[Object]) -> Generator[Sequence[Write], Sequence[Result], list[Object]]:
    """The revisions with the label of the hash: those of older clusters have none."""
    result = []
    for one in known:
        metadata = one["metadata"]
        labels = metadata.get("labels") or {}
        if REVISION not in labels:
            labels = {**labels, REVISION: metadata["name"]}
            [written] = yield [Replace(REVISIONS, {**one, "metadata": {**metadata, "labels": labels}})]
            one = stored(written) or one
        result.append(one)
    return result


def _merge(
    objects: Objects, daemon_set: Object, kept: Object, others: Sequence[Object]
) -> Generator[Sequence[Write], Sequence[Result], None]:
    """Delete equal revisions, after their pods have the label of the one that is kept."""
    if not others:
        return
    digest, writes = kept["metadata"]["labels"][REVISION], []
    for pod in objects.controlled_by(PODS, daemon_set["metadata"]["uid"]):
        metadata = pod["metadata"]
        if metadata.get("labels", {}).get(REVISION) != digest:
            labels = {**metadata.get("labels", {}), REVISION: digest}
            writes.append(Replace(PODS, {**pod, "metadata": {**metadata, "labels": labels}}))
    if writes:
        done((yield writes))
    done((yield [Delete(REVISIONS, one) for one in others]))


def surplus(daemon_set: Object, old: Sequence[Object], pods: Iterable[Object]) -> list[Delete]:
    """Deletes the oldest revisions that no pod has: so many stay as the limit says (cleanupHistory)."""
    too_many = len(old) - int(daemon_set["spec"].get("revisionHistoryLimit", 10))
    live = {(pod["metadata"].get("labels") or {}).get(REVISION) for pod in pods}
    history = [one for one in old if one["metadata"]["labels"].get(REVISION) not in live]
    return [Delete(REVISIONS, one) for one in history[: max(too_many, 0)]]
