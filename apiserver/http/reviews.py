"""Resources that are questions: they are created, answered and forgotten.

Everybody may do everything here, so access reviews say so; who asks is who the request says (pkg/registry/authorization
and pkg/registry/authentication upstream).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from apiserver.api import errors
from apiserver.api.gotime import format_time
from apiserver.api.structs import decode
from apiserver.api.types import Object
from apiserver.http import negotiation, options, responses
from apiserver.http.answer import Answer
from apiserver.http.handlers import Call, arrived
from apiserver.http.request import check_name
from apiserver.registry import pipeline
from apiserver.registry.entry import object_at
from apiserver.registry.kinds.authentication import TOKEN_REQUEST, default_token_request, validate_token_request
from apiserver.registry.store import Written

_EVERYTHING: Final[Object] = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


async def create(call: Call) -> Answer:
    """Answer a review."""
    accepted = call.accepted()
    media_type = call.body_format()
    body = await call.body()
    given = options.write_options(call.query, "CreateOptions", call.user_agent)
    draft = call.draft("CREATE", await arrived(call, body, media_type, given), given)
    await pipeline.arrive(draft)
    await pipeline.run(draft, pipeline.ADMIT)
    await pipeline.run(draft, (pipeline.validate, pipeline.admit_validating))
    draft.new["status"] = _STATUS[call.resource.kind](call, draft.new.get("spec", {}))
    return await call.answer(Written(None, draft.new), accepted, 201)


def _allowed(call: Call, spec: Object) -> Object:  # noqa: ARG001
    return {"allowed": True}


def _rules(call: Call, spec: Object) -> Object:  # noqa: ARG001
    if not spec.get("namespace"):
        raise errors.bad_request("no namespace on request")
    return _EVERYTHING


def _who_asks(call: Call, spec: Object) -> Object:  # noqa: ARG001
    user = call.user
    extra = {name: list(values) for name, values in user.extra}
    return {"userInfo": {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}}


def _whose_token(call: Call, spec: Object) -> Object:
    token = spec.get("token", "")
    if not token:
        raise errors.bad_request("token is required for TokenReview in authentication")
    claims = call.registry.tokens.read(token, call.now())
    audiences = spec.get("audiences") or []
    if claims is None or (audiences and not set(audiences) & set(claims["aud"])):
        return {"user": {}, "error": "invalid bearer token"}
    account = claims["kubernetes.io"]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{account['namespace']}", "system:authenticated")
    return {
        "authenticated": True,
        "user": {"username": claims["sub"], "uid": account["serviceaccount"]["uid"], "groups": list(groups)},
        "audiences": [one for one in claims["aud"] if not audiences or one in audiences],
    }


_STATUS: Final[dict[str, Callable[[Call, Object], Object]]] = {
    "SelfSubjectAccessReview": _allowed,
    "SubjectAccessReview": _allowed,
    "LocalSubjectAccessReview": _allowed,
    "SelfSubjectRulesReview": _rules,
    "SelfSubjectReview": _who_asks,
    "TokenReview": _whose_token,
}


async def create_token(call: Call) -> Answer:
    """serviceaccounts/token: a token for a stored service account."""
    accepted = call.accepted(negotiation.BUILT_IN)
    check_name(call.info.name)
    media_type = call.body_format()
    body = await call.body()
    given = options.write_options(call.query, "CreateOptions", call.user_agent)
    account = object_at(
        await call.registry.get(call.resource, call.namespace, call.info.name), call.resource
    )  # before the body: an account that is not there is 404
    sent = await arrived(call, body, media_type, given, ("authentication.k8s.io/v1", "TokenRequest"))
    decoded = decode(TOKEN_REQUEST, sent.value)
    if decoded.error:
        raise errors.bad_request(decoded.error)
    request: Object = decoded.value
    default_token_request(request)
    found = validate_token_request(request)
    if found:
        raise errors.invalid(errors.Qualified("authentication.k8s.io", "TokenRequest"), call.info.name, found)
    spec = request["spec"]
    token = call.registry.tokens.issue(account, spec.get("audiences") or (), spec["expirationSeconds"], call.now())
    metadata = account["metadata"]
    request["metadata"] = {
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "creationTimestamp": format_time(call.now()),
    }
    request["status"] = {"token": token.text, "expirationTimestamp": format_time(token.expires)}
    written: Object = decode(TOKEN_REQUEST, request).value
    return Answer(responses.encode(written, accepted), 201, accepted.content_type)
