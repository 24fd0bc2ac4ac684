"""Schemas by the names of their files: which file is found, what it becomes, what cannot be read."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from noxu.crd.json_schemas import structural
from noxu.manifests.documents import Document, LoadError
from noxu.manifests.schema_bundles import MAX_BYTES, MAX_DEPTH, definitions
from noxu.values import Object
from tests.definitions import widgets
from tests.rows import rows

SCHEMA: Object = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
}


def document(api_version: str = "example.com/v1", kind: str = "Widget") -> Document:
    return Document({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}, "a.yaml")


def bundle(directory: Path, *names: str) -> Path:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(json.dumps(SCHEMA))
    return directory


@rows(
    "name",
    [
        "example.com/widget_v1.json",
        "deep/er/example.com/Widget_v1.json",
        "widget-example.com-v1.json",
        "widget-example-v1.json",
        "master/widget-example-v1.json",
        "example.com_widget_v1.json",
    ],
)
def test_a_file_is_found_by_its_name(name: str, tmp_path: Path) -> None:
    directory = bundle(tmp_path / name.replace("/", "-"), name)
    [found] = definitions([directory], [document()])
    assert (found.name, found.file.lower()) == ("widgets.example.com", str(directory / name.lower()).lower())
    assert (
        found.value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        == SCHEMA["properties"]["spec"]
    )


@rows(
    "what, name, documents",
    [
        ("another group", "other.com/widget_v1.json", [document()]),
        ("another version", "example.com/widget_v1.json", [document("example.com/v2")]),
        ("a built-in kind", "deployment-apps-v1.json", [document("apps/v1", "Deployment")]),
        ("a kind of the core group", "configmap-v1.json", [document("v1", "ConfigMap")]),
        ("a kind with a CRD", "example.com/widget_v1.json", [document(), Document(widgets(), "crd.yaml")]),
    ],
)
def test_other_files_are_left_alone(what: str, name: str, documents: list[Document], tmp_path: Path) -> None:
    assert definitions([bundle(tmp_path / what, name)], documents) == []


def test_a_kind_has_all_versions_that_documents_need(tmp_path: Path) -> None:
    directory = bundle(
        tmp_path, "example.com/widget_v1.json", "example.com/widget_v2.json", "example.com/widget_v3.json"
    )
    [found] = definitions([directory], [document(), document("example.com/v3")])
    assert [version["name"] for version in found.value["spec"]["versions"]] == ["v1", "v3"]


@pytest.mark.parametrize("kind", ["a.tar.gz", "a.tgz", "a.tar", "a.zip", "widget-example-v1.json"])
def test_a_bundle_may_be_a_file(kind: str, tmp_path: Path) -> None:
    directory, path = bundle(tmp_path / "b", "example.com/widget_v1.json", "widget-example-v1.json"), tmp_path / kind
    if kind.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(directory / "example.com/widget_v1.json", "catalog/example.com/widget_v1.json")
    elif kind.endswith(".json"):
        path = directory / kind
    else:
        with tarfile.open(path, "w:gz" if kind.endswith("gz") else "w") as tar:
            tar.add(directory, "catalog")
    assert [found.name for found in definitions([path], [document()])] == ["widgets.example.com"]


@rows(
    "what, content, why",
    [
        ("no JSON", b"{", "it cannot be read"),
        ("no object", b"[]", "a JSON schema is an object"),
        ("a large file", b" " * (MAX_BYTES + 1), "it is larger than"),
        (
            "a deep schema",
            b'{"items": ' * 3000 + b"{}" + b"}" * 3000,
            f"it is nested more than {MAX_DEPTH} levels deep",
        ),
    ],
)
def test_a_schema_that_cannot_be_read_is_a_sentence(what: str, content: bytes, why: str, tmp_path: Path) -> None:
    tmp_path.joinpath("widget-example-v1.json").write_bytes(content)
    with pytest.raises(LoadError, match=f"widget-example-v1.json: .*{why}"):
        definitions([tmp_path], [document()])


@pytest.mark.parametrize("given", ["example.com", "example.com/widget_v1.json"])
def test_the_group_may_stand_in_the_path_that_is_given(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle(tmp_path, "example.com/widget_v1.json")
    assert [found.name for found in definitions([tmp_path / given], [document()])] == ["widgets.example.com"]
    monkeypatch.chdir(tmp_path / "example.com")
    within = Path(given).relative_to("example.com")
    assert [found.name for found in definitions([within], [document()])] == ["widgets.example.com"]


@rows(
    "what, opening, closing",
    [
        ("items", b'{"items":', b"}"),
        ("fields", b'{"properties":{"a":', b"}}"),
        ("branches", b'{"anyOf":[', b"]}"),
    ],
)
def test_the_deepest_schemas_can_be_read(what: str, opening: bytes, closing: bytes, tmp_path: Path) -> None:
    nodes = (MAX_DEPTH - 1) // len(closing)
    (tmp_path / what).mkdir()
    (tmp_path / what / "widget-example-v1.json").write_bytes(opening * nodes + b"{}" + closing * nodes)
    assert [found.name for found in definitions([tmp_path / what], [document()])] == ["widgets.example.com"]


@rows(
    "what, schema",
    [
        ("a junctor", {"anyOf": None}),
        ("a list of types", {"type": ["string", {}]}),
        ("fields", {"properties": ["a"]}),
        ("names of fields", {"required": True}),
        ("a name of a field", {"required": [{}]}),
        ("items", {"items": None}),
        ("a negation", {"not": 3}),
    ],
)
def test_what_is_no_schema_is_left_to_the_server(what: str, schema: Object) -> None:
    assert structural(schema)["type"] == "object", what
    assert "a" in structural({"properties": {"a": schema}})["properties"], what


@rows(
    "what, schema, expected",
    [
        ("unknown fields are pruned", {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": False}, {"type": "object", "properties": {"b": {"type": "string"}}}),
        ("null is a type", {"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ("int or string", {"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"x-kubernetes-int-or-string": True}),
        ("int or string, as types", {"type": ["integer", "string"]}, {"x-kubernetes-int-or-string": True}),
        ("a constant", {"type": "string", "const": "x"}, {"type": "string", "enum": ["x"]}),
        ("exclusive bounds", {"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 0, "exclusiveMinimum": True}),
        ("a type is implied", {"properties": {"b": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}, "type": "object"}),
        ("a reference is open", {"$ref": "#/definitions/b"}, {"x-kubernetes-preserve-unknown-fields": True}),
        ("no schema is open", True, {"x-kubernetes-preserve-unknown-fields": True}),
        ("a list of anything", {"type": "array"}, {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}),
        ("a map", {"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object", "additionalProperties": {"type": "string"}}),
        ("a branch only restricts", {"type": "object", "anyOf": [{"type": "object", "required": ["b"], "description": "c"}]}, {"type": "object", "anyOf": [{"required": ["b"]}]}),
        ("rules stay", {"type": "string", "x-kubernetes-validations": [{"rule": "true"}]}, {"type": "string", "x-kubernetes-validations": [{"rule": "true"}]}),
    ],
)  # fmt: skip
def test_a_json_schema_becomes_structural(what: str, schema: object, expected: Object) -> None:
    made = structural(
        {"type": "object", "required": ["a", "kind"], "properties": {"a": schema, "metadata": {"$ref": "x"}}}
    )
    assert made["properties"]["a"] == expected, what
    assert (made["required"], made["properties"]["metadata"]) == (["a"], {"type": "object"})
