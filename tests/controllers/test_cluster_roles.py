"""Aggregated ClusterRoles have the rules of those that their selectors match."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from noxu.controllers.access_rules import aggregated
from noxu.values import Object
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world, default_plane
from tests.faults.flaky import FlakyStore

GROUP = "rbac.authorization.k8s.io"


def role(name: str, *resources: str, labels: Any = None, selects: Any = None) -> Object:
    value: Object = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels or {}},
        "rules": [rule(resource) for resource in resources],
    }
    if selects is not None:
        value["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": labels} for labels in selects]}
    return value


def rule(resource: str) -> Object:
    return {"apiGroups": [""], "resources": [resource], "verbs": ["get"]}


VIEW, EDIT = {"to-view": "true"}, {"to-edit": "true"}
AGGREGATED = [
    ("no role matches", [role("all", selects=[VIEW])], []),
    ("rules come in the order of names", [role("all", selects=[VIEW]), role("b", "pods", labels=VIEW), role("a", "nodes", labels=VIEW)],
     ["nodes", "pods"]),
    ("selectors come first", [role("all", selects=[EDIT, VIEW]), role("a", "pods", labels=VIEW), role("b", "nodes", labels=EDIT)],
     ["nodes", "pods"]),
    ("equal rules once", [role("all", selects=[VIEW]), role("a", "pods", labels=VIEW), role("b", "pods", "nodes", labels=VIEW)],
     ["pods", "nodes"]),
    ("never its own", [role("all", "secrets", labels=VIEW, selects=[VIEW]), role("a", "pods", labels=VIEW)], ["pods"]),
    ("others are left out", [role("all", selects=[VIEW]), role("a", "pods")], []),
]  # fmt: skip


@pytest.mark.parametrize(("roles", "resources"), [row[1:] for row in AGGREGATED], ids=[row[0] for row in AGGREGATED])
def test_rules(roles: list[Object], resources: list[str]) -> None:
    assert aggregated(roles[0], {each["metadata"]["name"]: each for each in roles}) == [
        rule(name) for name in resources
    ]


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock, default_plane) as world:
        yield world


async def rules_of(world: World, name: str) -> Any:
    await world.settled()
    found = await world.get(world.resource("clusterroles", GROUP), name)
    return [each["resources"][0] for each in found["rules"] or ()]


async def test_a_role_follows_those_it_selects(world: World) -> None:
    await world.apply(role("all", "secrets", selects=[VIEW]))
    assert await rules_of(world, "all") == [], "Rules that are written by hand are replaced."
    await world.apply(role("a", "pods", labels=VIEW))
    assert await rules_of(world, "all") == ["pods"]
    await world.apply(role("a", "nodes", labels=VIEW))
    assert await rules_of(world, "all") == ["nodes"]
    await world.delete(world.resource("clusterroles", GROUP), "a")
    assert await rules_of(world, "all") == []


async def test_aggregation_passes_through_other_aggregated_roles(world: World) -> None:
    await world.apply(
        role("admin", selects=[EDIT]), role("edit", labels=EDIT, selects=[VIEW]), role("a", "pods", labels=VIEW)
    )
    assert await rules_of(world, "admin") == ["pods"]


async def test_a_settled_role_is_not_written_again(world: World) -> None:
    await world.apply(role("all", selects=[VIEW]), role("a", "pods", labels=VIEW))
    await rules_of(world, "all")
    revision = world.store.revision
    await world.apply(role("other", "nodes"))
    await world.settled()
    assert world.store.revision == revision + 1


async def test_the_controller_owns_the_rules(world: World) -> None:
    await world.apply(role("all", selects=[VIEW]), role("a", "pods", labels=VIEW))
    await rules_of(world, "all")
    found = await world.get(world.resource("clusterroles", GROUP), "all")
    owners = {entry["manager"]: entry for entry in found["metadata"]["managedFields"]}
    assert "f:rules" in owners["clusterrole-aggregation-controller"]["fieldsV1"]
