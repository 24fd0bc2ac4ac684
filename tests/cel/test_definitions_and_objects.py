"""Schemas with rules, and objects of such schemas, that were made up by chance and judged by the reference.

`definitions.jsonl`: what is wrong with the rules of a schema. `objects.jsonl`: what the rules of a schema say to an
object, to its change, and what is left of the budget. Upstream makes up a number for the name of a type; it is left out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from apiserver.api.types import Object
from apiserver.cel import rules
from apiserver.cel.schema_rules import SchemaRules
from apiserver.cel.validation import Validator
from apiserver.crd import types, update, validation
from apiserver.crd.defaults import default
from apiserver.schema.ratcheting import Correlated
from apiserver.schema.structural import parse


def rows(name: str) -> list[Object]:
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text().splitlines()]


DEFINITIONS, OBJECTS = rows("definitions.jsonl"), rows("objects.jsonl")


def masked(text: object) -> str:
    return re.sub(r"selfType\d+", "selfType", str(text))


@pytest.mark.parametrize("row", DEFINITIONS, ids=map(str, range(len(DEFINITIONS))))
def test_what_is_wrong_with_the_rules_of_a_schema(row: Object) -> None:
    names = {"plural": "foos", "kind": "Foo", "singular": "foo", "listKind": "FooList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": row["schema"]}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }
    prepared = update.prepare_for_create(default(types.decode(crd).value))
    assert sorted(map(masked, validation.validate(prepared, checkers=SchemaRules))) == row["errors"]


@pytest.mark.parametrize("generated", [False, True], ids=["walked", "generated"])
@pytest.mark.parametrize("row", OBJECTS, ids=map(str, range(len(OBJECTS))))
def test_what_rules_say_to_an_object(row: Object, generated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_WARM", 1 if generated else 10**9)
    schema, old = parse(row["schema"]), row.get("old")
    correlation = Correlated(row["object"], old, schema) if old is not None else None
    validator = Validator(schema)
    if generated:
        validator.validate(row["object"], old)
    verdict = validator.validate(row["object"], old, correlation=correlation)
    assert sorted(map(masked, verdict.errors)) == row["errors"]
    assert sorted(map(masked, verdict.warnings)) == row["warnings"]
    assert verdict.remaining == row["remaining"]
