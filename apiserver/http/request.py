"""What a request asks for: RequestInfo, from the decoded path (upstream's pkg/endpoints/request).

The path is decoded first and then split, as upstream does, so `%2F` separates like `/` does and no clever encoding
reaches another resource. Names and namespaces are checked here and nowhere else.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_plus

from noxu.apiserver.api.errors import ApiError, bad_request
from noxu.apiserver.api.names import path_segment_name
from noxu.apiserver.go.text import quote

_VERBS: Final = {
    "POST": ("create", "create"),
    "GET": ("list", "get"),
    "HEAD": ("list", "get"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("deletecollection", "delete"),
}
"""By method: the verb without and with a name."""

_BAD_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})

Query = dict[str, list[str]]


class RequestInfo(NamedTuple):
    """What a path asks for. `verb` is empty for methods that mean nothing, and for paths of no resource."""

    is_resource: bool
    """Otherwise it is a document: discovery, OpenAPI, health …; everything else is then empty."""
    verb: str
    group: str
    version: str
    resource: str
    namespace: str
    name: str
    subresource: str
    in_namespace: bool
    """The path leads into a namespace; that of a namespace itself does not."""
    watching: bool
    """The path says that it is for a watch (`watch/`)."""
    more: bool
    """More segments follow, which are not interpreted."""


NO_RESOURCE: Final = RequestInfo(False, "", "", "", "", "", "", "", False, False, False)


class Target(NamedTuple):
    """The target of a request. `host` is "" unless it is a whole URL."""

    path: str
    query: Query
    host: str
    info: RequestInfo


def parse_target(method: str, target: str) -> Target:
    """What a request is about. Raises ApiError for what is not a valid URL, or a namespace that cannot be one."""
    raw_path, raw_query, host = split_target(target)
    path, query = decode_path(raw_path), parse_query(raw_query) if raw_query else {}
    info = resource_info(method, path, query)
    if info.namespace:
        check_namespace(info.namespace)
    return Target(path, query, host, info)


def parse_query(text: str) -> Query:
    """The query parameters. Those that Go refuses (with a `;`, or a `%` that escapes nothing) are dropped, as it does."""
    query: Query = {}
    for part in text.split("&"):
        if part and ";" not in part and not _has_bad_escape(part):
            name, _, value = part.partition("=")
            query.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    return query


def first(query: Query, name: str) -> str:
    """The first value of a parameter, "" if it is absent."""
    values = query.get(name)
    return values[0] if values else ""


def split_target(target: str) -> tuple[str, str, str]:
    """A request's target: path, query, and the host if it is a whole URL, as clients of proxies send it."""
    host = ""
    if not target.startswith("/"):
        scheme, separator, rest = target.partition("://")
        if separator and scheme.lower() in ("http", "https"):
            host, slash, rest = rest.partition("/")
            target = slash + rest
    path, _, query = target.partition("?")
    return path, query, host


def decode_path(raw: str) -> str:
    """The decoded path. Raises ApiError for what is not a valid URL."""
    if "%" not in raw:
        return raw
    if _has_bad_escape(raw):
        raise ApiError(400, "", text="400 Bad Request")
    return unquote(raw, errors="surrogateescape")


def _has_bad_escape(text: str) -> bool:
    return "%" in text and _BAD_ESCAPE.search(text) is not None


def is_watch(query: Query) -> bool:
    """`watch=1`, `watch=true` and any other text but `0` and `false` ask for a watch, an empty one, too."""
    return "watch" in query and first(query, "watch").lower() not in ("0", "false")


def resource_info(method: str, path: str, query: Query) -> RequestInfo:
    """The RequestInfo of a path below /api/v1/ or /apis/GROUP/VERSION/; NO_RESOURCE for every other path."""
    if not path.startswith(("/api/", "/apis/")):  # `//apis/` is another path
        return NO_RESOURCE
    parts = path.strip("/").split("/")  # empty parts inside stay, too
    if len(parts) > 2 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) > 3 and parts[0] == "apis" and parts[1]:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return NO_RESOURCE
    watching = rest[0] == "watch" and len(rest) > 1
    if watching:
        rest = rest[1:]
    namespace, in_namespace = "", False
    if rest[0] == "namespaces" and len(rest) > 1:
        if len(rest) > 2 and not (rest[2] in _NAMESPACE_SUBRESOURCES and len(rest) == 3):
            namespace, in_namespace, rest = rest[1], True, rest[2:]
        else:
            namespace = rest[1]
    resource, name, subresource = (*rest, "", "")[:3]
    without_name, with_name = _VERBS.get(method, ("", ""))
    verb = with_name if name else without_name
    if watching or (verb == "list" and is_watch(query)):
        verb = "watch"
    more = len(rest) > 3
    return RequestInfo(True, verb, group, version, resource, namespace, name, subresource, in_namespace, watching, more)


def check_namespace(namespace: str) -> None:
    """The namespace in a path. A name that no namespace can have, but that does no harm, passes. Raises ApiError."""
    if namespace in (".", ".."):
        raise bad_request(f"Namespace parameter invalid: {quote(namespace)}: may not be '{namespace}'")
    try:
        namespace.encode()
    except UnicodeEncodeError:
        raise bad_request(f"Namespace parameter invalid: {quote(namespace)}: must be UTF-8") from None


def check_name(name: str) -> None:
    """The name in a path. Raises ApiError."""
    complaints = path_segment_name(name)
    if complaints:
        raise bad_request(f"Name parameter invalid: {quote(name)}: {';'.join(complaints)}")
