"""Custom resources at other versions than the stored one, converted by a function in the server's process."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from conformance.client import DEFINITIONS, Client
from noxu.registry.conversion import converters
from noxu.testing.handle import Noxu
from tests.timing import eventually

GROUP = "turned.example.com"
NAME = f"widgets.{GROUP}"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
STRING = {"type": "string"}
SCHEMAS: dict[str, dict[str, Any]] = {
    "v1": {"address": STRING, "size": {"type": "integer", "maximum": 100}, "first": {**STRING, "default": "1"}},
    "v2": {
        "host": STRING,
        "port": STRING,
        "size": {"type": "integer", "maximum": 100},
        "second": {**STRING, "default": "2"},
    },
    "v3": {"url": STRING, "size": {"type": "integer"}},
}
SELECTABLE = {"v1": ".spec.address", "v2": ".spec.host", "v3": ".spec.url"}


def definition(storage: str = "v1") -> dict[str, Any]:
    """v1 has an address, which is host and port in v2 and a URL in v3."""
    versions = []
    for name, fields in SCHEMAS.items():
        schema = {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": fields},
                "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
            },
        }
        versions.append(
            {
                "name": name,
                "served": True,
                "storage": name == storage,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"},
                },
                "selectableFields": [{"jsonPath": SELECTABLE[name]}],
                "additionalPrinterColumns": [{"name": "Where", "type": "string", "jsonPath": SELECTABLE[name]}],
            }
        )
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
        },
    }


def translate(value: dict[str, Any], version: str) -> dict[str, Any]:
    """The object at another version."""
    spec = value.get("spec", {})
    address = spec.pop("address", None) or spec.pop("url", "").removeprefix("http://")
    if "host" in spec or "port" in spec:
        address = f"{spec.pop('host', '')}:{spec.pop('port', '')}"
    for name in ("first", "second"):
        spec.pop(name, None)
    if address and version == "v1":
        spec["address"] = address
    elif address and version == "v2":
        spec["host"], _, spec["port"] = address.partition(":")
    elif address:
        spec["url"] = f"http://{address}"
    return value


class Converter:
    """Records its requests, and responds with the result of `change` for each object."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.change: Callable[[dict[str, Any], str], dict[str, Any]] = translate
        self.failure = ""
        self.fails_for: tuple[str, ...] = ()
        self.counts_to: int | None = None

    async def __call__(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        assert name == NAME
        self.requests.append(json.loads(json.dumps(request)))
        names = [one["metadata"]["name"] for one in request["objects"]]
        if bad := next((one for one in names if one in self.fails_for), self.failure):
            return {"uid": request["uid"], "result": {"status": "Failure", "message": f"cannot convert {bad}"}}
        wanted = request["desiredAPIVersion"]
        objects = [{**self.change(one, wanted.rpartition("/")[2]), "apiVersion": wanted} for one in request["objects"]]
        return {"uid": request["uid"], "convertedObjects": objects[: self.counts_to], "result": {"status": "Success"}}

    def take(self) -> list[tuple[str, str, list[str]]]:
        """The requests since the last call: from, to, and the names of the objects."""
        asked, self.requests = self.requests, []
        return [
            (
                one["objects"][0]["apiVersion"].rpartition("/")[2],
                one["desiredAPIVersion"].rpartition("/")[2],
                [value["metadata"]["name"] for value in one["objects"]],
            )
            for one in asked
        ]


@pytest.fixture
def converter(noxu: Noxu) -> Converter:
    made = Converter()

    async def register() -> None:
        noxu._server.plane.convert_in_process(NAME, made)

    noxu._call(register())
    noxu.apply(definition())
    return made


@pytest.fixture
def client(noxu: Noxu, converter: Converter) -> Iterator[Client]:
    with Client(noxu.url) as client:
        yield client


def url(version: str, name: str = "", tail: str = "") -> str:
    return f"/apis/{GROUP}/{version}/namespaces/default/widgets{f'/{name}' if name else ''}{tail}"


def widget(version: str, name: str, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    value = {"apiVersion": f"{GROUP}/{version}", "kind": "Widget", "metadata": {"name": name, **(metadata or {})}}
    return {**value, "spec": spec}


def send(client: Client, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
    answer = client.send(method, path, body, content_type)
    assert answer.code in (200, 201), answer.body
    return answer.body


def create(client: Client, version: str, name: str, metadata: dict[str, Any] | None = None, **spec: Any) -> Any:
    return send(client, "POST", url(version), widget(version, name, metadata, **spec))


def spec(client: Client, version: str, name: str) -> Any:
    return send(client, "GET", url(version, name))["spec"]


def accepting(client: Client, path: str, accept: str) -> Any:
    code, _, body = client.exchange("GET", path, None, {"Accept": accept})
    assert code == 200, body
    return json.loads(body)


def store_in(client: Client, version: str) -> None:
    changes = [
        {"op": "replace", "path": f"/spec/versions/{n}/storage", "value": name == version}
        for n, name in enumerate(SCHEMAS)
    ]
    send(client, "PATCH", f"{DEFINITIONS}/{NAME}", changes, JSON_PATCH)


# -- reading ----------------------------------------------------------------------------------------------------------


def test_an_object_is_converted_when_it_is_read_at_another_version(client: Client, converter: Converter) -> None:
    stored = create(client, "v1", "a", address="h:1", size=3)
    assert converter.take() == []
    read = send(client, "GET", url("v2", "a"))
    assert read == {**stored, "apiVersion": f"{GROUP}/v2", "spec": {"host": "h", "port": "1", "size": 3}}
    assert converter.take() == [("v1", "v2", ["a"])]


def test_no_review_is_sent_at_the_stored_version(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", address="h:1")
    spec(client, "v1", "a")
    send(client, "PATCH", url("v1", "a"), {"spec": {"size": 1}}, MERGE)
    send(client, "GET", url("v1"))
    send(client, "DELETE", url("v1", "a"))
    send(client, "GET", url("v2"))  # there is nothing in it
    assert converter.take() == []


def test_every_read_sends_a_review(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", address="h:1")
    assert spec(client, "v2", "a")["host"] == "h"
    converter.change = lambda value, _: {**value, "spec": {"host": "newer"}}
    assert spec(client, "v2", "a")["host"] == "newer"


def test_sent_objects_have_the_defaults_of_the_stored_version_and_no_resource_version(
    client: Client, converter: Converter
) -> None:
    stored = create(client, "v1", "a", address="h:1")
    spec(client, "v2", "a")
    [sent] = converter.requests[0]["objects"]
    assert "resourceVersion" not in sent["metadata"]
    assert sent["metadata"] | {"resourceVersion": stored["metadata"]["resourceVersion"]} == stored["metadata"]
    assert sent["spec"] == {"address": "h:1", "first": "1"}


def test_converted_objects_are_pruned_and_neither_defaulted_nor_validated(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", address="h:1")
    converter.change = lambda value, _: {**value, "spec": {"size": "huge", "unknown": 1, "address": "h"}, "more": {}}
    read = send(client, "GET", url("v2", "a"))
    assert read["spec"] == {"size": "huge"}
    assert "more" not in read


def test_only_labels_and_annotations_may_change(client: Client, converter: Converter) -> None:
    stored = create(client, "v1", "a", {"labels": {"old": "1"}, "finalizers": ["example.com/f"]})

    def change(value: dict[str, Any], _: str) -> dict[str, Any]:
        changed = {**value["metadata"], "labels": {"new": "2"}, "annotations": {"k": "v"}, "finalizers": []}
        return {**value, "metadata": {**changed, "generation": 7, "resourceVersion": "1", "managedFields": []}}

    converter.change = change
    read = send(client, "GET", url("v2", "a"))["metadata"]
    assert read == {**stored["metadata"], "labels": {"new": "2"}, "annotations": {"k": "v"}}


@pytest.mark.parametrize("accept", [TABLE, PARTIAL, "application/yaml"])
def test_every_representation_is_converted(client: Client, converter: Converter, accept: str) -> None:
    create(client, "v1", "a", {"labels": {"x": "1"}}, address="h:1")
    converter.take()
    code, _, body = client.exchange("GET", url("v2", "a"), None, {"Accept": accept})
    assert code == 200, body
    assert converter.take() == [("v1", "v2", ["a"])]


def test_a_table_shows_the_columns_of_its_version(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", address="h:1")
    for version, where in (("v1", "h:1"), ("v2", "h"), ("v3", "http://h:1")):
        assert accepting(client, url(version), TABLE)["rows"][0]["cells"] == ["a", where]


def test_converted_metadata_is_shown(client: Client, converter: Converter) -> None:
    create(client, "v1", "a")
    converter.change = lambda value, _: {**value, "metadata": {**value["metadata"], "labels": {"new": "2"}}}
    assert accepting(client, url("v2", "a"), PARTIAL)["metadata"]["labels"] == {"new": "2"}


def test_the_scale_of_another_version(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", address="h:1", size=3)
    assert send(client, "GET", url("v3", "a", "/scale"))["spec"] == {"replicas": 3}
    assert send(client, "PATCH", url("v3", "a", "/scale"), {"spec": {"replicas": 5}}, MERGE)["spec"] == {"replicas": 5}
    assert spec(client, "v1", "a") == {"address": "h:1", "size": 5, "first": "1"}


# -- lists ------------------------------------------------------------------------------------------------------------


def test_a_review_has_a_limited_number_of_objects(
    client: Client, converter: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converters, "MAX_OBJECTS", 4)
    names = [f"w{n:02}" for n in range(10)]
    for n, name in enumerate(names):
        create(client, "v1", name, address=f"h:{n}")
    listed = send(client, "GET", url("v2"))
    assert [(one["metadata"]["name"], one["spec"]["port"]) for one in listed["items"]] == [
        (name, str(n)) for n, name in enumerate(names)
    ]
    assert sorted(converter.take()) == [("v1", "v2", names[:4]), ("v1", "v2", names[4:8]), ("v1", "v2", names[8:])]


def test_a_review_has_a_limited_size(client: Client, converter: Converter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converters, "MAX_BYTES", 2000)
    for name in "abc":
        create(client, "v1", name, address="x" * 1500)
    send(client, "GET", url("v2"))
    assert sorted(converter.take()) == [("v1", "v2", ["a", "b"]), ("v1", "v2", ["c"])]


def test_only_objects_of_another_version_are_converted(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", address="h:1")
    store_in(client, "v2")
    create(client, "v2", "b", host="i", port="2")
    create(client, "v2", "c", host="j", port="3")
    assert converter.take() == []
    listed = send(client, "GET", url("v1"))["items"]
    assert [one["spec"].get("address") for one in listed] == ["h:1", "i:2", "j:3"]
    assert converter.take() == [("v2", "v1", ["b", "c"])]
    send(client, "GET", url("v2"))
    assert converter.take() == [("v1", "v2", ["a"])]


def test_objects_are_converted_from_their_stored_version_in_one_step(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", address="h:1")
    store_in(client, "v2")
    assert spec(client, "v3", "a") == {"url": "http://h:1"}
    assert spec(client, "v1", "a") == {"address": "h:1", "first": "1"}
    assert converter.take() == [("v1", "v3", ["a"])]


def test_the_next_write_stores_the_storage_version(client: Client, converter: Converter) -> None:
    before = create(client, "v1", "a", address="h:1")
    store_in(client, "v2")
    after = send(client, "PATCH", url("v1", "a"), {}, MERGE)
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    converter.take()
    assert spec(client, "v2", "a") == {"host": "h", "port": "1", "second": "2"}
    assert converter.take() == []
    assert send(client, "GET", f"{DEFINITIONS}/{NAME}")["status"]["storedVersions"] == ["v1", "v2"]


def test_label_selectors_see_converted_labels(client: Client, converter: Converter) -> None:
    for name in "ab":
        create(client, "v1", name, {"labels": {"name": name}})

    def change(value: dict[str, Any], _: str) -> dict[str, Any]:
        name = value["metadata"]["name"]
        return {**value, "metadata": {**value["metadata"], "labels": {"turned": name}}}

    converter.change = change

    def found(version: str, selector: str) -> list[str]:
        items = send(client, "GET", url(version, tail=f"?labelSelector={selector}"))["items"]
        return [one["metadata"]["name"] for one in items]

    assert found("v2", "turned=b") == ["b"]
    assert found("v2", "name=b") == []
    assert found("v1", "name=b") == ["b"]


def test_field_selectors_see_the_fields_of_the_version(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", address="h:1")
    create(client, "v1", "b", address="i:1")
    items = send(client, "GET", url("v2", tail="?fieldSelector=spec.host=i"))["items"]
    assert [one["metadata"]["name"] for one in items] == ["b"]


def test_pages_of_selected_objects(client: Client, converter: Converter) -> None:
    for n in range(6):
        create(client, "v1", f"w{n}", address=f"{'even' if n % 2 == 0 else 'odd'}:1")
    tail, found = "?limit=2&fieldSelector=spec.host=even", []
    token = ""
    while True:
        page = send(client, "GET", url("v2", tail=tail + token))
        found.append([one["metadata"]["name"] for one in page["items"]])
        if not page["metadata"].get("continue"):
            break
        token = f"&continue={page['metadata']['continue']}"
    assert found == [["w0", "w2"], ["w4"]]


def test_a_list_from_history_is_converted(client: Client, converter: Converter) -> None:
    old = create(client, "v1", "a", address="h:1")["metadata"]["resourceVersion"]
    send(client, "PATCH", url("v1", "a"), {"spec": {"address": "h:2"}}, MERGE)
    listed = send(client, "GET", url("v2", tail=f"?resourceVersion={old}&resourceVersionMatch=Exact"))
    assert [one["spec"]["port"] for one in listed["items"]] == ["1"]


# -- writing ----------------------------------------------------------------------------------------------------------


def test_a_write_at_another_version_is_stored_in_the_storage_version(client: Client, converter: Converter) -> None:
    made = create(client, "v2", "a", host="h", port="1", size=3, unknown=1)
    assert made["spec"] == {"host": "h", "port": "1", "size": 3}  # the default of v2 is lost in v1
    assert converter.take() == [("v2", "v1", ["a"]), ("v1", "v2", ["a"])]
    assert spec(client, "v1", "a") == {"address": "h:1", "size": 3, "first": "1"}


def test_an_update_at_another_version(client: Client, converter: Converter) -> None:
    version = create(client, "v1", "a", address="h:1")["metadata"]["resourceVersion"]
    replacement = widget("v2", "a", {"resourceVersion": version}, host="i", port="2")
    put = send(client, "PUT", url("v2", "a"), replacement)
    assert put["spec"] == {"host": "i", "port": "2"}
    assert put["metadata"]["generation"] == 2
    patched = send(client, "PATCH", url("v3", "a"), {"spec": {"url": "http://j:3"}}, MERGE)
    assert patched["spec"] == {"url": "http://j:3"}
    assert spec(client, "v1", "a")["address"] == "j:3"


def test_an_update_that_changes_nothing_writes_nothing(client: Client, converter: Converter) -> None:
    create(client, "v3", "a", url="http://h:1")
    before = send(client, "PATCH", url("v3", "a"), {"spec": {"size": 1}}, MERGE)
    after = send(client, "PATCH", url("v3", "a"), {"spec": {"url": "http://h:1"}}, MERGE)
    assert before == after


def test_validation_is_that_of_the_version_of_the_request(client: Client, converter: Converter) -> None:
    refused = client.send("POST", url("v2"), widget("v2", "a", size=101))
    assert refused.code == 422
    assert refused.body["message"].endswith("spec.size in body should be less than or equal to 100")
    assert create(client, "v3", "a", size=101)["spec"] == {"size": 101}
    assert spec(client, "v1", "a") == {"size": 101, "first": "1"}


def test_dry_runs_return_the_object_that_would_be_read(client: Client, converter: Converter) -> None:
    dry = send(client, "POST", url("v2", tail="?dryRun=All"), widget("v2", "a", host="h", port="1"))
    assert dry["spec"] == {"host": "h", "port": "1"}
    assert "resourceVersion" not in dry["metadata"]
    made = create(client, "v2", "a", host="h", port="1")
    dry = send(client, "PATCH", url("v2", "a", "?dryRun=All"), {"spec": {"second": "kept?"}}, MERGE)
    assert dry["spec"] == {"host": "h", "port": "1"}
    assert dry["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_status_at_another_version(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", address="h:1")
    assert send(client, "PATCH", url("v2", "a", "/status"), {"status": {"ready": 1}, "spec": {"host": "no"}}, MERGE)[
        "status"
    ] == {"ready": 1}
    assert send(client, "GET", url("v1", "a"))["status"] == {"ready": 1}
    assert spec(client, "v1", "a")["address"] == "h:1"


def test_deleting_at_another_version(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", {"finalizers": ["example.com/f"]}, address="h:1")
    marked = send(client, "DELETE", url("v2", "a"))
    assert marked["spec"] == {"host": "h", "port": "1"}
    assert marked["metadata"]["deletionTimestamp"]
    gone = send(client, "PATCH", url("v2", "a"), {"metadata": {"finalizers": None}}, MERGE)
    assert gone["apiVersion"] == f"{GROUP}/v2"
    assert client.send("GET", url("v1", "a")).code == 404


def test_deleting_a_collection_at_another_version(client: Client, converter: Converter) -> None:
    for name in "ab":
        create(client, "v1", name, address=f"{name}:1")
    deleted = send(client, "DELETE", url("v2", tail="?fieldSelector=spec.host=a"))
    assert [one["spec"]["host"] for one in deleted["items"]] == ["a"]
    assert [one["metadata"]["name"] for one in send(client, "GET", url("v1"))["items"]] == ["b"]


# -- ownership --------------------------------------------------------------------------------------------------------


def apply(client: Client, version: str, manager: str, force: bool = False, **fields: Any) -> Any:
    tail = f"?fieldManager={manager}{'&force=true' if force else ''}"
    return client.send("PATCH", url(version, "a", tail), widget(version, "a", **fields), APPLY)


def owners(value: Any) -> dict[tuple[str, str], set[str]]:
    """The owned fields of the spec, by manager and version."""
    return {
        (entry["manager"], entry["apiVersion"].rpartition("/")[2]): {
            name.removeprefix("f:") for name in entry["fieldsV1"].get("f:spec", {}) if name != "."
        }
        for entry in value["metadata"].get("managedFields", [])
    }


def test_a_conflict_names_fields_at_the_version_of_the_other_manager(client: Client, converter: Converter) -> None:
    assert apply(client, "v2", "m2", host="h", port="1").code == 201
    conflict = apply(client, "v1", "m1", address="i:1")
    assert conflict.code == 409
    assert conflict.body["message"] == 'Apply failed with 1 conflict: conflict with "m2": .spec.host'


def test_a_forced_apply_takes_fields_at_the_version_of_the_other_manager(client: Client, converter: Converter) -> None:
    apply(client, "v2", "m2", host="h", port="1")
    forced = apply(client, "v1", "m1", force=True, address="i:1").body
    assert owners(forced) == {("m1", "v1"): {"address"}, ("m2", "v2"): {"port"}}


def test_fields_that_are_no_longer_applied_are_removed_at_the_version_at_which_they_were_applied(
    client: Client, converter: Converter
) -> None:
    apply(client, "v2", "m", host="h", port="1", size=2)
    applied = apply(client, "v1", "m", size=2).body
    assert applied["spec"] == {"size": 2, "first": "1"}
    assert owners(applied) == {("m", "v1"): {"size"}}


def test_updates_are_tracked_at_other_managers_versions(client: Client, converter: Converter) -> None:
    send(client, "POST", url("v2", tail="?fieldManager=m2"), widget("v2", "a", host="h", port="1"))
    patched = send(client, "PATCH", url("v1", "a", "?fieldManager=m1"), {"spec": {"address": "h:2"}}, MERGE)
    assert owners(patched) == {("m1", "v1"): {"address"}, ("m2", "v2"): {"host", "second"}}


def test_ownership_is_converted_through_the_version_of_the_request(client: Client, converter: Converter) -> None:
    apply(client, "v1", "m", address="h:1", size=2)
    apply(client, "v2", "o", force=True, port="2")
    converter.take()
    applied = apply(client, "v3", "m", size=2).body
    assert applied["spec"] == {"url": "http://h:2", "size": 2}
    assert owners(applied) == {("m", "v3"): {"size"}, ("o", "v2"): {"port"}}
    asked = {(source, target) for source, target, _ in converter.take()}
    assert {("v3", "v1"), ("v1", "v3"), ("v3", "v2"), ("v2", "v3")} >= asked
    assert ("v3", "v2") in asked


def test_a_converter_that_leaves_unknown_fields_prevents_apply(client: Client, converter: Converter) -> None:
    apply(client, "v2", "m2", host="h")
    converter.change = lambda value, _: value
    failed = apply(client, "v1", "m1", size=1)
    assert (failed.code, failed.body["message"]) == (500, ".spec.address: field not declared in schema")


def test_a_failing_converter_prevents_apply_and_keeps_ownership_in_updates(
    client: Client, converter: Converter
) -> None:
    before = apply(client, "v2", "m2", host="h", port="1").body
    converter.failure = "it"
    failed = apply(client, "v1", "m1", size=1)
    assert (failed.code, failed.body["message"]) == (
        500,
        "conversion webhook for turned.example.com/v1, Kind=Widget failed: cannot convert it",
    )
    patched = send(client, "PATCH", url("v1", "a", "?fieldManager=m3"), {"spec": {"size": 1}}, MERGE)
    assert owners(patched) == owners(before)


# -- failures ---------------------------------------------------------------------------------------------------------


def test_with_a_failing_converter_only_the_stored_version_is_served(client: Client, converter: Converter) -> None:
    create(client, "v1", "a", address="h:1")
    converter.failure = "it"
    failures = [
        ("GET", url("v2", "a"), None, "v1"),
        ("GET", url("v2"), None, "v1"),
        ("GET", url("v2", "a", "/scale"), None, "v1"),
        ("POST", url("v2"), widget("v2", "b"), "v2"),
        ("PUT", url("v2", "a"), widget("v2", "a"), "v1"),
        ("DELETE", url("v2", "a"), None, "v1"),
        ("DELETE", url("v2"), None, "v1"),
    ]
    for method, path, body, version in failures:
        answer = client.send(method, path, body)
        message = f"conversion webhook for {GROUP}/{version}, Kind=Widget failed: cannot convert it"
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "code": 500,
        }
        assert (answer.code, answer.body) == (500, status), path
    assert client.send("GET", url("v2", "missing")).code == 404
    assert [one["metadata"]["name"] for one in send(client, "GET", url("v1"))["items"]] == ["a"]
    send(client, "PATCH", url("v1", "a"), {"spec": {"size": 1}}, MERGE)
    send(client, "DELETE", url("v1", "a"))


def test_the_error_of_a_list_is_that_of_the_first_object_that_fails(client: Client, converter: Converter) -> None:
    for name in "abcd":
        create(client, "v1", name)
    converter.fails_for = ("c", "d")
    failed = client.send("GET", url("v2"))
    assert (failed.code, failed.body["message"]) == (
        500,
        f"conversion webhook for {GROUP}/v1, Kind=Widget failed: cannot convert c",
    )
    assert [names for _, _, names in converter.take()] == [["a", "b", "c", "d"], ["a"], ["b"], ["c"]]


def test_a_converter_that_fails_for_several_objects_gets_one_at_a_time(client: Client, converter: Converter) -> None:
    for name in "ab":
        create(client, "v1", name, address=f"{name}:1")

    converter.counts_to = 1
    assert [one["spec"]["host"] for one in send(client, "GET", url("v2"))["items"]] == ["a", "b"]


def test_a_definition_is_deleted_although_its_converter_fails(client: Client, converter: Converter) -> None:
    create(client, "v1", "a")
    store_in(client, "v2")
    create(client, "v2", "b")
    converter.failure = "it"
    send(client, "DELETE", f"{DEFINITIONS}/{NAME}")
    eventually(lambda: client.send("GET", f"{DEFINITIONS}/{NAME}").code == 404)


def test_a_definition_waits_for_its_converter_if_objects_have_to_be_marked(
    client: Client, converter: Converter
) -> None:
    create(client, "v1", "a", {"finalizers": ["example.com/f"]})
    store_in(client, "v2")
    converter.failure = "it"
    send(client, "DELETE", f"{DEFINITIONS}/{NAME}")

    def terminating() -> tuple[str, str]:
        found = send(client, "GET", f"{DEFINITIONS}/{NAME}")["status"]["conditions"]
        return next((one["reason"], one["message"]) for one in found if one["type"] == "Terminating")

    eventually(lambda: terminating()[0] == "InstanceDeletionFailed")
    assert terminating()[1] == (
        f"could not issue all deletes: conversion webhook for {GROUP}/v1, Kind=Widget failed: cannot convert it"
    )
    converter.failure = ""
    eventually(lambda: "deletionTimestamp" in send(client, "GET", url("v2", "a"))["metadata"])
    send(client, "PATCH", url("v2", "a"), {"metadata": {"finalizers": None}}, MERGE)
    eventually(lambda: client.send("GET", f"{DEFINITIONS}/{NAME}").code == 404)


def test_without_its_function_a_definition_has_its_own_strategy(
    noxu: Noxu, client: Client, converter: Converter
) -> None:
    create(client, "v1", "a", size=1)

    async def forget() -> None:
        noxu._server.plane.convert_in_process(NAME, None)

    noxu._call(forget())
    assert spec(client, "v2", "a") == {"size": 1}
    assert converter.take() == []


def test_a_definition_with_a_broken_ca_bundle_is_established_when_it_is_corrected(noxu: Noxu) -> None:
    config = {"url": "https://127.0.0.1:1/x", "caBundle": base64.b64encode(b"no certificate").decode()}
    crd = definition()
    crd["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config},
    }

    def established(client: Client) -> tuple[str, str]:
        found = send(client, "GET", f"{DEFINITIONS}/{NAME}")["status"]["conditions"]
        return next((one["status"], one["reason"]) for one in found if one["type"] == "Established")

    with Client(noxu.url) as client:
        send(client, "POST", DEFINITIONS, crd)
        assert established(client) == ("False", "InvalidCABundle")
        change = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": None}}}}}
        send(client, "PATCH", f"{DEFINITIONS}/{NAME}", change, MERGE)
        assert established(client) == ("True", "InitialNamesAccepted")
        create(client, "v1", "a")
        assert client.send("GET", url("v2", "a")).body["message"] == (
            f"conversion webhook for {GROUP}/v1, Kind=Widget failed: "
            'Post "https://127.0.0.1:1/x?timeout=30s": dial tcp 127.0.0.1:1: connect: connection refused'
        )


@pytest.fixture(params=["asked", "not asked"])
def orphan(request: pytest.FixtureRequest, client: Client, noxu: Noxu) -> Client:
    """An object `a` whose version the definition no longer has, and `b`, whose version exists."""
    if request.param == "not asked":

        async def forget() -> None:
            noxu._server.plane.convert_in_process(NAME, None)

        noxu._call(forget())
    create(client, "v1", "a", address="h:1")
    store_in(client, "v2")
    create(client, "v2", "b", host="i")
    send(client, "PATCH", f"{DEFINITIONS}/{NAME}/status", {"status": {"storedVersions": ["v2"]}}, MERGE)
    send(
        client,
        "PATCH",
        f"{DEFINITIONS}/{NAME}",
        {"spec": {"versions": definition("v2")["spec"]["versions"][1:]}},
        MERGE,
    )
    return client


GONE = f"request to convert CR from an invalid group/version: {GROUP}/v1"


def test_an_object_whose_version_no_longer_exists_cannot_be_read(orphan: Client) -> None:
    requests = [
        ("GET", url("v2", "a"), None),
        ("GET", url("v3", "a"), None),
        ("GET", url("v2"), None),
        ("GET", url("v2", tail="?fieldSelector=spec.host=i"), None),
        ("GET", url("v2", "a", "/scale"), None),
        ("PATCH", url("v2", "a"), {"spec": {"size": 1}}),
        ("DELETE", url("v2", "a"), None),
    ]
    for method, path, body in requests:
        answer = orphan.send(method, path, body, MERGE)
        assert (answer.code, answer.body["message"]) == (500, GONE), path
    assert spec(orphan, "v2", "b") == {"host": "i", "second": "2"}
    send(orphan, "PATCH", url("v2", "b"), {"spec": {"size": 1}}, MERGE)


def test_it_can_be_read_when_its_version_exists_again(orphan: Client) -> None:
    change = {"spec": {"versions": definition("v2")["spec"]["versions"]}}
    send(orphan, "PATCH", f"{DEFINITIONS}/{NAME}", change, MERGE)
    assert spec(orphan, "v1", "a") == {"address": "h:1", "first": "1"}


def test_a_definition_is_deleted_with_objects_whose_version_no_longer_exists(orphan: Client) -> None:
    send(orphan, "DELETE", f"{DEFINITIONS}/{NAME}")
    eventually(lambda: orphan.send("GET", f"{DEFINITIONS}/{NAME}").code == 404)
    send(orphan, "POST", DEFINITIONS, definition())
    assert send(orphan, "GET", url("v1"))["items"] == []


# -- watching ---------------------------------------------------------------------------------------------------------


class Watching:
    """A watch in a thread."""

    def __init__(self, client: Client, path: str, accept: str = "application/json") -> None:
        self.events: list[Any] = []
        self.ended = threading.Event()
        self._connection = client.connect(20)
        self._connection.request("GET", path, headers={"Accept": accept})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            for line in self._answer:
                self.events.append(json.loads(line))
        self.ended.set()

    def close(self) -> None:
        if self._connection.sock is not None:
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._answer.close()
        self._connection.close()

    def until(self, count: int) -> list[Any]:
        eventually(lambda: len(self.events) >= count)
        return self.events

    def shown(self, count: int) -> list[tuple[str, str, Any]]:
        """Type, name and spec of the events."""
        return [
            (event["type"], event["object"]["metadata"]["name"], event["object"].get("spec"))
            for event in self.until(count)
        ]


Watch = Callable[..., Watching]


@pytest.fixture
def watch(client: Client) -> Iterator[Watch]:
    """`watch(path)`, `watch(path, accept)`; closed when the test is over."""
    begun: list[Watching] = []

    def begin(path: str, accept: str = "application/json") -> Watching:
        begun.append(Watching(client, path, accept))
        return begun[-1]

    yield begin
    for watching in begun:
        watching.close()


def test_a_watch_at_another_version(client: Client, converter: Converter, watch: Watch) -> None:
    create(client, "v1", "a", address="h:1")
    watching = watch(url("v2", tail="?watch=true&timeoutSeconds=10"))
    watching.until(1)
    send(client, "PATCH", url("v1", "a"), {"spec": {"address": "h:2"}}, MERGE)
    create(client, "v2", "b", host="i", port="3")
    send(client, "DELETE", url("v1", "a"))
    assert watching.shown(4) == [
        ("ADDED", "a", {"host": "h", "port": "1"}),
        ("MODIFIED", "a", {"host": "h", "port": "2"}),
        ("ADDED", "b", {"host": "i", "port": "3"}),
        ("DELETED", "a", {"host": "h", "port": "2"}),
    ]
    assert {one["object"]["apiVersion"] for one in watching.events} == {f"{GROUP}/v2"}


def test_an_event_is_converted_once_for_all_watches(client: Client, converter: Converter, watch: Watch) -> None:
    watches = [watch(url("v2", tail="?watch=true&timeoutSeconds=10")) for _ in range(5)]
    table = watch(url("v2", tail="?watch=true&timeoutSeconds=10"), TABLE)
    converter.take()
    create(client, "v1", "a", address="h:1")
    for one in (*watches, table):
        one.until(1)
    assert converter.take() == [("v1", "v2", ["a"])]
    assert table.events[0]["object"]["rows"][0]["cells"] == ["a", "h"]
    late = watch(url("v2", tail="?watch=true&timeoutSeconds=10&resourceVersion=1"))
    late.until(1)
    assert converter.take() == []


def test_objects_enter_and_leave_a_selection_by_their_converted_fields(
    client: Client, converter: Converter, watch: Watch
) -> None:
    watching = watch(url("v2", tail="?watch=true&timeoutSeconds=10&fieldSelector=spec.host=in"))
    create(client, "v1", "a", address="out:1")
    send(client, "PATCH", url("v1", "a"), {"spec": {"address": "in:2"}}, MERGE)
    send(client, "PATCH", url("v1", "a"), {"spec": {"address": "in:3"}}, MERGE)
    send(client, "PATCH", url("v1", "a"), {"spec": {"address": "out:4"}}, MERGE)
    assert watching.shown(3) == [
        ("ADDED", "a", {"host": "in", "port": "2"}),
        ("MODIFIED", "a", {"host": "in", "port": "3"}),
        ("DELETED", "a", {"host": "in", "port": "3"}),
    ]


def test_a_watch_ends_with_an_error_when_an_object_cannot_be_converted(
    client: Client, converter: Converter, watch: Watch
) -> None:
    watching = watch(url("v2", tail="?watch=true&timeoutSeconds=10"))
    stored = watch(url("v1", tail="?watch=true&timeoutSeconds=10"))
    create(client, "v1", "a")
    watching.until(1)
    converter.fails_for = ("b",)
    create(client, "v1", "b")
    create(client, "v1", "c")
    assert watching.ended.wait(5)
    added, error = watching.events
    assert added["type"] == "ADDED"
    cause = f"conversion webhook for {GROUP}/v1, Kind=Widget failed: cannot convert b"
    assert error == {
        "type": "ERROR",
        "object": {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {cause}",
            "reason": "InternalError",
            "details": {"causes": [{"message": cause}]},
            "code": 500,
        },
    }
    assert [name for _, name, _ in stored.shown(3)] == ["a", "b", "c"]


def test_initial_events_before_the_object_that_fails_are_sent(
    client: Client, converter: Converter, watch: Watch
) -> None:
    for name in "abc":
        create(client, "v1", name, address=f"{name}:1")
    converter.fails_for = ("b",)
    watching = watch(url("v2", tail="?watch=true&timeoutSeconds=10"))
    assert watching.ended.wait(5)
    assert [one["type"] for one in watching.events] == ["ADDED", "ERROR"]
    converter.fails_for = ()
    again = watch(url("v2", tail="?watch=true&timeoutSeconds=10"))
    assert [name for _, name, _ in again.shown(3)] == ["a", "b", "c"]


def test_a_watch_cannot_show_an_object_whose_version_no_longer_exists(orphan: Client, watch: Watch) -> None:
    watching = watch(url("v2", tail="?watch=true&timeoutSeconds=10"))
    assert watching.ended.wait(5)
    assert [one["type"] for one in watching.events] == ["ERROR"]
    assert watching.events[0]["object"]["message"] == f"Internal error occurred: {GONE}"
    going = watch(
        url("v2", tail="?watch=true&timeoutSeconds=10&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
    )
    send(orphan, "DELETE", f"{DEFINITIONS}/{NAME}")  # and its objects with it, while they are still served
    assert going.ended.wait(5)
    assert [one["type"] for one in going.events if one["type"] != "DELETED"] == ["ERROR"]


def test_a_failure_affects_only_its_namespace(client: Client, converter: Converter, watch: Watch) -> None:
    send(client, "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    watching = watch(url("v2", tail="?watch=true&timeoutSeconds=10"))
    everywhere = watch(f"/apis/{GROUP}/v2/widgets?watch=true&timeoutSeconds=10")
    converter.fails_for = ("b",)
    send(client, "POST", url("v1").replace("default", "other"), widget("v1", "b"))
    create(client, "v1", "a")
    assert [name for _, name, _ in watching.shown(1)] == ["a"]
    assert everywhere.ended.wait(5)
    assert [one["type"] for one in everywhere.events] == ["ERROR"]


def test_watch_lists_end_their_initial_events_with_a_bookmark(
    client: Client, converter: Converter, watch: Watch
) -> None:
    create(client, "v1", "a", address="h:1")
    tail = "?watch=true&timeoutSeconds=10&sendInitialEvents=true&allowWatchBookmarks=true"
    watching = watch(url("v2", tail=f"{tail}&resourceVersionMatch=NotOlderThan"))
    assert [one["type"] for one in watching.until(2)] == ["ADDED", "BOOKMARK"]
    assert watching.events[0]["object"]["spec"] == {"host": "h", "port": "1"}
