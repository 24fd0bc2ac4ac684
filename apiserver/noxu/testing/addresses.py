"""How a test names objects: a kind, a plural with its group, or an object.

    Widget  widgets  widget  wd          any of its names
    widgets.example.com  Widget.example.com          with the group
    widgets.v1.example.com  example.com/v1/Widget    with the version, too
    {"apiVersion": …, "kind": …, "metadata": {"name": …}}    an object, with its name and namespace

Without a version the one counts that discovery prefers, without a group the first group that has the name, as for kubectl.
A namespaced object without a namespace is in `default`.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from noxu.features import nearest
from noxu.manifests import loading
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.testing.errors import UnknownKind, hidden
from noxu.values import Object

__tracebackhide__ = hidden


class Address(NamedTuple):
    """An object or, without a name, a collection. `namespace` is "" for cluster scope, or for all namespaces."""

    resource: Resource
    namespace: str = ""
    name: str = ""

    def path(self, subresource: str = "") -> str:
        resource = self.resource
        steps = ["apis", resource.group] if resource.group else ["api"]
        steps.append(resource.version)
        if self.namespace and resource.namespaced:
            steps += ["namespaces", self.namespace]
        steps += [resource.plural, *filter(None, (self.name, subresource))]
        return "".join(f"/{quote(step, safe='')}" for step in steps)

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource.kind} {place}".rstrip()


def find(served_resources: ServedResources, text: str) -> Resource:
    """The resource that a text names. Raises UnknownKind."""
    name, group, version = _parts(text)
    named = [resource for resource in served_resources.resources if name in names_of(resource)]
    found = [each for each in named if group in (None, each.group) and version in ("", each.version)]
    if not found and group is not None and not version:  # widgets.v1.example.com
        version, _, group = group.partition(".")
        found = [each for each in named if (group, version) == (each.group, each.version)]
    if not found:
        raise UnknownKind(f"no kind {text!r} is served{_meant(served_resources, name)}")
    groups = list(served_resources.groups)
    return min(
        found, key=lambda each: (groups.index(each.group), served_resources.groups[each.group].index(each.version))
    )


def of(served_resources: ServedResources, what: str | Object, name: str = "", namespace: str | None = None) -> Address:
    """The address of an object: (kind, name), or an object. Raises UnknownKind, ValueError."""
    if isinstance(what, str):
        if not name:
            raise ValueError(f"the name of the {what} is missing")
        resource = find(served_resources, what)
    else:
        resource = of_object(served_resources, what)
        name, found = loading.name_of(what), loading.namespace_of(resource, what)
        if not name:
            raise ValueError(f"this {resource.kind} has no metadata.name")
        namespace = found if namespace is None else namespace
    return Address(resource, (namespace or "default") if resource.namespaced else "", name)


def of_any(
    served_resources: ServedResources, what: str | Object, name: str = "", namespace: str | None = None
) -> Address:
    """The address of an object, or of a collection if there is no name. Raises UnknownKind."""
    if isinstance(what, str):
        resource, own_namespace = find(served_resources, what), ""
    else:
        resource, name = of_object(served_resources, what), loading.name_of(what)
        own_namespace = loading.namespace_of(resource, what) if name else ""
    if name and resource.namespaced:
        namespace = namespace or own_namespace or "default"
    return Address(resource, (namespace or "") if resource.namespaced else "", name)


def of_object(served_resources: ServedResources, value: Object) -> Resource:
    """The resource of the apiVersion and kind of an object. Raises UnknownKind."""
    for resource in served_resources.resources:
        if resource.kind == value.get("kind") and resource.api_version == value.get("apiVersion"):
            return resource
    raise UnknownKind(loading.no_matches(value))


def names_of(resource: Resource) -> tuple[str, ...]:
    return resource.plural, resource.kind, resource.singular, *resource.short_names


def _parts(text: str) -> tuple[str, str | None, str]:
    """(name, group or None, version or ""). `Pod.` and `v1/Pod` are in the core group."""
    if "/" in text:
        *above, name = text.split("/")
        version = above[-1]
        return name, "/".join(above[:-1]), version
    name, dot, group = text.partition(".")
    return name, group if dot else None, ""


def _meant(served_resources: ServedResources, name: str) -> str:
    known = {
        known: f"{resource.group_resource}" for resource in served_resources.resources for known in names_of(resource)
    }
    found = nearest(name, known)
    return f"; did you mean {known[found]}?" if found else ""
