"""Audit events: fields and their order, users, objects, addresses, bodies, and the two formats of a line."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from noxu.registry.access import AccessAttributes, Decision, User
from noxu.security import audit
from noxu.security.audit import AuditLog, Record, RecordedBody, annotations_of
from noxu.security.audit_policy import NO_USER, AuditPolicy, AuditRule, Level, Recording
from tests.security.lines import Lines

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, UTC)
TIM = User("tim", "7", ("humans",), (("scopes", ("b", "a")),))
PODS = AccessAttributes(TIM, "get", "", "v1", "pods", "log", "default", "busybox")


def log_of(level: Level = Level.METADATA, *omitted: str, **more: Any) -> tuple[AuditLog, Lines]:
    lines = Lines()
    return AuditLog(AuditPolicy((AuditRule(Recording(level, frozenset(omitted))),)), lines, **more), lines


def record_of(log: AuditLog, asked: AccessAttributes = PODS, uri: str = "/x?a=1&b=<", agent: str = "kubectl") -> Record:
    record = log.record(asked, "id-1", uri, ["10.0.0.1"], agent, NOW)
    assert record is not None
    return record


def test_an_event_has_the_fields_of_upstream_in_their_order() -> None:
    log, lines = log_of(Level.REQUEST_RESPONSE)
    record = record_of(log)
    record.impersonated(User("ann", groups=("a",)), "impersonate-on:user-info:get")
    record.request = RecordedBody((b'{"spec":\n{"a":1}}',), json.loads)
    record.response = RecordedBody((b'{"status"', b":{}}\n"), json.loads, is_json=True)
    record.status = {
        "status": "Failure",
        "message": "no",
        "reason": "Forbidden",
        "details": {},
        "code": 403,
        "kind": "Status",
    }
    record.completed(
        403, NOW + timedelta(milliseconds=1), {"z": "1", "a": "2"}, {"uid": "u", "resourceVersion": "5", "name": "x"}
    )
    assert lines.lines == [
        b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","auditID":"id-1","stage":"ResponseComplete",'
        b'"requestURI":"/x?a=1\\u0026b=\\u003c","verb":"get",'
        b'"user":{"username":"tim","uid":"7","groups":["humans"],"extra":{"scopes":["b","a"]}},'
        b'"impersonatedUser":{"username":"ann","groups":["a"]},'
        b'"authenticationMetadata":{"impersonationConstraint":"impersonate-on:user-info:get"},'
        b'"sourceIPs":["10.0.0.1"],"userAgent":"kubectl",'
        b'"objectRef":{"resource":"pods","namespace":"default","name":"busybox","uid":"u","apiVersion":"v1",'
        b'"resourceVersion":"5","subresource":"log"},'
        b'"responseStatus":{"metadata":{},"status":"Failure","message":"no","reason":"Forbidden","details":{},"code":403},'
        b'"requestObject":{"spec":{"a":1}},"responseObject":{"status":{}},'
        b'"requestReceivedTimestamp":"2026-01-02T03:04:05.000678Z","stageTimestamp":"2026-01-02T03:04:05.001678Z",'
        b'"annotations":{"a":"2","z":"1"}}\n'
    ]


def test_times_have_microseconds_even_if_they_are_zero() -> None:
    log, lines = log_of()
    record = log.record(PODS, "id", "/", [], "", NOW.replace(microsecond=0))
    assert record is not None
    record.completed(200, NOW, {})
    [event] = lines.events
    assert event["requestReceivedTimestamp"] == "2026-01-02T03:04:05.000000Z"
    assert event["stageTimestamp"] == "2026-01-02T03:04:05.000678Z"


def test_the_stages_of_a_watch() -> None:
    log, lines = log_of()
    record = record_of(log)
    record.received()
    record.started(200, NOW + timedelta(seconds=1), {})
    record.started(200, NOW + timedelta(seconds=2), {})
    record.completed(200, NOW + timedelta(seconds=9), {})
    assert [
        (event["stage"], event["stageTimestamp"][17:19], event.get("responseStatus")) for event in lines.events
    ] == [
        ("RequestReceived", "05", None),
        ("ResponseStarted", "06", {"metadata": {}, "code": 200}),
        ("ResponseComplete", "14", {"metadata": {}, "code": 200}),
    ]


@pytest.mark.parametrize(
    ("omitted", "stages"),
    [
        ((), ["RequestReceived", "ResponseStarted", "ResponseComplete"]),
        (("RequestReceived",), ["ResponseStarted", "ResponseComplete"]),
        (("ResponseStarted", "ResponseComplete"), ["RequestReceived"]),
        (("RequestReceived", "ResponseStarted", "ResponseComplete"), []),
    ],
)
def test_omitted_stages(omitted: tuple[str, ...], stages: list[str]) -> None:
    log, lines = log_of(Level.METADATA, *omitted)
    record = record_of(log)
    record.received()
    record.started(200, NOW, {})
    record.completed(200, NOW, {})
    assert [event["stage"] for event in lines.events] == stages


def test_a_bug_ends_a_request_with_the_stage_panic() -> None:
    log, lines = log_of()
    record_of(log).completed(500, NOW, {}, panicked=True)
    assert [event["stage"] for event in lines.events] == ["Panic"]


def test_a_request_whose_client_left_early() -> None:
    log, lines = log_of()
    record_of(log).completed(0, NOW, {})
    assert lines.events[0]["responseStatus"] == {
        "metadata": {},
        "status": "Success",
        "message": "Connection closed early",
        "code": 200,
    }


@pytest.mark.parametrize(("seconds", "annotated"), [(0.5, None), (0.75, "750ms"), (61.5, "1m1.5s")])
def test_slow_requests_are_annotated(seconds: float, annotated: str | None) -> None:
    log, lines = log_of()
    record_of(log).completed(200, NOW + timedelta(seconds=seconds), {})
    assert lines.events[0].get("annotations", {}).get("apiserver.latency.k8s.io/total") == annotated


def test_level_none_has_no_record() -> None:
    log, _ = log_of(Level.NONE)
    assert log.record(PODS, "id", "/", [], "", NOW) is None


def test_a_request_without_a_user_has_an_empty_one() -> None:
    log, lines = log_of()
    record_of(log, AccessAttributes(NO_USER, "get", path="/version")).started(401, NOW, {})
    [event] = lines.events
    assert event["user"] == {}
    assert "objectRef" not in event


@pytest.mark.parametrize(
    ("decision", "admission", "deprecated", "expected"),
    [
        (None, {}, False, {}),
        (
            Decision(allowed=True, reason="RBAC: allowed"),
            {},
            False,
            {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "RBAC: allowed"},
        ),
        (
            Decision(allowed=False),
            {"a.example.com/x": "1"},
            False,
            {"a.example.com/x": "1", "authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""},
        ),
        (Decision(allowed=False, error="oops"), {}, False, {"authorization.k8s.io/reason": "internal error"}),
        (None, {}, True, {"k8s.io/deprecated": "true"}),
    ],
)
def test_annotations(
    decision: Decision | None, admission: dict[str, str], deprecated: bool, expected: dict[str, str]
) -> None:
    assert annotations_of(Level.METADATA, decision, admission, deprecated=deprecated) == expected


@pytest.mark.parametrize(
    ("level", "shown"), [(Level.METADATA, False), (Level.REQUEST, True), (Level.REQUEST_RESPONSE, True)]
)
def test_the_patch_of_a_webhook_is_content(level: Level, shown: bool) -> None:
    patch, mutation = (
        "patch.webhook.admission.k8s.io/round_0_index_0",
        "mutation.webhook.admission.k8s.io/round_0_index_0",
    )
    found = annotations_of(level, None, {patch: "canary", mutation: "yes"}, deprecated=False)
    assert (patch in found, mutation in found) == (shown, True)


@pytest.mark.parametrize(
    ("forwarded", "real", "remote", "expected"),
    [
        ("", "", "127.0.0.1", ["127.0.0.1"]),
        ("1.2.3.4", "", "127.0.0.1", ["1.2.3.4", "127.0.0.1"]),
        ("1.2.3.4, 010.0.0.1 ,bad,", "", "127.0.0.1", ["1.2.3.4", "10.0.0.1", "127.0.0.1"]),
        ("1.2.3.4", "1.2.3.4", "9.9.9.9", ["1.2.3.4", "9.9.9.9"]),
        ("1.2.3.4", "5.6.7.8", "9.9.9.9", ["1.2.3.4", "5.6.7.8", "9.9.9.9"]),
        ("1.2.3.4,127.0.0.1", "", "127.0.0.1", ["1.2.3.4", "127.0.0.1"]),
        ("FE80:0::1, ::ffff:1.2.3.4", "", "::1", ["fe80::1", "1.2.3.4", "::1"]),
        ("fe80::1%eth0", "", "", []),
        (",".join(["1.1.1.1"] * 200_000), "", "", ["1.1.1.1"] * audit.MAX_FORWARDED),
    ],
)
def test_source_addresses(forwarded: str, real: str, remote: str, expected: list[str]) -> None:
    assert list(audit.source_ips(forwarded, real, remote)) == expected


@pytest.mark.parametrize(
    ("agent", "written"),
    [
        ("a" * 1024, "a" * 1024),
        ("a" * 1025, "a" * 1024 + "...TRUNCATED"),
        ("", None),
    ],
)
def test_long_user_agents_are_truncated(agent: str, written: str | None) -> None:
    log, lines = log_of()
    record_of(log, agent=agent).received()
    assert lines.events[0].get("userAgent") == written


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    log, lines = log_of()
    record_of(log, uri="/a\udcff", agent="\udc80x").received()
    assert (lines.events[0]["requestURI"], lines.events[0]["userAgent"]) == ("/a\ufffd", "\ufffdx")


def test_the_legacy_format() -> None:
    log, lines = log_of(format_="legacy")
    record = record_of(log, agent='a"\x1b')
    record.received()
    record.impersonated(User("ann", groups=()))
    record.completed(200, NOW, {})
    before = (
        b'2026-01-02T03:04:05.000678Z AUDIT: id="id-1" stage="%b" ip="10.0.0.1" method="get" user="tim" '
        b'groups="\\"humans\\"" as="%b" asgroups="<lookup>" user-agent="a\\"\\x1b" namespace="default" uri="/x?a=1&b=<" '
        b'response="%b"\n'
    )
    assert lines.lines == [
        before % (b"RequestReceived", b"<self>", b"<deferred>"),
        before % (b"ResponseComplete", b"ann", b"200"),
    ]


MANAGED = {"metadata": {"name": "a", "managedFields": [{}]}}


@pytest.mark.parametrize(
    ("content", "more", "expected"),
    [
        (b'{"a": 1}\n', {"is_json": True}, b'{"a": 1}'),
        (b'{"a":\n 1}', {"is_json": True}, b'{"a":1}'),
        (b'{"a": 1}', {}, b'{"a":1}'),
        (b"no json", {}, None),
        (b'{"a":"\xff"}', {"is_json": True}, b'{"a":"\xef\xbf\xbd"}'),
    ],
)
def test_bodies_are_json_on_one_line(content: bytes, more: dict[str, Any], expected: bytes | None) -> None:
    def decode(text: bytes) -> Any:
        return json.loads(text.decode("utf-8", "replace"))

    found = audit.body_json(RecordedBody((content,), decode, **more), omit_managed_fields=False)
    assert (None if found is None else audit.json_line({"x": found})) == (
        None if expected is None else b'{"x":%b}\n' % expected
    )


@pytest.mark.parametrize(
    "value",
    [
        MANAGED,
        {"items": [MANAGED, MANAGED], "metadata": {}},
        {"kind": "Table", "rows": [{"cells": [], "object": MANAGED}]},
        {"kind": "Table", "rows": [{"cells": []}, None]},
        {"items": {}},
    ],
)
def test_managed_fields_are_omitted_from_objects_lists_and_tables(value: Any) -> None:
    content = json.dumps(value).encode()
    for is_json in (False, True):
        body = audit.body_json(RecordedBody((content,), json.loads, is_json=is_json), omit_managed_fields=True)
        assert b"managedFields" not in audit.json_line({"x": body})


def test_managed_fields_of_a_patch_are_what_was_sent() -> None:
    content = json.dumps(MANAGED).encode()
    body = audit.body_json(RecordedBody((content,), json.loads, is_patch=True), omit_managed_fields=True)
    assert b"managedFields" in audit.json_line({"x": body})
