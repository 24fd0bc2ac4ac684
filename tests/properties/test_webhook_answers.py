"""Any bytes from a webhook are read in little time, as an answer or as a failed call."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.admission import reviews
from noxu.webhook.certificates import verification_error
from noxu.webhook.client import MAX_ANSWER, CallFailed, WebhookReply

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
HEAD = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"' + UID.encode() + b'"},"x":'

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
patches = st.binary(max_size=40) | values.map(lambda value: json.dumps(value).encode())
responses = st.fixed_dictionaries(
    {},
    optional={
        "uid": st.just(UID) | values,
        "allowed": st.booleans() | values,
        "status": values,
        "patch": patches.map(lambda patch: base64.b64encode(patch).decode()) | values,
        "patchType": st.just("JSONPatch") | values,
        "warnings": values,
        "auditAnnotations": values,
    },
)
answers = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.just("AdmissionReview") | values,
        "apiVersion": st.sampled_from(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"]) | values,
        "response": responses | values,
    },
)
bodies = (
    st.binary(max_size=60)
    | st.text(max_size=60).map(str.encode)
    | answers.map(lambda answer: json.dumps(answer).encode())
)
types = st.none() | st.text(max_size=12) | st.sampled_from(["application/json", "text/plain; charset=utf-8"])


def outcome(reply: WebhookReply, version: str = "v1", *, mutating: bool = True) -> reviews.Response | str:
    """The answer, or the message of the failed call."""
    try:
        return reviews.read(reply, version, UID, mutating=mutating)
    except CallFailed as failed:
        return failed.text


@given(
    st.sampled_from([200, 201, 302, 404, 500, 999]), types, bodies, st.sampled_from(["v1", "v1beta1"]), st.booleans()
)
def test_any_answer_is_a_response_or_a_failed_call(
    code: int, content_type: str | None, body: bytes, version: str, mutating: bool
) -> None:
    found = outcome(WebhookReply(code, content_type, body), version, mutating=mutating)
    if isinstance(found, str):
        return
    assert found.allowed in (True, False)
    assert all(operation is None or isinstance(operation, dict) for operation in found.operations)
    error = reviews.denial("h", found.status)
    assert 400 <= error.code <= 999
    assert isinstance(error.message, str)


@given(st.binary(max_size=80), st.text(max_size=12))
def test_any_certificate_has_an_error_in_the_words_of_go(der: bytes, host: str) -> None:
    assert verification_error(der, host, b"", datetime.now(UTC)).startswith("tls: failed to verify certificate: x509: ")


LONG: list[tuple[str, bytes]] = [
    ("repeated keys", HEAD + b"{" + b'"a":1,' * 1_300_000 + b'"b":1}}'),
    ("no end", HEAD + b"[" + b"1," * 4_000_000),
    ("too deep", HEAD + b"[" * 4_000_000),
    ("numbers that are too large", HEAD + b"[" + b"1e999," * 1_300_000 + b"1]}"),
    ("YAML", b"- [&a [x], *a]\n" * 500_000),
    ("many keys", HEAD + b"{" + b",".join(b'"%d":1' % n for n in range(700_000)) + b"}}"),
]


@pytest.mark.parametrize("body", [row[1] for row in LONG], ids=[row[0] for row in LONG])
def test_a_long_answer_is_read_in_little_time(body: bytes) -> None:
    assert len(body) <= MAX_ANSWER
    began = time.process_time()
    found = outcome(WebhookReply(200, None, body))
    assert not isinstance(found, str) or len(found) < 1000
    assert time.process_time() - began < 3


def test_a_long_patch_is_refused_in_little_time() -> None:
    patch = base64.b64encode(b"[" + b'{"op":"add","path":"/spec/a","value":[1,2]},' * 100_000).decode()
    response: dict[str, Any] = {"uid": UID, "allowed": True, "patch": patch, "patchType": "JSONPatch"}
    body = json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}).encode()
    began = time.process_time()
    with pytest.raises(CallFailed, match="received undecodable patch in webhook response"):
        reviews.read(WebhookReply(200, None, body), "v1", UID, mutating=True)
    assert time.process_time() - began < 3
