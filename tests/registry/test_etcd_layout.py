"""Keys and values in etcd are those of kube-apiserver."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.registry import etcd_layout, storage_form
from noxu.registry.builtin import built_in_versions
from noxu.registry.etcd_layout import ChangedValues, KubernetesLayout
from noxu_storage.types import Key, Prefix
from tests.rows import rows

COLLECTIONS = [versions.collection for versions in built_in_versions()]
LAYOUT = KubernetesLayout("/registry", COLLECTIONS)

PLACES = [
    (Key("example.com/widgets", "default/", "a"), "/registry/example.com/widgets/default/a"),
    (Key("example.com/zones", "", "a"), "/registry/example.com/zones/a"),
    (
        Key("apiextensions.k8s.io/customresourcedefinitions", "", "widgets.example.com"),
        "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com",
    ),
    (Key("apiregistration.k8s.io/apiservices", "", "v1.apps"), "/registry/apiregistration.k8s.io/apiservices/v1.apps"),
    (Key("/pods", "default/", "a"), "/registry/pods/default/a"),
    (Key("/namespaces", "", "default"), "/registry/namespaces/default"),
    (Key("/events", "default/", "a.1"), "/registry/events/default/a.1"),
    (Key("apps/deployments", "default/", "a"), "/registry/deployments/default/a"),
    (Key("rbac.authorization.k8s.io/clusterroles", "", "system:node"), "/registry/clusterroles/system:node"),
    (Key("coordination.k8s.io/leases", "kube-system/", "a"), "/registry/leases/kube-system/a"),
    (Key("/services", "default/", "a"), "/registry/services/specs/default/a"),
    (Key("/endpoints", "default/", "a"), "/registry/services/endpoints/default/a"),
    (Key("/nodes", "", "a"), "/registry/minions/a"),
    (Key("/replicationcontrollers", "default/", "a"), "/registry/controllers/default/a"),
    (Key("networking.k8s.io/ingresses", "default/", "a"), "/registry/ingress/default/a"),
]
BESIDE = [
    (
        Key("rbac.authorization.k8s.io/clusterroles.custom", "", "a"),
        "/registry/rbac.authorization.k8s.io/clusterroles/a",
    ),
    (
        Key("networking.k8s.io/ingresses.custom", "default/", "a"),
        "/registry/networking.k8s.io/ingresses/default/a",
    ),
    (Key("events.k8s.io/events", "default/", "a"), "/registry/events.k8s.io/events/default/a"),
]
"""Custom resources with the names of a built-in kind."""
APART = [
    (
        Key("apiextensions.k8s.io/customresourcedefinitions.custom", "", "a"),
        "/registry/apiextensions.k8s.io/customresourcedefinitions.custom/a",
    ),
    (
        Key("apiregistration.k8s.io/apiservices.custom", "", "v1.apps"),
        "/registry/apiregistration.k8s.io/apiservices.custom/v1.apps",
    ),
]
"""Those that upstream has among the objects of the built-in kind."""


@rows(("key", "place"), [*PLACES, *BESIDE], ids=lambda each: each if isinstance(each, str) else "")
def test_an_object_is_where_kube_apiserver_has_it(key: Key, place: str) -> None:
    assert LAYOUT.key(key) == place.encode()
    assert LAYOUT.key_of(place.encode()) == key


@pytest.mark.parametrize(("key", "place"), APART, ids=[place for _, place in APART])
def test_what_upstream_has_among_built_in_objects_is_apart(key: Key, place: str) -> None:
    assert LAYOUT.key(key) == place.encode()
    assert LAYOUT.key_of(place.encode()) == key


@rows("name", sorted(storage_form.beside_custom()))
def test_custom_resources_with_the_names_of_a_built_in_kind_have_other_keys(name: str) -> None:
    built_in, custom = (Key(each, "", "a") for each in (name, storage_form.custom_collection(*name.split("/"))))
    assert LAYOUT.key(built_in) != LAYOUT.key(custom)
    assert LAYOUT.key_of(LAYOUT.key(custom)) == custom
    bounds = LAYOUT.range(Prefix(name))
    if bounds is not None:
        assert not bounds[0] <= LAYOUT.key(custom) < bounds[1]
    assert LAYOUT.to_etcd(custom, b'{"a":1}') == b'{"a":1}\n'


PARTS = st.sampled_from(
    [
        b"",
        b"\0",
        b"\1",
        b"\xff",
        "ä".encode(),
        b"a",
        b"default",
        b"pods",
        b"services",
        b"specs",
        b"example.com",
        b"minions",
    ]
)


@given(
    st.lists(st.lists(PARTS, min_size=1, max_size=5).map(b"/".join), max_size=30), st.sampled_from([b"/registry/", b""])
)
def test_remembered_directories_change_no_key(places: list[bytes], prefix: bytes) -> None:
    layout = KubernetesLayout("/registry", COLLECTIONS)
    for place in places:
        expected = KubernetesLayout("/registry", COLLECTIONS).key_of(prefix + place)
        assert [layout.key_of(prefix + place) for _ in range(2)] == [expected] * 2


def test_a_limited_number_of_directories_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd_layout, "MAX_DIRECTORIES", 10)
    layout = KubernetesLayout("/registry", COLLECTIONS)
    for number in range(25):
        assert layout.key_of(f"/registry/pods/n{number}/a".encode()) == Key("/pods", f"n{number}/", "a")
    assert len(layout._directories) <= 10


def test_every_built_in_kind_has_a_place_of_its_own() -> None:
    for partition in ("", "default/"):
        keys = [Key(collection, partition, "a") for collection in COLLECTIONS]
        assert [LAYOUT.key_of(LAYOUT.key(key)) for key in keys] == keys


@pytest.mark.parametrize(
    ("prefix", "first"),
    [
        (Prefix("example.com/widgets"), "/registry/example.com/widgets/"),
        (Prefix("example.com/widgets", "default/"), "/registry/example.com/widgets/default/"),
        (Prefix("example.com/zones", ""), "/registry/example.com/zones/"),
        (Prefix("/services"), "/registry/services/specs/"),
    ],
)
def test_a_collection_is_a_range_of_keys(prefix: Prefix, first: str) -> None:
    bounds = LAYOUT.range(prefix)
    assert bounds is not None
    assert bounds[0] == first.encode()


@pytest.mark.parametrize("prefix", ["/registry", "registry", "/registry/"])
def test_the_slashes_around_a_prefix_do_not_matter(prefix: str) -> None:
    assert KubernetesLayout(prefix, ()).prefix == b"/registry/"


@pytest.mark.parametrize(
    ("value", "stored"),
    [(b'{"a":1}', b'{"a":1}\n'), (b"\xd9\xd9\xf7\xa0", b"\xd9\xd9\xf7\xa0"), (b"garbage\n", b"garbage\n"), (b"", b"")],
)
def test_json_ends_with_a_newline(value: bytes, stored: bytes) -> None:
    key = Key("example.com/widgets", "default/", "a")
    assert LAYOUT.to_etcd(key, value) == stored
    assert LAYOUT.from_etcd(key, stored) == value


def test_json_of_others_may_lack_the_newline() -> None:
    assert LAYOUT.from_etcd(Key("example.com/widgets", "default/", "a"), b'{"a":1}') == b'{"a":1}'


CRDS = "apiextensions.k8s.io/customresourcedefinitions"
DEFINITION = Key(CRDS, "", "widgets.example.com")


def definition(plural: str) -> bytes:
    """A definition as the server writes it."""
    return (
        b'{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"%b.example.com"},'
        b'"spec":{"group":"example.com","names":{"plural":"%b","singular":"widget","kind":"Widget","listKind":"WidgetList"},'
        b'"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true}],"conversion":{"strategy":"None"}},'
        b'"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":["v1"]}}'
    ) % ((plural.encode(),) * 2)


def test_definitions_are_stored_as_v1beta1() -> None:
    value = definition("widgets")
    stored = LAYOUT.to_etcd(DEFINITION, value)
    assert b'"apiextensions.k8s.io/v1beta1"' in stored
    assert stored.endswith(b"}\n")
    assert KubernetesLayout("/registry", ()).from_etcd(DEFINITION, stored) == value


def test_a_definition_is_work_unless_this_server_has_written_it() -> None:
    layout, value = KubernetesLayout("/registry", ()), definition("widgets")
    assert layout.weight(DEFINITION, value) == len(value)
    stored = layout.to_etcd(DEFINITION, value)
    assert layout.weight(DEFINITION, stored) == 0
    assert layout.from_etcd(DEFINITION, stored) is value
    assert LAYOUT.weight(Key("/pods", "default/", "a"), b"{}" * 1000) == 0


def test_values_are_remembered_up_to_a_limit() -> None:
    written = ChangedValues(limit=10)
    written.remember(b"ab", b"123")
    written.remember(b"ab", b"123")
    written.remember(b"cd", b"456")
    assert (written.get(b"ab"), written.get(b"cd")) == (b"123", b"456")
    written.remember(b"e", b"")
    assert (written.get(b"ab"), written.get(b"cd"), written.get(b"e")) == (None, b"456", b"")
    written.remember(b"long", b"x" * 10)
    assert [written.get(stored) for stored in (b"cd", b"e", b"long")] == [None, None, None]


SECRET = Key("/secrets", "default/", "s")
STORED_SECRET = b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","uid":"u"},"type":"Opaque"}'


def test_built_in_kinds_are_written_in_the_form_of_the_layout() -> None:
    as_json = KubernetesLayout("/registry", COLLECTIONS)
    as_protobuf = KubernetesLayout("/registry", COLLECTIONS, "application/vnd.kubernetes.protobuf")
    assert as_json.to_etcd(SECRET, STORED_SECRET) == STORED_SECRET + b"\n"
    stored = as_protobuf.to_etcd(SECRET, STORED_SECRET)
    assert stored.startswith(b"k8s\0")
    for layout in (as_json, as_protobuf):
        assert layout.from_etcd(SECRET, stored) == STORED_SECRET
        assert layout.from_etcd(SECRET, STORED_SECRET + b"\n") == STORED_SECRET
    assert as_json.weight(SECRET, STORED_SECRET) == 0
    assert as_json.weight(SECRET, stored) == len(stored)
    assert as_protobuf.weight(SECRET, STORED_SECRET) == len(STORED_SECRET)
    assert as_protobuf.weight(SECRET, stored) == 0, "it is remembered"


@pytest.mark.parametrize("collection", ["example.com/widgets", "apiextensions.k8s.io/customresourcedefinitions"])
def test_custom_resources_and_definitions_are_always_json(collection: str) -> None:
    layout = KubernetesLayout("/registry", [*COLLECTIONS, DEFINITION.collection], "application/vnd.kubernetes.protobuf")
    value = definition("widgets")
    assert layout.to_etcd(Key(collection, "", "a"), value).endswith(b"}\n")
    assert layout.from_etcd(Key(collection, "", "a"), b"k8s\0") == b"k8s\0"
