"""The trace of a write: one `Step` for each stage, with the JSON patch of its changes and explanatory notes.

`registry.explain` creates traces; `http.traces` and `noxu explain-write` show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from noxu.registry.resource import Resource
from noxu.values import Object, copy


class Note(NamedTuple):
    """An explanation about one field, or about the whole object if `path` is empty.

    `hint` is advice. `rule` and `values` are the failed CEL rule and the values of its variables.
    """

    path: str
    message: str
    hint: str = ""
    rule: str = ""
    values: dict[str, str] = {}  # noqa: RUF012 - never changed


class Step(NamedTuple):
    """The work of one stage. `patch` transforms the object before the stage into the object after it."""

    stage: str
    seconds: float = 0.0
    patch: Sequence[Object] = ()
    notes: Sequence[Note] = ()


Trace = list[Step]


class HookCall(NamedTuple):
    """A call of an admission webhook, or of a function in its place. `message`: why it has failed or refused, "" if it has not.

    `changes`: of the patch that it has answered.
    """

    webhook: str
    seconds: float
    message: str
    changes: int


_SECRETS: Final = ("", "secrets")


def has_secrets(resource: Resource) -> bool:
    """Whether values in its objects are secret: those of Secrets."""
    return (resource.group, resource.plural) == _SECRETS


def shown_patch(resource: Resource, patch: Sequence[Object]) -> list[Object]:
    """The copy of a patch for a trace, because later stages change the values; for a Secret without values."""
    if not has_secrets(resource):
        copied: list[Object] = copy(list(patch))
        return copied
    return [{name: item for name, item in change.items() if name != "value"} for change in patch]


def as_json(trace: Trace) -> list[Object]:
    """Steps as JSON, without empty fields."""
    return [_step_as_json(step) for step in trace]


def _step_as_json(step: Step) -> Object:
    value: Object = {"stage": step.stage, "milliseconds": round(step.seconds * 1000, 3)}
    if step.patch:
        value["patch"] = list(step.patch)
    if step.notes:
        value["notes"] = [{name: item for name, item in note._asdict().items() if item} for note in step.notes]
    return value
