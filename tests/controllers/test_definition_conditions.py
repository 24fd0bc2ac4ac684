"""The conditions of definitions, one step after the other."""

from __future__ import annotations

import pytest

from noxu.controllers.definitions import advance, set_structure
from noxu.crd import types, update, v1beta1
from noxu.crd.conditions import AcceptedNames
from noxu.crd.types import default
from noxu.values import Object

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
NAMES = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}


def definition() -> Object:
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]
    spec = {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": versions,
    }
    crd = types.decode({"metadata": {"name": "foos.example.com"}, "spec": spec}).value
    return update.prepare_for_create(default(crd))


def settled() -> Object:
    crd = definition()
    while advance(crd, AcceptedNames(), NOW):
        pass
    return crd


def shown(crd: Object) -> dict[str, tuple[str, str]]:
    """(status, message) by the type of the condition."""
    return {
        condition["type"]: (condition["status"], condition.get("message", ""))
        for condition in crd["status"]["conditions"] or []
    }


ACCEPTED = {"NamesAccepted": ("True", "no conflicts found")}
ESTABLISHED = {"Established": ("True", "the initial names have been accepted")}


def test_names_are_accepted_before_the_definition_is_established() -> None:
    crd = definition()
    assert advance(crd, AcceptedNames(), NOW)
    assert shown(crd) == ACCEPTED | {"Established": ("False", "the initial names have been accepted")}
    assert crd["status"]["acceptedNames"] == NAMES
    assert advance(crd, AcceptedNames(), NOW)
    assert shown(crd) == ACCEPTED | ESTABLISHED
    assert not advance(crd, AcceptedNames(), NOW)


EDITED: list[tuple[str, list[Object], dict[str, tuple[str, str]]]] = [
    ("another message stays", [{"type": "NamesAccepted", "status": "True", "message": "mine"}], {"NamesAccepted": ("True", "mine")} | ESTABLISHED),
    ("names that are accepted without the condition", [], {}),
    ("names that are not accepted, by hand", [{"type": "NamesAccepted", "status": "False"}], {"NamesAccepted": ("False", "")}),
    ("a definition that is not established, by hand",
     [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "False", "message": "mine"}],
     {"NamesAccepted": ("True", "")} | ESTABLISHED),
    ("other words of an established definition",
     [{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True", "message": "mine"}],
     {"NamesAccepted": ("True", ""), "Established": ("True", "mine")}),
]  # fmt: skip


@pytest.mark.parametrize(("conditions", "after"), [row[1:] for row in EDITED], ids=[row[0] for row in EDITED])
def test_conditions_stay_while_the_accepted_names_are_those_of_the_spec(
    conditions: list[Object], after: dict[str, tuple[str, str]]
) -> None:
    crd = settled()
    crd["status"]["conditions"] = [{"lastTransitionTime": NOW, **condition} for condition in conditions]
    while advance(crd, AcceptedNames(), LATER):
        pass
    assert shown(crd) == after


def test_names_that_differ_are_checked_again() -> None:
    crd = settled()
    crd["status"]["acceptedNames"] = {"plural": "foos", "kind": "Bar"}
    crd["status"]["conditions"][0]["message"] = "mine"
    assert advance(crd, AcceptedNames(), LATER)
    assert (crd["status"]["acceptedNames"], shown(crd)) == (NAMES, ACCEPTED | ESTABLISHED)


def test_a_definition_that_preserves_unknown_fields_is_not_structural() -> None:
    stored = {"apiVersion": v1beta1.API_VERSION, "spec": {"group": "example.com", "version": "v1", "names": NAMES}}
    crd = v1beta1.upgrade(v1beta1.decode(stored).value)
    assert set_structure(crd, NOW)
    assert shown(crd) == {
        "NonStructuralSchema": ("True", "spec.preserveUnknownFields: Invalid value: true: must be false")
    }
    assert not set_structure(crd, LATER)
    crd["spec"]["preserveUnknownFields"] = False
    assert set_structure(crd, LATER)
    assert shown(crd) == {}
    assert not set_structure(crd, LATER)
