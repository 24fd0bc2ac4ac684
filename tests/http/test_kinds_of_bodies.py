"""Requests to built-in kinds whose bodies claim another kind or version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.http.conftest import GROUP, Things

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE, STRATEGIC = "merge-patch+json", "strategic-merge-patch+json"
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'


@pytest.fixture
def a_map(things: Things) -> Iterator[None]:
    sent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}
    assert things.ask("POST", MAPS, sent).code == 201
    yield
    assert things.ask("DELETE", f"{MAPS}/a").code == 200


REFUSED: list[tuple[str, str, str, dict[str, Any], str]] = [
    ("created as an unknown kind", "POST", MAPS, {"apiVersion": "v1", "kind": "Other"},
     f'Other in version "v1" cannot be handled as a ConfigMap: no kind "Other" is registered for version "v1" {SCHEME}'),
    ("created as another kind", "POST", MAPS, {"apiVersion": "v1", "kind": "Secret"},
     'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion'),
    ("replaced by an unknown kind", "PUT", f"{MAPS}/a", {"apiVersion": "v1", "kind": "Other"},
     f'Other in version "v1" cannot be handled as a ConfigMap: no kind "Other" is registered for version "v1" {SCHEME}'),
    ("a kind whose member is written in capitals", "POST", MAPS, {"apiVersion": "v1", "KIND": "Other"},
     f'Other in version "v1" cannot be handled as a ConfigMap: no kind "Other" is registered for version "v1" {SCHEME}'),
    ("a group without version", "POST", MAPS, {"apiVersion": "x/", "kind": "ConfigMap"},
     """ConfigMap in version "" cannot be handled as a ConfigMap: Object 'apiVersion' is missing in '{"apiVersion": "x/", "kind": "ConfigMap"}'"""),
    ("a definition as an unknown kind", "POST", CRDS, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "Other"},
     f'Other in version "v1" cannot be handled as a CustomResourceDefinition: no kind "Other" is registered for version "apiextensions.k8s.io/v1" {SCHEME}'),
    ("a definition of v1beta1", "POST", CRDS, {"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition"},
     "the API version in the data (apiextensions.k8s.io/v1beta1) does not match the expected API version (apiextensions.k8s.io/v1)"),
    ("a v1beta1 definition of the wrong type", "POST", CRDS, {"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition", "spec": {"version": 1}},
     'CustomResourceDefinition in version "v1beta1" cannot be handled as a CustomResourceDefinition: json: cannot unmarshal number into Go struct field CustomResourceDefinitionSpec.spec.version of type string'),
]  # fmt: skip


@pytest.mark.usefixtures("a_map")
@pytest.mark.parametrize(
    ("method", "path", "sent", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_body_of_another_kind_is_refused(
    things: Things, method: str, path: str, sent: dict[str, Any], message: str
) -> None:
    answer = things.ask(method, path, sent)
    assert (answer.code, answer.message) == (400, message)


@pytest.mark.usefixtures("a_map")
@pytest.mark.parametrize("kind", ["Other", "Secret"])
def test_a_patch_cannot_change_the_kind(things: Things, kind: str) -> None:
    answer = things.ask("PATCH", f"{MAPS}/a", {"kind": kind}, MERGE)
    assert (answer.code, answer.body["details"]["causes"][0]["field"]) == (422, "patch")
    assert f'\\"kind\\":\\"{kind}\\"' in answer.message


UNCHANGED: list[tuple[str, dict[str, Any], str]] = [
    ("a strategic merge patch of the identity", {"apiVersion": "x/v1", "kind": "Other"}, STRATEGIC),
    ("a merge patch that removes the kind", {"kind": None}, MERGE),
    ("another spelling of the version", {"apiVersion": "/v1"}, MERGE),
]


@pytest.mark.usefixtures("a_map")
@pytest.mark.parametrize(("patch", "content"), [row[1:] for row in UNCHANGED], ids=[row[0] for row in UNCHANGED])
def test_a_patch_that_leaves_the_identity(things: Things, patch: dict[str, Any], content: str) -> None:
    before = things.ask("GET", f"{MAPS}/a").body
    answer = things.ask("PATCH", f"{MAPS}/a", patch, content)
    assert (answer.code, answer.body) == (200, before)


@pytest.mark.usefixtures("a_map")
def test_a_patched_object_without_version_has_the_fields_of_the_internal_type(things: Things) -> None:
    answer = things.ask("PATCH", f"{MAPS}/a", {"apiVersion": None}, MERGE)
    why = "the name of the object (a based on URL) was undeterminable: name must be provided"
    assert (answer.code, answer.message) == (400, why)
    assert answer.warnings == ['unknown field "metadata"', 'unknown field "data"']


def test_a_definition_patched_to_v1beta1_is_read_as_v1beta1(things: Things) -> None:
    patch = {"apiVersion": "apiextensions.k8s.io/v1beta1", "spec": {"preserveUnknownFields": False}}
    answer = things.ask("PATCH", f"{CRDS}/things.{GROUP}?dryRun=All", patch, MERGE)
    assert (answer.code, answer.body["apiVersion"]) == (200, "apiextensions.k8s.io/v1")


def test_a_slash_is_no_version(things: Things) -> None:
    answer = things.ask("POST", "", {"apiVersion": "/", "kind": "Thing", "metadata": {"name": "a"}})
    assert (
        answer.message == "the API version in the data () does not match the expected API version (http.example.com/v1)"
    )
