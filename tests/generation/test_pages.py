"""Reference pages: the sentences about a field, the example, what is escaped."""

from __future__ import annotations

import yaml

from noxu.generation.kinds import errors_of, resource_of, versions_of
from noxu.generation.pages import as_index, as_markdown, as_page, documented
from noxu.values import Object
from tests.generation.test_kinds import crd
from tests.rows import rows


def page(field: Object) -> str:
    return as_markdown(documented(versions_of(crd({"type": "object", "properties": {"a": field}}))))


@rows(
    "what, schema, row",
    [
        ("a type", {"type": "string"}, "| `spec.a` | string |  |"),
        ("a description", {"type": "string", "description": "Of *all*\n| <b>"}, "Of \\*all\\* \\| &lt;b&gt;"),
        ("a default", {"type": "string", "default": "b"}, 'Default: `"b"`'),
        ("an enum", {"type": "string", "enum": ["x", "y"]}, 'One of `"x", "y"`'),
        ("bounds", {"type": "integer", "minimum": 1, "maximum": 5, "exclusiveMaximum": True}, "At least `1`<br>Less than `5`"),
        ("lengths", {"type": "string", "minLength": 1, "maxLength": 63}, "Characters: at least `1`<br>Characters: at most `63`"),
        ("a pattern", {"type": "string", "pattern": "^(a|`)$"}, "Matches `` ^(a\\|`)$ ``"),
        ("a pattern of two lines", {"type": "string", "pattern": "a\nb"}, "Matches `a b` |"),
        ("null", {"type": "string", "nullable": True}, "It may be null."),
        ("a list", {"type": "array", "items": {"type": "string"}}, "| `spec.a` | list of string |  |"),
        ("items with limits", {"type": "array", "items": {"type": "string", "maxLength": 3}}, "| `spec.a[*]` | string | Characters: at most `3` |"),
        ("a map", {"type": "object", "additionalProperties": {"type": "integer"}}, "map of integer"),
        ("keys", {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}, "No two items have the same `k`"),
        ("either", {"x-kubernetes-int-or-string": True}, "integer or string"),
        ("alternatives", {"type": "object", "oneOf": [{"required": ["b"]}, {"required": ["c"]}], "properties": {"b": {"type": "string"}, "c": {"type": "string"}}}, "It has exactly one of `b \\| c`"),
        ("a rule", {"type": "integer", "x-kubernetes-validations": [{"rule": "self <\n 4", "message": "too large"}]}, "Rule: too large: `self < 4`"),
        ("a transition rule", {"type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}, "On updates: `self == oldSelf`"),
    ],
)  # fmt: skip
def test_what_is_said_about_a_field(what: str, schema: Object, row: str) -> None:
    assert row in page(schema), what


def test_the_example_is_accepted() -> None:
    document = crd()
    [*versions] = documented(versions_of(document)).versions
    for version in versions:
        resource = resource_of([document], f"widgets.example.com/{version.name}")
        assert errors_of(yaml.safe_load(version.example), resource) == []


def test_a_schema_without_an_example_says_why() -> None:
    required = crd(
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 2, "maximum": 1}}}
    )
    assert "No example is found: spec.a: no number is at least 2 and at most 1" in as_markdown(
        documented(versions_of(required))
    )


def test_a_deprecated_version_says_so() -> None:
    value = crd().value
    value["spec"]["versions"][0] |= {"deprecated": True, "deprecationWarning": "use v2"}
    text = as_markdown(documented(versions_of(crd()._replace(value=value))))
    assert "Deprecated: use v2" in text


def test_one_page_has_all_and_no_markup_of_others() -> None:
    kinds = [documented(versions_of(crd({"type": "object", "description": "<script>"})))]
    html = as_page(kinds)
    assert "<script" not in html
    assert '<a href="#widgets.example.com">Widget</a>' in html
    assert "[Widget](widgets.example.com.md)" in as_index(kinds)
