"""Rules whose verdicts, and the words of them, were recorded from the reference server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.api.errors import aggregate
from apiserver.api.types import Json, Object
from apiserver.api.values import copy
from apiserver.cel.schema_rules import SchemaRules
from apiserver.crd import types, update, validation
from apiserver.crd.defaults import default as default_crd
from apiserver.crd.schemas import RULES
from apiserver.registry import pipeline
from apiserver.registry.custom import versions_of
from apiserver.registry.pipeline import Draft
from apiserver.registry.resource import Resource

CASES = Path(__file__).parents[2].parent / "shared" / "cel-cases" / "cases.jsonl"


def recorded() -> Iterator[Any]:
    if CASES.exists():
        for line in CASES.read_text().splitlines():
            case = json.loads(line)
            yield pytest.param(case, id=f"{case['id']}-{case.get('rule', '')[:40]}")


@pytest.mark.skipif(not CASES.exists(), reason="needs the recordings")
@pytest.mark.parametrize("case", list(recorded()))
def test_verdict_and_words(case: Object) -> None:
    kind, message = verdict(case)
    expected = case["expect"]
    assert (kind, words(message)) == (expected["kind"], words(expected.get("message", "")))


def words(message: str) -> list[str]:
    """What a message says, in any order of its errors."""
    message = re.sub(r"selfType\d+", "selfType", message.partition(" is invalid: ")[2])
    return sorted(filter(None, re.split(r"[\[\],;\s]+", message)))


def verdict(case: Object) -> tuple[str, str]:
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
        if complaint := admit(resource, old, None):
            return "old_invalid", complaint
    complaint = admit(resource, thing(case, case["object"]), old)
    return ("invalid", complaint) if complaint else ("valid", "")


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
    """What the pipeline of a write says to an object."""
    draft = Draft(resource, "UPDATE" if old else "CREATE", value, old=old)
    for stage in (pipeline.decode, pipeline.default, resource.behaviour.validate):
        stage(draft)
    return f"Thing is invalid: {aggregate(map(str, draft.errors))}" if draft.errors else ""
