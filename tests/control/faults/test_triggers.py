"""Triggers: which changes they wait for, and what is said about those that are wrong."""

from __future__ import annotations

from noxu.control.faults.triggers import concerns, fires, parse, path_of, steps_of
from noxu.values import Json, Object
from tests.rows import rows


def widget(**fields: Json) -> Object:
    return {"metadata": {"name": "a"}, **fields}


def labelled(value: str) -> Object:
    return {"metadata": {"name": "a", "labels": {"a.b/c": value}}}


ONE, TWO = widget(spec={"replicas": 1}), widget(spec={"replicas": 2})
READY = widget(spec={"replicas": 2}, status={"ready": True})


@rows(
    ("trigger", "old", "new", "expected"),
    [
        ({"created": "w"}, None, ONE, True),
        ({"created": "w"}, ONE, TWO, False),
        ({"updated": "w"}, ONE, TWO, True),
        ({"deleted": "w"}, ONE, None, True),
        ({"deleted": "w"}, None, ONE, False),
        ({"updated": "w", "changed": {"spec.replicas": {"from": 1, "to": 2}}}, ONE, TWO, True),
        ({"updated": "w", "changed": {"spec.replicas": {"to": 2}}}, ONE, TWO, True),
        ({"updated": "w", "changed": {"spec.replicas": {"from": 2}}}, ONE, TWO, False),
        ({"updated": "w", "changed": {"spec.replicas": None}}, TWO, READY, False),
        ({"updated": "w", "changed": {"status": {}}}, TWO, READY, True),
        ({"updated": "w", "changed": {"status": {"from": None}, "spec.replicas": {}}}, TWO, READY, False),
        ({"updated": "w", "changed": {'metadata.labels["a.b/c"]': {"to": "2"}}}, labelled("1"), labelled("2"), True),
        ({"updated": "w", "changed": {'metadata.labels["a.b/d"]': {}}}, labelled("1"), labelled("2"), False),
        ({"updated": "w", "condition": "self.status.ready"}, TWO, READY, True),
        ({"updated": "w", "condition": "self.status.ready"}, ONE, TWO, False),
        ({"deleted": "w", "condition": "self.spec.replicas == 2"}, TWO, None, True),
    ],
)
def test_what_a_trigger_waits_for(trigger: Json, old: Object | None, new: Object | None, expected: bool) -> None:
    parsed, problems = parse(trigger)
    assert problems == []
    assert parsed is not None
    assert fires(parsed, old, new) is expected


@rows(
    "path, steps",
    [
        ("spec.replicas", ("spec", "replicas")),
        ("data", ("data",)),
        ('metadata.labels["app.kubernetes.io/name"]', ("metadata", "labels", "app.kubernetes.io/name")),
        ('data["a.conf"].x', ("data", "a.conf", "x")),
        (r'data["say \"a\""]', ("data", 'say "a"')),
        ("metadata.annotations.example.com/x", ("metadata", "annotations", "example", "com/x")),
    ],
)
def test_a_path_names_fields(path: str, steps: tuple[str, ...]) -> None:
    assert steps_of(path) == steps
    assert path_of(steps) == path


@rows(
    ("trigger", "namespace", "name", "expected"),
    [
        ({"created": "w"}, "shop", "a", True),
        ({"created": "w", "namespace": "shop"}, "attic", "a", False),
        ({"created": "w", "name": "a"}, "shop", "b", False),
        ({"created": "w", "name": "a", "namespace": "shop"}, "shop", "a", True),
    ],
)
def test_which_objects_concern_it(trigger: Json, namespace: str, name: str, expected: bool) -> None:
    parsed, _ = parse(trigger)
    assert parsed is not None
    assert concerns(parsed, namespace, name) is expected


@rows(
    ("trigger", "path", "why"),
    [
        ("created", "", "it is an object, such as {created: widgets}"),
        ({}, "", "it has one of created, updated, deleted, with a resource"),
        ({"created": "w", "updated": "w"}, "", "it has one of created, updated, deleted, with a resource"),
        ({"created": 7}, "created", "it is the name of a resource, such as widgets.example.com"),
        ({"created": "w", "nmae": "a"}, "nmae", "there is no such field; did you mean name?"),
        ({"created": "w", "changed": {"spec": {}}}, "changed", "it is about updates: created objects have no other state"),
        ({"updated": "w", "changed": []}, "changed", "it names fields, such as {spec.replicas: {from: 1, to: 2}}"),
        ({"updated": "w", "changed": {"spec": {"form": 1}}}, "changed", "spec has `from`, `to`, both or none of them"),
        ({"created": "w", "nth": 0}, "nth", "it is an integer from 1 on"),
        ({"created": "w", "after": "soon"}, "after", 'invalid duration "soon"'),
    ],
)  # fmt: skip
def test_what_is_wrong(trigger: Json, path: str, why: str) -> None:
    _, problems = parse(trigger)
    assert (path, why) in [(place, text.replace("time: ", "")) for place, text in problems]


def test_a_condition_that_cannot_be_compiled() -> None:
    _, problems = parse({"created": "w", "condition": "self.("})
    assert [path for path, _ in problems] == ["condition"]
