"""Requests as admission plug-ins see them, without a server: widgets in an environment over a store in memory."""

from __future__ import annotations

from typing import Any

from noxu.admission.attributes import Attributes
from noxu.registry.builtin import built_in_versions
from noxu.registry.cache import WatchCache
from noxu.registry.custom import CODEC
from noxu.registry.draft import Action, WriteEnvironment, WriteRequest, draft_for
from noxu.registry.persistence import Persistence
from noxu.registry.reader import Reader
from noxu.registry.resource import CUSTOM, Resource, ScalePaths, Versions
from noxu.registry.served_resources import LiveResources, ServedResources
from noxu_storage.memory import MemoryStore

GROUP = "example.com"


def resource(version: str, *, namespaced: bool = True, served: bool = True) -> Resource:
    return Resource(
        type=CUSTOM,
        group=GROUP,
        version=version,
        plural="widgets",
        singular="widget",
        kind="Widget",
        list_kind="WidgetList",
        namespaced=namespaced,
        codec=CODEC,
        served=served,
        subresources=frozenset({"status", "scale"}),
        scale=ScalePaths(".spec.replicas", ".status.replicas"),
    )


def versions(*names: str, **options: Any) -> list[Resource]:
    made = [resource(name.strip("-"), served=not name.startswith("-"), **options) for name in names]
    Versions(made, made[0])
    return made


def widget(version: str = "v1", labels: dict[str, str] | None = None, name: str = "a") -> dict[str, Any]:
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Widget", "metadata": metadata}


def environment(store: MemoryStore) -> WriteEnvironment:
    cache = WatchCache(store)
    served_resources = LiveResources(ServedResources(built_in_versions()))
    return WriteEnvironment(Reader(store, cache), Persistence(store, cache), served_resources)


def request_of(
    registry: Any,
    operation: Any = "CREATE",
    subresource: str = "",
    *,
    of: Resource | None = None,
    namespace: str = "default",
    new: Any = None,
    old: Any = None,
    name: str = "a",
) -> Attributes:
    of = of or versions("v1")[0]
    new = {} if operation == "DELETE" else new or widget(of.version, name=name)
    action = {"CREATE": Action.CREATE, "UPDATE": Action.REPLACE, "DELETE": Action.DELETE}[operation]
    request = WriteRequest(action, of, namespace if of.namespaced else "", name, subresource)
    draft = draft_for(request, registry or environment(MemoryStore()))
    draft.new, draft.old = new, old
    return Attributes(draft)
