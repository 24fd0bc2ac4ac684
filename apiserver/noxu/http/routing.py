"""Routing: from RequestInfo to the resource, and to the handler of the verb and the subresource.

Upstream serves custom resources with one handler that interprets any path. Built-in groups are go-restful web services:
they have a route for each path and method. A request without a route is refused before any lookup, with messages of its
own, and HEAD is not a GET.
"""

from __future__ import annotations

from typing import Final

from noxu.api import errors
from noxu.api.errors import ApiError
from noxu.api.meta import GroupVersionKind
from noxu.http import handlers, subresources
from noxu.http.handlers import Handler
from noxu.http.request import RequestInfo
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources

OBJECTS: Final[dict[str, Handler]] = {
    "get": handlers.get,
    "list": handlers.list_,
    "create": handlers.create,
    "update": handlers.update,
    "patch": handlers.patch,
    "delete": handlers.delete,
    "deletecollection": handlers.delete_collection,
}
"""By verb, for objects and for subresources whose body is the whole object. `watch_requests` handles watches."""
SUBRESOURCES: Final[dict[tuple[str, str], Handler]] = {
    ("scale", "get"): subresources.get_scale,
    ("scale", "update"): subresources.update_scale,
    ("scale", "patch"): subresources.patch_scale,
    ("token", "create"): subresources.issue_token,
    ("log", "get"): subresources.read_log,
}
"""By subresource and verb, for other subresources; those that act on their object are `handlers.act`."""
_BINDING: Final = GroupVersionKind("", "v1", "Binding")

_GET: Final = frozenset({"GET"})
_NO_METHOD: Final[frozenset[str]] = frozenset()
_COLLECTION_METHODS: Final = {"list": "GET", "create": "POST", "deletecollection": "DELETE"}
_OBJECT_METHODS: Final = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


_PROXIED: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_ON_STATUS: Final = ("get", "update", "patch")
"""The verbs of a definition's status."""


def find_resource(served_resources: ServedResources, method: str, path: str, info: RequestInfo) -> Resource:
    """The resource of a path. Raises ApiError NotFound, MethodNotAllowed.

    A path of the wrong scope is not found (CVE-2019-11247).
    """
    resource = served_resources.by_path.get((info.group, info.version, info.resource))
    if resource is None or not resource.is_custom:  # custom resources have no routes, whatever the method
        check_route(served_resources, method, path, info)
    if resource is None:
        raise not_served(served_resources, info.group, info.version)
    if info.in_namespace and not resource.namespaced:
        raise errors.page_not_found()
    # only lists go over all namespaces
    if resource.namespaced and not info.namespace and info.verb not in ("list", "watch"):
        raise errors.page_not_found()
    return resource


def is_elsewhere(served_resources: ServedResources, group: str, version: str) -> bool:
    """Whether an APIService asks for another server for a group version, and this one has no resources of it."""
    return (group, version) in served_resources.elsewhere and not served_resources.serves(group, version)


def not_served(served_resources: ServedResources, group: str, version: str) -> ApiError:
    """The error for a path of a group version that this server does not have."""
    if not is_elsewhere(served_resources, group, version):
        return errors.page_not_found()
    return errors.unavailable(
        f"noxu does not forward requests to other API servers, as the APIService {version}.{group} asks for; "
        "`noxu serve --kinds FILE` serves the kinds of an OpenAPI document"
    )


def handler_of(resource: Resource, info: RequestInfo) -> Handler:
    """Raises ApiError NotFound, MethodNotAllowed."""
    subresource, verb = info.subresource, info.verb
    if subresource and subresource not in resource.subresources:
        raise errors.not_found(resource.group_resource, info.name)
    handler = _of_subresource(resource, subresource, verb) if subresource else _of_object(resource, verb)
    if handler is None:
        raise errors.method_not_allowed(resource.group_resource, verb)
    return handler


def _of_object(resource: Resource, verb: str) -> Handler | None:
    if verb not in resource.verbs:
        return None
    if not resource.is_custom and not resource.is_stored:
        # the only kind that is posted to its collection and acts on another
        return handlers.act if resource.gvk == _BINDING else handlers.review
    return OBJECTS.get(verb)


