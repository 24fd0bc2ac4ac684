"""Names are counted, so that a name which two definitions have stays accepted when one of them is gone."""

from __future__ import annotations

from noxu.crd.conditions import AcceptedNames
from noxu.values import Object

WIDGETS: Object = {
    "plural": "widgets",
    "singular": "widget",
    "shortNames": ["w"],
    "kind": "Widget",
    "listKind": "WidgetList",
}
SAME_SINGULAR: Object = {"plural": "gadgets", "singular": "widget", "kind": "Gadget"}
TWICE: Object = {"plural": "sheep", "singular": "sheep", "shortNames": ["sheep"], "kind": "Sheep", "listKind": "Sheep"}
NONE_ACCEPTED: Object = {"plural": "", "kind": ""}


def test_resources_and_kinds_are_separate() -> None:
    names = AcceptedNames([{"status": {"acceptedNames": WIDGETS}}])
    assert set(names.resources) == {"widgets", "widget", "w"}
    assert set(names.kinds) == {"Widget", "WidgetList"}


def test_a_name_is_free_when_all_that_have_it_are_removed() -> None:
    names = AcceptedNames()
    for accepted in (WIDGETS, SAME_SINGULAR, TWICE):
        names.add(accepted)
    names.remove(WIDGETS)
    assert "widget" in names.resources
    assert "widgets" not in names.resources
    names.remove(SAME_SINGULAR)
    assert "widget" not in names.resources
    names.remove(TWICE)
    assert not names


def test_a_definition_without_accepted_names_leaves_nothing() -> None:
    names = AcceptedNames()
    names.add(NONE_ACCEPTED)
    names.remove(NONE_ACCEPTED)
    assert not names
