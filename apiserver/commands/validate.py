"""`noxu validate`: validate objects without a server.

The objects are written through the registry and the pipeline of the server, over a new store in memory: CRDs first, then
namespaces, then everything else in the order of the files. An object that exists already is replaced, and ratcheting
ignores errors in what did not change. The namespaces that objects name need not be in the files.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from noxu.apiserver import loading
from noxu.apiserver.api import codec
from noxu.apiserver.api.errors import ApiError, bad_request
from noxu.apiserver.commands import findings, inputs, progress, reports
from noxu.apiserver.commands.findings import Checked, Finding
from noxu.apiserver.commands.former import restore_definitions, restore_objects
from noxu.apiserver.control_plane import ControlPlane, assemble, running
from noxu.apiserver.crd import conditions
from noxu.apiserver.features import Features
from noxu.apiserver.manifests import Document, LoadError, in_order, is_crd
from noxu.apiserver.registry.draft import Options
from noxu.apiserver.registry.entry import object_at
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.values import Json, Object
from noxu.storage.memory import MemoryStore
from noxu.storage.types import Progress, no_progress

STRICT: Final = Options(field_manager=loading.MANAGER, field_validation="Strict")
WARN: Final = Options(field_manager=loading.MANAGER, field_validation="Warn")


class Rules(NamedTuple):
    """How objects are written. `ignore_unknown`: skip objects of kinds that are not served."""

    options: Options = WARN
    features: Features = Features()
    ignore_unknown: bool = False


class Outcome(NamedTuple):
    """The result for one object. `error` is the error with which a server refuses it."""

    document: Document
    namespace: str
    result: findings.Result
    error: ApiError | None = None
    warnings: Sequence[str] = ()
    certain: Sequence[Finding] = ()
    """The findings of an object that was not written."""

    @property
    def checked(self) -> Checked:
        if self.result == "unreadable":
            return Checked(self.document, "", self.result, self.certain)
        errors = findings.of_status(self.document, self.error.status) if self.error else []
        warnings = findings.of_warnings(self.document, self.warnings)
        title = inputs.title(self.document, self.namespace)
        return Checked(self.document, title, self.result, [*self.certain, *errors, *warnings])


def run(options: argparse.Namespace) -> int:
    """Exit status 0: nothing is refused; 1: an object is refused; 2: an input cannot be read."""
    if options.stored:
        from noxu.apiserver.commands import stored

        return stored.run(options)
    rules = Rules(STRICT if options.strict else WARN, options.features, options.ignore_unknown_kinds)
    documents, old = inputs.read(options), inputs.former(options.old)
    outcomes: dict[int, Outcome] = {}
    accepted = []
    for n, document in enumerate(documents):
        if (certain := inputs.decided(options, document)) is not None:
            outcomes[n] = Outcome(document, document.namespace, certain.result, certain=certain.findings)
        else:
            accepted.append(document)
    places = {id(document): n for n, document in enumerate(documents)}
    with progress.shown("validate", quiet=options.quiet) as report:
        for members in inputs.rounds(accepted) if options.independent else [accepted]:
            shared = inputs.shared_with(members, accepted) if options.independent else []
            for outcome in asyncio.run(validate(members, rules, old=old, shared=shared, report=report)):
                outcomes[places[id(outcome.document)]] = outcome
    ordered = [outcomes[n] for n in sorted(outcomes)]
    checked = [outcome.checked for outcome in ordered]
    if options.output in reports.FORMATS:
        print(reports.FORMATS[options.output](checked, "validate"))
    elif options.output == "json":
        print(codec.pretty(_as_json(ordered, checked), sort_keys=False).decode())
    else:
        _print_report(checked)
    return findings.exit_status(checked)


async def validate(
    documents: Sequence[Document],
    rules: Rules,
    *,
    old: Sequence[Document] = (),
    shared: Sequence[Document] = (),
    report: Progress = no_progress,
) -> list[Outcome]:
    """The outcome of each document, in the order in which they are written.

    `old` are the former objects, `shared` further CRDs and policies that apply to the documents.
    """
    outcomes = []
    reported = {id(document) for document in documents}
    async with running(assemble(MemoryStore(), features=rules.features)) as plane:
        await restore_definitions(plane, old)
        ordered = in_order([*shared, *documents])
        definitions = sum(is_crd(document.value) for document in ordered)
        for n, document in enumerate(progress.each(ordered, report, len(ordered))):
            if n == definitions:
                await restore_objects(plane, old)
            outcome = await _write(plane, document, rules)
            if id(document) in reported:
                outcomes.append(outcome)
    return outcomes


async def _write(plane: ControlPlane, document: Document, rules: Rules) -> Outcome:
    warnings: list[str] = []
    namespace = document.namespace
    try:
        current = _as_v1(document, warnings)
        resource = loading.resource_of(plane, current.value)
        if resource is not None:
            namespace = loading.namespace_of(resource, current.value)
            await loading.ensure_namespace(plane, namespace)
        elif rules.ignore_unknown:
            return Outcome(document, namespace, "skipped")
        body = codec.encode(current.value, sort_keys=False)
        codec.check_size(body)
        duplicates = current.strict if rules.options is STRICT else current.duplicates
        await loading.apply(plane, current.value, rules.options, duplicates=duplicates, warnings=warnings)
    except ApiError as error:
        return Outcome(document, namespace, "refused", error, warnings)
    if resource is not None and is_crd(current.value):
        warnings += await _not_served(plane, resource, current)
    return Outcome(document, namespace, "valid", None, warnings)


def _as_v1(document: Document, warnings: list[str]) -> Document:
    """Raises ApiError."""
    try:
        current, notes = loading.as_v1(document)
    except LoadError as error:
        raise bad_request(str(error)) from None
    warnings += map(str, notes)
    return current


async def _not_served(plane: ControlPlane, resource: Resource, document: Document) -> list[str]:
    """The reasons why an accepted CRD is not served, for example a conflict of names."""
    crd = object_at(await plane.reader.get(resource, "", loading.name_of(document.value)), resource)
    if conditions.is_true(crd, conditions.ESTABLISHED):
        return []
    return [
        f"not served: {condition['type']} is {condition['status']}: {condition['message']}"
        for condition in crd["status"]["conditions"] or []
        if condition["status"] != "True"
    ]


# -- output -----------------------------------------------------------------------------------------------------------


def _print_report(checked: Sequence[Checked]) -> None:
    for line in reports.lines(checked):
        print(line)
    counts = _counts(checked)
    objects, unreadable = counts.pop("objects"), counts.pop("unreadable")
    listed = [f"{count} {result}" for result, count in counts.items()]
    listed += [f"{unreadable} unreadable"] if unreadable else []
    print(f"{objects} object{'' if objects == 1 else 's'}: {', '.join(listed)}")


def _counts(checked: Sequence[Checked]) -> dict[str, int]:
    counts = {"objects": sum(each.result != "unreadable" for each in checked)}
    for result in ("valid", "refused", "skipped", "unreadable"):
        counts[result] = sum(each.result == result for each in checked)
    return counts


def _as_json(outcomes: Sequence[Outcome], checked: Sequence[Checked]) -> Json:
    objects = [_outcome_as_json(*pair) for pair in zip(outcomes, checked, strict=True)]
    return {"objects": objects, "summary": _counts(checked)}


def _outcome_as_json(outcome: Outcome, checked: Checked) -> Object:
    document = outcome.document
    line, column = document.position() or (None, None)
    return {
        "file": document.file,
        "document": document.number,
        "line": line,
        "column": column,
        "apiVersion": document.value.get("apiVersion", ""),
        "kind": document.kind,
        "namespace": outcome.namespace,
        "name": document.name,
        "result": outcome.result,
        "findings": findings.as_json(checked.findings),
        "warnings": list(outcome.warnings),
        "status": None if outcome.error is None else outcome.error.status,
    }
