"""A server with a definition that has a little of everything, asked over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from conformance.client import Client
from noxu.testing.handle import Noxu
from tests import definitions

if TYPE_CHECKING:
    from tests.http.pods import Pods

GROUP: Final = "http.example.com"
THINGS: Final = f"/apis/{GROUP}/v1/namespaces/default/things"
_SPEC: Final = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer", "minimum": 0},
        "color": {"type": "string", "default": "red"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        },
    },
}
_STATUS: Final = {
    "type": "object",
    "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}, "ready": {"type": "boolean"}},
}
_V1: Final = {
    "name": "v1",
    "served": True,
    "storage": True,
    "selectableFields": [{"jsonPath": ".spec.color"}],
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}},
}
_V2: Final = {
    "name": "v2",
    "served": True,
    "storage": False,
    "schema": {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
    },
}
DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"things.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [_V1, _V2],
    },
}


def widgets(group: str, properties: dict[str, Any], **version: Any) -> dict[str, Any]:
    """A definition of Widgets, which are cluster-scoped, with one version."""
    made = definitions.version({"type": "object", "properties": properties}) | version
    return definitions.widgets(made, group=group, scope="Cluster")


class Reply(NamedTuple):
    """An answer: its code, its body, the texts of its warnings."""

    code: int
    body: Any
    warnings: list[str]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Things:
    """Asks for things by what stands behind their collection: `/a/status?dryRun=All`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def ask(self, method: str, rest: str = "", body: Any = None, content: str = "json", **headers: str) -> Reply:
        """A `rest` that starts with /api is a whole path. A `body` of text or bytes is sent unchanged."""
        path = rest if rest.startswith("/api") else THINGS + rest
        data = body.encode() if isinstance(body, str) else body
        data = data if data is None or isinstance(data, bytes) else json.dumps(data).encode()
        sent = {
            "Accept": "application/json",
            **({"Content-Type": f"application/{content}"} if data is not None else {}),
        }
        code, received, text = self._client.exchange(method, path, data, sent | headers)
        warnings = [value.split(' - "', 1)[1][:-1].replace('\\"', '"') for name, value in received if name == "Warning"]
        return Reply(code, json.loads(text) if text.startswith(b"{") else text.decode(), warnings)

    def exchange(self, method: str, path: str, **headers: str) -> bytes:
        """The body of an answer, whatever it is."""
        code, _, text = self._client.exchange(method, path, None, headers)
        assert code == 200
        return text

    def create(self, name: str, /, *, metadata: Any = None, **spec: Any) -> Any:
        reply = self.ask("POST", "", thing(name, metadata=metadata, **spec))
        assert reply.code == 201, reply
        return reply.body

    def names(self, query: str = "") -> list[str]:
        return [item["metadata"]["name"] for item in self.ask("GET", query).body["items"]]


def thing(name: str, /, *, metadata: Any = None, **spec: Any) -> dict[str, Any]:
    """An object of version v1."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": name, **(metadata or {})},
        "spec": spec,
    }


def ask(client: Client, method: str, path: str, body: Any = None, content: str = "application/json") -> tuple[int, Any]:
    """(code, body) of an answer."""
    answer = client.send(method, path, body, content)
    return answer.code, answer.body


@pytest.fixture
def client(noxu: Noxu) -> Iterator[Client]:
    """A client of the test's own server."""
    with Client(noxu.url) as found:
        yield found


@pytest.fixture(scope="module")
def served(noxu_session: Noxu) -> Iterator[Client]:
    noxu_session.apply(DEFINITION)
    with Client(noxu_session.url) as client:
        yield client


@pytest.fixture
def things(served: Client) -> Things:
    """There are none when a test begins."""
    found = Things(served)
    for name in found.names():
        found.ask("PATCH", f"/{name}", {"metadata": {"finalizers": None}}, "merge-patch+json")
    found.ask("DELETE")
    assert found.names() == []
    return found


@pytest.fixture
def pods(served: Client) -> Iterator[Pods]:
    """There are neither pods nor budgets when a test begins."""
    from tests.http.pods import Pods  # which imports this module

    found = Pods(Things(served))
    found.clear()
    yield found
    found.clear()
