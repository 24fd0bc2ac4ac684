"""Small objects with very many errors: the answer is bounded, and says how many errors it leaves out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from noxu.api.errors import MAX_REPORTED_ERRORS, MAX_REPORTED_TEXT
from noxu.crd import types, update, validation
from noxu.crd.types import default
from noxu.testing.handle import Noxu
from tests.hostile.raw_http import JSON, Reply, Target, custom_resource, definition, path_of
from tests.timing import cpu_seconds

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACE = "/api/v1/namespaces/default"
SIZE = 15_000  # bytes of each body, roughly
KEYS = [f"k{n}" for n in range(200)]
SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "keyed": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": KEYS,
            "items": {"type": "object", "required": KEYS, "properties": {key: {"type": "string"} for key in KEYS}},
        },
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
        "enum": {"type": "array", "items": {"type": "string", "enum": [f"value-{n}" for n in range(1000)]}},
        "rules": {
            "type": "array",
            "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'y'", "message": "m" * 2000}]},
        },
    },
}  # fmt: skip


def filled(item: Any) -> list[Any]:
    return [item] * (SIZE // (len(json.dumps(item, separators=(",", ":"))) + 1))


def of_kind(api_version: str, kind: str, spec: Any = None, **fields: Any) -> dict[str, Any]:
    given = {} if spec is None else {"spec": spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **given, **fields}


def config_map(**metadata: Any) -> dict[str, Any]:
    return {**of_kind("v1", "ConfigMap"), "metadata": {"name": "x", **metadata}}


def of_widgets(**fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **fields}
    return definition("widgets") | {"spec": {**definition("widgets")["spec"], "versions": [version]}}


def pod(**fields: Any) -> dict[str, Any]:
    return of_kind("v1", "Pod", {"containers": [{"name": "a", "image": "b"}], **fields})


POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
MAPS = f"{NAMESPACE}/configmaps"
ROWS: dict[str, tuple[str, Any]] = {
    "a list of keys": (path_of("drops"), custom_resource("Drop", "x", {"keyed": [{}] * 900})),
    "a set": (path_of("drops"), custom_resource("Drop", "x", {"set": list(range(1800)) * 2})),
    "an enum": (path_of("drops"), custom_resource("Drop", "x", {"enum": filled("x")})),
    "rules": (path_of("drops"), custom_resource("Drop", "x", {"rules": filled("x")})),
    "labels": (MAPS, config_map(labels={f"a b{n}": "c d" for n in range(1000)})),
    "annotations": (MAPS, config_map(annotations={f"a b{n}": "" for n in range(1100)})),
    "finalizers": (MAPS, config_map(finalizers=[f" {n}" for n in range(2000)])),
    "owners": (MAPS, config_map(ownerReferences=filled({}))),
    "data": (MAPS, {**config_map(), "data": {f" {n}": "" for n in range(1500)}}),
    "unknown fields": (f"{MAPS}?fieldValidation=Strict", {**config_map(), **{f"u{n}": 1 for n in range(1500)}}),
    "containers": (f"{NAMESPACE}/pods", of_kind("v1", "Pod", {"containers": filled({})})),
    "volumes": (f"{NAMESPACE}/pods", pod(volumes=filled({}))),
    "tolerations": (f"{NAMESPACE}/pods", pod(tolerations=filled({"operator": "x"}))),
    "ports": (f"{NAMESPACE}/services", of_kind("v1", "Service", {"ports": filled({})})),
    "roles": (ROLES, of_kind("rbac.authorization.k8s.io/v1", "ClusterRole", rules=filled({}))),
    "webhooks": (
        WEBHOOKS, of_kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", webhooks=filled({})),
    ),
    "validations": (
        POLICIES,
        of_kind("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", {"validations": filled({"expression": "x."})}),
    ),
    "versions": (DEFINITIONS, definition("widgets") | {"spec": {**definition("widgets")["spec"], "versions": filled({})}}),
    "columns": (DEFINITIONS, of_widgets(additionalPrinterColumns=filled({"name": "", "type": "x", "jsonPath": "x"}))),
    "rules of a schema": (
        DEFINITIONS,
        of_widgets(schema={"openAPIV3Schema": {"type": "object", "x-kubernetes-validations": filled({"rule": "x"})}}),
    ),
    "properties": (
        DEFINITIONS,
        of_widgets(schema={"openAPIV3Schema": {"type": "object", "properties": {f"p{n}": {} for n in range(1200)}}}),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with Noxu(tmp_path_factory.mktemp("errors"), [definition("drops", SPEC)]) as running:
        yield Target(running.url)


@pytest.mark.parametrize(("path", "value"), ROWS.values(), ids=ROWS)
def test_an_answer_with_many_errors_is_bounded(target: Target, path: str, value: Any) -> None:
    body = json.dumps(value, separators=(",", ":")).encode()
    assert len(body) < 18_000
    reply: Reply = target.send("POST", path, body, {"Content-Type": JSON})
    assert reply.status in (400, 422)
    status = json.loads(reply.body)
    assert len(reply.body) < 4 * MAX_REPORTED_TEXT
    causes = status["details"].get("causes", []) if "details" in status else []
    assert len(causes) <= MAX_REPORTED_ERRORS
    if reply.status == 422 and len(causes) > 100:
        assert status["message"].endswith(" more errors]")


def test_many_versions_take_linear_time() -> None:
    crd = definition("widgets") | {"spec": {**definition("widgets")["spec"], "versions": [{}] * 5_000}}
    prepared = update.prepare_for_create(default(types.decode(crd).value))
    assert cpu_seconds(lambda: validation.validate(prepared), tries=2) < 2.5
