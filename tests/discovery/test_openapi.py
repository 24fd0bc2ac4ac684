"""Published OpenAPI documents: their contents, names and hashes, caching, and rebuilding after a change."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import threading
import tracemalloc
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from noxu.discovery import openapi, openapi_paths
from noxu.discovery.openapi import INDEX, VERSION, DocumentForm, DocumentKey, Published, PublishedDocument
from noxu.discovery.openapi_schemas import V2, V3
from noxu.go import protobuf
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.custom import versions_of
from noxu.registry.served_resources import ServedResources
from tests.discovery.test_openapi_gzip_pieces import groups_compressed
from tests.optional import SHARED, skip_without_data
from tests.timing import cpu_seconds

JsonObject = dict[str, Any]

BUILT_IN = (*built_in_versions(), definitions_resource())
START = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def crd(
    kind: str = "Widget", group: str = "example.com", versions: tuple[str, ...] = ("v1",), **more: Any
) -> JsonObject:
    plural = kind.lower() + "s"
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": kind + "List"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    served = [
        {"name": name, "served": True, "storage": name == versions[0], "schema": schema, **more} for name in versions
    ]
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": served},
        "status": {"acceptedNames": names},
    }


def catalog_of(*crds: JsonObject) -> ServedResources:
    return ServedResources(
        BUILT_IN, {definition["metadata"]["name"]: versions_of(definition, 0) for definition in crds}
    )


@pytest.fixture
def published() -> Published:
    moments = (START + timedelta(minutes=n) for n in range(1000))
    return Published(lambda: next(moments))


def read(document: PublishedDocument) -> JsonObject:
    found: JsonObject = json.loads(document.body)
    return found


def at(group_version: str, form: DocumentForm = DocumentForm.JSON) -> DocumentKey:
    return DocumentKey(V3, f"apis/{group_version}", form)


def bare(value: Any) -> Any:
    """Without descriptions."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k != "description" or not isinstance(v, str)}
    return [bare(item) for item in value] if isinstance(value, list) else value


# -- what is in them --------------------------------------------------------------------------------------------------


def test_a_document_of_a_group_version_with_custom_resources(published: Published) -> None:
    found = read(published.build(catalog_of(crd(), crd("Gadget"), crd("Other", "other.com")), at("example.com/v1")))
    assert list(found) == ["openapi", "info", "paths", "components"]
    assert found["openapi"] == "3.0.0"
    assert found["info"] == {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
    assert list(found["paths"]) == sorted(found["paths"])
    assert {path.split("/")[-1] for path in found["paths"]} == {"widgets", "gadgets", "{name}"}
    schemas = found["components"]["schemas"]
    assert list(schemas) == sorted(schemas)
    own = [name for name in schemas if name.startswith("com.example")]
    assert own == [f"com.example.v1.{name}" for name in ("Gadget", "GadgetList", "Widget", "WidgetList")]
    assert META + "ObjectMeta" in schemas
    assert not [name for name in schemas if "autoscaling" in name], "nothing here can be scaled"


def test_scalable_resources_publish_the_scale_schemas(published: Published) -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    found = read(published.build(catalog_of(crd(subresources={"scale": scale})), at("example.com/v1")))
    scales = [name for name in found["components"]["schemas"] if name.startswith("io.k8s.api.")]
    assert scales == [f"io.k8s.api.autoscaling.v1.{name}" for name in ("Scale", "ScaleSpec", "ScaleStatus")]


def test_a_document_of_built_in_kinds(published: Published) -> None:
    found = read(published.build(catalog_of(), DocumentKey(V3, "api/v1")))
    assert found["info"]["title"] == "Kubernetes"
    assert "/api/v1/namespaces/{namespace}/configmaps/{name}" in found["paths"]
    assert "io.k8s.api.core.v1.ConfigMapList" in found["components"]["schemas"]
    assert "io.k8s.api.coordination.v1.Lease" not in found["components"]["schemas"]


def test_v2_has_everything(published: Published) -> None:
    found = read(published.build(catalog_of(crd(versions=("v1", "v2"))), DocumentKey(V2)))
    assert found["swagger"] == "2.0"
    names = ("com.example.v1.Widget", "com.example.v2.WidgetList", "io.k8s.api.core.v1.Secret", META + "Status")
    assert all(name in found["definitions"] for name in names)
    assert "/apis/example.com/v2/namespaces/{namespace}/widgets/{name}" in found["paths"]
    assert "/apis/events.k8s.io/v1/events" in found["paths"]
    assert found["parameters"] == openapi_paths.shared_parameters()


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(child) for child in value.values()))
    return set().union(*(references(child) for child in value)) if isinstance(value, list) else set()


