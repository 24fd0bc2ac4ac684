"""Strategic merge patch: merged lists and directives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.apply.strategic import strategic_patch
from noxu.go.structs import INT32, INT_OR_STRING, JSON, STRING, Field, List, Map, Struct
from tests.rows import rows

ENV = Struct("EnvVar").define(Field("name", STRING), Field("value", STRING), Field("more", Map(STRING)))
CONTAINER = Struct("Container").define(
    Field("name", STRING),
    Field("image", STRING),
    Field("args", List(STRING)),
    Field("env", List(ENV), patch="merge", merge_key="name"),
)
VOLUME = Struct("Volume").define(Field("name", STRING), Field("a", Map(STRING)), Field("b", Map(STRING)))
NESTED = Struct("Nested").define(Field("x", STRING), Field("y", STRING), Field("inner", CONTAINER))
KIND = Struct("Pod").define(
    Field("finalizers", List(STRING), patch="merge"),
    Field("numbers", List(INT32), patch="merge"),
    Field("args", List(STRING)),
    Field("containers", List(CONTAINER), patch="merge", merge_key="name"),
    Field("volumes", List(VOLUME), patch="merge,retainKeys", merge_key="name"),
    Field("keyless", List(VOLUME), patch="merge"),
    Field("tolerations", List(VOLUME)),
    Field("labels", Map(STRING)),
    Field("nested", NESTED),
    Field("strategy", NESTED, patch="retainKeys"),
    Field("replaced", NESTED, patch="replace"),
    Field("any", JSON),
    Field("either", INT_OR_STRING),
    Field("text", STRING),
)


def named(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


def patched(document: Any, patch: Any) -> Any:
    before = json.dumps([document, patch])
    try:
        return strategic_patch(document, patch, KIND)
    finally:
        assert json.dumps([document, patch]) == before


def refused(document: Any, patch: Any) -> ApiError:
    with pytest.raises(ApiError) as error:
        patched(document, patch)
    return error.value


MERGED: list[tuple[str, Any, Any, Any]] = [
    ("nothing", {"text": "a"}, {}, {"text": "a"}),
    ("no patch at all", {"text": "a"}, None, {"text": "a"}),
    ("a scalar", {"text": "a"}, {"text": "b"}, {"text": "b"}),
    ("a new member, without its nulls", {}, {"nested": {"x": None, "y": "1"}}, {"nested": {"y": "1"}}),
    ("null removes", {"text": "a", "labels": {"a": "1", "b": "1"}}, {"text": None, "labels": {"a": None}}, {"labels": {"b": "1"}}),
    ("null of what is not there", {}, {"text": None}, {}),
    ("an object", {"nested": {"x": "1", "y": "1"}}, {"nested": {"y": "2"}}, {"nested": {"x": "1", "y": "2"}}),
    ("an object in an object", {"nested": {"inner": {"name": "a", "image": "i"}}}, {"nested": {"inner": {"image": "j"}}},
     {"nested": {"inner": {"name": "a", "image": "j"}}}),
    ("an object that is replaced", {"replaced": {"x": "1"}}, {"replaced": {"y": "2"}}, {"replaced": {"y": "2"}}),
    ("a value of another type", {"text": "a"}, {"text": {"x": None, "y": [None, {"z": None}]}}, {"text": {"y": [None, {}]}}),
    ("a number of another type", {"either": 1}, {"either": 1.5}, {"either": 1.5}),
    ("null there", {"nested": None}, {"nested": {"x": "1"}}, {"nested": {"x": "1"}}),
    ("a member in other letters' case", {"NESTED": {"x": "1"}}, {"NESTED": {"y": "1"}}, {"NESTED": {"x": "1", "y": "1"}}),
    # lists
    ("a list is replaced", {"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}),
    ("a list of objects is replaced", {"tolerations": named("a")}, {"tolerations": named("b")}, {"tolerations": named("b")}),
    ("a merged list of scalars", {"finalizers": ["a", "b"]}, {"finalizers": ["c", "a"]}, {"finalizers": ["c", "a", "b"]}),
    ("a merged list of numbers", {"numbers": [1, 2]}, {"numbers": [2, 3]}, {"numbers": [1, 2, 3]}),
    ("a merged list, nothing new", {"finalizers": ["a"]}, {"finalizers": []}, {"finalizers": ["a"]}),
    ("a merged list, nothing there", {"finalizers": []}, {"finalizers": ["a"]}, {"finalizers": ["a"]}),
    ("a merged list, nothing at all", {"finalizers": []}, {"finalizers": []}, {"finalizers": []}),
    ("a merged list is merged by key", {"containers": named("a", "b", image="i")}, {"containers": named("b", "c", image="j")},
     {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}, {"name": "c", "image": "j"}]}),
    ("a merged list in a merged list", {"containers": [{"name": "a", "env": named("x", "y", value="1")}]},
     {"containers": [{"name": "a", "env": named("y", value="2")}]},
     {"containers": [{"name": "a", "env": [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}]}]}),
    ("null in an item", {"containers": named("a", image="i")}, {"containers": [{"name": "a", "image": None}]}, {"containers": named("a")}),
    ("null in a new item stays", {"containers": named("a")}, {"containers": [{"name": "b", "image": None}]},
     {"containers": [{"name": "b", "image": None}, {"name": "a"}]}),
    ("of items of one key the first", {"containers": [{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]},
     {"containers": [{"name": "a", "image": "3"}]}, {"containers": [{"name": "a", "image": "3"}, {"name": "a", "image": "2"}]}),
    ("a list that was none", {"containers": "x"}, {"containers": [{"name": "a"}, {"$patch": "delete", "name": "b"}]}, {"containers": named("a")}),
    # $patch
    ("an object is deleted", {"nested": {"x": "1"}}, {"nested": {"$patch": "delete"}}, {"nested": {}}),
    ("an object is replaced by directive", {"nested": {"x": "1"}}, {"nested": {"$patch": "replace", "y": "2"}}, {"nested": {"y": "2"}}),
    ("everything is deleted", {"text": "a"}, {"$patch": "delete"}, {}),
    ("everything is replaced", {"text": "a"}, {"$patch": "replace", "args": [None]}, {"args": [None]}),
    ("a directive for what is not there", {}, {"nested": {"$patch": "delete"}}, {}),
    ("a directive inside what is new", {}, {"nested": {"x": "1", "inner": {"$patch": "replace", "name": "a"}}}, {"nested": {"x": "1"}}),
    ("an item is deleted", {"containers": named("a", "b", "c")}, {"containers": [{"$patch": "delete", "name": "b"}]}, {"containers": named("a", "c")}),
    ("all items of a key are deleted", {"containers": named("a", "b", "a")}, {"containers": [{"$patch": "delete", "name": "a"}]},
     {"containers": named("b")}),
    ("an item that is not there is deleted", {"containers": named("a")}, {"containers": [{"$patch": "delete", "name": "z"}]},
     {"containers": named("a")}),
    ("the list is replaced", {"containers": named("a", "b")}, {"containers": [{"$patch": "replace"}, {"name": "c"}]}, {"containers": named("c")}),
    ("the list is replaced by nothing", {"containers": named("a", "b")}, {"containers": [{"$patch": "replace"}]}, {"containers": []}),
    # $deleteFromPrimitiveList
    ("scalars are deleted", {"finalizers": ["a", "b", "c"]}, {"$deleteFromPrimitiveList/finalizers": ["b", "z"]}, {"finalizers": ["a", "c"]}),
    ("scalars are deleted from any list", {"args": ["a", "b", "a"]}, {"$deleteFromPrimitiveList/args": ["a"]}, {"args": ["b"]}),
    ("and others added", {"finalizers": ["a", "b"]}, {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["c", "b"]}),
    ("scalars are deleted from what is not there", {}, {"$deleteFromPrimitiveList/finalizers": ["b"]}, {}),
    ("numbers of another type are not deleted", {"numbers": [1, 2]}, {"$deleteFromPrimitiveList/numbers": [1]}, {"numbers": [2]}),
    # $retainKeys
    ("only some members are kept", {"strategy": {"x": "1", "y": "1"}}, {"strategy": {"$retainKeys": ["x"]}}, {"strategy": {"x": "1"}}),
    ("and one is set", {"strategy": {"x": "1"}}, {"strategy": {"$retainKeys": ["y"], "y": "2"}}, {"strategy": {"y": "2"}}),
    ("nulls need not be kept", {"strategy": {"x": "1", "y": "1"}}, {"strategy": {"$retainKeys": ["x"], "y": None}}, {"strategy": {"x": "1"}}),
    ("in items", {"volumes": [{"name": "v", "a": {"k": "1"}}]}, {"volumes": [{"$retainKeys": ["name", "b"], "name": "v", "b": {"k": "2"}}]},
     {"volumes": [{"name": "v", "b": {"k": "2"}}]}),
    # $setElementOrder
    ("an order of scalars", {"finalizers": ["a", "b", "c"]}, {"$setElementOrder/finalizers": ["c", "a"]}, {"finalizers": ["b", "c", "a"]}),
    ("an order with new scalars", {"finalizers": ["a", "b"]}, {"$setElementOrder/finalizers": ["c", "b"], "finalizers": ["c"]},
     {"finalizers": ["c", "a", "b"]}),
    ("an order of what is not there", {}, {"$setElementOrder/finalizers": ["a"]}, {}),
    ("an order of what is new", {}, {"$setElementOrder/finalizers": ["b", "a"], "finalizers": ["b", "a"]}, {"finalizers": ["b", "a"]}),
    ("an order of items", {"containers": named("a", "b", "c", "d")}, {"$setElementOrder/containers": named("d", "b")},
     {"containers": named("a", "c", "d", "b")}),
    ("an order of merged items", {"containers": named("a", "b")},
     {"$setElementOrder/containers": named("b", "n", "a"), "containers": [{"name": "n", "image": "i"}]},
     {"containers": [{"name": "b"}, {"name": "n", "image": "i"}, {"name": "a"}]}),
    ("an order without what is deleted", {"containers": named("a", "b", "c")},
     {"$setElementOrder/containers": named("c", "b"), "containers": [{"$patch": "delete", "name": "a"}]}, {"containers": named("c", "b")}),
    ("a new item takes the place of a deleted one", {"containers": named("c", "d", "b")},
     {"$setElementOrder/containers": named("a", "c", "d"), "containers": [{"$patch": "delete", "name": "c"}, {"name": "a"}]},
     {"containers": named("b", "a", "d")}),
    ("an order of a list that is not merged", {"args": ["a", "b"]}, {"$setElementOrder/args": ["b", "c"], "args": ["c"]}, {"args": ["c"]}),
]  # fmt: skip


@rows(("document", "patch", "expected"), [row[1:] for row in MERGED], ids=[row[0] for row in MERGED])
def test_strategic_merge_patch(document: Any, patch: Any, expected: Any) -> None:
    assert patched(document, patch) == expected


REFUSED: list[tuple[str, Any, Any, int, str]] = [
    ("no object", {}, [], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ("an unknown directive", {"nested": {}}, {"nested": {"$patch": "merge"}}, 500, "unknown patch type: merge in map: map[$patch:merge]"),
    ("a directive that is no text", {}, {"$patch": 1}, 500, "unknown patch type: %!s(int64=1) in map: map[$patch:1]"),
    ("an unknown directive in a list", {"containers": []}, {"containers": [{"$patch": "x", "name": "a"}]}, 500,
     "unknown patch type: x in map: map[$patch:x name:a]"),
    ("merge as a directive in a list", {"containers": []}, {"containers": [{"$patch": "merge"}]}, 500,
     "merging lists cannot yet be specified in the patch"),
    ("delete without a key", {"containers": []}, {"containers": [{"$patch": "delete"}]}, 500,
     "map: map[$patch:delete] does not contain declared merge key: name"),
    ("an item without a key", {"containers": named("a")}, {"containers": [{"image": "i"}]}, 500,
     "map: map[image:i] does not contain declared merge key: name"),
    ("a live item without a key", {"containers": [{"image": "i"}]}, {"containers": named("a")}, 500,
     "map: map[image:i] does not contain declared merge key: name"),
    ("a list without a merge key", {"keyless": named("a")}, {"keyless": named("b")}, 500, "cannot merge lists without merge key for struct"),
    ("two types in a list", {"finalizers": ["a"]}, {"finalizers": [1]}, 500, "list element types are not identical: [[a] [1]]"),
    ("lists in a list", {"finalizers": []}, {"finalizers": [["a"]]}, 422, "the server rejected our request due to an error in our request"),
    ("an unknown field that is an object", {"zz": {"a": 1}}, {"zz": {"b": 1}}, 500, 'unable to find api field in struct Pod for the json field "zz"'),
    ("an unknown field that is a list", {"zz": ["a"]}, {"zz": ["b"]}, 500, 'unable to find api field in struct Pod for the json field "zz"'),
    ("objects in a map", {"labels": {"a": {"b": "1"}}}, {"labels": {"a": {"c": "1"}}}, 500,
     "merging an object in json but data type is not struct, instead is: map"),
    ("objects in what is open", {"any": {"a": {"b": 1}}}, {"any": {"a": {"c": 1}}}, 500,
     "merging an object in json but data type is not struct, instead is: interface"),
    ("lists where there is none", {"labels": ["a"]}, {"labels": ["b"]}, 500, "expected slice or array type, but got: struct"),
    ("keys to keep that are no list", {"strategy": {}}, {"strategy": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
    ("keys to keep that are no keys", {"strategy": {}}, {"strategy": {"$retainKeys": [["x"]]}}, 400, "invalid patch format of retainKeys"),
    ("a member that is not kept", {"strategy": {}}, {"strategy": {"$retainKeys": ["x"], "y": "1"}}, 400, "invalid patch format of retainKeys"),
    ("a deletion from no list", {}, {"$deleteFromPrimitiveList": ["a"]}, 400, "invalid patch format of primitive list"),
    ("a deletion from another prefix", {}, {"$deleteFromPrimitiveListX/a": ["a"]}, 400, "invalid patch format of primitive list"),
    ("an order of no list", {}, {"$setElementOrder": ["a"]}, 400, "invalid patch format of setElementOrder list"),
    ("an order that is none", {}, {"$setElementOrder/finalizers": "a"}, 500, "expected a []interface {}, but received a string"),
    ("a null order", {}, {"$setElementOrder/finalizers": None}, 500, "expected a []interface {}, but received a %!s(<nil>)"),
    ("an order of what is no list", {"finalizers": {}}, {"$setElementOrder/finalizers": ["a"]}, 500,
     "expected a []interface {}, but received a map[string]interface {}"),
    ("an order without an item of the patch", {"finalizers": ["a"]}, {"$setElementOrder/finalizers": ["a"], "finalizers": ["b"]}, 500,
     "The order in patch list:\n[b]\n doesn't match $setElementOrder list:\n[a]\n"),
    ("another order than the patch's", {}, {"$setElementOrder/finalizers": ["a", "b"], "finalizers": ["b", "a"]}, 500,
     "The order in patch list:\n[b a]\n doesn't match $setElementOrder list:\n[a b]\n"),
    ("an order of items without keys", {"containers": named("a")}, {"$setElementOrder/containers": [{"x": "a"}]}, 500,
     "map: map[x:a] does not contain declared merge key: name"),
    ("an order of scalars for items", {"containers": named("a")}, {"$setElementOrder/containers": ["a"]}, 500,
     "expected a map[string]interface {}, but received a string"),
    ("a directive after the last item of an order", {"containers": named("a", "c")},
     {"$setElementOrder/containers": named("a"), "containers": [{"name": "a"}, {"name": "c", "$patch": "replace"}]}, 500,
     "The order in patch list:\n[map[name:a] map[$patch:replace name:c]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n"),
    ("an order of two empty lists", {"finalizers": []}, {"$setElementOrder/finalizers": ["a"]}, 500, "no elements in any of the given slices"),
]  # fmt: skip


@rows(("document", "patch", "code", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_invalid_patches_are_refused(document: Any, patch: Any, code: int, message: str) -> None:
    error = refused(document, patch)
    assert (error.code, error.message) == (code, message)
    assert error.reason == {400: "BadRequest", 422: "Invalid", 500: ""}[code]


def test_unpatched_parts_are_shared_with_the_original() -> None:
    document = {"nested": {"inner": {"name": "a"}, "x": "1"}, "args": ["a"]}
    merged = patched(document, {"nested": {"x": "2"}})
    assert merged["args"] is document["args"]
    assert merged["nested"]["inner"] is document["nested"]["inner"]  # type: ignore[index]


def test_new_values_may_be_as_deep_as_clients_like() -> None:
    deep: Any = {"n": None, "$x": 1}
    for _ in range(10_000):
        deep = {"a": [deep]}
    value = strategic_patch({}, {"any": deep}, KIND)["any"]
    depth = 0
    while "a" in value:
        value, depth = value["a"][0], depth + 1
    assert (value, depth) == ({"$x": 1}, 10_000)
