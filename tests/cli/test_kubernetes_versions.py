"""`--kubernetes`: findings of several releases as one report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from noxu.commands.by_release import merged
from noxu.commands.findings import Finding
from tests.cli.conftest import unplaced

Make = Callable[..., Any]
RULE = "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
UNDECLARED = "compilation failed: undeclared reference to 'isIP' (in container '')"


def of_rule(crd: Make) -> Any:
    definition = crd(address={"type": "string", "maxLength": 40})
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["x-kubernetes-validations"] = [{"rule": "isIP(self.address)"}]
    return definition


@pytest.mark.parametrize("command", ["validate", "lint"])
def test_a_finding_of_some_versions_names_them(command: str, run: Make, write: Make, crd: Make) -> None:
    write("crd.json", of_rule(crd))
    ran = run(f"{command} --kubernetes 1.31,1.29,v1.30.2 crd.json")
    assert ran.status == 1
    assert [line.strip() for line in unplaced(ran.out).splitlines()[1:5]] == [
        f"1.29, 1.30: {RULE}: {UNDECLARED}",
        "| isIP(self.address)",
        "| ....^",
        "`isIP` is for rules since Kubernetes 1.31",
    ]


@pytest.mark.parametrize(
    ("command", "accepted"),
    [
        ("validate", "crd.json: CustomResourceDefinition widgets.example.com: valid"),
        ("lint", "crd.json: widgets.example.com (v1): structural"),
    ],
)
def test_versions_that_agree_are_not_named(command: str, accepted: str, run: Make, write: Make, crd: Make) -> None:
    write("crd.json", of_rule(crd))
    ran = run(f"{command} --kubernetes 1.31,1.37 crd.json")
    assert (ran.status, ran.out.splitlines()[0]) == (0, accepted)
    ran = run(f"{command} --kubernetes 1.29,1.30 crd.json")
    assert ran.status == 1
    assert f": {RULE}: {UNDECLARED}" in ran.out
    assert "1.29" not in ran.out


def test_json_lists_the_versions_and_what_the_newest_that_refuses_answers(run: Make, write: Make, crd: Make) -> None:
    write("crd.json", of_rule(crd))
    (found,) = run("validate --kubernetes 1.29,1.30,1.37 --output json crd.json").json["objects"]
    assert found["result"] == "refused"
    assert [finding["kubernetes"] for finding in found["findings"]] == [["1.29", "1.30"]]
    assert found["status"]["reason"] == "Invalid"
    (linted,) = run("lint --kubernetes 1.29,1.30,1.37 --output json crd.json").json["crds"]
    assert [finding["kubernetes"] for finding in linted["findings"]] == [["1.29", "1.30"]]


def test_an_unchanged_invalid_field_is_forgiven_where_the_version_ratchets(run: Make, write: Make, crd: Make) -> None:
    write("crd.json", crd(size={"type": "integer", "minimum": 5}, colour={"type": "string"}))
    write("old.json", widget(size=1))
    write("new.json", widget(size=1, colour="red"))
    ran = run("validate --kubernetes 1.29,1.30,1.37 --old old.json crd.json new.json")
    assert ran.status == 1
    assert "  1.29: spec.size: Invalid value: 1: spec.size in body should be greater than or equal to 5" in unplaced(
        ran.out
    )


def widget(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": spec,
    }


@pytest.mark.parametrize("command", ["validate", "lint", "explain-write", "serve"])
@pytest.mark.parametrize("version", ["1.28", "1.38", "newest"])
def test_an_unknown_version_is_refused_with_the_known_ones(command: str, version: str, run: Make) -> None:
    ran = run(f"{command} --kubernetes {version} crd.json")
    assert ran.status == 2
    assert (
        f'argument --kubernetes: "{version}" is not a known version of Kubernetes: give one of 1.29, 1.30, ' in ran.err
    )


def test_a_gate_has_to_be_in_each_version(run: Make, write: Make, crd: Make) -> None:
    write("crd.json", crd(size={"type": "integer"}))
    ran = run("validate --kubernetes 1.31,1.32 --feature-gates CBORServingAndStorage=true crd.json")
    assert ran.status == 2
    assert "unrecognized feature gate: CBORServingAndStorage (it came with Kubernetes 1.32)" in ran.err


def test_stored_objects_are_validated_as_the_newest_version_does(run: Make) -> None:
    assert "--kubernetes: stored objects are validated as they are" in run("validate --stored --kubernetes 1.30").err


def test_findings_keep_the_order_in_which_they_first_occur() -> None:
    early, late, shared = (Finding("error", "invalid", message) for message in ("early", "late", "shared"))
    listed = merged({29: [early, shared], 30: [early, shared], 31: [shared, late]})
    assert [finding.text for finding in listed] == ["1.29, 1.30: early", "shared", "1.31: late"]


POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: addresses}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "isIP(object.data.address)"}]
"""


def test_a_policy_is_judged_by_the_kinds_and_functions_of_a_version(run: Make, write: Make) -> None:
    write("policy.yaml", POLICY)
    ran = run("validate --strict --kubernetes 1.29,1.30,1.31 policy.yaml")
    assert ran.status == 1
    lines = [line.strip() for line in unplaced(ran.out).splitlines()]
    assert '1.29: no matches for kind "ValidatingAdmissionPolicy"' in lines[1]
    assert lines[2] == "Kubernetes has this kind in admissionregistration.k8s.io/v1 since 1.30."
    assert lines[3].startswith("1.30: spec.validations[0].expression: ")
    assert "undeclared reference to 'isIP'" in lines[3]
    assert "`isIP` is for rules since Kubernetes 1.31" in lines
    assert "1.31: " not in ran.out


PODS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      resources: {requests: {cpu: "1"}}
      containers: [{name: a, image: b, lifecycle: {stopSignal: SIGTERM}}]
"""


def test_a_field_of_a_built_in_kind_is_unknown_before_it_came(run: Make, write: Make) -> None:
    write("deployment.yaml", PODS)
    ran = run("validate --strict --kubernetes 1.29,1.32,1.37 deployment.yaml")
    assert ran.status == 1
    assert [line.strip() for line in unplaced(ran.out).splitlines()[1:-1]] == [
        "1.29: spec.template.spec.resources: unknown field",
        "Kubernetes has this field since 1.32.",
        "1.29, 1.32: spec.template.spec.containers[0].lifecycle.stopSignal: unknown field",
        "Kubernetes has this field since 1.33.",
    ]
    assert run("validate --strict --kubernetes 1.37 deployment.yaml").status == 0