@pytest.mark.slow
def test_every_reference_leads_somewhere(published: Published) -> None:
    served_resources = catalog_of(crd(), crd("Gadget", subresources={"status": {}}))
    keys = [
        DocumentKey(V2),
        *(DocumentKey(V3, path) for path in read(published.build(served_resources, INDEX))["paths"]),
    ]
    for key in keys:
        found = read(published.build(served_resources, key))
        for reference in references(found):
            target: Any = found
            for name in reference.removeprefix("#/").split("/"):
                target = target[name]


def test_the_document_of_the_version(published: Published) -> None:
    found = read(published.build(catalog_of(), DocumentKey(V3, VERSION)))
    assert list(found["paths"]) == ["/version/"]
    (schema,) = found["components"]["schemas"].values()
    assert "gitVersion" in schema["required"]


def test_numbers_and_letters_are_written_as_go_writes_them(published: Published) -> None:
    schema = {"type": "number", "default": 1.0, "maximum": 1e21, "description": "a < b & é \u2028"}
    body = published.build(
        catalog_of(crd(schema={"openAPIV3Schema": {"type": "object", "properties": {"n": schema}}})),
        at("example.com/v1"),
    ).body
    assert b'"default":1,' in body
    assert b'"maximum":1e+21' in body
    assert rb'"a \u003c b \u0026 ' in body


def test_v2_does_not_escape_html(published: Published) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "number", "maximum": 1e21, "description": "a < b & \u2028"}},
    }
    body = published.build(catalog_of(crd(schema={"openAPIV3Schema": schema})), DocumentKey(V2)).body
    assert '"n":{"description":"a < b & \u2028","type":"number","maximum":1e+21}'.encode() in body


def test_the_order_of_keys_in_v2(published: Published) -> None:
    found = read(published.build(catalog_of(crd()), DocumentKey(V2)))
    assert list(found) == ["swagger", "info", "paths", "definitions", "parameters"]
    assert list(found["definitions"]) == sorted(found["definitions"])
    assert list(found["parameters"]) == sorted(found["parameters"])


# -- the index, and names ---------------------------------------------------------------------------------------------


def test_the_index_names_each_document_by_its_hash(published: Published) -> None:
    served_resources = catalog_of(crd(), crd("Gadget", "other.com", ("v1beta1", "v1")))
    found = read(published.build(served_resources, INDEX))["paths"]
    assert list(found) == sorted(found)
    assert {"api/v1", "apis/example.com/v1", "apis/other.com/v1beta1", "apis/other.com/v1", "version"} <= found.keys()
    for path, entry in found.items():
        document = published.build(served_resources, DocumentKey(V3, path))
        assert re.fullmatch("[0-9A-F]{128}", document.hash)
        assert entry == {"serverRelativeURL": f"/openapi/v3/{path}?hash={document.hash}"}
    assert len({entry["serverRelativeURL"].rpartition("=")[2] for entry in found.values()}) == len(found)
    again = Published(lambda: START).build(catalog_of(crd("Gadget", "other.com", ("v1beta1", "v1")), crd()), INDEX)
    assert read(again)["paths"] == found


VARIANTS: dict[str, JsonObject] = {
    "as it is": crd(),
    "another kind": crd("Gadget"),
    "with a status": crd(subresources={"status": {}}),
    "with a scale": crd(subresources={"scale": {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}}),
    "with a selectable field": crd(selectableFields=[{"jsonPath": ".spec.a"}]),
    "with another schema": crd(schema={"openAPIV3Schema": {"type": "object", "description": "other"}}),
    "without a schema": crd(schema={}),
    "deprecated": crd(deprecated=True, deprecationWarning="old"),
    "with columns": crd(additionalPrinterColumns=[{"name": "a", "type": "string", "jsonPath": ".spec.a"}]),
    "cluster-wide": {**crd(), "spec": {**crd()["spec"], "scope": "Cluster"}},
    "with another list kind": {**crd(), "status": {"acceptedNames": {**crd()["status"]["acceptedNames"], "listKind": "Many"}}},
    "with another plural": {**crd(), "status": {"acceptedNames": {**crd()["status"]["acceptedNames"], "plural": "others"}}},
    "with another singular": {**crd(), "status": {"acceptedNames": {**crd()["status"]["acceptedNames"], "singular": "one"}}},
    "with short names": {**crd(), "status": {"acceptedNames": {**crd()["status"]["acceptedNames"], "shortNames": ["w"]}}},
}  # fmt: skip


