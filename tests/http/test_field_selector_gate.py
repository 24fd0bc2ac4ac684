"""The feature gate CustomResourceFieldSelectors: without it, definitions lose their selectable fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.client import Client
from noxu.crd.update import drop_selectable_fields
from noxu.testing.handle import Noxu
from tests.http.conftest import DEFINITION, GROUP, Things

NAME = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{GROUP}"


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Things]:
    """A server without field selectors."""
    gates = {"CustomResourceFieldSelectors": False}
    with Noxu(tmp_path_factory.mktemp("gate"), [DEFINITION], gates=gates) as noxu, Client(noxu.url) as client:
        yield Things(client)


def test_a_new_definition_has_no_selectable_fields(without: Things) -> None:
    versions = without.ask("GET", NAME).body["spec"]["versions"]
    assert [version.get("selectableFields") for version in versions] == [None, None]


def test_an_update_adds_none(without: Things) -> None:
    patch = [{"op": "add", "path": "/spec/versions/0/selectableFields", "value": [{"jsonPath": ".spec.color"}]}]
    answer = without.ask("PATCH", NAME, patch, "json-patch+json")
    assert (answer.code, answer.body["spec"]["versions"][0].get("selectableFields")) == (200, None)


def test_requests_cannot_select_by_them(without: Things, things: Things) -> None:
    assert things.ask("GET", "?fieldSelector=spec.color%3Dred").code == 200
    answer = without.ask("GET", "?fieldSelector=spec.color%3Dred")
    assert (answer.code, answer.message) == (400, "field label not supported: spec.color")


SOME: dict[str, Any] = {
    "spec": {"versions": [{"name": "v1", "selectableFields": [{"jsonPath": ".a"}]}, {"name": "v2"}]}
}
NONE: dict[str, Any] = {"spec": {"versions": [{"name": "v1"}, {"name": "v2"}]}}


@pytest.mark.parametrize(("old", "kept"), [(None, NONE), (NONE, NONE), (SOME, SOME)])
def test_a_definition_that_has_some_may_keep_and_change_them(old: Any, kept: Any) -> None:
    assert drop_selectable_fields(SOME, old) == kept
