"""JSON patch and JSON merge patch as the API server applies them."""

from __future__ import annotations

import json
import time
import tracemalloc
from copy import deepcopy
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.apply.patch import MAX_COPIED, FailedTest, PatchFailed, apply_operations, json_patch, merge_patch
from tests.rows import rows

DOCUMENT: Any = {
    "a": 1,
    "n": None,
    "o": {"x": 1, "y": {"z": 2}},
    "l": [1, {"k": "v"}, [3]],
    "a/b": {"~c": 1},
    "": {"": 5},
}


def op(kind: str, path: str, *value: Any, **more: Any) -> dict[str, Any]:
    return {"op": kind, "path": path, **({"value": value[0]} if value else {}), **more}


def patched(operations: Any, document: Any = DOCUMENT) -> Any:
    before = json.dumps([document, operations])
    try:
        return json_patch(document, operations)
    finally:
        assert json.dumps([document, operations]) == before


def refused(operations: Any, document: Any = DOCUMENT) -> ApiError:
    with pytest.raises(ApiError) as error:
        json_patch(document, operations)
    return error.value


OPERATIONS: list[tuple[str, list[Any], dict[str, Any]]] = [
    # name, operations, the changed members (...: gone)
    ("add a member", [op("add", "/b", 2)], {"b": 2}),
    ("add over a member", [op("add", "/a", {"b": 1})], {"a": {"b": 1}}),
    ("add below", [op("add", "/o/y/w", [1])], {"o": {"x": 1, "y": {"z": 2, "w": [1]}}}),
    ("add nothing is to add null", [op("add", "/b")], {"b": None}),
    ("add an item", [op("add", "/l/1", "x")], {"l": [1, "x", {"k": "v"}, [3]]}),
    ("add at the end", [op("add", "/l/-", "x")], {"l": [1, {"k": "v"}, [3], "x"]}),
    ("add one beyond the last", [op("add", "/l/3", "x")], {"l": [1, {"k": "v"}, [3], "x"]}),
    ("add from the end", [op("add", "/l/-1", "x")], {"l": [1, {"k": "v"}, [3], "x"]}),
    ("add from further on", [op("add", "/l/-4", "x")], {"l": ["x", 1, {"k": "v"}, [3]]}),
    ("add into what was added", [op("add", "/b", {}), op("add", "/b/c", {}), op("add", "/b/c/d", 1)], {"b": {"c": {"d": 1}}}),
    ("remove a member", [op("remove", "/o/x")], {"o": {"y": {"z": 2}}}),
    ("remove a null", [op("remove", "/n")], {"n": ...}),
    ("remove an item", [op("remove", "/l/0")], {"l": [{"k": "v"}, [3]]}),
    ("remove the last item", [op("remove", "/l/-1")], {"l": [1, {"k": "v"}]}),
    ("replace a member", [op("replace", "/a", "x")], {"a": "x"}),
    ("replace a missing member", [op("replace", "/o/w", 1)], {"o": {"x": 1, "y": {"z": 2}, "w": 1}}),
    ("replace an item", [op("replace", "/l/1/k", 1)], {"l": [1, {"k": 1}, [3]]}),
    ("replace an item from the end", [op("replace", "/l/-3", 0)], {"l": [0, {"k": "v"}, [3]]}),
    ("replace by nothing", [op("replace", "/a")], {"a": None}),
    ("move", [op("move", "/b", **{"from": "/o/y"})], {"o": {"x": 1}, "b": {"z": 2}}),
    ("move in a list", [op("move", "/l/0", **{"from": "/l/2"})], {"l": [[3], 1, {"k": "v"}]}),
    ("move to the same place", [op("move", "/a", **{"from": "/a"})], {}),
    ("move a null", [op("move", "/b", **{"from": "/n"})], {"n": ..., "b": None}),
    ("copy", [op("copy", "/b", **{"from": "/o"})], {"b": DOCUMENT["o"]}),
    ("copy an item", [op("copy", "/l/-", **{"from": "/l/1"})], {"l": [1, {"k": "v"}, [3], {"k": "v"}]}),
    ("copy what is missing is to add null", [op("copy", "/b", **{"from": "/zz"})], {"b": None}),
    ("copies are two", [op("copy", "/b", **{"from": "/o"}), op("add", "/b/y/z", 9), op("add", "/o/x", 8)],
     {"b": {"x": 1, "y": {"z": 9}}, "o": {"x": 8, "y": {"z": 2}}}),
    ("test", [op("test", "/o", {"y": {"z": 2}, "x": 1}), op("test", "/l/2", [3])], {}),
    ("test what is missing", [op("test", "/zz"), op("test", "/zz", None), op("test", "/n", None)], {}),
    ("test everything", [op("test", "", DOCUMENT)], {}),
    ("escapes", [op("replace", "/a~1b/~0c", 2)], {"a/b": {"~c": 2}}),
    ("a tilde that escapes nothing", [op("add", "/~2", 1)], {"~2": 1}),
    ("escapes are read once", [op("add", "/~01", 1)], {"~1": 1}),
    ("empty names", [op("replace", "//", 6)], {"": {"": 6}}),
    ("text before the first slash is ignored", [op("add", "spec/b", 2)], {"b": 2}),
    ("indices as Go reads them", [op("replace", "/l/+0", 0), op("replace", "/l/02", 2)], {"l": [0, {"k": "v"}, 2]}),
    ("nothing to do", [], {}),
]  # fmt: skip