@pytest.mark.parametrize("terminating", [False, True])
def test_documents_with_another_content_have_another_hash(*, terminating: bool) -> None:
    bodies: dict[str, set[bytes]] = {}
    for definition in VARIANTS.values():
        versions = versions_of(definition, 0)
        versions.terminating = versions.deletes_instances = terminating
        served_resources = ServedResources(BUILT_IN, {definition["metadata"]["name"]: versions})
        for cbor in (False, True):
            document = Published(lambda: START, cbor=cbor).build(served_resources, at("example.com/v1"))
            bodies.setdefault(document.hash, set()).add(document.body)
    assert all(len(found) == 1 for found in bodies.values())
    assert len(bodies) > len(VARIANTS)


@pytest.mark.slow
def test_the_index_of_thousands_of_versions_is_cheap(published: Published) -> None:
    """It needed 0.8 ms, and 30 KB, for each: it built all documents."""
    served_resources = catalog_of(
        *(crd(f"K{n}", versions=tuple(f"v{version}" for version in range(1, 151))) for n in range(20))
    )
    assert len(read(published.build(served_resources, INDEX))["paths"]) > 150
    more = served_resources.with_definition("gadgets.other.com", versions_of(crd("Gadget", "other.com"), 0))
    tracemalloc.start()
    try:
        assert cpu_seconds(lambda: Published(lambda: START).build(more, INDEX)) < 0.4
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_versions_that_are_not_served_are_not_published(published: Published) -> None:
    hidden = crd(versions=("v1", "v2"))
    hidden["spec"]["versions"][1]["served"] = False
    served_resources = catalog_of(hidden)
    assert published.exists(served_resources, "apis/example.com/v1")
    assert not published.exists(served_resources, "apis/example.com/v2")
    assert "com.example.v2.Widget" not in read(published.build(served_resources, DocumentKey(V2)))["definitions"]


@pytest.mark.parametrize("path", ["", "api", "apis", "apis/example.com", "apis/example.com/v9", "api/v2", "versions"])
def test_unknown_documents(published: Published, path: str) -> None:
    assert not published.exists(catalog_of(crd()), path)


def test_documents_do_not_depend_on_the_order_of_definitions() -> None:
    one, other = crd(), crd("Gadget")
    first, second = (
        Published(lambda: START).build(catalog_of(*crds), at("example.com/v1")) for crds in ([one, other], [other, one])
    )
    assert first.body == second.body


# -- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", [INDEX, DocumentKey(V2), at("example.com/v1"), at("example.com/v1", DocumentForm.PROTOBUF)]
)
def test_documents_are_built_on_demand_and_cached(published: Published, key: DocumentKey) -> None:
    served_resources = catalog_of(crd())
    assert published.kept(served_resources, key) is None
    built = published.build(served_resources, key)
    assert published.kept(served_resources, key) is built
    assert published.build(served_resources, key) is built


def test_the_index_builds_none_of_the_documents_it_names(published: Published) -> None:
    served_resources = catalog_of(crd())
    published.build(served_resources, INDEX)
    for path in ("apis/example.com/v1", "api/v1"):
        for form in DocumentForm:
            assert published.kept(served_resources, DocumentKey(V3, path, form)) is None


