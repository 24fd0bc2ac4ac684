"""Structural schemas, and objects that nearly fit them: strategies for laws about both."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from noxu.schema import formats
from noxu.values import Json, Object

NAMES = ("a", "b", "c", "k", "kind", "metadata", "x.y/z", "")
TEXTS = ("", "a", "ab", "abc", "b-1", "True", "10m", "2020-01-01", "1h30m", "10.0.0.1", "é")
INTEGERS = (-(2**63), -3, -1, 0, 1, 2, 3, 5, 65, 2**31 - 1, 2**31, 2**53, 2**63 - 1)
FLOATS = (-1.5, -0.0, 0.0, 0.1, 1.0, 1.5, 2.0, 3.0, 1e21, 2.0**31, 2.0**63, -(2.0**63))
LIMITS = (*FLOATS, *INTEGERS)

names = st.sampled_from(NAMES)
sizes = st.integers(0, 3)
numbers = st.sampled_from((*INTEGERS, *FLOATS))
scalars: st.SearchStrategy[Json] = st.one_of(st.none(), st.booleans(), numbers, st.sampled_from(TEXTS))
values: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=6,
)


def some(keywords: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Object]:
    """Nothing, or one or two of these keywords."""
    items = sorted(keywords)
    chosen = st.lists(st.sampled_from(items), max_size=2, unique=True)
    return st.one_of(
        st.just({}), chosen.flatmap(lambda names: st.fixed_dictionaries({name: keywords[name] for name in names}))
    )


def many(inner: st.SearchStrategy[Object]) -> st.SearchStrategy[list[Object]]:
    return st.lists(inner, min_size=1, max_size=3)


FOR_TEXTS = {
    "minLength": sizes,
    "maxLength": sizes,
    "pattern": st.sampled_from(["^a", "b$", "^[a-c]*$", "^[0-9]+h$"]),
    "format": st.sampled_from([*sorted(formats._CHECKS), "int32", "unknown"]),
    "enum": st.lists(st.sampled_from([*TEXTS, 1, None]), min_size=1, max_size=4),
}
FOR_NUMBERS = {
    "minimum": st.sampled_from(LIMITS),
    "maximum": st.sampled_from(LIMITS),
    "multipleOf": st.sampled_from([1, 2, 0.1, 2.5]),
    "format": st.sampled_from(["int32", "int64", "float", "double", "unknown", "date"]),
    "enum": st.lists(st.one_of(numbers, st.just("a")), min_size=1, max_size=4),
}
FOR_LISTS = {"minItems": sizes, "maxItems": sizes, "enum": st.just([[], ["a"]])}
FOR_OBJECTS = {
    "required": st.lists(st.sampled_from(NAMES), min_size=1, max_size=2),
    "minProperties": sizes,
    "maxProperties": st.integers(1, 5),
    "enum": st.just([{}, {"a": 1}]),
}
keywords = some({**FOR_TEXTS, **FOR_NUMBERS, **FOR_LISTS, **FOR_OBJECTS})
branches: st.SearchStrategy[Object] = st.recursive(
    st.one_of(some({"required": FOR_OBJECTS["required"]}), keywords),
    lambda inner: st.one_of(
        st.builds(lambda name, many: {name: many}, st.sampled_from(["anyOf", "oneOf", "allOf"]), many(inner)),
        st.builds(lambda one: {"not": one}, inner),
        st.builds(lambda one: {"properties": {"a": one}, "items": one}, inner),
    ),
    max_leaves=3,
)


junctors = st.one_of(
    st.just({}),
    st.just({}),
    st.builds(
        lambda name, one: {name: one if name == "not" else [one, {"required": ["b"]}]},
        st.sampled_from(["anyOf", "oneOf", "allOf", "not"]),
        branches,
    ),
)
nullable = st.sampled_from([{}, {}, {"nullable": True}])
INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}]}


@st.composite
def nodes(draw: st.DrawFn, depth: int = 3) -> Object:
    """A node of a structural schema. Now and then it has a default, which may be anything."""
    kinds = ["string", "string", "integer", "number", "boolean", "int-or-string", "anything", "array", "object", "map"]
    kind = draw(st.sampled_from(kinds if depth else kinds[:7]))
    schema: Object = draw(nullable) | draw(junctors)
    if kind == "array":
        schema |= {"type": "array", **draw(some(FOR_LISTS)), **draw(lists(depth - 1))}
    elif kind == "object":
        schema |= draw(objects(depth - 1))
    elif kind == "map":
        schema |= {"type": "object", **draw(some(FOR_OBJECTS))}
        schema["additionalProperties"] = draw(st.one_of(st.booleans(), nodes(depth - 1)))
    elif kind == "anything":
        schema |= {"x-kubernetes-preserve-unknown-fields": True, **draw(keywords)}
    elif kind == "int-or-string":
        schema |= {"x-kubernetes-int-or-string": True, **draw(st.sampled_from([{}, INT_OR_STRING]))}
        schema |= draw(some({**FOR_TEXTS, **FOR_NUMBERS}))
    else:
        schema |= {"type": kind, **draw(some(FOR_TEXTS if kind == "string" else FOR_NUMBERS))}
    if draw(st.integers(0, 3)) == 0:
        schema["default"] = draw(st.one_of(nearly(schema), nearly(schema), values))
    return schema


@st.composite
def lists(draw: st.DrawFn, depth: int) -> Object:
    """What a list says of its items, and of there being none twice."""
    list_type = draw(st.sampled_from(["atomic", "atomic", "set", "map"]))
    if list_type != "map":
        return {"items": draw(nodes(depth)), "x-kubernetes-list-type": list_type}
    item = draw(objects(depth))
    keys = draw(st.sampled_from([["k"], ["k", "a"]]))
    for key in keys:
        item["properties"][key] = draw(st.sampled_from([{"type": "string"}, {"type": "string", "default": "a"}]))
    return {"items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}


@st.composite
def objects(draw: st.DrawFn, depth: int) -> Object:
    properties = draw(st.dictionaries(names, nodes(depth), min_size=1, max_size=4))
    schema: Object = {"type": "object", "properties": properties, **draw(some(FOR_OBJECTS))}
    extra = draw(st.sampled_from([None, None, None, "preserve", "embedded", "others"]))
    if extra == "others":
        schema["additionalProperties"] = True
    elif extra:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if extra == "embedded":
        schema["x-kubernetes-embedded-resource"] = True
    return schema


@st.composite
def roots(draw: st.DrawFn) -> Object:
    """The schema of a kind."""
    schema: Object = {**draw(junctors)} if draw(st.integers(0, 4)) == 0 else {}
    schema |= {"type": "object", "properties": {"spec": draw(nodes(3)), "status": draw(nodes(2))}}
    if draw(st.booleans()):
        schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    if draw(st.integers(0, 3)) == 0:
        name = {"type": "string", **draw(some(FOR_TEXTS))}
        schema["properties"]["metadata"] = {"type": "object", "properties": {"name": name}}
    if draw(st.integers(0, 5)) == 0:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    if draw(st.integers(0, 3)) == 0:
        schema |= draw(some({**FOR_OBJECTS, "required": st.sampled_from([["spec"], ["status"], ["metadata"]])}))
    return schema


METADATA: Object = {"name": "a", "namespace": "default", "labels": {"a": "b"}}


@st.composite
def nearly(draw: st.DrawFn, schema: Object) -> Json:
    """A value that usually fits the schema. Every node of it may be wrong, with a small probability."""
    if draw(st.integers(0, 24)) == 0:
        return draw(values)
    if schema.get("nullable") and draw(st.integers(0, 4)) == 0:
        return None
    if schema.get("enum") and draw(st.integers(0, 9)):
        return draw(st.sampled_from(schema["enum"]))
    kind = schema.get("type", "")
    if schema.get("x-kubernetes-int-or-string"):
        return draw(st.sampled_from([*TEXTS, *INTEGERS]))
    if kind == "array":
        inner = nearly(schema.get("items", {}))
        return draw(st.lists(inner, min_size=schema.get("minItems", 0), max_size=3))
    if kind == "object" or schema.get("properties"):
        return draw(fields(schema))
    return draw(st.sampled_from(_SAMPLES[kind])) if kind else draw(values)


_SAMPLES: dict[str, tuple[Json, ...]] = {
    "string": TEXTS,
    "integer": (*INTEGERS, 1.0),
    "number": (*FLOATS, *INTEGERS),
    "boolean": (True, False),
}


@st.composite
def fields(draw: st.DrawFn, schema: Object) -> Object:
    properties = schema.get("properties", {})
    found: Object = {}
    for name, inner in properties.items():
        if name in schema.get("required", ()) or draw(st.booleans()):
            found[name] = draw(nearly(inner))
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        found |= draw(st.dictionaries(names.filter(lambda name: name not in properties), nearly(others), max_size=2))
    elif others or schema.get("x-kubernetes-preserve-unknown-fields") or draw(st.integers(0, 14)) == 0:
        found |= draw(st.dictionaries(names.filter(lambda name: name not in properties), scalars, max_size=1))
    if schema.get("x-kubernetes-embedded-resource"):
        found |= draw(
            st.sampled_from(
                [
                    {"apiVersion": "v1", "kind": "Pod"},
                    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
                    {"apiVersion": "a/b/c", "kind": "Pod", "metadata": {}},
                    {"apiVersion": "v1", "kind": "", "metadata": {"labels": {}, "unknown": 1}},
                ]
            )
        )
    return found


@st.composite
def wholes(draw: st.DrawFn, schema: Object) -> Object:
    """An object of the kind, with a type and metadata."""
    found = draw(fields(schema))
    return {"apiVersion": "example.com/v1", "kind": "Example", **found, "metadata": METADATA}


@st.composite
def kinds(draw: st.DrawFn) -> tuple[Object, Object]:
    """The schema of a kind, and an object that nearly fits it."""
    schema = draw(roots())
    return schema, draw(wholes(schema))
