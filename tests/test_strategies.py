"""Strategies for Hypothesis: what they draw, what it is shrunk to, and what is said about hopeless schemas."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings

from noxu import strategies
from noxu.generation.kinds import errors_of, resource_of
from noxu.strategies import CannotGenerate, UnknownDefinition, invalid, valid
from tests.generation.test_kinds import crd

WIDGETS = crd()
RESOURCE = resource_of([WIDGETS], "widgets.example.com")
FEW = settings(max_examples=25, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@FEW
@given(valid("widgets.example.com", crds=WIDGETS.value))
def test_valid_objects_are_accepted(widget: dict[str, Any]) -> None:
    assert errors_of(widget, RESOURCE) == []


@FEW
@given(invalid("widgets.example.com", crds=[WIDGETS.value]))
def test_invalid_objects_are_refused_because_of_their_field(broken: strategies.BrokenObject) -> None:
    assert broken.field in [error.field for error in errors_of(broken.value, RESOURCE)]


def test_objects_shrink_to_small_ones() -> None:
    strategy = valid("widgets.example.com", crds=WIDGETS.value)
    limits = settings(max_examples=300, database=None, derandomize=True, deadline=None)
    assert find(strategy, lambda widget: widget["spec"]["size"] >= 2, settings=limits) == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a"},
        "spec": {"size": 2},
    }
    assert find(strategy, lambda widget: "image" in widget["spec"], settings=limits)["spec"] == {
        "size": 1,
        "image": "a:v0",
    }


def test_a_schema_without_objects_is_an_error_of_the_strategy() -> None:
    hopeless = crd(
        {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "minLength": 2, "maxLength": 1}}}
    )
    with pytest.raises(CannotGenerate, match="minLength 2 is more than maxLength 1"):
        valid("widgets.example.com", crds=hopeless.value)
    with pytest.raises(UnknownDefinition, match="no CRD is named"):
        valid("gears.example.com", crds=hopeless.value)


def test_without_hypothesis_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(strategies, "import_module", absent)
    with pytest.raises(ImportError, match="pip install hypothesis"):
        valid("widgets.example.com", crds=WIDGETS.value)
    assert importlib.import_module("hypothesis")
