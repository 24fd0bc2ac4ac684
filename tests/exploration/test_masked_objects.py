"""Two objects of different runs are the same if nothing differs but what a server sets anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from noxu.exploration.masked_objects import MaskedObject, Path, leaves
from noxu.exploration.shapes import MaskedNames
from noxu.values import Object
from tests.exploration.recordings import Script
from tests.rows import rows

NAMES = MaskedNames(Script().recording())
UID = "12345678-1234-4234-8234-123456789abc"


def nothing(_path: Path) -> bool:
    return False


def masked(value: Object, covers: Callable[[Path], bool] = nothing) -> MaskedObject:
    return MaskedObject(value, covers, NAMES)


@rows(
    "value, found",
    [
        ({"metadata": {"name": "a", "uid": "1"}}, [(("metadata", "name"), "a")]),
        ({"metadata": {"name": "a", "resourceVersion": "1"}}, [(("metadata", "name"), "a")]),
        ({"metadata": {"name": "a", "creationTimestamp": "1"}}, [(("metadata", "name"), "a")]),
        ({"metadata": {"name": "a", "managedFields": [{}]}}, [(("metadata", "name"), "a")]),
        ({"spec": {"owner": {"uid": "1", "generation": 2}}}, [(("spec", "owner", "generation"), 2)]),
        (
            {"spec": {"when": "2026-11-28T09:00:00Z", "of": UID}},
            [(("spec", "when"), "<time>"), (("spec", "of"), "<uid>")],
        ),
        ({"spec": {"ports": [443, 80]}}, [(("spec", "ports", "*"), "443"), (("spec", "ports", "*"), "80")]),
        ({"spec": {}, "items": [], "none": None}, [(("spec",), {}), (("items",), []), (("none",), None)]),
    ],
    ids=[
        "the uid",
        "the resourceVersion",
        "the creation",
        "the owners of fields",
        "a uid anywhere, a generation in metadata alone",
        "times and uids in texts",
        "the items of a list",
        "what is empty is there",
    ],
)
def test_what_a_server_sets_anew_is_always_masked(value: Object, found: list[tuple[Path, Any]]) -> None:
    assert leaves(value, NAMES) == found


@rows(
    "one, two, is_same",
    [
        ({"spec": {"size": 1}}, {"spec": {"size": 1}}, True),
        ({"spec": {"size": 1}}, {"spec": {"size": 2}}, False),
        ({"spec": {"size": 1}}, {"spec": {"size": 1}, "status": {}}, False),
        ({"metadata": {"uid": "1"}}, {"metadata": {"uid": "2"}}, True),
        ({"metadata": {"uid": "1"}}, {}, True),
        ({"spec": {"items": [{"a": 1}, {"a": 2}]}}, {"spec": {"items": [{"a": 2}, {"a": 1}]}}, True),
        ({"spec": {"items": [{"a": 1}, {"a": 2}]}}, {"spec": {"items": [{"a": 2}, {"a": 2}]}}, False),
        ({"data": {"file": "rack=a\ndc=b\n"}}, {"data": {"file": "dc=b\nrack=a\n"}}, True),
        ({"data": {"file": "rack=a\ndc=b\n"}}, {"data": {"file": "dc=b\nrack=b\n"}}, False),
        ({"data": {"file": "rack=a\nrack=a"}}, {"data": {"file": "rack=a"}}, False),
        ({"metadata": {"annotations": {"at": "2026-11-28T09:00:00Z"}}}, {"metadata": {}}, False),
        ({"metadata": {"annotations": {"at": "2026-11-28T09:00:00Z", "b": "1"}}}, {"metadata": {"annotations": {"b": "1"}}}, True),
        (
            {"spec": {"template": {"metadata": {"annotations": {"restartedAt": "2026-11-28T09:00:00Z", "b": "1"}}}}},
            {"spec": {"template": {"metadata": {"annotations": {"b": "1"}}}}},
            True,
        ),
        ({"status": {"currentRevision": "a-1", "updateRevision": "a-1"}}, {"status": {"currentRevision": "a-2", "updateRevision": "a-2"}}, True),
        ({"status": {"currentRevision": "a-1", "updateRevision": "a-1"}}, {"status": {"currentRevision": "a-1", "updateRevision": "a-2"}}, False),
        ({"status": {"currentRevision": "a-1"}}, {"status": {"currentRevision": "a-2"}}, False),
        ({"spec": {"at": "2026-11-28T09:00:00Z"}}, {"spec": {"at": "2026-11-29T10:00:00Z"}}, True),
        ({"spec": {"at": "2026-11-28T09:00:00Z"}}, {"spec": {"at": "never"}}, False),
    ],
    ids=[
        "nothing differs",
        "a field differs",
        "a field is there, and is empty",
        "another uid",
        "nothing is there that is compared",
        "another order of a list",
        "an item as often as another one",
        "another order of the lines of a text",
        "another line of a text",
        "a line as often as another one",
        "there are no annotations",
        "an annotation that is a time",
        "an annotation of a template that is a time",
        "all pods are of the newest revision",
        "some are of an older one",
        "a revision that says nothing of a newer one",
        "another time",
        "a time, or none",
    ],
)  # fmt: skip
def test_objects_are_compared(one: Object, two: Object, is_same: bool) -> None:
    assert (masked(one) == masked(two)) is is_same
    assert (masked(two) == masked(one)) is is_same
    assert (masked(one).fields == masked(two).fields) is is_same
    assert (not [*masked(one).differences(masked(two))]) is is_same


@rows(
    "one, two, is_same",
    [((2, 2), (7, 7), True), ((2, 2), (7, 6), False), ((2, 2), (3, 2), False), ((None, 2), (None, 2), True)],
    ids=["the newest one was seen", "an older one", "the same number is an older one", "it has no generation"],
)
def test_generations_count_what_has_happened(
    one: tuple[int | None, int], two: tuple[int | None, int], is_same: bool
) -> None:
    usual, found = (
        masked({"metadata": {"generation": generation}, "status": {"observedGeneration": observed}})
        for generation, observed in (one, two)
    )
    assert (usual == found) is is_same


def test_differences_are_in_order_with_both_values() -> None:
    one = masked({"spec": {"size": 1, "ports": [80, 443], "same": True}, "data": {"a": "1"}})
    two = masked({"spec": {"size": 2, "ports": [80], "same": True}, "type": "x"})
    assert [*one.differences(two)] == [
        (("data", "a"), ("1",), None),
        (("spec", "ports", "*"), ("443", "80"), ("80",)),
        (("spec", "size"), (1,), (2,)),
        (("type",), None, ("x",)),
    ]


def test_what_is_covered_is_not_compared() -> None:
    one, two = (masked({"spec": {"size": size, "shape": "x"}}, ("spec", "size").__eq__) for size in (1, 2))
    assert one == two
    assert one.fields == {("spec", "shape"): ("x",)}


def test_only_what_is_another_one_is_masked() -> None:
    seen: list[Path] = []

    def sees(path: Path) -> bool:
        seen.append(path)
        return False

    one, two = (masked({"spec": {"size": 1}, "status": {"size": size}, "kind": "Widget"}, sees) for size in (1, 2))
    assert one != two
    assert one != two
    assert seen == [("status", "size")] * 2
