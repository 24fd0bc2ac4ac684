"""The kinds that a server serves, and how many objects there are of each: `GET /_noxu/console/kinds`.

Objects are listed by the API itself, as a Table: the page asks as kubectl does.
"""

from __future__ import annotations

from typing import Final

from noxu.control.calls import ControlCall, ControlRoute
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.values import Object
from noxu_storage.types import Prefix


def preferred(served: ServedResources) -> list[Resource]:
    """One resource of each stored kind, in the version that discovery prefers, custom ones first."""
    found: dict[tuple[str, str], Resource] = {}
    for resource in served.resources:
        known = found.get((resource.group, resource.plural))
        if resource.is_stored and (known is None or _rank(served, resource) < _rank(served, known)):
            found[resource.group, resource.plural] = resource
    return sorted(found.values(), key=lambda each: (not each.is_custom, each.group, each.plural))


def _rank(served: ServedResources, resource: Resource) -> int:
    return [*served.groups[resource.group]].index(resource.version)


async def kinds(call: ControlCall) -> Object:
    """All kinds. `path` is where the API lists the objects of all namespaces. Raises StoreError."""
    store = call.plane.store
    items = [
        {
            "resource": str(resource.group_resource),
            "kind": resource.kind,
            "version": resource.version,
            "path": f"/{'apis' if resource.group else 'api'}/{resource.api_version}/{resource.plural}",
            "namespaced": resource.namespaced,
            "custom": resource.is_custom,
            "count": await store.count(Prefix(resource.collection)),
        }
        for resource in preferred(call.plane.served_resources.current)
    ]
    return {"items": items, "revision": store.revision}


ROUTES: Final = (ControlRoute("GET", "/_noxu/console/kinds", kinds, "The kinds, and how many objects there are."),)
