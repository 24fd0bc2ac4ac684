"""Which changes of a custom resource follow from its schema, and what takes them back."""

from __future__ import annotations

from typing import Any

from noxu.exploration import mutations
from noxu.exploration.mutations import CRDS
from noxu.exploration.planning import plans
from noxu.exploration.recording import ObjectPlace
from noxu.exploration.transitions import consider
from noxu.values import Object
from tests.exploration.recordings import WIDGETS, clean
from tests.rows import rows

FLAG = {"type": "boolean"}
SIZE = {"type": "integer", "minimum": 0, "maximum": 3}
BACKUP = {
    "type": "object",
    "properties": {
        "enabled": FLAG,
        "every": {"type": "string"},
        "deep": {"type": "object", "properties": {"on": FLAG}},
    },
}


def schema(**fields: Any) -> Object:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


@rows(
    "fields, spec, found",
    [
        ({"paused": FLAG}, {"paused": True}, [("paused becomes false", False, True), ("paused goes away", None, True)]),
        ({"paused": FLAG}, {}, [("paused becomes true", True, None)]),
        ({"paused": {**FLAG, "default": False}}, {"paused": False}, [("paused becomes true", True, False)]),
        ({"size": {**SIZE, "default": 1}}, {"size": 2}, [("size becomes 3 instead of 2", 3, 2), ("size becomes 1 instead of 2", 1, 2)]),
        ({"size": {**SIZE, "default": 1}}, {"size": 3}, [("size becomes 2 instead of 3", 2, 3)]),
        ({"size": {**SIZE, "default": 1}}, {"size": 0}, [("size becomes 1 instead of 0", 1, 0)]),
        ({"size": {"type": "integer"}}, {}, []),
        ({"mode": {"type": "string", "enum": ["a", "b", "c", "d"], "default": "a"}}, {"mode": "b"},
         [("mode becomes 'a' instead of 'b'", "a", "b"), ("mode becomes 'c' instead of 'b'", "c", "b")]),
        ({"image": {"type": "string"}}, {"image": "x"}, [("image goes away", None, "x")]),
        ({"hosts": {"type": "array"}}, {"hosts": ["x"]}, [("hosts goes away", None, ["x"])]),
    ],
)  # fmt: skip
def test_fields_are_changed_and_changed_back(fields: Object, spec: Object, found: list[tuple[str, Any, Any]]) -> None:
    [name] = fields
    expected = [(f"spec.{what}", {"spec": {name: new}}, {"spec": {name: old}}) for what, new, old in found]
    changes = mutations.of_object(schema(**fields), {"spec": spec})
    assert [(change.what, change.value, change.back) for change in changes] == expected


def test_of_what_is_absent_its_flags_are_set_and_all_of_it_goes_away_again() -> None:
    changes = list(mutations.of_object(schema(backup=BACKUP), {"spec": {}}))
    assert [(change.what, change.back) for change in changes] == [
        ("spec.backup.enabled becomes true", {"spec": {"backup": None}}),
        ("spec.backup.deep.on becomes true", {"spec": {"backup": None}}),
    ]
    assert changes[1].value == {"spec": {"backup": {"deep": {"on": True}}}}


def test_what_is_required_stays() -> None:
    required = {"type": "object", "required": ["image"], "properties": {"image": {"type": "string"}}}
    assert list(mutations.of_object({"properties": {"spec": required}}, {"spec": {"image": "x"}})) == []


def test_a_plan_changes_a_field_when_the_object_has_been_created_and_changes_it_back() -> None:
    crd = {
        "spec": {"versions": [{"storage": True, "schema": {"openAPIV3Schema": schema(size={**SIZE, "default": 1})}}]}
    }
    recording = clean().recording()
    recording = type(recording)(**{
        **{name: getattr(recording, name) for name in recording.__slots__},
        "objects": [*recording.objects, (ObjectPlace(CRDS, "", WIDGETS), crd)],
    })  # fmt: skip
    found = plans(consider(recording), ["spec"])
    assert [plan.title for plan in found] == [
        "spec.size becomes 3 instead of 2 of widgets a, and is then what it was",
        "spec.size becomes 1 instead of 2 of widgets a, and is then what it was",
    ]
    at = {"kind": WIDGETS, "name": "a", "namespace": "default"}
    assert found[0].steps == (
        {
            "after": 1,
            "steps": [
                {"patch": {**at, "merge": {"spec": {"size": 3}}}}, {"patch": {**at, "merge": {"spec": {"size": 2}}}},
            ],
        },
    )  # fmt: skip
