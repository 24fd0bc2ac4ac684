"""What a new CRD breaks, may break and does not break, and the objects that show it."""

from __future__ import annotations

from typing import Any

from noxu.manifests.documents import Document
from noxu.upgrades.changes import DefinitionChange, compared
from noxu.values import Object, copy
from tests.generation.test_kinds import crd
from tests.rows import rows

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
ANY: Any = {"x-kubernetes-preserve-unknown-fields": True}


def of(*required: str, **fields: Any) -> Any:
    return {"type": "object", "properties": fields, **({"required": [*required]} if required else {})}


def items(item: Any, **more: Any) -> Any:
    return {"type": "array", "items": item, **more}


def ruled(schema: Any, *rules: str) -> Any:
    return {**schema, "x-kubernetes-validations": [{"rule": rule} for rule in rules]}


def between(old: Any, new: Any, **root: Any) -> list[DefinitionChange]:
    """The changes of v1 between two schemas of spec."""
    [definition] = compared([crd(old)], [crd(new, **root)])
    return [change for change in definition.changes if change.version == "v1"]


def said(change: DefinitionChange) -> tuple[str, str, str]:
    return change.effect, change.rule, change.field


def shown(change: DefinitionChange) -> Any:
    """The spec of the example."""
    return None if change.example is None else change.example.value.get("spec")


# (what has changed, the former schema, the new one, effect, rule and field of the change, the example)
BREAKING: list[tuple[str, Any, Any, tuple[str, str, str], Any]] = [
    ("another type", of(a=STRING), of(a=INTEGER), ("breaking", "narrower-type", "spec.a"), {"a": "a"}),
    ("another type of an item", of(a=items(STRING)), of(a=items(INTEGER)), ("breaking", "narrower-type", "spec.a[*]"), {"a": ["a"]}),
    ("a field that is gone", of(a=STRING, b=STRING), of(a=STRING), ("breaking", "no-longer-kept", "spec.b"), {"b": "a"}),
    ("unknown fields are pruned", {**of(a=STRING), **ANY}, of(a=STRING), ("breaking", "no-longer-kept", "spec"), {"any": "a"}),
    ("a map that is closed", {"type": "object", "additionalProperties": STRING}, of(b=STRING), ("breaking", "no-longer-kept", "spec"), {"a": "a"}),
    ("no null any more", of(a={**STRING, "nullable": True}), of(a=STRING), ("breaking", "narrower-nullable", "spec.a"), None),
    ("a member that is gone", of(a={**STRING, "enum": ["x", "y"]}), of(a={**STRING, "enum": ["x"]}), ("breaking", "narrower-enum", "spec.a"), {"a": "y"}),
    ("an enum", of(a=STRING), of(a={**STRING, "enum": ["x"]}), ("breaking", "narrower-enum", "spec.a"), {"a": "a"}),
    ("a required field", of(a=STRING), of("a", a=STRING), ("breaking", "narrower-required", "spec"), {}),
    ("a maximum", of(a=INTEGER), of(a={**INTEGER, "maximum": 5}), ("breaking", "narrower-maximum", "spec.a"), {"a": 6}),
    ("a lower maximum", of(a={**INTEGER, "maximum": 9}), of(a={**INTEGER, "maximum": 5}), ("breaking", "narrower-maximum", "spec.a"), {"a": 6}),
    ("an exclusive maximum", of(a={**INTEGER, "maximum": 5}), of(a={**INTEGER, "maximum": 5, "exclusiveMaximum": True}), ("breaking", "narrower-maximum", "spec.a"), {"a": 5}),
    ("a higher minimum", of(a={**INTEGER, "minimum": 1}), of(a={**INTEGER, "minimum": 3}), ("breaking", "narrower-minimum", "spec.a"), {"a": 1}),
    ("a shorter text", of(a=STRING), of(a={**STRING, "maxLength": 2}), ("breaking", "narrower-max-length", "spec.a"), {"a": "a-1"}),
    ("a longer text", of(a=STRING), of(a={**STRING, "minLength": 1}), ("breaking", "narrower-min-length", "spec.a"), {"a": ""}),
    ("fewer items", of(a=items(STRING)), of(a=items(STRING, maxItems=1)), ("breaking", "narrower-max-items", "spec.a"), {"a": ["a", "a"]}),
    ("a set", of(a=items(STRING)), of(a=items(STRING, **{"x-kubernetes-list-type": "set"})), ("breaking", "list-type-changed", "spec.a"), {"a": ["a", "a"]}),
    ("another default", of(a={**STRING, "default": "x"}), of(a={**STRING, "default": "y"}), ("breaking", "default-changed", "spec.a"), {}),
    ("a default that is gone", of(a={**STRING, "default": "x"}), of(a=STRING), ("breaking", "default-changed", "spec.a"), {}),
    ("a pattern", of(a=STRING), of(a={**STRING, "pattern": "^x"}), ("breaking", "narrower-pattern", "spec.a"), {"a": "a"}),
    ("a pattern that refuses more", of(a={**STRING, "pattern": "^[a-z]$"}), of(a={**STRING, "pattern": "^[c-f]$"}), ("breaking", "narrower-pattern", "spec.a"), {"a": "a"}),
    ("a rule", of(a=INTEGER), ruled(of(a=INTEGER), "!has(self.a) || self.a < 3"), ("breaking", "narrower-rule", "spec"), None),
    ("a rule about fields that were there", of(a=items(STRING)), ruled(of(a=items(STRING)), "!has(self.a) || self.a.size() < 100"), ("breaking", "narrower-rule", "spec"), None),
    ("an alternative that is gone", of(a={**INTEGER, "anyOf": [{"minimum": 5}, {"maximum": 2}]}), of(a={**INTEGER, "anyOf": [{"minimum": 5}]}), ("breaking", "narrower-any-of", "spec.a"), None),
]  # fmt: skip


