"""Where two runs part, and how they end."""

from __future__ import annotations

from collections.abc import Sequence

from noxu.recordings.divergence import MAX_OBJECTS, MAX_WRITES, diverged
from noxu.recordings.lines import ServerRecording
from noxu.values import Object
from tests.rows import rows


def write(
    name: str, size: int | None = 1, *, verb: str = "create", controller: str = "", prefix: str = "", uid: str = "1"
) -> Object:
    metadata = {"name": name, "uid": uid} | ({"generateName": prefix} if prefix else {})
    value = None if size is None else {"metadata": metadata, "spec": {"size": size}}
    place = {"resource": "widgets.example.com", "namespace": "default", "name": name}
    return {"write": {"verb": verb, "subresource": "", "controller": controller, "object": value, **place}, "at": 0}


def run(*lines: Object) -> ServerRecording:
    return ServerRecording("", 0, "", {}, lines)


A, B = write("a"), write("b")
SAME = "what is left at the end is the same."


@rows(
    "one, other, first, sentence",
    [
        ([], [], None, f"The writes are the same, and {SAME}"),
        ([A], [A], None, f"The writes are the same, and {SAME}"),
        ([A], [write("a", uid="2")], None, f"The writes are the same, and {SAME}"),
        ([A], [write("a", 2)], None, "The writes are the same, and 1 object differs at the end."),
        ([A, B], [A], 1, "The first difference is a write that the other run lacks: create widgets.example.com default/b; 1 object differs at the end."),
        ([A], [A, write("a", 1, verb="patch")], 1, f"The first difference is a write of the other run alone: patch widgets.example.com default/a; {SAME}"),
        ([A, B], [A, write("c")], 1, "The first difference: create widgets.example.com default/c instead of create widgets.example.com default/b; 2 objects differ at the end."),
        ([A], [A, write("b", 1, controller="gc"), write("b", None, verb="delete", controller="gc")], None, f"The writes are the same, and {SAME}"),
        ([write("w-xyz12", prefix="w-")], [write("w-abc34", prefix="w-")], None, f"The writes are the same, and {SAME}"),
        ([{"stored": {"spec": 1}, "resource": "nodes", "namespace": "", "name": "n"}], [], None, "The writes are the same, and 1 object differs at the end."),
        ([{"stored": {"spec": 1}, "resource": "services", "namespace": "default", "name": "kubernetes"}], [], None, f"The writes are the same, and {SAME}"),
    ],
)  # fmt: skip
def test_the_first_difference_is_said(
    one: Sequence[Object], other: Sequence[Object], first: int | None, sentence: str
) -> None:
    found = diverged(run(*one), run(*other))
    assert (found.first, found.sentence) == (first, sentence)


def test_what_is_left_out_is_said() -> None:
    many = [write(f"a{number}") for number in range(MAX_WRITES)]
    others = [write(f"b{number}", controller="gc") for number in range(MAX_OBJECTS + 1)]
    found = diverged(run(*many, A), run(*many, B, *others))
    assert found.sentence == "The first 1,000 writes are the same, and 200 or more objects differ at the end."


def test_runs_go_on_beside_each_other_after_a_difference() -> None:
    pairs = diverged(run(A, B, write("d")), run(A, write("c"), write("d"))).pairs
    assert [pair.is_same for pair in pairs] == [True, False, True]


def test_an_object_of_one_run_alone_is_shown() -> None:
    [only] = diverged(run(A), run()).objects
    assert (only.place, only.other) == ("widgets.example.com default/a", None)
    assert only.one == {"metadata": {"name": "a"}, "spec": {"size": 1}}
