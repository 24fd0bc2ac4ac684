"""The subresource serviceaccounts/token: issues a token for a stored account (registry/core/serviceaccount)."""

from __future__ import annotations

from noxu.apiserver.api import errors
from noxu.apiserver.api.meta import GroupVersionKind
from noxu.apiserver.go.structs import decode
from noxu.apiserver.go.time import format_time
from noxu.apiserver.http import negotiation, options, responses
from noxu.apiserver.http.answer import Answer
from noxu.apiserver.http.exchange import Exchange
from noxu.apiserver.http.handlers import accept, body_format, namespace_of, receive_body
from noxu.apiserver.kinds.authentication import TOKEN_REQUEST, default_token_request, validate_token_request
from noxu.apiserver.registry.bodies import decode_body
from noxu.apiserver.registry.draft import Action, WriteRequest, draft_of
from noxu.apiserver.registry.entry import check_path_name, object_at
from noxu.apiserver.values import Object

_EXPECTED = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")


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
    creation = WriteRequest(Action.CREATE, resource, namespace_of(exchange), info.name, info.subresource)
    environment = backend.writer.environment
    environment.admission.check_again(draft_of(creation, environment))  # raises Forbidden in a terminating namespace
    entry = await backend.reader.get(resource, namespace_of(exchange), info.name)  # raises NotFound
    account = object_at(entry, resource)
    request: Object = decoded.value
    default_token_request(request)
    found = validate_token_request(request)
    if found:
        raise errors.invalid(errors.Qualified("authentication.k8s.io", "TokenRequest"), info.name, found)
    spec = request["spec"]
    token = backend.tokens.issue(account, spec.get("audiences") or (), spec["expirationSeconds"], exchange.now())
    metadata = account["metadata"]
    request["metadata"] = {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "creationTimestamp": format_time(exchange.now()),
    }
    request["status"] = {"token": token.text, "expirationTimestamp": format_time(token.expires)}
    written: Object = decode(TOKEN_REQUEST, request).value
    return Answer(responses.encode(written, accepted), 201, accepted.content_type)
