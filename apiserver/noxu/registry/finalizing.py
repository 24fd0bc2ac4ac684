"""The stages of a deletion before it is stored: its preconditions, grace periods and finalizers.

As all stages, they are functions of one `Draft` (see `registry.stages`).
"""

from __future__ import annotations

from noxu.api import errors
from noxu.api.meta import FINALIZER_FOREGROUND, FINALIZER_ORPHAN
from noxu.go.time import unix_nanos
from noxu.kinds.kind import Propagation
from noxu.registry import strategies
from noxu.registry.draft import Draft
from noxu.registry.strategies import Grace, finalization_of
from noxu.values import Object, copy


def check_preconditions(draft: Draft) -> None:
    """Compare the preconditions of a deletion, uid and resourceVersion, with the stored object."""
    old, resource = draft.old, draft.resource
    assert old is not None
    preconditions, metadata, finalization = (
        draft.request.delete_options.preconditions,
        old["metadata"],
        finalization_of(resource),
    )
    checks = (
        ("UID", preconditions.uid, metadata.get("uid", ""), "deleted and then recreated"),
        ("ResourceVersion", preconditions.resource_version, metadata["resourceVersion"], "modified"),
    )
    for name, expected, actual, happened in checks:
        if expected is None or expected == actual:
            continue
        if finalization is not None:
            failed = finalization.precondition_failed
            why = f"{failed}: {name} in precondition: {expected}, {name} in object meta: {actual}"
            raise errors.conflict(resource.group_resource, metadata["name"], why)
        what = errors.Qualified(resource.group, resource.kind)  # with the kind, as in upstream
        why = f"the {name} in the precondition ({expected}) does not match the {name} in record ({actual}). "
        raise errors.conflict(what, metadata["name"], f"{why}The object might have been {happened}")


def await_grace(draft: Draft) -> None:
    """Leave an object as it is if it waits for the end of its grace period, which the deletion does not make shorter."""
    assert draft.old is not None
    draft.pending = strategies.grace_is_pending(draft.resource, draft.old, draft.request.delete_options.grace)


def finalize(draft: Draft) -> None:
    """Mark an object with finalizers or a grace period as being deleted.

    `new` remains empty if the object can be removed at once.
    """
    assert draft.old is not None
    if draft.pending:
        draft.new = copy(draft.old)
        return
    had = draft.old["metadata"].get("finalizers") or []
    table = draft.resource.table
    default_policy = table.propagation if table is not None else "Background"
    finalizers = _finalizers_after(had, draft.request.delete_options.propagation, default_policy)
    finalization, given = finalization_of(draft.resource), draft.request.delete_options.grace
    if finalization is None and not finalizers and not strategies.has_grace_periods(draft.resource):
        return
    value = copy(draft.old)
    if strategies.begin_grace(draft.resource, value, given, draft.now) is Grace.BEGUN:
        if set(finalizers) != set(had):
            value["metadata"]["finalizers"] = finalizers
        draft.removed_at_once = not finalizers and value["metadata"]["deletionGracePeriodSeconds"] == 0
        draft.new = value
        return
    if finalization is None and not finalizers:
        return
    if finalization is None or not finalization.begin_delete(value, draft.now, finalizers):
        if not finalizers:
            return
        if set(finalizers) != set(had):
            value["metadata"]["finalizers"] = finalizers
        _mark_deleted(value["metadata"], draft.now)
    draft.new = value


def _finalizers_after(finalizers: list[str], propagation: str, default_policy: Propagation) -> list[str]:
    """The finalizers after a deletion: the object's own, and that of the garbage collector for the propagation policy.

    Without a policy a finalizer of the garbage collector remains; without one the policy is that of the kind.
    """
    own_finalizers = [name for name in finalizers if name not in (FINALIZER_ORPHAN, FINALIZER_FOREGROUND)]
    if default_policy == "Unsupported":
        return own_finalizers
    if not propagation:
        present = [name for name in finalizers if name in (FINALIZER_ORPHAN, FINALIZER_FOREGROUND)]
        if present:
            return own_finalizers + present[:1]
        propagation = default_policy
    return own_finalizers + {"Orphan": [FINALIZER_ORPHAN], "Foreground": [FINALIZER_FOREGROUND]}.get(propagation, [])


def _mark_deleted(metadata: Object, now: str) -> None:
    marked = metadata.get("deletionTimestamp")
    if not marked and metadata.get("generation", 0) > 0:
        metadata["generation"] += 1
    if not marked or unix_nanos(marked) > unix_nanos(now):
        metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0
