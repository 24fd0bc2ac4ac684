"""What a case expects in vain: the field that is reported, the message, and the diff. The definitions are those of `upstream`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import yaml

from noxu.cases import running
from noxu.cases.judging import place
from tests.rows import rows

UPSTREAM: Final = Path(__file__).with_name("upstream")
V2: Final = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
WIDE: Final = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}}}
    },
}
DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "cups.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": WIDE}},
            {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": V2}},
        ],
    },
}


def shelf(meta: dict | None = None, **spec: object) -> dict:
    return {"apiVersion": "example.com/v1", "kind": "Shelf", "metadata": {"name": "a", **(meta or {})}, "spec": spec}


CUP: Final = {
    "apiVersion": "example.com/v1",
    "kind": "Cup",
    "metadata": {"name": "a"},
    "spec": {"size": 1, "color": "red"},
}
RUDE: Final = {"annotations": {"rude": "yes"}}
STAMP: Final = {"labels": {"stamp": "yes"}}
ALLOWED: Final = "the write is accepted"
ROWS: Final = [
    ("a denial that does not come", {"object": shelf(), "expect": {"denied": True}}, "denied", ALLOWED, ["- denied: true", "+ allowed: true"]),
    ("a message that does not come", {"object": shelf(), "expect": {"message": "a"}}, "message", ALLOWED, []),
    ("a policy that does not deny", {"object": shelf(), "expect": {"deniedBy": "policy/owners"}}, "deniedBy", ALLOWED, []),
    ("a denial where none is expected", {"object": shelf(min=-1), "expect": {"warnings": []}}, "", "the write is denied: Shelf.example.com", []),
    ("another message", {"object": shelf(owner="a"), "expect": {"message": "URL"}}, "message", "the message has another text", ["- URL"]),
    ("a message that does not match", {"object": shelf(owner="a"), "expect": {"message": {"regex": "^URL$"}}}, "message.regex", "the message does not match", ["- ^URL$"]),
    ("a cause of another field", {"object": shelf(owner="a"), "expect": {"message": {"causes": [{"field": "spec"}]}}}, "message.causes", "no cause is such as expected", ["- - field: spec"]),
    ("a cause with another message", {"object": shelf(owner="a"), "expect": {"message": {"causes": [{"field": "spec.owner", "message": "URL"}]}}}, "message.causes", "no cause is such as expected", ["-   message: URL"]),
    ("another policy", {"object": shelf(), "user": {"name": "mallory"}, "expect": {"deniedBy": "policy/polite"}}, "deniedBy", "it is denied by policy/owners: ", []),
    ("no policy at all", {"object": shelf(owner="a"), "expect": {"deniedBy": "policy/polite"}}, "deniedBy", "it is denied by no policy: ", []),
    ("a warning that does not come", {"object": shelf(), "expect": {"warnings": ["rude"]}}, "warnings", "the warnings are others", ["- - rude", "+ []"]),
    ("a warning that nothing expects", {"object": shelf(RUDE), "expect": {"warnings": []}}, "warnings", "the warnings are others", ["- []"]),
    ("a field that is not pruned", {"object": shelf(), "expect": {"pruned": ["spec.a"]}}, "pruned", "other fields are pruned", ["- - spec.a"]),
    ("a field that is pruned", {"object": shelf(a=1), "expect": {"pruned": []}}, "pruned", "other fields are pruned", ["+ - spec.a"]),
    ("a field that is not defaulted", {"object": shelf(replicas=1), "expect": {"defaulted": ["spec.replicas"]}}, "defaulted", "other fields are defaulted", ["- - spec.replicas"]),
    ("another value", {"object": shelf(min=1), "expect": {"stored": {"spec": {"min": 2}}}}, "stored", "another object is stored", ["-   min: 2", "+   min: 1"]),
    ("a field that is missing", {"object": shelf(), "expect": {"stored": {"spec": {"min": 2}}}}, "stored", "another object is stored", ["-   min: 2", "+ spec: {}"]),
    ("a field that has to be absent", {"object": shelf(min=1), "expect": {"stored": {"spec": {"min": None}}}}, "stored", "another object is stored", ["-   min: null"]),
    ("a list with an item more", {"object": shelf(tags=["a", "b"]), "expect": {"stored": {"spec": {"tags": ["a"]}}}}, "stored", "another object is stored", ["+   - b"]),
    ("nothing", {"object": shelf(), "expect": {"stored": {}}}, "stored", "another object is stored", ["- {}", "+   replicas: 1"]),
    ("a policy that does not mutate", {"object": shelf(), "expect": {"mutated": {"spec": {"name": "stamped"}}}}, "mutated", "policies have changed other fields", ["-   name: stamped", "+ {}"]),
    ("a policy that mutates", {"object": shelf(STAMP), "expect": {"mutated": {}}}, "mutated", "policies have changed other fields", ["+   name: stamped"]),
    ("another conversion", {"object": CUP, "convert": "v2", "expect": {"converted": {"spec": {"color": "red"}}}}, "converted", "another object is read at v2", ["-   color: red"]),
    ("a conversion that loses", {"object": CUP, "convert": "v2", "expect": {"roundTrip": True}}, "roundTrip", "the way to v2 and back loses or changes something", ["-   color: red"]),
    ("a conversion that loses nothing", {"object": {**CUP, "spec": {"size": 1}}, "convert": "v2", "expect": {"roundTrip": False}}, "roundTrip", "nothing is lost on the way", []),
]  # fmt: skip


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """All of them, run in one file: the outcomes by their names."""
    path = tmp_path_factory.mktemp("cases") / "a_test.yaml"
    given = {"crds": [str(UPSTREAM / "crds"), DEFINITION], "policies": [str(UPSTREAM / "policies")]}
    cases = [{"name": name, **case} for name, case, *_ in ROWS]
    path.write_text(yaml.safe_dump({"apiVersion": "noxu.dev/v1", "kind": "Test", "given": given, "cases": cases}))
    [outcome] = running.run_paths([path])
    assert list(outcome.problems) == []
    return {each.case.name: each for each in outcome.outcomes}


@rows("name, case, field, message, diff", ROWS, ids=[row[0] for row in ROWS])
def test_what_is_expected_in_vain(name: str, case: dict, field: str, message: str, diff: list, failed: dict) -> None:
    outcome = failed[name]
    assert [(each.field, each.message.startswith(message)) for each in outcome.differences] == [(field, True)]
    assert [line for line in diff if line not in outcome.differences[0].diff] == []
    assert place(outcome.case, outcome.differences[0]) == f"{outcome.case.path}.expect{'.' if field else ''}{field}"


def test_a_failure_explains_the_rule_with_its_values(failed: dict) -> None:
    assert failed["another message"].explanation == [
        "default:",
        "  spec.replicas: filled in with its default: 1 (spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties.replicas.default)",
        "validate:",
        '  spec.owner: Invalid value: "a": owner is an address',
        "    rule: self.contains('@')",
        '    self = "a"',
    ]
