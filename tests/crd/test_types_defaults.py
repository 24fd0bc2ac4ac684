"""Defaults of a decoded CRD."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from noxu.crd.types import decode, default
from noxu.values import Object

Build = Callable[..., Object]

NAMES: list[tuple[str, Object, Object]] = [
    ("singular and listKind follow from kind", {"plural": "foos", "kind": "Foo"}, {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}),
    ("what is given stays", {"plural": "foos", "kind": "Foo", "singular": "f", "listKind": "Foos"}, {"plural": "foos", "singular": "f", "kind": "Foo", "listKind": "Foos"}),
    ("without a kind nothing follows", {"plural": "foos"}, {"plural": "foos", "kind": ""}),
    ("short names stay between them", {"shortNames": ["f"], "categories": ["c"], "kind": "Foo"}, {"plural": "", "singular": "foo", "shortNames": ["f"], "kind": "Foo", "listKind": "FooList", "categories": ["c"]}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "names"), [row[1:] for row in NAMES], ids=[row[0] for row in NAMES])
def test_names(build: Build, given: Object, names: Object) -> None:
    assert json.dumps(default(decode(build(names=given)).value)["spec"]["names"]) == json.dumps(names)


SERVICE = {"namespace": "n", "name": "s"}
CONVERSIONS: list[tuple[str, Object | None, Object]] = [
    ("none is strategy None", None, {"strategy": "None"}),
    ("an empty one is not", {}, {"strategy": ""}),
    (
        "a service's port",
        {"strategy": "Webhook", "webhook": {"clientConfig": {"service": SERVICE}, "conversionReviewVersions": ["v1"]}},
        {
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"service": {**SERVICE, "port": 443}},
                "conversionReviewVersions": ["v1"],
            },
        },
    ),
    (
        "a port that is given, though it is 0",
        {"strategy": "Webhook", "webhook": {"clientConfig": {"service": {**SERVICE, "port": 0}}}},
        {
            "strategy": "Webhook",
            "webhook": {"clientConfig": {"service": {**SERVICE, "port": 0}}, "conversionReviewVersions": None},
        },
    ),
    ("an empty webhook is none", {"strategy": "Webhook", "webhook": {}}, {"strategy": "Webhook"}),
    (
        "so is one with an empty list",
        {"strategy": "None", "webhook": {"conversionReviewVersions": []}},
        {"strategy": "None"},
    ),
]


@pytest.mark.parametrize(("given", "full"), [row[1:] for row in CONVERSIONS], ids=[row[0] for row in CONVERSIONS])
def test_conversions(build: Build, given: Object | None, full: Object) -> None:
    crd = build(conversion=given)
    assert json.dumps(default(decode(crd).value)["spec"]["conversion"]) == json.dumps(full)


def test_stored_versions(build: Build) -> None:
    crd = decode(build()).value
    assert default(crd)["status"]["storedVersions"] == ["v1"]
    assert crd["status"]["storedVersions"] is None
    given = {**crd, "status": {**crd["status"], "storedVersions": ["v0"]}}
    assert default(given)["status"]["storedVersions"] == ["v0"]
    assert default(decode(build(versions=[])).value)["status"]["storedVersions"] is None
