"""The law of metadata's fast path: what it accepts, validation accepts."""

from __future__ import annotations

from hypothesis import event, example, given
from hypothesis import strategies as st

from noxu.api import meta
from noxu.apply import types
from noxu.apply.typed import validate
from noxu.values import Json, Object

TEXTS = (
    "",
    "a",
    "a-b",
    "A",
    "a.b",
    "a/b",
    "a" * 63,
    "a" * 64,
    "a" * 253,
    "a" * 254,
    "-a",
    "a_b",
    "é",
    "a\n",
    "..",
    "\0",
)
texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=4))
managers = st.one_of(texts, st.sampled_from(["kubectl", "m" * 128, "m" * 129, "m\t", "ü" * 65, "a b"]))
entries: st.SearchStrategy[Object] = st.fixed_dictionaries(
    {},
    optional={
        "manager": managers,
        "operation": st.sampled_from(["Apply", "Update", "Create", ""]),
        "fieldsType": st.sampled_from(["FieldsV1", "FieldsV2", ""]),
        "apiVersion": texts,
        "time": st.just("2026-01-01T00:00:00Z"),
        "fieldsV1": st.just({}),
        "subresource": st.sampled_from(["", "status", "s" * 257]),
    },
)
metadata: st.SearchStrategy[Object] = st.fixed_dictionaries(
    {},
    optional={
        "name": st.one_of(texts, st.just("good")),
        "generateName": texts,
        "namespace": st.one_of(texts, st.just("good")),
        "uid": texts,
        "resourceVersion": texts,
        "generation": st.integers(-2, 2),
        "creationTimestamp": st.just("2026-01-01T00:00:00Z"),
        "labels": st.dictionaries(texts, texts, max_size=2),
        "annotations": st.dictionaries(texts, texts, max_size=2),
        "ownerReferences": st.just([{}]),
        "finalizers": st.lists(texts, max_size=2),
        "managedFields": st.one_of(st.none(), st.lists(entries, max_size=2)),
    },
)
ENTRY: Object = {"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1"}


def check(value: Object, namespaced: bool) -> None:
    if meta.is_sound(value, namespaced=namespaced):
        event("sound")
        assert meta.validate_object_meta(value, namespaced=namespaced) == []
        own, stored = {**value, "resourceVersion": "1"}, {**value, "resourceVersion": "1"}
        assert meta.validate_update(own, stored, namespaced=namespaced) == ([], [])
        assert meta.validate_object_meta_update(own, stored) == []


@given(metadata, st.booleans())
@example({"name": "a", "namespace": "a", "managedFields": [ENTRY]}, True)
@example({"name": "a", "managedFields": None, "generation": None}, False)
@example({"name": "a", "managedFields": [{**ENTRY, "manager": "m" * 129}]}, False)
@example({"name": "a", "managedFields": [{**ENTRY, "subresource": "s" * 257}]}, False)
@example({"name": "a", "managedFields": [{**ENTRY, "subresource": "é" * 129}]}, False)
@example({"name": "a", "labels": {"a.b/c": "d", "e": ""}}, False)
@example({"name": "a", "labels": {"a": "b", "c": "-d"}}, False)
@example({"name": "a", "labels": {"a/b/c": "d"}}, False)
@example({"name": "a", "labels": {"a": "b" * 64}}, False)
def test_sound_metadata_is_valid(value: Object, namespaced: bool) -> None:
    check(value, namespaced)


@given(
    st.one_of(texts, st.just("good")),
    st.one_of(texts, st.just("good")),
    st.booleans(),
    st.lists(st.one_of(entries, st.builds(lambda manager: {**ENTRY, "manager": manager}, managers)), max_size=2),
    st.integers(-1, 1),
    st.dictionaries(texts, texts, max_size=1),
    st.lists(st.sampled_from(["a.b/c", "orphan", "foregroundDeletion", ""]), max_size=2),
)
@example("a", "", False, [], 0, {"a": "b" * (256 * 1024)}, [])
@example("a", "", False, [], 0, {"a": "é"}, ["orphan", "foregroundDeletion"])
def test_sound_metadata_of_common_fields_is_valid(
    name: str,
    namespace: str,
    namespaced: bool,
    managed: list[Json],
    generation: int,
    texts: Object,
    finalizers: list[str],
) -> None:
    """Most of these are sound, or fail for one reason only."""
    fields = {"managedFields": managed, "generation": generation, "uid": "u", "finalizers": finalizers}
    fields |= {"labels": texts, "annotations": texts}
    check({"name": name, **({"namespace": namespace} if namespaced else {}), **fields}, namespaced)


def test_the_metadata_of_a_usual_object_is_sound() -> None:
    value: Object = {"name": "a", "namespace": "b", "uid": "u", "generation": 1, "managedFields": [ENTRY]}
    assert meta.is_sound(value, namespaced=True)
    assert meta.is_sound({**value, "labels": {"example.com/a": "b"}}, namespaced=True)
    assert meta.is_sound({**value, "annotations": {"Example.com/a": "b c"}, "finalizers": ["a.b/c"]}, namespaced=True)
    assert meta.is_sound({**value, "managedFields": [{**ENTRY, "subresource": "status"}]}, namespaced=True)
    assert meta.is_sound({"name": "a"}, namespaced=False)


owners = st.fixed_dictionaries({"uid": texts}, optional={"name": texts, "kind": texts, "controller": st.booleans()})
members = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 1),
    st.just(1.5),
    texts,
    st.just("2026-01-01T00:00:00Z"),
    st.lists(st.none() | texts | owners | entries, max_size=3),
    st.dictionaries(texts, texts | st.none() | st.integers(), max_size=2),
)
malformed = st.dictionaries(st.sampled_from(["x", *meta.OBJECT_META.fields]), members, max_size=5)


@given(metadata | malformed, st.booleans())
@example({"ownerReferences": [{"uid": "a"}, {"uid": "a"}, {}], "finalizers": ["a", "a"]}, True)
def test_coerced_metadata_is_of_its_type(value: Object, drop_malformed: bool) -> None:
    """Field ownership does not check the metadata of objects that the fast path has accepted."""
    try:
        coerced, _ = meta.coerce(value, drop_malformed=drop_malformed)
    except ValueError:
        event("refused")
        return
    event(f"fields: {len(coerced)}")
    assert validate(coerced, types.OBJECT_META, duplicates=True) == []