@rows(("operations", "changes"), [row[1:] for row in OPERATIONS], ids=[row[0] for row in OPERATIONS])
def test_json_patch(operations: Any, changes: dict[str, Any]) -> None:
    expected = {name: value for name, value in (DOCUMENT | changes).items() if value is not ...}
    assert patched(operations) == expected


def test_the_whole_document_is_replaced() -> None:
    assert patched([op("replace", "", {"x": [1]}), op("add", "/x/-", 2)]) == {"x": [1, 2]}
    assert patched([op("replace", "", [1]), op("add", "/-", 2)]) == [1, 2]


IMPOSSIBLE: list[tuple[str, list[Any]]] = [
    ("remove a missing member", [op("remove", "/zz")]),
    ("remove a missing item", [op("remove", "/l/3")]),
    ("remove before the first item", [op("remove", "/l/-4")]),
    ("remove the end", [op("remove", "/l/-")]),
    ("remove everything", [op("remove", "")]),
    ("add everything", [op("add", "", {})]),
    ("add below what is missing", [op("add", "/zz/x", 1)]),
    ("add below a scalar", [op("add", "/a/x", 1)]),
    ("add below null", [op("add", "/n/x", 1)]),
    ("add beyond the end", [op("add", "/l/4", 1)]),
    ("add before the beginning", [op("add", "/l/-5", 1)]),
    ("add at a name in a list", [op("add", "/l/x", 1)]),
    ("add at a number of another script", [op("add", "/l/١", 1)]),
    ("replace beyond the end", [op("replace", "/l/3", 1)]),
    ("replace the end", [op("replace", "/l/-", 1)]),
    ("replace everything by a scalar", [op("replace", "", 1)]),
    ("replace everything by nothing", [op("replace", "")]),
    ("move what is missing", [op("move", "/b", **{"from": "/zz"})]),
    ("move into itself", [op("move", "/o/y/w", **{"from": "/o"})]),
    ("move without saying from where", [op("move", "/b")]),
    ("copy a missing item", [op("copy", "/b", **{"from": "/l/3"})]),
    ("copy below what is missing", [op("copy", "/zz/b", **{"from": "/a"})]),
    ("copy without saying from where", [op("copy", "/b")]),
    ("test another value", [op("test", "/a", 2)]),
    ("test a number of another type", [op("test", "/a", 1.0)]),
    ("test a truth", [op("test", "/a", True)]),
    ("test null", [op("test", "/a", None)]),
    ("test nothing", [op("test", "/a")]),
    ("test a missing item", [op("test", "/l/9", None)]),
    ("test below a scalar", [op("test", "/a/b", None)]),
    ("another operation", [op("merge", "/a", 1)]),
    ("no operation", [{"path": "/a", "value": 1}]),
    ("no path", [{"op": "add", "value": 1}]),
    ("a null path", [{"op": "add", "path": None}]),
    ("the second of two", [op("add", "/b", 1), op("test", "/b", 2)]),
]


@rows("operations", [row[1] for row in IMPOSSIBLE], ids=[row[0] for row in IMPOSSIBLE])
def test_a_patch_that_does_not_apply_is_a_422_without_a_message(operations: Any) -> None:
    error = refused(operations)
    assert (error.code, error.reason, error.details) == (422, "Invalid", {})
    assert error.message == "the server rejected our request due to an error in our request"


def test_unpatched_parts_are_shared_with_the_original() -> None:
    value = patched([op("add", "/o/y/w", 1)])
    assert value["l"] is DOCUMENT["l"]
    assert value["o"]["y"] is not DOCUMENT["o"]["y"]


