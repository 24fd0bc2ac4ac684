"""The documents that a command checks, and its findings about them, each with its place in a file.

A `Finding` is about one field. A `Checked` is a document with its result and findings, a `DocumentOutcome` is the
outcome of its write. All commands have the same exit statuses: 0 without errors, 1 with errors, and 2 if an input
cannot be read.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

from noxu.api.errors import ApiError
from noxu.api.field import NIL, ROOT, FieldError
from noxu.api.field import Path as FieldPath
from noxu.crd.lint import as_written
from noxu.features import Features
from noxu.manifests.documents import CRD, STDIN, Document, Split, contents_of, is_crd, log, read_paths, split
from noxu.manifests.positions import Position
from noxu.manifests.wording import Said, plain, without_rule
from noxu.releases import listed, named
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
    field: FieldPath = ROOT
    advice: str = ""
    position: Position | None = None
    releases: tuple[int, ...] = ()
    """Those of Kubernetes that have it, if others that were asked do not."""

    @property
    def text(self) -> str:
        said = f"{self.field}: {self.message}" if self.field else self.message
        return f"{listed(self.releases)}: {said}" if self.releases else said


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
    status = 0
    for outcome in checked:
        if outcome.result == "unreadable":
            return UNREADABLE
        status = FOUND if outcome.has_errors else status
    return status


def finding(
    document: Document, level: Level, rule: str, message: str, field: FieldPath = ROOT, advice: str = ""
) -> Finding:
    """A finding at the position of a field."""
    field = written_field(document, field)
    return Finding(level, rule, message, field, advice, document.position(field))


def written_field(document: Document, field: FieldPath) -> FieldPath:
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
    return list(dict.fromkeys(_said(document, "error", rule, complaint) for complaint in said))


def _of_cause(document: Document, cause: Object) -> Finding:
    field = "" if cause["field"] == NIL else cause["field"]
    return _field_finding(document, cause.get("reason", ""), field, cause["message"])


def _field_finding(document: Document, reason: str, field: FieldPath, message: str, advice: str = "") -> Finding:
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
    fields = {error.field for error in errors}
    reported = (finding(document, level, narrowing.rule, narrowing.message, narrowing.path) for narrowing in narrowings)
    return [item for item in reported if item.field not in fields]


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


def plain_values(shown: Finding) -> list[Json]:
    """A finding as JSON that `from_plain` reads."""
    return [*shown[:5], None if shown.position is None else list(shown.position)]


def from_plain(values: Json) -> Finding:
    """What `plain_values` has made. Raises TypeError, ValueError for anything else."""
    level, rule, message, field, advice, position = values
    return Finding(level, rule, message, field, advice, None if position is None else Position(*position))


def place_as_json(document: Document) -> Object:
    line, column = document.position() or (None, None)
    return {"file": document.file, "document": document.number, "line": line, "column": column}


def as_json(findings: Iterable[Finding]) -> list[Json]:
    return [_as_json(item) for item in findings]


def _as_json(shown: Finding) -> Object:
    line, column = shown.position or (None, None)
    return {
        "level": shown.level,
        "rule": shown.rule,
        "field": shown.field,
        "message": shown.message,
        "advice": shown.advice,
        "line": line,
        "column": column,
        **({"kubernetes": [*map(named, shown.releases)]} if shown.releases else {}),
    }


# -- the documents that a command checks -------------------------------------------------------------------------------


EMPTY: Final = "contains no object; --allow-empty allows that"
_POLICIES: Final = "admissionregistration.k8s.io/"


def read(options: argparse.Namespace, split: Split = split) -> list[Document]:
    """The documents of all paths. What cannot be read, or has no document, is a document with an error."""
    documents: list[Document] = []
    for path in options.files:
        of_path = list(read_paths([path], partial(contents_of, split=split), options.command))
        if not of_path and not options.allow_empty:
            of_path = [Document({}, "stdin" if str(path) == STDIN else str(path), 0, error=EMPTY)]
        documents += of_path
    return documents


def former(paths: Iterable[Path], split: Split = split) -> list[Document]:
    """The documents of `--old` that can be read. The others are named in warnings: a branch may be the first to have them."""
    readable = []
    for document in read_paths(paths, partial(contents_of, split=split)):
        if document.error:
            said = "; ".join(complaint.text for complaint in plain(document.error))
            log.warning("--old: nothing is compared with %s: %s", document.place(), said)
        else:
            readable.append(document)
    return readable


def decided(options: argparse.Namespace, document: Document) -> Checked | None:
    """The result that is certain before a document is checked: it is unreadable, or of a kind to skip or to reject."""
    if document.error:
        return Checked(document, "", "unreadable", unreadable(document))
    names = kind_names(document)
    if names & options.reject:
        why = f"the kind {document.kind} is rejected, as --reject says"
        rejected = finding(document, "error", "rejected-kind", why, "kind")
        return Checked(document, title(document), "refused", [rejected])
    return Checked(document, title(document), "skipped") if names & options.skip else None


def nothing(paths: Iterable[Path], why: str) -> Checked:
    """The result if files have nothing to check."""
    document = Document({}, ", ".join(map(str, paths)), 0, error=f"{why}; --allow-empty allows that")
    return Checked(document, "", "unreadable", unreadable(document))


def kind_names(document: Document) -> frozenset[str]:
    """The names by which options select the kind of a document: alone, and with its version."""
    return frozenset((document.kind, f"{document.value.get('apiVersion')}/{document.kind}"))


def title(document: Document, namespace: str | None = None) -> str:
    """`Widget attic/large`. `namespace` is the one in which the object is written (default: the one it names)."""
    namespace = document.namespace if namespace is None else namespace
    name = f"{namespace}/{document.name}" if namespace and document.name else document.name
    return f"{document.kind} {name}".rstrip()


Name = tuple[str, str, str, str]


def name_of(document: Document) -> Name:
    """What distinguishes objects: group, kind, namespace and name."""
    group = str(document.value.get("apiVersion") or "").rpartition("/")[0]
    namespace = "" if document.namespace == "default" else document.namespace
    return group, document.kind, namespace, document.name


def rounds(documents: Iterable[Document]) -> list[list[Document]]:
    """The documents in rounds, so that objects of one name are in the same round only if they are in the same file.

    A file is in the first round in which no other file has an object of the same name:

        a.yaml: A, B    b.yaml: C    c.yaml: B, D    →    [a.yaml, b.yaml], [c.yaml]
    """
    files: dict[str, list[Document]] = {}
    for document in documents:
        files.setdefault(document.file, []).append(document)
    planned: list[list[Document]] = []
    taken: list[set[Name]] = []
    for members in files.values():
        names = {name_of(document) for document in members if document.name}
        n = next((n for n, others in enumerate(taken) if not others & names), len(planned))
        if n == len(planned):
            planned.append([])
            taken.append(set())
        planned[n] += members
        taken[n] |= names
    return planned


def shared_with(members: Iterable[Document], documents: Iterable[Document]) -> list[Document]:
    """The CRDs and policies of other rounds that a round needs: of each name the first, unless the round has it."""
    names = {name_of(document) for document in members}
    shared = []
    for document in documents:
        is_shared = document.kind == CRD or str(document.value.get("apiVersion")).startswith(_POLICIES)
        if is_shared and name_of(document) not in names:
            names.add(name_of(document))
            shared.append(document)
    return shared


# -- the results of writing objects ------------------------------------------------------------------------------------


class WriteRules(NamedTuple):
    """How objects are written. `strict`: refuse unknown fields. `ignore_unknown`: skip objects of kinds that are not served."""

    strict: bool = False
    features: Features = Features()
    ignore_unknown: bool = False


class DocumentOutcome(NamedTuple):
    """The result for one object. `error` is the error with which a server refuses it.

    `meant` are the paths of unknown fields, with advice about the fields that were probably meant. `update`: the command of
    kubectl with which the object updates one that exists. `more`: with unknown or repeated fields, the error for which the
    object would be refused without them. `narrowings`: of a CRD that updates another one.
    """

    document: Document
    namespace: str
    result: Result
    error: ApiError | None = None
    warnings: Sequence[str] = ()
    certain: Sequence[Finding] = ()
    """The findings of an object that was not written."""
    meant: Mapping[str, str] = {}
    update: Verb = ""
    more: ApiError | None = None
    narrowings: Sequence[Narrowing] = ()

    @property
    def checked(self) -> Checked:
        if self.result == "unreadable":
            return Checked(self.document, "", self.result, self.certain)
        refusals = [refusal for refusal in (self.error, self.more) if refusal is not None]
        errors = [finding for refusal in refusals for finding in of_status(self.document, refusal.status)]
        warnings = of_warnings(self.document, self.warnings)
        named = title(self.document, self.namespace)
        listed = [*self.certain, *errors, *warnings, *of_upgrade(self.document, self.narrowings, errors)]
        if self.meant:
            listed = [item._replace(advice=item.advice or self.meant.get(item.field, "")) for item in listed]
        return Checked(self.document, named, self.result, listed, self.update)


def outcome_as_json(outcome: DocumentOutcome) -> Object:
    """An outcome without its document."""
    return {
        "namespace": outcome.namespace,
        "result": outcome.result,
        "error": _error_as_json(outcome.error),
        "more": _error_as_json(outcome.more),
        "warnings": list(outcome.warnings),
        "meant": dict(outcome.meant),
        "update": outcome.update,
        "narrowings": list(map(list, outcome.narrowings)),
    }


def from_json(document: Document, value: Json) -> DocumentOutcome:
    """What `as_json` has written. Raises LookupError, TypeError for anything else."""
    error, more = (None if parts is None else ApiError(*parts) for parts in (value["error"], value["more"]))
    narrowings = [Narrowing(*parts) for parts in value["narrowings"]]
    namespace, result, warnings, meant, update = (value[name] for name in _KEPT)
    return DocumentOutcome(
        document, namespace, result, error, warnings, meant=meant, update=update, more=more, narrowings=narrowings
    )


def _error_as_json(error: ApiError | None) -> Json:
    return None if error is None else [error.code, error.message, error.reason, error.details]


_KEPT: Final = ("namespace", "result", "warnings", "meant", "update")
