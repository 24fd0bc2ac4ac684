"""What an operator that is written with kopf does when its patches and watches meet a fault: docs/faults.md.

kopf sends a request again that has failed for a reason that may pass: three times here. A patch that fails for another
reason, or too often, is given up: its handler is called again with the next event of its object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from noxu.testing.handle import Noxu
from tests.clients.driven import Driven, kopf
from tests.clients.test_faults import put
from tests.timing import eventually

pytestmark = pytest.mark.slow
COPIED, HANDLED = "example.com/copied", "kopf.zalando.org/last-handled-configuration"

SENT_AGAIN: Final[dict[str, dict[str, Any]]] = {
    "an error": {"error": 500, "times": 2},
    "no service": {"error": 503, "times": 2},
    "too many requests": {"error": "TooManyRequests", "times": 1},
    "forbidden": {"error": "Forbidden", "times": 2},
    "broken before": {"reset": "before", "times": 2},
    "broken after": {"reset": "after", "times": 2},
    "a disk that accepts no writes": {"store": "unavailable", "times": 2},
    "a disk that fails in the commit": {"store": "unknown", "times": 2},
    "a delay": {"delay": "20ms"},
}
GIVEN_UP: Final[dict[str, dict[str, Any]]] = {
    "a conflict": {"error": "Conflict", "times": 1},
    "invalid": {"error": "Invalid", "times": 1},
    "an error, too often": {"error": 500, "times": 3},
}


@pytest.fixture(scope="module")
def operator(server: Noxu) -> Iterator[Driven]:
    with kopf(server.kubeconfig) as driven:
        yield driven


@pytest.fixture
def namespace(operator: Driven, server: Noxu, new_namespace: Callable[[], str]) -> str:
    """A namespace in which an operator copies the number of `a`. It has copied the first one, and seen what it did."""
    namespace = new_namespace()
    put(server, namespace, "a", 1)
    operator("copy", namespace)
    eventually(lambda: COPIED in annotated(server, namespace).get(HANDLED, ""))
    return namespace


def annotated(server: Noxu, namespace: str) -> dict[str, str]:
    found = server.get("configmaps", "a", namespace=namespace)["metadata"].get("annotations", {})
    return {str(key): str(value) for key, value in found.items()}


def patches(operator: Driven, namespace: str) -> dict[str, Any]:
    """The requests that a fault hits."""
    return {"resource": "configmaps", "namespace": namespace, "verbs": ["patch"], "user_agent": operator.agent}


@pytest.mark.parametrize("row", SENT_AGAIN)
def test_a_patch_is_sent_again(row: str, operator: Driven, server: Noxu, namespace: str) -> None:
    with server.fault(**patches(operator, namespace), **SENT_AGAIN[row]):
        server.patch("configmaps", "a", {"data": {"n": "2"}}, namespace=namespace)
        eventually(lambda: annotated(server, namespace)[COPIED] == "2")
    assert operator("copied", namespace) == ["1", "2"]


@pytest.mark.parametrize("row", GIVEN_UP)
def test_a_patch_is_given_up_until_the_next_event(row: str, operator: Driven, server: Noxu, namespace: str) -> None:
    with server.fault(**patches(operator, namespace), **GIVEN_UP[row]) as fault:
        server.patch("configmaps", "a", {"data": {"n": "2"}}, namespace=namespace)
        eventually(lambda: fault.hits == GIVEN_UP[row]["times"])
    assert annotated(server, namespace)[COPIED] == "1"
    server.patch("configmaps", "a", {"metadata": {"labels": {"next": "event"}}}, namespace=namespace)
    eventually(lambda: annotated(server, namespace)[COPIED] == "2")
    assert operator("copied", namespace) == ["1", "2", "2"]


def test_an_operator_ends_if_a_watch_is_refused_as_expired(
    operator: Driven, server: Noxu, new_namespace: Callable[[], str]
) -> None:
    """kopf expects that as an event of the stream (`watch: expire`), as it comes from an API server."""
    namespace = new_namespace()
    with server.fault(resource="configmaps", namespace=namespace, verbs=["watch"], error="Expired"):
        operator("follow", namespace)
        eventually(lambda: operator("ended", namespace))
