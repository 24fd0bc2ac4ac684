"""Events: two views of one object, the validation of each, and their time to live."""

from __future__ import annotations

import json

import pytest

from noxu.go.structs import decode
from noxu.kinds.events import from_core, to_core
from noxu.kinds.kind import Context, Kind, selected, written
from noxu.kinds.scheme import by_group_kind
from noxu.values import Object
from tests.rows import rows

CORE = by_group_kind()["v1", "Event"]
REPORT = by_group_kind()["events.k8s.io/v1", "Event"]


def typed(kind: Kind, body: Object) -> Object:
    decoded = decode(kind.struct, {"metadata": {"name": "e", "namespace": "x"}, **body})
    assert (decoded.error, decoded.unknown) == ("", [])
    value: Object = decoded.value
    return value


def errors(kind: Kind, new: Object, old: Object | None = None) -> list[str]:
    before = None if old is None else typed(kind, old)
    return [str(error) for error in kind.validate(typed(kind, new), before, Context())]


# Two views

WHEN, EXACTLY = "2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000001Z"
IN_CORE: Object = {
    "kind": "Event",
    "apiVersion": "v1",
    "metadata": {"name": "e", "namespace": "x"},
    "involvedObject": {"kind": "Pod", "name": "p"},
    "reason": "Started",
    "message": "it runs",
    "source": {"component": "kubelet"},
    "firstTimestamp": WHEN,
    "lastTimestamp": WHEN,
    "count": 2,
    "type": "Normal",
    "eventTime": EXACTLY,
    "series": {"count": 3, "lastObservedTime": EXACTLY},
    "action": "Start",
    "related": {"kind": "Node"},
    "reportingComponent": "a.b/c",
    "reportingInstance": "i",
}
IN_EVENTS: Object = {
    "kind": "Event",
    "apiVersion": "events.k8s.io/v1",
    "metadata": {"name": "e", "namespace": "x"},
    "eventTime": EXACTLY,
    "series": {"count": 3, "lastObservedTime": EXACTLY},
    "reportingController": "a.b/c",
    "reportingInstance": "i",
    "action": "Start",
    "reason": "Started",
    "regarding": {"kind": "Pod", "name": "p"},
    "related": {"kind": "Node"},
    "note": "it runs",
    "type": "Normal",
    "deprecatedSource": {"component": "kubelet"},
    "deprecatedFirstTimestamp": WHEN,
    "deprecatedLastTimestamp": WHEN,
    "deprecatedCount": 2,
}


def test_the_views_have_the_same_content() -> None:
    assert json.dumps(written(REPORT, from_core(IN_CORE))) == json.dumps(IN_EVENTS)
    assert json.dumps(written(CORE, to_core(IN_EVENTS))) == json.dumps(IN_CORE)


def test_the_samples_use_every_field() -> None:
    assert IN_CORE.keys() == CORE.struct.fields.keys()
    assert IN_EVENTS.keys() == REPORT.struct.fields.keys()


def test_an_almost_empty_event_has_both_views() -> None:
    core = written(CORE, {"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e"}})
    assert written(CORE, to_core(written(REPORT, from_core(core)))) == core


# core/v1

NEW_STYLE: Object = {
    "eventTime": EXACTLY,
    "involvedObject": {"namespace": "x"},
    "reportingComponent": "a.b/c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
}
FOREIGN = "does not match event.namespace"
LONG = "x" * 129
QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def placed(namespace: str, about: str, *, exactly: bool = False) -> Object:
    style = NEW_STYLE if exactly else {}
    return {**style, "metadata": {"name": "e", "namespace": namespace}, "involvedObject": {"namespace": about}}


