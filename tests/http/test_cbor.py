"""CBOR in requests and answers, with the feature gate CBORServingAndStorage and without it."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from conformance.client import Client
from noxu.api import codec
from noxu.go import cbor, cbor_writer
from noxu.testing.handle import Noxu
from tests.http.conftest import DEFINITION, GROUP, THINGS, thing
from tests.timing import HANGS_AFTER

CBOR: Final = "application/cbor"
APPLY: Final = "application/apply-patch+cbor"
METADATA: Final = f"{CBOR};as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST: Final = f"{CBOR};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
TABLE: Final = "as=Table;v=v1;g=meta.k8s.io"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
WITHOUT: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
WITH: Final = f"{WITHOUT}, {CBOR}"


class Reply(NamedTuple):
    code: int
    type: str
    body: Any
    warnings: list[str]


class Server(NamedTuple):
    """A server, and a client that sends and accepts CBOR."""

    noxu: Noxu
    client: Client

    def ask(
        self, method: str, path: str, body: Any = None, content: str = CBOR, accept: str = CBOR, **headers: str
    ) -> Reply:
        """`body` is sent as CBOR, or unchanged if it is bytes; a `path` without /api or /openapi is below the things."""
        path = path if path.startswith(("/api", "/openapi")) else THINGS + path
        data = body if body is None or isinstance(body, bytes) else cbor_writer.write(body)
        sent = {"Accept": accept, **({"Content-Type": content} if data is not None else {}), **headers}
        code, received, answer = self.client.exchange(method, path, data, sent)
        headers = dict(received)
        kind = headers["Content-Type"]
        is_cbor = kind.partition(";")[0] == CBOR
        assert answer.startswith(cbor.SELF_DESCRIBED) == is_cbor
        read = cbor.read(answer) if is_cbor else answer.decode()
        return Reply(code, kind, read, [value for name, value in received if name == "Warning"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory, gates = tmp_path_factory.mktemp("cbor"), {"CBORServingAndStorage": True}
    with Noxu(directory, [DEFINITION], gates=gates) as noxu, Client(noxu.url) as client:
        yield Server(noxu, client)


@pytest.fixture
def things(server: Server) -> Iterator[Server]:
    yield server
    server.ask("DELETE", "")


@pytest.fixture
def disabled(noxu_session: Noxu) -> Iterator[Server]:
    noxu_session.apply(DEFINITION)
    with Client(noxu_session.url) as client:
        yield Server(noxu_session, client)


# -- the verbs ----------------------------------------------------------------------------------------------------------


def test_every_verb_of_custom_resources(things: Server) -> None:
    created = things.ask("POST", "", thing("a", replicas=1, color="blue"))
    assert (created.code, created.type) == (201, CBOR)
    assert created.body["spec"] == {"replicas": 1, "color": "blue"}
    assert things.ask("GET", "/a").body == created.body
    created.body["spec"]["replicas"] = 2
    replaced = things.ask("PUT", "/a", created.body)
    assert (replaced.code, replaced.body["spec"]["replicas"]) == (200, 2)
    patched = things.ask("PATCH", "/a", b'{"spec":{"replicas":3}}', "application/merge-patch+json")
    assert (patched.code, patched.type, patched.body["spec"]["replicas"]) == (200, CBOR, 3)
    listed = things.ask("GET", "")
    assert (listed.type, listed.body["kind"]) == (CBOR, "ThingList")
    assert listed.body["items"] == [patched.body]
    deleted = things.ask(
        "DELETE", "/a", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
    )
    assert (deleted.code, deleted.type, deleted.body["status"]) == (200, CBOR, "Success")
    things.ask("POST", "", thing("b"))
    collection = things.ask("DELETE", "", {"kind": "DeleteOptions", "apiVersion": "v1"})
    assert [item["metadata"]["name"] for item in collection.body["items"]] == ["b"]
    assert things.ask("GET", "").body["items"] == []


def test_json_and_cbor_show_the_same_object(things: Server) -> None:
    things.ask("POST", "", thing("a", color="grün", ports=[{"name": "http"}]))
    in_json = things.ask("GET", "/a", accept="application/json")
    assert json.loads(in_json.body) == things.ask("GET", "/a").body


def test_the_status(things: Server) -> None:
    created = things.ask("POST", "", thing("a")).body
    updated = things.ask("PUT", "/a/status", {**created, "status": {"ready": True}})
    assert (updated.code, updated.type, updated.body["status"]) == (200, CBOR, {"ready": True})
    assert things.ask("GET", "/a/status").body == updated.body


def test_the_scale(things: Server) -> None:
    things.ask("POST", "", thing("a", replicas=1))
    shown = things.ask("GET", "/a/scale")
    assert (shown.type, shown.body["kind"], shown.body["spec"]) == (CBOR, "Scale", {"replicas": 1})
    updated = things.ask("PUT", "/a/scale", {**shown.body, "spec": {"replicas": 5}})
    assert (updated.code, updated.body["spec"]) == (200, {"replicas": 5})
    applied = things.ask("PATCH", "/a/scale?fieldManager=me&force=true", {**_SCALE, "spec": {"replicas": 6}}, APPLY)
    assert (applied.code, applied.body["spec"]) == (200, {"replicas": 6})
    malformed = things.ask("PUT", "/a/scale", b"\xa1")
    assert malformed.body["message"].startswith("no kind is registered for the type v1.Scale")
    unknown = things.ask("PUT", "/a/scale", {**_SCALE, "spec": {"replicas": 7, "x": 1}})
    assert unknown.warnings == ['299 - "cbor: found unknown field at map element index 0"']


_SCALE: Final = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"}}


def test_server_side_apply(things: Server) -> None:
    applied = things.ask("PATCH", "/a?fieldManager=me", thing("a", color="red"), APPLY)
    assert (applied.code, applied.type) == (201, CBOR)
    assert applied.body["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:color": {}}}
    conflict = things.ask("PATCH", "/a?fieldManager=you", thing("a", color="blue"), APPLY)
    assert (conflict.code, conflict.type, conflict.body["reason"]) == (409, CBOR, "Conflict")
    undeclared = things.ask("PATCH", "/a?fieldManager=me", {**thing("a"), "x": 1}, APPLY)
    assert undeclared.body["message"].endswith(".x: field not declared in schema")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "EOF"),
        (b"\x80", "cbor: cannot unmarshal array into Go value of type map[string]interface {}"),
        (b"\xa2\x41a\x01\x41a\x02", 'cbor: found duplicate map key "a" at map element index 1'),
    ],
)
def test_a_configuration_that_cannot_be_applied(things: Server, body: bytes, why: str) -> None:
    refused = things.ask("PATCH", "/a?fieldManager=me", body, APPLY)
    assert (refused.code, refused.body["message"]) == (400, f"error decoding patch: {why}")


def test_built_in_kinds(server: Server) -> None:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    created = server.ask("POST", CONFIG_MAPS, value)
    assert (created.code, created.type, created.body["data"]) == (201, CBOR, {"k": "v"})
    assert server.ask("PUT", f"{CONFIG_MAPS}/a", {**created.body, "data": {"k": "w"}}).body["data"] == {"k": "w"}
    applied = server.ask("PATCH", f"{CONFIG_MAPS}/a?fieldManager=me", {**value, "data": {"l": "x"}}, APPLY)
    assert applied.body["data"] == {"k": "w", "l": "x"}
    items = server.ask("GET", CONFIG_MAPS).body["items"]
    assert [item["data"] for item in items if item["metadata"]["name"] == "a"] == [applied.body["data"]]
    assert server.ask("DELETE", f"{CONFIG_MAPS}/a").type == CBOR
    crd = server.ask("GET", f"{CRDS}/things.{GROUP}")
    assert (crd.type, crd.body["spec"]["group"]) == (CBOR, GROUP)


def test_bytes_in_base64_and_bare(server: Server) -> None:
    """A byte string without a tag is base64 text, under the tag 22 it is the bytes themselves."""
    head = cbor_writer.write({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    body = b"%b\xa4%b\x44data\xa2\x41a\x44YWJj\x41b\xd6\x43abc" % (head[:3], head[4:])
    created = server.ask("POST", "/api/v1/namespaces/default/secrets", body)
    assert (created.code, created.body["data"]) == (201, {"a": "YWJj", "b": "YWJj"})
    server.ask("DELETE", "/api/v1/namespaces/default/secrets/a")


# -- representations ----------------------------------------------------------------------------------------------------


def test_metadata(things: Server) -> None:
    things.ask("POST", "", thing("a"))
    one = things.ask("GET", "/a", accept=METADATA)
    assert (one.type, one.body["kind"], "spec" in one.body) == (CBOR, "PartialObjectMetadata", False)
    many = things.ask("GET", "", accept=METADATA_LIST)
    assert (many.type, many.body["kind"]) == (CBOR, "PartialObjectMetadataList")
    assert [item["metadata"]["name"] for item in many.body["items"]] == ["a"]


def test_tables_do_not_exist_in_cbor(things: Server) -> None:
    refused = things.ask("GET", "", accept=f"{CBOR};{TABLE}")
    assert (refused.code, refused.type) == (406, "application/json")
    accept = f"{CBOR};{TABLE},application/json;{TABLE}"
    assert things.ask("GET", "", accept=accept).type == "application/json"


def test_long_lists_are_sent_in_chunks(things: Server) -> None:
    for number in range(200):
        things.ask("POST", "", thing(f"a{number:03d}"))
    listed = things.ask("GET", "")
    assert [item["metadata"]["name"] for item in listed.body["items"]] == [f"a{n:03d}" for n in range(200)]
    assert listed.body["metadata"]["resourceVersion"]
    page = things.ask("GET", "?limit=150").body
    assert (len(page["items"]), page["metadata"]["remainingItemCount"]) == (150, 50)
    metadata = things.ask("GET", "", accept=METADATA_LIST).body
    assert [item["metadata"]["name"] for item in metadata["items"]] == [f"a{n:03d}" for n in range(200)]


REFUSED_ACCEPTS: Final = [
    ("a sequence, also for a watch", "?watch=true&timeoutSeconds=1", "application/cbor-seq", WITH),
    ("an unknown type", "", "text/html", WITH),
    (
        "YAML for a watch",
        "?watch=true&timeoutSeconds=1",
        "application/yaml",
        "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq",
    ),
]


@pytest.mark.parametrize(
    ("query", "accept", "accepted"), [row[1:] for row in REFUSED_ACCEPTS], ids=[row[0] for row in REFUSED_ACCEPTS]
)
def test_representations_that_do_not_exist(things: Server, query: str, accept: str, accepted: str) -> None:
    refused = things.ask("GET", query, accept=accept)
    message = codec.decode_yaml(refused.body.encode()).value["message"]
    assert (refused.code, message) == (406, f"only the following media types are accepted: {accepted}")


DOCUMENTS: Final = [
    ("the resources of a built-in version", "/apis/apiextensions.k8s.io/v1", "APIResourceList"),
    ("the resources of the core version", "/api/v1", "APIResourceList"),
    (
        "all groups at once",
        f"/apis {CBOR};as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
        "APIGroupDiscoveryList",
    ),
    ("the groups", "/apis", "406"),
    ("a built-in group", "/apis/apiextensions.k8s.io", "406"),
    ("a custom group", f"/apis/{GROUP}", "406"),
    ("the resources of a custom version", f"/apis/{GROUP}/v1", "406"),
]


@pytest.mark.parametrize(("request_line", "kind"), [row[1:] for row in DOCUMENTS], ids=[row[0] for row in DOCUMENTS])
def test_discovery(server: Server, request_line: str, kind: str) -> None:
    path, _, accept = request_line.partition(" ")
    found = server.ask("GET", path, accept=accept or CBOR)
    if kind == "406":
        assert (found.code, found.type) == (406, "application/json")
    else:
        assert (found.code, found.type.partition(";")[0]) == (200, CBOR)
        assert found.body["kind"] == kind


def test_openapi_names_cbor_for_built_in_kinds_only(server: Server) -> None:
    """As upstream, which does not publish that custom resources have it, too."""
    paths = json.loads(server.ask("GET", "/openapi/v2", accept="application/json").body)["paths"]
    config_maps, own = (
        [paths[f"{path}{suffix}"][method] for suffix, method in (("", "get"), ("/{name}", "patch"))]
        for path in ("/api/v1/namespaces/{namespace}/configmaps", f"/apis/{GROUP}/v1/namespaces/{{namespace}}/things")
    )
    streams = [
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf;stream=watch",
        "application/cbor-seq",
    ]
    assert config_maps[0]["produces"] == [*WITH.split(", "), *streams]
    assert config_maps[1]["consumes"][-1] == APPLY
    assert "cbor" not in json.dumps(own)


def test_errors(things: Server) -> None:
    missing = things.ask("GET", "/a")
    assert (missing.code, missing.type, missing.body["kind"], missing.body["reason"]) == (
        404,
        CBOR,
        "Status",
        "NotFound",
    )
    assert missing.body["code"] == 404
    no_subresource = things.ask("GET", "/a/log")
    assert (no_subresource.code, no_subresource.type) == (404, "application/json")


# -- watches ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def watching(server: Server, path: str, accept: str = CBOR) -> Iterator[http.client.HTTPResponse]:
    with contextlib.closing(server.client.connect(HANGS_AFTER)) as connection:
        connection.request("GET", path, headers={"Accept": accept})
        with contextlib.closing(connection.getresponse()) as answer:
            assert answer.headers["Content-Type"] == "application/cbor-seq"
            yield answer


def event(answer: http.client.HTTPResponse) -> tuple[str, Any]:
    """The next item of the sequence."""
    read = b""
    while True:
        read += answer.read(1)
        try:
            found = cbor.read(read)
        except cbor.CborError:
            continue
        return found["type"], found["object"]


QUERY: Final = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"


def test_watches(things: Server) -> None:
    created = things.ask("POST", "", thing("a")).body
    with (
        watching(things, f"{THINGS}?{QUERY}") as all_of_it,
        watching(things, f"{THINGS}?watch=true", METADATA) as metadata,
    ):
        assert event(all_of_it) == ("ADDED", created)
        assert event(all_of_it)[0] == "BOOKMARK"
        assert event(metadata)[1]["kind"] == "PartialObjectMetadata"
        deleted = things.ask("DELETE", "/a")
        assert deleted.code == 200
        assert event(all_of_it)[0] == "DELETED"
        kind, value = event(metadata)
        assert (kind, value["metadata"]["name"], "spec" in value) == ("DELETED", "a", False)


def test_the_error_of_a_watch(things: Server) -> None:
    things.ask("POST", "", thing("a"))
    with watching(things, f"{THINGS}?watch=true&resourceVersion=1") as answer:
        kind, value = event(answer)
        assert (kind, value["kind"], value["reason"]) == ("ERROR", "Status", "Expired")


# -- bodies that are refused ----------------------------------------------------------------------------------------------


def replica_overflow() -> bytes:
    return cbor_writer.write(thing("a", replicas=0)).replace(b"\x48replicas\x00", b"\x48replicas\x1b" + b"\xff" * 8)


TOO_LARGE: Final = (
    "cbor: cannot unmarshal positive integer into Go value of type int64 (18446744073709551615 overflows Go's int64)"
)
BODIES: Final = [
    ("an integer beyond int64", replica_overflow(), f'Thing in version "v1" cannot be handled as a Thing: {TOO_LARGE}'),
    (
        "nothing",
        b"",
        "the object provided is unrecognized (must be of type Thing): unable to determine group/version/kind: EOF (<empty>)",
    ),
    (
        "half a map",
        b"\xa1",
        "the object provided is unrecognized (must be of type Thing): unable to determine group/version/kind: unexpected EOF (a1)",
    ),
    (
        "JSON",
        b'{"kind":"Thing"}',
        "the object provided is unrecognized (must be of type Thing): unable to determine group/version/kind: "
        'unexpected EOF ({"kind":"Thing"})',
    ),
    (
        "no kind",
        b"\xd9\xd9\xf7\xa1\x41a\x64\xc3\xbc\xc3\xbc",
        "the object provided is unrecognized (must be of type Thing): Object 'Kind' is missing in "
        "'55799({'a': \"\\u00fc\\u00fc\"})' (d9d9f7a1416164c3bcc3bc)",
    ),
    (
        "no apiVersion",
        b"\xa1\x44kind\x45Thing",
        'Thing in version "" cannot be handled as a Thing: Object \'apiVersion\' is missing in \'{\'kind\': \'Thing\'}\'',
    ),
    (
        "a repeated key",
        b"\xa2\x44kind\x45Thing\x44kind\x45Thing",
        "the object provided is unrecognized (must be of type Thing): unable to determine group/version/kind: "
        'cbor: found duplicate map key "kind" at map element index 1 (a2446b696e64455468696e67446b696e64455468696e67)',
    ),
    (
        "another version",
        cbor_writer.write({**thing("a"), "apiVersion": "x/v1"}),
        f"the API version in the data (x/v1) does not match the expected API version ({GROUP}/v1)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "why"), [row[1:] for row in BODIES], ids=[row[0] for row in BODIES])
def test_bodies_that_are_refused(things: Server, body: bytes, why: str) -> None:
    refused = things.ask("POST", "", body)
    assert (refused.code, refused.type, refused.body["message"]) == (400, CBOR, why)


TYPED_BODIES: Final = [
    (
        "a kind of the wrong type",
        {"kind": 5},
        "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: cbor: "
        "cannot unmarshal positive integer into Go struct field v1.TypeMeta.kind of type string (d9d9f7a1446b696e6405)",
    ),
    (
        "an array",
        [],
        "the object provided is unrecognized (must be of type ConfigMap): unable to determine group/version/kind: cbor: "
        "cannot unmarshal array into Go value of type v1.TypeMeta (cannot decode CBOR array to struct without toarray option) "
        "(d9d9f780)",
    ),
]


@pytest.mark.parametrize(("body", "why"), [row[1:] for row in TYPED_BODIES], ids=[row[0] for row in TYPED_BODIES])
def test_bodies_of_built_in_kinds_that_are_refused(server: Server, body: Any, why: str) -> None:
    refused = server.ask("POST", CONFIG_MAPS, body)
    assert (refused.code, refused.body["message"]) == (400, why)


def test_field_validation_knows_nothing_of_custom_resources(things: Server) -> None:
    """Upstream drops unknown fields of CBOR bodies silently, also with fieldValidation=Strict."""
    created = things.ask("POST", "?fieldValidation=Strict", {**thing("a", x=1), "y": 2})
    assert (created.code, created.warnings) == (201, [])
    assert created.body["spec"] == {"color": "red"}


def test_field_validation_of_built_in_kinds_names_the_position(server: Server) -> None:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "x": 1}}
    refused = server.ask("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", value)
    complaint = "cbor: found unknown field at map element index 0"
    why = f'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: {complaint}'
    assert (refused.code, refused.body["message"]) == (400, why)
    assert server.ask("POST", f"{CONFIG_MAPS}?dryRun=All", value).warnings == [f'299 - "{complaint}"']
    assert server.ask("POST", f"{CONFIG_MAPS}?dryRun=All&fieldValidation=Ignore", value).warnings == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 2**63 - 1}, ""),
        (b"\x9f", "unable to determine group/version/kind: unexpected EOF"),
        (b"\xa2\x01\x02\x72gracePeriodSeconds\xf7", ""),
        (b"\xa2\x61x\xf7\x6dpreconditions\xa1\x61x\xf7", ""),
        (
            b"\x80",
            "unable to determine group/version/kind: cbor: cannot unmarshal array into Go value of type v1.TypeMeta "
            "(cannot decode CBOR array to struct without toarray option)",
        ),
        (
            {"propagationPolicy": "x\0"},
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x\\u0000": '
            'supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
        (
            {"kind": "Other"},
            'no kind "Other" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
    ],
)
def test_delete_options(things: Server, body: Any, why: str) -> None:
    things.ask("POST", "", thing("a"))
    deleted = things.ask("DELETE", "/a?dryRun=All", body)
    assert deleted.body.get("message", "") == why


def test_types_of_bodies_that_do_not_exist(things: Server) -> None:
    refused = things.ask("POST", "", b"x", "text/plain")
    why = f"the body of the request was in an unknown format - accepted media types include: {WITH}"
    assert (refused.code, refused.body["message"]) == (415, why)
    patches = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml, application/apply-patch+cbor"
    refused = things.ask("PATCH", "/a", b"x", "text/plain")
    assert refused.body["message"].endswith(f"accepted media types include: {patches}")


# -- without the feature gate -------------------------------------------------------------------------------------------------


REFUSED_BODIES: Final = [
    ("a POST", "POST", "", CBOR, WITHOUT),
    ("a PUT", "PUT", "/a", CBOR, WITHOUT),
    ("a PUT of the status", "PUT", "/a/status", CBOR, WITHOUT),
    ("a PUT of the scale", "PUT", "/a/scale", CBOR, WITHOUT),
    ("a DELETE", "DELETE", "/a", CBOR, WITHOUT),
    ("a POST of a built-in kind", "POST", CONFIG_MAPS, CBOR, WITHOUT),
    (
        "an apply",
        "PATCH",
        "/a?fieldManager=me",
        APPLY,
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    ),
]


@pytest.mark.parametrize(
    ("method", "path", "content", "accepted"),
    [row[1:] for row in REFUSED_BODIES],
    ids=[row[0] for row in REFUSED_BODIES],
)
def test_bodies_without_the_gate(disabled: Server, method: str, path: str, content: str, accepted: str) -> None:
    refused = disabled.ask(method, path, thing("a"), content, accept="application/json")
    assert refused.code == 415
    assert f'accepted media types include: {accepted}"' in refused.body


@pytest.mark.parametrize(
    "path", ["", "/a", "/a/status", "/a/scale", "?watch=true&timeoutSeconds=1", CONFIG_MAPS, "/apis", "/api/v1"]
)
def test_representations_without_the_gate(disabled: Server, path: str) -> None:
    refused = disabled.ask("GET", path)
    assert (refused.code, refused.type) == (406, "application/json")
    assert CBOR not in refused.body
