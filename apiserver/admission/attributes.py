"""What admission judges: one request as plug-ins see it (apiserver/pkg/admission's Attributes and VersionedAttributes).

The object on its way stays in the draft. A plug-in asks for it, and for the old one, at the version that its rules
name; a change at that version is brought back when the next one wants another version, and when the chain is done.
"""

from __future__ import annotations

from typing import Any, Final

from apiserver.api import errors, unstructured
from apiserver.api.gotext import quote
from apiserver.api.meta import GroupVersionKind
from apiserver.api.structs import decode
from apiserver.api.types import Json, Object
from apiserver.registry import scale
from apiserver.registry.conversion import convert
from apiserver.registry.entry import key_of, labels_of
from apiserver.registry.kinds.autoscaling import SCALE
from apiserver.registry.ownership import owned_scale
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry

SCALE_KIND: Final = GroupVersionKind("autoscaling", "v1", "Scale")
_OPTIONS: Final = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class Attributes:
    """One request. `name` and `namespace` are those that the request has, "" where it has none."""

    __slots__ = (
        "_new", "_old", "_validating", "changed", "draft", "memory", "name", "namespace", "operation", "registry", "reinvoke",
        "resource", "round", "subresource",
    )  # fmt: skip

    def __init__(self, draft: Draft, registry: Registry) -> None:
        self.draft = draft
        self.registry = registry
        self.resource = draft.resource
        self.operation = draft.operation
        self.subresource = draft.subresource
        self.name = self._new_name() if draft.operation == "CREATE" else draft.name
        self.namespace = self.name if is_namespace(draft.resource) else draft.namespace
        self.round = 0
        """0, and 1 when plug-ins are asked again because something has changed."""
        self.reinvoke = False
        """Set by a plug-in that has changed the object in round 0: there will be a round 1."""
        self.memory: dict[object, Any] = {}
        """What plug-ins keep from round 0 for round 1."""
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
        return self.draft.options.dry_run

    @property
    def options(self) -> Object:
        """The options of the request, as they were sent."""
        return {"kind": _OPTIONS[self.operation], "apiVersion": "meta.k8s.io/v1", **self.draft.given}

    def kind_at(self, resource: Resource) -> GroupVersionKind:
        """What the objects of the request are at a version of its resource."""
        if self.subresource == "scale":
            return SCALE_KIND
        return GroupVersionKind(resource.group, resource.version, resource.kind)

    @property
    def kind(self) -> GroupVersionKind:
        return self.kind_at(self.resource)

    # -- objects

    async def new_at(self, resource: Resource) -> Object | None:
        """The object as it is now, at a version of its resource; None for a DELETE. It is not to be changed."""
        views = self._new
        if views and resource not in views:
            if self.resource not in views:  # changed at another version: back to the request's, and on from there
                views[self.resource] = await self._converted(next(iter(views.values())), self.resource)
            if resource not in views:
                views[resource] = await self._converted(views[self.resource], resource)
        return views.get(resource)

    async def old_at(self, resource: Resource) -> Object | None:
        """The stored object at a version of its resource; None for a CREATE. It is not to be changed."""
        old = self.draft.old
        if old is None:
            return None
        if not self._old:
            self._old[self.resource.versions.of(old)] = self._shown(old)
        if resource not in self._old:
            self._old[resource] = await self._converted(next(iter(self._old.values())), resource)
        return self._old[resource]

    async def _converted(self, value: Object, resource: Resource) -> Object:
        if self.subresource == "scale":
            return value
        return await converted(value, resource, self.draft.weight)

    def put(self, resource: Resource, new: Object) -> None:
        """The object is now another one, given at a version of its resource. `settle` makes it that of the draft."""
        self._new, self.changed = {resource: new}, True

    async def settle(self) -> None:
        """Bring what was put back into the draft. Raises ApiError if it no longer is of the request's group."""
        new = await self.new_at(self.resource)
        if new is None or not self.changed:
            return
        if self.subresource == "scale":
            scale.put(self.draft.new, self.resource, _scale(new))
            return
        if new.get("apiVersion") != self.resource.api_version:
            new = await self._converted(new, self.resource)
        self.draft.new = new

    def refresh(self) -> None:
        """Look at the draft again, for validating admission."""
        self.name = self.name or self._new_name()
        self._validating = True
        self._new, self._old = self._views(), {}

    def _views(self) -> dict[Resource, Object]:
        return {} if self.operation == "DELETE" else {self.resource: self._shown(self.draft.new)}

    def _shown(self, value: Object) -> Object:
        if self.subresource == "scale":
            if self._validating:  # upstream makes both Scales anew, and without owners
                return scale.scale_of(value, self.resource, missing=0)
            brought = self.draft.scale if value is self.draft.new else None
            return owned_scale(value, self.resource) if brought is None else brought
        if self.resource.behaviour.struct is None:  # even what says that it is of another kind is shown as of this one
            return value if value.get("kind") == self.resource.kind else {**value, "kind": self.resource.kind}
        if value is self.draft.new:
            return value
        return self.resource.behaviour.written(value)

    # -- labels

    @property
    def labels(self) -> list[dict[str, str]]:
        """The labels of the new and of the old object, of each that there is."""
        return [_labels(value) for value in (*self._new.values(), self.draft.old) if value is not None]

    async def namespace_labels(self) -> dict[str, str] | None:
        """The labels of the request's namespace; None if there is no such namespace."""
        if is_namespace(self.resource) and not self.subresource and self._new:
            return _labels(self._new[self.resource])
        namespaces = self.registry.catalog.find("", "v1", "namespaces")
        assert namespaces is not None
        entries = (await self.registry.collection(namespaces)).entries
        entry = entries.get(key_of(namespaces, "", self.namespace))
        return None if entry is None else labels_of(entry)


def is_namespace(resource: Resource) -> bool:
    """Namespaces are in themselves, as far as admission is concerned."""
    return resource.plural == "namespaces" and resource.group == ""


def _labels(value: Object) -> dict[str, str]:
    metadata: Json = value.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


def _scale(value: Object) -> Object:
    """A Scale after admission, decoded. Raises ApiError."""
    if (value.get("apiVersion"), value.get("kind")) != (SCALE_KIND.api_version, SCALE_KIND.kind):
        raise errors.plain_error(errors.no_kind_registered(value.get("kind", ""), value.get("apiVersion", "")))
    if wrong := unstructured.mismatch(SCALE, value):
        raise errors.plain_error(f"unable to convert unstructured object to autoscaling/v1, Kind=Scale: {wrong}")
    decoded: Object = decode(SCALE, value).value
    return decoded


async def converted(value: Object, resource: Resource, weight: int = 0) -> Object:
    """An object at another version of its resource, not pruned; the given one is left as it is. Raises ApiError."""
    if resource.behaviour.struct is not None:
        return resource.behaviour.convert(resource, {**value})
    group, _, version = value.get("apiVersion", "").rpartition("/")
    if group != resource.group:
        kind = value.get("kind", "")
        text = f"{group}/{version}, Kind={kind} is unstructured and is not suitable for converting to"
        raise errors.plain_error(f"{text} {quote(resource.api_version)}")
    if all(one.api_version != value["apiVersion"] for one in resource.versions.all):
        raise errors.plain_error(f"request to convert CR from an invalid group/version: {value['apiVersion']}")
    return await convert(value, resource, weight)
