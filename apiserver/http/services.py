"""Web services: which paths of built-in kinds there are, and with which methods (upstream's go-restful containers).

Upstream serves custom resources with one handler that interprets any path. Built-in groups have a route for each path
and method, so what has none is refused before anything is looked at, in words of its own, and HEAD is no GET.
"""

from __future__ import annotations

from typing import Final

from apiserver.api import errors
from apiserver.http.routes import HANDLERS
from apiserver.registry.catalog import Catalog
from apiserver.registry.resource import Resource

_DOCUMENT: Final = frozenset({"GET"})
_NOTHING: Final[frozenset[str]] = frozenset()
_OF_ALL: Final = {"list": "GET", "create": "POST", "deletecollection": "DELETE"}
_OF_ONE: Final = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


def check(catalog: Catalog, method: str, path: str) -> None:
    """Raises ApiError NotFound or MethodNotAllowed for a path that a web service has, but not like this."""
    methods = methods_of(catalog, path)
    if methods is None or method in methods:
        return
    raise errors.no_route_with_method() if methods else errors.no_route()


def methods_of(catalog: Catalog, path: str) -> frozenset[str] | None:
    """The methods of a path; None if it is no web service's."""
    root, *rest = path.strip("/").split("/")
    if root == "version":
        return _NOTHING if rest else _DOCUMENT
    if root == "apis" and rest and rest[0]:
        group, *rest = rest
    elif root == "api":
        group = ""
    else:
        return None
    if group not in catalog.built_in_groups or not path.startswith(f"/{root}"):  # `//apis` is no other way there
        return None
    if not rest:
        return _DOCUMENT
    version, *rest = rest
    if version not in catalog.groups.get(group, ()):
        return _NOTHING
    return _of_version(catalog, group, version, rest) if rest else _DOCUMENT


def _of_version(catalog: Catalog, group: str, version: str, rest: list[str]) -> frozenset[str] | None:
    watching, namespaced = rest[0] == "watch" and len(rest) > 1, False
    if watching:
        rest = rest[1:]
    if rest[0] == "namespaces" and len(rest) > 2 and catalog.find(group, version, rest[2]) is not None:
        namespaced, rest = True, rest[2:]
    resource = catalog.find(group, version, rest[0])
    if resource is None:
        return _NOTHING
    if resource.behaviour.struct is None:
        return None  # a custom resource in a built-in group
    found = _of_resource(resource, namespaced, rest[1:])
    if watching:
        return found & _DOCUMENT if len(rest) < 3 and "watch" in resource.verbs else _NOTHING
    return found


def _of_resource(resource: Resource, namespaced: bool, rest: list[str]) -> frozenset[str]:
    if len(rest) > 2 or (namespaced and not resource.namespaced):
        return _NOTHING
    if resource.namespaced and not namespaced:  # all namespaces, which can only be listed
        return _DOCUMENT if not rest and "list" in resource.verbs else _NOTHING
    if len(rest) == 2:
        verbs = [verb for name, verb in HANDLERS if name == rest[1]] if rest[1] in resource.subresources else []
        return frozenset(_OF_ONE[verb] for verb in verbs)
    if rest:
        return frozenset(_OF_ONE[verb] for verb in resource.verbs if verb in _OF_ONE and verb != "create")
    return frozenset(_OF_ALL[verb] for verb in resource.verbs if verb in _OF_ALL)
