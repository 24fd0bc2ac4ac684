"""The handlers of subresources whose bodies are not the whole object: scale, token, and connections to Pods, Services and nodes.

`scale` reads and writes an object's replicas as an autoscaling/v1 Scale. `token` issues a token for a stored account
(registry/core/serviceaccount/storage).

Connections are log, exec, attach, portforward and proxy. Whatever a client asks for, another protocol included, it gets the
answer of a server whose connection fails: nothing is dialled, and nothing is upgraded, unless there are simulated nodes
(`simulated_pods`). Before that, admission sees every connection but log, which upstream treats as a read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from noxu.api import errors, field
from noxu.api.errors import ApiError, Qualified
from noxu.api.meta import GroupVersionKind
from noxu.api.names import check_path_name
from noxu.go.structs import BOOL, INT32, STRING, List, Type, decode
from noxu.go.text import parse_uint, quote
from noxu.go.time import format_time, parse_time
from noxu.http import negotiation, responses
from noxu.http.answer import Answer
from noxu.http.exchange import Exchange, attributes_of
from noxu.http.negotiation import Accepted
from noxu.http.request import Query, boolean, first, integer
from noxu.identifiers import new_uuid
from noxu.kinds.authorization import TOKEN_REQUEST, default_token_request, validate_token_request
from noxu.registry import scale
from noxu.registry.bodies import decode_body
from noxu.registry.draft import NO_OPTIONS, Action, Body, WriteRequest, Written, draft_for
from noxu.registry.offload import imported
from noxu.registry.resource import APPLY_PATCHES
from noxu.registry.stored_object import object_at
from noxu.registry.subresources import connections
from noxu.registry.subresources.connections import LogOptions, Place
from noxu.security.authorization import refusal
from noxu.security.claims import Reference
from noxu.security.tokens import UNBOUND, Bound
from noxu.values import Json, Object

# -- scale -------------------------------------------------------------------------------------------------------------


async def get_scale(exchange: Exchange) -> Answer:
    """The Scale of an object."""
    accepted = exchange.accept()
    value = object_at(await exchange.stored_entry(), exchange.resource)
    return _scale_answer(exchange, scale.scale_of(value, exchange.resource), accepted)


async def update_scale(exchange: Exchange) -> Answer:
    """Set the replicas of an object."""
    accepted = exchange.accept()
    content = await exchange.read_body()
    options = exchange.write_options("UpdateOptions")
    media_type = exchange.body_format(any_format=True)
    written = await exchange.write(Action.REPLACE_SCALE, Body(content, media_type), options)
    return _scale_answer(exchange, _written_scale(exchange, written), accepted)


async def patch_scale(exchange: Exchange) -> Answer:
    """Patch or apply the Scale of an object."""
    media_type = exchange.patch_type()
    is_apply = media_type in APPLY_PATCHES
    accepted = exchange.accept()
    content = await exchange.read_body()
    options = exchange.write_options("PatchOptions", apply=is_apply)
    action = Action.APPLY_SCALE if is_apply else Action.PATCH_SCALE
    written = await exchange.write(action, Body(content, media_type), options)
    return _scale_answer(exchange, _written_scale(exchange, written), accepted)


def _written_scale(exchange: Exchange, written: Written) -> Object:
    """The Scale of a written object. The schema may have pruned the replicas, or made the object unreadable as a Scale."""
    value = (written.value or {}) if written.entry is None else object_at(written.entry, exchange.resource)
    try:
        return scale.scale_of(value, exchange.resource, missing=0)
    except ApiError as error:
        raise errors.bad_request(error.message) from None


def _scale_answer(exchange: Exchange, shown: Object, accepted: Accepted) -> Answer:
    include = exchange.include(accepted)
    columns = responses.scale_columns_of(exchange.resource)
    return responses.value_answer(shown, columns, accepted, include=include, now=exchange.now())


# -- token -------------------------------------------------------------------------------------------------------------


_TOKEN_REQUEST: Final = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
_OF_TOKENS: Final = Qualified("authentication.k8s.io", "TokenRequest")
_ISSUED_ID: Final = "authentication.kubernetes.io/issued-credential-id"
"""The annotation in the audit log."""
_BOUND: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
EXTENDED_FROM: Final = 3607
"""Seconds. The kubelet requests tokens of just this duration for the volumes of pods: they live for a year, and it is
recorded when they are used beyond it (ExpirationExtensionSeconds)."""
EXTENDED_TO: Final = 365 * 24 * 3600


async def issue_token(exchange: Exchange) -> Answer:
    """Issue a token."""
    backend, resource, info = exchange.backend, exchange.resource, exchange.info
    accepted = exchange.accept(negotiation.BUILT_IN)
    check_path_name(info.name)
    media_type = exchange.body_format()
    body = await exchange.read_body()
    options = exchange.write_options("CreateOptions")
    strict = options.field_validation != "Ignore"
    sent = await exchange.offload(decode_body, body, media_type, _TOKEN_REQUEST, strict=strict, typed=True)
    decoded = decode(TOKEN_REQUEST, sent.value)
    if decoded.error:
        raise errors.bad_request(decoded.error)
    request: Object = decoded.value
    namespace = exchange.namespace
    metadata = request.get("metadata") or {}
    creation = WriteRequest(Action.CREATE, resource, namespace, info.name, info.subresource)
    environment = backend.writer.environment
    # without a write: only the namespace is looked at
    environment.admission.check_again(draft_for(creation, environment))  # raises Forbidden in a terminating namespace
    _check_names(metadata, namespace, info.name)
    entry = await backend.reader.get(resource, namespace, info.name)  # raises NotFound
    account = object_at(entry, resource)
    _check_uid(metadata, account, info.name)
    default_token_request(request)  # in place, as upstream before validation
    spec = request["spec"]
    # of the decoded body, which is not shared
    spec["audiences"] = spec.get("audiences") or list(backend.tokens.audiences)
    problems = validate_token_request(request)
    if problems:
        raise errors.invalid(_OF_TOKENS, info.name, problems)
    bound = await _bound(exchange, spec.get("boundObjectRef") or {}, namespace, info.name)
    now = exchange.now()
    token = _issue(exchange, account, spec, bound)
    request["metadata"] = {  # replaces what was sent: only the account counts
        "name": account["metadata"]["name"],
        "namespace": account["metadata"]["namespace"],
        "uid": account["metadata"]["uid"],
        "creationTimestamp": format_time(now),
    }
    expires = now + timedelta(seconds=spec["expirationSeconds"])
    request["status"] = {"token": token, "expirationTimestamp": format_time(expires)}
    written: Object = decode(TOKEN_REQUEST, request).value
    return Answer(responses.encode(written, accepted), 201, accepted.content_type)


def _check_names(metadata: Object, namespace: str, name: str) -> None:
    """The names in the body are those of the path. Raises ApiError Invalid."""
    for key, expected, what in (("name", name, "name"), ("namespace", namespace, "namespace")):
        sent = metadata.get(key)
        if sent and sent != expected:
            rule = f"must match the service account {what} if specified"
            raise errors.invalid(_OF_TOKENS, name, [field.invalid(f"metadata.{key}", sent, rule)])


def _check_uid(metadata: Object, account: Object, name: str) -> None:
    """Raises ApiError Conflict."""
    sent, uid = metadata.get("uid"), account["metadata"]["uid"]
    if sent and sent != uid:
        why = f"the UID in the token request ({sent}) does not match the UID of the service account ({uid})"
        raise errors.conflict(_OF_TOKENS, name, why)


async def _bound(exchange: Exchange, reference: Object, namespace: str, account: str) -> Bound:
    """The objects to which the token is bound. Raises ApiError."""
    if not reference:
        return UNBOUND
    kind, name = reference.get("kind", ""), reference.get("name", "")
    group, _, version = reference.get("apiVersion", "").rpartition("/")
    if group or kind not in _BOUND:
        is_webhook = kind in _WEBHOOKS and (group, version) == ("admissionregistration.k8s.io", "v1")
        gate = " (feature gate APIServerWebhookAuthenticationToken is disabled)" if is_webhook else ""
        raise errors.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}{gate}")
    stored = await _object(exchange, _BOUND[kind], "" if kind == "Node" else namespace, name)
    node_name = ""
    if kind == "Pod":
        spec = stored.get("spec") or {}
        node_name = spec.get("nodeName", "")
        if spec.get("serviceAccountName", "") != account:
            raise errors.bad_request(
                f"cannot bind token for serviceaccount {quote(account)} to pod running with different serviceaccount name."
            )
    uid = stored["metadata"]["uid"]
    if (sent := reference.get("uid")) and sent != uid:
        raise errors.conflict(
            Qualified("", kind),
            name,
            f"the UID in the bound object reference ({sent}) does not match the UID in record. The object might have been "
            "deleted and then recreated",
        )
    node = await _node(exchange, node_name) if node_name else None
    return Bound(**{"node": node, kind.lower(): Reference(name, uid)})


async def _node(exchange: Exchange, name: str) -> Reference:
    """The node of a pod, which need not exist."""
    try:
        node = await _object(exchange, "nodes", "", name)
    except errors.ApiError as error:
        if error.code != 404:
            raise
        return Reference(name, "")
    return Reference(name, node["metadata"]["uid"])


async def _object(exchange: Exchange, plural: str, namespace: str, name: str) -> Object:
    """Raises ApiError NotFound."""
    resource = exchange.backend.served_resources.current.find("", "v1", plural)
    assert resource is not None
    check_path_name(name)
    return object_at(await exchange.backend.reader.get(resource, namespace, name), resource)


def _issue(exchange: Exchange, account: Object, spec: Object, bound: Bound) -> str:
    """Raises ApiError. Shortens what is requested for longer than the server allows."""
    tokens = exchange.backend.tokens
    requested = spec["expirationSeconds"]
    if 0 < tokens.max_seconds < requested:
        spec["expirationSeconds"] = tokens.max_seconds  # answered so, with a warning
        exchange.outcome.warnings.append(
            f"requested expiration of {requested} seconds shortened to {tokens.max_seconds} seconds"
        )
    seconds, warn_after = spec["expirationSeconds"], 0
    is_own = set(spec["audiences"]) <= set(tokens.audiences)
    if bound.pod is not None and seconds == EXTENDED_FROM and is_own:
        seconds, warn_after = EXTENDED_TO, seconds  # the answer shows what was asked for
    token_id = new_uuid()
    exchange.outcome.audit_annotations[_ISSUED_ID] = f"JTI={token_id}"  # of the event of this request
    return tokens.issue(account, spec["audiences"], seconds, bound, warn_after, token_id)


# -- log, exec, attach, portforward and proxy --------------------------------------------------------------------------


def _place(exchange: Exchange) -> Place:
    return Place(exchange.backend.reader, exchange.backend.served_resources, exchange.namespace)


def is_upgrade(exchange: Exchange) -> bool:
    """Whether the client asks for another protocol (apimachinery's httpstream.IsUpgradeRequest)."""
    return any("upgrade" in value.lower() for value in exchange.request.headers.getall("Connection", ()))


async def read_log(exchange: Exchange) -> Answer:
    """The log of a container; empty as long as the Pod is on no node."""
    query = exchange.query
    options = LogOptions(
        first(query, "container"),
        integer(query, "sinceSeconds"),
        _time(first(query, "sinceTime")) if "sinceTime" in query else None,
        integer(query, "tailLines"),
        integer(query, "limitBytes"),
    )
    pod = await connections.log(_place(exchange), exchange.info.name, options)
    if pod is None:
        return Answer(b"", 200, "text/plain")
    if exchange.backend.commands is None:
        raise connections.no_kubelet()
    simulated = await imported(_SIMULATED)  # few servers have nodes
    return Answer(simulated.log(pod, options, previous=boolean(query, "previous")), 200, "text/plain")


def _time(text: str) -> str | None:
    if not text:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        raise errors.bad_request(str(error)) from None


async def _admitted(exchange: Exchange) -> Object:
    """The options of a connection in its query, after admission, whose operation is CONNECT. Raises ApiError."""
    struct = exchange.resource.bodies[exchange.info.subresource].codec.struct
    assert struct is not None
    options: Object = {}
    for name, described in struct.fields.items():
        if name == "path":
            options[name] = _path_below(exchange)
        elif name in exchange.query:
            options[name] = _PARAMETERS[described.type](exchange.query, name)
    written = await exchange.write(Action.CONNECT, Body(options), NO_OPTIONS)
    return written.value or {}


def _ports(query: Query, name: str) -> list[int]:
    """Convert_Slice_string_To_Slice_int32. Raises ApiError."""
    if sum(map(len, query[name])) > _MAX_PORTS:
        raise errors.bad_request(f"cannot convert to []int32: more than {_MAX_PORTS} characters")
    try:
        return [parse_uint(text, bits=16) for value in query[name] for text in value.split(",")]
    except ValueError as error:
        raise errors.bad_request(f"cannot convert to []int32: {error}") from None


_MAX_PORTS: Final = 16 * 1024  # characters
_PARAMETERS: Final[dict[Type, Callable[[Query, str], Json]]] = {
    STRING: first,
    BOOL: boolean,
    List(STRING): lambda query, name: list(query[name]),
    List(INT32): _ports,
}
"""From the query, by the type of the field."""


def _path_below(exchange: Exchange) -> str:
    """The path behind `proxy`, with its slashes."""
    _, _, below = exchange.path.partition(f"/{exchange.info.name}/proxy")
    return below


def _require_create(exchange: Exchange) -> None:
    """WebSockets begin with a GET. Who may only read must not run commands, so they need `create`, as a POST does.

    Upstream's AuthorizePodWebsocketUpgradeCreatePermission. Raises ApiError Forbidden.
    """
    asked = attributes_of(exchange)._replace(verb="create")  # the same question, as if it were a POST
    if exchange.info.verb == asked.verb:
        return
    decision = exchange.backend.authorize(asked)
    if not decision.allowed:
        raise refusal(asked, decision, exchange.request.raw_path)


async def stream(exchange: Exchange) -> Answer | None:
    """exec and attach, and portforward. None: it has been answered, and the connection has another protocol."""
    options = await _admitted(exchange)
    _require_create(exchange)
    is_forward = exchange.info.subresource == "portforward"
    container = None if is_forward else options.get("container", "")
    pod = await connections.stream(_place(exchange), exchange.info.name, container)
    if exchange.backend.commands is None or not is_upgrade(exchange):
        raise connections.no_kubelet(upgrade=is_upgrade(exchange))
    simulated = await imported(_SIMULATED)
    answered: Answer | None = await simulated.stream(exchange, pod, options, exchange.backend.commands)
    return answered


_SIMULATED: Final = "noxu.http.simulated_pods"


async def proxy(exchange: Exchange) -> Answer:
    """proxy."""
    await _admitted(exchange)
    await _PROXIES[exchange.resource.plural](_place(exchange), exchange.info.name)
    has_nodes = exchange.backend.commands is not None
    if is_upgrade(exchange) and not has_nodes:
        raise connections.no_kubelet()
    raise connections.unreachable(simulated=has_nodes)


_PROXIES: Final[dict[str, Callable[[Place, str], Awaitable[None]]]] = {
    "pods": connections.proxy_pod,
    "services": connections.proxy_service,
    "nodes": connections.proxy_node,
}
CONNECTIONS: Final[dict[str, Callable[[Exchange], Awaitable[Answer | None]]]] = {
    "exec": stream,
    "attach": stream,
    "portforward": stream,
    "proxy": proxy,
}
"""By subresource."""
