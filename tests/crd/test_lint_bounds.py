"""Bounds that make CEL rules affordable: what is suggested suffices, and more does not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from noxu.cel import SchemaRules
from noxu.crd.lint import EXCEEDS, advice_on_bounds, as_written, lint_crd
from noxu.values import copy

SCHEMA = "spec.versions[0].schema.openAPIV3Schema"
TEXT: dict[str, Any] = {"type": "string"}


def crd(schema: Any) -> Any:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.b.c"},
        "spec": {"group": "b.c", "scope": "Cluster", "names": {"plural": "as", "kind": "A"}, "versions": [version]},
    }


def of(node: Any, rule: str, **properties: Any) -> Any:
    """A schema whose field `a` has a rule."""
    a = {**node, "x-kubernetes-validations": [{"rule": "true"}, {"rule": rule}]}
    return {"type": "object", "properties": {"a": a, **properties}}


def too_expensive(value: Any) -> list[str]:
    errors = lint_crd(value, checkers=SchemaRules)
    found = [as_written(value, error.field) for error in errors if EXCEEDS in error.detail]
    return [path for path in found if path.endswith(".rule")]


def suggested(schema: Any) -> str:
    value = crd(schema)
    [path] = too_expensive(value)
    return advice_on_bounds(value, path, SchemaRules)


def list_of(items: Any, **more: Any) -> Any:
    return {"type": "array", "items": items, **more}


def struct(**properties: Any) -> Any:
    return {"type": "object", "properties": properties}


QUADRATIC = "self.all(x, self.exists_one(y, x == y))"
CASES: list[tuple[str, Any, str]] = [
    ("a list of numbers", of(list_of({"type": "integer"}), QUADRATIC), r"Write `maxItems: \d+` at properties\[a\]: that suffices for this rule."),
    ("a list whose items are bounded", of(list_of({**TEXT, "maxLength": 10}), QUADRATIC), r"Write `maxItems: \d+` at properties\[a\]: that .*"),
    ("a map", of({"type": "object", "additionalProperties": {"type": "integer"}}, "self.all(x, self.exists_one(y, x == y))"), r"Write `maxProperties: \d+` at properties\[a\]: that .*"),
    ("a list around the rule", {"type": "object", "properties": {"l": list_of({**struct(s={**TEXT, "maxLength": 100}), "x-kubernetes-validations": [{"rule": "self.s.matches('a+b')"}]})}}, r"Write `maxItems: \d+` at properties\[l\]: that .*"),
    ("only what the rule reads", of(struct(b=list_of({"type": "integer"}), c=list_of(TEXT)), "self.b.all(x, self.b.exists_one(y, x == y))"), r"Write `maxItems: \d+` at properties\[a\].properties\[b\]: that .*"),
    ("two nodes of which each suffices", of(list_of(TEXT), "self.all(x, x.matches('(a+)+'))"), r"Write `maxItems: \d+` at properties\[a\], or `maxLength: \d+` at properties\[a\].items: that .*"),
    ("nodes that need bounds together", of(list_of(list_of(TEXT)), "self.all(x, x.all(z, self.exists(y, y.exists_one(w, w.startsWith(z)))))"), r"Write `maxItems: \d+` at .*, and `maxItems: .*: together they suffice for this rule."),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "pattern"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_the_suggested_bounds(schema: Any, pattern: str) -> None:
    assert re.fullmatch(pattern, suggested(schema))


def with_bounds(schema: Any, text: str, factor: int) -> Any:
    """The schema with the first bound that an advice names, times a factor."""
    match = re.search(r"`(\w+): (\d+)` at (\S+?)[:,]", text)
    assert match is not None
    keyword, bound, where = match.groups()
    node = bounded = copy(schema)
    for name, other in re.findall(r"properties\[(\w+)\]|(items)", where):
        node = node["properties"][name] if name else node[other]
    node[keyword] = int(bound) * factor
    return crd(bounded)


@pytest.mark.parametrize("schema", [row[1] for row in CASES[:5]], ids=[row[0] for row in CASES[:5]])
def test_the_suggested_bound_suffices_and_twice_of_it_does_not(schema: Any) -> None:
    text = suggested(schema)
    assert too_expensive(with_bounds(schema, text, 1)) == []
    assert too_expensive(with_bounds(schema, text, 2)) != []


def test_without_nodes_to_bound_there_is_no_advice() -> None:
    value = crd(of({**struct(b={**TEXT, "maxLength": 2**20}), "maxProperties": 1}, "self.b.matches(self.b)"))
    [path] = too_expensive(value)
    assert advice_on_bounds(value, path, SchemaRules) == ""


@pytest.mark.parametrize("path", ["spec", f"{SCHEMA}.properties[a]", "spec.versions[7].schema.openAPIV3Schema.x-kubernetes-validations[0].rule"])  # fmt: skip
def test_other_paths_have_no_advice(path: str) -> None:
    assert advice_on_bounds(crd(of(TEXT, "true")), path, SchemaRules) == ""
