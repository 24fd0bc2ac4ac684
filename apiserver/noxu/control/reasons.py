"""Why an object is what it became: the trace of a write as reasons, each about one field.

A trace has what each stage did (`registry.explain`); the question is about a field, or about a refusal. So every note and every
change of a step becomes a reason. `what` is one of a few words, `by` is who did it:

    pruned      spec.hihg    prune                unknown field: pruned            did you mean spec.high?
    defaulted   spec.low     default              filled in with its default: 1    spec.versions[name=v1]…low.default
    changed     spec.image   webhook tag.io                                        the value that it has set
    set         metadata.uid set_system_fields                                     by the server
    forgiven    spec.high    validate             must be at most 20               ignored: the value has not changed
    refused     spec         validate             too low                          the rule, and the values in it
    refused     (the whole)  policy sizes         … denied request: too big        its expression, and the values in it
    said        (the whole)  policy sizes         a message of admission, or a warning

The notes of a traced write have only a path and a text. The stage says which word it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from noxu.api.field import NIL
from noxu.api.json_patches import field_path, steps
from noxu.registry.explain import FORGIVEN
from noxu.values import Json, Object

What: TypeAlias = Literal["pruned", "defaulted", "changed", "set", "forgiven", "refused", "said"]

WORDS: Final[Sequence[What]] = ("refused", "forgiven", "pruned", "defaulted", "changed", "set", "said")
"""In the order in which they are listed: what is wrong comes first."""
MAX_REASONS: Final = 500
"""Of one write; an object may have more fields than can be read."""
_NOTED: Final[Mapping[str, What]] = {
    "decode": "pruned",
    "prune": "pruned",
    "retype": "pruned",
    "prune_mutated": "pruned",
    "prune_applied": "pruned",
    "default": "defaulted",
    "default_mutated": "defaulted",
    "validate": "refused",
}
"""What a note about a field means, by its stage."""
_HIDDEN: Final = ("track_managers", "keep_times")
"""Stages whose changes are those of managedFields."""
_FROM_CLIENT: Final = ("patch", "merge", "set_scale", "patch_scale", "merge_scale")
"""Stages that make what the client wants: no reason is needed for that."""
_SILENT: Final = ("persist", "refuse_unknown")
"""Stages whose notes say what others do: that a dry run stores nothing, and which fields are unknown."""
_OF_ADMISSION: Final = ("webhook ", "policy ")


def reasons(trace: Sequence[Object], status: Object | None = None) -> list[Object]:
    """The reasons in a trace (`registry.trace.as_json`), in the order of WORDS. `status`: that of a refused write."""
    found = [reason for step in trace for reason in _of_step(step)]
    forgiven = {f"{reason['path']}: {reason['message']}" for reason in found if reason["what"] == "forgiven"}
    found = [reason for reason in found if reason.get("message") not in forgiven]  # of a rule it is a warning, too
    if status is not None:
        found = _with_refusal(status, found)
    found.sort(key=lambda reason: WORDS.index(reason["what"]))
    return found[:MAX_REASONS]


def about(found: Sequence[Object], path: str) -> list[Object]:
    """Those about a field, or about what it is part of."""
    return [reason for reason in found if not reason["path"] or covers(reason["path"], path)]


def covers(above: str, path: str) -> bool:
    """Whether a path is another one, or below it."""
    return path == above or (path.startswith(above) and path[len(above)] in ".[")


def _of_step(step: Object) -> Iterator[Object]:
    stage: str = step["stage"]
    noted = set()
    for note in step.get("notes") or ():
        noted.add(note.get("path", ""))
        if stage not in _SILENT:
            yield _reason(_word(stage, note), stage, **note)
    if stage in (*_HIDDEN, *_FROM_CLIENT):
        return
    what: What = "changed" if stage.startswith(_OF_ADMISSION) else "set"
    for change in step.get("patch") or ():
        path = field_path(steps(change["path"]))
        if path not in noted and not path.startswith("metadata.managedFields"):
            yield _reason(
                what, stage, path, op=change["op"], **({"value": change["value"]} if "value" in change else {})
            )


def _word(stage: str, note: Object) -> What:
    if note.get("hint") == FORGIVEN:
        return "forgiven"
    return _NOTED.get(stage, "said") if note.get("path") else "said"


def _reason(what: What, stage: str, path: str = "", **rest: Json) -> Object:
    path = "" if path == NIL else path  # the object itself
    by = next((stage.removeprefix(kind) for kind in _OF_ADMISSION if stage.startswith(kind)), "")
    return {"what": what, "path": path, "stage": stage, **({"by": by} if by else {}), **rest}


def _with_refusal(status: Object, found: Sequence[Object]) -> list[Object]:
    """The reasons, with what the refusal says and no note of the trace does."""
    causes = [cause for cause in (status.get("details") or {}).get("causes") or () if cause.get("field")]
    refused = {reason["path"] for reason in found if reason["what"] == "refused"}
    missed = [
        _reason("refused", "", cause["field"], message=cause.get("message", ""))
        for cause in causes
        if cause["field"].removeprefix(NIL) not in refused
    ]
    if causes or refused:
        return [*found, *missed]
    message = status.get("message", "")
    noted = [reason for reason in found if _is_said(reason, message)]
    refusing = next((reason for reason in found if _refuses(reason, message)), None) or next(iter(noted), {})
    others = [reason for reason in found if reason is not refusing and reason not in noted]
    return [*others, {**_reason("refused", ""), **refusing, "what": "refused", "message": message}]


def _refuses(reason: Object, message: str) -> bool:
    """Whether it is what a webhook or a policy has said, which the refusal quotes at its end, after a name."""
    said = reason.get("message")
    return bool(
        reason["what"] == "said" and reason.get("by") and said and message.endswith(said) and reason["by"] in message
    )


def _is_said(reason: Object, message: str) -> bool:
    """Whether it is the refusal once more, as the note of a stage."""
    return reason["what"] == "said" and reason.get("message") == message
