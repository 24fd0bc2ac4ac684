"""Equal schemas share one node, unless what is computed of a node depends on where it is."""

from __future__ import annotations

import gc
import json
from weakref import ref

import orjson
import pytest

from noxu.crd.internal import Internal, internal
from noxu.crd.schemas import schema_errors
from noxu.crd.strictness import Strictness
from noxu.schema.structural import MAX_BYTES, keeping, parse
from noxu.values import Object

SECRET: Object = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NOT_SHARED = [
    pytest.param({"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}, id="rules"),
    pytest.param({"type": "object", "default": {}, "properties": {"a": {"type": "string"}}}, id="a map as default"),
    pytest.param({"type": "array", "default": [], "items": {"type": "string"}}, id="a list as default"),
    pytest.param(
        {"anyOf": [{"not": {"items": {"properties": {"a": {"x-kubernetes-validations": [{"rule": "true"}]}}}}}]},
        id="rules in a junctor",
    ),
    pytest.param({"type": "string", "description": "x" * MAX_BYTES}, id="what is large"),
    pytest.param({"type": "integer", "maximum": 2**70}, id="a number that the encoder does not have"),
]


def schema(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def test_equal_schemas_share_a_node() -> None:
    first, second = parse(schema(a=SECRET)), parse(schema(b=dict(SECRET), c={"type": "string"}))
    assert first.properties["a"] is second.properties["b"]


@pytest.mark.parametrize("inner", NOT_SHARED)
def test_these_do_not(inner: Object) -> None:
    first, second = parse(schema(a=inner)), parse(schema(a=inner))
    assert first.properties["a"] is not second.properties["a"]


@pytest.mark.parametrize(
    ("left", "right"),
    [({"minimum": 1}, {"minimum": 1.0}), ({"default": 0}, {"default": False}), ({"default": 1}, {"default": "1"})],
)
def test_what_differs_in_json_differs(left: Object, right: Object) -> None:
    first, second = parse(left), parse(right)
    assert first is not second


@pytest.mark.slow
def test_a_node_lives_as_long_as_it_is_used() -> None:
    found = ref(parse({"type": "string", "description": "not used"}))
    gc.collect()
    assert found() is None


@pytest.mark.slow
def test_nodes_that_are_kept_are_found_again() -> None:
    part = {"type": "string", "description": "kept"}
    with keeping():
        found = ref(parse(schema(a=part)).properties["a"])
        gc.collect()
        assert parse(schema(b=dict(part))).properties["b"] is found()
    gc.collect()
    assert found() is None


# -- errors do not depend on what was validated before -----------------------------------------------------------------

BROKEN = {
    "no type": {"properties": {"a": {}}, "type": "object"},
    "no items": {"type": "array"},
    "an unknown type": {"type": "text"},
    "a set of maps": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
    "a type in a junctor": {"type": "string", "anyOf": [{"type": "integer"}]},
    "nothing": SECRET,
    "an embedded resource": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    "a default": {"type": "string", "default": "a"},
}
PLACES = {
    "a field": lambda inner: schema(spec=inner),
    "a list": lambda inner: schema(spec={"type": "array", "items": inner}),
    "a map": lambda inner: schema(spec={"type": "object", "additionalProperties": inner}),
    "the metadata": lambda inner: schema(metadata=schema(name=inner)),
    "deep inside": lambda inner: schema(a=schema(b=schema(c=inner, d=SECRET))),
}


@pytest.mark.parametrize("inner", [pytest.param(inner, id=name) for name, inner in BROKEN.items()])
def test_the_errors_are_the_same_when_equal_schemas_were_validated_elsewhere(inner: Object) -> None:
    alone = {name: errors_of(place(inner)) for name, place in PLACES.items()}
    kept = [parse(place(inner)) for place in PLACES.values()]  # now all nodes stay, with what is known of them
    for _ in range(2):
        assert {name: errors_of(place(inner)) for name, place in PLACES.items()} == alone
    assert len(kept) == len(PLACES)


def errors_of(root: Object) -> list[str]:
    return list(map(str, schema_errors(root, "schema", Strictness(spec_of(root)), "v1", status=False, checkers=None)))


def spec_of(root: Object) -> Internal:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    return internal({"group": "example.com", "names": {}, "scope": "Cluster", "versions": [version]})


LARGE: Object = {"type": "string", "description": "x" * 2_500_000}
WIDE: Object = schema(**{f"f{n}": {"type": "string", "description": "x" * 100} for n in range(1_000)})


def inside(inner: Object, levels: int, **others: Object) -> Object:
    for _ in range(levels):
        inner = schema(a=inner, **others)
    return inner


NESTED: dict[str, Object] = {
    "a large field": inside(LARGE, 100),
    "many fields": inside(WIDE, 100),
    "lists and maps": inside({"type": "array", "items": {"type": "object", "additionalProperties": WIDE}}, 50),
    "large fields at each level": inside(SECRET, 100, b=schema(c={"type": "string", "description": "x" * 20_000})),
    "two heavy fields at each level": inside(WIDE, 5, b=WIDE),
    "deeper than the encoder goes": inside(WIDE, 200),
}


@pytest.mark.parametrize("schema", NESTED.values(), ids=NESTED)
def test_what_is_nested_is_not_encoded_at_each_level(schema: Object, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    encode = orjson.dumps

    def counted(part: Object) -> bytes:
        found = encode(part)
        encoded.append(len(found))
        return found

    monkeypatch.setattr(orjson, "dumps", counted)
    parse(schema)
    assert sum(encoded) < 4 * len(json.dumps(schema))
