"""The webhooks of a controller under test: which services the manifests name, and how they are reached without a cluster.

A webhook configuration, and the conversion of a CRD, name a Service. In an exploration the controller serves its webhooks on a port
of this machine. So each such service is at that port, the configurations get the CA of a certificate that is made for the
exploration, and the controller finds the certificate where controller-runtime looks for it, as if cert-manager had made it.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from noxu.config import ServiceName
from noxu.exploration.settings import Exploration, SettingsError, WebhookServer
from noxu.go import base64
from noxu.security import pki
from noxu.testing.sources import documents
from noxu.values import Object

HOST: Final = "127.0.0.1"
SERVING: Final = ("k8s-webhook-server", "serving-certs")
"""Below $TMPDIR, where controller-runtime looks for tls.crt and tls.key."""
HTTPS_PORT: Final = 443
_ADMISSION: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_WITHIN: Final = 0.5  # seconds for a connection to this machine


def prepared(exploration: Exploration) -> Exploration:
    """With manifests whose webhooks can be reached. Raises SettingsError, LoadError."""
    wanted = exploration.webhooks
    if wanted is None:
        return exploration
    values = [document.value for document in documents(*exploration.manifests)]
    services = services_of(values)
    if not services:
        raise SettingsError("webhooks: no manifest has a webhook whose clientConfig names a service")
    names = sorted({f"{service.name}.{service.namespace}.svc" for service in services})
    made = pki.in_memory([*names, "localhost", HOST], lambda: datetime.now(UTC))
    bundle = base64.encode(made.authority.certificate)
    manifests = tuple(with_authority(value, bundle) for value in values)
    server = wanted._replace(services=services, certificate=made.server.certificate, key=made.server.key)
    return replace(exploration, manifests=manifests, webhooks=server)


def services_of(values: Iterable[Object]) -> tuple[ServiceName, ...]:
    """Those that webhooks of the objects name."""
    found = [
        ServiceName(service.get("namespace", ""), service.get("name", ""), service.get("port") or HTTPS_PORT)
        for value in values
        for config in _client_configs(value)
        if (service := config.get("service"))
    ]
    return tuple(sorted(set(found)))


def with_authority(value: Object, bundle: str) -> Object:
    """The object, whose webhooks of services have this CA, in base64."""
    if not any(config.get("service") for config in _client_configs(value)):
        return value

    def changed(config: Object) -> Object:
        return {**config, "caBundle": bundle} if config.get("service") else config

    if value.get("kind") in _ADMISSION:
        webhooks = [{**webhook, "clientConfig": changed(webhook["clientConfig"])} for webhook in value["webhooks"]]
        return {**value, "webhooks": webhooks}
    spec = value["spec"]
    conversion = spec["conversion"]
    webhook = {**conversion["webhook"], "clientConfig": changed(conversion["webhook"]["clientConfig"])}
    return {**value, "spec": {**spec, "conversion": {**conversion, "webhook": webhook}}}


def _client_configs(value: Any) -> Iterator[Object]:
    if value.get("kind") in _ADMISSION:
        for webhook in value.get("webhooks") or ():
            yield webhook.get("clientConfig") or {}
    elif value.get("kind") == "CustomResourceDefinition":
        conversion = (value.get("spec") or {}).get("conversion") or {}
        yield (conversion.get("webhook") or {}).get("clientConfig") or {}


def write_certificate(server: WebhookServer, directory: Path) -> None:
    """Write the certificate and its key into the directory in which the controller looks for them."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "tls.crt").write_bytes(server.certificate)
    (directory / "tls.key").write_bytes(server.key)


def is_listening(port: int) -> bool:
    """Whether something answers at a port of this machine."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), _WITHIN):
        return True
    return False
