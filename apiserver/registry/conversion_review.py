"""ConversionReview: what a conversion webhook is asked, and what its answer may be (apiextensions.k8s.io/v1, v1beta1).

The objects of an answer must be as many as were asked for, in the same order, of the wanted version and of their kind,
with their name, namespace and uid. Of their metadata only labels and annotations may have changed; everything else is
put back without a word (apiextensions-apiserver's pkg/apiserver/conversion). v1beta1 checks neither the answer's uid nor
its kind. Errors are upstream's for reviews of one object, which are the only ones that it sends.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from apiserver.api import codec, meta
from apiserver.api.errors import aggregate
from apiserver.api.field import FieldError
from apiserver.api.gojson import string_of
from apiserver.api.gotext import quote
from apiserver.api.structs import RAW_EXTENSION, STRING, UID, Field, List, Struct, Write, json_type
from apiserver.api.types import Json, Object
from apiserver.api.values import copy
from apiserver.apply.goprint import go_type
from apiserver.crd.types import GROUP
from apiserver.registry.kinds.meta import STATUS, TYPE_META
from apiserver.webhook.client import ReviewKind

VERSIONS: Final = ("v1", "v1beta1")
KIND: Final = "ConversionReview"
SUCCESS: Final = "Success"


def _review(version: str) -> ReviewKind:
    request = Struct("ConversionRequest", package=version).define(
        Field("uid", UID, 1, Write.ALWAYS),
        Field("desiredAPIVersion", STRING, 2, Write.ALWAYS),
        Field("objects", List(RAW_EXTENSION), 3, Write.ALWAYS),
    )
    response = Struct("ConversionResponse", package=version).define(
        Field("uid", UID, 1, Write.ALWAYS),
        Field("convertedObjects", List(RAW_EXTENSION), 2, Write.ALWAYS),
        Field("result", STATUS, 3, Write.ALWAYS),
    )
    review = Struct(KIND, package=version).define(
        *TYPE_META,
        Field("request", request, 1, Write.POINTER),
        Field("response", response, 2, Write.POINTER),
    )
    return ReviewKind(GROUP, version, review)


REVIEWS: Final = {version: _review(version) for version in VERSIONS}


class Failed(Exception):
    """Objects were not converted; the message is upstream's."""


def version_of(accepted: Sequence[str]) -> str:
    """The version of the review to send: the first one that is known. Raises Failed."""
    found = next((one for one in accepted if one in REVIEWS), None)
    if found is None:
        raise Failed("no supported conversion review versions")
    return found


def question(uid: str, api_version: str, objects: Sequence[Object]) -> Object:
    """The `request` of a review: objects to be converted to `api_version`."""
    return {"uid": uid, "desiredAPIVersion": api_version, "objects": list(objects)}


