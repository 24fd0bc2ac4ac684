"""Noxu's own form of stages: a document `kind: Stages`.

apiVersion: noxu.dev/v1
kind: Stages
replaces: false                     # true: the pods of this server have no other life than the stages
stages:
- name: database-is-slow
  resource: pods                    # or nodes, widgets.example.com; without it: pods
  when:                             # all of it; without it: always
    namespace: shop                 # * stands for any text, here and in names and images
    name: db-*
    phase: Pending                  # or several: [Pending, Running]
    labels: app=db,tier!=web        # a label selector
    conditions: {Ready: "False"}
    images: ["postgres:*"]          # of one of its containers
    expression: self.spec.size > 3  # CEL
  delay: 5s                         # object time, or a range: 5s..10s
  weight: 1                         # among those that select the same object
  do:                               # at least one
    event: {type: Warning, reason: Slow, message: it takes long}
    finalizers: {add: [a/b], remove: [c/d]}
    patch: {metadata: {labels: {slow: "yes"}}}          # a merge patch
    status: {phase: Failed}         # one of the status; or a text: a template as those of kwok
    computed: '{"size": self.spec.size}'                # one of the status, in CEL
    delete: true
exec:                               # what commands in pods answer
- {pods: "web-*", command: [pg_isready], stdout: "", stderr: "", code: 0}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from noxu.api.names import is_like
from noxu.api.selectors import parse_labels
from noxu.go import yaml
from noxu.values import Json, Object
from noxu.workloads.kubelet.behaviours import seconds_of
from noxu.workloads.kubelet.commands import CommandResult, CommandRule
from noxu.workloads.pods import condition, phase
from noxu.workloads.stages.conditions import Computed, expression
from noxu.workloads.stages.fields import DocumentFaults, DocumentFields
from noxu.workloads.stages.stage import (
    Changing,
    Delay,
    Selects,
    Stage,
    StageDelete,
    StageEvent,
    StageFinalizers,
    StagePatch,
    StageStep,
    StageTarget,
    Weight,
    from_template,
)
from noxu.workloads.stages.template_functions import NAMES
from noxu.workloads.stages.templates import Function, GoTemplate

VERSION: Final = "noxu.dev/v1"
KIND: Final = "Stages"
_EVENTS: Final = ("Normal", "Warning")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


def read(value: Object, faults: DocumentFaults) -> tuple[list[Stage], list[CommandRule]]:
    """The stages and the rules for commands of a document, which are of no use if there are faults."""
    document = DocumentFields(value, "", faults)
    for name in ("apiVersion", "kind", "metadata"):
        document.take(name)
    replaces = document.boolean("replaces")
    stages = [_stage(item, replaces=replaces) for item in document.items("stages")]
    commands = [command_rule(item) for item in document.items("exec")]
    document.end()
    return stages, commands


def _stage(fields: DocumentFields, *, replaces: bool) -> Stage:
    name = fields.required("name")
    plural, _, group = fields.text("resource", "pods").partition(".")
    stage = Stage(
        name,
        StageTarget(group, plural),
        list(_selectors(fields)),
        fields.parsed("delay", _delay, Delay()),
        list(_steps(fields)),
        Weight(fields.integer("weight", 0) or 0),
        replaces,
    )
    fields.end()
    return stage


def _delay(text: str) -> Delay:
    least, dots, most = text.partition("..")
    seconds = seconds_of(least)
    if not dots:
        return Delay(Changing(seconds))
    if seconds_of(most) < seconds:
        raise ValueError(f"{text} ends before it begins")
    return Delay(Changing(seconds), Changing(seconds_of(most)))


# -- when -------------------------------------------------------------------------------------------------------------


def _selectors(fields: DocumentFields) -> Iterator[Selects]:
    when = fields.inner("when")
    if when is None:
        return
    for name in ("namespace", "name"):
        if pattern := when.text(name):
            yield _named(name, pattern)
    if phases := when.words("phase"):
        yield lambda value: phase(value) in phases
    if conditions := when.texts("conditions"):
        yield _in_conditions(conditions)
    if images := when.words("images"):
        yield lambda value: any(is_like(pattern, image) for image in _images(value) for pattern in images)
    for name, read in (("labels", _labels), ("expression", expression)):
        if (selects := when.parsed(name, read, None)) is not None:
            yield selects
    when.end()


def _named(field: str, pattern: str) -> Selects:
    return lambda value: is_like(pattern, value["metadata"].get(field, ""))


def _in_conditions(wanted: Mapping[str, str]) -> Selects:
    """One that is not there is Unknown."""

    def selects(value: Object) -> bool:
        return all((condition(value, kind) or {}).get("status", "Unknown") == status for kind, status in wanted.items())

    return selects


def _labels(text: str) -> Selects:
    selector = parse_labels(text)
    return lambda value: selector.matches(value["metadata"].get("labels") or {})


def _images(value: Object) -> Iterator[str]:
    for name in _CONTAINERS:
        for container in (value.get("spec") or {}).get(name) or ():
            yield str(container.get("image", ""))


# -- do ---------------------------------------------------------------------------------------------------------------


def _steps(fields: DocumentFields) -> Iterator[StageStep]:
    do = fields.inner("do")
    if do is None:
        fields.faults.add(fields.place("do"), "it is required")
        return
    found = list(_done(do))
    do.end()
    if not found and not do.faults:
        do.faults.add(do.path, "there is nothing to do: event, finalizers, patch, status, computed or delete")
    yield from found


def _done(do: DocumentFields) -> Iterator[StageStep]:
    if (event := do.inner("event")) is not None:
        type_ = event.chosen("type", _EVENTS, "Normal")
        yield StageEvent("Warning" if type_ == "Warning" else "Normal", event.required("reason"), event.text("message"))
        event.end()
    if (finalizers := do.inner("finalizers")) is not None:
        yield StageFinalizers(finalizers.words("add"), finalizers.words("remove"), empty=finalizers.boolean("empty"))
        finalizers.end()
    if (patch := do.take("patch")) is not None:
        if not isinstance(patch, dict):
            do.faults.add(do.place("patch"), "it is an object: a merge patch")
        yield StagePatch(_same(patch), "merge")
    if (status := do.take("status")) is not None:
        yield StagePatch(_of_status(status, do), "" if isinstance(status, str) else "merge", "status", "status")
    if (computed := do.parsed("computed", Computed, None)) is not None:
        yield StagePatch(computed, "merge", "status", "status")
    if do.boolean("delete"):
        yield StageDelete()


def _of_status(status: Json, do: DocumentFields) -> Callable[[Object, Mapping[str, Function]], object]:
    if isinstance(status, dict):
        return _same(status)
    if not isinstance(status, str):
        do.faults.add(do.place("status"), "it is an object, or a template")
        return _same({})
    template = do.faults.read(do.place("status"), _template, status, _template(""))
    return from_template(template, lambda text: yaml.read(text).value)


def _template(text: str) -> GoTemplate:
    return GoTemplate(text, NAMES)


def _same(patch: Json) -> Callable[[Object, Mapping[str, Function]], object]:
    return lambda _about, _functions: patch


# -- commands ---------------------------------------------------------------------------------------------------------


def command_rule(fields: DocumentFields) -> CommandRule:
    """What a command in pods answers."""
    code = fields.integer("code", 0) or 0
    result = CommandResult(fields.text("stdout"), fields.text("stderr"), code)
    command: Sequence[str] = fields.words("command")
    rule = CommandRule(fields.required("pods"), tuple(command), result, exact=fields.boolean("exact"))
    fields.end()
    return rule
