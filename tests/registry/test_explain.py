"""Traces of writes: the notes of each stage. tests/http/test_traces.py has whole requests."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest

from noxu.api.errors import ApiError
from noxu.registry import explain
from noxu.registry import trace as traces
from noxu.registry.draft import Action, Body, Draft, Options, Outcome, WriteRequest
from noxu.registry.trace import Note, Step, Trace
from noxu.values import Object
from tests.registry.world import Hooks, World, error_of, version, widget, widgets, world_of

SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-validations": [{"rule": "self.low <= self.high", "message": "too low"}],
            "properties": {
                "low": {"type": "integer", "default": 1},
                "high": {"type": "integer", "default": 9, "maximum": 20},
                "image": {"type": "object", "properties": {"pullPolicy": {"type": "string"}}},
                "note": {"type": "string", "nullable": True},
                "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
    },
}
DEFAULT: Final = "spec.versions[name=v1].schema.openAPIV3Schema.properties.spec.properties"


class Row(NamedTuple):
    spec: Object
    stage: str
    notes: list[Note]


ROWS: Final[dict[str, Row]] = {
    "a misspelt field": Row(
        {"hihg": 3}, "prune", [Note("spec.hihg", "unknown field: pruned", "did you mean spec.high?")]
    ),
    "a field at the wrong level": Row(
        {"pullPolicy": "Always"},
        "prune",
        [Note("spec.pullPolicy", "unknown field: pruned", "did you mean spec.image.pullPolicy?")],
    ),
    "an unknown field": Row(
        {"zzz": 1},
        "prune",
        [Note("spec.zzz", "unknown field: pruned", "no field of that name is described below spec")],
    ),
    "a null": Row({"image": None}, "prune", [Note("spec.image", "null is dropped: the field is not nullable")]),
    "a null that is kept": Row({"note": None}, "prune", []),
    "an unknown field that is kept": Row({"anything": {"a": 1}}, "prune", []),
    "a default": Row(
        {"low": 3},
        "default",
        [Note("spec.high", "filled in with its default: 9", f"{DEFAULT}.high.default")],
    ),
}


def step_of(trace: Trace, stage: str) -> Step:
    [found] = [step for step in trace if step.stage == stage]
    return found


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_the_notes_of_a_stage(row: Row) -> None:
    async with world_of(defined=widgets(version(schema=SCHEMA))) as world:
        trace: Trace = []
        await world.create(widget(**row.spec), trace=trace, options=Options(field_validation="Ignore"))
        assert [
            note for note in step_of(trace, row.stage).notes if row.stage == "prune" or note.path != "spec.low"
        ] == (row.notes)


async def test_a_top_level_field_that_is_unknown() -> None:
    async with world_of(defined=widgets(version(schema=SCHEMA))) as world:
        trace: Trace = []
        await world.create({**widget(), "zzz": 1}, trace=trace, options=Options(field_validation="Ignore"))
        assert step_of(trace, "prune").notes == [
            Note("zzz", "unknown field: pruned", "the schema describes no such field")
        ]


REFUSED: Final[dict[str, tuple[Object, str, str, dict[str, str]]]] = {
    # the spec, then the path, the rule and the values of the note
    "an invalid value": ({"high": 30}, "spec.high", "", {}),
    "a rule": ({"low": 5, "high": 3}, "spec", "self.low <= self.high", {"self.low": "5", "self.high": "3"}),
}


@pytest.mark.parametrize(("spec", "path", "rule", "values"), REFUSED.values(), ids=REFUSED)
async def test_the_notes_of_a_refusal(spec: Object, path: str, rule: str, values: dict[str, str]) -> None:
    async with world_of(defined=widgets(version(schema=SCHEMA))) as world:
        trace: Trace = []
        assert await error_of(world.create(widget(**spec), trace=trace))
        [note] = trace[-1].notes
        assert trace[-1].stage == "validate"
        assert (note.path, note.rule) == (path, rule)
        assert values.items() <= note.values.items()


async def test_what_is_known_about_a_refusal_without_a_trace() -> None:
    async with world_of(defined=widgets(version(schema=SCHEMA))) as world:
        outcome = Outcome()
        request = WriteRequest(
            Action.CREATE,
            world.served_resources.current.by_path["example.com", "v1", "widgets"],
            "default",
            body=Body(widget(low=5, high=3, noet=1, anything={"a": 1})),
        )
        assert await error_of(world.writer.write(request, outcome))
        pruned, ruled = explain.refusal(request.resource, outcome)
        assert pruned == Note("spec.noet", "unknown field: pruned", "did you mean spec.note?")
        assert (ruled.path, ruled.rule) == ("spec", "self.low <= self.high")
        assert ruled.values == {"self.low": "5", "self.high": "3"}
        assert next(explain.refusal(None, outcome)) == Note("spec.noet", "unknown field: pruned")  # a built-in kind


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("spec.hihg", "did you mean spec.high?"),
        ("spec.image.pulPolicy", "did you mean spec.image.pullPolicy?"),
        ("spec.zzz[0].a", "no field of that name is described below spec.zzz[0]"),
    ],
)
def test_advice_about_a_path(path: str, advice: str) -> None:
    schema = widgets(version(schema=SCHEMA)).storage.schema
    assert schema is not None
    assert explain.advice(schema, path) == advice
    assert explain.meant(schema, path) == (advice.removeprefix("did you mean ")[:-1] if "?" in advice else "")


async def test_errors_that_ratcheting_ignores_are_noted() -> None:
    loose = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    async with world_of(defined=widgets(version(schema=loose))) as world:
        await world.create(widget(size=-1))
        tight = widgets()
        world.served_resources.current = world.served_resources.current.with_definition("widgets.example.com", tight)
        trace: Trace = []
        patch = {"spec": {"color": "red"}}
        await world.patch(patch, trace=trace, resource=tight.storage)
        [note] = step_of(trace, "validate").notes
        assert (note.path, note.hint) == ("spec.size", "ignored: the value has not changed (ratcheting)")


async def test_a_rule_that_ratcheting_ignores_is_noted_with_its_values() -> None:
    spec: Object = {"type": "object", "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}}}
    ruled = {**spec, "x-kubernetes-validations": [{"rule": "self.low <= self.high"}]}
    loose, tight = (widgets(version(schema={"type": "object", "properties": {"spec": each}})) for each in (spec, ruled))
    async with world_of(defined=loose) as world:
        await world.create(widget(low=5, high=3))
        world.served_resources.current = world.served_resources.current.with_definition("widgets.example.com", tight)
        trace: Trace = []
        patch = {"metadata": {"labels": {"color": "red"}}}
        await world.patch(patch, trace=trace, resource=tight.storage)
        note, warned = step_of(trace, "validate").notes
        assert warned == Note("", f"spec: {note.message}")
        assert (note.path, note.rule, note.hint) == ("spec", "self.low <= self.high", explain.FORGIVEN)
        assert note.values == {"self.low": "5", "self.high": "3"}


async def test_a_refusal_by_another_stage_is_noted(world: World) -> None:
    def refuse(draft: Draft) -> None:
        raise ApiError(403, "no", "Forbidden")

    world.use(admission=Hooks(refuse))
    trace: Trace = []
    assert await error_of(world.create(trace=trace)) == "no"
    assert trace[-1] == Step("mutate", trace[-1].seconds, notes=[Note("", "no")], patch=[])


async def test_warnings_are_noted_at_their_stage(world: World) -> None:
    trace: Trace = []
    await world.create(widget(sizee=1), trace=trace)
    assert [(step.stage, note.message) for step in trace for note in step.notes if "sizee" in note.message] == [
        ("refuse_unknown", 'unknown field "spec.sizee"')
    ]


async def test_the_steps_of_webhooks_come_after_their_stage_and_have_its_patch(world: World) -> None:
    patch = [{"op": "add", "path": "/spec/color", "value": "red"}]

    def mutate(draft: Draft) -> None:
        draft.new["spec"]["color"], draft.mutated = "red", True
        draft.record("the webhook", patch=patch)

    world.use(admission=Hooks(mutate))
    trace: Trace = []
    await world.create(trace=trace)
    names = [step.stage for step in trace]
    place = names.index("mutate")
    assert names[place : place + 3] == ["mutate", "the webhook", "prune_mutated"]
    assert (trace[place].patch, trace[place + 1].patch) == ([], patch)


@pytest.mark.parametrize(("plural", "shown"), [("configmaps", True), ("secrets", False)])
async def test_a_patch_of_a_secret_shows_no_values(world: World, plural: str, shown: bool) -> None:
    resource = world.resource(plural)
    value = {"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": "a"}, "data": {"k": "aGVsbG8="}}
    await world.create(value, resource=resource)
    trace: Trace = []
    await world.patch({"data": {"k": "d29ybGQ="}}, resource=resource, trace=trace)
    assert ("d29ybGQ=" in str(traces.as_json(trace))) is shown
    changes: list[Any] = list(step_of(trace, "patch").patch)
    assert [change["path"] for change in changes] == ["/data/k"]


def test_a_trace_as_json_has_no_empty_fields() -> None:
    rule = Note("spec", "too low", rule="self.low <= self.high", values={"self.low": "5"})
    trace = [
        Step("decode", 0.0012345),
        Step("validate", 1.0, [{"op": "remove", "path": "/a"}], [Note("", "why"), rule]),
    ]
    assert traces.as_json(trace) == [
        {"stage": "decode", "milliseconds": 1.234},
        {
            "stage": "validate",
            "milliseconds": 1000.0,
            "patch": [{"op": "remove", "path": "/a"}],
            "notes": [
                {"message": "why"},
                {"path": "spec", "message": "too low", "rule": "self.low <= self.high", "values": {"self.low": "5"}},
            ],
        },
    ]
