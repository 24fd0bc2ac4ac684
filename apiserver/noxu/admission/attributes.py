"""A request as admission plug-ins see it (apiserver/pkg/admission's Attributes and VersionedAttributes).

The draft keeps the object. A plug-in gets it, and the old one, at the version that its rules name; a change at that
version is converted back when the next plug-in needs another version, and at the end of the chain.

OwnerReferencesPermissionEnforcement (plugin/pkg/admission/gc): the permission to change owner references.

To change the owner references of an existing object may delete it, so it needs the verb `delete` on the object. To set
blockOwnerDeletion keeps the owner from being deleted, so it needs `update` on the finalizers of the owner.
"""

from __future__ import annotations

from typing import Any, Final

from noxu.admission.metrics import AdmissionMetrics
from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.api.meta import GroupVersionKind
from noxu.go import unstructured
from noxu.go.structs import decode
from noxu.go.text import quote
from noxu.kinds.meta import SCALE
from noxu.registry import access, scale
from noxu.registry.access import Decision
from noxu.registry.conversion.converters import convert
from noxu.registry.draft import Action, Draft, NewScale
from noxu.registry.ownership import owned_scale
from noxu.registry.reader import key_of
from noxu.registry.resource import Resource
from noxu.registry.stored_object import labels_of
from noxu.registry.strategies import finalization_of
from noxu.values import Json, Object, equal

SCALE_KIND: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class Attributes:
    """One request. `name` and `namespace` are those of the request, "" if it has none."""

    __slots__ = (
        "_new", "_old", "_validating", "changed", "draft", "metrics", "name", "namespace", "operation", "plugin_state", "reader", "reinvoke",
        "resource", "round", "served_resources", "subresource",
    )  # fmt: skip

    def __init__(self, draft: Draft, metrics: AdmissionMetrics | None = None) -> None:
        self.draft = draft
        self.metrics = metrics or AdmissionMetrics()
        self.reader, self.served_resources = draft.environment.reader, draft.environment.served_resources.current
        self.resource = draft.request.target
        self.operation = draft.operation
        self.subresource = draft.request.subresource
        is_named = draft.operation != "CREATE" or draft.request.parent is not None
        self.name = draft.request.admitted_name if is_named else self._new_name()
        self.namespace = self.name if is_namespace(draft.resource) else draft.request.namespace
        self.round = 0
        """0, and 1 when mutating plug-ins are called again because of a change."""
        self.reinvoke = False
        """Set by a plug-in that has changed the object in round 0, so that there is a round 1."""
        self.plugin_state: dict[object, Any] = {}
        """State that plug-ins keep from round 0 for round 1."""
        self.changed = False
        self._validating = False
        self._new = self._views()
        self._old: dict[Resource, Object] = {}

    def _new_name(self) -> str:
        metadata = self.draft.new.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def dry_run(self) -> bool:
        return self.draft.request.options.dry_run or self.draft.request.delete_options.dry_run

    @property
    def options(self) -> Object | None:
        """The options of the request, as sent; those of a connection are its object."""
        if self.operation == "CONNECT":
            return None
        sent, old = self.draft.request.options_sent, self.draft.old
        if self.operation == "DELETE" and old is not None and finalization_of(self.resource) is not None:
            preconditions = {"uid": old["metadata"].get("uid", ""), **(sent.get("preconditions") or {})}
            sent = {**sent, "preconditions": preconditions}  # upstream then always names the object's uid
        return {"kind": _OPTIONS[self.operation], "apiVersion": "meta.k8s.io/v1", **sent}

    def kind_at(self, resource: Resource) -> GroupVersionKind:
        """The kind of the request's objects at a version of its resource."""
        if self.subresource == "scale":
            return SCALE_KIND
        return self.body_at(resource).gvk

    def body_at(self, resource: Resource) -> Resource:
        """What the request's objects are at a version of its resource: of the resource, or of its subresource's body."""
        return resource if self.draft.request.parent is None else self.draft.resource

    @property
    def is_review(self) -> bool:
        """Whether the request asks the server a question. Policies are not asked about it: one could lock all users out."""
        return self.draft.request.action is Action.REVIEW

    @property
    def kind(self) -> GroupVersionKind:
        return self.kind_at(self.resource)

    # -- objects

    async def new_at(self, resource: Resource) -> Object | None:
        """The current object at a version of its resource, None for a DELETE. It must not be changed."""
        views = self._new
        if views and resource not in views:
            if self.resource not in views:  # changed at another version: first back to the request's
                views[self.resource] = await self._converted(next(iter(views.values())), self.resource)
            if resource not in views:
                views[resource] = await self._converted(views[self.resource], resource)
        return views.get(resource)

    async def old_at(self, resource: Resource) -> Object | None:
        """The stored object at a version of its resource, None for a CREATE. It must not be changed."""
        old = self.draft.old
        if old is None:
            return None
        if not self._old:
            self._old[self.resource.versions.of(old)] = self._shown(old)
        if resource not in self._old:
            self._old[resource] = await self._converted(next(iter(self._old.values())), resource)
        return self._old[resource]

    async def _converted(self, value: Object, resource: Resource) -> Object:
        if self.subresource == "scale" or self.draft.request.parent is not None:
            return value
        return await converted(value, resource, self.draft.weight)

    def put(self, resource: Resource, new: Object) -> None:
        """Replace the object by a new one at a version of its resource. `settle` puts it into the draft."""
        self._new, self.changed = {resource: new}, True

    async def settle(self) -> None:
        """Put the changed object into the draft. Raises ApiError if it cannot be converted to the request's version."""
        new = await self.new_at(self.resource)
        if new is None or not self.changed:
            return
        if self.subresource == "scale":
            scale.put(self.draft.new, self.resource, _scale(new))
            return
        if new.get("apiVersion") != self.kind.api_version:
            new = await self._converted(new, self.resource)
        self.draft.new = new

    def refresh(self) -> None:
        """Start again from the draft, for validating admission."""
        self.name = self.name or self._new_name()
        self._validating = True
        self._new, self._old = self._views(), {}

    def _views(self) -> dict[Resource, Object]:
        return {} if self.operation == "DELETE" else {self.resource: self._shown(self.draft.new)}

    def _shown(self, value: Object) -> Object:
        if self.subresource == "scale":
            if self._validating:  # upstream makes both Scales again, without managedFields
                return scale.scale_of(value, self.resource, missing=0)
            sent = self.draft.sent
            if value is self.draft.new and isinstance(sent, NewScale):
                return sent.value
            return owned_scale(value, self.resource)
        if self.resource.is_custom:  # shown with its resource's kind in any case
            return value if value.get("kind") == self.resource.kind else {**value, "kind": self.resource.kind}
        if value is self.draft.new:
            return value
        return self.resource.codec.written(value)

    # -- labels

    @property
    def labels(self) -> list[dict[str, str]]:
        """The labels of the new and the old object, as far as they exist."""
        return [_labels(value) for value in (*self._new.values(), self.draft.old) if value is not None]

    async def namespace_labels(self) -> dict[str, str] | None:
        """The labels of the request's namespace, None if it does not exist."""
        if is_namespace(self.resource) and not self.subresource and self._new:
            return _labels(self._new[self.resource])
        namespaces = self.served_resources.find("", "v1", "namespaces")
        assert namespaces is not None
        entries = (await self.reader.collection(namespaces)).entries
        entry = entries.get(key_of(namespaces, "", self.namespace))
        return None if entry is None else labels_of(entry)


