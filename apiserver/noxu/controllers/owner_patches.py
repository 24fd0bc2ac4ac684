"""The patches of the garbage collector (pkg/controller/garbagecollector/patch.go).

Upstream sends a strategic merge patch first, and a merge patch to resources that do not support it: custom resources. A
strategic patch names the object by its uid, a merge patch the state that it was computed from by its resourceVersion.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from noxu.api import codec
from noxu.registry.draft import Body
from noxu.registry.resource import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from noxu.values import Json, Object
from noxu_storage.types import Revision


def remove_owners_strategically(uid: str, owners: Sequence[str]) -> Body:
    """Remove the references to owners from the object with this uid."""
    removed: list[Json] = [{"$patch": "delete", "uid": owner} for owner in owners]
    return _body({"ownerReferences": removed, "uid": uid}, STRATEGIC_MERGE_PATCH)


def remove_owners(metadata: Object, revision: Revision, owners: Collection[str]) -> Body:
    """Remove the references to owners from an object with this metadata at a revision."""
    rest = [reference for reference in metadata.get("ownerReferences") or () if reference.get("uid") not in owners]
    return _body({"resourceVersion": str(revision), "ownerReferences": rest or None}, MERGE_PATCH)


def unblock_owners_strategically(metadata: Object) -> Body:
    """Let an object with this metadata not block the deletion of its owners."""
    references = metadata.get("ownerReferences") or ()
    unblocked: list[Json] = [
        {**reference, "blockOwnerDeletion": False} for reference in references if reference.get("blockOwnerDeletion")
    ]
    return _body({"ownerReferences": unblocked, "uid": metadata.get("uid", "")}, STRATEGIC_MERGE_PATCH)


def unblock_owners(metadata: Object, revision: Revision) -> Body:
    """Like `unblock_owners_strategically`, for an object at a revision."""
    references = metadata.get("ownerReferences") or ()
    unblocked: list[Json] = [{**reference, "blockOwnerDeletion": False} for reference in references]
    return _body({"resourceVersion": str(revision), "ownerReferences": unblocked}, MERGE_PATCH)


def remove_finalizer(metadata: Object, revision: Revision, finalizer: str) -> Body | None:
    """Remove a finalizer from an object with this metadata at a revision; None if it does not have it."""
    finalizers = metadata.get("finalizers") or []
    rest = [name for name in finalizers if name != finalizer]
    if len(rest) == len(finalizers):
        return None
    return _body({"resourceVersion": str(revision), "finalizers": rest or None}, MERGE_PATCH)


def _body(metadata: Object, media_type: str) -> Body:
    return Body(codec.encode({"metadata": metadata}, sort_keys=False), media_type)
