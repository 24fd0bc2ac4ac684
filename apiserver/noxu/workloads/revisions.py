"""ControllerRevisions: the templates that a StatefulSet or a DaemonSet has had (pkg/controller/history).

The data of a revision is the strategic merge patch that brings its template back: `kubectl rollout undo` sends it, and `kubectl
rollout history` shows it. Its name is `OWNER-HASH`; a hash that another template has is taken again with the count of collisions.
The number of a revision grows: a template that comes back gets the next one, so the newest template has the highest number.
"""

from __future__ import annotations

import json
from collections.abc import Container, Generator, Iterable, Sequence
from typing import Final

from noxu.identifiers import hashed
from noxu.values import Object, copy, equal
from noxu.workloads.objects import REVISIONS, Objects
from noxu.workloads.ownership import candidates, claimed, owner_reference, selects
from noxu.workloads.writes import Create, Delete, NamespacedName, Replace, Result, Write, stored

REVISION: Final = "controller-revision-hash"
"""The label of a pod that names its revision."""
HASH: Final = "controller.kubernetes.io/hash"
"""The label of a StatefulSet's revision with the hash of its data."""
MAX_PREFIX: Final = 223

Finding = Generator[Sequence[Write], Sequence[Result], Object]
"""Steps that give a revision."""


def template_patch(owner: Object) -> Object:
    """The data of the revision of an owner's template (getPatch)."""
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}


def template_of(revision: Object) -> Object:
    """The template that a revision brings back."""
    template: Object = copy(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return template


def hash_of(data: Object, collisions: int | None) -> str:
    """FNV-1 of the patch as Go writes it, and of the count of collisions (HashControllerRevision)."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashed(f"{text}{'' if collisions is None else collisions}".encode())


def name_of_revision(owner: Object, digest: str) -> str:
    return f"{owner['metadata']['name'][:MAX_PREFIX]}-{digest}"


def new_revision(owner: Object, number: int, digest: str, label: str) -> Object:
    """The revision of an owner's template. `label`: that which holds its hash."""
    metadata, template = owner["metadata"], owner["spec"]["template"]
    revision: Object = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name_of_revision(owner, digest),
            "namespace": metadata["namespace"],
            "labels": {**((template.get("metadata") or {}).get("labels") or {}), label: digest},
            "ownerReferences": [owner_reference(owner)],
        },
        "data": template_patch(owner),
        "revision": number,
    }
    if annotations := metadata.get("annotations"):
        revision["metadata"]["annotations"] = dict(annotations)
    return revision


def number_of(revision: Object) -> int:
    return int(revision.get("revision", 0))


def in_order(revisions: Iterable[Object]) -> list[Object]:
    """By their numbers, then by age and name."""
    return sorted(
        revisions,
        key=lambda one: (number_of(one), one["metadata"].get("creationTimestamp", ""), one["metadata"]["name"]),
    )


def has_template_of(revision: Object, owner: Object) -> bool:
    return equal(revision.get("data"), template_patch(owner))


def owned(objects: Objects, owner: Object) -> Generator[Sequence[Write], Sequence[Result], list[Object]]:
    """The revisions of an owner in their order; those that its selector selects and that have no owner are adopted."""
    selector, found = owner["spec"].get("selector"), candidates(objects, REVISIONS, owner)
    return in_order((yield from claimed(REVISIONS, found, owner, lambda one: selects(selector, one))))


def renumbered(revision: Object, number: int) -> Finding:
    """The revision with another number."""
    if number_of(revision) == number:
        return revision
    [result] = yield [Replace(REVISIONS, {**revision, "revision": number})]
    return stored(result) or revision


def create(
    objects: Objects, owner: Object, number: int, label: str, collisions: int | None
) -> Generator[Sequence[Write], Sequence[Result], tuple[Object, int | None]]:
    """The new revision of an owner's template, and how often its hash was taken by another one.

    Raises ApiError.
    """
    data, namespace = template_patch(owner), owner["metadata"]["namespace"]
    while True:
        digest = hash_of(data, collisions)
        found = objects.get(REVISIONS, NamespacedName(namespace, name_of_revision(owner, digest)))
        if found is None:
            [result] = yield [Create(REVISIONS, new_revision(owner, number, digest, label))]
            return stored(result) or {}, collisions
        if has_template_of(found, owner):
            return found, collisions
        collisions = (collisions or 0) + 1


def surplus(revisions: Sequence[Object], live: Container[str], limit: int) -> list[Delete]:
    """Deletes the oldest of the revisions, which are in their order, that are not live: `limit` of these stay."""
    history = [revision for revision in revisions if revision["metadata"]["name"] not in live]
    return [Delete(REVISIONS, revision) for revision in history[: max(len(history) - limit, 0)]]
