"""Laws of validation, ratcheting and list types, over any schema and any value."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from noxu.api.field import FieldError
from noxu.go.text import compact_json
from noxu.schema import formats, listtype, patterns
from noxu.schema.correlation import Correlated
from noxu.schema.structural import parse
from noxu.schema.validation import validate, validate_default, validate_update, validator
from noxu.values import MAX_INT64, MIN_INT64, Json, Object

names = st.sampled_from(["a", "b", "k", "b.c", "x/y", "kind", ""])
texts = st.one_of(st.sampled_from(["", "a", "ab", "2020-01-01", "1s", "::1"]), st.text(max_size=4))
numbers = st.one_of(
    st.integers(-3, 6),
    st.integers(MIN_INT64, MAX_INT64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 1.5, 0.1, 2.0**53, 2.0**63, 1e21, 5e-324]),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=8,
)
sizes = st.integers(0, 3)
limits = st.one_of(st.integers(-3, 6), st.floats(allow_nan=False, allow_infinity=False))
keywords: st.SearchStrategy[Object] = st.fixed_dictionaries(
    {},
    optional={
        "maximum": limits,
        "minimum": limits,
        "exclusiveMaximum": st.booleans(),
        "multipleOf": limits,
        "minLength": sizes,
        "maxLength": sizes,
        "pattern": st.sampled_from(["^a", "b$", "", "^\\d+$"]),
        "format": st.sampled_from([*sorted(formats._CHECKS), "int32", "float", "zzz"]),
        "minItems": sizes,
        "maxItems": sizes,
        "minProperties": sizes,
        "maxProperties": sizes,
        "required": st.lists(names, max_size=2),
        "enum": st.lists(values, max_size=3),
    },
)
branches: st.SearchStrategy[Object] = st.recursive(
    keywords,
    lambda inner: st.builds(
        lambda own, more: {**own, **more},
        keywords,
        st.fixed_dictionaries(
            {},
            optional={
                "anyOf": st.lists(inner, min_size=1, max_size=3),
                "oneOf": st.lists(inner, min_size=1, max_size=3),
                "allOf": st.lists(inner, min_size=1, max_size=3),
                "not": inner,
                "items": inner,
                "properties": st.dictionaries(names, inner, max_size=3),
            },
        ),
    ),
    max_leaves=4,
)


def node(inner: st.SearchStrategy[Object]) -> st.SearchStrategy[Object]:
    """A node of the spine over such nodes."""
    shapes = st.one_of(
        st.sampled_from([{"type": name} for name in ("string", "integer", "number", "boolean")]),
        st.just({"x-kubernetes-int-or-string": True}),
        st.just({"x-kubernetes-preserve-unknown-fields": True}),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda items: {"type": "array", "items": items, "x-kubernetes-list-type": "set"}, inner),
        st.builds(lambda value: {"type": "array", "items": keyed(value), **KEYED}, inner),
        st.builds(lambda more: {"type": "object", "properties": more}, st.dictionaries(names, inner, max_size=3)),
        st.builds(lambda value: {"type": "object", "additionalProperties": value}, inner),
        st.just({"type": "object", "additionalProperties": False}),
    )
    return st.builds(
        lambda shape, own, nullable: {**own, **shape, **({"nullable": True} if nullable else {})},
        shapes,
        branches,
        st.booleans(),
    )


KEYED: Object = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}


def keyed(value: Object) -> Object:
    return {"type": "object", "properties": {"k": {"type": "string"}, "b": value}}


schemas = node(node(node(st.just({"type": "string", "maxLength": 1}))))
QUICK = settings(max_examples=50, deadline=None)


def reasons(errors: list[FieldError]) -> set[str]:
    return {error.reason for error in errors}


def texts_of(errors: list[FieldError]) -> Counter[str]:
    return Counter(map(str, errors))


@QUICK
@given(schemas, values)
def test_all_functions_agree_about_any_value(schema: Object, value: Json) -> None:
    root = parse(schema)
    errors = validate(value, root)
    assert len(set(map(tuple, map(_hashable, errors)))) == len(errors)  # no error is reported twice
    assert validator(root).is_valid(value) == (not errors)
    assert all(error.body for error in errors)
    validate_default(value, root, path="default")
    assert listtype.has_errors(value, root) == bool(listtype.validate(value, root))


def _hashable(error: FieldError) -> tuple[str, str, str]:
    return error.reason, error.field, error.detail


@QUICK
@given(schemas, values)
def test_a_prefix_changes_the_fields_of_errors_and_not_their_texts(schema: Object, value: Json) -> None:
    root = parse(schema)
    plain, below = validate(value, root), validate(value, root, path="status")
    assert [(error.reason, error.value, error.detail) for error in plain] == [
        (error.reason, error.value, error.detail) for error in below
    ]
    assert all(error.field == "status" or error.field.startswith("status.") for error in below)


@QUICK
@given(schemas, values, st.randoms())
def test_the_order_of_names_does_not_matter(schema: Object, value: Json, random: Random) -> None:
    def shuffled(item: Json) -> Json:
        if isinstance(item, dict):
            pairs = list(item.items())
            random.shuffle(pairs)
            return {name: shuffled(inner) for name, inner in pairs}
        return [shuffled(inner) for inner in item] if isinstance(item, list) else item

    root = parse(schema)
    assert reasons(validate(value, root)) == reasons(validate(shuffled(value), root))


@QUICK
@given(branches, values)
def test_junctors_follow_boolean_logic(branch: Object, value: Json) -> None:
    def valid(schema: Object) -> bool:
        return validator(parse({**schema, "x-kubernetes-preserve-unknown-fields": True})).is_valid(value)

    if value is None:
        return  # junctors do not apply to null
    holds = valid({"allOf": [branch]})
    assert valid({"anyOf": [branch]}) is holds
    assert valid({"oneOf": [branch]}) is holds
    assert valid({"not": branch}) is not holds
    assert valid({"anyOf": [branch, {"not": branch}]})
    assert valid({"oneOf": [branch, {"not": branch}]})
    assert not valid({"allOf": [branch, {"not": branch}]})


@QUICK
@given(schemas, values, values)
def test_ratcheting_only_drops_errors(schema: Object, new: Json, old: Json) -> None:
    root = parse(schema)
    assert texts_of(validate_update(new, old, root)) <= texts_of(validate(new, root))
    assert validate_update(new, old, root, ratcheting=False) == validate(new, root)


@QUICK
@given(schemas, values)
def test_equal_values_have_no_errors(schema: Object, value: Json) -> None:
    root = parse(schema)
    remaining = validate_update(value, value, root)
    if Correlated(value, value, root).equal():
        assert remaining == []


@QUICK
@given(st.lists(scalars, max_size=6))
def test_scalars_are_duplicates_if_python_counts_them_as_equal(elements: list[Json]) -> None:
    schema = parse({"type": "array", "items": {}, "x-kubernetes-list-type": "set"})
    seen: Counter[object] = Counter()
    expected = []
    for n, element in enumerate(elements):
        seen[type(element), element] += 1
        if seen[type(element), element] == 2:
            expected.append(f"[{n}]")
    assert [error.field for error in listtype.validate(elements, schema)] == expected


@QUICK
@given(st.lists(values.filter(lambda value: isinstance(value, (dict, list))), max_size=5))
def test_lists_and_objects_are_duplicates_if_their_json_is_equal(elements: list[Json]) -> None:
    schema = parse({"type": "array", "items": {}, "x-kubernetes-list-type": "set"})
    written = [compact_json(element) for element in elements]
    expected = [f"[{n}]" for n, text in enumerate(written) if written[:n].count(text) == 1]
    assert [error.field for error in listtype.validate(elements, schema)] == expected


@QUICK
@given(st.sampled_from(sorted(formats._CHECKS)), st.text(alphabet='012-:./@aTZz "<>()[]%éx', max_size=20))
def test_formats_check_any_text(name: str, text: str) -> None:
    check = formats.checker(name)
    assert check is not None
    assert check(text) in (True, False)


@QUICK
@given(st.text(alphabet="ab(|)[]{}*+?.^$\\pLdQE:-,0129<>P=i!", max_size=12), st.text(alphabet="ab01-\n", max_size=6))
def test_any_pattern_compiles_or_has_an_error(pattern: str, text: str) -> None:
    try:
        compiled = patterns.compile(pattern)
    except ValueError as error:
        assert str(error).startswith("error parsing regexp: ")  # noqa: PT017 - either outcome is right
        return
    matches = list(compiled.find_all(text))
    assert compiled.search(text) == bool(matches)
    assert all(match in text for match in matches)
