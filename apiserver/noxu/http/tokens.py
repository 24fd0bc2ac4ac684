"""The subresource serviceaccounts/token: issues a token for a stored account (registry/core/serviceaccount/storage)."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from noxu.api import errors, field
from noxu.api.errors import Qualified
from noxu.api.meta import GroupVersionKind
from noxu.go.structs import decode
from noxu.go.text import quote
from noxu.go.time import format_time
from noxu.http import negotiation, options, responses
from noxu.http.answer import Answer
from noxu.http.exchange import Exchange
from noxu.http.handlers import accept, body_format, namespace_of, receive_body
from noxu.identifiers import new_uuid
from noxu.kinds.authorization import TOKEN_REQUEST, default_token_request, validate_token_request
from noxu.registry.bodies import decode_body
from noxu.registry.draft import Action, WriteRequest, draft_of
from noxu.registry.stored_object import check_path_name, object_at
from noxu.security.claims import Reference
from noxu.security.tokens import UNBOUND, Bound
from noxu.values import Object

_EXPECTED: Final = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
_KIND: Final = Qualified("authentication.k8s.io", "TokenRequest")
_ISSUED: Final = "authentication.kubernetes.io/issued-credential-id"
"""The annotation in the audit log."""
_BOUND: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
EXTENDED_FROM: Final = 3607
"""Seconds. The kubelet requests tokens of just this duration for the volumes of pods: they live for a year, and it is
recorded when they are used beyond it (ExpirationExtensionSeconds)."""
EXTENDED_TO: Final = 365 * 24 * 3600


async def create(exchange: Exchange) -> Answer:
    """Issue a token."""
    backend, resource, info = exchange.backend, exchange.resource, exchange.info
    accepted = accept(exchange, negotiation.BUILT_IN)
    check_path_name(info.name)
    media_type = body_format(exchange)
    body = await receive_body(exchange)
    given = options.write_options(exchange.query, "CreateOptions", exchange.request.headers.get("User-Agent", ""))
    strict = given.field_validation != "Ignore"
    sent = await exchange.offload(decode_body, body, media_type, _EXPECTED, strict=strict, typed=True)
    decoded = decode(TOKEN_REQUEST, sent.value)
    if decoded.error:
        raise errors.bad_request(decoded.error)
    request: Object = decoded.value
    namespace = namespace_of(exchange)
    metadata = request.get("metadata") or {}
    creation = WriteRequest(Action.CREATE, resource, namespace, info.name, info.subresource)
    environment = backend.writer.environment
    environment.admission.check_again(draft_of(creation, environment))  # raises Forbidden in a terminating namespace
    _check_names(metadata, namespace, info.name)
    entry = await backend.reader.get(resource, namespace, info.name)  # raises NotFound
    account = object_at(entry, resource)
    _check_uid(metadata, account, info.name)
    default_token_request(request)
    spec = request["spec"]
    spec["audiences"] = spec.get("audiences") or list(backend.tokens.audiences)
    found = validate_token_request(request)
    if found:
        raise errors.invalid(_KIND, info.name, found)
    bound = await _bound(exchange, spec.get("boundObjectRef") or {}, namespace, info.name)
    now = exchange.now()
    token = _issue(exchange, account, spec, bound)
    request["metadata"] = {
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
            raise errors.invalid(_KIND, name, [field.invalid(f"metadata.{key}", sent, rule)])


def _check_uid(metadata: Object, account: Object, name: str) -> None:
    """Raises ApiError Conflict."""
    sent, uid = metadata.get("uid"), account["metadata"]["uid"]
    if sent and sent != uid:
        why = f"the UID in the token request ({sent}) does not match the UID of the service account ({uid})"
        raise errors.conflict(_KIND, name, why)


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
    found = await _object(exchange, _BOUND[kind], "" if kind == "Node" else namespace, name)
    node_name = ""
    if kind == "Pod":
        spec = found.get("spec") or {}
        node_name = spec.get("nodeName", "")
        if spec.get("serviceAccountName", "") != account:
            raise errors.bad_request(
                f"cannot bind token for serviceaccount {quote(account)} to pod running with different serviceaccount name."
            )
    uid = found["metadata"]["uid"]
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
        found = await _object(exchange, "nodes", "", name)
    except errors.ApiError as error:
        if error.code != 404:
            raise
        return Reference(name, "")
    return Reference(name, found["metadata"]["uid"])


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
        spec["expirationSeconds"] = tokens.max_seconds
        exchange.outcome.warnings.append(
            f"requested expiration of {requested} seconds shortened to {tokens.max_seconds} seconds"
        )
    seconds, warn_after = spec["expirationSeconds"], 0
    is_own = set(spec["audiences"]) <= set(tokens.audiences)
    if bound.pod is not None and seconds == EXTENDED_FROM and is_own:
        seconds, warn_after = EXTENDED_TO, seconds
    token_id = new_uuid()
    exchange.outcome.audit_annotations[_ISSUED] = f"JTI={token_id}"
    return tokens.issue(account, spec["audiences"], seconds, bound, warn_after, token_id)
