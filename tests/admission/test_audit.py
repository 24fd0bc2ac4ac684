"""Audit annotations of policies, and their entries in the trace of a write."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from noxu.control_plane import ControlPlane, resource_of, running
from noxu.registry.draft import Action, Body, Outcome, WriteRequest
from noxu.registry.resource import Resource
from noxu.registry.trace import Note, Trace
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from tests.control_planes import assemble

ADMISSION = "admissionregistration.k8s.io"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
FAILURES = "validation.policy.admission.k8s.io/validation_failure"


class Created(NamedTuple):
    """What is left of a write, besides the object."""

    audit: dict[str, str]
    warnings: list[str]
    trace: Trace


class World:
    """A control plane with policies about ConfigMaps."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def resource(self, group: str, plural: str) -> Resource:
        return resource_of(self.plane.served_resources, group, plural)

    async def write(self, resource: Resource, value: Object, namespace: str = "") -> Created:
        outcome, trace = Outcome(), Trace()
        await self.plane.writer.write(
            WriteRequest(Action.CREATE, resource, namespace, body=Body(value)), outcome, trace
        )
        return Created(outcome.audit_annotations, outcome.warnings, trace)

    async def configure(self, kind: str, name: str, **spec: Any) -> None:
        value = {"apiVersion": f"{ADMISSION}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        await self.write(self.resource(ADMISSION, PLURALS[kind]), value)

    async def validating(self, name: str, *actions: str, binding: Object | None = None, **spec: Any) -> None:
        spec.setdefault("validations", [{"expression": "object.data.n != '1'", "message": f"{name} says no"}])
        await self.configure("ValidatingAdmissionPolicy", name, matchConstraints={"resourceRules": [RULE]}, **spec)
        given = {"policyName": name, "validationActions": list(actions), **(binding or {})}
        await self.configure("ValidatingAdmissionPolicyBinding", name, **given)

    async def create(self, name: str = "c", **data: str) -> Created:
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": "1", **data}}
        return await self.write(self.resource("", "configmaps"), value, "default")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with running(assemble(MemoryStore())) as plane:
        yield World(plane)


async def test_failures_are_kept_for_bindings_that_audit(world: World) -> None:
    await world.validating("a", "Audit")
    await world.validating("b", "Warn")
    validations = [{"expression": "true"}, {"expression": "object.data.none == ''"}]
    await world.validating("c", "Audit", "Warn", validations=validations)
    kept = json.loads((await world.create()).audit[FAILURES])
    error = "expression 'object.data.none == ''' resulted in error: no such key: none"
    assert kept == [
        {"message": "a says no", "policy": "a", "binding": "a", "expressionIndex": 0, "validationActions": ["Audit"]},
        {"message": error, "policy": "c", "binding": "c", "expressionIndex": 1, "validationActions": ["Audit", "Warn"]},
    ]


async def test_no_more_failures_are_kept_than_fit(world: World) -> None:
    validations = [{"expression": "false", "message": str(n)} for n in range(60)]
    await world.validating("a", "Audit", validations=validations)
    kept = json.loads((await world.create()).audit[FAILURES])
    assert [entry["message"] for entry in kept] == [str(n) for n in range(50)]


async def test_annotations_are_kept_under_the_name_of_the_policy(world: World) -> None:
    annotations = [
        {"key": "who", "valueExpression": "request.userInfo.username"},
        {"key": "nothing", "valueExpression": "null"},
        {"key": "long", "valueExpression": "object.data.long + ''"},
    ]
    await world.validating("a", "Deny", validations=[], auditAnnotations=annotations)
    draft = await world.create(long="x" * 20_000)
    assert draft.audit == {"a/who": "system:anonymous", "a/long": "x" * 10_240}


async def test_values_of_several_bindings_are_joined_each_once(world: World) -> None:
    annotations = [{"key": "k", "valueExpression": "string(params == null ? 'none' : params.data.v)"}]
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    for name in ("p", "q"):
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": name}}
        await world.write(world.resource("", "configmaps"), value, "kube-system")
    await world.validating("a", "Deny", validations=[], auditAnnotations=annotations, paramKind=kind)
    for n, name in enumerate(["p", "q", "p"]):
        reference = {"name": name, "namespace": "kube-system", "parameterNotFoundAction": "Deny"}
        binding = {"policyName": "a", "validationActions": ["Deny"], "paramRef": reference}
        await world.configure("ValidatingAdmissionPolicyBinding", f"a{n}", **binding)
    assert (await world.create()).audit == {"a/k": "none, p, q"}


async def test_the_trace_has_an_entry_for_each_policy(world: World) -> None:
    await world.validating("warns", "Warn")
    mutation = {
        "patchType": "JSONPatch",
        "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/data/m', value: 'x'}]"},
    }
    match = {"resourceRules": [{**RULE, "operations": ["CREATE"]}]}
    spec = {"matchConstraints": match, "mutations": [mutation], "reinvocationPolicy": "Never"}
    await world.configure("MutatingAdmissionPolicy", "changes", **spec)
    await world.configure("MutatingAdmissionPolicyBinding", "changes", policyName="changes")
    trace = (await world.create()).trace or []
    steps = {step.stage: step for step in trace}
    assert list(steps["policy changes"].patch) == [{"op": "add", "path": "/data/m", "value": "x"}]
    [note] = steps["policy warns"].notes
    assert (note.message, note.rule, note.values) == ("warns says no", "object.data.n != '1'", {"object.data.n": '"1"'})
    assert steps["policy changes"].seconds > 0
    assert steps["policy warns"].seconds > 0
    stages = [step.stage for step in trace]
    assert stages.index("policy changes") < stages.index("policy warns")


