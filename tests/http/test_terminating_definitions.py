"""A definition that is being deleted: no object is created, none outlives it, and clients see what happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.client import DEFINITIONS, Answer, Client
from noxu.controllers import definition_finalizer
from noxu.testing.handle import Noxu
from tests.timing import eventually

GROUP = "going.example.com"
DEFINITION = f"{DEFINITIONS}/widgets.{GROUP}"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/default/widgets"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
HELD_BY = "example.com/hold"


def definition(*finalizers: str) -> dict[str, Any]:
    spec = {"type": "object", "properties": {"n": {"type": "integer"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{GROUP}", "finalizers": list(finalizers)},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def widget(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, **more}


def terminating(client: Client) -> tuple[str, str]:
    """(status, reason) of the condition Terminating."""
    conditions = client.send("GET", DEFINITION).body["status"]["conditions"]
    return next((one["status"], one["reason"]) for one in conditions if one["type"] == "Terminating")


def names(client: Client) -> list[str]:
    return [item["metadata"]["name"] for item in client.send("GET", WIDGETS).body["items"]]


def discovered_verbs(client: Client) -> list[str]:
    """As the aggregated document of discovery lists them."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    document = json.loads(client.exchange("GET", "/apis", None, {"Accept": accept})[2])
    [group] = [item for item in document["items"] if item["metadata"]["name"] == GROUP]
    [resource] = group["versions"][0]["resources"]
    return list(resource["verbs"])


def is_gone(client: Client) -> bool:
    return client.send("GET", DEFINITION).code == 404


def is_completed(client: Client) -> bool:
    return terminating(client) == ("False", "InstanceDeletionCompleted")


@pytest.fixture
def client(noxu: Noxu) -> Iterator[Client]:
    with Client(noxu.url) as client:
        yield client


CREATES: list[tuple[str, str, str, dict[str, Any], str, str]] = [
    # name, method, path and query, body, content type, the name in the error
    ("POST", "POST", "", widget("a"), "application/json", "a"),
    ("POST as a dry run", "POST", "?dryRun=All", widget("a"), "application/json", "a"),
    ("POST of a generated name", "POST", "", widget("") | {"metadata": {"generateName": "a"}}, "application/json", ""),
    ("POST of an invalid object", "POST", "", widget("a", spec={"n": "x"}), "application/json", "a"),
    ("apply", "PATCH", "/a?fieldManager=m", widget("a"), APPLY, "a"),
    ("apply as a dry run", "PATCH", "/a?fieldManager=m&dryRun=All", widget("a"), APPLY, "a"),
]
CONDITIONS = [("while the condition is true", 3600.0), ("when the condition is false", 0.0)]


def send(client: Client, row: tuple[str, str, dict[str, Any], str, str]) -> Answer:
    method, path, body, content_type, _ = row
    return client.send(method, f"{WIDGETS}{path}", body, content_type)


@pytest.mark.parametrize("seconds", [row[1] for row in CONDITIONS], ids=[row[0] for row in CONDITIONS])
@pytest.mark.parametrize("row", [row[1:] for row in CREATES], ids=[row[0] for row in CREATES])
def test_nothing_is_created_once_the_definition_is_deleted(
    noxu: Noxu, client: Client, monkeypatch: pytest.MonkeyPatch, row: Any, seconds: float
) -> None:
    """A finalizer of another controller keeps it. When it is created again it has no objects."""
    monkeypatch.setattr(definition_finalizer, "IN_PROGRESS_FOR", seconds)
    noxu.apply(definition(HELD_BY))
    assert client.send("POST", WIDGETS, widget("before")).code == 201
    assert client.send("DELETE", DEFINITION).code == 200
    answer = send(client, row)
    named = f' "{row[-1]}"' if row[-1] else ""
    text = f"widgets.{GROUP}{named} is forbidden: create not allowed while custom resource definition is terminating"
    assert (answer.code, answer.body["message"]) == (403, text)
    if seconds:
        return
    eventually(lambda: is_completed(client))
    answer = send(client, row)
    assert (answer.code, answer.body["message"]) == (403, text)
    client.send("PATCH", DEFINITION, {"metadata": {"finalizers": None}}, MERGE)
    assert is_gone(client)
    noxu.apply(definition())
    assert names(client) == []


EARLIER: list[tuple[str, str, str, dict[str, Any], str, int]] = [
    ("a body of another version", "POST", "", widget("a") | {"apiVersion": f"{GROUP}/v9"}, "application/json", 400),
    ("an unknown field", "POST", "?fieldValidation=Strict", widget("a", junk=1), "application/json", 400),
    ("another namespace", "POST", "", widget("a") | {"metadata": {"name": "a", "namespace": "x"}}, "application/json", 400),
    ("an apply with another name", "PATCH", "/a?fieldManager=m", widget("b"), APPLY, 400),
    ("an update of no object", "PUT", "/a", widget("a"), "application/json", 404),
    ("a patch of no object", "PATCH", "/a", {}, MERGE, 404),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type", "code"), [row[1:] for row in EARLIER], ids=[row[0] for row in EARLIER]
)
def test_errors_of_decoding_and_addressing_come_first(
    noxu: Noxu, client: Client, method: str, path: str, body: Any, content_type: str, code: int
) -> None:
    noxu.apply(definition(HELD_BY))
    client.send("DELETE", DEFINITION)
    assert client.send(method, f"{WIDGETS}{path}", body, content_type).code == code


def test_a_create_that_admission_delays_until_its_definition_is_gone_is_refused(noxu: Noxu, client: Client) -> None:
    noxu.apply(definition())

    @noxu.validating(f"widgets.{GROUP}")
    def delete_definition(request: Any) -> None:
        with Client(noxu.url) as other:
            other.send("DELETE", DEFINITION)
            eventually(lambda: is_gone(other))

    assert client.send("POST", WIDGETS, widget("late")).code == 403
    noxu.apply(definition())
    assert names(client) == []


def test_clients_that_poll_see_that_instances_are_deleted(
    noxu: Noxu, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The instances are deleted at once. Discovery lists fewer verbs as long as the condition is true."""
    monkeypatch.setattr(definition_finalizer, "IN_PROGRESS_FOR", 3600.0)
    noxu.apply(definition())
    client.send("POST", WIDGETS, widget("a"))
    assert "create" in discovered_verbs(client)
    client.send("DELETE", DEFINITION)
    eventually(lambda: terminating(client) == ("True", "InstanceDeletionInProgress"))
    eventually(lambda: names(client) == [])
    [resource] = client.send("GET", f"/apis/{GROUP}/v1").body["resources"]
    assert resource["verbs"] == discovered_verbs(client) == ["delete", "deletecollection", "get", "list", "watch"]
    assert not is_gone(client)


def test_a_definition_is_kept_for_as_long_as_clients_should_see_it() -> None:
    """The reference takes 50 to 115 ms."""
    assert 0.05 <= definition_finalizer.IN_PROGRESS_FOR <= 0.115


def test_discovery_lists_all_verbs_again_when_the_instances_are_deleted(noxu: Noxu, client: Client) -> None:
    """It follows the condition, creation follows the deletion."""
    noxu.apply(definition(HELD_BY))
    client.send("DELETE", DEFINITION)
    eventually(lambda: is_completed(client))
    [resource] = client.send("GET", f"/apis/{GROUP}/v1").body["resources"]
    assert "create" in resource["verbs"]
