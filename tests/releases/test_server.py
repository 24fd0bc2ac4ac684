"""A server that answers as an older release: one server for all tests."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from noxu import ApiError, Noxu
from noxu.control_plane import WITHOUT_CONTROLLERS, assemble
from noxu.discovery.openapi import INDEX, Published
from noxu_storage.memory import MemoryStore
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


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {"containers": [{"name": "a", "image": "b"}], "hostnameOverride": "a"},
}


def test_a_field_that_came_later_is_unknown(server: Noxu) -> None:
    status, answer = post(server, "/api/v1/namespaces/default/pods?fieldValidation=Strict", POD)
    assert (status, answer["message"]) == (
        400,
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.hostnameOverride"',
    )
    status, answer = post(server, "/api/v1/namespaces/default/pods?fieldValidation=Warn", POD)
    assert status == 201
    assert "hostnameOverride" not in answer["spec"]


def test_a_field_whose_gate_is_off_is_dropped(server: Noxu) -> None:
    spec = {"containers": POD["spec"]["containers"], "hostUsers": False}  # type: ignore[index]
    pod = {**POD, "metadata": {"name": "of-users"}, "spec": spec}
    status, answer = post(server, "/api/v1/namespaces/default/pods?fieldValidation=Strict", pod)
    assert status == 201
    assert "hostUsers" not in answer["spec"]


def test_errors_have_the_texts_of_the_release(server: Noxu) -> None:
    server.apply(crd("self.size > 0"))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}
    path = "/apis/example.com/v1/namespaces/default/widgets"
    rule = "failed rule: self.size > 0"
    assert (
        message(post(server, path, {**widget, "spec": {"size": 0, "text": "2"}}))
        == f'spec: Invalid value: "object": {rule}'
    )
    assert message(post(server, path, {**widget, "spec": {"text": "a" * 65}})).startswith(
        "[spec.text: Too long: may not be longer than 64"
    )
    owner = {"apiVersion": "v1", "kind": "Pod", "uid": "u"}
    owned = {**widget, "metadata": {**widget["metadata"], "ownerReferences": [owner]}}  # type: ignore[dict-item]
    found = message(post(server, path, {**owned, "spec": {"size": 1, "text": "2"}}))
    assert 'metadata.ownerReferences[0].name: Invalid value: "": name must not be empty' in found


def message(answer: tuple[int, Any]) -> str:
    """What the answer to an invalid widget says of it."""
    assert answer[0] == 422
    text: str = answer[1]["message"]
    return text.removeprefix('Widget.example.com "a" is invalid: ')


def test_documents_have_the_fields_of_the_release(server: Noxu) -> None:
    core = get(server, "/openapi/v3/api/v1")
    assert core["info"] == {"title": "Kubernetes", "version": "v1.29"}
    assert "hostnameOverride" not in core["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    index = get(server, "/openapi/v3")["paths"]
    assert index["api/v1"]["serverRelativeURL"] != newest_hash()


def newest_hash() -> str:
    plane = assemble(WITHOUT_CONTROLLERS, MemoryStore())
    published = Published(lambda: datetime(2026, 1, 1, tzinfo=UTC))
    index: dict[str, Any] = json.loads(published.build(plane.served_resources.current, INDEX).body)
    url: str = index["paths"]["api/v1"]["serverRelativeURL"]
    return url


def post(server: Noxu, path: str, value: object) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(server.url + path, json.dumps(value).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def get(server: Noxu, path: str) -> Any:
    with urllib.request.urlopen(server.url + path) as answer:
        return json.load(answer)
