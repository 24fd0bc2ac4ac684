"""Randomly generated schemas with rules and objects, and what the reference reported for them.

`definitions.jsonl`: the errors of the rules of a schema. `objects.jsonl`: the errors and warnings of an object or an update,
and the remaining budget. Upstream appends a number to the name of a type, which is left out here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from noxu.cel.kubernetes import rules
from noxu.cel.kubernetes.schema_rules import SchemaRules
from noxu.cel.kubernetes.validation import RuleValidator
from noxu.crd import types, update, validation
from noxu.crd.types import default
from noxu.schema.correlation import Correlated
from noxu.schema.structural import parse
from noxu.values import Object
from tests.rows import rows


def recorded(name: str) -> list[Object]:
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text().splitlines()]


DEFINITIONS, OBJECTS = recorded("definitions.jsonl"), recorded("objects.jsonl")


def masked(text: object) -> str:
    return re.sub(r"selfType\d+", "selfType", str(text))


@rows("row", DEFINITIONS, ids=map(str, range(len(DEFINITIONS))))
def test_the_errors_of_the_rules_of_a_schema(row: Object) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("generated", [False, True], ids=["interpreted", "generated"])
@rows("row", OBJECTS, ids=map(str, range(len(OBJECTS))))
def test_the_errors_and_warnings_of_an_object(row: Object, generated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "GENERATE_AFTER", 1 if generated else 10**9)
    schema, old = parse(row["schema"]), row.get("old")
    correlation = Correlated(row["object"], old, schema) if old is not None else None
    validator = RuleValidator(schema)
    if generated:
        validator.validate(row["object"], old)
    result = validator.validate(row["object"], old, correlation=correlation)
    assert sorted(map(masked, result.errors)) == row["errors"]
    assert sorted(map(masked, result.warnings)) == row["warnings"]
    assert result.remaining == row["remaining"]
