"""Calls of webhooks: where a clientConfig leads, and how answers are read."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from noxu.go.structs import BOOL, STRING, Field, List, Presence, Struct
from noxu.webhook.client import (
    CallFailed,
    ReviewKind,
    Service,
    Unusable,
    WebhookEndpoint,
    WebhookReply,
    describe,
    endpoint_of,
    read_review,
)
from tests.rows import rows

RESPONSE = Struct("AdmissionResponse").define(
    Field("uid", STRING, write=Presence.ALWAYS),
    Field("allowed", BOOL, write=Presence.ALWAYS),
    Field("warnings", List(STRING)),
)
REVIEW = Struct("AdmissionReview").define(
    Field("kind", STRING), Field("apiVersion", STRING), Field("response", RESPONSE, write=Presence.POINTER)
)
KIND = ReviewKind("admission.k8s.io", "v1", REVIEW)
NO_KIND = "couldn't get version/kind; json parse error"
TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
OTHER = "unknown conversion"

ENDPOINTS: list[tuple[dict[str, Any], str]] = [
    # the clientConfig, the URL as error messages show it
    ({"url": "https://127.0.0.1:8443/x"}, "https://127.0.0.1:8443/x"),
    ({"url": "https://hooks.example.com"}, "https://hooks.example.com/"),
    ({"url": "https://[::1]:8443/x"}, "https://[::1]:8443/x"),
    ({"url": "http://localhost:8443/x"}, "http://localhost:8443/x"),
    ({"url": "https://a.example.com/x/"}, "https://a.example.com/x"),
    ({"url": "https://a.example.com//x/../y"}, "https://a.example.com/y"),
    ({"url": "https://a.example.com/x%20y"}, "https://a.example.com/x%20y"),
    ({"url": "https://a.example.com/zü"}, "https://a.example.com/z%C3%BC"),
    ({"service": {"namespace": "ns", "name": "hook"}}, "https://hook.ns.svc:443/"),
    ({"service": {"namespace": "ns", "name": "hook", "port": 8443, "path": "/x"}}, "https://hook.ns.svc:8443/x"),
]


@rows(("config", "url"), ENDPOINTS)
def test_a_client_config_leads_to_a_url(config: dict[str, Any], url: str) -> None:
    assert endpoint_of(config).url == url


def test_a_service_is_remembered_by_its_name() -> None:
    endpoint = endpoint_of({"service": {"namespace": "ns", "name": "hook", "path": "/x"}})
    assert endpoint.service == Service("ns", "hook", 443)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({}, "webhook configuration must have either service or URL"),
        ({"url": "https://a b/"}, 'Unparsable URL: parse "https://a b/": invalid character " " in host name'),
        (
            {"url": "https://a/", "caBundle": base64.b64encode(b"garbage").decode()},
            "unable to load root certificates: unable to parse bytes as PEM block",
        ),
    ],
)
def test_a_client_config_that_leads_nowhere(config: dict[str, Any], text: str) -> None:
    with pytest.raises(Unusable) as error:
        endpoint_of(config)
    assert error.value.text == text


def test_errors_name_the_call_as_go_does() -> None:
    assert describe(WebhookEndpoint("https://a/x"), 10) == 'Post "https://a/x?timeout=10s"'


ANSWERS: list[tuple[str, WebhookReply, str]] = [
    # the reply, and upstream's message
    ("nothing", WebhookReply(200, None, b""), "0-length response with status code: 200 and content type: application/json"),
    ("no content", WebhookReply(204, "text/x", b""), "0-length response with status code: 204 and content type: text/x"),
    ("no JSON", WebhookReply(200, "", b"{nope"), f"{NO_KIND}: invalid character 'n' looking for beginning of object key string"),
    ("text, which is YAML", WebhookReply(200, "text/plain", b"hello there"), f"{NO_KIND}: json: cannot unmarshal string into Go value of type {TYPE_META}"),
    ("a list", WebhookReply(200, "", b"[]"), f"{NO_KIND}: json: cannot unmarshal array into Go value of type {TYPE_META}"),
    ("a kind that is no text", WebhookReply(200, "", b'{"kind":5}'), f"{NO_KIND}: json: cannot unmarshal number into Go struct field .kind of type string"),
    ("an odd version", WebhookReply(200, "", b'{"kind":"X","apiVersion":"a/b/c"}'), "unexpected GroupVersion string: a/b/c"),
    ("a Pod", WebhookReply(200, "", b'{"kind":"Pod","apiVersion":"v1"}'), 'no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'),
    ("a version to come", WebhookReply(200, "", b'{"apiVersion":"admission.k8s.io/v9"}'), 'no kind "AdmissionReview" is registered for version "admission.k8s.io/v9" in scheme "pkg/runtime/scheme.go:111"'),
    ("a Status", WebhookReply(200, "", b'{"kind":"Status","apiVersion":"v1"}'), f"converting (v1.Status) to (v1.AdmissionReview): {OTHER}"),
    ("the old version", WebhookReply(200, "", b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}'), f"converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): {OTHER}"),
    ("options", WebhookReply(200, "", b'{"kind":"GetOptions","apiVersion":"admission.k8s.io/v1beta1"}'), f"converting (v1.GetOptions) to (v1.AdmissionReview): {OTHER}"),
    ("a wrong type", WebhookReply(200, "", b'{"response":{"allowed":"yes"}}'), "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool"),
    ("an odd Content-Type", WebhookReply(200, "x/y/z", b"{}"), "Internal error occurred: mime: unexpected content after media subtype"),
    ("no Content-Type to speak of", WebhookReply(200, "/x", b"{}"), "Internal error occurred: mime: no media type"),
    ("an odd parameter", WebhookReply(200, "a/b; c", b"{}"), "Internal error occurred: mime: invalid media parameter"),
    ("300", WebhookReply(300, "text/html", b"x"), "the server responded with the status code 300 but did not return more information"),
    ("a redirect", WebhookReply(302, "text/html", b"x"), "the server responded with the status code 302 but did not return more information"),
    ("400", WebhookReply(400, "text/plain", b"x"), "the server rejected our request for an unknown reason"),
    ("401", WebhookReply(401, "text/plain", b"x"), "the server has asked for the client to provide credentials"),
    ("403", WebhookReply(403, "text/plain", b" not you\n"), "not you"),
    ("403 and JSON", WebhookReply(403, "application/json", b"{}"), "unknown"),
    ("404", WebhookReply(404, "text/plain", b"x"), "the server could not find the requested resource"),
    ("405", WebhookReply(405, "text/plain", b"x"), "the server does not allow this method on the requested resource"),
    ("406", WebhookReply(406, "text/plain", b"not that"), "not that"),
    ("406 and JSON", WebhookReply(406, "application/json", b"{}"), "the server was unable to respond with a content type that the client supports"),
    ("409", WebhookReply(409, "text/plain", b"x"), "the server reported a conflict"),
    ("413", WebhookReply(413, "text/plain", b"x"), "the server responded with the status code 413 but did not return more information"),
    ("415", WebhookReply(415, None, b"what"), "what"),
    ("422", WebhookReply(422, "text/plain", b"x"), "the server rejected our request due to an error in our request"),
    ("429", WebhookReply(429, "text/plain", b"x"), "the server has received too many requests and has asked us to try again later"),
    ("500 and text", WebhookReply(500, "text/plain", b'z\xc3\xbc "q"\n'), 'an error on the server ("zü \\"q\\"") has prevented the request from succeeding'),
    ("500 and JSON", WebhookReply(500, "application/json", b"{}"), 'an error on the server ("unknown") has prevented the request from succeeding'),
    ("500 and much text", WebhookReply(500, "text/plain", b"y" * 5000), f'an error on the server ("{"y" * 2048}") has prevented the request from succeeding'),
    ("503", WebhookReply(503, "text/plain", b"x"), "the server is currently unable to handle the request"),
    ("504", WebhookReply(504, "text/plain", b"x"), "the server was unable to return a response in the time allotted, but may still be processing the request"),
    ("a Status with a failure", WebhookReply(500, "", b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"own words"}'), "own words"),
    ("a Status without a version", WebhookReply(403, "", b'{"kind":"Status","status":"Failure","message":"go away"}'), "go away"),
    ("a Status without a message", WebhookReply(404, "", b'{"kind":"Status","status":"Failure"}'), ""),
    ("a Status that is a success", WebhookReply(404, "", b'{"kind":"Status","status":"Success","message":"m"}'), "the server could not find the requested resource"),
    ("a Status that cannot be read", WebhookReply(404, "", b'{"kind":"Status","status":"Failure","message":5}'), "the server could not find the requested resource"),
]  # fmt: skip


@rows(("reply", "text"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_an_answer_that_is_no_review(reply: WebhookReply, text: str) -> None:
    with pytest.raises(CallFailed) as error:
        read_review(reply, KIND)
    assert error.value.text == text


REVIEWS: list[tuple[str, int, bytes, dict[str, Any]]] = [
    ("a review", 200, b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":true}}', {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"uid": "u", "allowed": True}}),
    ("any success is one", 201, b'{"response":{"uid":"u"}}', {"response": {"uid": "u", "allowed": False}}),
    ("one that does not say what it is", 200, b"{}", {}),
    ("null", 200, b"null", {}),
    ("unknown fields are ignored", 200, b'{"x":1,"response":{"y":2}}', {"response": {"uid": "", "allowed": False}}),
    ("YAML", 200, b"kind: AdmissionReview\nresponse: {allowed: true}\n", {"kind": "AdmissionReview", "response": {"uid": "", "allowed": True}}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "body", "review"), [row[1:] for row in REVIEWS], ids=[row[0] for row in REVIEWS])
def test_an_answer_that_is_a_review(code: int, body: bytes, review: dict[str, Any]) -> None:
    assert read_review(WebhookReply(code, "text/html; charset=utf-8", body), KIND) == review
