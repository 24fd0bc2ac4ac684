"""AdmissionReview: requests, responses and their patches."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from noxu.admission import reviews
from noxu.api.errors import ApiError
from noxu.api.json_patches import MAX_JSON_PATCH_OPERATIONS
from noxu.webhook.client import CallFailed, WebhookReply
from tests.rows import rows

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def b64(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.b64encode(text.encode()).decode()


def reply(response: Any = None, version: str = "v1", **review: Any) -> WebhookReply:
    whole = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "response": response, **review}
    kept = {name: value for name, value in whole.items() if value is not None}
    return WebhookReply(200, "application/json", json.dumps(kept).encode())


def read(response: Any, *, mutating: bool = True, version: str = "v1") -> reviews.Response:
    if isinstance(response, dict):
        response = {"uid": UID, "allowed": True, **response}
    return reviews.read(reply(response, version), version, UID, mutating=mutating)


ANSWERS: list[tuple[str, dict[str, Any], reviews.Response]] = [
    ("yes", {}, reviews.Response(True, {})),
    ("no", {"allowed": False}, reviews.Response(False, {})),
    ("no, and why", {"allowed": False, "status": {"message": "m", "code": 403}}, reviews.Response(False, {"metadata": {}, "message": "m", "code": 403})),
    ("warnings and annotations", {"warnings": ["a", "b"], "auditAnnotations": {"k": "v"}}, reviews.Response(True, {}, (), ["a", "b"], (("k", "v"),))),
    ("a patch", {"patch": b64([{"op": "remove", "path": "/a"}]), "patchType": "JSONPatch"}, reviews.Response(True, {}, [{"op": "remove", "path": "/a"}])),
    ("an empty patch", {"patch": b64([]), "patchType": "JSONPatch"}, reviews.Response(True, {}, [])),
    ("a patch that is null", {"patch": b64(None), "patchType": "JSONPatch"}, reviews.Response(True, {})),
    ("the patch of a denial is ignored", {"allowed": False, "patch": b64("garbage"), "patchType": "x"}, reviews.Response(False, {})),
]  # fmt: skip


@pytest.mark.parametrize(("response", "meaning"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_an_answer(response: dict[str, Any], meaning: reviews.Response) -> None:
    assert read(response) == meaning


INVALID = "received invalid webhook response"
UNDECODABLE = "received undecodable patch in webhook response"
REFUSED: list[tuple[str, Any, bool, str]] = [
    # name, the response, mutating?, the message
    ("none", None, True, f"{INVALID}: webhook response was absent"),
    ("another uid", {"uid": "x"}, True, f'{INVALID}: expected response.uid="{UID}", got "x"'),
    ("no uid", {"uid": ""}, False, f'{INVALID}: expected response.uid="{UID}", got ""'),
    ("a patch without a type", {"patch": b64([])}, True, f"{INVALID}: webhook returned response.patch but not response.patchType"),
    ("a type without a patch", {"patchType": "JSONPatch"}, True, f"{INVALID}: webhook returned response.patchType but not response.patch"),
    ("an empty type", {"patch": b64([]), "patchType": ""}, True, f'{INVALID}: webhook returned invalid response.patchType of ""'),
    ("another type", {"patch": b64([{}]), "patchType": "MergePatch"}, True, 'unsupported patch type "MergePatch"'),
    ("a patch from a validating webhook", {"patch": b64([]), "patchType": "JSONPatch"}, False, f"{INVALID}: validating webhook may not return response.patch"),
    ("a type from a validating webhook", {"patchType": "JSONPatch"}, False, f"{INVALID}: validating webhook may not return response.patchType"),
    ("no base64", {"patch": "!!!", "patchType": "JSONPatch"}, True, "failed to call webhook: illegal base64 data at input byte 0"),
    ("a patch that is no JSON", {"patch": b64("{nope"), "patchType": "JSONPatch"}, True, f"{UNDECODABLE}: invalid character 'n' looking for beginning of object key string"),
    ("a patch that is no list", {"patch": b64({}), "patchType": "JSONPatch"}, True, f"{UNDECODABLE}: json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
    ("an operation that is none", {"patch": b64([5]), "patchType": "JSONPatch"}, True, f"{UNDECODABLE}: json: cannot unmarshal number into Go value of type jsonpatch.Operation"),
    ("too many operations", {"patch": b64([{}] * (MAX_JSON_PATCH_OPERATIONS + 1)), "patchType": "JSONPatch"}, True, f"{INVALID}: the patch has 10001 operations, at most 10000 are applied"),
    ("a wrong type", {"allowed": "yes"}, True, "failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool"),
    ("no object", "x", True, "failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionReview.response of type v1.AdmissionResponse"),
]  # fmt: skip


@rows(("response", "mutating", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_malformed_answers_are_refused(response: Any, mutating: bool, text: str) -> None:
    with pytest.raises(CallFailed) as error:
        read(response, mutating=mutating)
    assert error.value.text == text


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"kind": None, "apiVersion": None}, "/, Kind="),
        ({"apiVersion": None}, "/, Kind=AdmissionReview"),
        ({"kind": None}, "admission.k8s.io/v1, Kind="),
    ],
)
def test_an_answer_in_v1_needs_its_api_version_and_kind(given: dict[str, Any], sent: str) -> None:
    with pytest.raises(CallFailed) as error:
        reviews.read(reply({"uid": UID, "allowed": True}, **given), "v1", UID, mutating=False)
    expected = "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview"
    assert error.value.text == f"{INVALID}: {expected}, got {sent}"


@pytest.mark.parametrize("given", [{"uid": "x"}, {"patchType": None}, {"patchType": "Other"}])
def test_an_answer_in_v1beta1_is_read_leniently(given: dict[str, Any]) -> None:
    patch = {"patch": b64([{"op": "remove", "path": "/a"}]), "patchType": "JSONPatch", **given}
    assert read(patch, version="v1beta1").operations == [{"op": "remove", "path": "/a"}]


DENIALS: list[tuple[dict[str, Any], int, str, str]] = [
    # the status, the code, the message after "admission webhook "h" denied the request", the reason
    ({}, 400, " without explanation", ""),
    ({"message": "because"}, 400, ": because", ""),
    ({"reason": "Forbidden"}, 400, ": Forbidden", "Forbidden"),
    ({"message": "because", "reason": "Forbidden", "code": 403}, 403, ": because", "Forbidden"),
    ({"code": 200, "message": "ok?"}, 400, ": ok?", ""),
    ({"code": 399}, 400, " without explanation", ""),
    ({"code": 999, "message": "oops"}, 999, ": oops", ""),
    ({"code": 1000, "message": "oops"}, 999, ": oops", ""),
    ({"message": 'línea 1\nline "2"\t<&>'}, 400, ': línea 1\nline "2"\t<&>', ""),
]


@pytest.mark.parametrize(("status", "code", "message", "reason"), DENIALS)
def test_a_denial(status: dict[str, Any], code: int, message: str, reason: str) -> None:
    error = reviews.denial("h", status)
    messages = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    messages |= {"message": f'admission webhook "h" denied the request{message}', "code": code}
    assert error.status == messages | ({"reason": reason} if reason else {})


def test_a_denial_passes_on_the_given_status() -> None:
    details = {"name": "n", "causes": [{"message": "c"}], "retryAfterSeconds": 3}
    error = reviews.denial(
        "h", {"details": details, "metadata": {"resourceVersion": "5"}, "status": "Odd", "code": 429}
    )
    assert (error.details, error.retry_after, error.metadata, error.outcome) == (
        details,
        3,
        {"resourceVersion": "5"},
        "Odd",
    )


def test_a_success_is_no_denial() -> None:
    assert reviews.denial("h", {"status": "Success"}).outcome == "Failure"


NO_ATTRIBUTES: Any = None
NO_RESOURCE: Any = None


def test_a_patch_whose_number_no_float64_holds_is_refused() -> None:
    response = read({"patch": b64('[{"op": "add", "path": "/a", "value": 1e309}]'), "patchType": "JSONPatch"})
    with pytest.raises(ApiError, match="json: cannot unmarshal number 1e309 into Go value of type float64") as refused:
        reviews.patched(NO_ATTRIBUTES, NO_RESOURCE, {"apiVersion": "g/v1", "kind": "Thing"}, response.operations)
    assert refused.value.code == 500
