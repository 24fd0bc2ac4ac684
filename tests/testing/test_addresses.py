"""How a test names kinds and objects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from noxu import Noxu
from noxu.registry.served_resources import Catalog
from noxu.testing import addresses
from tests.testing.widgets import DEFINITION, widget

OTHER = DEFINITION.replace("example.com", "z.example.org")  # a group that comes later


@pytest.fixture(scope="module")
def catalog() -> Iterator[Catalog]:
    with Noxu(None, [DEFINITION, OTHER]) as noxu:
        yield noxu._server.plane.catalog.current


KINDS = [
    ("Widget", "example.com/v1/widgets"),
    ("widgets", "example.com/v1/widgets"),
    ("widget", "example.com/v1/widgets"),
    ("wd", "example.com/v1/widgets"),
    ("widgets.example.com", "example.com/v1/widgets"),
    ("Widget.z.example.org", "z.example.org/v1/widgets"),
    ("widgets.v1alpha1.example.com", "example.com/v1alpha1/widgets"),
    ("example.com/v1alpha1/Widget", "example.com/v1alpha1/widgets"),
    ("pods", "/v1/pods"),
    ("po", "/v1/pods"),
    ("v1/Pod", "/v1/pods"),
    ("pods.", "/v1/pods"),
    ("events", "/v1/events"),
    ("events.events.k8s.io", "events.k8s.io/v1/events"),
    ("Deployment", "apps/v1/deployments"),
    ("crd", "apiextensions.k8s.io/v1/customresourcedefinitions"),
]


@pytest.mark.parametrize(("text", "expected"), KINDS, ids=[text for text, _ in KINDS])
def test_a_kind(text: str, expected: str, catalog: Catalog) -> None:
    found = addresses.find(catalog, text)
    assert f"{found.group}/{found.version}/{found.plural}" == expected


UNKNOWN = [
    ("widgtes", "no kind 'widgtes' is served; did you mean widgets"),
    ("widgets.example.net", "no kind 'widgets.example.net' is served"),
    ("example.com/v2/Widget", "no kind 'example.com/v2/Widget' is served"),
    ("xyz", "no kind 'xyz' is served$"),
]


@pytest.mark.parametrize(("text", "message"), UNKNOWN, ids=[text for text, _ in UNKNOWN])
def test_an_unknown_kind(text: str, message: str, catalog: Catalog) -> None:
    with pytest.raises(LookupError, match=message):
        addresses.find(catalog, text)


def test_an_object_is_its_own_address(catalog: Catalog) -> None:
    assert addresses.of(catalog, widget("a")).path() == "/apis/example.com/v1/namespaces/default/widgets/a"
    value = {**widget("a"), "metadata": {"name": "a", "namespace": "b"}}
    assert addresses.of(catalog, value).path("status") == "/apis/example.com/v1/namespaces/b/widgets/a/status"
    assert str(addresses.of(catalog, value)) == "Widget b/a"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert addresses.of(catalog, node).path() == "/api/v1/nodes/n"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"apiVersion": "example.com/v1", "kind": "Widget"}, "this Widget has no metadata.name"),
        (
            {"apiVersion": "example.com/v2", "kind": "Widget"},
            'no matches for kind "Widget" in version "example.com/v2"',
        ),
    ],
)
def test_an_object_without_an_address(value: dict[str, str], message: str, catalog: Catalog) -> None:
    with pytest.raises((LookupError, ValueError), match=message):
        addresses.of(catalog, value)


def test_names_are_escaped(catalog: Catalog) -> None:
    assert addresses.of(catalog, "ClusterRole", "system:a/b").path().endswith("/clusterroles/system%3Aa%2Fb")
