"""Web services: which paths of built-in kinds there are, and with which methods (upstream's go-restful containers).

Upstream serves custom resources with one handler that interprets any path. Built-in groups have a route for each path
and method, so what has none is refused before anything is looked at, in words of its own, and HEAD is no GET.
"""

from __future__ import annotations

from typing import Final

from apiserver.api import errors
from apiserver.http.request import RequestInfo
from apiserver.http.routes import HANDLERS
from apiserver.registry.catalog import Catalog
from apiserver.registry.resource import Resource

_DOCUMENT: Final = frozenset({"GET"})
_NOTHING: Final[frozenset[str]] = frozenset()
_OF_ALL: Final = {"list": "GET", "create": "POST", "deletecollection": "DELETE"}
_OF_ONE: Final = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


def check(catalog: Catalog, method: str, path: str, info: RequestInfo | None) -> None:
    """Raises ApiError NotFound or MethodNotAllowed for a path that a web service has, but not like this."""
    methods = methods_of(catalog, path, info)
    if methods is None or method in methods:
        return
    raise errors.no_route_with_method() if methods else errors.no_route()


def methods_of(catalog: Catalog, path: str, info: RequestInfo | None) -> frozenset[str] | None:
    """The methods of a path, whose `resource_info` is given; None if it is no web service's."""
    if info is None:
        return _of_document(catalog, path)
    if info.group not in catalog.built_in_groups:
        return None
    resource = catalog.find(info.group, info.version, info.resource)
    if resource is None:
        return _NOTHING
    if resource.behaviour.struct is None:
        return None  # a custom resource in a built-in group
    found = _of_resource(resource, info)
    if info.watching:
        return found & _DOCUMENT if not info.subresource and "watch" in resource.verbs else _NOTHING
    return found


def _of_document(catalog: Catalog, path: str) -> frozenset[str] | None:
    """/version, and the discovery documents of built-in groups."""
    match path.rstrip("/").split("/"):
        case ["", "version", *rest]:
            return _NOTHING if rest else _DOCUMENT
        case ["", "api", *rest]:
            group = ""
        case ["", "apis", group, *rest] if group:
            pass
        case _:
            return None
    if group not in catalog.built_in_groups:
        return None
    return _DOCUMENT if not rest or rest[0] in catalog.groups[group] else _NOTHING


def _of_resource(resource: Resource, info: RequestInfo) -> frozenset[str]:
    if info.more or (info.in_namespace and not resource.namespaced):
        return _NOTHING
    if resource.namespaced and not info.in_namespace:  # all namespaces, which can only be listed
        return _DOCUMENT if not info.name and "list" in resource.verbs else _NOTHING
    if info.subresource:
        known = info.subresource in resource.subresources
        return frozenset(_OF_ONE[verb] for name, verb in HANDLERS if known and name == info.subresource)
    if info.name:
        return frozenset(_OF_ONE[verb] for verb in resource.verbs if verb in _OF_ONE and verb != "create")
    return frozenset(_OF_ALL[verb] for verb in resource.verbs if verb in _OF_ALL)
