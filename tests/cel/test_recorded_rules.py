"""Rules with the results and messages that were recorded from the reference server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from noxu.api.errors import aggregate
from noxu.cel.kubernetes.schema_rules import SchemaRules
from noxu.crd import types, update, validation
from noxu.crd.schemas import RULES
from noxu.crd.types import default as default_crd
from noxu.registry.custom import versions_of
from noxu.registry.resource import Resource
from noxu.registry.strategies import STRATEGIES
from noxu.registry.write import arrive
from noxu.values import Json, Object, copy
from tests.drafts import draft_of
from tests.optional import SHARED, needs_data
from tests.rows import rows

CASES = SHARED / "cel-cases" / "cases.jsonl"


def recorded() -> Iterator[Any]:
    if CASES.exists():
        for line in CASES.read_text().splitlines():
            case = json.loads(line)
            yield pytest.param(case, id=f"{case['id']}-{case.get('rule', '')[:40]}")


@pytest.mark.slow
@needs_data("cel-cases/cases.jsonl")
@rows("case", list(recorded()))
def test_the_result_and_message_are_those_of_the_reference(case: Object) -> None:
    kind, message = result(case)
    expected = case["expect"]
    assert (kind, words(message)) == (expected["kind"], words(expected.get("message", "")))


def words(message: str) -> list[str]:
    """The words of a message, in any order of its errors."""
    message = re.sub(r"selfType\d+", "selfType", message.partition(" is invalid: ")[2])
    return sorted(filter(None, re.split(r"[\[\],;\s]+", message)))


def result(case: Object) -> tuple[str, str]:
    root = schema_of(case)
    name, names = "things.example.com", {"plural": "things", "kind": "Thing"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }
    decoded = types.decode(crd)
    assert not decoded.error
    prepared = update.prepare_for_create(default_crd(decoded.value))
    if errors := validation.validate(prepared, checkers=SchemaRules):
        kind = "compile_error" if RULES in str(errors) else "schema_error"
        return kind, f"CustomResourceDefinition is invalid: {aggregate(map(str, errors))}"
    prepared["status"]["acceptedNames"] = {**names, "listKind": "ThingList"}
    resource = versions_of(prepared, 0).storage
    old = case.get("oldObject")
    if old is not None:
        old = thing(case, old)
        if message := admit(resource, old, None):
            return "old_invalid", message
    message = admit(resource, thing(case, case["object"]), old)
    return ("invalid", message) if message else ("valid", "")


def schema_of(case: Object) -> Object:
    schema = copy(case["schema"])
    rules = case.get("rules") or [{"rule": case.get("rule")}]
    if not case.get("isRoot"):
        if not case.get("rulesInSchema"):
            schema[RULES] = rules
        return {"type": "object", "properties": {"spec": schema}}
    for name in ("apiVersion", "kind", "metadata"):
        schema.get("properties", {}).pop(name, None)
    return {"type": "object", **schema, RULES: rules}


def thing(case: Object, value: Json) -> Object:
    meta: Object = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "x", "uid": "1", "resourceVersion": "1"},
    }
    if not case.get("isRoot"):
        return {**meta, "spec": copy(value)}
    meta["metadata"] |= value.get("metadata") or {}
    return {**copy(value), **meta}


def admit(resource: Resource, value: Object, old: Object | None) -> str:
    """The message with which a write of an object is refused, "" if it is not."""
    draft = draft_of(resource, value, old or None)
    for stage in (arrive.decode, arrive.prune, arrive.default, STRATEGIES[resource.type].validate):
        stage(draft)
    found = draft.outcome.errors
    return f"Thing is invalid: {aggregate(map(str, found))}" if found else ""
