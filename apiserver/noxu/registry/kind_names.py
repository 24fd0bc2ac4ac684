"""How people name kinds: as kubectl's arguments do, with any of a kind's names.

    Widget  widgets  widget  wd                      a kind, its plural, its singular, a short name
    widgets.example.com  Widget.example.com          with the group
    widgets.v1.example.com  example.com/v1/Widget    with the version, too
    Pod.  v1/Pod                                     the core group

The version defaults to the one that discovery prefers, the group to the first one that has the name.
"""

from __future__ import annotations

from typing import NamedTuple

from noxu.features import nearest
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources


class _Parts(NamedTuple):
    """`group` None: any; `version` "": any."""

    name: str
    group: str | None
    version: str = ""


def find(served_resources: ServedResources, text: str) -> Resource:
    """The resource that a text names. Raises LookupError, with a message for people."""
    name, group, version = _parts(text)
    named = [kind for kind in served_resources.resources if name in names_of(kind)]
    matching = [kind for kind in named if group in (None, kind.group) and version in ("", kind.version)]
    if not matching and group is not None and not version:  # widgets.v1.example.com
        version, _, group = group.partition(".")
        matching = [kind for kind in named if (group, version) == (kind.group, kind.version)]
    if not matching:
        raise LookupError(f"no kind {text!r} is served{_meant(served_resources, name)}")
    groups = list(served_resources.groups)
    return min(
        matching,
        key=lambda kind: (groups.index(kind.group), served_resources.groups[kind.group].index(kind.version)),
    )


def names_of(resource: Resource) -> tuple[str, ...]:
    """All names of a resource, the plural first."""
    return resource.plural, resource.kind, resource.singular, *resource.short_names


def _parts(text: str) -> _Parts:
    if "/" in text:
        *above, name = text.split("/")
        return _Parts(name, "/".join(above[:-1]), above[-1])
    name, dot, group = text.partition(".")
    return _Parts(name, group if dot else None)


def _meant(served_resources: ServedResources, name: str) -> str:
    resources = {
        alias: f"{resource.group_resource}" for resource in served_resources.resources for alias in names_of(resource)
    }
    similar = nearest(name, resources)
    return f"; did you mean {resources[similar]}?" if similar else ""
