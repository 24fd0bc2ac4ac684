"""How a test names kinds and objects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from noxu import Noxu
from noxu.registry.served_resources import ServedResources
from noxu.testing import addresses
from tests.testing.widgets import DEFINITION, widget

OTHER = DEFINITION.replace("example.com", "z.example.org")  # a group that comes later


@pytest.fixture(scope="module")
def served_resources() -> Iterator[ServedResources]:
    with Noxu(None, [DEFINITION, OTHER]) as noxu:
        yield noxu._server.plane.served_resources.current


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
def test_a_kind(text: str, expected: str, served_resources: ServedResources) -> None:
    found = addresses.find(served_resources, text)
    assert f"{found.group}/{found.version}/{found.plural}" == expected


UNKNOWN = [
    ("widgtes", "no kind 'widgtes' is served; did you mean widgets"),
    ("widgets.example.net", "no kind 'widgets.example.net' is served"),
    ("example.com/v2/Widget", "no kind 'example.com/v2/Widget' is served"),
    ("xyz", "no kind 'xyz' is served$"),
]


@pytest.mark.parametrize(("text", "message"), UNKNOWN, ids=[text for text, _ in UNKNOWN])
def test_an_unknown_kind(text: str, message: str, served_resources: ServedResources) -> None:
    with pytest.raises(LookupError, match=message):
        addresses.find(served_resources, text)


def test_an_object_is_its_own_address(served_resources: ServedResources) -> None:
    assert addresses.of(served_resources, widget("a")).path() == "/apis/example.com/v1/namespaces/default/widgets/a"
    value = {**widget("a"), "metadata": {"name": "a", "namespace": "b"}}
    assert addresses.of(served_resources, value).path("status") == "/apis/example.com/v1/namespaces/b/widgets/a/status"
    assert str(addresses.of(served_resources, value)) == "Widget b/a"
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    assert addresses.of(served_resources, node).path() == "/api/v1/nodes/n"


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
def test_an_object_without_an_address(value: dict[str, str], message: str, served_resources: ServedResources) -> None:
    with pytest.raises((LookupError, ValueError), match=message):
        addresses.of(served_resources, value)


def test_names_are_escaped(served_resources: ServedResources) -> None:
    assert addresses.of(served_resources, "ClusterRole", "system:a/b").path().endswith("/clusterroles/system%3Aa%2Fb")
