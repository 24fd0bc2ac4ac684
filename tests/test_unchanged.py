"""A document that is shared by convention and was changed in place fails the run."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import pytest

from noxu.apply.managed_fields import RecurringSets
from tests import unchanged
from tests.rows import rows


@pytest.mark.slow
@rows(
    ("change", "fails"),
    [
        ("pass", False),
        ("{**CRD, 'kind': 'B'}", False),
        ("CRD['kind'] = 'B'", True),
        ("CRD['spec']['versions'].append('v2')", True),
        ("NAMES.sort()", True),
        ("OTHERS['a'].clear()", True),
        ("made['kind'] = 'B'", False),  # no constant
    ],
)
def test_a_constant_that_a_test_changes(pytester: pytest.Pytester, change: str, fails: bool) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(
        f"""
        CRD = {{"kind": "A", "spec": {{"versions": ["v1"]}}}}
        NAMES = ["b", "a"]
        OTHERS = {{"a": {{1: object()}}, 1: (2, {{3}})}}
        made = dict(CRD)

        def test_that_changes_it(): {change}
        def test_that_follows(): pass
        """
    )
    result = pytester.runpytest_inprocess("-p", "tests.unchanged", "-p", "no:xdist")
    result.assert_outcomes(passed=2, errors=int(fails))
    assert ("constants were changed in place" in result.stdout.str()) == fails


def test_a_set_of_fields_that_objects_share() -> None:
    fields = {"f:spec": {"f:of-this-test": {}}}
    unchanged.MADE.append(sets := RecurringSets())
    for _ in range(2):
        sets.read(fields)
    assert unchanged.changed_sets() == []
    fields["f:spec"]["f:more"] = {}
    assert unchanged.changed_sets() == [b'{"f:spec":{"f:of-this-test":{}}}']
    del fields["f:spec"]["f:more"]
    assert unchanged.changed_sets() == []


def test_what_a_function_hands_out_again_and_again() -> None:
    module = ModuleType("made_up")

    @functools.cache
    def documents() -> dict[str, Any]:
        return {"paths": {}}

    @functools.cache
    def document(name: str) -> dict[str, Any]:
        return {"name": name}

    documents.__module__ = document.__module__ = module.__name__
    module.documents, module.document = documents, document  # type: ignore[attr-defined]
    assert unchanged.changed_results(module) == []
    documents()["paths"]["/api"] = {}
    assert unchanged.changed_results(module) == ["made_up.documents"]
