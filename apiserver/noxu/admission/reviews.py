"""AdmissionReview: the request to a webhook, and its answer (admission.k8s.io; plugin/webhook/request).

Both versions have the same fields. An answer in v1 must have the uid, apiVersion and kind; one in v1beta1 need not.

One configured webhook (admissionregistration.k8s.io/v1 MutatingWebhook and ValidatingWebhook), compiled.

Errors in a configuration are kept in its hook: they are reported to the requests that it matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from noxu.admission.attributes import Attributes
from noxu.admission.expressions import MatchConditions
from noxu.admission.inputs import document
from noxu.admission.matching import Criteria, criteria_of_webhook
from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.api.json_patches import MAX_JSON_PATCH_OPERATIONS
from noxu.apply.patch import PatchFailed, apply_operations
from noxu.go import base64 as go_base64
from noxu.go import json as go_json
from noxu.go.structs import BOOL, BYTES, JSON, STRING, UID, Field, List, Map, Struct, json_type, named
from noxu.go.text import quote
from noxu.kinds.meta import ALWAYS, POINTER, STATUS, TYPE_META
from noxu.registry.resource import Resource
from noxu.values import Json, Object, cached_property
from noxu.webhook.client import (
    Caller,
    CallFailed,
    ReviewKind,
    Unusable,
    WebhookEndpoint,
    WebhookReply,
    endpoint_of,
    read_review,
)

GROUP: Final = "admission.k8s.io"
VERSIONS: Final = ("v1", "v1beta1")
JSON_PATCH: Final = "JSONPatch"
_MAX_CODE: Final = 999  # HTTP has three digits; upstream closes the connection

_RESPONSE: Final = Struct("AdmissionResponse").define(
    Field("uid", UID, 1, ALWAYS),
    Field("allowed", BOOL, 2, ALWAYS),
    Field("status", STATUS, 3, POINTER),
    Field("patch", BYTES, 4),
    Field("patchType", named("v1.PatchType"), 5, POINTER),
    Field("auditAnnotations", Map(STRING), 6),
    Field("warnings", List(STRING), 7),
)
_REVIEW: Final = Struct("AdmissionReview").define(
    *TYPE_META,
    Field("request", Map(JSON, "v1.AdmissionRequest"), 1, POINTER),  # ignored
    Field("response", _RESPONSE, 2, POINTER),
)
_KINDS: Final = {version: ReviewKind(GROUP, version, _REVIEW) for version in VERSIONS}


# -- request ----------------------------------------------------------------------------------------------------


def question(request: Attributes, resource: Resource, uid: str, new: Object | None, old: Object | None) -> Object:
    """The AdmissionRequest for a request, with objects at this version of its resource."""
    shown = document(request, resource)
    trailing = {name: shown.pop(name) for name in ("dryRun", "options")}
    return {"uid": uid, **shown, "object": new, "oldObject": old, **trailing}


def written(request: Object, version: str) -> bytes:
    """The AdmissionReview with an AdmissionRequest, as JSON."""
    review = {"kind": _REVIEW.name, "apiVersion": f"{GROUP}/{version}", "request": request}
    return codec.encode(review, sort_keys=False)


# -- answer ------------------------------------------------------------------------------------------------------


class Response(NamedTuple):
    """The decision of a webhook. `status` explains a denial, `operations` are a JSON patch."""

    allowed: bool
    status: Object
    operations: Sequence[Object] = ()
    warnings: Sequence[str] = ()
    annotations: Sequence[tuple[str, str]] = ()


def read(reply: WebhookReply, version: str, uid: str, *, mutating: bool) -> Response:
    """Read the answer to a review. Raises CallFailed."""
    try:
        review = read_review(reply, _KINDS[version])
    except CallFailed as failed:
        raise CallFailed(f"failed to call webhook: {failed.text}") from None
    response: Object | None = review.get("response")
    if response is None:
        raise _invalid("webhook response was absent")
    if version == "v1":
        _check(review, response, uid, mutating=mutating)
    patch, kind = response.get("patch"), response.get("patchType")
    operations: Sequence[Object] = ()
    if mutating and patch and response["allowed"]:
        operations = _operations(go_base64.decode(patch))
        if operations and version == "v1" and kind != JSON_PATCH:
            raise CallFailed(f"unsupported patch type {quote(str(kind))}")
    return Response(
        response["allowed"],
        response.get("status") or {},
        operations,
        response.get("warnings") or (),
        tuple((response.get("auditAnnotations") or {}).items()),
    )


def _invalid(why: str) -> CallFailed:
    return CallFailed(f"received invalid webhook response: {why}")


def _check(review: Object, response: Object, uid: str, *, mutating: bool) -> None:
    """Check an answer in v1. Raises CallFailed."""
    if response["uid"] != uid:
        raise _invalid(f"expected response.uid={quote(uid)}, got {quote(response['uid'])}")
    group, _, version = review.get("apiVersion", "").rpartition("/")
    kind = review.get("kind", "")
    if (group, version, kind) != (GROUP, "v1", _REVIEW.name):
        sent = f"{group}/{version}, Kind={kind}"
        raise _invalid(f"expected webhook response of {GROUP}/v1, Kind={_REVIEW.name}, got {sent}")
    patch, patch_type = response.get("patch"), response.get("patchType")
    if not mutating:
        if patch:
            raise _invalid("validating webhook may not return response.patch")
        if patch_type is not None:
            raise _invalid("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _operations(patch: bytes) -> Sequence[Object]:
    """The operations of a patch. Raises CallFailed."""
    try:
        operations = codec.decode_answer(patch, raw_numbers=True)
    except ValueError as error:
        raise _undecodable(str(error)) from None
    if operations is None:
        return ()
    if not isinstance(operations, list):
        raise _undecodable(_not_go(operations, "Patch"))
    for operation in operations:
        if operation is not None and not isinstance(operation, dict):
            raise _undecodable(_not_go(operation, "Operation"))
    if len(operations) > MAX_JSON_PATCH_OPERATIONS:  # ours: upstream has no bound here
        limit = MAX_JSON_PATCH_OPERATIONS
        raise _invalid(f"the patch has {len(operations)} operations, at most {limit} are applied")
    return operations


def _undecodable(why: str) -> CallFailed:
    return CallFailed(f"received undecodable patch in webhook response: {why}")


def _not_go(value: Json, name: str) -> str:
    return f"json: cannot unmarshal {json_type(value)} into Go value of type jsonpatch.{name}"


class Denial(ApiError):
    """The error for a request that a webhook denies."""


def denial(name: str, status: Object) -> Denial:
    """The error for a request that a webhook denies (plugin/webhook/errors)."""
    message, reason = status.get("message"), status.get("reason") or ""
    text = f"admission webhook {quote(name)} denied the request"
    why = message or reason
    text = f"{text}: {why}" if why else f"{text} without explanation"
    code = min(max(status.get("code", 0), 400), _MAX_CODE)
    error = Denial(code, text, reason, status.get("details"))
    error.metadata = status.get("metadata") or {}
    if status.get("status") not in (None, "", "Success"):
        error.outcome = status["status"]
    return error


# -- patch -------------------------------------------------------------------------------------------------------


def patched(request: Attributes, resource: Resource, new: Object, operations: Sequence[Object]) -> Object:
    """The object after a webhook's patch, with defaults. Raises ApiError."""
    try:
        value = apply_operations(new, list(operations))
    except PatchFailed as failed:
        raise errors.internal_error(failed.text) from None
    if go_json.has_raw_number(list(operations)) and go_json.has_raw_number(value):
        raise errors.internal_error(go_json.read(codec.encode(value, sort_keys=True)).error)
    try:
        return _typed(request, resource, value)
    except ValueError as error:
        raise errors.internal_error(str(error)) from None


