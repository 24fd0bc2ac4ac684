"""The union of validations, and the choice of a branch of each junctor."""

from __future__ import annotations

from typing import Any

from noxu.generation.limits import below, chosen, limits, of_items
from noxu.schema.structural import parse
from noxu.values import Object
from tests.rows import rows


@rows(
    "schema, choice, expected",
    [
        ({"minimum": 1, "maximum": 5}, 0, {"least": 1, "most": 5}),
        ({"minimum": 1, "exclusiveMinimum": True}, 0, {"least": 2}),
        ({"minimum": 1, "oneOf": [{"maximum": 5}, {"minimum": 9}]}, 0, {"least": 1, "most": 5}),
        ({"minimum": 1, "oneOf": [{"maximum": 5}, {"minimum": 9}]}, 1, {"least": 9}),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "required": ["c"]}, 1, {"required": frozenset("bc")}),
        ({"allOf": [{"minLength": 2}, {"maxLength": 4}, {"minLength": 1}]}, 0, {"shortest": 2, "longest": 4}),
        ({"pattern": "a", "allOf": [{"pattern": "b"}]}, 0, {"patterns": ("a", "b")}),
        ({"enum": ["a", "b"], "allOf": [{"enum": ["b", "c"]}]}, 0, {"enum": ("b",)}),
        ({"enum": ["a"], "allOf": [{"enum": ["b"]}]}, 0, {"enum": ()}),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 1, {"type": "string"}),
        ({"minItems": 1, "maxItems": 2, "minProperties": 3, "maxProperties": 4}, 0,
         {"fewest_items": 1, "most_items": 2, "fewest_fields": 3, "most_fields": 4}),
        ({"allOf": [{"oneOf": [{"minimum": 3}]}]}, 0, {"least": 3}),
    ],
)  # fmt: skip
def test_limits_are_those_of_all_parts(schema: Object, choice: int, expected: dict[str, Any]) -> None:
    found = limits(chosen(parse(schema).validation, (), lambda n: min(choice, n - 1)))
    assert {name: getattr(found, name) for name in expected} == expected


def test_branches_say_something_about_fields_and_items() -> None:
    schema: Object = {
        "allOf": [
            {"properties": {"a": {"minLength": 1}}, "additionalProperties": {"minLength": 2}},
            {"items": {"minLength": 3}},
        ]
    }
    parts = chosen(parse(schema).validation, (), lambda _: 0)
    assert [limits(found).shortest for found in (below(parts, "a"), below(parts, "b"), of_items(parts))] == [1, 2, 3]
