"""The data of a write."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import pytest

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.api.field import required
from noxu.registry.draft import (
    ADMIT_ALL,
    NO_ENVIRONMENT,
    OPERATIONS,
    Action,
    Outcome,
    WriteEnvironment,
    WriteRequest,
    Written,
    draft_for,
)
from noxu.registry.stored_object import key_of, new_entry
from noxu.registry.trace import Note
from noxu.values import Object
from tests.registry.world import World, widget, widgets

WIDGETS: Final = widgets().storage


def test_another_attempt_keeps_what_was_there_before_the_first_stage_and_what_has_taken_time() -> None:
    outcome = Outcome(warnings=["first", "second"], sent={"name": "a"}, webhook_seconds=2, rule_seconds=1, trace=[])
    outcome.errors.append(required("a"))
    outcome.unknown.append("a")
    outcome.complaints.append("a")
    outcome.audit_annotations["a"] = "b"
    other = outcome.of_next_attempt(1)
    assert other == Outcome(warnings=["first"], sent={"name": "a"}, webhook_seconds=2, rule_seconds=1, trace=[])
    assert other.trace is outcome.trace


def test_the_caller_gets_what_the_last_attempt_has_found_in_the_lists_that_it_knows() -> None:
    outcome = Outcome(warnings=["first", "of the first attempt"], audit_annotations={"a": "b"})
    warnings, annotations = outcome.warnings, outcome.audit_annotations
    last: Any = Outcome()
    for number, found in enumerate(fields(last)):
        if found.name not in ("warnings", "audit_annotations", "sent", "trace", "notes", "calls"):
            setattr(last, found.name, number)
    last.warnings, last.audit_annotations = ["first", "of the last attempt"], {"c": "d"}
    outcome.take(last)
    assert outcome == last
    assert outcome.warnings is warnings
    assert outcome.audit_annotations is annotations


@pytest.mark.parametrize(("of_collection", "name"), [(False, "a"), (True, "")])
def test_the_name_for_admission_is_that_of_the_url(of_collection: bool, name: str) -> None:
    request = WriteRequest(Action.DELETE, WIDGETS, "default", "a", of_collection=of_collection)
    assert request.admitted_name == name


def test_operations() -> None:
    assert {action: operation for action, operation in OPERATIONS.items() if operation != "UPDATE"} == {
        Action.CREATE: "CREATE",
        Action.DELETE: "DELETE",
        Action.REVIEW: "CREATE",
        Action.ACT: "CREATE",
        Action.CONNECT: "CONNECT",
    }


def test_a_draft_without_environment_can_only_be_validated() -> None:
    with pytest.raises(AssertionError, match="it cannot use its reader"):
        _ = NO_ENVIRONMENT.reader


def test_without_plug_ins_everything_is_admitted() -> None:
    draft = draft_for(WriteRequest(Action.CREATE, WIDGETS))
    assert ADMIT_ALL.mutate(draft) is None
    assert ADMIT_ALL.validate(draft) is None


async def test_a_server_without_reviewer_refuses_reviews(world: World) -> None:
    environment: WriteEnvironment = world.environment
    with pytest.raises(ApiError, match="this server does not answer Widget"):
        await environment.reviewer(draft_for(WriteRequest(Action.REVIEW, WIDGETS)))


def test_notes_and_steps_are_kept_only_for_a_trace() -> None:
    traced, other = (
        draft_for(WriteRequest(Action.CREATE, WIDGETS), outcome=Outcome(trace=trace)) for trace in ([], None)
    )
    for draft in (traced, other):
        draft.note("a note")
        draft.record("a webhook", patch=[{"op": "add", "path": "/a", "value": 1}], seconds=0.5)
    assert (other.outcome.notes, other.outcome.trace) == ([], None)
    assert traced.outcome.notes == [Note("", "a note")]
    assert traced.outcome.trace is not None
    assert [(step.stage, step.seconds, step.patch) for step in traced.outcome.trace] == [
        ("a webhook", 0.5, [{"op": "add", "path": "/a", "value": 1}])
    ]


VALUE: Final[Object] = widget(metadata={"uid": "u", "generation": 1}, size=2)


def entry() -> Any:
    found = new_entry(key_of(WIDGETS, "default", "a"), WIDGETS, VALUE)
    found.revision = 7
    return found


def test_the_body_of_a_result() -> None:
    rows = {
        "a stored object": (Written(entry()), {**VALUE, "metadata": {**VALUE["metadata"], "resourceVersion": "7"}}),
        "a created object of a dry run": (Written(entry(), unstored_version=""), VALUE),
        "a value": (Written(None, {"status": {}}), {"status": {}}),
    }
    for name, (written, expected) in rows.items():
        assert codec.decode_stored(written.body(WIDGETS)) == expected, name
