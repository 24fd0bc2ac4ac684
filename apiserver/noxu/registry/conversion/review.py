"""ConversionReview: the request to a conversion webhook and its response (apiextensions.k8s.io/v1 and v1beta1).

A response must contain the objects of the request in the same order, at the requested version, with the same kind, name,
namespace and uid. Only labels and annotations in their metadata may change; all other metadata is restored silently
(apiextensions-apiserver's pkg/apiserver/conversion). In v1beta1 neither the uid nor the kind of the response is checked.
The errors are upstream's for reviews of one object, because it sends no others.

The webhook of a definition, or a function in this process, gets a new review for each read, as in upstream, because the
webhook may have changed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from noxu.api import codec, errors, meta
from noxu.api.errors import aggregate
from noxu.api.field import FieldError
from noxu.crd.types import GROUP
from noxu.go.json import string_of
from noxu.go.structs import RAW_EXTENSION, STRING, UID, Field, List, Presence, Struct, json_type
from noxu.go.text import go_type, quote
from noxu.identifiers import Identifiers
from noxu.kinds.meta import STATUS, TYPE_META
from noxu.registry.conversion.metrics import ConversionMetrics
from noxu.registry.offload import offload
from noxu.registry.resource import Converted
from noxu.values import Json, Object, copy
from noxu.webhook.client import Caller, CallFailed, ReviewKind, WebhookReply, endpoint_of, read_review

VERSIONS: Final = ("v1", "v1beta1")
KIND: Final = "ConversionReview"
SUCCESS: Final = "Success"


def _review(version: str) -> ReviewKind:
    request = Struct("ConversionRequest", package=version).define(
        Field("uid", UID, 1, Presence.ALWAYS),
        Field("desiredAPIVersion", STRING, 2, Presence.ALWAYS),
        Field("objects", List(RAW_EXTENSION), 3, Presence.ALWAYS),
    )
    response = Struct("ConversionResponse", package=version).define(
        Field("uid", UID, 1, Presence.ALWAYS),
        Field("convertedObjects", List(RAW_EXTENSION), 2, Presence.ALWAYS),
        Field("result", STATUS, 3, Presence.ALWAYS),
    )
    review = Struct(KIND, package=version).define(
        *TYPE_META,
        Field("request", request, 1, Presence.POINTER),
        Field("response", response, 2, Presence.POINTER),
    )
    return ReviewKind(GROUP, version, review)


REVIEWS: Final = {version: _review(version) for version in VERSIONS}


class ConversionFailed(Exception):
    """The objects were not converted. The message is upstream's."""


def version_of(accepted: Sequence[str]) -> str:
    """The version of the review: the first accepted one that is supported. Raises ConversionFailed."""
    chosen = next((version for version in accepted if version in REVIEWS), None)
    if chosen is None:
        raise ConversionFailed("no supported conversion review versions")
    return chosen


def new_request(uid: str, api_version: str, objects: Sequence[Object]) -> Object:
    """The `request` of a review that converts objects to `api_version`."""
    return {"uid": uid, "desiredAPIVersion": api_version, "objects": list(objects)}


