"""Writes docs/http.md, the page about the HTTP interface, from the code.

    python -m docs.http_page

Paths, verbs, options, media types and kinds are those of the routes, of OpenAPI and of the served resources. The meaning of headers,
statuses and further parameters is written here, and the code is searched for those that it reads or makes: one that is in
no table is an error, and so is a row that the code does not have.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from noxu.discovery.openapi_paths import BUILT_IN, CUSTOM, PathAction, option_parameters, routes
from noxu.http import negotiation
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.custom import versions_of
from noxu.registry.resource import APPLY_CBOR, BUILT_IN_PATCHES, CUSTOM_PATCHES, Resource
from noxu.registry.served_resources import ServedResources

PAGE: Final = Path(__file__).with_name("http.md")
_HEAD: Final = """# HTTP

What a client may request, and what the server answers. `python -m docs.http_page` writes this page from the code.
A server also publishes its paths and types as [OpenAPI](#other-paths), with those of your definitions.
[deviations.md](deviations.md) says where answers differ from those of kube-apiserver.

HTTP/1.1 and HTTP/1.0 are served, with [TLS](tls.md) or without.
"""

PATHS: Final = {
    "/": "the list of all paths",
    "/version": "the version of Kubernetes whose API this is, and of Noxu. JSON",
    "/api": "discovery: the versions of the core group; [aggregated](#media-types) on request",
    "/api/v1": "discovery: the resources of the core group",
    "/apis": "discovery: the groups; aggregated on request",
    "/apis/GROUP": "discovery: one group",
    "/apis/GROUP/VERSION": "discovery: the resources of one group version",
    "/openapi/v2": "OpenAPI 2.0 of everything, in JSON or protobuf",
    "/openapi/v3": "the index of OpenAPI 3.0: the path of each group version, with the hash of its content",
    "/openapi/v3/api/v1": "OpenAPI 3.0 of the core group",
    "/openapi/v3/apis/GROUP/VERSION": "OpenAPI 3.0 of one group version, in JSON or protobuf",
    "/livez": "`ok` if the process works ([metrics.md](metrics.md) has the checks)",
    "/readyz": "`ok` if the server can serve clients, else 500",
    "/healthz": "as `/livez`, the older name",
    "/livez/CHECK": "one check; `/readyz/CHECK` and `/healthz/CHECK`, too",
    "/metrics": "metrics for Prometheus",
    "/metrics/slis": "the results of health checks as metrics",
    "/.well-known/openid-configuration": "the issuer of service account tokens, if that is an https URL",
    "/openid/v1/jwks": "the public keys of these tokens, under the same condition",
    "/_noxu/": "[control of the server](control.md): the calls, with their arguments",
    "/_noxu/at/MOMENT/PATH": "`PATH` of the API as it was at [a moment of the past](control.md#the-past), for clients that read",
    "/_noxu/traces": "on loopback only: the newest [traces of writes](cli.md#noxu-explain-write)",
}
"""Paths that are not of resources."""

PARAMETERS: Final = {
    "timeout": (
        "every verb but watch",
        "A duration such as `5s`: the request ends then. At most the server's own limit.",
    ),
    "includeObject": (
        "get, list, watch",
        "For tables: what a row has of its object, `None`, `Metadata` (the default) or `Object`.",
    ),
    "export": ("get", "Refused: deprecated since v1.14, and no longer supported."),
    "uid": ("delete, deletecollection", "A precondition: the object has this uid. `resourceVersion` is another one."),
    "container": ("`pods/log`", "The container."),
    "sinceSeconds": ("`pods/log`", "Checked; lines have no times."),
    "sinceTime": ("`pods/log`", "Checked; lines have no times."),
    "tailLines": ("`pods/log`", "The last lines of a simulated pod."),
    "limitBytes": ("`pods/log`", "The first bytes of a simulated pod's."),
    "previous": ("`pods/log`", "The log of a container of a simulated pod that has ended."),
    "hash": (
        "`/openapi/v3/…`",
        "The document with this hash, which may be cached for a year; another hash is redirected to the current one.",
    ),
    "verbose": ("`/livez`, `/readyz`, `/healthz`", "Lists the checks."),
    "exclude": ("`/livez`, `/readyz`, `/healthz`", "Leaves out a check. May be repeated."),
}
"""Parameters that are not fields of the options in OpenAPI: where they are read, and their meaning."""

VALUES: Final = {
    "allowWatchBookmarks": "No effect on lists.",
    "dryRun": "Other values are refused (422).",
    "fieldManager": "Without it, the User-Agent up to the first slash. Required for apply patches (422).",
    "fieldSelector": "`metadata.name`, `metadata.namespace`, and the selectable fields of the kind; others are refused (400).",
    "fieldValidation": "Other values are refused (422).",
    "force": "Refused for other patches (422).",
    "resourceVersionMatch": "For lists it needs a `resourceVersion`, for watches `sendInitialEvents` (422).",
    "sendInitialEvents": "Needs `resourceVersionMatch=NotOlderThan`. Refused for lists (422).",
    "shardSelector": "Ignored, as upstream does while its gate ShardedListAndWatch is off.",
}
"""What follows the text of OpenAPI: values that are refused, and with which status."""

REQUEST_HEADERS: Final = {
    "Accept": "the [media type](#media-types) of the answer",
    "Accept-Encoding": "`gzip`: answers above 128 KiB are compressed, lists that are sent in pieces, and watches with "
    "`sendInitialEvents` and `allowWatchBookmarks`",
    "Audit-Id": "the identifier of the request in the [audit log](audit.md); it is returned",
    "Authorization": "`Bearer TOKEN` ([authentication.md](authentication.md)); other schemes are ignored with a warning",
    "Connection": "with `Upgrade`, as below",
    "Content-Length": "the length of the body: at most 3 MiB (413)",
    "Content-Type": "the [media type](#media-types) of the body; without it, JSON",
    "Expect": "`100-continue`; other expectations are refused (417)",
    "Host": "without TLS it must be loopback, or a name of the server (403)",
    "If-Modified-Since": "OpenAPI: 304 if the document is not newer",
    "If-None-Match": "OpenAPI and aggregated discovery: 304 if the client has the document with this ETag",
    "Impersonate-Group": "a group of the user in `Impersonate-User`. May be repeated",
    "Impersonate-User": "act as another user, if the own one may ([authorization.md](authorization.md))",
    "Impersonate-Uid": "its uid",
    "Impersonate-Extra-KEY": "its extra fields",
    "Origin": "a web page: refused (403) unless it is the server's own or allowed by `--cors-allowed-origins`",
    "Sec-Fetch-Site": "`cross-site` and `same-site` are refused (403), as above",
    "Sec-WebSocket-Key": "a watch, or a command in a simulated pod, as a WebSocket",
    "Sec-WebSocket-Protocol": "its protocol; `base64url.bearer.authorization.k8s.io.TOKEN` has a token",
    "Sec-WebSocket-Version": "`13`; others are refused (400)",
    "Transfer-Encoding": "`chunked`; others are refused (501)",
    "Tracestate": "what tracers add to it, which is handed on to webhooks",
    "Upgrade": "`websocket`, for a watch; that, or `SPDY/3.1`, for a command in a simulated pod",
    "Traceparent": "the trace of the request, which is kept with a write: [the log of writes](control.md#who-wrote-what-and-why)",
    "User-Agent": "the default of `fieldManager`; JSON is indented for curl, Wget and browsers",
    "X-Stream-Protocol-Version": "protocols of a command over SPDY: `v5.channel.k8s.io`, `v4.channel.k8s.io`; others are refused (403)",
    "X-Forwarded-For": "an address in the audit log",
    "X-Noxu-Trace": "on loopback, a [trace of the write](cli.md#noxu-explain-write)",
    "X-Real-Ip": "an address in the audit log",
    "X-Remote-User": "the user, from a front proxy that `--requestheader-client-ca-file` knows by its certificate; "
    "`X-Remote-Uid`, `X-Remote-Group` and `X-Remote-Extra-KEY` have the rest. Options rename them",
}
_BY_NAME: Final = frozenset(
    {
        "Impersonate-Extra-KEY",
        "Impersonate-User",
        "Impersonate-Uid",
        "Traceparent",
        "Tracestate",
        "X-Noxu-Trace",
        "X-Remote-User",
    }
)
"""Headers whose name is a constant or an option where they are read."""

RESPONSE_HEADERS: Final = {
    "Audit-Id": "the identifier of the request",
    "Cache-Control": "`no-cache, private`, except for OpenAPI with a hash, aggregated discovery, and OpenID",
    "Content-Encoding": "`gzip`, with `Vary: Accept-Encoding`",
    "ETag": "of OpenAPI and aggregated discovery",
    "Retry-After": "with 429, 504 and some of 409: seconds",
    "Warning": '`299 - "TEXT"`: deprecated versions, unknown fields, webhooks and policies. May be repeated',
}

STATUSES: Final[Mapping[tuple[int, str], str]] = {
    (
        200,
        "",
    ): "read, changed, or deleted. Also a deletion that waits for finalizers or dependents, with the object in the body",
    (201, ""): "created, also by a PUT or an apply patch; a review is answered",
    (202, ""): "deleted later, for clients that sent `orphanDependents=false`",
    (204, ""): "a preflight of an allowed origin (CORS)",
    (301, ""): "OpenAPI with an old hash: the current path is in `Location`",
    (304, ""): "the client has the document",
    (400, ""): "the request is no HTTP that this server reads; the connection is closed",
    (400, "BadRequest"): "a body, a parameter or a selector cannot be read, or contradicts the path",
    (401, "Unauthorized"): "credentials were sent, and are not valid; or anonymous users are switched off",
    (
        403,
        "Forbidden",
    ): "authorization or admission refuse; a namespace is being deleted; a quota is exceeded; a foreign web page or Host",
    (404, "NotFound"): "there is no such object, resource or path. Paths that belong to nothing get plain text",
    (405, "MethodNotAllowed"): "the resource does not have the verb",
    (406, ""): "OpenAPI does not exist in the formats that are accepted",
    (406, "NotAcceptable"): "no media type of `Accept` exists for this path",
    (409, "AlreadyExists"): "a POST of a name that exists, or no free name was found for a `generateName`",
    (
        409,
        "Conflict",
    ): "the object was modified since its `resourceVersion`; a precondition fails; an apply conflicts with other managers",
    (410, "Expired"): "the `resourceVersion` or the token of a list is too old: list again",
    (413, "RequestEntityTooLarge"): "the body is above its [limit](limits.md)",
    (415, "UnsupportedMediaType"): "the type of the body or of the patch is unknown",
    (417, ""): "an expectation other than `100-continue`",
    (
        422,
        "Invalid",
    ): "the object or the options are invalid: `details.causes` has each field; a JSON patch does not apply",
    (
        429,
        "TooManyRequests",
    ): "too many requests or watches at once, or a PodDisruptionBudget does not allow an eviction",
    (431, "RequestHeaderFieldsTooLarge"): "`Accept` or `Content-Type` is above its [limit](limits.md)",
    (500, "InternalError"): "a webhook, the store or the server failed; its log says more",
    (500, "StorageReadError"): "a stored object is corrupt",
    (501, ""): "a transfer encoding other than `chunked`",
    (503, "ServiceUnavailable"): "a group version of another API server; what needs a kubelet or a network",
    (504, "Timeout"): "the deadline has passed, or a `resourceVersion` of the future did not come",
    (505, ""): "another version of HTTP",
}
"""By code and reason."""

REFUSED: Final = {
    "an object of a namespaced resource without its namespace": "404, plain text",
    "PUT, PATCH or DELETE of a built-in collection that does not have it": "405",
    "a body of another kind, for a custom resource": "422",
    "a body of another kind, for a built-in one": "400",
    "protobuf in the body for a custom resource": "415",
    "a watch that accepts YAML only": "406",
    "strategic merge patches of custom resources": "415",
    "a patch without `Content-Type`": "415",
    "other transfer encodings than `chunked`": "501",
    "web pages of other sites": "403",
    "without TLS, other names in `Host`": "403",
    "exec, attach, port-forward, proxies": "an error, after the checks of a server that has a kubelet. With [simulated nodes](cli.md#noxu-serve), exec and attach answer what rules and annotations say",
    "HTTP/2": "not offered, with or without TLS",
}
"""What is refused, and how."""

# -- what the code reads and makes ------------------------------------------------------------------------------------

_PARTS: Final = ("http", "security", "registry", "api", "apply", "tables")
_READERS: Final = frozenset({"first", "boolean", "integer"})


@cache
def _nodes() -> tuple[ast.AST, ...]:
    root = Path(negotiation.__file__).parents[1]
    paths = sorted(path for part in _PARTS for path in (root / part).rglob("*.py"))
    assert paths
    own = [path for path in paths if path.name != "webhooks.py"]  # the server is the client there
    return tuple(node for path in own for node in ast.walk(ast.parse(path.read_text())))


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@cache
def headers_read() -> set[str]:
    """Headers that are read by their literal name: `headers.get("Accept", "")`, `"Origin" in headers`."""
    found = set()
    for node in _nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if node.func.attr in ("get", "getall") and ast.unparse(node.func.value).endswith("headers"):
                found.add(_text(node.args[0]))
        elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]).endswith("headers"):
            found.add(_text(node.left))
    return found - {""}


@cache
def parameters_read() -> set[str]:
    """Query parameters that are read by their literal name: `first(query, "limit")`, `"watch" in query`."""
    found = set()
    for node in _nodes():
        if isinstance(node, ast.Call) and node.args:
            name = ast.unparse(node.func)
            if name in _READERS and len(node.args) > 1 and ast.unparse(node.args[0]).endswith("query"):
                found.add(_text(node.args[1]))
            elif name.endswith("query.get"):
                found.add(_text(node.args[0]))
        elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]).endswith("query"):
            found.add(_text(node.left))
    return found - {""}


@cache
def statuses_made() -> set[tuple[int, str]]:
    """The code and the reason of errors, `ApiError(404, message, "NotFound")`, and the code of other answers."""
    found = set()
    for node in _nodes():
        if not isinstance(node, ast.Call):
            continue
        place = {"ApiError": 0, "Answer": 1}.get(ast.unparse(node.func))
        if place is None or len(node.args) <= place or not isinstance(node.args[place], ast.Constant):
            continue
        code: Any = ast.literal_eval(node.args[place])
        reason = node.args[2] if place == 0 and len(node.args) > 2 else None
        is_named = isinstance(reason, ast.Name)  # a message that is the reason, too
        found.add((code, "Unauthorized" if is_named and code == 401 else _text(reason) if reason else ""))
    return found


# -- the page ---------------------------------------------------------------------------------------------------------


def page() -> str:
    """The text of the page. Raises ValueError for what the code has and the tables do not, and the reverse."""
    of_options = {name for _, action in _actions() for name in _options(action)} | {"pretty"}
    _same("parameters", parameters_read() - of_options, PARAMETERS.keys())
    _same("headers", headers_read(), REQUEST_HEADERS.keys() - _BY_NAME)
    _same("statuses", statuses_made(), STATUSES.keys() - {(202, "")})
    parts = (_paths(), _parameters(), _media_types(), _headers(), _statuses(), _others(), _refused(), _kinds())
    lines = [_HEAD, *(line for part in parts for line in part)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _same(what: str, code: Iterable[object], table: Iterable[object]) -> None:
    code, table = set(code), set(table)
    if code != table:
        raise ValueError(
            f"{what}: not in a table {sorted(code - table, key=str)}, not in the code {sorted(table - code, key=str)}"
        )


def _table(head: str, rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield f"| {head} |"
    yield "|---" * (head.count("|") + 1) + "|"
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def _codes(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _example() -> Resource:
    names = {"plural": "PLURAL", "kind": "KIND", "listKind": "KINDList", "singular": "kind"}
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}}},
    }
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "VERSION",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
    }
    definition = {
        "metadata": {"name": "PLURAL.GROUP"},
        "spec": {"group": "GROUP", "scope": "Namespaced", "names": names, "versions": [version]},
        "status": {"acceptedNames": names},
    }
    return ServedResources([], {"PLURAL": versions_of(definition, 0)}).by_path["GROUP", "VERSION", "PLURAL"]


def _paths() -> Iterator[str]:
    found: dict[str, list[str]] = {}
    for route in routes(_example()):
        found.setdefault(route.path, []).append(f"`{route.action.method.upper()}` {_verb(route.action)}")
    yield "## Paths of resources\n"
    yield "A custom resource, here a namespaced one with both subresources. Cluster scope leaves out `namespaces/{namespace}/`.\n"
    yield from _table("path | methods and verbs", ((f"`{path}`", ", ".join(verbs)) for path, verbs in found.items()))
    yield (
        "`GET` with the parameter `watch` is the verb watch: of a collection, or of one object with\n"
        "`fieldSelector=metadata.name=NAME`. `HEAD` is a `GET` without a body, for custom resources only. The core group is below\n"
        "`/api/v1` instead of `/apis/GROUP/VERSION`. Built-in kinds also have the paths of watches with `watch/` behind the version,\n"
        "which are deprecated. [Built-in resources](#built-in-resources) lists their verbs and subresources.\n"
    )


def _verb(action: PathAction) -> str:
    return {"post": "create", "put": "update", "watchlist": "watch"}.get(action.name, action.name)


def _actions() -> list[tuple[str, PathAction]]:
    """By the verb of the served resources; what built-in kinds or custom resources have not published is understood for both."""
    return [(_verb(action), action) for actions in (CUSTOM, BUILT_IN) for action in actions.values()]


def _options(action: PathAction) -> dict[str, tuple[str, str]]:
    """The query parameters of a verb: type and text."""
    without = BUILT_IN["deletecollection"].without if action.name == "deletecollection" else action.without
    found = (parameter for struct in action.options for parameter in option_parameters(struct))
    return {each.name: (each.type, each.text) for each in found if each.name not in without}


def _parameters() -> Iterator[str]:
    verbs: dict[str, list[str]] = {}
    about: dict[str, tuple[str, str]] = {}
    for verb, action in _actions():
        for name, text in _options(action).items():
            about[name] = text
            if verb not in verbs.setdefault(name, []):
                verbs[name].append(verb)
    rows = {
        name: (", ".join(verbs[name]), kind, " ".join(filter(None, (text, VALUES.get(name, "")))))
        for name, (kind, text) in about.items()
    }
    rows["pretty"] = ("all", "string", "Indents JSON: `true`, `1`, `t`.")
    rows |= {name: (where, "string", text) for name, (where, text) in PARAMETERS.items()}
    _same("values", VALUES.keys() - rows.keys(), set())
    yield "## Query parameters\n"
    yield "A boolean is true unless it is `false` or `0`. A number that cannot be read is refused (400).\n"
    yield from _table("parameter | verbs | type | meaning", ((f"`{name}`", *rows[name]) for name in sorted(rows)))


def _media_types() -> Iterator[str]:
    def offered(endpoint: negotiation.Representations, kind: str = "") -> str:
        targets = [target for target in endpoint.offers if (target[2] if target else "") == kind]
        return _codes(text for text in negotiation.MEDIA_TYPES if text in endpoint.offers[targets[0]])

    custom, built_in = negotiation.CUSTOM_RESOURCE, negotiation.BUILT_IN
    table, partial = "Table", "PartialObjectMetadata"
    yield "## Media types\n"
    yield from _table(
        "| custom resources | built-in kinds",
        [
            ("objects, lists", offered(custom), offered(built_in)),
            (f"`;as={table};g=meta.k8s.io;v=v1`", offered(custom, table), offered(built_in, table)),
            (f"`;as={partial};g=meta.k8s.io;v=v1`, `…List`", offered(custom, partial), offered(built_in, partial)),
            ("bodies", _codes((negotiation.JSON, negotiation.YAML)), _codes(negotiation.MEDIA_TYPES)),
            ("patches", _codes(CUSTOM_PATCHES), _codes(BUILT_IN_PATCHES)),
        ],
    )
    yield (
        f"Watches have the same types except YAML, as streams of events: in chunks, or as messages of a WebSocket. Events in\n"
        f"protobuf are `{negotiation.PROTOBUF};stream=watch`. `application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2`\n"
        f"requests aggregated discovery. With the feature gate CBORServingAndStorage there are `{negotiation.CBOR}`,\n"
        f"`{negotiation.CBOR_SEQUENCE}` for watches and `{APPLY_CBOR}`. The first type of `Accept` that exists is sent; without\n"
        f"`Accept` it is JSON.\n"
    )


def _headers() -> Iterator[str]:
    yield "## Headers of requests\n"
    yield from _table("header | meaning", ((f"`{name}`", REQUEST_HEADERS[name]) for name in sorted(REQUEST_HEADERS)))
    yield "## Headers of answers\n"
    yield from _table("header | meaning", ((f"`{name}`", text) for name, text in RESPONSE_HEADERS.items()))


def _statuses() -> Iterator[str]:
    yield "## Statuses\n"
    yield "An error is a `Status` of `v1` with `message`, `reason`, `details` and `code`; without a reason here, it is plain text.\n"
    yield from _table("code | reason | when", ((str(code), reason, text) for (code, reason), text in STATUSES.items()))
    yield (
        "Webhooks and policies choose the code and the reason of their refusals. A watch that has begun has the status 200\n"
        "(101 as a WebSocket); later errors are events of the type `ERROR`.\n"
    )


def _others() -> Iterator[str]:
    yield "## Other paths\n"
    yield from _table("path | document", ((f"`{path}`", text) for path, text in PATHS.items()))
    yield "Other paths are not found: 404, with the list of all paths.\n"


def _refused() -> Iterator[str]:
    yield "## What is refused\n"
    yield from _table("request | answer", REFUSED.items())
    yield (
        "Unknown query parameters are ignored, and so are those with a `;` or an escape that is none. [limits.md](limits.md) has\n"
        "the sizes.\n"
    )


def _kinds() -> Iterator[str]:
    served_resources = ServedResources([definitions_resource(), *built_in_versions()], {})
    full = set(served_resources.by_path["", "v1", "configmaps"].verbs)
    rows = []
    for resource in sorted(served_resources.by_path.values(), key=lambda each: (each.group, each.version, each.plural)):
        verbs = "all" if set(resource.verbs) == full else ", ".join(sorted(resource.verbs))
        parts: dict[str, tuple[str, ...]] = dict.fromkeys(sorted(resource.subresources), ("get", "update", "patch"))
        if resource.table is not None:
            parts = {part.name: ("connect",) if part.connect else part.verbs for part in resource.table.subresources}
        below = "; ".join(f"`{name}` {', '.join(sorted(verbs))}" for name, verbs in parts.items())
        rows.append(
            (f"`{resource.api_version}`", f"`{resource.plural}`", "yes" if resource.namespaced else "", verbs, below)
        )
    yield "## Built-in resources\n"
    yield f"`all` is {', '.join(sorted(full))}.\n"
    yield from _table("version | resource | namespaced | verbs | subresources", rows)


if __name__ == "__main__":
    PAGE.write_text(page())
