"""The behaviour of custom resources: decoding, pruning, reading, conversion without a webhook, and their definitions."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.registry import stored_object
from noxu.registry.custom import shape_stored, versions_of
from noxu.registry.resource import Resource, ScalePaths, Versions
from noxu.values import Object, copy
from tests.drafts import warm
from tests.registry.world import GROUP, SCHEMA, version, widget, widgets

EMBEDDED: Final = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}}
FULL: Final[Object] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 1},
                "color": {"type": "string"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "embedded": EMBEDDED,
            },
        }
    },
}
V2: Final = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}}


@pytest.fixture
def versions() -> Versions:
    return widgets(version(schema=FULL), version("v2", V2))


@pytest.fixture
def v1(versions: Versions) -> Resource:
    return versions.storage


PRUNED: Final[dict[str, tuple[Object, Object, list[str]]]] = {
    # the object, then the pruned object, and the removed paths
    "nothing": (widget(size=2), widget(size=2), []),
    "an unknown field": (widget(sizee=2), widget(), ["spec.sizee"]),
    "an unknown field of an embedded object's metadata": (
        widget(embedded={"apiVersion": "v1", "kind": "A", "metadata": {"name": "e", "x": 1}}),
        widget(embedded={"apiVersion": "v1", "kind": "A", "metadata": {"name": "e"}}),
        ["spec.embedded.metadata.x"],
    ),
    "a null": (widget(color=None), widget(), []),
    "below a field that keeps everything": (widget(free={"a": {"b": None}}), widget(free={"a": {"b": None}}), []),
    "an object of another kind": ({**widget(x=1), "kind": "Gadget"}, {**widget(x=1), "kind": "Gadget"}, []),
    "an object of another group": (
        widget(api_version="other.com/v1", x=1),
        widget(api_version="other.com/v1", x=1),
        [],
    ),
    "an object of another version, by that version's schema": (
        widget(api_version=f"{GROUP}/v2", size=1, color="red"),
        widget(api_version=f"{GROUP}/v2", color="red"),
        ["spec.size"],
    ),
    "an object of a version that does not exist": (
        widget(api_version=f"{GROUP}/v9", size=1),
        {"apiVersion": f"{GROUP}/v9", "kind": "Widget", "metadata": {"name": "a"}},
        ["spec"],
    ),
}


@pytest.mark.parametrize(("value", "expected", "removed"), PRUNED.values(), ids=PRUNED)
def test_an_object_is_pruned_by_the_schema_of_its_version(
    v1: Resource, value: Object, expected: Object, removed: list[str]
) -> None:
    value = copy(value)
    assert v1.codec.prune(v1, value) == removed
    assert value == expected


METADATA: Final[dict[str, tuple[Any, Any, list[str] | str]]] = {
    # the metadata of a request; then the decoded metadata and its unknown fields, or the error
    "in order": ({"name": "a"}, {"name": "a"}, []),
    "an unknown field": ({"name": "a", "x": 1}, {"name": "a"}, ["metadata.x"]),
    "null": (None, None, []),
    "labels of the wrong type": ({"labels": 5}, None, "cannot unmarshal number into Go struct field ObjectMeta.labels"),
}


@pytest.mark.parametrize(("metadata", "expected", "unknown"), METADATA.values(), ids=METADATA)
def test_the_metadata_of_a_request_is_decoded(
    v1: Resource, metadata: Any, expected: Any, unknown: list[str] | str
) -> None:
    value = {**widget(), "metadata": metadata}
    if isinstance(unknown, str):
        with pytest.raises(ValueError, match=unknown):
            v1.codec.decode(v1, value)
        return
    assert v1.codec.decode(v1, value) == ({**widget(), "metadata": expected}, unknown)


def test_malformed_metadata_of_a_stored_object_is_dropped(v1: Resource) -> None:
    value = {**widget(x=1), "metadata": {"name": "a", "labels": 5, "generation": 3}}
    assert shape_stored(v1, value) == ["spec.x"]
    assert value["metadata"] == {"name": "a", "generation": 3}


READ: Final[dict[str, tuple[Object, Object]]] = {
    "pruned and defaulted": (widget(x=1, metadata={"generation": 2}), widget(size=1, metadata={"generation": 2})),
    "unchanged": (widget(size=3, metadata={"generation": 2}), widget(size=3, metadata={"generation": 2})),
    "from before generations were counted": (widget(size=3), widget(size=3, metadata={"generation": 1})),
    "a null where a default applies": (
        widget(size=None, metadata={"generation": 2}),
        widget(size=1, metadata={"generation": 2}),
    ),
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("stored", "expected"), READ.values(), ids=READ)
def test_a_stored_object_is_read_by_the_schema_in_force(
    v1: Resource, stored: Object, expected: Object, fast: bool
) -> None:
    if fast:
        warm(v1)
    else:
        v1.__dict__["compiled"] = None
    value = copy(stored)
    stored_object.read(v1, value)
    assert value == expected


@pytest.mark.parametrize(
    ("value", "accepted"),
    [
        (widget(size=2), True),
        (widget(), True),
        (widget(x=1), False),
        (widget(size="2"), False),
        (widget(metadata={"x": 1}), False),
        (widget(metadata={"labels": 5}), False),
        ({**widget(), "metadata": None}, False),
        ({**widget(), "kind": "Gadget"}, False),
        (widget(api_version=f"{GROUP}/v2"), False),
    ],
)
def test_the_fast_path_accepts_clean_objects_only(v1: Resource, value: Object, accepted: bool) -> None:
    warm(v1)
    value = copy(value)
    assert v1.codec.accept(v1, value) is accepted
    if accepted:
        assert "size" in value["spec"]


def test_the_fast_path_accepts_stored_objects_with_a_generation_only(v1: Resource) -> None:
    warm(v1)
    assert not v1.codec.accept(v1, widget(), stored=True)
    assert v1.codec.accept(v1, widget(metadata={"generation": 1}), stored=True)


def test_a_version_without_schema_has_no_fast_path(v1: Resource) -> None:
    v1.__dict__["compiled"] = None
    assert not v1.codec.accept(v1, widget())


def test_conversion_without_a_webhook_changes_the_version_and_prunes(versions: Versions) -> None:
    v2 = versions.find(f"{GROUP}/v2")
    assert v2 is not None
    value = v2.codec.convert(v2, widget(size=1, color="red", metadata={"generation": 1}))
    assert value == widget(api_version=f"{GROUP}/v2", color="red", metadata={"generation": 1})


@pytest.mark.parametrize(
    ("subresources", "subresource", "reset"),
    [
        ({"status": {}}, "", ("status",)),
        ({"status": {}}, "status", ("metadata", "spec")),
        ({}, "", ()),
    ],
)
def test_the_fields_that_an_endpoint_cannot_change(
    subresources: Object, subresource: str, reset: tuple[str, ...]
) -> None:
    resource = widgets(version(subresources=subresources)).storage
    assert resource.codec.reset_fields(resource, subresource) == reset


@pytest.mark.parametrize(
    ("spec", "texts"),
    [
        ({}, ("", "", "")),
        ({"size": 3, "color": "red", "on": True}, ("3", "red", "true")),
        ({"size": None, "color": "", "on": False}, ("", "", "false")),
    ],
)
def test_selectable_fields_as_text(spec: Object, texts: tuple[str, ...]) -> None:
    paths = (".spec.size", ".spec.color", ".spec.on")
    resource = widgets(version(selectableFields=[{"jsonPath": path} for path in paths])).storage
    expected = dict(zip(("spec.size", "spec.color", "spec.on"), texts, strict=True))
    assert resource.codec.selectable(resource, widget(**spec)) == expected
    assert resource.codec.unknown_field_label("spec.x") == "field label not supported: spec.x"


def test_the_resources_of_a_definition() -> None:
    names = {
        "plural": "widgets",
        "singular": "wid",
        "kind": "Widget",
        "listKind": "Widgets",
        "shortNames": ["w"],
        "categories": ["all"],
    }
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    spec = {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"plural": "not accepted", "kind": "Other"},
        "versions": [
            version(additionalPrinterColumns=columns),
            version("v2", served=False, subresources={}, deprecated=True),
        ],
    }
    found = versions_of({"spec": spec, "status": {"acceptedNames": names}}, 5)
    v1, v2 = found.all
    assert (found.storage, found.since, found.collection) == (v1, 5, f"{GROUP}/widgets")
    assert (v1.plural, v1.singular, v1.kind, v1.list_kind) == ("widgets", "wid", "Widget", "Widgets")
    assert (v1.short_names, v1.categories, v1.namespaced) == (["w"], ["all"], False)
    assert (v1.served, v2.served) == (True, False)
    assert (v1.subresources, v2.subresources) == ({"status", "scale"}, set())
    assert (v1.scale, v2.scale) == (ScalePaths(".spec.replicas", ".status.replicas", ".status.selector"), None)
    assert (v1.columns, v1.raw_schema) == (columns, SCHEMA)
    assert (v1.deprecation_text, v2.deprecation_text) == ("", f"{GROUP}/v2 Other is deprecated")  # sic, in upstream


def test_a_resource_knows_its_declared_schema_after_that_was_encoded() -> None:
    names = {"plural": "widgets", "kind": "Widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}
    spec = {
        "group": GROUP,
        "scope": "Namespaced",
        "names": names,
        "versions": [version, {**version, "name": "v2", "schema": None}],
    }
    v1, v2 = versions_of({"spec": spec, "status": {"acceptedNames": names}}, 5).all
    before = v1.schema
    for version_ in (v1, v2, v1):  # twice is once
        version_.keep_encoded()
    assert (v1.declared_schema, v1.raw_schema, v1.schema) == (SCHEMA, None, before)
    assert (v2.declared_schema, v2.schema) == (None, None)


def test_names_that_a_definition_does_not_have_are_derived() -> None:
    resource = widgets().storage
    assert (resource.singular, resource.list_kind) == ("widget", "WidgetList")


def test_the_version_of_a_stored_object(versions: Versions) -> None:
    v1, v2 = versions.all
    for api_version, expected in ((f"{GROUP}/v1", v1), (f"{GROUP}/v2", v2), (f"{GROUP}/v9", v1), ("", v1)):
        assert versions.of({"apiVersion": api_version}) is expected
    assert versions.of({}) is v1
    assert versions.has(v2)
    assert not versions.has(None)
    assert not versions.has(widgets().storage)
