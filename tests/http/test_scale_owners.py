"""The owners of the replicas: equal in /scale and in the custom resource, in the field names of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.client import Answer, Client
from noxu.testing.handle import Noxu
from tests.http.conftest import widgets

GROUP = "scaled.example.com"
URL = f"/apis/{GROUP}/v1/widgets/w"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
INTEGER = {"type": "integer"}
SIZED = {"type": "object", "properties": {"count": INTEGER, "a": INTEGER}}
PATHS = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}
WIDGETS = widgets(GROUP, {"spec": SIZED, "status": SIZED}, subresources={"scale": PATHS})
COUNT = {"f:spec": {"f:count": {}}}


@pytest.fixture
def client(noxu: Noxu) -> Iterator[Client]:
    noxu.apply(WIDGETS)
    with Client(noxu.url) as client:
        yield client


def scale(client: Client, replicas: int, *, manager: str = "m", force: bool = False) -> Answer:
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w"}, "spec": {"replicas": replicas}}
    return client.send("PATCH", f"{URL}/scale?fieldManager={manager}&force={str(force).lower()}", body, APPLY)


def apply(client: Client, spec: dict[str, Any], *, manager: str = "m") -> Answer:
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}
    return client.send("PATCH", f"{URL}?fieldManager={manager}", body, APPLY)


def owners(client: Client) -> dict[str, Any]:
    """fieldsV1 by operation, manager and subresource: `Apply m scale`."""
    entries = client.send("GET", URL).body["metadata"].get("managedFields", [])
    named = {
        (entry["operation"], entry["manager"], entry.get("subresource", "")): entry["fieldsV1"] for entry in entries
    }
    return {" ".join(filter(None, name)): fields for name, fields in named.items()}


def test_a_writer_of_the_scale_owns_the_field_of_the_replicas(client: Client) -> None:
    apply(client, {"count": 1, "a": 1})
    client.send("PATCH", f"{URL}/scale?fieldManager=scaler", {"spec": {"replicas": 3}}, MERGE)
    assert owners(client) == {"Apply m": {"f:spec": {"f:a": {}}}, "Update scaler scale": COUNT}


def test_answers_of_the_scale_do_not_show_its_owners(client: Client) -> None:
    apply(client, {"count": 1})
    answer = client.send("PATCH", f"{URL}/scale?fieldManager=scaler", {"spec": {"replicas": 3}}, MERGE)
    assert (answer.code, answer.body["spec"]) == (200, {"replicas": 3})
    assert "managedFields" not in answer.body["metadata"]


def test_the_same_replicas_are_shared(client: Client) -> None:
    apply(client, {"count": 1}, manager="one")
    assert scale(client, 1, manager="two").code == 200
    assert owners(client) == {"Apply one": COUNT, "Apply two scale": COUNT}


def test_other_replicas_are_a_conflict(client: Client) -> None:
    apply(client, {"count": 1}, manager="one")
    answer = scale(client, 2, manager="two")
    message = 'Apply failed with 1 conflict: conflict with "one": .spec.replicas'
    assert (answer.code, answer.body["message"]) == (409, message)
    assert client.send("GET", f"{URL}/scale").body["spec"] == {"replicas": 1}


def test_force_takes_the_replicas(client: Client) -> None:
    """Upstream's fails."""
    apply(client, {"count": 1, "a": 1}, manager="one")
    answer = scale(client, 2, manager="two", force=True)
    assert (answer.code, answer.body["spec"]) == (200, {"replicas": 2})
    assert owners(client) == {"Apply one": {"f:spec": {"f:a": {}}}, "Apply two scale": COUNT}
    assert apply(client, {"count": 1, "a": 1}, manager="one").code == 409


def test_replicas_without_an_owner_belong_to_before_first_apply(client: Client) -> None:
    """Upstream's fails."""
    apply(client, {"count": 1})
    client.send("PATCH", f"{URL}?fieldManager=m", {"metadata": {"managedFields": [{}]}}, MERGE)
    refused = scale(client, 2)
    assert refused.code == 409
    assert "before-first-apply" in refused.body["message"]
    assert scale(client, 2, force=True).code == 200
    assert owners(client) == {"Apply m scale": COUNT}


def test_a_scale_that_is_applied_again_is_no_write(client: Client) -> None:
    apply(client, {"count": 1}, manager="one")
    versions = [scale(client, 1, manager="two").body["metadata"]["resourceVersion"] for _ in range(2)]
    assert versions[0] == versions[1]


def test_a_dry_run_changes_no_owner(client: Client) -> None:
    apply(client, {"count": 1}, manager="one")
    body = {"spec": {"replicas": 9}}
    answer = client.send("PATCH", f"{URL}/scale?fieldManager=two&dryRun=All", body, MERGE)
    assert answer.body["spec"] == {"replicas": 9}
    assert owners(client) == {"Apply one": COUNT}
