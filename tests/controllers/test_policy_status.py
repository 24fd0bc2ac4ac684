"""The status of ValidatingAdmissionPolicies: the generation that was checked, and warnings about its expressions."""

from __future__ import annotations

from noxu.controllers.policy_status import MANAGER
from noxu.features import ADMISSION_GROUP
from noxu.registry.resource import Resource
from noxu.values import Json, Object
from noxu_storage.types import Conflict, Key, Unavailable
from tests.controllers.conftest import World


def policy(expression: str = "object.metadata.name != 'x'", **metadata: Json) -> Object:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    return {
        "apiVersion": f"{ADMISSION_GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p", **metadata},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]},
    }


def policies(world: World) -> Resource:
    return world.resource("validatingadmissionpolicies", ADMISSION_GROUP)


async def status(world: World) -> Object:
    await world.settled()
    found: Object = (await world.get(policies(world), "p")).get("status", {})
    return found


async def test_the_generation_that_was_checked(world: World) -> None:
    await world.apply(policy())
    assert await status(world) == {"observedGeneration": 1, "typeChecking": {}}
    await world.apply(policy("true"))
    assert (await status(world))["observedGeneration"] == 2


async def test_expressions_that_do_not_match_the_schema_are_reported_and_the_report_is_removed(world: World) -> None:
    await world.apply(policy("object.metadata.nothing == 1"))
    [warning] = (await status(world))["typeChecking"]["expressionWarnings"]
    assert warning["fieldRef"] == "spec.validations[0].expression"
    assert "undefined field 'nothing'" in warning["warning"]
    await world.apply(policy())
    assert await status(world) == {"observedGeneration": 2, "typeChecking": {}}


async def test_the_status_has_its_own_field_manager(world: World) -> None:
    await world.apply(policy())
    await world.settled()
    entries = (await world.get(policies(world), "p"))["metadata"]["managedFields"]
    assert [(entry["manager"], entry.get("subresource")) for entry in entries if entry["manager"] == MANAGER] == [
        (MANAGER, "status")
    ]


async def test_a_change_of_metadata_only_is_not_checked(world: World) -> None:
    await world.apply(policy())
    await world.settled()
    revision = world.store.revision
    await world.apply(policy(labels={"a": "b"}))
    await world.settled()
    assert world.store.revision == revision + 1


async def test_a_store_that_is_unavailable_at_first(world: World) -> None:
    world.store.fail("put", lambda key: key.name == "p", 3, Unavailable("planned"))
    await world.apply(policy())
    assert (await status(world))["observedGeneration"] == 1
    assert world.store.failures == 3


async def test_a_conflict_with_another_writer(world: World) -> None:
    world.store.fail("put", lambda key: key.name == "p", 2, Conflict(Key("", "", ""), None))
    await world.apply(policy())
    assert (await status(world))["observedGeneration"] == 1
    assert world.store.failures == 2


async def test_a_deleted_policy_is_ignored(world: World) -> None:
    await world.apply(policy())
    await world.delete(policies(world), "p")
    await world.settled()
    assert await world.find(policies(world), "p") is None
