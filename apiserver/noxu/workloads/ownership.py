"""How a controller gets and loses the objects that its selector selects (pkg/controller/controller_ref_manager.go).

controlled by this owner, selected        kept
controlled by this owner, not selected    released: the reference is removed
controlled by nothing, selected           adopted, unless the owner or the object is being deleted
controlled by another one                 ignored
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from noxu.api.selectors import LabelSelector, label_selector
from noxu.values import Object
from noxu.workloads.objects import Objects, controller_of
from noxu.workloads.writes import Kind, Replace, Result, Write, done_or_gone


def owner_reference(owner: Object) -> Object:
    """The reference of an owner that is the controller (metav1.NewControllerRef)."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def selects(selector: Object | None, value: Object) -> bool:
    """Whether a LabelSelector selects an object. An invalid or an empty one selects nothing, as controllers have it."""
    if not selector:
        return False
    try:
        return _parsed(json.dumps(selector)).matches(value["metadata"].get("labels") or {})
    except ValueError:
        return False


@lru_cache(maxsize=1024)  # an owner asks for each of its pods, again and again
def _parsed(selector: str) -> LabelSelector:
    """Raises ValueError."""
    return label_selector(json.loads(selector))


class ClaimedObjects(NamedTuple):
    """`kept` are controlled by the owner. `adopted` and `released` are writes, whose results are what is controlled then."""

    kept: Sequence[Object]
    adopted: Sequence[Replace]
    released: Sequence[Replace]


def candidates(objects: Objects, kind: Kind, owner: Object) -> list[Object]:
    """What may belong to an owner: the objects that it controls, and those of its namespace that have no controller."""
    metadata = owner["metadata"]
    return [*objects.controlled_by(kind, metadata["uid"]), *objects.orphans(kind, metadata["namespace"])]


def claim(kind: Kind, found: Iterable[Object], owner: Object, selected: Callable[[Object], bool]) -> ClaimedObjects:
    """What of the `candidates` that were found belongs to the owner."""
    uid, is_ending = owner["metadata"]["uid"], bool(owner["metadata"].get("deletionTimestamp"))
    kept: list[Object] = []
    adopted: list[Replace] = []
    released: list[Replace] = []
    for value in found:
        controlling = controller_of(value)
        if controlling is not None:
            if controlling["uid"] != uid:
                continue
            if selected(value):
                kept.append(value)
            elif not is_ending:
                released.append(Replace(kind, _without_owner(value, uid)))
        elif selected(value) and not is_ending and not value["metadata"].get("deletionTimestamp"):
            adopted.append(Replace(kind, _with_owner(value, owner)))
    return ClaimedObjects(kept, adopted, released)


def claimed(
    kind: Kind, found: Iterable[Object], owner: Object, selected: Callable[[Object], bool]
) -> Generator[Sequence[Write], Sequence[Result], list[Object]]:
    """Carry out a claim (`yield from`): what the owner controls then. What is gone meanwhile is neither adopted nor released.

    Raises ApiError.
    """
    kept, adopted, released = claim(kind, found, owner, selected)
    if not adopted and not released:
        return [*kept]
    results = yield [*adopted, *released]
    done_or_gone(results)
    return [*kept, *(result for result in results[: len(adopted)] if isinstance(result, dict))]


def _with_owner(value: Object, owner: Object) -> Object:
    metadata = value["metadata"]
    return {
        **value,
        "metadata": {
            **metadata,
            "ownerReferences": [*(metadata.get("ownerReferences") or ()), owner_reference(owner)],
        },
    }


def _without_owner(value: Object, uid: str) -> Object:
    metadata = dict(value["metadata"])
    owners = [owner for owner in metadata.get("ownerReferences") or () if owner.get("uid") != uid]
    if owners:
        metadata["ownerReferences"] = owners
    else:
        metadata.pop("ownerReferences", None)
    return {**value, "metadata": metadata}
