"""The conditions of a terminating namespace: what it still contains, and what cannot be deleted.

Types, reasons and messages are those of upstream's namespace controller (status_condition_utils.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from noxu.values import Object

CONTENT_FAILURE: Final = "NamespaceDeletionContentFailure"
CONTENT_REMAINING: Final = "NamespaceContentRemaining"
FINALIZERS_REMAINING: Final = "NamespaceFinalizersRemaining"

# (type, reason and message of status False), in upstream's order
_FALSE: Final = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (CONTENT_FAILURE, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    (CONTENT_REMAINING, "ContentRemoved", "All content successfully removed"),
    (FINALIZERS_REMAINING, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


class Remaining(NamedTuple):
    """The contents of a terminating namespace after an attempt to delete everything in it.

    `objects` are numbers of objects by `plural.group`, `finalizers` are numbers of objects by finalizer, and `errors` are
    the messages of failed deletions, one for each resource.
    """

    objects: Mapping[str, int]
    finalizers: Mapping[str, int]
    errors: Sequence[str] = ()


def set_conditions(status: Object, remaining: Remaining, now: str) -> bool:
    """Set the conditions in the status of a namespace, in place. Returns whether one of them changed."""
    true = {name: (reason, message) for name, reason, message in _true_conditions(remaining)}
    conditions = status.setdefault("conditions", [])
    current = {condition["type"]: condition for condition in conditions}
    changed = False
    for name, false_reason, false_message in _FALSE:
        reason, message = true.get(name, (false_reason, false_message))
        new = {"status": str(name in true), "reason": reason, "message": message}
        old = current.get(name)
        if old is None:
            conditions.append({"type": name, "status": new["status"], "lastTransitionTime": now, **new})
        elif any(old.get(field) != value for field, value in new.items()):
            if old.get("status") != new["status"]:
                old["lastTransitionTime"] = now
            old.update(new)
        else:
            continue
        changed = True
    return changed


def _true_conditions(remaining: Remaining) -> Iterable[tuple[str, str, str]]:
    """(Type, reason and message) of each condition whose status is True."""
    objects, finalizers, errors = remaining
    if errors:
        text = f"Failed to delete all resource types, {len(errors)} remaining: {', '.join(sorted(errors))}"
        yield CONTENT_FAILURE, "ContentDeletionFailed", text
    if objects:
        numbers = sorted(f"{resource} has {number} resource instances" for resource, number in objects.items())
        yield CONTENT_REMAINING, "SomeResourcesRemain", f"Some resources are remaining: {', '.join(numbers)}"
    if finalizers:
        numbers = sorted(f"{finalizer} in {number} resource instances" for finalizer, number in finalizers.items())
        text = f"Some content in the namespace has finalizers remaining: {', '.join(numbers)}"
        yield FINALIZERS_REMAINING, "SomeFinalizersRemain", text
