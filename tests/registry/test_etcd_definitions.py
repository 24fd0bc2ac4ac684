"""Definitions in etcd have the bytes of apiextensions-apiserver, and are read back unchanged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noxu.api import codec
from noxu.crd import types
from noxu.registry import etcd_layout
from noxu.registry.etcd_layout import from_etcd, to_etcd
from noxu.values import Json, Object
from tests.properties.structurals import roots

TIME = "2020-01-02T03:04:05Z"
WIDGETS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com", "uid": "1f2e", "generation": 1, "creationTimestamp": TIME, "labels": {"a": "<b>&"}},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["w"]},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"n": {"type": "number", "minimum": -0.0, "maximum": 1e21, "default": 1.0}}}},
            "additionalPrinterColumns": [{"name": "N", "type": "number", "jsonPath": ".n"}],
        }],
    },
    "status": {
        "conditions": [{"type": "Established", "status": "True", "lastTransitionTime": TIME, "reason": "R"}],
        "acceptedNames": {"plural": "widgets", "singular": "widget", "shortNames": ["w"], "kind": "Widget", "listKind": "WidgetList"},
        "storedVersions": ["v1"],
    },
}  # fmt: skip
STORED = (
    rb'{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",'
    rb'"metadata":{"name":"widgets.example.com","uid":"1f2e","generation":1,"creationTimestamp":"2020-01-02T03:04:05Z",'
    rb'"labels":{"a":"\u003cb\u003e\u0026"}},'
    rb'"spec":{"group":"example.com","version":"v1",'
    rb'"names":{"plural":"widgets","singular":"widget","shortNames":["w"],"kind":"Widget","listKind":"WidgetList"},'
    rb'"scope":"Namespaced",'
    rb'"validation":{"openAPIV3Schema":{"type":"object","properties":'
    rb'{"n":{"type":"number","default":1,"maximum":1e+21,"minimum":-0}}}},'
    rb'"subresources":{"status":{}},'
    rb'"versions":[{"name":"v1","served":true,"storage":true}],'
    rb'"additionalPrinterColumns":[{"name":"N","type":"number","JSONPath":".n"}],'
    rb'"conversion":{"strategy":"None"},"preserveUnknownFields":false},'
    rb'"status":{"conditions":[{"type":"Established","status":"True","lastTransitionTime":"2020-01-02T03:04:05Z","reason":"R"}],'
    rb'"acceptedNames":{"plural":"widgets","singular":"widget","shortNames":["w"],"kind":"Widget","listKind":"WidgetList"},'
    rb'"storedVersions":["v1"]}}'
)


def as_written(crd: Object) -> bytes:
    """A definition as the server writes it."""
    decoded = types.decode(crd)
    assert (decoded.error, decoded.unknown) == ("", [])
    return codec.encode(types.written(types.default(decoded.value)), sort_keys=False)


def test_the_bytes_are_those_of_apiextensions_apiserver() -> None:
    assert to_etcd(as_written(WIDGETS)) == STORED
    assert from_etcd(STORED) == as_written(WIDGETS)


BETA = json.loads(STORED, parse_int=lambda text: -0.0 if text == "-0" else int(text))
OTHERS: list[tuple[str, bytes]] = [
    ("v1beta1, indented", json.dumps(BETA, indent=2).encode()),
    ("v1beta1 in another order", json.dumps(BETA, sort_keys=True).encode()),
    ("v1, as it was sent", codec.encode(WIDGETS, sort_keys=True)),
    ("unknown fields", codec.encode({**WIDGETS, "more": 1}, sort_keys=False)),
    ("a newline at the end", STORED + b"\n"),
]


@pytest.mark.parametrize("stored", [row[1] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_what_others_wrote_is_read_as_it_would_be_written(stored: bytes) -> None:
    assert from_etcd(stored) == as_written(WIDGETS)


UNREADABLE: list[tuple[str, bytes]] = [
    ("not JSON", b"not json"),
    ("nothing", b""),
    ("not an object", b"[1]"),
    ("another kind", b'{"kind":"ConfigMap","apiVersion":"v1"}'),
    ("another version", b'{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v2"}'),
    ("a version that is no text", b'{"kind":"CustomResourceDefinition","apiVersion":{}}'),
    ("a wrong type", b'{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","spec":{"group":1}}'),
]


@pytest.mark.parametrize("value", [row[1] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_what_is_not_a_definition_is_unchanged(value: bytes) -> None:
    assert (to_etcd(value), from_etcd(value)) == (value, value)


COLUMNS = [{"name": "A", "type": "string", "jsonPath": ".spec.a", "priority": 1}]
SERVICE = {"service": {"namespace": "n", "name": "s", "path": "/p"}, "caBundle": "YQ=="}
parts = {
    "subresources": st.sampled_from([{}, {"status": {}}, {"scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b"}}]),
    "additionalPrinterColumns": st.sampled_from([[], COLUMNS, [*COLUMNS, {**COLUMNS[0], "description": "é<>&"}]]),
    "selectableFields": st.sampled_from([[], [{"jsonPath": ".spec.a"}]]),
    "deprecated": st.booleans(),
    "deprecationWarning": st.sampled_from(["", "old"]),
}  # fmt: skip
conversions = st.one_of(
    st.sampled_from([None, {"strategy": "None"}, {"strategy": "None", "webhook": {"conversionReviewVersions": []}}]),
    st.fixed_dictionaries({
        "strategy": st.just("Webhook"),
        "webhook": st.fixed_dictionaries({
            "clientConfig": st.sampled_from([SERVICE, {"url": "https://a.example.com"}]),
            "conversionReviewVersions": st.sampled_from([["v1"], ["v1beta1"], ["v1", "v1beta1"]]),
        }),
    }),
)  # fmt: skip


@st.composite
def definitions(draw: st.DrawFn) -> Object:
    """Definitions whose versions often have the same schema, columns and so on."""
    schemas = draw(st.lists(roots(), min_size=1, max_size=2))
    versions: list[Json] = []
    for name in draw(st.sampled_from([["v1"], ["v1", "v2"], ["v2", "v1beta1", "v1"]])):
        schema = draw(st.sampled_from([{}, *({"openAPIV3Schema": schema} for schema in schemas)]))
        optional = draw(st.fixed_dictionaries({}, optional=parts))
        versions.append(
            {"name": name, "served": draw(st.booleans()), "storage": name == "v1", "schema": schema, **optional}
        )
    spec = {**WIDGETS["spec"], "versions": versions, "conversion": draw(conversions)}
    return {**WIDGETS, "spec": spec | {"preserveUnknownFields": draw(st.booleans())}}


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(definitions())
def test_reading_what_was_written_gives_the_same_bytes(crd: Object) -> None:
    value = as_written(crd)
    stored = to_etcd(value)
    assert json.loads(stored)["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    assert from_etcd(stored) == value
    assert from_etcd(value) == value


def test_the_collection_is_that_of_definitions() -> None:
    assert etcd_layout.COLLECTION == "apiextensions.k8s.io/customresourcedefinitions"
