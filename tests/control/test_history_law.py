"""The law of authors and causes: random clients that watch and write, against what each of them has seen itself.

1. Every revision has the author who wrote it.
2. What a client had received before it wrote is among the causes of that write or of an earlier one.
3. Causes are older than the write, and an event is a cause of one write of a client at most.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from noxu.testing.handle import Noxu
from noxu.testing.users import TestUser
from noxu.testing.watching import Watch

STEPS = 80


@dataclass
class Client:
    """A user with a watch of one namespace, and what it has received since its last write."""

    user: TestUser
    watch: Watch
    pending: int = 0
    received: set[int] = field(default_factory=set)


def config_map(name: str, value: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": str(value)}}


@pytest.mark.parametrize("seed", range(3))
def test_authors_and_causes(noxu: Noxu, seed: int) -> None:
    chance = random.Random(seed)
    first = noxu.create(config_map("first", 0))["metadata"]["resourceVersion"]
    clients = {
        name: Client(user := noxu.user(name), user.watch("configmaps", namespace="default", since=first))
        for name in ("ann", "bob", "cid")
    }
    wrote: dict[int, str] = {}
    seen_before: dict[int, set[int]] = {}
    there: set[str] = set()
    for step in range(STEPS):
        name, client = chance.choice(list(clients.items()))
        if chance.random() < 0.5 and client.pending:
            for _ in range(chance.randint(1, client.pending)):
                client.received.add(int(next(client.watch).object["metadata"]["resourceVersion"]))
                client.pending -= 1
            continue
        target = f"m{chance.randint(0, 4)}"
        if target not in there:
            written = client.user.create(config_map(target, step))
            there.add(target)
        elif chance.random() < 0.3:
            client.user.delete("configmaps", target)
            there.discard(target)
            written = None
        else:
            written = client.user.patch("configmaps", target, {"data": {"k": str(step)}})
        for each in clients.values():
            each.pending += 1
        revision = int(written["metadata"]["resourceVersion"]) if written else newest(noxu)
        wrote[revision], seen_before[revision] = name, client.received
        client.received = set()
    for client in clients.values():
        client.watch.close()

    log = {write.revision: write for write in noxu.log("configmaps", namespace="default", since=first, why=True)}
    assert {revision: write.user for revision, write in log.items()} == wrote
    for name in clients:
        known: set[int] = set()
        for revision in sorted(log):
            if wrote[revision] != name:
                continue
            events = [cause.revision for cause in log[revision].why if cause.how == "watch"]
            assert all(event < revision for event in events)
            assert known.isdisjoint(events)
            known.update(events)
            if not any(cause.how == "more" for cause in log[revision].why):
                assert seen_before[revision] <= known, f"{name} at {revision}"


def newest(noxu: Noxu) -> int:
    return noxu.log(limit=1)[0].revision
