"""A server that answers as an older release: one server for all tests."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from noxu import ApiError, Noxu
from tests.releases.test_rules import crd


@pytest.fixture(scope="module")
def server() -> Iterator[Noxu]:
    with Noxu(kubernetes="1.29") as started:
        yield started


def test_the_version_is_that_of_the_release(server: Noxu) -> None:
    version = get(server, "/version")
    assert (version["major"], version["minor"]) == ("1", "29")
    assert version["gitVersion"].startswith("v1.29.0+noxu.")
    assert "emulationMinor" not in version


def test_discovery_lists_what_the_release_has(server: Noxu) -> None:
    groups = {group["name"] for group in get(server, "/apis")["groups"]}
    assert "flowcontrol.apiserver.k8s.io" in groups
    assert groups.isdisjoint({"resource.k8s.io", "storagemigration.k8s.io"})
    admission = get(server, "/apis/admissionregistration.k8s.io/v1")["resources"]
    assert [each["name"] for each in admission] == ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]


def test_a_kind_that_came_later_is_not_found(server: Noxu) -> None:
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "a"},
        "spec": {"validations": [{"expression": "true"}]},
    }
    with pytest.raises(ApiError, match='no matches for kind "ValidatingAdmissionPolicy"'):
        server.apply(policy)


def test_a_rule_is_compiled_with_the_functions_of_the_release(server: Noxu) -> None:
    with pytest.raises(ApiError, match="undeclared reference to 'isIP'"):
        server.apply(crd("isIP(self.text)"))


def test_selectable_fields_are_dropped(server: Noxu) -> None:
    definition = crd("self.size > 0")
    definition["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.text"}]
    [stored] = server.apply(definition)
    assert "selectableFields" not in stored["spec"]["versions"][0]


def get(server: Noxu, path: str) -> Any:
    with urllib.request.urlopen(server.url + path) as answer:
        return json.load(answer)
