"""Approved CertificateSigningRequests are signed (upstream's certificatesigningrequest-signing-controller).

It signs for the signers of kubernetes.io that issue certificates of the cluster's CA (`certificate_issuing.SIGNERS`), and
leaves others to their own controllers. A request that its signer does not accept gets the condition `Failed`
(SignerValidationFailure). Nothing is approved here: `kubectl certificate approve` does that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from noxu.api import errors
from noxu.clock import rfc3339_now
from noxu.controllers import controller
from noxu.controllers.controller import Controller, ControllerParts
from noxu.go import base64
from noxu.registry.cache import Change
from noxu.registry.draft import Action, Body, Options, WriteRequest
from noxu.registry.stored_object import StoredObject, object_at
from noxu.values import Object, copy
from noxu_storage.types import Key

if TYPE_CHECKING:
    pass


class SigningController(Controller[Key]):
    """Signs what is approved. `authority` gives the CA, which may change, when a request needs it."""

    name = "certificatesigningrequest-signing-controller"
    follows = (("certificates.k8s.io", "certificatesigningrequests"),)
    user = controller.controller("certificate-controller")

    def __init__(self, parts: ControllerParts) -> None:
        super().__init__(parts)
        self._authority = parts.signing_ca

    def observe(self, change: Change) -> Iterable[Key]:
        return [change.key] if change.entry is not None and _may_be_approved(change.entry) else ()

    def resync(self) -> Iterable[Key]:
        return [key for key, entry in self.collection.entries.items() if _may_be_approved(entry)]

    async def reconcile(self, key: Key) -> None:
        entry = self.collection.entries.get(key)
        if entry is None:
            return
        value = copy(object_at(entry, self.resource))
        if not is_to_sign(value):
            return
        status: Object = value["status"]
        try:
            # in a thread: the first request imports cryptography, and a key may be a large one of RSA
            status["certificate"] = base64.encode(await asyncio.to_thread(self._issue, value["spec"]))
        except _issuing().RequestRefused as refusal:
            failed = {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": str(refusal)}
            now = rfc3339_now(self.clock)
            status.setdefault("conditions", []).append({**failed, "lastUpdateTime": now})
        except (ValueError, OSError) as error:
            raise errors.plain_error(f"cannot sign the request: {error}") from None
        options = Options(field_manager=controller.CONTROLLER_MANAGER)
        request = WriteRequest(
            Action.REPLACE,
            self.resource,
            name=key.name,
            subresource="status",
            body=Body(value),
            options=options,
            user=self.user,
        )
        await self.writer.write(request)

    def _issue(self, spec: Object) -> bytes:
        now = self.clock.now()
        asked = base64.decode(spec.get("request") or "")
        seconds = spec.get("expirationSeconds")
        certificate: bytes = _issuing().issue(
            asked, spec["signerName"], spec.get("usages") or (), seconds, self._authority(), now
        )
        return certificate


def _issuing() -> ModuleType:
    """What issues certificates; imported with the first request, because it imports cryptography."""
    return import_module("noxu.controllers.certificate_issuing")


def _may_be_approved(entry: StoredObject) -> bool:
    return b'"Approved"' in entry.stored


def is_to_sign(value: Object) -> bool:
    """Whether a request is approved, is for one of these signers, and has neither a certificate nor failed."""
    status = value.get("status") or {}
    conditions = {(condition.get("type"), condition.get("status")) for condition in status.get("conditions") or ()}
    types = {kind for kind, _ in conditions}
    is_approved = "Approved" in types and "Denied" not in types
    return (
        is_approved
        and ("Failed", "True") not in conditions
        and not status.get("certificate")
        and value["spec"].get("signerName") in _issuing().SIGNERS
    )
