"""metrics.k8s.io/v1beta1, as metrics-server serves it: what pods and nodes use now. It can be read, and nothing of it is stored.

The kinds are described as definitions are, so that discovery, OpenAPI and an APIService have them. A pod has metrics while one of
its containers runs, a node while it is ready.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from noxu.go.time import format_time
from noxu.registry.custom import versions_of
from noxu.registry.resource import Versions
from noxu.values import Object
from noxu.workloads import usage
from noxu.workloads.pods import is_ready

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
WINDOW: Final = "15s"
VERBS: Final = ("get", "list")
_QUANTITY: Final = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
_USAGE: Final = {"type": "object", "additionalProperties": _QUANTITY}
_FIELDS: Final = {"timestamp": {"type": "string", "format": "date-time"}, "window": {"type": "string"}}
_CONTAINER: Final = {
    "type": "object",
    "required": ["name", "usage"],
    "properties": {"name": {"type": "string"}, "usage": _USAGE},
}


def _definition(plural: str, kind: str, scope: str, fields: Object) -> Object:
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    schema = {"type": "object", "properties": {**_FIELDS, **fields}}
    version = {"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": names, "versions": [version]},
        "status": {"acceptedNames": names},
    }


_DEFINITIONS: Final = (
    _definition("nodes", "NodeMetrics", "Cluster", {"usage": _USAGE}),
    _definition("pods", "PodMetrics", "Namespaced", {"containers": {"type": "array", "items": _CONTAINER}}),
)


def served() -> Mapping[str, Versions]:
    """The resources, by the names of their definitions."""
    made = {definition["metadata"]["name"]: versions_of(definition, since=0) for definition in _DEFINITIONS}
    for versions in made.values():
        versions.keep_encoded()
        for resource in versions.all:
            resource.verbs = VERBS
    return made


def of_pod(pod: Object, now: datetime) -> Object | None:
    """PodMetrics; None: none of its containers runs."""
    used = usage.of_pod(pod)
    if not used:
        return None
    containers = [{"name": name, "usage": _texts(each)} for name, each in used.items()]
    return {**_head("PodMetrics", pod, now), "containers": containers}


def of_node(node: Object, pods: Iterable[Object], now: datetime) -> Object | None:
    """NodeMetrics; None: it is not ready."""
    return {**_head("NodeMetrics", node, now), "usage": _texts(usage.of_node(pods))} if is_ready(node) else None


def _texts(used: usage.Usage) -> dict[str, str]:
    return {resource: usage.text(resource, number) for resource, number in used.items()}


def _head(kind: str, value: Object, now: datetime) -> Object:
    of, time = value["metadata"], format_time(now)
    metadata = {name: of[name] for name in ("name", "namespace", "labels") if of.get(name)}
    return {
        "kind": kind,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {**metadata, "creationTimestamp": time},
        "timestamp": time,
        "window": WINDOW,
    }
