"""What a write shows of a schema: paths, what was set or filled in, enum values, outcomes of rules."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from noxu.cel import RuleValidator
from noxu.coverage.counting import CountedWrite, add, counts, merged
from noxu.schema.defaulting import default
from noxu.schema.structural import parse
from noxu.values import Json, Object
from tests.rows import rows

INTEGER = {"type": "integer"}
ITEMS = {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer", "default": 80}}}
SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "default": 1},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "ports": {
            "type": "array",
            "items": ITEMS,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "probe": {"type": "object", "default": {"path": "/"}, "properties": {"path": {"type": "string"}, "wait": INTEGER}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}  # fmt: skip
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}


def counted(
    schema: Object, sent: Object, old: Object | None = None, given: list[Json] | None = None, **more: Any
) -> Object:
    structural = parse({"type": "object", "properties": {"spec": schema, "status": schema}})
    new = deepcopy({**WIDGET, **sent})
    default(new, structural)
    rules = RuleValidator(structural)
    return counts(CountedWrite(structural, rules, new, old, [sent] if given is None else given, **more))


@rows(
    "what, sent, fields",
    [
        ("a value", {"size": 2}, {"size": {"set": 1}, "mode": "default"}),
        ("a default that is written out is set", {"size": 1}, {"size": {"set": 1}, "mode": "default"}),
        ("a value of an enum", {"mode": "slow"}, {"mode": {"set": 1, "values": {'"slow"': 1}}, "size": {"defaulted": 1}}),
        ("a value that is none of an enum", {"mode": "x"}, {"mode": {"set": 1}, "size": {"defaulted": 1}}),
        ("values of a map are one field", {"labels": {"a": "b", "c": "d"}}, {"labels": {"set": 1}, "labels[*]": {"set": 1}}),
        (
            "items are one field, with a default in one of them",
            {"ports": [{"name": "a", "port": 1}, {"name": "b"}]},
            {"ports": {"set": 1}, "ports[*]": {"set": 1}, "ports[*].name": {"set": 1}, "ports[*].port": {"set": 1, "defaulted": 1}},
        ),
        ("a part of a default is not set", {}, {"probe": {"defaulted": 1}, "probe.path": {}}),
        ("what a schema preserves has no path", {"free": {"a": 1}}, {"free": {"set": 1}}),
    ],
)  # fmt: skip
def test_a_field_of_a_new_object(what: str, sent: Object, fields: Object) -> None:
    found = counted(SPEC, {"spec": sent})["fields"]
    expected = {"defaulted": 1, "values": {'"fast"': 1}}
    for path, said in fields.items():
        assert found[f"spec.{path}"] == (expected if said == "default" else said), what
    assert not [path for path in found if path.startswith(("metadata", "kind", "spec.free."))]


def test_what_the_old_object_has_is_set_and_no_default() -> None:
    old = {**WIDGET, "spec": {"size": 1, "mode": "fast", "ports": [{"name": "a", "port": 80}]}}
    new = {"spec": {"size": 2, "mode": "fast", "ports": [{"name": "b"}, {"name": "a", "port": 80}]}}
    patch = {"spec": {"size": 2, "ports": [{"name": "b"}]}}
    found = counted(SPEC, new, old, given=[patch, old])["fields"]
    assert found["spec.mode"] == {"set": 1, "values": {'"fast"': 1}}
    assert found["spec.ports[*].port"] == {"defaulted": 1, "set": 1}  # of b, and of a


RULES = [{"rule": "self.size < 4"}, {"rule": "self.size >= oldSelf.size"}]


@rows(
    "what, size, old, said",
    [
        ("true", 1, None, [{"true": 1}, None]),
        ("false", 5, None, [{"false": 1}, None]),
        ("a transition", 3, 2, [{"true": 1}, {"true": 1}]),
        ("a transition that is refused", 1, 2, [{"true": 1}, {"false": 1}]),
        ("an error of the schema comes first", "x", None, [None, None]),
    ],
)
def test_what_rules_say(what: str, size: Json, old: int | None, said: list[Object | None]) -> None:
    schema = {"type": "object", "properties": {"size": INTEGER}, "x-kubernetes-validations": RULES}
    before = None if old is None else {**WIDGET, "spec": {"size": old}}
    found = counted(schema, {"spec": {"size": size}}, before)["rules"].get("spec", {})
    assert [found.get(rule["rule"]) for rule in RULES] == said, what


def test_a_rule_of_items_may_be_true_and_false_in_one_write() -> None:
    rule = "self.startsWith('a')"
    items = {"type": "string", "x-kubernetes-validations": [{"rule": rule}]}
    schema = {"type": "object", "properties": {"names": {"type": "array", "items": items}}}
    found = counted(schema, {"spec": {"names": ["a", "b"]}})["rules"]
    assert found == {"spec.names[*]": {rule: {"true": 1, "false": 1}}}


def test_a_rule_that_cannot_be_evaluated_says_nothing() -> None:
    schema = {"type": "object", "properties": {"a": INTEGER}, "x-kubernetes-validations": [{"rule": "self.a > 0"}]}
    assert counted(schema, {"spec": {}})["rules"] == {}


@rows(
    "what, of_status, paths",
    [
        ("a write of the object leaves out its status", False, ["spec", "spec.size"]),
        ("a write of the status has nothing else", True, ["status", "status.size"]),
    ],
)
def test_the_status_may_be_a_subresource(what: str, of_status: bool, paths: list[str]) -> None:
    schema = {"type": "object", "properties": {"size": INTEGER}, "x-kubernetes-validations": [RULES[0]]}
    sent = {"spec": {"size": 1}, "status": {"size": 2}}
    found = counted(schema, sent, status_apart=True, of_status=of_status)
    assert list(found["fields"]) == paths, what
    assert list(found["rules"]) == paths[:1], what


def test_counts_are_added() -> None:
    one = {"writes": 1, "fields": {"a": {"set": 1}}}
    other = {"writes": 1, "fields": {"a": {"defaulted": 1}, "b": {"set": 1}}}
    total = merged([one, other, one])
    assert total == {"writes": 3, "fields": {"a": {"set": 2, "defaulted": 1}, "b": {"set": 1}}}
    add(total, one)
    assert (total["writes"], one["writes"]) == (4, 1)
