"""Findings: what the commands say about documents, each with its place in a file.

A `Finding` is about one field. A `Checked` is a document with its result and findings. All commands have the same exit
statuses: 0 without errors, 1 with errors, and 2 if an input cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

from noxu.api.field import NIL, ROOT, FieldError, Path
from noxu.crd.lint import as_written
from noxu.manifests.documents import Document, is_crd
from noxu.manifests.positions import Position
from noxu.manifests.wording import Said, plain, without_rule
from noxu.schema.narrowing import Narrowing
from noxu.values import Json, Object

Level = Literal["error", "warning"]
Result = Literal["valid", "refused", "skipped", "unreadable"]
Verb = Literal["", "apply", "replace"]
"""The command of kubectl that sends an update; "" for an object that is new."""
FOUND: Final = 1
UNREADABLE: Final = 2


class Finding(NamedTuple):
    """An error or a warning. `rule` is the kind of finding; `advice` says what to do; `position` is in the document's file."""

    level: Level
    rule: str
    message: str
    field: Path = ROOT
    advice: str = ""
    position: Position | None = None

    @property
    def text(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class Checked(NamedTuple):
    """A document with its result. `title` names its object, and is "" if there is none.

    `update`: the command of kubectl with which the object updates one that exists, "" if it is new.
    """

    document: Document
    title: str
    result: Result
    findings: Sequence[Finding] = ()
    update: Verb = ""

    @property
    def has_errors(self) -> bool:
        return any(finding.level == "error" for finding in self.findings)


def exit_status(checked: Iterable[Checked]) -> int:
    """Exit status 0: no errors; 1: errors; 2: an input cannot be read."""
    found = 0
    for each in checked:
        if each.result == "unreadable":
            return UNREADABLE
        found = FOUND if each.has_errors else found
    return found


def finding(document: Document, level: Level, rule: str, message: str, field: Path = ROOT, advice: str = "") -> Finding:
    """A finding at the position of a field."""
    field = written_field(document, field)
    return Finding(level, rule, message, field, advice, document.position(field))


def written_field(document: Document, field: Path) -> Path:
    """The path of a field as the document has it."""
    return as_written(document.value, field) if is_crd(document.value) else field


def unreadable(document: Document) -> list[Finding]:
    """Why a document cannot be read."""
    return [_said(document, "error", "unreadable", said) for said in plain(document.error)]


def of_errors(
    document: Document, errors: Iterable[FieldError], advise: Callable[[FieldError], str] = lambda _: ""
) -> list[Finding]:
    """Field errors as findings, with advice."""
    return [_field_finding(document, error.reason, error.field, error.body, advise(error)) for error in errors]


def of_status(document: Document, status: Object) -> list[Finding]:
    """The findings in the Status of a refusal: its field errors one by one, or its message."""
    causes = (status.get("details") or {}).get("causes") if status.get("reason") == "Invalid" else None
    if causes and all("field" in cause for cause in causes):  # the denial of a policy names no field
        return [_of_cause(document, cause) for cause in causes]
    rule = _RULES_OF_REASONS.get(status.get("reason", ""), "refused")
    said = plain(status.get("message") or "refused")
    return list(dict.fromkeys(_said(document, "error", rule, each) for each in said))


def _of_cause(document: Document, cause: Object) -> Finding:
    field = "" if cause["field"] == NIL else cause["field"]
    return _field_finding(document, cause.get("reason", ""), field, cause["message"])


def _field_finding(document: Document, reason: str, field: Path, message: str, advice: str = "") -> Finding:
    [said, *_] = plain(message.removeprefix("Invalid value: "))
    if said.field or not field:  # the message of a decoder names the field itself
        return _said(document, "error", rule_of(reason), said)._replace(advice=advice)
    text = without_rule(message).replace(NIL, "null")
    return finding(document, "error", rule_of(reason), text, field, advice)


def of_warnings(document: Document, warnings: Iterable[str]) -> list[Finding]:
    """The warnings of a server as findings, each once: a key that is repeated in a YAML anchor is reported for each alias."""
    return list(
        dict.fromkeys(_said(document, "warning", "warning", said) for warning in warnings for said in plain(warning))
    )


def of_upgrade(
    document: Document, narrowings: Iterable[Narrowing], errors: Iterable[Finding], level: Level = "warning"
) -> list[Finding]:
    """What a CRD no longer serves, keeps or accepts, except for the fields that have errors."""
    fields = {each.field for each in errors}
    found = (finding(document, level, each.rule, each.message, each.path) for each in narrowings)
    return [each for each in found if each.field not in fields]


def rule_of(reason: str) -> str:
    """The rule of a field error's reason: `FieldValueNotSupported` → `not-supported`."""
    name = reason.removeprefix("FieldValue") or "invalid"
    return "".join(f"-{char.lower()}" if char.isupper() else char for char in name).lstrip("-")


_RULES_OF_REASONS: Final = {"Forbidden": "forbidden", "Invalid": "invalid", "RequestEntityTooLarge": "too-large"}


def _said(document: Document, level: Level, rule: str, said: Said) -> Finding:
    if said.text == "unknown field":
        rule = "unknown-field"
    elif "is repeated" in said.text:
        rule = "duplicate-key"
    field = written_field(document, said.in_object(document.value))
    return Finding(level, rule, said.text, field, "", _line(document, said) or document.position(field))


def _line(document: Document, said: Said) -> Position | None:
    """Where the key is that a message is about by its line; None if it names no line."""
    if not said.line or document.text is None:
        return None
    line = said.line + document.text.first_line - 1  # of the value, which follows the key
    before = [position for position in document.text.duplicates if position.line <= line]
    return max(before, default=Position(line, 1))


def plain_values(found: Finding) -> list[Json]:
    """A finding as JSON that `from_plain` reads."""
    return [*found[:-1], None if found.position is None else list(found.position)]


def from_plain(values: Json) -> Finding:
    """What `plain_values` has made. Raises TypeError, ValueError for anything else."""
    level, rule, message, field, advice, position = values
    return Finding(level, rule, message, field, advice, None if position is None else Position(*position))


def place_as_json(document: Document) -> Object:
    line, column = document.position() or (None, None)
    return {"file": document.file, "document": document.number, "line": line, "column": column}


def as_json(findings: Iterable[Finding]) -> list[Json]:
    return [_as_json(each) for each in findings]


def _as_json(each: Finding) -> Object:
    line, column = each.position or (None, None)
    return {
        "level": each.level,
        "rule": each.rule,
        "field": each.field,
        "message": each.message,
        "advice": each.advice,
        "line": line,
        "column": column,
    }
