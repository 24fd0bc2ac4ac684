"""OwnerReferencesPermissionEnforcement (plugin/pkg/admission/gc): who may say whose dependents objects are.

Who changes the owner references of an existing object may have it deleted by this, and needs the verb `delete` on it. Who
sets blockOwnerDeletion keeps the owner from being deleted, and needs `update` on the finalizers of the owner.
"""

from __future__ import annotations

from noxu.admission.attributes import Attributes, refusal
from noxu.go.text import quote
from noxu.registry import access
from noxu.registry.access import Decision
from noxu.registry.draft import Draft
from noxu.values import Object, equal


def check(draft: Draft) -> None:
    """Raises ApiError Forbidden."""
    request, resource = draft.request, draft.request.target
    if (resource.group, resource.plural, request.subresource) == ("", "pods", "status"):
        return
    new, old = _owners(draft.new), _owners(draft.old or {})
    if equal(new, old):
        return
    if draft.operation != "CREATE":
        _require(draft, request.asks_to("delete", resource), "cannot set an ownerRef on a resource you can't delete")
    for reference in _newly_blocking(new, old):
        _check_finalizers(draft, reference)


def _owners(value: Object) -> list[Object]:
    return (value.get("metadata") or {}).get("ownerReferences") or []


def _newly_blocking(new: list[Object], old: list[Object]) -> list[Object]:
    blocking = {reference.get("uid") for reference in old if reference.get("blockOwnerDeletion")}
    return [one for one in new if one.get("blockOwnerDeletion") and one.get("uid") not in blocking]


def _check_finalizers(draft: Draft, reference: Object) -> None:
    request = draft.request
    version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    owner = draft.environment.served_resources.current.kinds.get((version, kind))
    if owner is None:
        why = f"cannot find RESTMapping for APIVersion {version} Kind {kind}: no matches for kind {quote(kind)} in version {quote(version)}"
        raise refusal(Attributes(draft), f"cannot set blockOwnerDeletion in this case because {why}")
    asked = access.Attributes(
        request.user,
        "update",
        owner.group,
        owner.version,
        owner.plural,
        "finalizers",
        request.namespace if owner.namespaced else "",
        reference.get("name", ""),
    )
    why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
    _require(draft, asked, why)


def _require(draft: Draft, asked: access.Attributes, why: str) -> None:
    decision: Decision = draft.request.authorize(asked)
    if not decision.allowed:
        raise refusal(Attributes(draft), f"{why}: {decision.reason}, {decision.error or '<nil>'}")