def encode(version: str, request: Object) -> bytes:
    """A review as JSON. Like upstream's, it contains an empty response."""
    response: Object = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}
    review = {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": request, "response": response}
    return codec.encode(review, sort_keys=False) + b"\n"


def read(body: bytes, review: Object, version: str, request: Object) -> list[Object]:
    """The converted objects in the reply to a request, checked, with restored metadata.

    `review` is the decoded `body`. Raises ConversionFailed.
    """
    originals: list[Object] = request["objects"]
    api_version = request["desiredAPIVersion"]
    source = source_of(originals[0])
    try:
        objects = _converted_objects(review, version, request["uid"])
    except ConversionFailed as failed:
        raise ConversionFailed(f"{source} failed: {failed}") from None
    if len(objects) != len(originals):
        raise ConversionFailed(f"{source} returned {len(objects)} objects, expected {len(originals)}")
    for n, (original, value) in enumerate(zip(originals, objects, strict=True)):
        _check_type(value, body, n)
        _accept(original, value, api_version, n)
    return objects


def source_of(value: Object) -> str:
    """The beginning of upstream's errors: the version and kind of the object."""
    return f"conversion webhook for {value['apiVersion']}, Kind={value['kind']}"


def _converted_objects(review: Object, version: str, uid: str) -> list[Json]:
    """Raises ConversionFailed."""
    if version == "v1":
        expected = f"{GROUP}/{version}, Kind={KIND}"
        sent = f"{review.get('apiVersion') or '/'}, Kind={review.get('kind', '')}"
        if sent != expected:
            raise ConversionFailed(f"expected webhook response of {expected}, got {sent}")
    response = review.get("response")
    if response is None:
        raise ConversionFailed("no response provided")
    if version == "v1" and response.get("uid", "") != uid:
        raise ConversionFailed(f"expected response.uid={quote(uid)}, got {quote(response.get('uid', ''))}")
    result = response.get("result") or {}
    if result.get("status") != SUCCESS:
        message: str = result.get("message", "")
        raise ConversionFailed(message or f"response.result.status was '{result.get('status', '')}', not '{SUCCESS}'")
    return response.get("convertedObjects") or []


def _check_type(value: Json, body: bytes, n: int) -> None:
    """Require an object with a kind and, if it has an apiVersion, a well-formed one. Raises ConversionFailed."""
    if value is None:
        raise ConversionFailed("unexpected end of JSON input")
    if not isinstance(value, dict):
        raise ConversionFailed(
            f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
        )
    kind, api_version = value.get("kind"), value.get("apiVersion")
    slashes = api_version.count("/") if isinstance(api_version, str) else 0
    if not isinstance(kind, str) or not kind or slashes > 1:
        raise ConversionFailed(f"Object 'Kind' is missing in '{_as_sent(value, body, n)}'")


def _accept(original: Object, value: Object, api_version: str, n: int) -> None:
    """Check a converted object, and restore the metadata that a webhook may not change. Raises ConversionFailed."""
    source = source_of(original)
    sent = value.get("apiVersion")
    if sent != api_version:
        received = sent if isinstance(sent, str) and sent != "/" else ""
        why = f"invalid groupVersion (expected {api_version}, received {received})"
        raise ConversionFailed(f"{source} returned invalid object at index {n}: {why}")
    if value["kind"] != original["kind"]:
        why = f"invalid kind (expected {original['kind']}, received {value['kind']})"
        raise ConversionFailed(f"{source} returned invalid object at index {n}: {why}")
    for name, what in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        before, after = _text(original, name), _text(value, name)
        if before != after:
            raise ConversionFailed(f"{source} returned invalid object: must have the same {what}: {before} != {after}")
    try:
        # in place: the value came from the reply
        value["metadata"] = _restored(original.get("metadata"), value.get("metadata"))
    except ConversionFailed as failed:
        raise ConversionFailed(f"{source} returned invalid metadata: {failed}") from None


def _text(value: Object, name: str) -> str:
    metadata = value.get("metadata")
    text = metadata.get(name) if isinstance(metadata, dict) else None
    return text if isinstance(text, str) else ""


def _restored(original: Json, sent: Json) -> Object:
    """The original metadata with the labels and annotations of the response. Raises ConversionFailed."""
    if not isinstance(sent, dict):
        if sent is None:
            raise ConversionFailed("missing metadata in converted object")
        raise ConversionFailed(f"invalid metadata of type {go_type(sent)} in converted object")
    restored: Object = copy(original) if original is not None else {}  # a copy: the request's objects are not changed
    for name in ("labels", "annotations"):
        texts = sent.get(name)
        if texts is None:
            restored.pop(name, None)
            continue
        if not isinstance(texts, dict):
            raise ConversionFailed(f"invalid metadata.{name} of type {go_type(texts)} in converted object")
        for key in sorted(texts):
            if not isinstance(texts[key], str):
                why = f"must be a string, but is {go_type(texts[key])} in converted object"
                raise ConversionFailed(f"metadata.{name}[{key}] {why}")
        if texts != (restored.get(name) or {}) and (invalid := _metadata_errors(name, texts)):
            raise ConversionFailed(aggregate(str(error) for error in invalid))
        restored[name] = texts  # shared with the reply, which is not used again
    return restored


def _metadata_errors(name: str, texts: dict[str, str]) -> list[FieldError]:
    if name == "labels":
        return meta.validate_labels(texts, "metadata.labels")
    return meta.validate_annotations(texts, "metadata.annotation")  # sic, in upstream


# -- the text of an object, for error messages ------------------------------------------------------------------------


def _as_sent(value: Object, body: bytes, n: int) -> str:
    """The text of the n-th converted object in the reply."""
    try:
        return _slice(string_of(body), ("response", "convertedObjects", n))
    except (ValueError, LookupError, RecursionError):  # JSON that only the server's own decoder accepts
        return codec.encode(value, sort_keys=False).decode()


_decoder: Final = json.JSONDecoder()
_SPACE: Final = " \t\r\n"


def _slice(text: str, path: Sequence[str | int]) -> str:
    """The text of the value at a path of keys and indices. Raises LookupError or ValueError.

    `_slice('{"a": [1, {"b": 2}]}', ("a", 1))` enters "a" at offset 6, its element 1 at offset 10, and is `{"b": 2}`.
    """
    at = _skip(text, 0)
    for step in path:
        at = _enter(text, at, step)
    return text[at : _decoder.raw_decode(text, at)[1]]


def _enter(text: str, at: int, step: str | int) -> int:
    """The offset of the value of a key or index in the container at `at`; the last one of equal keys."""
    last = -1
    n = 0
    at = _skip(text, at + 1)
    while text[at] not in "]}":
        key: Json = n
        if isinstance(step, str):
            key, at = _decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        if key == step:
            last = at
        at = _skip(text, _decoder.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)
        n += 1
    if last < 0:
        raise LookupError(step)
    return last


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


# -- sending reviews --------------------------------------------------------------------------------------------------


class ReviewReply(NamedTuple):
    """The reply to a review. `version` is the version of the ConversionReview."""

    reply: WebhookReply
    version: str


SendReview = Callable[[Object, int], Awaitable[ReviewReply]]
"""Sends a review: (its `request`, the size of its objects in bytes) → the reply. Raises CallFailed or ConversionFailed."""


class ReviewConverter:
    """Converts the objects of one definition by sending reviews. `timeout` is in seconds."""

    def __init__(
        self,
        send: SendReview,
        identifiers: Identifiers,
        timeout: int,
        definition: str,
        metrics: ConversionMetrics,
    ) -> None:
        self._definition = definition
        self._metrics = metrics
        self._send = send
        self._identifiers = identifiers
        self.timeout = timeout

    async def convert(self, values: Sequence[Object], api_version: str, weight: int) -> Converted:
        """Convert objects, all of one version, to another version. `weight` is their size in bytes.

        The given objects are not changed, the results are not pruned. Raises ApiError.
        """
        request = new_request(self._identifiers.new_uid(), api_version, values)
        source = values[0]["apiVersion"].rpartition("/")[2]
        labels = (self._definition, source, api_version.rpartition("/")[2])
        try:
            with self._metrics.conversion(*labels) as state:
                reply, version = await self._send(request, weight)
                state.answered()
                converted = await offload(len(reply.body), _read, reply, version, request)
            return Converted(converted, max(weight, len(reply.body)))
        except ConversionFailed as failed:
            raise errors.plain_error(str(failed)) from None
        except CallFailed as failed:
            raise errors.plain_error(f"{source_of(values[0])} failed: {failed.text}") from None


def _read(reply: WebhookReply, version: str, request: Object) -> list[Object]:
    """Raises ConversionFailed or CallFailed."""
    decoded = read_review(reply, REVIEWS[version])
    return read(reply.body, decoded, version, request)


def send_to(webhook: Object, call: Caller, timeout: Callable[[], int]) -> SendReview:
    """Sends reviews to a webhook, as the definition describes it. `timeout` returns seconds."""

    async def send(request: Object, weight: int) -> ReviewReply:
        version = version_of(webhook["conversionReviewVersions"])
        body = await offload(weight, encode, version, request)
        return ReviewReply(await call(endpoint_of(webhook["clientConfig"]), body, timeout=timeout()), version)

    return send


def send_in_process(
    name: str, converter: Callable[[str, Object], Awaitable[Object]], timeout: Callable[[], int]
) -> SendReview:
    """Calls the function of a definition with a copy; its response is checked like one that came over the network."""

    async def send(request: Object, weight: int) -> ReviewReply:
        own = await offload(weight, copy, request)
        try:
            async with asyncio.timeout(timeout()):
                response = await converter(name, own)
        except TimeoutError:
            raise CallFailed("context deadline exceeded") from None
        gvk = REVIEWS["v1"].gvk
        body = {"kind": gvk.kind, "apiVersion": gvk.api_version, "response": response}
        return ReviewReply(WebhookReply(200, "application/json", codec.encode(body, sort_keys=False)), "v1")

    return send