def _of_subresource(resource: Resource, name: str, verb: str) -> Handler | None:
    part = resource.table.subresource(name) if resource.table is not None else None
    if part is not None and part.connect:
        return subresources.CONNECTIONS[name]  # for every method that its path has
    if part is not None and verb not in part.verbs:
        return None
    if (name, verb) in SUBRESOURCES:
        return SUBRESOURCES[name, verb]
    if name in resource.bodies:
        return handlers.act
    # of parts without a body of their own, status is the usual one
    is_whole_object = name == "status" or (part is not None and part.body is None)
    return OBJECTS[verb] if is_whole_object and verb in _ON_STATUS else None


# -- web services -----------------------------------------------------------------------------------------------------


def check_route(served_resources: ServedResources, method: str, path: str, info: RequestInfo) -> None:
    """Raises ApiError NotFound or MethodNotAllowed for a path that a web service has, but not with this method.

    Raises ApiError ServiceUnavailable for the discovery document of a group version that another server has.
    """
    if not info.is_resource and served_resources.elsewhere:
        match path.rstrip("/").split("/"):
            case ["", "apis", group, version] if is_elsewhere(served_resources, group, version):
                raise not_served(served_resources, group, version)
    methods = methods_of(served_resources, path, info)
    if methods is None or method in methods:
        return
    raise errors.no_route_with_method() if methods else errors.no_route()


def methods_of(served_resources: ServedResources, path: str, info: RequestInfo) -> frozenset[str] | None:
    """The methods of a path; None if it does not belong to a web service."""
    if not info.is_resource:
        return _of_document(served_resources, path)
    if info.group not in served_resources.built_in_groups:
        return None
    resource = served_resources.by_path.get((info.group, info.version, info.resource))
    if resource is None:
        return _NO_METHOD
    if resource.is_custom:
        return None  # a custom resource in a built-in group
    found = _of_resource(resource, info)
    if info.watching:
        # the old paths of watches, which have no other method
        return found & _GET if not info.subresource and "watch" in resource.verbs else _NO_METHOD
    return found


def _of_document(served_resources: ServedResources, path: str) -> frozenset[str] | None:
    """/version, the documents of OpenID, and the discovery documents of built-in groups."""
    match path.rstrip("/").split("/"):
        case ["", "version", *rest]:
            return _NO_METHOD if rest else _GET
        case ["", "openid", "v1", "jwks"] | ["", ".well-known", "openid-configuration"]:
            return _GET
        case ["", "api", *rest]:
            group = ""
        case ["", "apis", group, *rest] if group:
            pass
        case _:
            return None
    if group not in served_resources.built_in_groups:
        return None
    return _GET if not rest or rest[0] in served_resources.groups[group] else _NO_METHOD


def _of_resource(resource: Resource, info: RequestInfo) -> frozenset[str]:
    part = resource.table.subresource(info.subresource) if resource.table is not None and info.subresource else None
    is_proxy = part is not None and part.connect and part.name == "proxy"
    if (info.more and not is_proxy) or (info.in_namespace and not resource.namespaced):
        return _NO_METHOD
    if resource.namespaced and not info.in_namespace:  # all namespaces, which can only be listed
        return _GET if not info.name and "list" in resource.verbs else _NO_METHOD
    if is_proxy:
        return _PROXIED
    if part is not None:
        return frozenset(_OBJECT_METHODS[verb] for verb in part.verbs)
    if info.subresource:
        return frozenset(_OBJECT_METHODS[verb] for verb in _ON_STATUS if info.subresource in resource.subresources)
    if info.name:
        return frozenset(
            _OBJECT_METHODS[verb] for verb in resource.verbs if verb in _OBJECT_METHODS and verb != "create"
        )
    # what remains is a collection
    return frozenset(_COLLECTION_METHODS[verb] for verb in resource.verbs if verb in _COLLECTION_METHODS)