CORE_EVENTS: list[tuple[str, Object, list[str]]] = [
    ("in the namespace of its object", placed("x", "x"), []),
    ("in another namespace", placed("x", "y"), [f'involvedObject.namespace: Invalid value: "y": {FOREIGN}']),
    ("about something without namespace, in default", placed("default", ""), []),
    ("about something without namespace, elsewhere", placed("x", ""), [f'involvedObject.namespace: Invalid value: "": {FOREIGN}']),
    ("new style, about something without namespace", placed("kube-system", "", exactly=True), []),
    ("new style, about something without namespace, elsewhere", placed("x", "", exactly=True), [f'involvedObject.namespace: Invalid value: "": {FOREIGN}']),
    ("new style, in another namespace", placed("x", "y", exactly=True), []),
    ("new style, complete", NEW_STYLE, []),
    ("new style, with nothing", {"eventTime": EXACTLY, "involvedObject": {"namespace": "x"}}, [
        "reportingComponent: Required value",
        'reportingComponent: Invalid value: "": name part must be non-empty',
        f'reportingComponent: Invalid value: "": {QUALIFIED}',
        "reportingInstance: Required value",
        "action: Required value",
        "reason: Required value",
    ]),
    ("new style, wordy", {**NEW_STYLE, "reportingInstance": LONG, "action": LONG, "reason": LONG, "message": "x" * 1025}, [
        'reportingInstance: Invalid value: "": can have at most 128 characters',
        'action: Invalid value: "": can have at most 128 characters',
        'reason: Invalid value: "": can have at most 128 characters',
        'message: Invalid value: "": can have at most 1024 characters',
    ]),
    ("old style, wordy", {"involvedObject": {"namespace": "x"}, "reason": LONG, "message": "x" * 1025}, []),
    ("old style, anything goes", {"involvedObject": {"namespace": "x"}, "type": "Odd", "count": -1, "series": {}}, []),
]  # fmt: skip


@rows(("body", "messages"), [row[1:] for row in CORE_EVENTS], ids=[row[0] for row in CORE_EVENTS])
def test_events_of_core_are_validated(body: Object, messages: list[str]) -> None:
    assert errors(CORE, body) == messages
    assert errors(CORE, body, body) == messages


def test_an_event_of_core_may_change_altogether() -> None:
    assert errors(CORE, {"involvedObject": {"namespace": "x", "name": "b"}, "reason": "b"}, {"reason": "a"}) == []


def test_a_namespace_that_is_no_name() -> None:
    (messages,) = errors(CORE, placed("X", "X"))
    assert messages.startswith('namespace: Invalid value: "X": a lowercase RFC 1123 subdomain')


# events.k8s.io/v1