def test_a_limited_number_of_bytes_is_kept(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    """The documents that were used last, and the index."""
    served_resources = catalog_of(*(crd(f"K{n}", f"g{n}.com") for n in range(8)))
    size = len(published.build(served_resources, at("g0.com/v1")).body)
    monkeypatch.setattr(openapi, "MAX_KEPT", 3 * size + 10_000)
    published.build(served_resources, INDEX)
    for n in range(8):
        published.build(served_resources, at(f"g{n}.com/v1"))
        if n > 1:
            assert published.kept(served_resources, at("g1.com/v1")) is not None
    kept = [n for n in range(8) if published.kept(served_resources, at(f"g{n}.com/v1")) is not None]
    assert (kept, published.kept(served_resources, INDEX) is not None) == ([1, 6, 7], True)
    monkeypatch.setattr(openapi, "MAX_KEPT", 0)
    assert published.build(served_resources, DocumentKey(V2)) is published.kept(served_resources, DocumentKey(V2))
    assert [key for key in published._kept if key.path] == []


def test_parts_beyond_the_limit_are_made_again(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openapi, "MAX_PARTS", 100_000)
    old = catalog_of(crd(), crd("Gadget"))
    first = published.build(old, DocumentKey(V2))
    assert 0 < published._parts_size <= 100_000
    again = published.build(old.with_definition("widgets.example.com", versions_of(crd(), 0)), DocumentKey(V2))
    assert (again.body, again is first) == (first.body, False)


def test_a_new_definition_does_not_change_the_documents_of_other_groups(published: Published) -> None:
    old = catalog_of(crd())
    published.build(old, INDEX)
    before = {
        path: published.build(old, DocumentKey(V3, path)) for path in ("apis/example.com/v1", "api/v1", "version")
    }
    new = old.with_definition("gadgets.other.com", versions_of(crd("Gadget", "other.com"), 0))
    for path, document in before.items():
        assert published.kept(new, DocumentKey(V3, path)) is document is not None
    assert published.kept(new, INDEX) is None
    assert published.kept(new, DocumentKey(V2)) is None
    assert "apis/other.com/v1" in read(published.build(new, INDEX))["paths"]


def test_a_changed_definition_has_a_new_document_at_a_new_place(published: Published) -> None:
    old = catalog_of(crd())
    before = published.build(old, at("example.com/v1"))
    new = old.with_definition("widgets.example.com", versions_of(crd(subresources={"status": {}}), 0))
    assert published.kept(new, at("example.com/v1")) is None
    after = published.build(new, at("example.com/v1"))
    assert after.hash != before.hash
    assert after.made > before.made
    entry = read(published.build(new, INDEX))["paths"]["apis/example.com/v1"]
    assert entry == {"serverRelativeURL": after.url("apis/example.com/v1")}


def test_deleting_a_definition_removes_its_documents(published: Published) -> None:
    old = catalog_of(crd(), crd("Gadget", "other.com"))
    published.build(old, INDEX)
    new = old.with_definition("gadgets.other.com", None)
    assert not published.exists(new, "apis/other.com/v1")
    assert "apis/other.com/v1" not in read(published.build(new, INDEX))["paths"]
    assert published.kept(old, at("other.com/v1")) is None, "and their memory is free"
    assert "com.other.v1.Gadget" not in read(published.build(new, DocumentKey(V2)))["definitions"]


def test_only_the_changed_parts_of_v2_are_rebuilt(published: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    old = catalog_of(crd())
    published.build(old, DocumentKey(V2))
    built: list[str] = []
    parts = openapi._resource_parts
    monkeypatch.setattr(
        openapi,
        "_resource_parts",
        lambda resource, style, *, cbor: built.append(resource.kind) or parts(resource, style, cbor=cbor),
    )
    new = old.with_definition("gadgets.other.com", versions_of(crd("Gadget", "other.com"), 0))
    assert "com.other.v1.Gadget" in read(published.build(new, DocumentKey(V2)))["definitions"]
    assert built == ["Gadget"]


@pytest.mark.parametrize("form", DocumentForm)
def test_the_gzip_of_v2_is_made_of_what_was_compressed_before(
    published: Published, monkeypatch: pytest.MonkeyPatch, form: DocumentForm
) -> None:
    compressed = groups_compressed(monkeypatch)
    key, old = DocumentKey(V2, form=form), catalog_of(crd(), crd("Gadget", "other.com"))
    counts = []
    for served_resources in (old, old.with_definition("gadgets.other.com", versions_of(crd("Gadget", "new.com"), 0))):
        compressed.clear()
        document = published.build(served_resources, key)
        assert document.compress is not None
        assert gzip.decompress(document.compress()) == document.body
        counts.append(sum(map(len, compressed)))
    assert 0 < counts[1] < counts[0] / 5
    assert published.build(old, at("example.com/v1")).compress is None


def test_both_forms_have_one_hash(published: Published) -> None:
    served_resources = catalog_of(crd())
    for key in (DocumentKey(V2), at("example.com/v1"), DocumentKey(V3, VERSION)):
        plain = published.build(served_resources, key)
        protobuf = published.build(served_resources, key._replace(form=DocumentForm.PROTOBUF))
        assert protobuf.body != plain.body
        assert (protobuf.hash, protobuf.made) == (plain.hash, plain.made)


def test_many_threads_get_one_document(published: Published) -> None:
    served_resources = catalog_of(crd())
    found: list[PublishedDocument] = []
    threads = [
        threading.Thread(target=lambda: found.append(published.build(served_resources, DocumentKey(V2))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(document is found[0] for document in found)


# -- protobuf ---------------------------------------------------------------------------------------------------------


def named(data: bytes, number: int) -> dict[str, bytes]:
    """A map in a message: names and values."""
    found = {}
    for item in children(data, number):
        (name,), value = children(item, 1), children(item, 2)
        found[name.decode()] = value[0] if value else b""
    return found


def children(data: bytes, number: int) -> list[bytes]:
    """The fields of that number, all of which have a length."""
    found, pos = [], 0
    while pos < len(data):
        given, kind, pos = protobuf.read_tag(data, pos, len(data))
        after = protobuf.skip_field(kind, data, pos, len(data))
        if given == number:
            end, start = protobuf.read_length(data, pos, len(data))
            found.append(data[start:end])
        pos = after
    return found


def test_v2_as_protobuf_has_the_same_paths_definitions_and_parameters(published: Published) -> None:
    served_resources = catalog_of(crd())
    plain = read(published.build(served_resources, DocumentKey(V2)))
    body = published.build(served_resources, DocumentKey(V2, form=DocumentForm.PROTOBUF)).body
    assert children(body, 1) == [b"2.0"]
    for number, inside, keyword in ((8, 2, "paths"), (9, 1, "definitions"), (10, 1, "parameters")):
        (message,) = children(body, number)
        assert list(named(message, inside)) == list(plain[keyword])


def test_v3_as_protobuf_has_the_same_paths_and_schemas(published: Published) -> None:
    served_resources = catalog_of(crd())
    plain = read(published.build(served_resources, at("example.com/v1")))
    body = published.build(served_resources, at("example.com/v1", DocumentForm.PROTOBUF)).body
    (paths,), (components,) = children(body, 4), children(body, 5)
    assert list(named(paths, 1)) == list(plain["paths"])
    (schemas,) = children(components, 1)
    assert list(named(schemas, 1)) == list(plain["components"]["schemas"])


# -- the reference ----------------------------------------------------------------------------------------------------


def recorded() -> tuple[JsonObject, JsonObject]:
    """A definition, and the document that the reference published of it."""
    recordings = SHARED / "recordings" / "discovery.jsonl"
    if not recordings.exists():
        skip_without_data("recordings/discovery.jsonl")
    case = next(
        recording
        for recording in map(json.loads, recordings.read_text().rstrip().split("\n"))
        if recording["id"] == "discovery/openapi-v3"
    )
    return case["steps"][0]["body"], case["steps"][-1]["expect"]["body"]


def without_standard_texts(found: Any, expected: Any) -> Any:
    """The document, with the placeholders of the recording for our own texts."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return {
            key: expected.get(key)
            if expected.get(key) == "<standard text>"
            else without_standard_texts(value, expected.get(key))
            for key, value in found.items()
        }
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        return [without_standard_texts(*pair) for pair in zip(found, expected, strict=True)]
    return found


def test_the_recorded_document(published: Published) -> None:
    definition, expected = recorded()
    definition["status"] = {"acceptedNames": definition["spec"]["names"]}
    found = read(published.build(catalog_of(definition), at("d2.example.com/v1")))
    assert json.dumps(without_standard_texts(found, expected)) == json.dumps(expected), "in the same order"


SAMPLED = [
    "bundles.trust.cert-manager.io",
    "clusterfederatedtrustdomains.spire.spiffe.io",
    "dummies.argoproj.io",
    "gateways.networking.istio.io",
    "ippools.projectcalico.org",
    "kafkausers.kafka.strimzi.io",
    "routes.serving.knative.dev",
    "scaledobjects.keda.sh",
]


@pytest.mark.parametrize("name", SAMPLED)
def test_real_definitions(published: Published, name: str) -> None:
    source, golden = SHARED / "crds" / "crd" / f"{name}.yaml.gz", SHARED / "crds" / "golden" / f"{name}.json.gz"
    if not source.exists():
        skip_without_data("crds")
    definition = yaml.load(gzip.decompress(source.read_bytes()), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    names = definition["spec"]["names"]
    names.setdefault("listKind", names["kind"] + "List")
    definition["status"] = {"acceptedNames": names}
    version = next(version["name"] for version in definition["spec"]["versions"] if version["served"])
    found = read(published.build(catalog_of(definition), at(f"{definition['spec']['group']}/{version}")))
    expected = json.loads(gzip.decompress(golden.read_bytes()))
    assert [path for path in found["paths"] if "/" + names["plural"] in path] == expected["openapiV3paths"]
    for schema, digest in expected["openapiV3"].items():
        text = json.dumps(bare(found["components"]["schemas"][schema]), sort_keys=True, ensure_ascii=False)
        assert hashlib.sha256(text.encode()).hexdigest()[:24] == digest
