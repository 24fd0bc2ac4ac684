"""Conditions of a person over small recordings: where they hold, and where not."""

from __future__ import annotations

from pathlib import Path

import pytest

from noxu.exploration import invariants, settings
from noxu.exploration.invariants import Invariant
from noxu.exploration.recording import StepResult
from tests.exploration.recordings import CONFIGS, WIDGETS, Script, clean
from tests.rows import rows

OWNED = "objects('configmaps').all(c, objects('widgets').exists(w, w.metadata.name == c.metadata.name))"


def a_config_is_left_for_a_while() -> Script:
    """It is gone when the step is done."""
    script = clean()
    script.write("controller", "delete", WIDGETS, "a")
    script.write("controller", "delete", CONFIGS, "a")
    return script


def broken(script: Script, expression: str, *, always: bool) -> list[str]:
    return [at for _, at in invariants.broken([Invariant(expression, "it holds", always)], script.recording())]


@rows(
    "expression, always, where",
    [
        (OWNED, True, ["at revision 16, when the controller deleted widgets.example.com default/a"]),
        (OWNED, False, []),
        ("objects('widgets.example.com').size() <= 1", True, []),
        ("objects('configmaps').size() > 0", True, ["at the start"]),
        ("objects('configmaps').size() > 0", False, ["after start"]),
        ("objects(\"secrets\").all(s, s.data.token != \"objects('x')\")", True, []),
        (
            "objects('widgets').all(w, w.status.size >= 0)",
            True,
            ["at revision 10, when workload created widgets.example.com default/a: no such key: status"],
        ),
        ("objects('widgets').all(w, !has(w.status) || w.status.size == 2)", False, ["after step 2"]),
        ("objects('persistentvolumeclaims').all(c, false)", True, []),
    ],
)  # fmt: skip
def test_where_invariants_do_not_hold(expression: str, always: bool, where: list[str]) -> None:
    script = clean() if "status.size == 2" in expression else a_config_is_left_for_a_while()
    assert broken(script, expression, always=always) == where


def test_a_step_that_never_becomes_idle_is_no_moment() -> None:
    script = clean()
    names = ("start", "step 1", "step 2", "end")
    idle = [StepResult(name, 0.1) for name in names]
    condition = [Invariant("objects('configmaps').size() == 0", "none", always=False)]
    assert invariants.broken(condition, script.recording(steps=idle)) == [("none", "after step 1")]
    busy = [StepResult(name, 0.1, never_idle="busy" if name != "end" else "") for name in names]
    assert invariants.broken(condition, script.recording(steps=busy)) == [("none", "at the end")]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("objects('widgets').al(w, true)", r"invariants\[0\]\.always: .*undeclared reference to 'al'"),
        ("objects('widgets').all(w, w.x ==", r"invariants\[0\]\.always: .*1:33: Syntax error"),
        ("size(objects('widgets'))", r"must evaluate to bool but got int"),
        ("self.x == 1", r"is about no objects, such as objects\('persistentvolumeclaims'\)"),
    ],
)
def test_what_does_not_compile_is_refused_with_its_place(expression: str, message: str) -> None:
    with pytest.raises(settings.SettingsError, match=message):
        settings.parse({"invariants": [{"always": expression}]}, Path())
