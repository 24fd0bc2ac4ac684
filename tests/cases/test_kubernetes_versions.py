"""Cases that run as several releases of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from noxu.cases import running
from noxu.cases.outcomes import FileOutcome

CRD: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, minimum: 5}, colour: {type: string}}}
"""
RULE: Final = "\n            x-kubernetes-validations: [{rule: isIP(self)}]"
OLD: Final = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: 1}}"
CASES: Final = f"""
apiVersion: noxu.dev/v1
kind: Test
given: {{crds: [crd.yaml], kubernetes: VERSIONS}}
cases:
- name: an old size is forgiven
  old: {OLD}
  patch: {{spec: {{colour: red}}}}
  expect: {{allowed: true}}
"""


def run(here: Path, versions: str, crd: str = CRD, releases: Sequence[int] = ()) -> FileOutcome:
    (here / "crd.yaml").write_text(crd)
    path = here / "a_test.yaml"
    path.write_text(CASES.replace("VERSIONS", versions))
    [outcome] = running.run_paths([path], releases=releases)
    return outcome


@pytest.mark.parametrize(
    ("versions", "messages"),
    [
        ('["1.30", "1.37"]', []),
        ('["1.29"]', ["the write is denied"]),
        ("1.31", []),
        ('["1.37", "1.29", "1.30"]', ["1.29: the write is denied"]),
    ],
)
def test_a_difference_of_some_versions_names_them(versions: str, messages: list[str], tmp_path: Path) -> None:
    [outcome] = run(tmp_path, versions).outcomes
    assert outcome.verdict == ("failed" if messages else "passed")
    assert [difference.message.partition(": Widget")[0] for difference in outcome.differences] == messages


def test_what_is_given_may_be_refused_by_some_versions(tmp_path: Path) -> None:
    colour = "colour: {type: string, maxLength: 40, x-kubernetes-validations: [{rule: isIP(self)}]}"
    outcome = run(tmp_path, '["1.30", "1.31"]', CRD.replace("colour: {type: string}", colour))
    assert [problem.message.partition(": ")[0] for problem in outcome.problems] == ["1.30"]
    assert "undeclared reference to 'isIP'" in outcome.problems[0].message
    assert len(outcome.outcomes) == 1  # of 1.31


def test_versions_of_a_command_replace_those_of_files(tmp_path: Path) -> None:
    assert run(tmp_path, '["1.29"]', releases=(30, 37)).outcomes[0].verdict == "passed"
    assert run(tmp_path, '["1.37"]', releases=(29,)).outcomes[0].verdict == "failed"
