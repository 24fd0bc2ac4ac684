"""/scale: replicas as an autoscaling/v1 Scale. Upstream cannot say what is wrong with a body that is none."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.client import Client
from noxu.registry import reader
from noxu.testing.handle import Noxu
from tests.http.conftest import Things, widgets

UNREADABLE = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
NO_NAME = "the name of the object (a based on URL) was undeterminable: name must be provided"


def scale(replicas: Any = 2, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"replicas": replicas},
        **more,
    }


@pytest.fixture(autouse=True)
def a(things: Things) -> Any:
    return things.create("a", replicas=1)


def replicas(things: Things) -> int:
    found: int = things.ask("GET", "/a").body["spec"]["replicas"]
    return found


def test_it_shows_replicas_and_selector(things: Things) -> None:
    things.ask("PATCH", "/a/status", {"status": {"replicas": 3, "selector": "app=a"}}, "merge-patch+json")
    shown = things.ask("GET", "/a/scale").body
    assert (shown["kind"], shown["spec"], shown["status"]) == (
        "Scale",
        {"replicas": 1},
        {"replicas": 3, "selector": "app=a"},
    )


REVISIONS = [("abc", 500), ("-1", 500), ("99999", 504), ("0", 200), ("1", 200), ("", 200)]


@pytest.mark.parametrize(("revision", "code"), REVISIONS)
@pytest.mark.parametrize("path", ["/a", "/a/status", "/a/scale"])
def test_a_resource_version_is_the_oldest_state_that_may_be_shown(
    things: Things, monkeypatch: pytest.MonkeyPatch, path: str, revision: str, code: int
) -> None:
    monkeypatch.setattr(reader, "BLOCK_TIMEOUT", 0.05)
    assert things.ask("GET", f"{path}?resourceVersion={revision}").code == code


@pytest.mark.parametrize(
    ("method", "body", "content"),
    [
        ("PUT", scale(7), "json"),
        ("PUT", {"metadata": {"name": "a"}, "spec": {"replicas": 7}}, "json"),
        ("PUT", scale(7, kind="", apiVersion=""), "json"),
        ("PUT", scale(7, kind=""), "json"),
        ("PUT", scale(7, apiVersion=None), "json"),
        ("PATCH", {"spec": {"replicas": 7}}, "merge-patch+json"),
        ("PATCH", [{"op": "replace", "path": "/spec/replicas", "value": 7}], "json-patch+json"),
        ("PATCH", scale(7), "apply-patch+yaml"),
    ],
)
def test_it_sets_replicas(things: Things, method: str, body: Any, content: str) -> None:
    query = "?fieldManager=m&force=true" if content == "apply-patch+yaml" else ""
    reply = things.ask(method, f"/a/scale{query}", body, content)
    assert (reply.code, reply.body["kind"], reply.body["spec"]) == (200, "Scale", {"replicas": 7})
    assert replicas(things) == 7


UNREADABLE_BODIES = [
    ("no JSON", "{"),
    ("nothing", ""),
    ("a list", []),
    ("another kind", scale(kind="Foo")),
    ("another version", scale(apiVersion="autoscaling/v2")),
    ("a text for a number", scale("x")),
]


@pytest.mark.parametrize("body", [row[1] for row in UNREADABLE_BODIES], ids=[row[0] for row in UNREADABLE_BODIES])
def test_a_body_that_is_no_scale(things: Things, body: Any) -> None:
    reply = things.ask("PUT", "/a/scale", body)
    assert (reply.code, reply.message) == (400, UNREADABLE)


COMPLAINTS = [
    ("an unknown field", {"junk": 1}, ['unknown field "junk"']),
    ("a repeated field", '{"spec":{"replicas":3,"replicas":4}}', ['duplicate field "spec.replicas"']),
]


@pytest.mark.parametrize(("patch", "warnings"), [row[1:] for row in COMPLAINTS], ids=[row[0] for row in COMPLAINTS])
def test_fields_that_field_validation_cares_about(things: Things, patch: Any, warnings: list[str]) -> None:
    content = "merge-patch+json"
    warned = things.ask("PATCH", "/a/scale", patch, content)
    assert (warned.code, warned.warnings) == (200, warnings)
    ignored = things.ask("PATCH", "/a/scale?fieldValidation=Ignore", patch, content)
    assert (ignored.code, ignored.warnings) == (200, [])
    refused = things.ask("PATCH", "/a/scale?fieldValidation=Strict", patch, content)
    assert (refused.code, refused.message.endswith(f"strict decoding error: {warnings[0]}")) == (422, True)


def test_an_unknown_field_in_an_update(things: Things) -> None:
    assert things.ask("PUT", "/a/scale", scale(junk=1)).warnings == ['unknown field "junk"']
    refused = things.ask("PUT", "/a/scale?fieldValidation=Strict", scale(junk=1))
    assert (refused.code, refused.message) == (400, UNREADABLE)


ADDRESSES = [
    ("no metadata", scale(metadata=None), NO_NAME),
    ("no name", scale(metadata={}), NO_NAME),
    (
        "another name",
        scale(metadata={"name": "b"}),
        "the name of the object (b) does not match the name on the URL (a)",
    ),
    (
        "another namespace",
        scale(metadata={"name": "a", "namespace": "other"}),
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
]


@pytest.mark.parametrize("name", ["a", "missing"])
@pytest.mark.parametrize(("body", "message"), [row[1:] for row in ADDRESSES], ids=[row[0] for row in ADDRESSES])
def test_a_scale_of_another_object_is_refused_before_the_object_is_looked_up(
    things: Things, body: Any, message: str, name: str
) -> None:
    answer = things.ask("PUT", f"/{name}/scale", body)
    expected = message.replace("(a based", f"({name} based").replace("URL (a)", f"URL ({name})")
    assert (answer.code, answer.message) == (400, expected)


def test_a_patch_may_not_take_the_name(things: Things) -> None:
    reply = things.ask("PATCH", "/a/scale", {"metadata": {"name": None}}, "merge-patch+json")
    assert (reply.code, reply.message) == (400, NO_NAME)


def test_a_patch_may_not_make_another_kind_of_it(things: Things) -> None:
    reply = things.ask("PATCH", "/a/scale", {"kind": "Foo"}, "merge-patch+json")
    why = 'no kind "Foo" is registered for version "autoscaling/v1" in scheme "pkg/runtime/scheme.go:111"'
    assert (reply.code, reply.message.endswith(why)) == (422, True)


def test_what_the_schema_and_the_scale_refuse(things: Things) -> None:
    reply = things.ask("PUT", "/a/scale", scale(-1))
    assert reply.code == 422
    assert [cause["field"] for cause in reply.body["details"]["causes"]] == ["spec.replicas", ".spec.replicas"]


def test_optimistic_locking(things: Things) -> None:
    reply = things.ask("PUT", "/a/scale", scale(metadata={"name": "a", "resourceVersion": "1"}))
    assert (reply.code, reply.body["reason"]) == (409, "Conflict")
    assert things.ask("PUT", "/a/scale", scale(metadata={"name": "a", "uid": "x"})).code == 409


def test_a_dry_run(things: Things) -> None:
    assert things.ask("PUT", "/a/scale?dryRun=All", scale(9)).body["spec"] == {"replicas": 9}
    assert replicas(things) == 1


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_verbs_that_there_are_not(things: Things, method: str) -> None:
    assert things.ask(method, "/a/scale").code == 405


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH"])
def test_an_object_that_is_not_there(things: Things, method: str) -> None:
    body = {"metadata": {"name": "b"}} if method != "GET" else None
    reply = things.ask(method, "/b/scale", body, "merge-patch+json" if method == "PATCH" else "json")
    assert (reply.code, reply.message) == (404, 'things.http.example.com "b" not found')


def test_an_object_without_replicas_has_no_scale(things: Things) -> None:
    things.create("b")
    reply = things.ask("GET", "/b/scale")
    assert (reply.code, reply.message) == (
        500,
        'Internal error occurred: the spec replicas field ".spec.replicas" does not exist',
    )


def test_it_is_not_there_at_a_version_without_it(things: Things) -> None:
    assert things.ask("GET", "/apis/http.example.com/v2/namespaces/default/things/a/scale").code == 404


# -- replicas that are withdrawn --------------------------------------------------------------------------------------

WITHDRAWN: list[tuple[str, dict[str, Any]]] = [
    ("spec is null", {"spec": None}),
    ("no spec", {}),
    ("an empty spec", {"spec": {}}),
    ("replicas are null", {"spec": {"replicas": None}}),
    ("status is null, too", {"status": None}),
]


@pytest.mark.parametrize("body", [row[1] for row in WITHDRAWN], ids=[row[0] for row in WITHDRAWN])
@pytest.mark.parametrize("query", ["?fieldManager=m", "?fieldManager=m&force=true"])
def test_an_apply_that_withdraws_the_replicas_sets_them_to_zero(things: Things, body: Any, query: str) -> None:
    """As a typed Scale without replicas; so does a merge patch with null."""
    apply = "apply-patch+yaml"
    assert things.ask("PATCH", "/a/scale?fieldManager=m&force=true", scale(7), apply).code == 200
    sent = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, **body}
    answer = things.ask("PATCH", f"/a/scale{query}", sent, apply)
    assert (answer.code, answer.body["spec"]) == (200, {})
    assert replicas(things) == 0


@pytest.mark.parametrize("body", [row[1] for row in WITHDRAWN[:3]], ids=[row[0] for row in WITHDRAWN[:3]])
def test_an_apply_without_replicas_does_not_create_them(things: Things, body: Any) -> None:
    things.create("b")
    sent = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "b"}, **body}
    answer = things.ask("PATCH", "/b/scale?fieldManager=m&force=true", sent, "apply-patch+yaml")
    assert (answer.code, answer.message) == (400, 'the spec replicas field ".spec.replicas" cannot be empty')


# -- defaults ---------------------------------------------------------------------------------------------------------

_SIZED = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "color": {"type": "string", "default": "red"},
        "deep": {"type": "object", "default": {}, "properties": {"x": {"type": "integer", "default": 5}}},
    },
}
_PATHS = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
_STATUS = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
DEFAULTED = widgets(
    "defaulted.example.com", {"spec": _SIZED, "status": _STATUS}, subresources={"scale": _PATHS, "status": {}}
)
WRITES: list[tuple[str, Any, str]] = [
    ("PUT", {"metadata": {"name": "w"}, "spec": {"replicas": 3}}, "application/json"),
    ("PATCH", {"spec": {"replicas": 3}}, "application/merge-patch+json"),
    ("PATCH", [{"op": "add", "path": "/spec/replicas", "value": 3}], "application/json-patch+json"),
    ("PATCH", scale(3, metadata={"name": "w"}), "application/apply-patch+yaml"),
]


@pytest.mark.parametrize(("method", "body", "content"), WRITES)
def test_a_map_that_a_write_to_scale_creates_is_read_with_its_defaults(
    noxu: Noxu, method: str, body: Any, content: str
) -> None:
    """They are stored by the next write, though nothing else changes."""
    noxu.apply(DEFAULTED)
    collection = "/apis/defaulted.example.com/v1/widgets"
    query = "?fieldManager=m&force=true" if "apply" in content else ""
    with Client(noxu.url) as client:
        client.send(
            "POST", collection, {"apiVersion": "defaulted.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
        )
        assert client.send(method, f"{collection}/w/scale{query}", body, content).code == 200
        first = client.send("GET", f"{collection}/w").body
        assert first["spec"] == {"color": "red", "deep": {"x": 5}, "replicas": 3}
        assert client.send("GET", collection).body["items"][0]["spec"] == first["spec"]
        again = client.send("PATCH", f"{collection}/w", {}, "application/merge-patch+json").body
        assert again["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"], "now they are stored"
        assert again["metadata"]["generation"] == first["metadata"]["generation"]
        unchanged = client.send("PATCH", f"{collection}/w", {}, "application/merge-patch+json").body
        assert unchanged == again