def test_ten_thousand_operations_take_no_time() -> None:
    operations = [op("add", "/l/-", n) for n in range(10_000)]
    started = time.process_time()
    assert len(patched(operations)["l"]) == 10_003
    assert time.process_time() - started < 2


def test_copying_has_an_end() -> None:
    """CVE-2019-1002100: each copy doubles what the next one copies."""
    document = {"a": {"x": "y" * 1000}}
    bomb = [op("copy", f"/a/{n}", **{"from": "/a"}) for n in range(40)]
    tracemalloc.start()
    started = time.process_time()
    error = refused(bomb, document)
    elapsed, (_, peak) = time.process_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert error.code == 422
    assert elapsed < 0.5
    assert peak < 32 * 1024 * 1024


def test_copies_are_counted_in_bytes_of_json() -> None:
    text = "x" * (MAX_COPIED // 2 - 2)
    twice = [op("copy", f"/{n}", **{"from": "/a"}) for n in range(2)]
    assert patched(twice, {"a": text})["1"] == text
    assert refused(twice, {"a": text + "x"}).code == 422
    escaped = "<" * (MAX_COPIED // 6)
    assert refused([op("copy", "/b", **{"from": "/a"})], {"a": escaped}).code == 422
    assert patched([op("copy", "/b", **{"from": "/a"})], {"a": escaped[:-1]})["b"] == escaped[:-1]


def test_many_copies_of_one_list_stay_cheap() -> None:
    operations = [op("copy", "/l/-", **{"from": "/l/0"}) for _ in range(5_000)]
    started = time.process_time()
    assert len(patched(operations, {"l": [{"a": 1}]})["l"]) == 5_001
    assert time.process_time() - started < 2


# --- merge patch ---

MERGES: list[tuple[str, Any, Any]] = [
    # name, patch, the changed members (...: gone)
    ("nothing", {}, {}),
    ("a member", {"a": 2}, {"a": 2}),
    ("a new member", {"b": {"c": 1}}, {"b": {"c": 1}}),
    ("null removes", {"a": None, "zz": None}, {"a": ...}),
    ("below", {"o": {"y": {"z": 3, "w": None}, "x": None}}, {"o": {"y": {"z": 3}}}),
    ("a list is replaced", {"l": [1]}, {"l": [1]}),
    ("an object by a list", {"o": [1]}, {"o": [1]}),
    ("a list by an object", {"l": {"x": 1}}, {"l": {"x": 1}}),
    ("a scalar by an object", {"a": {"b": {"c": None, "d": 1}}}, {"a": {"b": {"d": 1}}}),
    ("null by an object", {"n": {"x": None}}, {"n": {}}),
    ("a new object without its nulls", {"b": {"c": None, "d": {"e": None}}}, {"b": {"d": {}}}),
    ("nulls as items stay", {"b": [None, 1]}, {"b": [None, 1]}),
    ("nulls in the items of a list go", {"l": [{"x": None, "y": [{"z": None}]}]}, {"l": [{"y": [{}]}]}),
    ("but not if it replaces an object", {"o": [{"x": None}]}, {"o": [{"x": None}]}),
    ("an empty object merges nothing", {"o": {}}, {}),
]


@rows(("patch", "changes"), [row[1:] for row in MERGES], ids=[row[0] for row in MERGES])
def test_merge_patch(patch: Any, changes: dict[str, Any]) -> None:
    before = json.dumps(DOCUMENT)
    expected = {name: value for name, value in (DOCUMENT | changes).items() if value is not ...}
    assert merge_patch(DOCUMENT, deepcopy(patch)) == expected
    assert json.dumps(DOCUMENT) == before


def test_a_merge_patch_shares_unpatched_parts_with_the_original() -> None:
    assert merge_patch(DOCUMENT, {"o": {"x": 2}})["o"]["y"] is DOCUMENT["o"]["y"]


def test_a_list_replaces_everything() -> None:
    assert merge_patch({"a": 1}, [{"x": None}, None]) == [{}, None]


# --- depth ---


def deep(depth: int, end: Any) -> Any:
    for _ in range(depth):
        end = {"a": end}
    return end


def bottom(value: Any) -> Any:
    while isinstance(value, dict) and "a" in value:
        value = value["a"]
    return value


def test_documents_may_be_as_deep_as_clients_like() -> None:
    depth = 10_000
    pointer = "/a" * depth
    document = deep(depth, 1)
    assert bottom(json_patch(document, [op("replace", pointer, 2)])) == 2
    assert bottom(json_patch({}, [op("add", "/a", document), op("test", "/a", deep(depth, 1))])) == 1
    assert bottom(json_patch(document, [op("copy", "/b", **{"from": "/a"})])["b"]) == 1
    assert bottom(merge_patch(document, deep(depth, 2))) == 2
    assert bottom(merge_patch({}, deep(depth, 2))) == 2
    assert bottom(merge_patch(document, deep(depth - 1, {"a": None}))) == {}
    assert bottom(document) == 1


TEXTS: list[tuple[Any, str]] = [
    # operations, the message of the library that upstream uses
    (
        [{"op": "add", "path": "/zz/x", "value": 5}],
        'add operation does not apply: doc is missing path: "/zz/x": missing value',
    ),
    (
        [{"op": "add", "path": "/l/9", "value": 5}],
        "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    ),
    (
        [{"op": "add", "path": "/l/x", "value": 5}],
        "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
    ),
    (
        [{"op": "add", "path": "/l/-9", "value": 5}],
        "error in add for path: '/l/-9': Unable to access invalid index: -9: invalid index referenced",
    ),
    ([{"op": "add", "value": 3}], "add operation failed to decode path: missing value"),
    (
        [{"op": "remove", "path": "/zz/x", "value": 5}],
        'remove operation does not apply: doc is missing path: "/zz/x": missing value',
    ),
    (
        [{"op": "remove", "path": "/l/9", "value": 5}],
        "error in remove for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    ),
    (
        [{"op": "remove", "path": "/l/x", "value": 5}],
        "error in remove for path: '/l/x': strconv.Atoi: parsing \"x\": invalid syntax",
    ),
    (
        [{"op": "remove", "path": "/l/-9", "value": 5}],
        "error in remove for path: '/l/-9': Unable to access invalid index: -9: invalid index referenced",
    ),
    (
        [{"op": "remove", "path": "/o/zz", "value": 5}],
        "error in remove for path: '/o/zz': Unable to remove nonexistent key: zz: missing value",
    ),
    ([{"op": "remove", "value": 3}], "remove operation failed to decode path: missing value"),
    (
        [{"op": "replace", "path": "/zz/x", "value": 5}],
        "replace operation does not apply: doc is missing path: /zz/x: missing value",
    ),
    ([{"op": "replace", "path": "", "value": 5}], "replace operation value must be object or array: %!w(<nil>)"),
    (
        [{"op": "replace", "path": "/l/9", "value": 5}],
        "replace operation does not apply: doc is missing key: /l/9: missing value",
    ),
    (
        [{"op": "replace", "value": 3}],
        "replace operation failed to decode path: operation missing path field: missing value",
    ),
    (
        [{"op": "replace", "path": 7, "value": 3}],
        "replace operation failed to decode path: json: cannot unmarshal number into Go value of type string",
    ),
    (
        [{"op": "test", "path": "/zz/x", "value": 5}],
        "test operation does not apply: is missing path: /zz/x: missing value",
    ),
    ([{"op": "test", "path": "", "value": 5}], "testing value  failed: test failed"),
    (
        [{"op": "test", "path": "/l/9", "value": 5}],
        "error in test for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    ),
    (
        [{"op": "test", "path": "/l/x", "value": 5}],
        "error in test for path: '/l/x': strconv.Atoi: parsing \"x\": invalid syntax",
    ),
    (
        [{"op": "test", "path": "/l/-9", "value": 5}],
        "error in test for path: '/l/-9': Unable to access invalid index: -9: invalid index referenced",
    ),
    ([{"op": "test", "path": "a/zz", "value": 5}], "testing value a/zz failed: test failed"),
    ([{"op": "test", "value": 3}], "test operation failed to decode path: operation missing path field: missing value"),
    (
        [{"op": "test", "path": 7, "value": 3}],
        "test operation failed to decode path: json: cannot unmarshal number into Go value of type string",
    ),
    (
        [{"op": "move", "path": "/b", "from": "/zz/x"}],
        "move operation does not apply: doc is missing from path: /zz/x: missing value",
    ),
    (
        [{"op": "move", "path": "/b", "from": "/zz"}],
        "error in move for path: 'zz': Unable to remove nonexistent key: zz: missing value",
    ),
    (
        [{"op": "move", "path": "/zz/x", "from": "/a"}],
        "move operation does not apply: doc is missing destination path: /zz/x: missing value",
    ),
    (
        [{"op": "move", "path": "/b", "from": "/l/9"}],
        "error in move for path: '9': Unable to access invalid index: 9: invalid index referenced",
    ),
    (
        [{"op": "move", "path": "/l/x", "from": "/a"}],
        "error in move for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
    ),
    (
        [{"op": "move", "path": "/b", "from": ""}],
        "move operation does not apply: doc is missing from path: : missing value",
    ),
    (
        [{"op": "move", "path": "", "from": "/a"}],
        "move operation does not apply: doc is missing destination path: : missing value",
    ),
    (
        [{"op": "move", "path": "/b", "from": "/l/x"}],
        "error in move for path: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
    ),
    (
        [{"op": "move", "path": "/b"}],
        "move operation failed to decode from: operation, missing from field: missing value",
    ),
    (
        [{"op": "move", "path": "/b", "from": 4}],
        "move operation failed to decode from: json: cannot unmarshal number into Go value of type string",
    ),
    (
        [{"op": "move", "from": "/a"}],
        "move operation failed to decode path: operation missing path field: missing value",
    ),
    (
        [{"op": "move", "from": "/a", "path": 3}],
        "move operation failed to decode path: json: cannot unmarshal number into Go value of type string",
    ),
    (
        [{"op": "copy", "path": "/b", "from": "/zz/x"}],
        "copy operation does not apply: doc is missing from path: /zz/x: missing value",
    ),
    (
        [{"op": "copy", "path": "/zz/x", "from": "/a"}],
        "copy operation does not apply: doc is missing destination path: /zz/x: missing value",
    ),
    (
        [{"op": "copy", "path": "/b", "from": "/l/9"}],
        "error in copy for from: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    ),
    (
        [{"op": "copy", "path": "/l/9", "from": "/a"}],
        "error while adding value during copy: Unable to access invalid index: 9: invalid index referenced",
    ),
    (
        [{"op": "copy", "path": "/l/x", "from": "/a"}],
        "error while adding value during copy: value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
    ),
    (
        [{"op": "copy", "path": "/b", "from": ""}],
        "copy operation does not apply: doc is missing from path: : missing value",
    ),
    (
        [{"op": "copy", "path": "", "from": "/a"}],
        "copy operation does not apply: doc is missing destination path: : missing value",
    ),
    (
        [{"op": "copy", "path": "/b", "from": "/l/x"}],
        "error in copy for from: '/l/x': strconv.Atoi: parsing \"x\": invalid syntax",
    ),
    (
        [{"op": "copy", "path": "/b"}],
        "copy operation failed to decode from: operation, missing from field: missing value",
    ),
    (
        [{"op": "copy", "path": "/b", "from": 4}],
        "copy operation failed to decode from: json: cannot unmarshal number into Go value of type string",
    ),
    ([{"op": "copy", "from": "/a"}], "copy operation failed to decode path: missing value"),
    ([{"op": "frob", "path": "/a", "value": 1}], "Unexpected kind: frob"),
    ([{"path": "/a"}], "Unexpected kind: unknown"),
]


@rows(("operations", "text"), TEXTS)
def test_errors_have_the_messages_of_upstreams_library(operations: Any, text: str) -> None:
    with pytest.raises(PatchFailed) as error:
        apply_operations(DOCUMENT, operations)
    assert error.value.text == text


def test_a_failed_test_is_reported_apart() -> None:
    with pytest.raises(FailedTest):
        apply_operations(DOCUMENT, [op("test", "/a", 2)])
    with pytest.raises(PatchFailed) as error:
        apply_operations(DOCUMENT, [op("test", "/l/9", 2)])
    assert not isinstance(error.value, FailedTest)


def test_a_moved_value_is_not_that_of_the_original() -> None:
    """Its new place may have a schema by which it is pruned and defaulted in place."""
    original = {"a": {"x": {"y": 1}}}
    result = json_patch(original, [op("move", "/b", **{"from": "/a"})])
    del result["b"]["x"]["y"]
    assert (original, result) == ({"a": {"x": {"y": 1}}}, {"b": {"x": {}}})


def test_a_copied_value_is_not_the_value_itself() -> None:
    """Its places may have different schemas, by which values are pruned and defaulted in place."""
    result = json_patch({"a": {"x": {"y": 1}}}, [op("copy", "/b", **{"from": "/a"})])
    del result["b"]["x"]["y"]
    assert result == {"a": {"x": {"y": 1}}, "b": {"x": {}}}
