"""Laws of skeletons: pruning needs nothing else."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from noxu.schema.defaulting import default
from noxu.schema.pruning import prune
from noxu.schema.skeleton import merge, restriction_1_violations, skeleton, strip
from noxu.schema.structural import parse
from noxu.values import Json, Object, copy, equal

NAMES = st.sampled_from("abcd")
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.just("metadata"), inner, max_size=4),
    max_leaves=12,
)
VALIDATIONS = st.fixed_dictionaries(
    {},
    optional={
        "minLength": st.just(1),
        "required": st.just(["a"]),
        "enum": st.just(["x"]),
        "anyOf": st.just([{"required": ["a"]}, {"minProperties": 1}]),
        "not": st.just({"required": ["b"]}),
        "x-kubernetes-validations": st.just([{"rule": "true"}]),
    },
)
EXTENSIONS = st.fixed_dictionaries(
    {},
    optional={
        "x-kubernetes-preserve-unknown-fields": st.just(True),
        "x-kubernetes-embedded-resource": st.just(True),
        "nullable": st.just(True),
        "default": st.sampled_from(["x", {}, {"a": {}}, []]),
    },
)


def node(shape: st.SearchStrategy[Object], extensions: st.SearchStrategy[Object]) -> st.SearchStrategy[Object]:
    return st.builds(
        lambda *parts: {key: value for part in parts for key, value in part.items()}, shape, VALIDATIONS, extensions
    )


def schemas(extensions: st.SearchStrategy[Object]) -> st.SearchStrategy[Object]:
    """Spines with value validations here and there."""
    return st.recursive(
        node(st.just({"type": "string"}), extensions),
        lambda inner: node(
            st.fixed_dictionaries({"properties": st.dictionaries(NAMES, inner, max_size=3)})
            | st.fixed_dictionaries({"additionalProperties": inner | st.booleans()})
            | st.fixed_dictionaries({"items": inner}),
            extensions,
        ),
        max_leaves=8,
    )


ANY_SCHEMA: st.SearchStrategy[Object] = st.recursive(
    st.sampled_from([{}, {"type": "string"}, {"type": "object"}, {"minimum": 1}]),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "string"]),
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "additionalProperties": inner | st.booleans(),
            "items": inner,
            "allOf": st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=2),
            "not": inner,
        },
    ),
    max_leaves=8,
)
UNEXTENDED = st.just({})


@given(schemas(EXTENSIONS), VALUES, st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_schema_and_its_stripped_form_prune_and_default_alike(schema: Object, value: Json, root: bool) -> None:
    full = parse(schema)
    left, right = copy(value), copy(value)
    assert prune(left, full, root=root) == prune(right, strip(full), root=root)
    assert equal(left, right)
    default(left, full)
    default(right, strip(full))
    assert equal(left, right)


@given(schemas(UNEXTENDED), VALUES, st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_complete_schema_and_its_skeleton_prune_alike(schema: Object, value: Json, root: bool) -> None:
    left, right = copy(value), copy(value)
    assert prune(left, parse(schema), root=root) == prune(right, parse(skeleton(schema)), root=root)
    assert equal(left, right)


def spine(schema: Object) -> Object:
    """The schema without its junctors."""
    kept = {name: inner for name, inner in schema.items() if name not in ("allOf", "anyOf", "not")}
    for keyword in ("items", "additionalProperties"):
        if isinstance(kept.get(keyword), dict):
            kept[keyword] = spine(kept[keyword])
    if "properties" in kept:
        kept["properties"] = {name: spine(inner) for name, inner in kept["properties"].items()}
    return kept


@given(ANY_SCHEMA, VALUES)
@settings(max_examples=300, deadline=None)
def test_a_skeleton_keeps_the_fields_that_its_spine_keeps(schema: Object, value: Json) -> None:
    """But where it is a struct and a map at once; there the KEP's Restriction 1 says no."""
    assume(not restriction_1_violations(schema))
    by_spine, by_skeleton = copy(value), copy(value)
    prune(by_spine, parse(spine(schema)))
    prune(by_skeleton, parse(skeleton(schema)))
    again = copy(by_spine)
    prune(again, parse(skeleton(schema)))
    assert equal(again, by_spine)
    assert contains(by_skeleton, by_spine)


def contains(larger: Json, smaller: Json) -> bool:
    if isinstance(smaller, dict):
        return isinstance(larger, dict) and all(
            name in larger and contains(larger[name], inner) for name, inner in smaller.items()
        )
    if isinstance(smaller, list):
        return isinstance(larger, list) and all(map(contains, larger, smaller))
    return bool(larger == smaller)


@given(ANY_SCHEMA)
@settings(max_examples=200, deadline=None)
def test_a_skeleton_is_its_own_skeleton(schema: Object) -> None:
    assert skeleton(skeleton(schema)) == skeleton(schema)


@given(ANY_SCHEMA, ANY_SCHEMA, ANY_SCHEMA)
@settings(max_examples=200, deadline=None)
def test_the_order_of_merging_does_not_matter(one: Object, two: Object, three: Object) -> None:
    a, b, c = skeleton(one), skeleton(two), skeleton(three)
    assert merge(a, b, c) == merge(c, a, b)
    assert merge(a, a) == a
