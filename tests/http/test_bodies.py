"""What a request brings: other versions, other kinds, no metadata, and what fieldValidation says to it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.conftest import GROUP, Things, thing

WRONG_VERSION = "the API version in the data ({}) does not match the expected API version (http.example.com/v1)"
MERGE, JSON = "merge-patch+json", "json-patch+json"


def body(api_version: Any = f"{GROUP}/v1", kind: str = "Thing", **more: Any) -> dict[str, Any]:
    sent = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "junk": 1}, "junk": 2, **more}
    return {name: value for name, value in sent.items() if value is not None}


OTHERS = [
    ("no version", body(None), ["metadata.junk"], WRONG_VERSION.format("")),
    ("another group", body("v1"), ["metadata.junk"], WRONG_VERSION.format("v1")),
    (
        "another version: it is pruned by that one's schema",
        body(f"{GROUP}/v2", spec={"any": 1}),
        ["metadata.junk", "junk"],
        WRONG_VERSION.format(f"{GROUP}/v2"),
    ),
    (
        "a version that there is not: it is pruned to the bone",
        body(f"{GROUP}/v9", spec={"any": 1}),
        ["metadata.junk", "junk", "spec"],
        WRONG_VERSION.format(f"{GROUP}/v9"),
    ),
]


@pytest.mark.parametrize(("sent", "unknown", "message"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_a_body_of_another_version(things: Things, sent: Any, unknown: list[str], message: str) -> None:
    reply = things.ask("POST", "", sent)
    assert (reply.code, reply.message) == (400, message)
    assert reply.warnings == [f'unknown field "{path}"' for path in unknown]


STRICT = [
    (
        "its own",
        body(),
        'Thing in version "v1" cannot be handled as a Thing: strict decoding error: unknown field "metadata.junk", '
        'unknown field "junk"',
    ),
    (
        "another kind: nothing is known of it",
        body(kind="Other"),
        'Other in version "v1" cannot be handled as a Other: strict decoding error: unknown field "metadata.junk"',
    ),
    ("no version: upstream cannot say what it is", body(None), "Object 'apiVersion' is missing in 'object has no apiVersion field'"),
]  # fmt: skip


@pytest.mark.parametrize(("sent", "message"), [row[1:] for row in STRICT], ids=[row[0] for row in STRICT])
def test_strict_field_validation(things: Things, sent: Any, message: str) -> None:
    reply = things.ask("POST", "?fieldValidation=Strict", sent)
    assert (reply.code, reply.message, reply.warnings) == (400, message, [])


NO_NAME = "the name of the object (a based on URL) was undeterminable: name must be provided"
NULL_METADATA = [
    ("created", "POST", "", body(metadata=None), "json", 422,
     'Thing.http.example.com "" is invalid: metadata.name: Required value: name or generateName is required'),
    ("updated", "PUT", "/a", {**thing("a"), "metadata": None}, "json", 400, NO_NAME),
    ("merged", "PATCH", "/a", {"metadata": None}, MERGE, 400, NO_NAME),
    ("patched", "PATCH", "/a", [{"op": "replace", "path": "/metadata", "value": None}], JSON, 400, NO_NAME),
    ("removed", "PATCH", "/a", [{"op": "remove", "path": "/metadata"}], JSON, 400, NO_NAME),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "rest", "sent", "content", "code", "message"),
    [row[1:] for row in NULL_METADATA],
    ids=[row[0] for row in NULL_METADATA],
)
def test_metadata_that_are_null(
    things: Things, method: str, rest: str, sent: Any, content: str, code: int, message: str
) -> None:
    things.create("a")
    reply = things.ask(method, rest, sent, content)
    assert (reply.code, reply.message) == (code, message)


TYPE_META = (
    r'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
).replace("\\\\", "\\")
NO_OBJECTS = [
    ("a list", "[1]", f"couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type {TYPE_META}"),
    ("an object that does not say what it is", '{"a":1}', """Object 'Kind' is missing in '{"a":1}'"""),
]  # fmt: skip


@pytest.mark.parametrize(("value", "why"), [row[1:] for row in NO_OBJECTS], ids=[row[0] for row in NO_OBJECTS])
def test_a_patch_that_leaves_no_object(things: Things, value: str, why: str) -> None:
    things.create("a")
    reply = things.ask("PATCH", "/a", f'[{{"op":"replace","path":"","value":{value}}}]', JSON)
    assert reply.code == 422
    assert reply.message.endswith(why)


@pytest.mark.parametrize("value", ["1", '"x"', "true", "null"])
def test_a_patch_that_leaves_a_scalar(things: Things, value: str) -> None:
    things.create("a")
    reply = things.ask("PATCH", "/a", f'[{{"op":"replace","path":"","value":{value}}}]', JSON)
    assert (reply.code, reply.message) == (422, "the server rejected our request due to an error in our request")


DELETE_OPTIONS = [
    ("another kind", {"kind": "Foo"}, 'no kind "Foo" is registered for version "meta.k8s.io/v1"'),
    ("another kind, of a version", {"kind": "Foo", "apiVersion": "v1"}, 'no kind "Foo" is registered for version "v1"'),
    ("no JSON", "{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
]


@pytest.mark.parametrize(
    ("sent", "message"), [row[1:] for row in DELETE_OPTIONS], ids=[row[0] for row in DELETE_OPTIONS]
)
def test_delete_options_that_are_none(things: Things, sent: Any, message: str) -> None:
    things.create("a")
    reply = things.ask("DELETE", "/a", sent)
    assert (reply.code, reply.message.startswith(message)) == (400, True)
    assert things.names() == ["a"]


@pytest.mark.parametrize("api_version", ["v1", "meta.k8s.io/v1", "x/v9", f"{GROUP}/v1", None])
def test_delete_options_are_known_in_every_group(things: Things, api_version: str | None) -> None:
    things.create("a")
    sent = {"kind": "DeleteOptions"} | ({"apiVersion": api_version} if api_version else {})
    assert things.ask("DELETE", "/a", sent).code == 200


def test_an_object_that_can_be_read_is_deleted_like_any_other(things: Things) -> None:
    things.create("a", metadata={"finalizers": ["example.com/wait"]})
    reply = things.ask("DELETE", "/a?ignoreStoreReadErrorWithClusterBreakingPotential=true")
    assert (reply.code, reply.body["kind"]) == (200, "Thing")
    assert things.names() == ["a"]
