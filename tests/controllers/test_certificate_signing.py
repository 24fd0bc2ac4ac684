"""Approved requests are signed; requests that their signer does not accept fail."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest
from cryptography import x509

from noxu.registry.draft import Action, Body, WriteRequest
from noxu.values import Object
from tests.clocks import ManualClock
from tests.controllers.conftest import World, a_world
from tests.controllers.test_certificate_issuing import CLIENT, request
from tests.faults.flaky import FlakyStore

GROUP = "certificates.k8s.io"


@pytest.fixture
async def world(store: FlakyStore, clock: ManualClock) -> AsyncIterator[World]:
    async with a_world(store, clock) as world:
        yield world


def asked(name: str = "r", **spec: Any) -> Object:
    whole = {"request": b64encode(request("O=dev,CN=ann")).decode(), "signerName": CLIENT, "usages": ["client auth"]}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {**whole, **spec},
    }


async def decide(world: World, decision: str, name: str = "r") -> None:
    resource = world.resource("certificatesigningrequests", GROUP)
    value = await world.get(resource, name)
    conditions = [{"type": decision, "status": "True", "reason": "Test", "message": "test"}]
    body = Body({**value, "status": {"conditions": conditions}})
    await world.plane.writer.write(WriteRequest(Action.REPLACE, resource, "", name, "approval", body))
    await world.settled()


async def status(world: World, name: str = "r") -> Any:
    return (await world.get(world.resource("certificatesigningrequests", GROUP), name)).get("status", {})


async def test_a_request_is_signed_when_it_is_approved(world: World) -> None:
    await world.apply(asked(expirationSeconds=3600))
    await world.settled()
    assert "certificate" not in await status(world)
    await decide(world, "Approved")
    found = x509.load_pem_x509_certificate(b64decode((await status(world))["certificate"]))
    assert found.subject.rfc4514_string() == "CN=ann,O=dev"
    assert (found.not_valid_after_utc - world.clock.now().replace(microsecond=0)).total_seconds() == 3600


async def test_all_requests_are_signed_by_the_same_ca(world: World) -> None:
    for name in ("r", "s"):
        await world.apply(asked(name))
        await decide(world, "Approved", name)
    first, second = [
        x509.load_pem_x509_certificate(b64decode((await status(world, name))["certificate"])) for name in ("r", "s")
    ]
    identifier = x509.AuthorityKeyIdentifier
    assert first.serial_number != second.serial_number
    assert (
        first.extensions.get_extension_for_class(identifier).value
        == second.extensions.get_extension_for_class(identifier).value
    )


UNSIGNED: list[tuple[str, Object, str]] = [
    ("denied", asked(), "Denied"),
    ("for another signer", asked(signerName="example.com/s"), "Approved"),
]


@pytest.mark.parametrize(("value", "decision"), [row[1:] for row in UNSIGNED], ids=[row[0] for row in UNSIGNED])
async def test_a_request_is_not_signed_if_it_is(world: World, value: Object, decision: str) -> None:
    await world.apply(value)
    await decide(world, decision)
    found = await status(world)
    assert "certificate" not in found
    assert [each["type"] for each in found["conditions"]] == [decision]


async def test_a_request_that_its_signer_refuses_has_failed(world: World) -> None:
    await world.apply(asked(usages=["server auth"]))
    await decide(world, "Approved")
    found = await status(world)
    failed = found["conditions"][1]
    assert "certificate" not in found
    assert (failed["type"], failed["status"], failed["reason"]) == ("Failed", "True", "SignerValidationFailure")
    assert failed["message"] == "invalid usage for client certificate: server auth"
