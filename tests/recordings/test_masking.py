"""What is secret is masked, and stays what a server accepts."""

from __future__ import annotations

import base64

import pytest

from noxu.apply.merging import ANNOTATION
from noxu.recordings.masking import MASKED, MASKED_BASE64, is_secret, masked
from noxu.values import Json
from tests.rows import rows

SECRET = {"kind": "Secret", "data": {"password": "aHVudGVyMg=="}}


@rows(
    "value, expected",
    [
        pytest.param(
            {"kind": "ConfigMap", "data": {"a": "b"}},
            {"kind": "ConfigMap", "data": {"a": "b"}},
            id="an object of another kind stays",
        ),
        pytest.param(SECRET, {"kind": "Secret", "data": {"password": MASKED_BASE64}}, id="the values of a Secret"),
        pytest.param(
            {"kind": "Secret", "stringData": {"password": "hunter2"}},
            {"kind": "Secret", "stringData": {"password": MASKED}},
            id="its values as text",
        ),
        pytest.param(
            {"kind": "Secret", "data": {".dockercfg": "eyJhIjoxfQ=="}, "stringData": {".dockerconfigjson": '{"a":1}'}},
            {"kind": "Secret", "data": {".dockercfg": "e30="}, "stringData": {".dockerconfigjson": "{}"}},
            id="its values that have to be objects",
        ),
        pytest.param(
            {"kind": "Secret", "data": {"a": None}},
            {"kind": "Secret", "data": {"a": None}},
            id="a value that a patch removes",
        ),
        pytest.param(
            {"kind": "Secret", "metadata": {"annotations": {ANNOTATION: '{"data":…}', "other": "b"}}},
            {"kind": "Secret", "metadata": {"annotations": {ANNOTATION: MASKED, "other": "b"}}},
            id="the copy that kubectl keeps",
        ),
        pytest.param(
            {"type": "ADDED", "object": SECRET},
            {"type": "ADDED", "object": {"kind": "Secret", "data": {"password": MASKED_BASE64}}},
            id="one in an event",
        ),
        pytest.param(
            {"kind": "SecretList", "items": [{"data": {"a": "Yg=="}}]},
            {"kind": "SecretList", "items": [{"data": {"a": MASKED_BASE64}}]},
            id="those in a list, whose items have no kind",
        ),
        pytest.param(
            {"kind": "List", "items": [SECRET]},
            {"kind": "List", "items": [{"kind": "Secret", "data": {"password": MASKED_BASE64}}]},
            id="one in a list of several kinds",
        ),
        pytest.param(
            {"kind": "TokenRequest", "status": {"token": "eyJ", "expirationTimestamp": "…"}},
            {"kind": "TokenRequest", "status": {"token": MASKED, "expirationTimestamp": "…"}},
            id="the token of a service account",
        ),
        pytest.param(
            {"kind": "TokenReview", "spec": {"token": "eyJ", "audiences": ["a"]}},
            {"kind": "TokenReview", "spec": {"token": MASKED, "audiences": ["a"]}},
            id="the token that is reviewed",
        ),
        pytest.param("hunter2", "hunter2", id="a text"),
    ],
)
def test_secrets_are_masked(value: Json, expected: Json) -> None:
    assert masked(value) == expected


@rows(
    "sent, expected",
    [
        pytest.param({"data": {"a": "Yg=="}}, {"data": {"a": MASKED_BASE64}}, id="a merge patch"),
        pytest.param([{"op": "add", "path": "/data/a", "value": "Yg=="}], MASKED_BASE64, id="a JSON patch of a value"),
        pytest.param(
            [{"op": "add", "path": "/data", "value": {"a": "Yg=="}}],
            {"a": MASKED_BASE64},
            id="a JSON patch of all values",
        ),
        pytest.param([{"op": "replace", "path": "/stringData/a", "value": "b"}], MASKED, id="a JSON patch of a text"),
        pytest.param(
            [
                {
                    "op": "add",
                    "path": "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration",
                    "value": "{}",
                }
            ],
            MASKED,
            id="a JSON patch of kubectl's copy",
        ),
        pytest.param(
            [{"op": "add", "path": "/metadata/labels/a", "value": "b"}], "b", id="a JSON patch of something else"
        ),
        pytest.param(
            [{"op": "replace", "path": "", "value": {"data": {"a": "Yg=="}}}],
            {"data": {"a": MASKED_BASE64}},
            id="a JSON patch of the object",
        ),
    ],
)
def test_what_is_sent_to_a_secret_is_masked(sent: Json, expected: Json) -> None:
    found = masked(sent, resource="secrets")
    assert (found[0]["value"] if isinstance(found, list) else found) == expected


@rows(
    "resource, value, expected",
    [
        ("tokenreviews.authentication.k8s.io", {"spec": {"token": "eyJ"}}, {"spec": {"token": MASKED}}),
        ("secretstores.example.com", {"data": {"a": "b"}}, {"data": {"a": "b"}}),
        ("configmaps", {"spec": {"token": "a"}}, {"spec": {"token": "a"}}),
    ],
)
def test_what_has_no_kind_is_what_its_resource_says(resource: str, value: Json, expected: Json) -> None:
    assert masked(value, resource=resource) == expected
    assert is_secret(resource) == (value != expected)


def test_a_masked_value_is_base64() -> None:
    assert base64.b64decode(MASKED_BASE64, validate=True).decode() == MASKED
