"""What policies leave behind for an audit log, and in the trace of a write."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.api.types import Object
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource
from apiserver.registry.sources import Sources
from apiserver.registry.store import Registry
from apiserver.server import assemble
from storage.memory import MemoryStore

ADMISSION = "admissionregistration.k8s.io"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
FAILURES = "validation.policy.admission.k8s.io/validation_failure"


class World:
    """A registry with policies about ConfigMaps."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    def resource(self, group: str, plural: str) -> Resource:
        found = self.registry.catalog.find(group, "v1", plural)
        assert found is not None
        return found

    async def configure(self, kind: str, name: str, **spec: Any) -> None:
        value = {"apiVersion": f"{ADMISSION}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        await self.registry.create(self.registry.draft(self.resource(ADMISSION, PLURALS[kind]), "CREATE", value))

    async def validating(self, name: str, *actions: str, binding: Object | None = None, **spec: Any) -> None:
        spec.setdefault("validations", [{"expression": "object.data.n != '1'", "message": f"{name} says no"}])
        await self.configure("ValidatingAdmissionPolicy", name, matchConstraints={"resourceRules": [RULE]}, **spec)
        given = {"policyName": name, "validationActions": list(actions), **(binding or {})}
        await self.configure("ValidatingAdmissionPolicyBinding", name, **given)

    async def create(self, name: str = "c", **data: str) -> Draft:
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": "1", **data}}
        draft = self.registry.draft(self.resource("", "configmaps"), "CREATE", value, namespace="default")
        draft.trace = []
        await self.registry.create(draft)
        return draft


@pytest.fixture
async def world() -> AsyncIterator[World]:
    import asyncio

    registry, lifecycles = assemble(MemoryStore(), Sources())
    following = asyncio.ensure_future(registry.cache.follow())
    for lifecycle in lifecycles:
        await lifecycle.start()
    yield World(registry)
    for lifecycle in lifecycles:
        await lifecycle.stop()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_failures_are_kept_for_bindings_that_say_so(world: World) -> None:
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
    assert [one["message"] for one in kept] == [str(n) for n in range(50)]


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
        draft = world.registry.draft(world.resource("", "configmaps"), "CREATE", value, namespace="kube-system")
        await world.registry.create(draft)
    await world.validating("a", "Deny", validations=[], auditAnnotations=annotations, paramKind=kind)
    for n, name in enumerate(["p", "q", "p"]):
        reference = {"name": name, "namespace": "kube-system", "parameterNotFoundAction": "Deny"}
        binding = {"policyName": "a", "validationActions": ["Deny"], "paramRef": reference}
        await world.configure("ValidatingAdmissionPolicyBinding", f"a{n}", **binding)
    assert (await world.create()).audit == {"a/k": "none, p, q"}


async def test_the_trace_tells_what_each_policy_did(world: World) -> None:
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
    assert [note.message for note in steps["policy warns"].notes] == ["warns says no"]
    assert steps["policy changes"].seconds > 0
    assert steps["policy warns"].seconds > 0
    stages = [step.stage for step in trace]
    assert stages.index("policy changes") < stages.index("policy warns")
