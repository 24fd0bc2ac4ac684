"""What is broken in an object: each kind of limit."""

from __future__ import annotations

from random import Random

from noxu.generation.broken import broken_object
from noxu.generation.kinds import errors_of, resource_of
from noxu.values import Object
from tests.generation.test_kinds import crd
from tests.rows import rows


@rows(
    "name, schema, why",
    [
        ("a type", {"type": "boolean"}, "must be of type boolean"),
        ("a minimum", {"type": "integer", "minimum": 1}, "greater than or equal to 1"),
        ("a maximum", {"type": "number", "maximum": 2.5}, "less than or equal to 2"),
        ("an enum", {"type": "string", "enum": ["a"]}, "Unsupported value"),
        ("a pattern", {"type": "string", "pattern": "^a+$"}, "should match"),
        ("a least length", {"type": "string", "minLength": 3}, "at least 3 chars"),
        ("a length", {"type": "string", "maxLength": 3}, "may not be more than 3"),
        ("a number of items", {"type": "array", "minItems": 1, "items": {"type": "string"}}, "at least 1 items"),
        ("too many items", {"type": "array", "maxItems": 2, "minItems": 1, "items": {"type": "string"}}, "must have at most 2"),
        ("a rule", {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 3", "message": "below 3"}]}, "below 3"),
        ("a required field", {"type": "integer"}, "Required value"),
    ],
)  # fmt: skip
def test_every_limit_is_broken_by_some_object(name: str, schema: Object, why: str) -> None:
    spec = {"type": "object", "required": ["a"], "properties": {"a": schema}}
    resource = resource_of([crd(spec)], "widgets.example.com")
    found = [broken_object(resource, Random(seed).randrange) for seed in range(30)]
    assert any(why in each.why and each.field == "spec.a" for each in found), {each.why for each in found}
    for each in found:
        assert each.field in [error.field for error in errors_of(each.value, resource)]
