"""Which paths a write has changed: objects in, paths out."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from noxu.control.changed_paths import changed_paths
from tests.rows import rows


def labels(**pairs: str) -> dict[str, Any]:
    return {"metadata": {"labels": {name.replace("__", "/"): value for name, value in pairs.items()}}}


def items(*values: Any) -> dict[str, Any]:
    return {"spec": {"items": list(values)}}


@rows(
    "old, new, paths",
    [
        ({"spec": {"size": 1}}, {"spec": {"size": 2}}, ["spec.size"]),
        ({"spec": {"size": 1}}, {"spec": {"size": 1}}, []),
        ({"spec": {"size": 1}}, {"spec": {"size": 1.0}}, ["spec.size"]),
        ({"spec": {"on": True}}, {"spec": {"on": 1}}, ["spec.on"]),
        ({"spec": {"size": 1}}, {"spec": {}}, ["spec.size"]),
        ({"spec": {}}, {"spec": {"a": {"b": 1, "c": 2}}}, ["spec.a"]),
        ({"spec": {"a": {}}}, {"spec": {"a": None}}, ["spec.a"]),
        ({"spec": {"a": {}}}, {"spec": {"a": []}}, ["spec.a"]),
        (labels(a="1"), {"metadata": {}}, ["metadata.labels"]),
        (labels(a="1"), labels(a="1", x__y="2"), ['metadata.labels["x/y"]']),
        (
            {"status": {"ready": True}, "spec": {"a": 1}, "metadata": {"name": "a"}},
            {"status": {"ready": False}, "spec": {"a": 2}, "metadata": {"name": "b"}},
            ["metadata.name", "spec.a", "status.ready"],
        ),
        (items(1, 2), items(1, 3), ["spec.items[1]"]),
        (items(1), items(1, 2, 3), ["spec.items[1]", "spec.items[2]"]),
        (items(1, 2), items(1), ["spec.items[1]"]),
        (items({"name": "a", "v": 1}), items({"name": "a", "v": 2}), ["spec.items[name=a].v"]),
        (
            items({"name": "a", "v": 1}, {"name": "b", "v": 1}),
            items({"name": "b", "v": 1}, {"name": "c", "v": 1}),
            ["spec.items[name=a]", "spec.items[name=c]"],
        ),
        (items({"name": "a b", "v": 1}), items({"name": "a b", "v": 2}), ['spec.items[name="a b"].v']),
        (items({"type": "Ready", "v": 1}), items({"type": "Ready", "v": 2}), ["spec.items[type=Ready].v"]),
        (
            items({"name": "a", "v": 1}, {"name": "a", "v": 2}),
            items({"name": "a", "v": 1}, {"name": "a", "v": 3}),
            ["spec.items[1].v"],
        ),
        (items({"name": "a"}, 1), items({"name": "a"}, 2), ["spec.items[1]"]),
        (items({"name": "a"}, {"name": "b"}), items({"name": "b"}, {"name": "a"}), ["spec.items"]),
        (items(), items({"name": "a"}), ["spec.items[name=a]"]),
        (items(), items(1), ["spec.items[0]"]),
        (items([1, 2]), items([1, 3]), ["spec.items[0][1]"]),
    ],
)
def test_changed_paths(old: Any, new: Any, paths: list[str]) -> None:
    assert changed_paths(old, new) == paths
    assert changed_paths(new, old) == paths


@rows("old, new", [(None, {"spec": {}}), ({"spec": {}}, None), (None, None)])
def test_an_object_that_is_new_or_deleted_has_no_changed_paths(old: Any, new: Any) -> None:
    assert changed_paths(old, new) == []


def test_what_every_write_changes_is_left_out() -> None:
    old = {"metadata": {"managedFields": [{"manager": "a"}], "resourceVersion": "1", "generation": 1, "name": "a"}}
    new = {"metadata": {"managedFields": [], "generation": 2, "name": "a"}}
    assert changed_paths(old, new) == []
    assert changed_paths({"spec": old}, {"spec": new}) != [], "only in the metadata of the object itself"


def test_many_paths_are_counted() -> None:
    old, new = ({"spec": {f"f{n:02}": value for n in range(9)}} for value in (1, 2))
    assert changed_paths(old, new, 3) == ["spec.f00", "spec.f01", "spec.f02", "… and 6 more"]


def test_a_deep_object() -> None:
    old: Any = 1
    new: Any = 2
    for _ in range(5000):
        old, new = {"a": old}, {"a": new}
    assert changed_paths(old, new) == [".".join(["a"] * 5000)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "x", "y"]), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["spec", "status", "data"]), JSON, max_size=3)


@given(OBJECTS, OBJECTS)
def test_objects_have_changed_paths_if_they_differ(old: Any, new: Any) -> None:
    found = changed_paths(old, new)
    assert found == changed_paths(new, old)
    assert bool(found) == (typed(old) != typed(new))


def typed(value: Any) -> Any:
    """Python calls True and 1 equal."""
    if isinstance(value, dict):
        return {name: typed(part) for name, part in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return (type(value).__name__, value)
