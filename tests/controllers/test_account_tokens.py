"""Secrets with tokens of service accounts: what they get, and when they are deleted."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from noxu.control_plane import ControlPlane
from noxu.controllers.account_tokens import ACCOUNT_NAME, ACCOUNT_UID
from noxu.security.credentials import Rejected, Token
from noxu.values import Object
from tests.clocks import ManualClock
from tests.control_planes import assemble
from tests.controllers.conftest import World, a_world
from tests.faults.flaky import FlakyStore

CA = "-----BEGIN CERTIFICATE-----\n"
TYPE = "kubernetes.io/service-account-token"
ROBOT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}


def with_ca(store: FlakyStore, clock: ManualClock) -> ControlPlane:
    return assemble(store, clock=clock, controllers=["*"], root_ca=CA)


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock, with_ca) as world:
        yield world


def secret(account: str = "robot", **data: str) -> Object:
    metadata = {"name": "s", "namespace": "default", "annotations": {ACCOUNT_NAME: account}}
    return {"apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": metadata, "data": data}


async def found(world: World) -> Any:
    await world.settled()
    return await world.find(world.resource("secrets"), "s", "default")


async def test_a_secret_gets_a_token_that_is_a_credential(world: World) -> None:
    await world.apply(ROBOT, secret())
    account = await world.get(world.resource("serviceaccounts"), "robot", "default")
    stored = await found(world)
    data = {name: base64.b64decode(value).decode() for name, value in stored["data"].items()}
    assert (data["ca.crt"], data["namespace"]) == (CA, "default")
    assert stored["metadata"]["annotations"] == {ACCOUNT_NAME: "robot", ACCOUNT_UID: account["metadata"]["uid"]}
    identity = world.plane.tokens(Token(data["token"]), world.plane.tokens.audiences)
    assert identity is not None
    assert identity.user.name == "system:serviceaccount:default:robot"
    [manager] = [one for one in stored["metadata"]["managedFields"] if one["manager"] == "kube-controller-manager"]
    assert manager["operation"] == "Update"


async def test_what_it_has_is_kept_and_what_it_lacks_comes_back(world: World) -> None:
    await world.apply(ROBOT, secret())
    first = (await found(world))["data"]
    await world.apply(secret(token=first["token"]))
    assert (await found(world))["data"] == first
    await world.apply(secret())
    second = (await found(world))["data"]
    assert base64.b64decode(second["token"]).count(b".") == 2


async def test_another_ca_is_replaced(world: World) -> None:
    await world.apply(ROBOT, secret(**{"ca.crt": "eA=="}))
    assert base64.b64decode((await found(world))["data"]["ca.crt"]).decode() == CA


async def test_without_its_account_a_secret_is_deleted(world: World) -> None:
    await world.apply(secret())
    assert await found(world) is None


async def test_it_is_deleted_with_its_account_and_the_token_ends(world: World) -> None:
    await world.apply(ROBOT, secret())
    token = base64.b64decode((await found(world))["data"]["token"]).decode()
    await world.delete(world.resource("serviceaccounts"), "robot", "default")
    assert await found(world) is None
    with pytest.raises(Rejected, match="Token has been invalidated"):
        world.plane.tokens(Token(token), world.plane.tokens.audiences)


async def test_the_secret_of_another_account_of_the_name_is_deleted(world: World) -> None:
    value = secret()
    value["metadata"]["annotations"][ACCOUNT_UID] = "another"
    await world.apply(ROBOT, value)
    assert await found(world) is None


@pytest.mark.parametrize("kind", ["Opaque", "example.com/token"])
async def test_other_secrets_are_left_alone(world: World, kind: str) -> None:
    value = secret() | {"type": kind}
    value["metadata"]["annotations"]["x"] = f'"{TYPE}"'
    await world.apply(value)
    assert "token" not in ((await found(world)).get("data") or {})