def _typed(request: Attributes, resource: Resource, value: Json) -> Object:
    """Decode the patched object again. Raises ValueError with Go's message."""
    kind, resource = value.get("kind") if isinstance(value, dict) else None, request.body_at(resource)
    if not isinstance(kind, str) or not kind or not isinstance(value.get("apiVersion", ""), str):
        text = codec.encode(value, sort_keys=True)
        codec.identify(text, request.kind_at(resource))
        if resource.is_custom:
            raise ValueError(f"Object 'Kind' is missing in '{text.decode()}'")
    if not resource.is_custom and request.subresource != "scale":
        value = {**value, "kind": kind or resource.kind, "apiVersion": value.get("apiVersion") or resource.api_version}
        if (value["kind"], value["apiVersion"]) != (resource.kind, resource.api_version):
            raise ValueError(errors.no_kind_registered(value["kind"], value["apiVersion"]))
        value, _ = resource.codec.decode(resource, value)
    typed: Object = value
    if typed.get("kind") == resource.kind and request.subresource != "scale":
        resource.codec.default(resource, typed)
    return typed


# -- hooks ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Hook:
    """One configured webhook. It is called by `caller`, over the network if that is None."""

    uid: str
    configuration: str
    name: str
    criteria: Criteria
    endpoint: WebhookEndpoint | None = None
    client_error: str = ""
    """The error of its client configuration, if it has no endpoint."""
    selector_error: str = ""
    """The error of its selectors: a request that matches its rules fails."""
    caller: Caller | None = None
    conditions: Sequence[Object] = ()
    fails_closed: bool = True
    """failurePolicy Fail."""
    side_effects: str | None = "None"
    timeout: int = 10
    versions: Sequence[str] = VERSIONS
    reinvoke: bool = False
    """reinvocationPolicy IfNeeded."""

    @cached_property
    def compiled(self) -> MatchConditions:
        return MatchConditions(self.conditions)


def hooks_of(configuration: Object) -> list[Hook]:
    """Compile the webhooks of a decoded and defaulted configuration."""
    name, count_of = configuration["metadata"]["name"], dict[str, int]()
    hooks = []
    for hook in configuration.get("webhooks") or ():
        n = count_of[hook["name"]] = count_of.get(hook["name"], -1) + 1
        hooks.append(_hook(hook, name, f"{name}/{hook['name']}/{n}"))
    return hooks


def _hook(hook: Object, configuration: str, uid: str) -> Hook:
    endpoint, client_error, selector_error = None, "", ""
    try:
        endpoint = endpoint_of(hook["clientConfig"])
    except Unusable as error:
        client_error = error.text
    try:
        criteria = criteria_of_webhook(hook)
    except ValueError as error:
        selector_error = str(error)
        criteria = criteria_of_webhook({**hook, "namespaceSelector": {}, "objectSelector": {}})
    return Hook(
        uid,
        configuration,
        hook["name"],
        criteria,
        endpoint,
        client_error,
        selector_error,
        conditions=hook.get("matchConditions") or (),
        fails_closed=hook.get("failurePolicy") != "Ignore",
        side_effects=hook.get("sideEffects"),
        timeout=hook.get("timeoutSeconds", 10),
        versions=hook.get("admissionReviewVersions") or (),
        reinvoke=hook.get("reinvocationPolicy") == "IfNeeded",
    )
