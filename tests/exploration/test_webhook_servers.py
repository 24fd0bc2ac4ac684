"""Webhooks of a controller: the services that manifests name get the certificate of the exploration, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from noxu.config import ServiceName
from noxu.exploration import webhook_servers
from noxu.exploration.settings import Exploration, SettingsError, WebhookServer, parse
from noxu.go import base64
from noxu.values import Object
from tests.rows import rows


def admission(kind: str, config: Object) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "a"},
        "webhooks": [
            {
                "name": "a.example.com",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "clientConfig": config,
            }
        ],
    }


def definition(config: Object) -> Object:
    conversion = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config}}
    return {"kind": "CustomResourceDefinition", "spec": {"group": "example.com", "conversion": conversion}}


SERVICE = {"namespace": "system", "name": "hooks", "path": "/mutate"}
NAMED = (ServiceName("system", "hooks", 443),)


@rows(
    ("value", "services", "has_authority"),
    [
        (admission("MutatingWebhookConfiguration", {"service": SERVICE}), NAMED, True),
        (admission("ValidatingWebhookConfiguration", {"service": {**SERVICE, "port": 8443}}), (ServiceName("system", "hooks", 8443),), True),
        (admission("ValidatingWebhookConfiguration", {"url": "https://127.0.0.1/"}), (), False),
        (definition({"service": SERVICE}), NAMED, True),
        (definition({"url": "https://127.0.0.1/"}), (), False),
        ({"kind": "CustomResourceDefinition", "spec": {"conversion": {"strategy": "None"}}}, (), False),
        ({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "a"}}, (), False),
        ({"kind": "ConfigMap", "data": {"service": "a"}}, (), False),
    ],
)  # fmt: skip
def test_services_that_webhooks_name(value: Object, services: tuple[ServiceName, ...], has_authority: bool) -> None:
    assert webhook_servers.services_of([value]) == services
    changed = webhook_servers.with_authority(value, "Q0E=")
    assert ("'caBundle': 'Q0E='" in str(changed)) == has_authority
    assert (changed == value) != has_authority
    assert "caBundle" not in str(value)


def test_the_certificate_is_for_the_services() -> None:
    hooks = admission("MutatingWebhookConfiguration", {"service": SERVICE})
    ready = webhook_servers.prepared(Exploration((), (), (hooks,), webhooks=WebhookServer()))
    assert ready.webhooks is not None
    assert ready.webhooks.services == NAMED
    certificate = x509.load_pem_x509_certificate(ready.webhooks.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "hooks.system.svc" in names.get_values_for_type(x509.DNSName)
    [loaded] = ready.manifests
    assert isinstance(loaded, dict)
    authority = x509.load_pem_x509_certificate(base64.decode(loaded["webhooks"][0]["clientConfig"]["caBundle"]))
    certificate.verify_directly_issued_by(authority)


def test_webhooks_of_nothing_are_refused() -> None:
    without = Exploration((), (), ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},))
    assert webhook_servers.prepared(without) is without
    with pytest.raises(SettingsError, match="no manifest has a webhook whose clientConfig names a service"):
        webhook_servers.prepared(replace(without, webhooks=WebhookServer()))


@rows(
    ("value", "message"),
    [
        ("yes", "webhooks: it is true, or {port: 9443, certDir: $HOME/certificates}"),
        ({"prot": 1}, "webhooks.prot: there is no such field; did you mean port?"),
        ({"port": 0}, "webhooks: port: 0 is no number of a port"),
        ({"certDir": "/tmp/certs"}, "webhooks: certDir: it begins with $TMPDIR or $HOME, those of the run"),
    ],
)
def test_settings_that_are_wrong(value: Any, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse({"webhooks": value}, Path())
    assert str(refused.value).startswith(message)
