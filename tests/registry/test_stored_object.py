"""Entries: the resourceVersion is inserted into the stored bytes, which are decoded only if the schema has changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.api.names import check_path_name
from noxu.registry.builtin import built_in_versions
from noxu.registry.resource import Resource, Versions
from noxu.registry.stored_object import (
    StoredObject,
    bodies_at,
    body_at,
    body_before_storage,
    converted_entry,
    fields_of,
    is_rendered,
    key_of,
    labels_of,
    new_entry,
    object_at,
    packed_labels,
    render,
    served_bytes,
)
from noxu.values import Object
from noxu_storage.types import Key
from tests.registry.world import GROUP, version, widget, widgets

UID: Final = "0e5c1c1c-0000-4000-8000-000000000000"
ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
WIDGETS: Final = widgets(version(schema=ANYTHING)).storage
CONFIG_MAPS: Final = next(found.storage for found in built_in_versions() if found.collection == "/configmaps")
BOTH: Final = pytest.mark.parametrize("resource", [WIDGETS, CONFIG_MAPS], ids=lambda resource: resource.kind)


def object_of(resource: Resource, metadata: Object, **fields: Any) -> Object:
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {"name": "a", "generation": 1, **metadata},
        **fields,
    }


def entry_of(resource: Resource, value: Object, revision: int = 7) -> StoredObject:
    """The entry of an object that a write has stored."""
    entry = new_entry(key_of(resource, "default", "a"), resource, value)
    entry.revision = revision
    return entry


def read_back(entry: StoredObject) -> StoredObject:
    """The same entry, read from the store after a restart."""
    return StoredObject(entry.key, entry.stored, entry.revision)


OWNER: Final = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "owner"}
METADATA: Final[dict[str, tuple[Object, bool]]] = {
    # metadata, and whether the resourceVersion is inserted into the bytes
    "a uid": ({"uid": UID}, True),
    "a label uid": ({"labels": {"uid": "x"}, "uid": UID}, True),
    "an annotation that quotes a uid": ({"uid": UID, "annotations": {"a": '"uid":"x"', "uid": '"uid":"y"'}}, True),
    "an owner": ({"uid": UID, "ownerReferences": [OWNER]}, True),
    "names that need escapes": ({"uid": UID, "annotations": {'"\\"': '\\"uid\\":\\"'}}, True),
    "text outside of ASCII": ({"uid": UID, "annotations": {"ü": "☃"}}, True),
    "a generated name": ({"uid": UID, "generateName": "uid"}, True),
    "owned metadata": (
        {"uid": UID, "managedFields": [{"manager": "m", "fieldsV1": {"f:metadata": {"f:uid": {}}}}]},
        True,
    ),
    "no uid": ({}, False),
    "no uid but that of an owner": ({"ownerReferences": [OWNER]}, False),
    "no uid but a label of that name": ({"labels": {"uid": "x"}}, False),
}


@BOTH
@pytest.mark.parametrize(("metadata", "spliced"), METADATA.values(), ids=METADATA)
def test_the_resource_version_is_inserted_after_or_before_the_uid(
    resource: Resource, metadata: Object, spliced: bool
) -> None:
    written = entry_of(resource, object_of(resource, metadata, spec={"uid": "spec", "metadata": {"uid": "x"}}))
    for entry in (written, read_back(written)):
        body = body_at(entry, resource)
        value = object_at(entry, resource)
        assert value["metadata"]["resourceVersion"] == "7"
        assert {name: item for name, item in value["metadata"].items() if name != "resourceVersion"} == (
            codec.decode_stored(entry.stored)["metadata"]
        )
        assert codec.decode_stored(body) == value
        assert is_rendered(entry, resource) == spliced
        if resource.is_custom:
            assert body == codec.encode(value, sort_keys=True)
        elif spliced:
            names = list(codec.decode_stored(body)["metadata"])
            assert names[names.index("uid") + 1] == "resourceVersion"


def test_the_bytes_of_a_config_map_are_cut_after_the_uid() -> None:
    entry = entry_of(CONFIG_MAPS, object_of(CONFIG_MAPS, {"uid": "u"}, data={"uid": "x"}))
    assert (
        entry.stored
        == b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"u","generation":1},"data":{"uid":"x"}}'
    )
    assert body_at(entry, CONFIG_MAPS) == (
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"7","generation":1},"data":{"uid":"x"}}'
    )


def test_the_bytes_of_a_custom_resource_are_cut_before_the_uid() -> None:
    entry = entry_of(WIDGETS, object_of(WIDGETS, {"uid": "u"}, spec={"uid": "x"}))
    assert entry.stored == (
        b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a","uid":"u"},"spec":{"uid":"x"}}'
    )
    assert body_at(entry, WIDGETS) == (
        b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a","resourceVersion":"7","uid":"u"},"spec":{"uid":"x"}}'
    )


@pytest.mark.parametrize(
    ("fields", "spliced"),
    [({}, True), ({"spec": {}}, True), ({"zzz": 1}, True), ({"data": 1}, False), ({"Kind": 1}, False)],
    ids=["no other field", "spec", "a later one", "an earlier one", "a capital"],
)
def test_top_level_fields_that_sort_before_metadata(fields: Object, spliced: bool) -> None:
    entry = entry_of(WIDGETS, object_of(WIDGETS, {"uid": UID}, **fields))
    assert is_rendered(entry, WIDGETS) is spliced
    assert body_at(entry, WIDGETS) == codec.encode(object_at(entry, WIDGETS), sort_keys=True)


# -- the rendering ----------------------------------------------------------------------------------------------------


@BOTH
def test_an_object_is_stored_without_its_resource_version(resource: Resource) -> None:
    entry = entry_of(resource, object_of(resource, {"uid": UID, "resourceVersion": "3"}))
    assert b"resourceVersion" not in entry.stored
    assert object_at(entry, resource)["metadata"]["resourceVersion"] == "7"


@BOTH
def test_an_entry_is_rendered_once(resource: Resource, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = read_back(entry_of(resource, object_of(resource, {"uid": UID})))
    first = render(entry, resource.versions)
    assert (first.body, served_bytes(entry)) == (None, entry.stored)  # one copy in memory
    monkeypatch.delattr(codec, "decode_stored")
    assert render(entry, resource.versions) is first
    assert body_at(entry, resource).count(b'"resourceVersion":"7"') == 1


@BOTH
def test_entries_with_the_same_offset_share_their_rendering(resource: Resource) -> None:
    values = [object_of(resource, {"uid": UID, "labels": {"a": label}}) for label in ("b", "c", "long")]
    first, second, other = [entry_of(resource, value).rendering for value in values]
    assert first is second
    assert (other.resource, other.body, other.valid) == (resource, None, first.valid)


def test_an_entry_at_another_revision_keeps_its_rendering_and_indexes() -> None:
    entry = entry_of(WIDGETS, object_of(WIDGETS, {"uid": UID, "labels": {"a": "b"}}))
    fields_of(entry, WIDGETS)
    copy = entry.with_revision(9)
    assert (copy.rendering, copy.labels, copy.fields) == (entry.rendering, entry.labels, entry.fields)
    assert b'"resourceVersion":"9"' in body_at(copy, WIDGETS)
    assert b'"resourceVersion":"7"' in body_at(entry, WIDGETS)


def schema_of(**properties: Object) -> Object:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


OLD: Final = schema_of(old={"type": "integer"}, size={"type": "integer"})
NEW: Final = schema_of(size={"type": "integer"}, color={"type": "string", "default": "red"})


def test_an_entry_is_rendered_again_for_a_new_schema() -> None:
    """The stored bytes do not change: what the old schema described is there when it is described again."""
    before, after = widgets(version(schema=OLD)).storage, widgets(version(schema=NEW)).storage
    entry = entry_of(before, widget(metadata={"uid": UID}, old=1, size=2))
    stored = entry.stored
    assert object_at(entry, before)["spec"] == {"old": 1, "size": 2}
    assert codec.decode_stored(body_at(entry, after))["spec"] == {"size": 2, "color": "red"}
    assert body_at(entry, after) == codec.encode(object_at(entry, after), sort_keys=True)
    assert object_at(entry, before)["spec"] == {"old": 1, "size": 2}
    assert entry.stored is stored


def test_an_entry_that_is_not_served_as_stored_is_rendered_when_it_is_read() -> None:
    resource = widgets(version(schema=NEW)).storage
    entry = new_entry(key_of(resource, "default", "a"), resource, widget(metadata={"uid": UID}), served_as_stored=False)
    assert not is_rendered(entry, resource)
    assert codec.decode_stored(body_at(entry, resource))["spec"] == {"color": "red"}


# -- versions ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def two() -> Versions:
    return widgets(version(schema=OLD), version("v2", NEW))


def at(versions: Versions, name: str) -> Resource:
    found = versions.find(f"{GROUP}/{name}")
    assert found is not None
    return found


def test_an_entry_is_converted_to_another_version_and_pruned_there(two: Versions) -> None:
    entry = entry_of(two.storage, widget(metadata={"uid": UID}, old=1, size=2))
    value = object_at(entry, at(two, "v2"))
    assert (value["apiVersion"], value["spec"]) == (f"{GROUP}/v2", {"size": 2})
    assert body_at(entry, at(two, "v2")) == codec.encode(value, sort_keys=True)
    assert body_at(entry, two.storage) == codec.encode(object_at(entry, two.storage), sort_keys=True)


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_the_bodies_of_entries_are_those_of_each_entry(two: Versions, name: str) -> None:
    """Rendered or not, of this or another version, with or without a place for the resourceVersion."""
    entries = [
        entry_of(at(two, stored), widget(api_version=f"{GROUP}/{stored}", metadata=metadata, size=2), revision=n)
        for n, metadata in enumerate(metadata for metadata, _ in METADATA.values())
        for stored in ("v1", "v2")
    ]
    entries += [read_back(entry) for entry in entries]
    expected = [body_at(entry.with_revision(entry.revision), at(two, name)) for entry in entries]
    assert bodies_at(entries, at(two, name)) == expected
    assert bodies_at(entries, at(two, name)) == expected, "now all are rendered"


def test_the_bodies_of_built_in_entries_are_those_of_each_entry() -> None:
    entries = [entry_of(CONFIG_MAPS, object_of(CONFIG_MAPS, metadata)) for metadata, _ in METADATA.values()]
    assert bodies_at(entries, CONFIG_MAPS) == [body_at(read_back(entry), CONFIG_MAPS) for entry in entries]


def test_an_entry_has_the_version_in_which_it_was_stored(two: Versions) -> None:
    entry = read_back(entry_of(at(two, "v2"), widget(api_version=f"{GROUP}/v2", metadata={"uid": UID}, size=2)))
    assert render(entry, two).resource is at(two, "v2")
    assert codec.decode_stored(body_at(entry, at(two, "v2")))["spec"] == {"size": 2, "color": "red"}
    assert object_at(entry, two.storage)["apiVersion"] == f"{GROUP}/v1"


def test_an_entry_whose_version_no_longer_exists_cannot_be_rendered(two: Versions) -> None:
    entry = read_back(entry_of(two.storage, widget(api_version=f"{GROUP}/v0", metadata={"uid": UID})))
    with pytest.raises(ApiError, match=r"invalid group/version: example\.com/v0"):
        render(entry, two)


def test_a_converted_entry_is_served_at_its_version_without_decoding(two: Versions) -> None:
    v2 = at(two, "v2")
    entry = entry_of(two.storage, widget(metadata={"uid": UID}))
    value = widget(api_version=v2.api_version, metadata={"uid": UID, "labels": {"a": "b"}}, size=5)
    converted = converted_entry(entry, v2, value)
    assert is_rendered(converted, v2)
    assert labels_of(converted) == {"a": "b"}
    assert b'"resourceVersion":"7"' in body_at(converted, v2)
    assert object_at(converted, v2)["spec"] == {"size": 5}


def before_storage() -> Iterator[Any]:
    two = widgets(version(schema=OLD), version("v2", NEW))
    yield pytest.param(CONFIG_MAPS, CONFIG_MAPS, id="a ConfigMap")
    yield pytest.param(two.storage, two.storage, id="a Widget at the storage version")
    yield pytest.param(two.storage, at(two, "v2"), id="a Widget at another version")


@pytest.mark.parametrize(("stored", "shown"), list(before_storage()))
def test_an_object_that_is_not_stored_has_no_resource_version(stored: Resource, shown: Resource) -> None:
    entry = new_entry(key_of(stored, "default", "a"), stored, object_of(stored, {"uid": UID}))
    value = codec.decode_stored(body_before_storage(entry, shown, ""))
    assert value["apiVersion"] == shown.api_version
    assert value["metadata"] == {"name": "a", "generation": 1, "uid": UID}


@pytest.mark.parametrize(("stored", "shown"), list(before_storage()))
def test_an_object_that_is_not_stored_has_the_resource_version_that_was_sent(stored: Resource, shown: Resource) -> None:
    entry = new_entry(key_of(stored, "default", "a"), stored, object_of(stored, {"uid": UID}))
    value = codec.decode_stored(body_before_storage(entry, shown, "0"))
    assert value["metadata"] == {"name": "a", "generation": 1, "uid": UID, "resourceVersion": "0"}


# -- indexes ----------------------------------------------------------------------------------------------------------

LABELS: Final[dict[str, tuple[bytes, Object]]] = {
    "labels": (b'{"metadata":{"labels":{"a":"b"}}}', {"a": "b"}),
    "no labels": (b'{"metadata":{}}', {}),
    "null": (b'{"metadata":{"labels":null}}', {}),
    "a list": (b'{"metadata":{"labels":["a"]}}', {}),
    "no metadata": (b"{}", {}),
    "malformed metadata": (b'{"metadata":5}', {}),
    "no object": (b"[1]", {}),
}


@pytest.mark.parametrize(("stored", "labels"), LABELS.values(), ids=LABELS)
def test_labels_of_any_stored_object(stored: bytes, labels: Object) -> None:
    entry = StoredObject(Key("c", "", "a"), stored, 1)
    assert labels_of(entry) == labels
    assert packed_labels(entry) is entry.labels


def test_fields_for_selectors_are_those_of_the_version() -> None:
    selectable = [{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.color"}]
    resource = widgets(version(schema=NEW, selectableFields=selectable)).storage
    entry = entry_of(resource, widget(metadata={"uid": UID}, size=2))
    expected = {"metadata.name": "a", "metadata.namespace": "default", "spec.size": "2", "spec.color": ""}
    assert fields_of(entry, resource) == expected
    assert fields_of(entry, resource) is fields_of(entry, resource)
    other = widgets(version(schema=NEW)).storage
    assert fields_of(entry, other) == {"metadata.name": "a", "metadata.namespace": "default"}


def test_fields_that_the_key_has_are_not_kept() -> None:
    entry = entry_of(WIDGETS, object_of(WIDGETS, {"uid": UID}))
    assert fields_of(entry, WIDGETS) == {"metadata.name": "a", "metadata.namespace": "default"}
    assert entry.fields is None


def test_cluster_scoped_objects_have_no_namespace_for_selectors() -> None:
    resource = widgets(scope="Cluster").storage
    entry = new_entry(key_of(resource, "", "a"), resource, widget(metadata={"uid": UID}))
    assert (entry.namespace, fields_of(entry, resource)) == ("", {"metadata.name": "a"})


NAMES: list[tuple[str, str | None]] = [
    ("a", None),
    ("No Name", None),
    (".", """Name parameter invalid: ".": may not be '.'"""),
    ("..", """Name parameter invalid: "..": may not be '..'"""),
    ("a%", """Name parameter invalid: "a%": may not contain '%'"""),
    ("a/b", """Name parameter invalid: "a/b": may not contain '/'"""),
    ("/%", """Name parameter invalid: "/%": may not contain '/';may not contain '%'"""),
]


@pytest.mark.parametrize(("name", "message"), NAMES)
def test_the_name_in_a_path(name: str, message: str | None) -> None:
    if message is None:
        check_path_name(name)
        return
    with pytest.raises(ApiError) as caught:
        check_path_name(name)
    assert (caught.value.code, caught.value.message) == (400, message)


SHARED_LABELS: Final[list[tuple[str, Any]]] = [
    ("none", None),
    ("an empty map", {}),
    ("labels", {"app": "a", "team": "blue"}),
    ("labels in another order", {"team": "blue", "app": "a"}),
    ("a value that is no text", {"app": ["a"]}),
]


@pytest.mark.parametrize("labels", [row[1] for row in SHARED_LABELS], ids=[row[0] for row in SHARED_LABELS])
def test_objects_with_the_same_labels_share_them(labels: Any) -> None:
    def entry(name: str) -> StoredObject:
        metadata = {"name": name, "uid": UID, **({} if labels is None else {"labels": dict(labels)})}
        return new_entry(key_of(WIDGETS, "n", name), WIDGETS, object_of(WIDGETS, metadata))

    first, second = entry("a"), entry("b")
    assert labels_of(first) == labels_of(second) == (labels or {})
    assert list(labels_of(first)) == list(labels or {})
    if labels is None or all(type(value) is str for value in labels.values()):
        assert packed_labels(first) is packed_labels(second)


def test_keys_of_a_namespace_share_its_name() -> None:
    namespace = "".join(["na", "me"])
    assert key_of(WIDGETS, namespace, "a").partition is key_of(WIDGETS, "name", "b").partition
