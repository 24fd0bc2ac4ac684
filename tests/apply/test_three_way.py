"""Three-way merges: what `kubectl apply` keeps, changes and removes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.apply.patch import three_way
from noxu.go.structs import INT32, STRING, Field, List, Map, Struct
from noxu.kinds.scheme import struct_of
from tests.rows import rows

PORT = Struct("Port").define(Field("port", INT32), Field("protocol", STRING), Field("name", STRING))
CHOICE = Struct("Choice").define(Field("type", STRING), Field("rolling", Map(STRING)))
VOLUME = Struct("Volume").define(Field("name", STRING), Field("empty", Map(STRING)), Field("config", Map(STRING)))
KIND = Struct("Kind").define(
    Field("finalizers", List(STRING), patch="merge"),
    Field("args", List(STRING)),
    Field("ports", List(PORT), patch="merge", merge_key="port"),
    Field("volumes", List(VOLUME), patch="merge,retainKeys", merge_key="name"),
    Field("labels", Map(STRING)),
    Field("choice", CHOICE, patch="retainKeys"),
    Field("whole", CHOICE, patch="replace"),
    Field("text", STRING),
)

ROWS: list[tuple[str, Any, Any, Any, Any]] = [
    ("what others have set stays", {"labels": {"a": "1"}}, {"labels": {"a": "1"}}, {"labels": {"a": "1", "b": "2"}, "text": "x"}, {"labels": {"a": "1", "b": "2"}, "text": "x"}),
    ("what others have changed is changed back", {"text": "a"}, {"text": "a"}, {"text": "b"}, {"text": "a"}),
    ("what the file no longer has is removed", {"labels": {"a": "1", "b": "2"}, "text": "x"}, {"labels": {"a": "1"}}, {"labels": {"a": "1", "b": "2", "c": "3"}, "text": "x"}, {"labels": {"a": "1", "c": "3"}}),
    ("without a last configuration nothing is removed", {}, {"text": "a"}, {"labels": {"b": "2"}}, {"text": "a", "labels": {"b": "2"}}),
    ("what is removed already stays so", {"text": "a"}, {}, {}, {}),
    ("a null removes", {}, {"text": None}, {"text": "a"}, {}),
    ("a map in place of a text", {"labels": "a"}, {"labels": {"a": "1"}}, {"labels": "a"}, {"labels": {"a": "1"}}),
    ("a text in place of a map", {}, {"labels": "a"}, {"labels": {"b": "1"}}, {"labels": "a"}),
    ("a list without a strategy is replaced", {"args": ["a"]}, {"args": ["a", "b"]}, {"args": ["a", "x"]}, {"args": ["a", "b"]}),
    ("a set keeps what others have added", {"finalizers": ["a", "b"]}, {"finalizers": ["a", "c"]}, {"finalizers": ["x", "a", "b"]}, {"finalizers": ["x", "a", "c"]}),
    ("a list that is gone is removed", {"finalizers": ["a"]}, {}, {"finalizers": ["a", "b"]}, {}),
    ("items are merged by their keys", {"ports": [{"port": 1, "name": "a"}]}, {"ports": [{"port": 1}]}, {"ports": [{"port": 1, "name": "a", "protocol": "TCP"}]}, {"ports": [{"port": 1, "protocol": "TCP"}]}),
    ("items that others have added stay in their places", {"ports": [{"port": 1}]}, {"ports": [{"port": 3}, {"port": 1}]}, {"ports": [{"port": 9}, {"port": 1}, {"port": 8}]}, {"ports": [{"port": 3}, {"port": 9}, {"port": 1}, {"port": 8}]}),
    ("items that the file no longer has are removed", {"ports": [{"port": 1}, {"port": 2}]}, {"ports": [{"port": 2}]}, {"ports": [{"port": 1}, {"port": 2}, {"port": 3}]}, {"ports": [{"port": 2}, {"port": 3}]}),
    ("items with one key for two are replaced", {"ports": []}, {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}, {"ports": [{"port": 53, "protocol": "TCP", "name": "a"}]}, {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}),
    ("items without a key are replaced", {}, {"ports": [{"name": "a"}, {"name": "b"}]}, {"ports": [{"port": 1}]}, {"ports": [{"name": "a"}, {"name": "b"}]}),
    ("items that are no objects are left to validation", {}, {"ports": ["a"]}, {"ports": [{"port": 1}]}, {"ports": ["a"]}),
    ("a union has the members of the file only", {"choice": {"type": "a"}}, {"choice": {"type": "b"}}, {"choice": {"type": "a", "rolling": {"x": "1"}}}, {"choice": {"type": "b"}}),
    ("so has a union in an item", {"volumes": []}, {"volumes": [{"name": "v", "config": {"a": "1"}}]}, {"volumes": [{"name": "v", "empty": {"x": "1"}}]}, {"volumes": [{"name": "v", "config": {"a": "1"}}]}),
    ("a map may be replaced", {}, {"whole": {"type": "a"}}, {"whole": {"type": "b", "rolling": {}}}, {"whole": {"type": "a"}}),
    ("unknown fields are values", {"other": {"a": 1}}, {"other": {"a": 2}}, {"other": {"a": 1, "b": 1}}, {"other": {"a": 2, "b": 1}}),
]  # fmt: skip

WITHOUT_TABLE: list[tuple[str, Any, Any, Any, Any]] = [
    ("lists are replaced", {"ports": [{"port": 1}]}, {"ports": [{"port": 2}]}, {"ports": [{"port": 3}]}, {"ports": [{"port": 2}]}),
    ("maps are merged", {"a": {"b": 1, "c": 1}}, {"a": {"b": 2}}, {"a": {"b": 1, "c": 1, "d": 1}}, {"a": {"b": 2, "d": 1}}),
    ("a null changes nothing", {}, {"a": None}, {"a": 1}, {"a": 1}),
    ("a null of the last configuration, too", {"a": None}, {"a": None}, {"a": 1}, {"a": 1}),
    ("a null in place of a value removes it", {"a": 1}, {"a": None}, {"a": 1}, {}),
    ("what had no value is not removed", {"a": None}, {}, {"a": 1}, {"a": 1}),
]  # fmt: skip


@rows(("last", "new", "live", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_kinds_with_tables(last: Any, new: Any, live: Any, expected: Any) -> None:
    _check(last, new, live, KIND, expected)


@pytest.mark.parametrize(
    ("last", "new", "live", "expected"), [row[1:] for row in WITHOUT_TABLE], ids=[row[0] for row in WITHOUT_TABLE]
)
def test_custom_resources(last: Any, new: Any, live: Any, expected: Any) -> None:
    _check(last, new, live, None, expected)


def _check(last: Any, new: Any, live: Any, kind: Struct | None, expected: Any) -> None:
    before = json.dumps([last, new, live])
    found = three_way(last, new, live, kind)
    assert json.dumps([last, new, live]) == before
    assert found == expected
    assert three_way(new, new, found, kind) == found


def test_objects_may_be_deep() -> None:
    def deep(leaf: Any) -> Any:
        for _ in range(5_000):
            leaf = {"a": leaf}
        return leaf

    found = three_way(deep({"x": 1}), deep({"y": 1}), deep({"x": 1, "z": 1}), None)
    for _ in range(5_000):
        found = found["a"]
    assert found == {"y": 1, "z": 1}


def test_a_deployment_of_the_scheme_keeps_what_others_have_added() -> None:
    def deployment(image: str, *others: Any, **spec: Any) -> Any:
        containers = [{"name": "web", "image": image}, *others]
        return {"spec": {**spec, "template": {"spec": {"containers": containers}}}}

    kind = struct_of("apps/v1", "Deployment")
    side = {"name": "side", "image": "s"}
    found = three_way(
        deployment("a:1", replicas=1),
        deployment("a:2", replicas=1),
        deployment("a:1", side, replicas=5, paused=True),
        kind,
    )
    assert found == deployment("a:2", side, replicas=1, paused=True)
