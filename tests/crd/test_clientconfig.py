"""Conversion webhooks: URLs, services, CA bundles, review versions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noxu.crd.clientconfig import ca_bundle_errors, conversion_errors, service_errors, url_errors
from noxu.values import Json, Object
from tests.rows import rows

FORM = "; desired format: https://host[/path]"
LABEL_PART = "a DNS-1035 label must consist of"


def webhook(config: Json, *reviews: str) -> Object:
    return {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": list(reviews)}}


URL = {"url": "https://example.com"}
SERVICE = {"name": "s", "namespace": "n", "port": 443}
AT = "c.webhookClientConfig"

CONVERSIONS: list[tuple[str, Object, list[str]]] = [
    ("none", {"strategy": "None"}, []),
    ("nothing", {"strategy": ""}, ["c.strategy: Required value"]),
    ("something else", {"strategy": "Foo"}, ['c.strategy: Unsupported value: "Foo": supported values: "None", "Webhook"']),
    ("a webhook", webhook(URL, "v1"), []),
    ("a webhook without anything", {"strategy": "Webhook"}, [f"{AT}: Required value: required when strategy is set to Webhook", "c.conversionReviewVersions: Required value"]),
    ("neither URL nor service", webhook({}, "v1"), [f"{AT}: Required value: exactly one of url or service is required"]),
    ("both", webhook({**URL, "service": SERVICE}, "v1"), [f"{AT}: Required value: exactly one of url or service is required"]),
    ("a webhook for strategy None", {**webhook(URL, "v1"), "strategy": "None"}, [f"{AT}: Forbidden: should not be set when strategy is not set to Webhook", "c.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook"]),
    ("no review version", webhook(URL), ["c.conversionReviewVersions: Required value"]),
    ("unknown review versions", webhook(URL, "v7", "v7"), ['c.conversionReviewVersions[1]: Invalid value: "v7": duplicate version', 'c.conversionReviewVersions: Invalid value: ["v7","v7"]: must include at least one of v1, v1beta1']),
    ("an unknown one and a known one", webhook(URL, "v7", "v1beta1"), []),
    ("name and namespace of a service are swapped in errors", webhook({"service": {**SERVICE, "name": ""}}, "v1"), [f"{AT}.service.namespace: Required value"]),
]  # fmt: skip


@rows(("conversion", "messages"), [row[1:] for row in CONVERSIONS], ids=[row[0] for row in CONVERSIONS])
def test_conversions(conversion: Object, messages: list[str]) -> None:
    assert [str(error) for error in conversion_errors(conversion, "c")] == messages


def test_review_versions_are_labels() -> None:
    [error] = conversion_errors(webhook(URL, "v1", "V"), "c")
    assert str(error).startswith(f'c.conversionReviewVersions[1]: Invalid value: "V": {LABEL_PART}')


def test_checks_relaxed_on_update() -> None:
    conversion = webhook({**URL, "caBundle": "Zm9v"}, "v7")
    assert len(list(conversion_errors(conversion, "c", known_review_version=False))) == 0
    [error] = conversion_errors(conversion, "c", known_review_version=False, readable_ca=True)
    assert error.field == f"{AT}.caBundle"


URLS: list[tuple[str, str, list[str]]] = [
    ("fine", "https://example.com/path", []),
    ("with a port", "https://127.0.0.1:9443/x", []),
    ("not secure", "http://example.com", [f'u: Invalid value: "http": \'https\' is the only allowed URL scheme{FORM}']),
    ("this machine", "http://127.0.0.1:9443/x", []),
    ("this machine by name", "http://LocalHost/x", []),
    ("this machine with IPv6", "http://[::1]:9443", []),
    ("another machine of this network", "http://10.0.0.1:80", [f'u: Invalid value: "http": \'https\' is the only allowed URL scheme{FORM}']),
    ("a name that begins like this machine", "http://127.0.0.1.example.com:80", [f'u: Invalid value: "http": \'https\' is the only allowed URL scheme{FORM}']),
    ("another protocol to this machine", "ftp://127.0.0.1", [f'u: Invalid value: "ftp": \'https\' is the only allowed URL scheme{FORM}']),
    ("no host", "https:///x", [f'u: Invalid value: "": host must be specified{FORM}']),
    ("no URL", "", [f'u: Invalid value: "": \'https\' is the only allowed URL scheme{FORM}', f'u: Invalid value: "": host must be specified{FORM}']),
    ("with all that is not permitted", "https://u:p%20w@h/x?y=z#f", ['u: Invalid value: "u:p%20w": user information is not permitted in the URL', 'u: Invalid value: "f": fragments are not permitted in the URL', 'u: Invalid value: "y=z": query parameters are not permitted in the URL']),
    ("not to be parsed", "https://a b", [f'u: Required value: url must be a valid URL: parse "https://a b": invalid character " " in host name{FORM}']),
]  # fmt: skip


@rows(("url", "messages"), [row[1:] for row in URLS], ids=[row[0] for row in URLS])
def test_urls(url: str, messages: list[str]) -> None:
    assert [str(error) for error in url_errors(url, "u")] == messages


SERVICES: list[tuple[str, Object, list[str]]] = [
    ("fine", {}, []),
    ("nameless", {"name": "", "namespace": ""}, ["s.name: Required value", "s.namespace: Required value"]),
    ("port 0", {"port": 0}, ["s.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive"]),
    ("port 65536", {"port": 65536}, ["s.port: Invalid value: 65536: port is not valid: must be between 1 and 65535, inclusive"]),
    ("an empty path", {"path": ""}, []),
    ("a path", {"path": "/a/b.c/"}, []),
    ("two slashes", {"path": "//"}, ['s.path: Invalid value: "//": segment[0] may not be empty']),
    ("a relative path loses its first character", {"path": "a//b"}, ['s.path: Invalid value: "a//b": must start with a \'/\'', 's.path: Invalid value: "a//b": segment[0] may not be empty', 's.path: Invalid value: "a//b": segment[1] may not be empty']),
]  # fmt: skip


@pytest.mark.parametrize(("change", "messages"), [row[1:] for row in SERVICES], ids=[row[0] for row in SERVICES])
def test_services(change: Object, messages: list[str]) -> None:
    assert [str(error) for error in service_errors({**SERVICE, **change}, "s")] == messages


def test_segments_of_paths_are_subdomains() -> None:
    [error] = service_errors({**SERVICE, "path": "/ok/x_"}, "s")
    assert str(error).startswith('s.path: Invalid value: "/ok/x_": segment[1]: a lowercase RFC 1123 subdomain')


def test_ca_bundles_are_echoed_in_base64() -> None:
    assert [str(error) for error in ca_bundle_errors("Zm9v", "ca")] == [
        'ca: Invalid value: "Zm9v": unable to load root certificates: unable to parse bytes as PEM block'
    ]


def test_conversions_are_part_of_validation(build: Callable[..., Object], messages: Callable[..., list[str]]) -> None:
    crd = build(conversion=webhook({"url": "http://h", "caBundle": "Zm9v"}, "v1"))
    assert messages(crd) == [  # the bundle does not matter before the CRD is established
        f"spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme{FORM}"
    ]
