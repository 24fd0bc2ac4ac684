"""What informers do when their lists and watches meet a fault. All end with what the server has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest

from noxu.testing.handle import Noxu
from tests.clients.driven import Driven, client
from tests.clients.test_faults import numbers, put
from tests.timing import eventually

__all__ = ["client"]

CHANGES: Final = ["update a 4", "add b 5", "update a 6", "delete b 5"]


class Follow(NamedTuple):
    """A fault, and what an informer sees of the CHANGES that are made while it is on.

    `lists`: the informer starts in the fault; else it has synced before. `all`: it sees all changes, in their order.
    `never`: what it does not see. `past`: its store is as it was, until the fault is cleared.
    """

    fault: dict[str, Any]
    lists: bool = False
    all: bool = False
    never: str = ""
    past: bool = False


FOLLOWS: Final = {
    "a stream ends": Follow({"verbs": ["watch"], "watch": "close", "name": "a", "nth": 1}),
    "a stream expires": Follow({"verbs": ["watch"], "watch": "expire", "name": "a", "nth": 1}),
    "an event comes twice": Follow({"verbs": ["watch"], "watch": "duplicate"}, all=True),
    "an event is late": Follow({"verbs": ["watch"], "watch": {"late": "50ms"}, "nth": 1}, all=True),
    "no bookmarks": Follow({"verbs": ["watch"], "watch": "silent"}, all=True),
    "an event is lost": Follow(
        {"verbs": ["watch"], "watch": "drop", "name": "a", "nth": 1, "breaks_contract": True}, never="update a 4"
    ),
    "a frozen view": Follow({"view": "freeze"}, all=True, past=True),
    "a held view": Follow({"view": "hold"}, never="update a 4", past=True),
    "a restart": Follow({"restart": "1s"}),
    "a frozen view from the start": Follow({"view": "freeze"}, lists=True),
    "no watch": Follow({"verbs": ["watch"], "error": 503, "times": 1}, lists=True),
    "an expired watch": Follow({"verbs": ["watch"], "error": "Expired", "times": 1}, lists=True),
    "too many watches": Follow({"verbs": ["watch"], "error": "TooManyRequests", "times": 1}, lists=True),
    "a watch that hangs": Follow({"verbs": ["watch"], "hang": True}, lists=True),
    "a watch that breaks": Follow({"verbs": ["watch"], "reset": "before", "times": 1}, lists=True),
    "no list": Follow({"verbs": ["list"], "error": "TooManyRequests", "times": 1}, lists=True),
    "a list that breaks": Follow({"verbs": ["list"], "reset": "before", "times": 1}, lists=True),
    "a stale list": Follow({"verbs": ["list"], "stale": {"revisions": 1, "all": True}}, lists=True, never="add a 3"),
}


STREAMED: Final = ("client-go, streamed list", "kube-rs, streamed list")
CASES: Final = [
    (row, client)
    for client in ("client-go", "kube-rs", *STREAMED, "kubernetes", "kopf")
    for row, follow in FOLLOWS.items()
    if client not in STREAMED or follow.fault.get("verbs") != ["list"]  # they list by a watch
    if (client, row) != ("kopf", "an expired watch")  # see test_faults_kopf.py
]


@pytest.mark.slow
@pytest.mark.parametrize(("row", "client"), CASES, indirect=["client"])
def test_an_informer_meets_a_fault(row: str, client: Driven, server: Noxu, new_namespace: Callable[[], str]) -> None:
    follow, namespace = FOLLOWS[row], new_namespace()
    eventually(lambda: len(server.list("configmaps", namespace=namespace)) == 1)  # kube-root-ca.crt, which is not ours
    put(server, namespace, "a", 1)
    if not follow.lists:
        client("follow", namespace)
        eventually(lambda: client("seen", namespace)["store"] == ["a 1"])
    put(server, namespace, "a", 3)
    if not follow.lists:
        eventually(lambda: client("seen", namespace)["store"] == ["a 3"])  # so its watch is open
    # views are of whole collections, so they are of a client instead; so is a restart, which the test does not meet
    where = {"user_agent": client.agent} if {"view", "restart"} & {*follow.fault} else {"namespace": namespace}
    with server.fault(resource="configmaps", **where, **follow.fault) as fault:
        if follow.lists:
            client("follow", namespace)
            if "view" not in follow.fault:
                eventually(lambda: fault.hits)
        put(server, namespace, "a", 4)
        put(server, namespace, "b", 5)
        put(server, namespace, "a", 6)
        server.delete("configmaps", "b", namespace=namespace)
        if follow.past:
            assert client("seen", namespace)["store"] == ["a 3"]
        elif "view" not in follow.fault and "hang" not in follow.fault:
            eventually(lambda: client("seen", namespace)["store"] == ["a 6"])
    eventually(lambda: client("seen", namespace)["store"] == ["a 6"])
    assert numbers(server, namespace) == {"a": 6}
    if follow.all and client.name != "kopf":  # which hands on the last of those that come within 0.1 s
        eventually(lambda: _once(client("seen", namespace)["events"])[-len(CHANGES) :] == CHANGES)
    assert follow.never not in client("seen", namespace)["events"]


def _once(events: list[str]) -> list[str]:
    """The events without repeated ones, which client-go hands on as updates."""
    kept: list[str] = []
    for event in events:
        if event not in kept and event.replace("update", "add") not in kept:
            kept.append(event)
    return kept


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "is_reported"),
    [("client-go", True), ("kubernetes", True), ("kube-rs", False), ("kube-rs, streamed list", False)],
    indirect=["client"],
)
def test_a_deletion_between_a_watch_and_a_list(
    client: Driven, is_reported: bool, server: Noxu, new_namespace: Callable[[], str]
) -> None:
    """A reflector of kube-rs has the objects of the list only, and its watcher has no event of the deletion."""
    namespace = new_namespace()
    put(server, namespace, "a", 1)
    client("follow", namespace)
    eventually(lambda: client("seen", namespace)["store"] == ["a 1"])
    with server.fault(resource="configmaps", user_agent=client.agent, view="hold"):
        server.delete("configmaps", "a", namespace=namespace)
    eventually(lambda: client("seen", namespace)["store"] == [])
    eventually(lambda: not is_reported or "delete a 1" in client("seen", namespace)["events"])
    assert ("delete a 1" in client("seen", namespace)["events"]) is is_reported
