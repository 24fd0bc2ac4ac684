"""A server that is killed during a garbage collection finishes it after its next start, and deletes nothing else."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.server_process import MAPS, Process
from tests.timing import eventually

CHILDREN = 60
KILLS = 3
POLICIES = {"background": "Background", "foreground": "Foreground", "orphan": "Orphan"}


def reference(owner: dict[str, Any]) -> dict[str, Any]:
    names = {"apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": True}
    return names | {name: owner["metadata"][name] for name in ("name", "uid")}


def create(server: Process, name: str, *owners: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "ownerReferences": [reference(owner) for owner in owners]}
    status, answer = server.ask("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert status == 201, answer
    found: dict[str, Any] = answer
    return found


def expected() -> dict[str, list[str]]:
    """The names of the objects that are left, with those of their owners."""
    orphans: dict[str, list[str]] = {f"orphan-{number}": [] for number in range(CHILDREN)}
    kept = {f"kept-{number}": ["kept"] for number in range(CHILDREN)}
    return orphans | kept | {"kept": []}


def left(server: Process) -> dict[str, list[str]]:
    items = server.ask("GET", MAPS)[1]["items"]
    return {
        item["metadata"]["name"]: [owner["name"] for owner in item["metadata"].get("ownerReferences", ())]
        for item in items
        if item["metadata"]["name"] != "kube-root-ca.crt"
    }


@pytest.fixture
def started(tmp_path: Path, port: int) -> Iterator[Process]:
    server = Process(tmp_path, port, profile="local")
    yield server
    if server.process.poll() is None:
        server.end(signal.SIGKILL)


@pytest.fixture
def family(started: Process) -> Process:
    """A server with owners and their children; some of those of `kept` had another owner, too."""
    owners = {name: create(started, name) for name in (*POLICIES, "kept")}
    for name, owner in owners.items():
        for number in range(CHILDREN):
            others = [owners["background"]] if name == "kept" and number % 2 else []
            create(started, f"{name}-{number}", owner, *others)
    return started


def test_a_killed_server_finishes_the_collection_after_its_next_start(family: Process, tmp_path: Path) -> None:
    server = family
    for name, policy in POLICIES.items():
        status, answer = server.ask("DELETE", f"{MAPS}/{name}", {"propagationPolicy": policy})
        assert status == 200, answer
    try:
        for _ in range(KILLS):
            time.sleep(random.uniform(0.0, 0.03))
            server.end(signal.SIGKILL)
            server = Process(tmp_path, server.port, profile="local")
            assert server.first_line.startswith("Noxu serves"), server.first_line
        eventually(lambda: left(server) == expected())
        output = server.end(signal.SIGTERM)
        assert "Traceback" not in output
    finally:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


def test_a_server_that_is_not_killed_ends_in_the_same_state(family: Process) -> None:
    for name, policy in POLICIES.items():
        family.ask("DELETE", f"{MAPS}/{name}", {"propagationPolicy": policy})
    eventually(lambda: left(family) == expected())
