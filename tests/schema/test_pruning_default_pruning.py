"""Defaults of served schemas lose what a write would not keep."""

from __future__ import annotations

from noxu.schema.defaulting import default
from noxu.schema.pruning import prune_defaults
from noxu.schema.structural import parse
from noxu.values import Json, Object, copy
from tests.rows import rows

STRING = {"type": "string"}


def struct(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def resource(metadata: Object) -> Object:
    """A struct whose field `a` is an embedded resource."""
    return struct(a={**struct(metadata=metadata), "x-kubernetes-embedded-resource": True})


DEFAULTED: list[tuple[str, Object, Json, Json]] = [
    ("a known field", struct(a={**STRING, "default": "b"}), {}, {"a": "b"}),
    ("an unknown field of a default", struct(a={**struct(b=STRING), "default": {"b": "c", "x": 1}}), {}, {"a": {"b": "c"}}),
    ("an unknown field in a list", struct(a={"type": "array", "items": struct(b=STRING), "default": [{"b": "c"}, {"x": 1}]}), {}, {"a": [{"b": "c"}, {}]}),
    ("a default of items", struct(a={"type": "array", "items": {**struct(), "default": {"x": 1}}}), {"a": [None]}, {"a": [{}]}),
    ("a default of the values of a map", struct(a={"type": "object", "additionalProperties": {**struct(), "default": {"x": 1}}}), {"a": {"k": None}}, {"a": {"k": {}}}),
    ("unknown metadata of an embedded resource", resource(struct(other={**STRING, "default": "x"})), {"a": {"metadata": {}}}, {"a": {"metadata": {}}}),
    ("known metadata of an embedded resource", resource(struct(name={**STRING, "default": "x"})), {"a": {"metadata": {}}}, {"a": {"metadata": {"name": "x"}}}),
    ("the metadata of an embedded resource", resource({**struct(), "default": {"name": "x", "other": 1}}), {"a": {}}, {"a": {"metadata": {"name": "x"}}}),
    ("a scalar in unknown metadata of the object", struct(metadata=struct(other={**STRING, "default": "x"})), {"metadata": {}}, {"metadata": {}}),
    ("the kind of an embedded resource", struct(a={**struct(kind={"type": "integer", "default": 1}), "x-kubernetes-embedded-resource": True}), {"a": {}}, {"a": {}}),
    ("a scalar below an embedded resource", struct(a={**struct(spec=struct(b={**STRING, "default": "x"})), "x-kubernetes-embedded-resource": True}), {"a": {"spec": {}}}, {"a": {"spec": {"b": "x"}}}),
    ("malformed metadata", resource(struct(labels={"type": "object", "default": {"a": 1}})), {"a": {"metadata": {}}}, {"a": {"metadata": {}}}),
]  # fmt: skip


@rows(("schema", "value", "filled"), [row[1:] for row in DEFAULTED], ids=[row[0] for row in DEFAULTED])
def test_only_what_is_kept_is_filled_in(schema: Object, value: Json, filled: Json) -> None:
    value = copy(value)
    default(value, prune_defaults(parse(schema)))
    assert value == filled


def test_a_schema_whose_defaults_are_kept_stays_the_same() -> None:
    schema = parse(struct(a={**struct(b={**STRING, "default": "c"}), "default": {}}))
    assert prune_defaults(schema) is schema