def is_namespace(resource: Resource) -> bool:
    """Whether the resource is namespaces. In admission, a namespace is in itself."""
    return resource.plural == "namespaces" and resource.group == ""


def _labels(value: Object) -> dict[str, str]:
    metadata: Json = value.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


def _scale(value: Object) -> Object:
    """Decode a Scale after admission. Raises ApiError."""
    if (value.get("apiVersion"), value.get("kind")) != (SCALE_KIND.api_version, SCALE_KIND.kind):
        raise errors.plain_error(errors.no_kind_registered(value.get("kind", ""), value.get("apiVersion", "")))
    if error := unstructured.mismatch(SCALE, value):
        raise errors.plain_error(f"unable to convert unstructured object to autoscaling/v1, Kind=Scale: {error}")
    decoded: Object = decode(SCALE, value).value
    return decoded


def refusal(request: Attributes, why: str) -> ApiError:
    """admission.NewForbidden."""
    return errors.forbidden(request.resource.group_resource, request.name or _name_or_base(request), why)


def _name_or_base(request: Attributes) -> str:
    metadata = request.draft.new.get("metadata") or {}
    return str(metadata.get("name") or metadata.get("generateName") or "Unknown")


async def converted(value: Object, resource: Resource, weight: int = 0) -> Object:
    """An object at another version of its resource, not pruned; `value` is not changed. Raises ApiError."""
    if not resource.is_custom:
        return resource.codec.convert(resource, {**value})
    group, _, version = value.get("apiVersion", "").rpartition("/")
    if group != resource.group:
        kind = value.get("kind", "")
        text = f"{group}/{version}, Kind={kind} is unstructured and is not suitable for converting to"
        raise errors.plain_error(f"{text} {quote(resource.api_version)}")
    if all(version.api_version != value["apiVersion"] for version in resource.versions.all):
        raise errors.plain_error(f"request to convert CR from an invalid group/version: {value['apiVersion']}")
    return await convert(value, resource, weight)


# -- owner references -------------------------------------------------------------------------------------------------


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
    blocking = {owner.get("uid") for owner in old if owner.get("blockOwnerDeletion")}
    return [owner for owner in new if owner.get("blockOwnerDeletion") and owner.get("uid") not in blocking]


def _check_finalizers(draft: Draft, reference: Object) -> None:
    request = draft.request
    version, kind = reference.get("apiVersion", ""), reference.get("kind", "")
    owner = draft.environment.served_resources.current.kinds.get((version, kind))
    if owner is None:
        why = f"cannot find RESTMapping for APIVersion {version} Kind {kind}: no matches for kind {quote(kind)} in version {quote(version)}"
        raise refusal(Attributes(draft), f"cannot set blockOwnerDeletion in this case because {why}")
    asked = access.AccessAttributes(
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


def _require(draft: Draft, asked: access.AccessAttributes, why: str) -> None:
    decision: Decision = draft.request.authorize(asked)
    if not decision.allowed:
        raise refusal(Attributes(draft), f"{why}: {decision.reason}, {decision.error or '<nil>'}")
