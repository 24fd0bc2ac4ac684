"""A write whose client asks for it is traced, and answered as any other."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple

import jsonpatch
import pytest

from noxu.http.traces import MAX_TRACES, Traces
from noxu.registry.trace import Note, Step
from noxu.testing.handle import Noxu
from noxu.values import Json, Object

CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gears.traces.example.com"},
    "spec": {
        "group": "traces.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gears", "kind": "Gear"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-validations": [{"rule": "self.low <= self.high"}],
                                "properties": {
                                    "low": {"type": "integer", "maximum": 50},
                                    "high": {"type": "integer", "default": 9},
                                    "note": {"type": "string", "maxLength": 3},
                                },
                            },
                            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
                        },
                    }
                },
            }
        ],
    },
}
GEARS = "/apis/traces.example.com/v1/namespaces/default/gears"
DEFAULT = "spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties.high.default"


class Answered(NamedTuple):
    status: int
    headers: Any
    body: Json


Send = Callable[..., Answered]


@pytest.fixture(scope="module")
def send(noxu_session: Noxu) -> Send:
    """`send("POST", path, value, trace="1")`."""
    noxu_session.apply(CRD)

    def sent(method: str, path: str, value: Json = None, *, trace: str = "", content: str = "json") -> Answered:
        headers = {"Content-Type": f"application/{content}"} | ({"X-Noxu-Trace": trace} if trace else {})
        body = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(noxu_session.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return Answered(answer.status, answer.headers, json.loads(answer.read() or b"null"))
        except urllib.error.HTTPError as error:
            with error:
                return Answered(error.code, error.headers, json.loads(error.read()))

    return sent


def gear(name: str, **spec: Json) -> Object:
    return {"apiVersion": "traces.example.com/v1", "kind": "Gear", "metadata": {"name": name}, "spec": spec}


def steps(send: Send, answered: Answered) -> dict[str, Object]:
    """The steps of an answer's trace, by their stages."""
    trace = send("GET", f"/_noxu/traces/{answered.headers['X-Noxu-Trace']}").body
    return {step["stage"]: step for step in trace["steps"]}


def notes(step: Object) -> list[tuple[str, ...]]:
    return [(note.get("path", ""), note["message"], note.get("hint", "")) for note in step.get("notes", [])]


def test_what_was_pruned_and_which_field_was_meant(send: Send) -> None:
    found = steps(send, send("POST", GEARS, gear("pruned", low=1, hihg=3, note=None), trace="1"))
    assert notes(found["prune"]) == [
        ("spec.hihg", "unknown field: pruned", "did you mean spec.high?"),
        ("spec.note", "null is dropped: the field is not nullable", ""),
    ]


def test_which_schema_node_a_default_comes_from(send: Send) -> None:
    found = steps(send, send("POST", GEARS, gear("defaulted", low=1), trace="1"))
    assert notes(found["default"]) == [("spec.high", "filled in with its default: 9", DEFAULT)]


def test_which_rule_failed_with_which_values(send: Send) -> None:
    answered = send("POST", GEARS, gear("ruled", low=10), trace="1")
    (note,) = steps(send, answered)["validate"]["notes"]
    assert answered.status == 422
    assert note["rule"] == "self.low <= self.high"
    assert note["values"] == {"self.low": "10", "self.high": "9"}


def test_what_ratcheting_forgave(send: Send, noxu_session: Noxu) -> None:
    crd = json.loads(json.dumps(CRD))
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["note"]["maxLength"] = 30
    noxu_session.apply(crd)
    send("POST", GEARS, gear("ratcheted", low=1, note="too long"))
    noxu_session.apply(CRD)
    answered = send("PATCH", f"{GEARS}/ratcheted", {"spec": {"low": 2}}, trace="1", content="merge-patch+json")
    assert answered.status == 200
    assert notes(steps(send, answered)["validate"]) == [
        ("spec.note", "Too long: may not be more than 3 bytes", "ignored: the value has not changed (ratcheting)")
    ]


def test_what_a_patch_made_of_the_object(send: Send) -> None:
    send("POST", GEARS, gear("patched", low=1))
    found = steps(send, send("PATCH", f"{GEARS}/patched", {"spec": {"low": 2}}, trace="1", content="merge-patch+json"))
    assert found["patch"]["patch"] == [{"op": "replace", "path": "/spec/low", "value": 2}]


def test_what_an_applied_configuration_made_of_the_object(send: Send) -> None:
    path = f"{GEARS}/applied?fieldManager=me"
    found = steps(send, send("PATCH", path, gear("applied", low=1), trace="1", content="apply-patch+yaml"))
    (added,) = [step for step in found["merge"]["patch"] if step["path"] == "/spec"]
    assert added == {"op": "add", "path": "/spec", "value": {"low": 1}}


