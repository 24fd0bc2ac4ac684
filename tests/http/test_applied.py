"""Server-side apply over HTTP: what typing lets through is pruned, and the object has its name in both places."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from conformance.client import Answer, Client
from noxu.testing.handle import Noxu
from tests.http.conftest import Things, widgets

GROUP = "applied.example.com"
SPEC = {
    "type": "object",
    "properties": {
        "open": {"type": "object"},
        "list": {"type": "array", "items": {"type": "object"}},
        "map": {"type": "object", "additionalProperties": {"type": "object"}},
        "kept": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "items": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
    },
}
WIDGETS = widgets(GROUP, {"spec": SPEC})


@pytest.fixture
def client(noxu: Noxu) -> Iterator[Client]:
    noxu.apply(WIDGETS)
    with Client(noxu.url) as client:
        yield client


def apply(client: Client, metadata: dict[str, Any] | None, spec: Any = None, manager: str = "m") -> Answer:
    body: dict[str, Any] = {"apiVersion": f"{GROUP}/v1", "kind": "Widget"}
    if metadata is not None:
        body["metadata"] = metadata
    if spec is not None:
        body["spec"] = spec
    path = f"/apis/{GROUP}/v1/widgets/w?fieldManager={manager}&force=true"
    return client.send("PATCH", path, body, "application/apply-patch+yaml")


PRUNED = [
    ("below an object that describes nothing", {"open": {"a": 1}}, {"open": {}}),
    ("in items that describe nothing", {"list": [{"a": 1}, {}]}, {"list": [{}, {}]}),
    ("in values that describe nothing", {"map": {"k": {"a": 1}}}, {"map": {"k": {}}}),
]


@pytest.mark.parametrize(("sent", "stored"), [row[1:] for row in PRUNED], ids=[row[0] for row in PRUNED])
def test_what_typing_lets_through_is_pruned(client: Client, sent: Any, stored: Any) -> None:
    assert apply(client, {"name": "w"}, sent).body["spec"] == stored
    assert client.send("GET", f"/apis/{GROUP}/v1/widgets/w").body["spec"] == stored


def test_applying_pruned_fields_again_counts_as_a_change(client: Client) -> None:
    """As the reference does: it compares before it prunes."""
    generations = [apply(client, {"name": "w"}, {"open": {"a": 1}}).body["metadata"]["generation"] for _ in range(3)]
    assert generations == [1, 2, 3]


@pytest.mark.parametrize("spec", [{"open": {}}, {"kept": {"a": 1}}, {"items": [{"x": "1"}]}])
def test_applying_again_what_the_schema_keeps_changes_nothing(client: Client, spec: Any) -> None:
    first, second = (apply(client, {"name": "w"}, spec).body for _ in range(2))
    assert first == second


def test_many_may_apply_at_once(noxu: Noxu, client: Client) -> None:
    """A client that was overtaken applies the same configuration again."""
    apply(client, {"name": "w"}, {"kept": {"first": {"n": [1]}}})

    def apply_key(n: int) -> Answer:
        with Client(noxu.url) as own:
            return apply(own, {"name": "w"}, {"kept": {f"k{n}": {"n": [n, {"x": n}]}}}, f"m{n}")

    with ThreadPoolExecutor(8) as pool:
        assert {answer.code for answer in pool.map(apply_key, range(40))} == {200}
    found = client.send("GET", f"/apis/{GROUP}/v1/widgets/w").body
    assert found["spec"]["kept"] == {"first": {"n": [1]}} | {f"k{n}": {"n": [n, {"x": n}]} for n in range(40)}
    owners = {entry["manager"]: entry["fieldsV1"] for entry in found["metadata"]["managedFields"]}
    assert owners == {"m": {"f:spec": {"f:kept": {"f:first": {".": {}, "f:n": {}}}}}} | {
        f"m{n}": {"f:spec": {"f:kept": {f"f:k{n}": {".": {}, "f:n": {}}}}} for n in range(40)
    }


NAMELESS = [None, {}, {"labels": {"a": "b"}}, {"name": ""}, {"generateName": "w-"}]
MESSAGE = "the name of the object (w based on URL) was undeterminable: name must be provided"


@pytest.mark.parametrize("metadata", NAMELESS)
def test_a_new_object_is_applied_with_its_name(client: Client, metadata: Any) -> None:
    answer = apply(client, metadata)
    assert (answer.code, answer.body["message"]) == (400, MESSAGE)


@pytest.mark.parametrize("metadata", [None, {}, {"labels": {"a": "b"}}, {"generateName": "w-"}])
def test_an_object_that_is_there_has_its_name_already(client: Client, metadata: Any) -> None:
    apply(client, {"name": "w"})
    assert apply(client, metadata).code == 200


def test_another_name_than_that_of_the_url_is_refused(client: Client) -> None:
    expected = "the name of the object (v) does not match the name on the URL (w)"
    for _ in range(2):
        answer = apply(client, {"name": "v"})
        assert (answer.code, answer.body["message"]) == (400, expected)
        apply(client, {"name": "w"})


BUILT_IN: list[tuple[str, str, dict[str, Any], str]] = [
    ("a time that is none", "/api/v1/namespaces/default/configmaps/x", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "creationTimestamp": "y"}},
     '(/x; /v1, Kind=ConfigMap) to proper version: unable to convert unstructured object to /v1, Kind=ConfigMap: parsing time "y" as "2006-01-02T15:04:05Z07:00": cannot parse "y" as "2006"'),
    ("a fraction for an integer", "/apis/coordination.k8s.io/v1/namespaces/default/leases/x", {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x", "namespace": "default"}, "spec": {"leaseTransitions": 1.5}},
     "(default/x; coordination.k8s.io/v1, Kind=Lease) to proper version: unable to convert unstructured object to coordination.k8s.io/v1, Kind=Lease: cannot convert float64 to int32"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "config", "message"), [row[1:] for row in BUILT_IN], ids=[row[0] for row in BUILT_IN])
def test_an_applied_built_in_object_that_cannot_be_converted(
    things: Things, path: str, config: dict[str, Any], message: str
) -> None:
    answer = things.ask("PATCH", f"{path}?fieldManager=m", config, "apply-patch+yaml")
    assert (answer.code, answer.message) == (500, f"failed to convert new object {message}")
    assert "reason" not in answer.body
