"""Files of stages, in both forms: what they select, and what is refused."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from noxu.config import StartError
from noxu.values import Object
from noxu.workloads.kubelet.commands import CommandResult, CommandRule
from noxu.workloads.stages import own as module
from noxu.workloads.stages.fields import DocumentFaults
from noxu.workloads.stages.reading import Stages, read, read_files
from noxu.workloads.stages.stage import StageDelete, StageEvent, StageFinalizers, StagePatch, StageTarget
from noxu.workloads.stages.template_functions import PURE
from tests.rows import rows

POD: Object = {
    "metadata": {"name": "db-0", "namespace": "shop", "labels": {"app": "db"}, "annotations": {"a": "1"}},
    "spec": {"containers": [{"name": "c", "image": "postgres:17"}], "size": 3},
    "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]},
}


def own(when: str = "", do: str = "{delete: true}", more: str = "") -> str:
    condition = f", when: {{{when}}}" if when else ""
    return f"apiVersion: noxu.dev/v1\nkind: Stages\nstages:\n- {{name: s{condition}, do: {do}{more}}}\n"


def kwok(spec: str = "", selector: str = "{}", next_: str = "{delete: true}") -> str:
    return (
        "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: s}\nspec:\n  resourceRef: {kind: Pod}\n"
        f"  selector: {selector}\n  next: {next_}\n{spec}"
    )


def expression(key: str, operator: str, *values: str) -> str:
    listed = f", values: [{', '.join(values)}]" if values else ""
    return kwok(selector=f"{{matchExpressions: [{{key: '{key}', operator: {operator}{listed}}}]}}")


def parsed(text: str) -> Stages:
    faults = DocumentFaults()
    found = read(text.encode(), faults)
    assert faults == []
    return found


@rows(
    "text, expected",
    [
        (own(), True),
        (own("phase: Pending"), True),
        (own("phase: [Running, Failed]"), False),
        (own("namespace: shop, name: db-*"), True),
        (own("name: web-*"), False),
        (own('labels: "app=db,tier!=web"'), True),
        (own("labels: app=web"), False),
        (own('conditions: {Ready: "False", Other: Unknown}'), True),
        (own('conditions: {Ready: "True"}'), False),
        (own('images: ["postgres:*"]'), True),
        (own("images: nginx"), False),
        (own("expression: self.spec.size > 2"), True),
        (own("expression: self.spec.absent > 2"), False),
        (own("phase: Pending, labels: app=web"), False),
        (kwok(selector="{matchLabels: {app: db}}"), True),
        (kwok(selector="{matchLabels: {app: web}}"), False),
        (kwok(selector='{matchAnnotations: {a: "1"}}'), True),
        (kwok(selector="{matchExpressions: [{cel: {expression: self.spec.size == 3}}]}"), True),
        (kwok(selector="{matchExpressions: [{jq: {key: .spec.size, operator: In, values: ['3']}}]}"), True),
        (expression(".status.phase", "In", "Pending", "Running"), True),
        (expression(".status.phase", "NotIn", "Pending"), False),
        (expression(".metadata.deletionTimestamp", "DoesNotExist"), True),
        (expression(".metadata.deletionTimestamp", "Exists"), False),
        (expression('.status.conditions.[] | select( .type == "Ready" ) | .status', "NotIn", "'True'"), True),
        (expression(".metadata.ownerReferences.[].kind", "In", "Job"), False),
        (expression(".metadata.ownerReferences.[].kind", "NotIn", "Job"), True),
    ],
)
def test_a_stage_selects_a_pod(text: str, expected: bool) -> None:
    [stage] = parsed(text).stages
    assert stage.is_about(POD) is expected


def test_a_stage_of_ours_says_what_happens() -> None:
    do = """
      {event: {type: Warning, reason: R, message: m}, finalizers: {add: [a], remove: [b]}, patch: {metadata: {labels: {x: z}}},
      status: "phase: {{ .metadata.name }}", computed: '{"size": self.spec.size}', delete: true}"""
    [stage] = parsed(own(do=do, more=", delay: 5s..10s, resource: widgets.example.com, weight: 2")).stages
    event, finalizers, patch, status, computed, delete = stage.steps
    assert event == StageEvent("Warning", "R", "m")
    assert finalizers == StageFinalizers(["a"], ["b"])
    assert delete == StageDelete()
    rendered = [
        (each.render(POD, {}), each.root, each.subresource)
        for each in (patch, status, computed)
        if isinstance(each, StagePatch)
    ]
    assert rendered == [
        ({"metadata": {"labels": {"x": "z"}}}, "", ""),
        ({"phase": "db-0"}, "status", "status"),
        ({"size": 3}, "status", "status"),
    ]
    assert (stage.target, stage.weight.number) == (StageTarget("example.com", "widgets"), 2)
    assert (stage.delay.least.seconds, stage.delay.most.seconds) == (5.0, 10.0)


def test_a_stage_of_kwok_says_what_happens() -> None:
    next_ = """
    event: {reason: R, message: m}
    finalizers: {add: [{value: a}], empty: true}
    patches: [{subresource: status, root: status, type: json, template: '[{"op": "add", "path": "/x", "value": 1}]'}]
    statusTemplate: |
      phase: {{ .metadata.name | Quote }}
      delay: {{ range .spec.containers }}{{ .name }}{{ end }}"""
    more = "  weight: 3\n  delay: {durationMilliseconds: 1500, jitterDurationFrom: {expressionFrom: .a}}\n"
    [stage] = parsed(kwok(more, next_=next_)).stages
    event, finalizers, patch, status = stage.steps
    assert event == StageEvent("Normal", "R", "m")
    assert finalizers == StageFinalizers(["a"], [], empty=True)
    assert isinstance(patch, StagePatch)
    assert (patch.type, patch.render(POD, {})) == ("json", [{"op": "add", "path": "/x", "value": 1}])
    assert isinstance(status, StagePatch)
    assert status.render(POD, PURE) == {"phase": "db-0", "delay": "c"}
    assert (stage.target, stage.weight.number, stage.delay.least.seconds) == (StageTarget("", "Pod"), 3, 1.5)


def test_stages_of_kwok_replace_the_life_of_pods_and_ours_add_to_it() -> None:
    assert parsed(kwok()).replace_pods
    assert not parsed(own()).replace_pods
    assert parsed(own() + "replaces: true\n").replace_pods
    assert not parsed(kwok().replace("kind: Pod", "kind: Node")).replace_pods


def test_a_file_has_several_documents_and_rules_for_commands() -> None:
    commands = "exec:\n- {pods: 'web-*', command: [pg_isready, -q], stdout: ok, code: 1}\n"
    found = parsed(f"{kwok()}---\n{own()}{commands}--- # the end\n")
    assert [stage.name for stage in found.stages] == ["s", "s"]
    assert found.commands == [CommandRule("web-*", ("pg_isready", "-q"), CommandResult("ok", "", 1))]


@rows(
    "text, expected",
    [
        ("", "it has no stages"),
        ("a: b", "kind: None None is not understood: a document is noxu.dev/v1 Stages, or kwok.x-k8s.io/v1alpha1 Stage"),
        ("- a", "a document is an object"),
        (own("fase: Pending"), "stages[0].when.fase: there is no such field; did you mean phase?"),
        (own("phase: 3"), "stages[0].when.phase: it is a text, or a list of texts"),
        (own("labels: a=b=c"), "stages[0].when.labels: "),
        (own('expression: "self.x +"'), "stages[0].when.expression: "),
        (own(do="{}"), "stages[0].do: there is nothing to do"),
        (own(do="{delete: yes please}"), "stages[0].do.delete: it is true or false"),
        (own(do="{status: '{{ .a'}"), "stages[0].do.status: an action has no end"),
        (own(do="{computed: '1 +'}"), "stages[0].do.computed: "),
        (own(do="{event: {type: Bad, reason: R}}"), "stages[0].do.event.type: 'Bad' is none of Normal, Warning"),
        (own(more=", delay: soon"), "stages[0].delay: "),
        (own(more=", delay: 5s..1s"), "stages[0].delay: 5s..1s ends before it begins"),
        (own(more=", weight: -1"), "stages[0].weight: it is not negative"),
        (own() + "stagez: []\n", "stagez: there is no such field; did you mean stages?"),
        (kwok("  wait: 3\n"), "spec.wait: there is no such field"),
        (kwok(selector="{matchLabel: {a: b}}"), "spec.selector.matchLabel: there is no such field; did you mean matchLabels?"),
        (kwok().replace("  selector: {}\n", ""), "spec.selector: it is required: kwok ignores a stage without one"),
        (expression(".a | group_by(.b)", "Exists"), "spec.selector.matchExpressions[0].key: 'group_by' is not known"),
        (expression(".a", "Equals", "b"), "spec.selector.matchExpressions[0].operator: 'Equals' is none of In, NotIn"),
        (expression(".a", "In"), "spec.selector.matchExpressions[0].values: In and NotIn have values"),
        (kwok(next_="{statusTemplate: '{{ env `HOME` }}'}"), "spec.next.statusTemplate: {{ env `HOME` }}: function 'env'"),
        (kwok(next_="{statusPatchAs: {username: a}}"), "spec.next.statusPatchAs: stages write as the kubelet"),
        (kwok(next_="{patches: [{type: odd}]}"), "spec.next.patches[0].type: 'odd' is none of json, merge, strategic"),
        (kwok("  steps: [{apply: {template: a}}]\n"), "spec.steps[0].apply: stages change the object that they select"),
        (kwok("  delay: {durationMilliseconds: 5s}\n"), "spec.delay.durationMilliseconds: it is an integer"),
        (f"{own()}---\n{own('fase: a')}", "document 2: stages[0].when.fase: there is no such field"),
        ("a: [", "yaml: "),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_refused_with_its_path(text: str, expected: str) -> None:
    faults = DocumentFaults()
    read(text.encode(), faults)
    assert any(fault.startswith(expected) for fault in faults), faults


def test_a_file_that_is_wrong_does_not_start_a_server(tmp_path: Path) -> None:
    path = tmp_path / "stages.yaml"
    with pytest.raises(StartError, match=r"stages\.yaml cannot be read: No such file or directory"):
        read_files([path])
    path.write_text(own("fase: Pending", do="{delet: true}"))
    with pytest.raises(StartError) as refusal:
        read_files([path])
    assert str(refusal.value).splitlines() == [
        f"--stages {path}: stages[0].when.fase: there is no such field; did you mean phase?",
        "  stages[0].do.delet: there is no such field; did you mean delete?",
    ]


def test_the_form_in_the_documentation_of_the_module_is_understood() -> None:

    assert module.__doc__ is not None
    [stage] = parsed(textwrap.dedent(module.__doc__.partition("\n\n")[2])).stages
    assert stage.name == "database-is-slow"
