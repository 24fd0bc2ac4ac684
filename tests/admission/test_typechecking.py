"""Warnings in the status of ValidatingAdmissionPolicies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from conformance.client import Client
from noxu.admission.expressions import warnings
from noxu.registry.builtin import built_in_versions
from noxu.registry.custom import versions_of
from noxu.registry.served_resources import ServedResources
from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.rows import rows
from tests.timing import eventually


def definition(group: str, *versions: str, **properties: Object) -> Object:
    return {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": n == 0,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "object", "properties": properties}},
                        }
                    },
                }
                for n, name in enumerate(versions)
            ],
            "conversion": {"strategy": "None"},
        },
        "status": {"acceptedNames": {"plural": "widgets", "kind": "Widget", "listKind": "WidgetList", "singular": "widget"}},
    }  # fmt: skip


NUMBER: Object = {"type": "integer"}
ANY: Object = {"x-kubernetes-int-or-string": True}
OPEN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
WHEN: Object = {"type": "string", "format": "date-time"}
A = definition(
    "a.example.com",
    "v1",
    "v2",
    n=NUMBER,
    any=ANY,
    open=OPEN,
    when=WHEN,
    names={"type": "array", "items": {"type": "string"}},
)
B = definition("b.example.com", "v1", n={"type": "string"})
CATALOG = ServedResources(built_in_versions())
for crd in (A, B):
    CATALOG = CATALOG.with_definition(crd["metadata"]["name"], versions_of(crd, 1))


def rule(group: str = "a.example.com", **more: list[str]) -> Object:
    return {"operations": ["*"], "apiGroups": [group], "apiVersions": ["v1"], "resources": ["widgets"], **more}


def warned(*expressions: str, rules: tuple[Object, ...] = (rule(),), **spec: Any) -> list[Object]:
    validations = [{"expression": text} for text in expressions]
    policy = {"spec": {"matchConstraints": {"resourceRules": list(rules)}, "validations": validations, **spec}}
    return warnings(policy, CATALOG)


@rows(
    "expression",
    [
        "object.spec.n < 10",
        "oldObject.spec.n < object.spec.n",
        "object.spec.any == 'x' || object.spec.any == 1",
        "object.spec.when < timestamp('2024-01-01T00:00:00Z')",
        "object.spec.names.all(name, name.startsWith('x'))",
        "object.metadata.labels['a'] == 'b' && object.metadata.generation == 1",
        "object.metadata.ownerReferences.exists(o, o.kind == 'Pod')",
        "object.metadata.creationTimestamp < timestamp('2024-01-01T00:00:00Z')",
        "object.apiVersion == 'a.example.com/v1'",
        "request.name == namespaceObject.metadata.name",
        "authorizer.group('').resource('pods').check('get').allowed()",
        "object.spec.n",  # not what it evaluates to, only whether it can
    ],
)
def test_well_typed_expressions_give_no_warning(expression: str) -> None:
    assert warned(expression) == []


@pytest.mark.parametrize(
    ("expression", "warning"),
    [
        ("object.spec.none == 1", "<input>:1:12: undefined field 'none'\n | object.spec.none == 1\n | ...........^"),
        ("object.spec.open.x == 1", "<input>:1:17: undefined field 'x'\n | object.spec.open.x == 1\n | ................^"),
        ("object.spec.n == 'x'", "<input>:1:15: found no matching overload for '_==_' applied to '(int, string)'\n"
         " | object.spec.n == 'x'\n | ..............^"),
        ("oldObject.metadata.labels == 1", "<input>:1:27: found no matching overload for '_==_' applied to '(map(string, string), int)'\n"
         " | oldObject.metadata.labels == 1\n | ..........................^"),
        ("object.spec ==", "<input>:1:15: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', "
         "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | object.spec ==\n | ..............^"),
        ("object.spec == 1", "<input>:1:13: found no matching overload for '_==_' applied to '(Widget1.spec, int)'\n"
         " | object.spec == 1\n | ............^"),
    ],
)  # fmt: skip
def test_ill_typed_expressions_give_a_warning(expression: str, warning: str) -> None:
    messages = f"a.example.com/v1, Kind=Widget: ERROR: {warning}\n"
    assert warned("true", expression) == [{"fieldRef": "spec.validations[1].expression", "warning": messages}]


def test_messages_are_checked_too() -> None:
    validations = [{"expression": "true", "messageExpression": "string(object.spec.none)"}]
    assert [warning["fieldRef"] for warning in warned(validations=validations)] == [
        "spec.validations[0].messageExpression"
    ]


def test_every_kind_that_is_named_is_reported() -> None:
    [found] = warned("object.spec.n < 10 && object.spec.none == 1", rules=(rule("b.example.com"), rule()))
    first, second = found["warning"].split("\n\n")
    assert first.startswith("a.example.com/v1, Kind=Widget: ERROR: <input>:1:34: undefined field 'none'")
    assert second.startswith("b.example.com/v1, Kind=Widget: ERROR: <input>:1:15: found no matching overload for '_<_'")
    assert "ERROR: <input>:1:34: undefined field 'none'" in second


@pytest.mark.parametrize(
    ("case", "rules", "kinds"),
    [
        ("several versions", (rule(apiVersions=["v2", "v1"]),), ["a.example.com/v1", "a.example.com/v2"]),
        ("the same twice", (rule(), rule()), ["a.example.com/v1"]),
        ("any version", (rule(apiVersions=["*"]),), []),
        ("any group", (rule(apiGroups=["*"]),), []),
        ("all resources and one", (rule(resources=["*", "widgets"]),), ["a.example.com/v1"]),
        ("subresources", (rule(resources=["widgets/status"]),), []),
        ("unknown resources", (rule("unknown.example.com"),), []),
        ("no rules", (), []),
    ],
)
def test_kinds_that_are_checked(case: str, rules: tuple[Object, ...], kinds: list[str]) -> None:
    found = warned("object.spec.none == 1", rules=rules)
    messages = found[0]["warning"].split("\n\n") if found else []
    assert [message.partition(",")[0] for message in messages] == kinds, case


@pytest.mark.parametrize(
    ("resource", "expression", "fits"),
    [
        ("configmaps", "object.data['a'] == 'b' && object.immutable", True),
        ("configmaps", "object.binaryData['a'] == b'b'", True),
        ("configmaps", "object.spec == 1", False),
        ("namespaces", "object.status.conditions.all(c, c.lastTransitionTime > timestamp('2024-01-01T00:00:00Z'))", True),
        ("namespaces", "object.spec.finalizers == 'x'", False),
    ],
)  # fmt: skip
def test_built_in_kinds_have_types(resource: str, expression: str, fits: bool) -> None:
    assert (warned(expression, rules=(rule("", resources=[resource]),)) == []) is fits


def test_kinds_that_contain_themselves_have_none() -> None:
    crds = rule("apiextensions.k8s.io", resources=["customresourcedefinitions"])
    assert warned("object.nonsense == 1", rules=(crds,)) == []


@pytest.mark.parametrize(
    ("kind", "expression", "fits"),
    [
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "params.data['a'] == 'b'", True),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "params.data == 1", False),
        ({"apiVersion": "b.example.com/v1", "kind": "Widget"}, "params.spec.n == 'x'", True),
        ({"apiVersion": "b.example.com/v1", "kind": "Widget"}, "params.spec.n == object.spec.n", False),
        ({"apiVersion": "b.example.com/v1", "kind": "Nobody"}, "params.anything == 1", True),
        (None, "params == null", False),
    ],
)
def test_params_have_types(kind: Object | None, expression: str, fits: bool) -> None:
    assert (warned(expression, paramKind=kind) == []) is fits


def test_variables_have_the_types_of_their_expressions() -> None:
    variables = [{"name": "n", "expression": "object.spec.n"}, {"name": "bad", "expression": "object.spec.none"}]
    [found] = warned("variables.n == 'x'", "variables.bad == 'x'", variables=variables)
    assert "(int, string)" in found["warning"]


# The status


@pytest.fixture(scope="module")
def client(noxu_session: Noxu) -> Iterator[Client]:
    with Client(noxu_session.url) as client:
        yield client


def test_the_status_has_the_warnings(client: Client) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    configmaps = rule("", resources=["configmaps"])
    configmaps["operations"] = ["CONNECT"]
    spec = {"matchConstraints": {"resourceRules": [configmaps]}, "validations": [{"expression": "object.nope == 1"}]}
    version = "admissionregistration.k8s.io/v1"
    body = {"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "checked"}, "spec": spec}
    assert client.send("POST", path, body).code == 201

    def status(generation: int) -> Object:
        def observed() -> Object | None:
            found: Object = client.send("GET", f"{path}/checked").body.get("status") or {}
            return found if found.get("observedGeneration") == generation else None

        found = eventually(observed)
        assert found is not None
        return found

    warning = "/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'nope'\n | object.nope == 1\n | ......^\n"
    checking = {"expressionWarnings": [{"fieldRef": "spec.validations[0].expression", "warning": warning}]}
    assert status(1) == {"observedGeneration": 1, "typeChecking": checking}
    patch = {"spec": {"validations": [{"expression": "object.data == {}"}]}}
    assert client.send("PATCH", f"{path}/checked", patch, "application/merge-patch+json").code == 200
    assert status(2) == {"observedGeneration": 2, "typeChecking": {}}
    managers = client.send("GET", f"{path}/checked").body["metadata"]["managedFields"]
    assert [(manager["manager"], manager["subresource"]) for manager in managers if "subresource" in manager] == [
        ("validatingadmissionpolicy-status", "status")
    ]
    client.send("DELETE", f"{path}/checked")