@rows("name, old, new, expected, example", BREAKING)
def test_a_change_that_breaks(name: str, old: Any, new: Any, expected: tuple[str, str, str], example: Any) -> None:
    [change] = between(old, new)
    assert said(change) == expected
    if example is not None:
        assert shown(change) == example


# (what has changed, the former schema, the new one, effect, rule and field of the change)
OTHERS: list[tuple[str, Any, Any, tuple[str, str, str]]] = [
    ("a default where there was none", of(a=STRING), of(a={**STRING, "default": "x"}), ("unknown", "default-changed", "spec.a")),
    ("a pattern that refuses no more", of(a={**STRING, "pattern": "^[a-c]$"}), of(a={**STRING, "pattern": "^[abc]$"}), ("unknown", "narrower-pattern", "spec.a")),
    ("another rule that says the same", ruled(of(a=INTEGER), "self.a == 1"), ruled(of(a=INTEGER), "1 == self.a"), ("unknown", "narrower-rule", "spec")),
    ("a field that is new", of(a=STRING), of(a=STRING, b=STRING), ("compatible", "field-added", "spec.b")),
    ("a higher maximum", of(a={**INTEGER, "maximum": 5}), of(a={**INTEGER, "maximum": 9}), ("compatible", "wider-maximum", "spec.a")),
    ("a member that is new", of(a={**STRING, "enum": ["x"]}), of(a={**STRING, "enum": ["x", "y"]}), ("compatible", "wider-enum", "spec.a")),
    ("a field that is optional now", of("a", a=STRING), of(a=STRING), ("compatible", "wider-required", "spec")),
    ("a rule that is gone", ruled(of(a=INTEGER), "self.a == 1"), of(a=INTEGER), ("compatible", "wider-rule", "spec")),
]  # fmt: skip


@rows("name, old, new, expected", OTHERS)
def test_a_change_that_does_not_break(name: str, old: Any, new: Any, expected: tuple[str, str, str]) -> None:
    assert expected in map(said, between(old, new))
    assert not [change for change in between(old, new) if change.effect == "breaking"]


def test_a_new_rule_about_a_new_field_does_not_break() -> None:
    changes = between(of(a=STRING), ruled(of(a=STRING, b=STRING), "!(has(self.a) && has(self.b))"))
    assert sorted(map(said, changes)) == [
        ("compatible", "field-added", "spec.b"),
        ("unknown", "narrower-rule", "spec"),
    ]


def test_what_both_have_is_no_change() -> None:
    broken = ruled(of(a=INTEGER), "self.b == 1")
    [definition] = compared([crd(broken)], [crd(broken)])
    assert definition.changes == []


def test_what_a_server_refuses_breaks() -> None:
    changes = compared([crd(of(a=INTEGER))], [crd(ruled(of(a=INTEGER), "self.b == 1"))])[0].changes
    assert [change.rule for change in changes] == ["refused", "narrower-rule", "narrower-rule"]
    assert "undefined field 'b'" in changes[0].message


def with_versions(*versions: Object) -> Document:
    document = crd(of(a=STRING))
    value = copy(document.value)
    [first, _] = value["spec"]["versions"]
    value["spec"]["versions"] = [{**first, **version} for version in versions]
    return document._replace(value=value)


V1: Object = {"name": "v1"}
V2: Object = {"name": "v2", "storage": False}
UNUSED: Object = {**V2, "served": False}


@rows(
    "old, new, expected",
    [
        ([V1, V2], [V1], [("breaking", "version-removed", "version v2 is removed")]),
        ([V1, V2], [V1, UNUSED], [("breaking", "version-removed", "version v2 is no longer served")]),
        ([V1], [V1, V2], [("compatible", "version-added", "version v2 is new")]),
        ([V1, UNUSED], [V1, V2], [("compatible", "version-added", "version v2 is served now")]),
        ([V1, UNUSED], [V1], []),
    ],
)
def test_versions(old: list[Object], new: list[Object], expected: list[tuple[str, str, str]]) -> None:
    [definition] = compared([with_versions(*old)], [with_versions(*new)])
    assert [(change.effect, change.rule, change.message) for change in definition.changes] == expected


def test_a_version_that_is_not_used_does_not_break() -> None:
    old, new = with_versions(V1, UNUSED), with_versions(V1, UNUSED)
    del new.value["spec"]["versions"][1]["schema"]
    new.value["spec"]["versions"][1]["schema"] = {"openAPIV3Schema": {"type": "object"}}
    [definition] = compared([old], [new])
    assert {change.effect for change in definition.changes} == {"unknown"}
    assert all("no server serves or stores this version" in change.message for change in definition.changes)


def test_definitions_come_and_go() -> None:
    other = crd(of())
    other = other._replace(value={**other.value, "metadata": {"name": "gears.example.com"}})
    [gear, widget] = compared([crd(of())], [other])
    assert (gear.name, [change.rule for change in gear.changes]) == ("gears.example.com", ["definition-added"])
    assert (widget.name, [change.rule for change in widget.changes]) == ("widgets.example.com", ["definition-removed"])


def test_examples_are_left_out() -> None:
    [definition] = compared([crd(of(a=STRING))], [crd(of(a=INTEGER))], examples=False)
    assert [change.example for change in definition.changes] == [None, None]
    assert definition.count("breaking") == 2


def test_a_definition_without_versions_cannot_be_read() -> None:
    broken = crd(of())
    broken = broken._replace(value={**broken.value, "spec": {}})
    for pair in ((broken, crd(of())), (crd(of()), broken), (broken, broken)):
        [definition] = compared([pair[0]], [pair[1]])
        assert [change.rule for change in definition.changes] == ["unreadable"]
