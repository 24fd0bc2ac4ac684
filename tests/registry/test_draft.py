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
    Environment,
    Outcome,
    WriteRequest,
    Written,
    draft_of,
)
from noxu.registry.reader import key_of
from noxu.registry.stored_object import new_entry
from noxu.registry.trace import Note
from noxu.values import Object
from tests.registry.world import World, widget, widgets

WIDGETS: Final = widgets().storage
KEPT: Final = {"request", "resource", "environment", "outcome", "weight", "trace", "notes", "now", "in_loop", "written"}
"""What belongs to the request or the driver, not to an attempt."""


def used_up() -> Any:
    """A draft whose fields all have another value than before the first stage."""
    draft = draft_of(WriteRequest(Action.APPLY, WIDGETS, "default", "a"))
    for found in fields(draft):
        if found.name not in KEPT:
            setattr(draft, found.name, "used")
    return draft


def test_a_restarted_draft_is_like_a_new_one() -> None:
    draft, new = used_up(), draft_of(WriteRequest(Action.APPLY, WIDGETS, "default", "a"))
    draft.restart(0)
    values = {found.name: getattr(draft, found.name) for found in fields(draft) if found.name not in KEPT}
    assert values == {name: getattr(new, name) for name in values}


def test_a_restart_keeps_what_was_there_before_the_first_stage() -> None:
    outcome = Outcome(warnings=["first"])
    draft = draft_of(WriteRequest(Action.CREATE, WIDGETS, weight=5), outcome=outcome)
    draft.weight = 99
    outcome.warnings.append("second")
    outcome.errors.append(required("a"))
    outcome.unknown.append("a")
    outcome.complaints.append("a")
    outcome.audit_annotations["a"] = "b"
    draft.restart(1)
    assert draft.outcome is outcome
    assert outcome == Outcome(warnings=["first"])
    assert draft.weight == 99  # the object is still large


@pytest.mark.parametrize(("of_collection", "name"), [(False, "a"), (True, "")])
def test_the_name_for_admission_is_that_of_the_url(of_collection: bool, name: str) -> None:
    draft = draft_of(WriteRequest(Action.DELETE, WIDGETS, "default", "a", of_collection=of_collection))
    assert draft.name == name
    draft.name = "generated"
    draft.restart(0)
    assert draft.name == name


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
    draft = draft_of(WriteRequest(Action.CREATE, WIDGETS))
    assert ADMIT_ALL.mutate(draft) is None
    assert ADMIT_ALL.validate(draft) is None


async def test_a_server_without_reviewer_refuses_reviews(world: World) -> None:
    environment: Environment = world.environment
    with pytest.raises(ApiError, match="this server does not answer Widget"):
        await environment.reviewer(draft_of(WriteRequest(Action.REVIEW, WIDGETS)))


def test_notes_and_steps_are_kept_only_for_a_trace() -> None:
    traced, other = (draft_of(WriteRequest(Action.CREATE, WIDGETS), trace=trace) for trace in ([], None))
    for draft in (traced, other):
        draft.note("a note")
        draft.record("a webhook", patch=[{"op": "add", "path": "/a", "value": 1}], seconds=0.5)
    assert (other.notes, other.trace) == ([], None)
    assert traced.notes == [Note("", "a note")]
    assert traced.trace is not None
    assert [(step.stage, step.seconds, step.patch) for step in traced.trace] == [
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
