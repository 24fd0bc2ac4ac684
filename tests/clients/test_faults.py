"""What clients do when their writes meet a fault: the table in docs/faults.md, "What clients do".

What the libraries do by themselves differs: client-go sends again what is refused with Retry-After, kube-rs what is
refused with 429, 503 or 504, and urllib3 sends updates again whose connection breaks. A create is sent again by those who call
a library, as `ensure` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest

from noxu.testing.handle import Noxu
from tests.clients.driven import Driven, client

__all__ = ["client"]


class ByClient(NamedTuple):
    """What differs between the clients."""

    client_go: Any
    kubernetes: Any
    kube_rs: Any

    def of(self, client: Driven) -> Any:
        by_name = {"client-go": self.client_go, "kubernetes": self.kubernetes, "kube-rs": self.kube_rs}
        return by_name[client.name.partition(",")[0]]


class Write(NamedTuple):
    """A fault, the command that meets it, and the answer of the client.

    `requests` is how many writes it has sent, and `there` what is there at the end: names, and their numbers. What
    the server has added to a name is left out.
    """

    fault: dict[str, Any]
    command: str
    answer: Any
    requests: Any
    there: Any


_THERE: Final = ["a 1"]
_CREATED: Final = ["a 1", "b 1"]

WRITES: Final = {
    "a conflict": Write({"error": "Conflict", "times": 2}, "increase a", ["Conflict", "Conflict", "done"], 3, ["a 2"]),
    "an error": Write({"error": 500}, "create b", "InternalError", 1, _THERE),
    "no service": Write(
        {"error": 503, "times": 1},
        "create b",
        ByClient("ServiceUnavailable", "ServiceUnavailable", "done"),
        ByClient(1, 1, 2),
        ByClient(_THERE, _THERE, _CREATED),
    ),
    "too many requests": Write(
        {"error": "TooManyRequests", "times": 1},
        "create b",
        ByClient("done", "TooManyRequests", "done"),
        ByClient(2, 1, 2),
        ByClient(_CREATED, _THERE, _CREATED),
    ),
    "no service, come again": Write(
        {"error": {"code": 503, "retryAfter": 1}, "times": 1},
        "create b",
        ByClient("done", "ServiceUnavailable", "done"),
        ByClient(2, 1, 2),
        ByClient(_CREATED, _THERE, _CREATED),
    ),
    "a delay": Write({"delay": "20ms"}, "create b", "done", 1, _CREATED),
    "no answer": Write({"hang": True}, "create b 0.5", "timed out", 1, _THERE),
    "broken before": Write({"reset": "before", "times": 1}, "create b", "lost", 1, _THERE),
    "broken after": Write({"reset": "after", "times": 1}, "create b", "lost", 1, _CREATED),
    "broken before, repeated": Write({"reset": "before", "times": 1}, "ensure b", ["lost", "done"], 2, _CREATED),
    "broken after, repeated": Write({"reset": "after", "times": 1}, "ensure b", ["lost", "AlreadyExists"], 2, _CREATED),
    "a generated name, broken after": Write(
        {"reset": "after", "times": 1}, "generate b-", ["lost", "done"], 2, ["a 1", "b- 1", "b- 1"]
    ),
    "an update, broken before": Write(
        {"reset": "before", "times": 1},
        "increase a",
        ByClient(["lost", "done"], ["done"], ["lost", "done"]),
        2,
        ["a 2"],
    ),
    "an update, broken after": Write(
        {"reset": "after", "times": 1},
        "increase a",
        ByClient(["lost", "done"], ["Conflict", "done"], ["lost", "done"]),
        ByClient(2, 3, 2),
        ["a 3"],
    ),
    "a disk that accepts no writes": Write({"store": "unavailable"}, "create b", "InternalError", 1, _THERE),
    "a disk that fails in the commit": Write(
        {"store": "unknown", "times": 1}, "ensure b", ["InternalError", "AlreadyExists"], 2, _CREATED
    ),
}


def put(server: Noxu, namespace: str, name: str, number: int) -> None:
    """Have a ConfigMap with a number."""
    metadata = {"name": name, "namespace": namespace}
    server.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": str(number)}})


def numbers(server: Noxu, namespace: str) -> dict[str, int]:
    """The numbers of the ConfigMaps of a namespace. That with the server's certificates, kube-root-ca.crt, has none."""
    found = server.list("configmaps", namespace=namespace)
    return {each["metadata"]["name"]: int(each["data"]["n"]) for each in found if "n" in each["data"]}


@pytest.mark.slow
@pytest.mark.parametrize("row", WRITES)
def test_a_write_meets_a_fault(row: str, client: Driven, server: Noxu, new_namespace: Callable[[], str]) -> None:
    write, namespace = WRITES[row], new_namespace()
    put(server, namespace, "a", 1)
    command, *words = write.command.split()
    matched = {
        "resource": "configmaps",
        "namespace": namespace,
        "verbs": ["update" if command == "increase" else "create"],
    }
    with server.fault(**matched, delay=0) as requests, server.fault(**matched, **write.fault):
        answer = client(command, namespace, *words)
    there = [f"{name[:2]} {number}" for name, number in numbers(server, namespace).items()]
    expected = (write.answer, write.requests, write.there)
    assert (answer, requests.hits, there) == tuple(
        value.of(client) if isinstance(value, ByClient) else value for value in expected
    )
