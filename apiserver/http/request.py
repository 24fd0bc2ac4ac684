"""What a request is about: RequestInfo, from the decoded path (upstream's pkg/endpoints/request).

The path is decoded first and then split, as upstream does, so `%2F` separates like `/` does and no clever encoding
reaches another resource. Names and namespaces are checked here and nowhere else.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from apiserver.api.errors import bad_request
from apiserver.api.gotext import quote
from apiserver.api.names import path_segment_name

_VERBS: Final = {
    "POST": ("create", "create"),
    "GET": ("list", "get"),
    "HEAD": ("list", "get"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("deletecollection", "delete"),
}
"""By method: the verb without and with a name."""

_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})

Query = dict[str, list[str]]


class RequestInfo(NamedTuple):
    """A request for API objects. `verb` is empty for methods that mean nothing."""

    verb: str
    group: str
    version: str
    resource: str
    namespace: str
    name: str
    subresource: str
    in_namespace: bool
    """The path leads into a namespace; that of a namespace itself does not."""


def parse_query(text: str) -> Query:
    """The query parameters; those that Go refuses (a stray `;` or `%`) are dropped as it does."""
    query: Query = {}
    if text:
        for name, value in parse_qsl(text, keep_blank_values=True, errors="replace"):
            query.setdefault(name, []).append(value)
    return query


def first(query: Query, name: str) -> str:
    """The first value of a parameter, "" if it is absent."""
    values = query.get(name)
    return values[0] if values else ""


def decode_path(raw: str) -> str:
    """The decoded path. Raises ApiError for what is not a valid URL."""
    if "%" not in raw:
        return raw
    for part in raw.split("%")[1:]:
        if len(part) < 2 or not all(c in "0123456789abcdefABCDEF" for c in part[:2]):
            raise bad_request(f'invalid URL escape "%{part[:2]}"')
    return unquote(raw, errors="surrogateescape")


def is_watch(query: Query) -> bool:
    """`watch=1`, `watch=true` and any other text but `0` and `false` ask for a watch, an empty one, too."""
    return "watch" in query and first(query, "watch").lower() not in ("0", "false")


def resource_info(method: str, path: str, query: Query) -> RequestInfo | None:
    """The RequestInfo of a path below /api/v1/ or /apis/GROUP/VERSION/; None for every other path."""
    parts = path.strip("/").split("/")  # empty parts inside stay: `//` is no shorter way to anything
    if len(parts) > 2 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) > 3 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    watching = rest[0] == "watch" and len(rest) > 1
    if watching:
        rest = rest[1:]
    namespace, in_namespace = "", False
    if rest[0] == "namespaces" and len(rest) > 1:
        if len(rest) > 2 and not (rest[2] in _NAMESPACE_SUBRESOURCES and len(rest) == 3):
            namespace, in_namespace, rest = rest[1], True, rest[2:]
        else:
            namespace = rest[1]
    resource, name, subresource = (*rest, "", "")[:3]  # what comes behind is not interpreted
    without_name, with_name = _VERBS.get(method, ("", ""))
    verb = with_name if name else without_name
    if watching or (verb == "list" and is_watch(query)):
        verb = "watch"
    return RequestInfo(verb, group, version, resource, namespace, name, subresource, in_namespace)


def check_name(name: str) -> None:
    """The name in a path. Raises ApiError."""
    complaints = path_segment_name(name)
    if complaints:
        raise bad_request(f"Name parameter invalid: {quote(name)}: {';'.join(complaints)}")