GOOD: Object = {
    "eventTime": EXACTLY,
    "regarding": {"namespace": "x", "name": "p"},
    "reportingController": "a.b/c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
}
NEW_REPORTS: list[tuple[str, Object, list[str]]] = [
    ("complete", GOOD, []),
    ("a warning with a series", {**GOOD, "type": "Warning", "series": {"count": 2, "lastObservedTime": EXACTLY}}, []),
    ("no type", {**GOOD, "type": ""}, ['type: Invalid value: "": has invalid value: ']),
    ("an odd type", {**GOOD, "type": "Odd"}, ['type: Invalid value: "": has invalid value: Odd']),
    ("no controller", {**GOOD, "reportingController": ""}, [
        "reportingController: Required value",
        'reportingController: Invalid value: "": name part must be non-empty',
        f'reportingController: Invalid value: "": {QUALIFIED}',
    ]),
    ("no time", {**GOOD, "eventTime": None}, ["eventTime: Required value"]),
    ("a poor series", {**GOOD, "series": {"count": 1}}, [
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
    ]),
    ("what is deprecated", {**GOOD, "deprecatedFirstTimestamp": WHEN, "deprecatedLastTimestamp": WHEN, "deprecatedCount": 1, "deprecatedSource": {"host": "h"}}, [
        'firstTimestamp: Invalid value: "": needs to be unset',
        'lastTimestamp: Invalid value: "": needs to be unset',
        'count: Invalid value: "": needs to be unset',
        'source: Invalid value: "": needs to be unset',
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "messages"), [row[1:] for row in NEW_REPORTS], ids=[row[0] for row in NEW_REPORTS])
def test_events_of_the_events_group_are_validated_strictly(body: Object, messages: list[str]) -> None:
    assert errors(REPORT, body) == messages


FIXED = "field is immutable"
CHANGES: list[tuple[str, Object, list[str]]] = [
    ("nothing", {}, []),
    ("the series", {"series": {"count": 2, "lastObservedTime": EXACTLY}}, []),
    ("a poor series", {"series": {"count": 1, "lastObservedTime": EXACTLY}}, ['series.count: Invalid value: "": should be at least 2']),
    ("the note", {"note": "n"}, [f'message: Invalid value: "n": {FIXED}']),
    ("the reason, reported twice", {"reason": "s"}, [f'reason: Invalid value: "s": {FIXED}', f'reason: Invalid value: "s": {FIXED}']),
    ("the type to something odd", {"type": "Odd"}, [f'type: Invalid value: "Odd": {FIXED}']),
    ("the count", {"deprecatedCount": 3}, [f"count: Invalid value: 3: {FIXED}"]),
    ("the controller", {"reportingController": "d"}, [f'reportingController: Invalid value: "d": {FIXED}']),
    ("the time", {"eventTime": "2024-01-01T00:00:00.000002Z"}, [f'eventTime: Invalid value: "2024-01-01T00:00:00.000002Z": {FIXED}']),
    ("a deprecated time", {"deprecatedFirstTimestamp": WHEN}, [f'firstTimestamp: Invalid value: "{WHEN}": {FIXED}']),
    ("a deprecated source", {"deprecatedSource": {"host": "h"}}, ['source: Invalid value: {"Component":"","Host":"h"}: field is immutable']),
    ("something related", {"related": {"kind": "K", "uid": "u"}}, [
        'related: Invalid value: {"Kind":"K","Namespace":"","Name":"","UID":"u","APIVersion":"","ResourceVersion":"","FieldPath":""}: field is immutable'
    ]),
    ("what it is about", {"regarding": {"namespace": "x"}}, [
        'involvedObject: Invalid value: {"Kind":"","Namespace":"x","Name":"","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}: field is immutable'
    ]),
]  # fmt: skip


@rows(("change", "messages"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_of_an_event_of_events_only_the_series_changes(change: Object, messages: list[str]) -> None:
    assert errors(REPORT, {**GOOD, **change}, GOOD) == messages


def test_an_absent_related_object_prints_as_null() -> None:
    assert errors(REPORT, GOOD, {**GOOD, "related": {"kind": "K"}}) == [f"related: Invalid value: null: {FIXED}"]


# Data


@pytest.mark.parametrize("kind", [CORE, REPORT], ids=["core", "events"])
def test_events_last_an_hour(kind: Kind) -> None:
    assert kind.lifetime == 3600
    assert (kind.create_on_update, kind.unconditional_update) == (True, True)


def test_events_are_selected_by_the_object_they_regard() -> None:
    seen = selected(CORE, IN_CORE)
    assert seen == {
        "involvedObject.kind": "Pod",
        "involvedObject.namespace": "",
        "involvedObject.name": "p",
        "involvedObject.uid": "",
        "involvedObject.apiVersion": "",
        "involvedObject.resourceVersion": "",
        "involvedObject.fieldPath": "",
        "reason": "Started",
        "reportingComponent": "a.b/c",
        "source": "kubelet",
        "type": "Normal",
    }
    assert selected(CORE, {**IN_CORE, "source": {}})["source"] == "a.b/c"
    assert selected(REPORT, IN_EVENTS)["regarding.kind"] == "Pod"
    assert selected(REPORT, IN_EVENTS)["reportingController"] == "a.b/c"