def policy_notes(trace: Trace) -> list[Note]:
    return [note for step in trace if step.stage.startswith("policy ") for note in step.notes]


HIDING: Object = {"expression": "object.data.n == ''"}
VALUES: list[tuple[str, Object, dict[str, str]]] = [
    (
        "a variable of the policy, and what has no value",
        {"expression": "variables.n > 1 && object.data.none == ''"},
        {"variables.n": "1", "object.data.none": "error: no such key: none"},
    ),
    ("nothing of authorizers", {"expression": "authorizer.path('/').check('get').allowed() && false"}, {}),
]


@pytest.mark.parametrize(("validation", "values"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
async def test_the_trace_has_the_values_in_an_expression(
    world: World, validation: Object, values: dict[str, str]
) -> None:
    variables = [{"name": "n", "expression": "int(object.data.n)"}]
    await world.validating("a", "Warn", validations=[validation], variables=variables)
    [note] = policy_notes((await world.create()).trace)
    assert (note.rule, note.values) == (validation["expression"], values)


async def test_the_trace_has_no_values_of_secrets(world: World) -> None:
    rules = [{**RULE, "resources": ["secrets"]}]
    of_secrets = {"matchConstraints": {"resourceRules": rules}}
    await world.configure("ValidatingAdmissionPolicy", "a", validations=[HIDING], **of_secrets)
    await world.configure("ValidatingAdmissionPolicyBinding", "a", policyName="a", validationActions=["Warn"])
    value = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"n": "MQ=="}}
    created = await world.write(world.resource("", "secrets"), value, "default")
    [note] = policy_notes(created.trace)
    assert (note.rule, note.values) == (HIDING["expression"], {})


async def test_the_trace_has_no_values_of_secret_params(world: World) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "p"}, "data": {"n": "MQ=="}}
    await world.write(world.resource("", "secrets"), secret, "kube-system")
    reference = {"name": "p", "namespace": "kube-system", "parameterNotFoundAction": "Deny"}
    kind = {"apiVersion": "v1", "kind": "Secret"}
    validations = [{"expression": "params.data.n == object.data.n"}]
    await world.validating("a", "Warn", binding={"paramRef": reference}, paramKind=kind, validations=validations)
    [note] = policy_notes((await world.create()).trace)
    assert (note.rule, note.values) == ("params.data.n == object.data.n", {})


async def test_a_mutation_that_fails_is_noted_though_it_is_ignored(world: World) -> None:
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/data/none'}]"}}
    match = {"resourceRules": [{**RULE, "operations": ["CREATE"]}]}
    spec = {"matchConstraints": match, "mutations": [mutation], "reinvocationPolicy": "Never"}
    await world.configure("MutatingAdmissionPolicy", "a", failurePolicy="Ignore", **spec)
    await world.configure("MutatingAdmissionPolicyBinding", "a", policyName="a")
    [note] = policy_notes((await world.create()).trace)
    assert "JSON Patch" in note.message