def written(version: str, request: Object) -> bytes:
    """A review as it is sent: upstream's has an empty response."""
    response: Object = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}
    review = {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": request, "response": response}
    return codec.encode(review, sort_keys=False) + b"\n"


def converted(answer: bytes, review: Object, version: str, request: Object) -> list[Object]:
    """The objects in the answer to a request, protected against what a webhook may not do.

    `review` is the decoded `answer`. Raises Failed.
    """
    originals: list[Object] = request["objects"]
    api_version = request["desiredAPIVersion"]
    source = source_of(originals[0])
    try:
        found = _converted_objects(review, version, request["uid"])
    except Failed as failed:
        raise Failed(f"{source} failed: {failed}") from None
    if len(found) != len(originals):
        raise Failed(f"{source} returned {len(found)} objects, expected {len(originals)}")
    for n, (original, one) in enumerate(zip(originals, found, strict=True)):
        _check_type(one, answer, n)
        _accept(original, one, api_version, n)
    return found


def source_of(value: Object) -> str:
    """How upstream begins its errors: with what was to be converted."""
    return f"conversion webhook for {value['apiVersion']}, Kind={value['kind']}"


def _converted_objects(review: Object, version: str, uid: str) -> list[Json]:
    """Raises Failed."""
    if version == "v1":
        expected = f"{GROUP}/{version}, Kind={KIND}"
        sent = f"{review.get('apiVersion') or '/'}, Kind={review.get('kind', '')}"
        if sent != expected:
            raise Failed(f"expected webhook response of {expected}, got {sent}")
    response = review.get("response")
    if response is None:
        raise Failed("no response provided")
    if version == "v1" and response.get("uid", "") != uid:
        raise Failed(f"expected response.uid={quote(uid)}, got {quote(response.get('uid', ''))}")
    result = response.get("result") or {}
    if result.get("status") != SUCCESS:
        told: str = result.get("message", "")
        raise Failed(told or f"response.result.status was '{result.get('status', '')}', not '{SUCCESS}'")
    return response.get("convertedObjects") or []


def _check_type(value: Json, answer: bytes, n: int) -> None:
    """It must be an object with a kind, and an apiVersion that is one if it has any. Raises Failed."""
    if value is None:
        raise Failed("unexpected end of JSON input")
    if not isinstance(value, dict):
        raise Failed(f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}")
    kind, api_version = value.get("kind"), value.get("apiVersion")
    slashes = api_version.count("/") if isinstance(api_version, str) else 0
    if not isinstance(kind, str) or not kind or slashes > 1:
        raise Failed(f"Object 'Kind' is missing in '{_as_sent(value, answer, n)}'")


def _accept(original: Object, value: Object, api_version: str, n: int) -> None:
    """Check a converted object, and put back what a webhook may not change. Raises Failed."""
    source = source_of(original)
    sent = value.get("apiVersion")
    if sent != api_version:
        received = sent if isinstance(sent, str) and sent != "/" else ""
        why = f"invalid groupVersion (expected {api_version}, received {received})"
        raise Failed(f"{source} returned invalid object at index {n}: {why}")
    if value["kind"] != original["kind"]:
        why = f"invalid kind (expected {original['kind']}, received {value['kind']})"
        raise Failed(f"{source} returned invalid object at index {n}: {why}")
    for name, what in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        before, after = _text(original, name), _text(value, name)
        if before != after:
            raise Failed(f"{source} returned invalid object: must have the same {what}: {before} != {after}")
    try:
        value["metadata"] = _restored(original.get("metadata"), value.get("metadata"))
    except Failed as failed:
        raise Failed(f"{source} returned invalid metadata: {failed}") from None


def _text(value: Object, name: str) -> str:
    metadata = value.get("metadata")
    text = metadata.get(name) if isinstance(metadata, dict) else None
    return text if isinstance(text, str) else ""


def _restored(original: Json, sent: Json) -> Object:
    """The original metadata with the labels and annotations that came back. Raises Failed."""
    if not isinstance(sent, dict):
        if sent is None:
            raise Failed("missing metadata in converted object")
        raise Failed(f"invalid metadata of type {go_type(sent)} in converted object")
    restored: Object = copy(original) if original is not None else {}
    for name in ("labels", "annotations"):
        texts = sent.get(name)
        if texts is None:
            restored.pop(name, None)
            continue
        if not isinstance(texts, dict):
            raise Failed(f"invalid metadata.{name} of type {go_type(texts)} in converted object")
        for key in sorted(texts):
            if not isinstance(texts[key], str):
                why = f"must be a string, but is {go_type(texts[key])} in converted object"
                raise Failed(f"metadata.{name}[{key}] {why}")
        if texts != (restored.get(name) or {}) and (wrong := _complaints(name, texts)):
            raise Failed(aggregate(str(error) for error in wrong))
        restored[name] = texts
    return restored


def _complaints(name: str, texts: dict[str, str]) -> list[FieldError]:
    if name == "labels":
        return meta.validate_labels(texts, "metadata.labels")
    return meta.validate_annotations(texts, "metadata.annotation")  # upstream's word


# -- the text of an object, as errors quote it ------------------------------------------------------------------------


def _as_sent(value: Object, answer: bytes, n: int) -> str:
    """The text of an object as it stands in the answer."""
    try:
        return _slice(string_of(answer), ("response", "convertedObjects", n))
    except (ValueError, LookupError, RecursionError):  # an oddity that only the server's own decoder reads
        return codec.encode(value, sort_keys=False).decode()


_decoder: Final = json.JSONDecoder()
_SPACE: Final = " \t\r\n"


def _slice(text: str, trail: Sequence[str | int]) -> str:
    """The text of the value to which a trail of keys and indices leads. Raises LookupError or ValueError."""
    at = _skip(text, 0)
    for step in trail:
        at = _enter(text, at, step)
    return text[at : _decoder.raw_decode(text, at)[1]]


def _enter(text: str, at: int, step: str | int) -> int:
    """Where the value begins to which a key or an index leads; of equal keys the last one counts."""
    found = -1
    n = 0
    at = _skip(text, at + 1)
    while text[at] not in "]}":
        key: Json = n
        if isinstance(step, str):
            key, at = _decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        if key == step:
            found = at
        at = _skip(text, _decoder.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)
        n += 1
    if found < 0:
        raise LookupError(step)
    return found


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
