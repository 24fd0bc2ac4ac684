"""kubectl's last-applied annotation: taking over from client-side apply, and keeping it up to date."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noxu.api.errors import ApiError
from noxu.apply.manager import apply
from noxu.apply.merging import ANNOTATION, MAX_ANNOTATIONS, renewed
from tests.apply.widgets import MAIN, NOW, V1, V2, live, owners, owns, widget

AB = {"f:spec": {"f:a": {}, "f:b": {}}}


def annotated(spec: Any, annotation: Any, **more: Any) -> dict[str, Any]:
    text = annotation if isinstance(annotation, str) else json.dumps(annotation)
    entries = [owns("update kubectl-client-side-apply", AB)]
    return live(spec, annotations={ANNOTATION: text}, managers=entries, **more)


def applied(old: Any, config: Any, by: str = "kubectl") -> dict[str, Any]:
    return apply(old, config, MAIN, manager=by, now=NOW).value


def conflicts(old: Any, config: Any, by: str = "kubectl") -> list[str]:
    with pytest.raises(ApiError) as error:
        applied(old, config, by)
    assert error.value.details is not None
    return [cause["field"] for cause in error.value.details["causes"]]


OLD = annotated({"a": 1, "b": "x"}, widget({"a": 1, "b": "x"}))


def test_kubectl_takes_over_fields_that_it_applied_client_side() -> None:
    value = applied(OLD, widget({"a": 2, "b": "x"}))
    assert value["spec"] == {"a": 2, "b": "x"}
    assert owners(value) == {"apply kubectl": AB, "update kubectl-client-side-apply": {"f:spec": {"f:b": {}}}}


def test_other_managers_take_over_nothing() -> None:
    assert conflicts(OLD, widget({"a": 2}), by="kubectl-edit") == [".spec.a"]


def test_a_field_changed_since_stays_a_conflict() -> None:
    old = annotated({"a": 1, "b": "changed"}, widget({"a": 1, "b": "x"}))
    assert conflicts(old, widget({"a": 2, "b": "y"})) == [".spec.b"]


def test_a_field_that_was_not_applied_stays_a_conflict() -> None:
    old = annotated({"a": 1, "b": "x"}, widget({"a": 1}))
    assert conflicts(old, widget({"a": 2, "b": "y"})) == [".spec.b"]


NOT_TO_GO_BY: list[tuple[str, Any]] = [
    ("an empty annotation", ""),
    ("no JSON", "{"),
    ("no object", "[]"),
    ("no kind", {"apiVersion": V1, "spec": {"a": 1}}),
    ("another version", widget({"a": 1}, version=V2)),
    ("an object that is not of the type", widget({"a": "x"})),
    ("an item twice", widget({"a": 1, "lset": ["a", "a"]})),
]


@pytest.mark.parametrize("annotation", [row[1] for row in NOT_TO_GO_BY], ids=[row[0] for row in NOT_TO_GO_BY])
def test_an_annotation_that_is_not_to_go_by(annotation: Any) -> None:
    assert conflicts(annotated({"a": 1, "b": "x"}, annotation), widget({"a": 2})) == [".spec.a"]


def test_live_items_that_stand_twice_are_not_to_go_by_either() -> None:
    old = annotated({"a": 1, "lset": ["a", "a"]}, widget({"a": 1}))
    assert conflicts(old, widget({"a": 2})) == [".spec.a"]


def test_without_an_annotation_nothing_is_derived() -> None:
    old = live({"a": 1}, managers=[owns("update m", AB)])
    assert conflicts(old, widget({"a": 2})) == [".spec.a"]
    assert conflicts(old | {"metadata": {**old["metadata"], "annotations": {"x": "y"}}}, widget({"a": 2})) == [
        ".spec.a"
    ]


# --- keeping it up to date ---


def test_the_annotation_becomes_the_configuration_applied_now() -> None:
    config = widget({"a": 2, "b": "<x>"}, annotations={"n": "1", ANNOTATION: "ignored"})
    value = renewed(OLD, config)
    assert value["metadata"]["annotations"][ANNOTATION] == (
        '{"apiVersion":"g.example.com/v1","kind":"Widget","metadata":{"annotations":{"n":"1"},"name":"w"},'
        '"spec":{"a":2,"b":"\\u003cx\\u003e"}}\n'
    )
    assert OLD["metadata"]["annotations"][ANNOTATION] == json.dumps(widget({"a": 1, "b": "x"}))


CONFIGS: list[tuple[str, Any, str]] = [
    ("no annotations", widget(), '"metadata":{"name":"w"}'),
    ("null annotations", widget(annotations=None), '"metadata":{"name":"w"}'),
    ("no other annotation", widget(annotations={ANNOTATION: "x"}), '"metadata":{"annotations":{},"name":"w"}'),
]


@pytest.mark.parametrize(("config", "expected"), [row[1:] for row in CONFIGS], ids=[row[0] for row in CONFIGS])
def test_the_annotation_is_not_in_itself(config: Any, expected: str) -> None:
    assert renewed(OLD, config)["metadata"]["annotations"][ANNOTATION] == (
        f'{{"apiVersion":"g.example.com/v1","kind":"Widget",{expected}}}\n'
    )


def test_no_annotation_is_added() -> None:
    for value in (live({"a": 1}), live(annotations={"x": "y"}), live(annotations={ANNOTATION: ""})):
        assert renewed(value, widget({"a": 1})) is value


def test_an_annotation_too_long_to_keep_goes() -> None:
    room = (
        MAX_ANNOTATIONS - len(ANNOTATION) - len(renewed(OLD, widget({"b": ""}))["metadata"]["annotations"][ANNOTATION])
    )
    fits = renewed(OLD, widget({"b": "x" * room}))["metadata"]["annotations"]
    assert len(fits[ANNOTATION]) + len(ANNOTATION) == MAX_ANNOTATIONS
    assert renewed(OLD, widget({"b": "x" * (room + 1)}))["metadata"]["annotations"] == {}
    assert renewed(OLD, widget({"b": "é" * (room // 2 + 1)}))["metadata"]["annotations"] == {}


def test_applying_nothing_new_renews_it_too() -> None:
    old = annotated({"a": 1}, widget({"a": 7}))
    value = applied(old, widget({"a": 1}))
    assert value["metadata"]["annotations"][ANNOTATION].endswith('"spec":{"a":1}}\n')
    assert applied(old, widget({"a": 1}), by="m")["metadata"]["annotations"] == old["metadata"]["annotations"]