PERSISTED = [
    ("a dry run", "POST", f"{GEARS}?dryRun=All", gear("dry", low=1), "a dry run: nothing is written"),
    ("no change", "PATCH", f"{GEARS}/same", {"spec": {"low": 1}}, "nothing changed: nothing is written"),
]


@pytest.mark.parametrize(
    ("method", "path", "value", "message"), [r[1:] for r in PERSISTED], ids=[r[0] for r in PERSISTED]
)
def test_whether_it_was_written(send: Send, method: str, path: str, value: Object, message: str) -> None:
    send("POST", GEARS, gear("same", low=1))
    content = "merge-patch+json" if method == "PATCH" else "json"
    found = steps(send, send(method, path, value, trace="1", content=content))
    assert notes(found["persist"]) == [("", message, "")]


def test_at_which_revision_it_was_written(send: Send) -> None:
    answered = send("POST", GEARS, gear("written", low=1), trace="1")
    version = answered.body["metadata"]["resourceVersion"]
    assert notes(steps(send, answered)["persist"]) == [("", f"created at resourceVersion {version}", "")]


def test_the_patches_of_all_stages_together_make_what_is_stored_of_what_was_sent(send: Send) -> None:
    sent = gear("together", low=1, nothing=[{"a": 1}])
    answered = send("POST", GEARS, sent, trace="1")
    trace = send("GET", f"/_noxu/traces/{answered.headers['X-Noxu-Trace']}").body
    value = sent
    for step in trace["steps"]:
        value = jsonpatch.apply_patch(value, step.get("patch", []))
    answered.body["metadata"].pop("resourceVersion")
    assert value == answered.body


def test_the_answer_is_that_of_a_write_that_is_not_traced(send: Send) -> None:
    traced = send("POST", GEARS, gear("bad", low="x"), trace="1")
    plain = send("POST", GEARS, gear("bad", low="x"))
    assert (traced.status, traced.body) == (plain.status, plain.body)
    ignored = {"Audit-Id", "Date"}
    assert {*traced.headers} - ignored - {*plain.headers} == {"X-Noxu-Trace"}
    assert plain.headers["X-Noxu-Trace"] is None


def test_a_trace_has_the_request_and_its_refusal(send: Send) -> None:
    answered = send("POST", GEARS, gear("refused", low=51, high=60), trace="1")
    reply = send("GET", f"/_noxu/traces/{answered.headers['X-Noxu-Trace']}").body
    assert reply["path"] == "readable"
    assert reply["request"] == {"method": "POST", "path": GEARS, "user": "system:anonymous"}
    assert reply["error"] == {"code": 422, "reason": "Invalid", "message": answered.body["message"]}


def test_reads_have_no_trace(send: Send) -> None:
    assert send("GET", GEARS, trace="1").headers["X-Noxu-Trace"] is None


def test_anything_but_1_is_refused(send: Send) -> None:
    answered = send("POST", GEARS, gear("two", low=1), trace="2")
    assert (answered.status, answered.body["message"]) == (
        400,
        "X-Noxu-Trace: '2' is not supported: send 1 to have the write traced",
    )


@pytest.mark.parametrize(("method", "path"), [("GET", "/_noxu/traces/nothing"), ("DELETE", "/_noxu/traces")])
def test_what_there_is_not_is_not_found(noxu_session: Noxu, method: str, path: str) -> None:
    request = urllib.request.Request(noxu_session.url + path, method=method)
    with pytest.raises(urllib.error.HTTPError, match="404") as refusal:
        urllib.request.urlopen(request)
    refusal.value.close()


def test_the_values_of_secrets_are_in_no_trace(send: Send) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "canary"},
        "stringData": {"password": "kanarienvogel"},
    }
    answered = send("POST", "/api/v1/namespaces/default/secrets", secret, trace="1")
    trace = send("GET", f"/_noxu/traces/{answered.headers['X-Noxu-Trace']}").body
    assert answered.status == 201
    assert "kanarienvogel" not in json.dumps(trace)
    assert "a2FuYXJpZW52b2dlbA" not in json.dumps(trace)  # the stored form of the same


def test_the_newest_traces_are_kept() -> None:
    traces = Traces()
    names = [traces.keep({"n": n}, [], None) for n in range(MAX_TRACES + 3)]
    kept = json.loads(traces.answer("GET", "/_noxu/traces").body)["traces"]  # type: ignore[arg-type]
    assert kept == names[:2:-1]


def test_a_trace_that_is_too_big_is_kept_without_its_patches() -> None:
    traces = Traces()
    patch = [{"op": "add", "path": "/x", "value": "x" * 5_000_000}]
    name = traces.keep({}, [Step("decode", 0.0, patch, [Note("x", "pruned")])], None)
    reply = json.loads(traces.answer("GET", f"/_noxu/traces/{name}").body)  # type: ignore[arg-type]
    assert reply["steps"] == [{"stage": "decode", "milliseconds": 0.0, "notes": [{"path": "x", "message": "pruned"}]}]
    assert "too big" in reply["leftOut"]
