"""RequestInfo: the verb, resource and object of a request, from its decoded path (upstream's pkg/endpoints/request).

Like upstream, it first decodes the path and then splits it: `%2F` separates like `/`, so authorization and handlers see
the same resource however it is encoded. Namespaces are checked here and nowhere else; names are checked, as in upstream,
when the key of the object is made (`api.names.check_path_name`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from noxu.api.errors import ApiError, bad_request
from noxu.api.names import path_segment_name
from noxu.api.selectors import MAX_LENGTH, parse_fields
from noxu.go.text import quote
from noxu.go.url import decoded, has_bad_escape

_VERBS: Final = {
    "POST": ("create", "create"),
    "GET": ("list", "get"),
    "HEAD": ("list", "get"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("deletecollection", "delete"),
}
"""By method: the verb without and with a name."""

MAX_CACHED_PATH: Final = 300
"""Characters of a path and its method: a name, its namespace and its resource, each of usual length."""
MAX_PARAMETERS: Final = 10_000
"""Parameters of a query; Go ignores one that has more (net/url, urlmaxqueryparams)."""
_LONG_SUBRESOURCES: Final = frozenset({"attach", "exec", "proxy", "log", "portforward"})
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})

Query = dict[str, list[str]]


class RequestInfo(NamedTuple):
    """The parsed path. `verb` is "" for other methods, and for paths that are not of a resource."""

    is_resource: bool
    """False for documents (discovery, OpenAPI, health …); the other fields are then empty."""
    verb: str
    group: str
    version: str
    resource: str
    namespace: str
    name: str
    subresource: str
    in_namespace: bool
    """The path continues below a namespace; that of a namespace itself does not."""
    watching: bool
    """The path is that of a watch (`watch/`)."""
    more: bool
    """The path has more segments, which are not interpreted."""


NO_RESOURCE: Final = RequestInfo(False, "", "", "", "", "", "", "", False, False, False)


class Target(NamedTuple):
    """The target of a request. `host` is "" unless the target is an absolute URL."""

    path: str
    query: Query
    host: str
    info: RequestInfo


def parse_target(method: str, target: str) -> Target:
    """Parse the target of a request. Raises ApiError for an invalid URL or namespace."""
    if method == "CONNECT" and not target.startswith("/"):
        return Target("", {}, target, NO_RESOURCE)  # `host:port`, as proxies get it
    raw_path, raw_query, host = split_target(target)
    path, query = decode_path(raw_path), parse_query(raw_query) if raw_query else {}
    info_of = _known_info if len(method) + len(path) <= MAX_CACHED_PATH else _known_info.__wrapped__
    return Target(path, query, host, info_of(method, path, "watch" in query and is_watch(query)))


@lru_cache(maxsize=2048)
def _known_info(method: str, path: str, watch: bool) -> RequestInfo:
    """The RequestInfo, whose namespace is checked. Clients ask for the same paths again and again."""
    info = resource_info(method, path, watch=watch)
    if info.namespace:
        check_namespace(info.namespace)
    return info


def parse_query(text: str) -> Query:
    """The query parameters. Those that Go refuses (with a `;`, or a `%` that escapes nothing) are dropped, as it does.

    So are all if there are too many.
    """
    query: Query = {}
    if text.count("&") >= MAX_PARAMETERS:
        return query
    for part in text.split("&"):
        if part and ";" not in part and not has_bad_escape(part):
            name, _, value = part.partition("=")
            query.setdefault(_unescaped(name), []).append(_unescaped(value))
    return query


def _unescaped(text: str) -> str:
    if "+" in text:
        text = text.replace("+", " ")
    return decoded(text).decode(errors="replace") if "%" in text else text


def first(query: Query, name: str) -> str:
    """The first value of a parameter, "" if it is absent."""
    values = query.get(name)
    return values[0] if values else ""


def split_target(target: str) -> tuple[str, str, str]:
    """Split a target into path, query, and host if it is an absolute URL, as clients send it to proxies."""
    host = ""
    if not target.startswith("/"):
        scheme, separator, rest = target.partition("://")
        if separator and scheme.lower() in ("http", "https"):
            host, slash, rest = rest.partition("/")
            target = slash + rest
    path, _, query = target.partition("?")
    return path, query, host


def decode_path(raw: str) -> str:
    """The decoded path. Raises ApiError for an invalid URL."""
    if "%" not in raw:
        return raw
    if has_bad_escape(raw):
        raise ApiError(400, "", text="400 Bad Request")
    return decoded(raw).decode(errors="surrogateescape")


def is_watch(query: Query) -> bool:
    """Whether `watch` is given with any value but `0` and `false`; an empty one requests a watch, too."""
    return "watch" in query and first(query, "watch").lower() not in ("0", "false")


def resource_info(method: str, path: str, *, watch: bool = False) -> RequestInfo:
    """The RequestInfo of a path below /api/v1/ or /apis/GROUP/VERSION/; NO_RESOURCE for every other path.

    `watch`: the query asks for a watch.
    """
    if not path.startswith(("/api/", "/apis/")):  # `//apis/` is another path
        return NO_RESOURCE
    parts = path.strip("/").split("/")  # empty segments inside remain
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
    if watching or (verb == "list" and watch):
        verb = "watch"
    more = len(rest) > 3
    return RequestInfo(True, verb, group, version, resource, namespace, name, subresource, in_namespace, watching, more)


def is_long_running(info: RequestInfo) -> bool:
    """Whether a request may last as long as its client likes (kube-apiserver's BasicLongRunningRequestCheck)."""
    return info.verb == "watch" or info.subresource in _LONG_SUBRESOURCES


def selected_name(selector: str) -> str:
    """The name of the only object that a field selector can match, "" if there may be others.

    A list or watch of one object by its name is authorized like a request for it.
    """
    if "metadata.name" not in selector or len(selector) > MAX_LENGTH:  # which is refused later
        return ""
    try:
        name = parse_fields(selector).exact("metadata.name") or ""
    except ValueError:  # refused later
        return ""
    return "" if path_segment_name(name) else name


def check_namespace(namespace: str) -> None:
    """Check the namespace in a path. Harmless names pass, even if no namespace can have them. Raises ApiError."""
    if namespace in (".", ".."):
        raise bad_request(f"Namespace parameter invalid: {quote(namespace)}: may not be '{namespace}'")
    try:
        namespace.encode()
    except UnicodeEncodeError:
        raise bad_request(f"Namespace parameter invalid: {quote(namespace)}: must be UTF-8") from None
