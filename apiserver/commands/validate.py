"""`noxu validate`: validate objects without a server.

The objects are written through the registry and the pipeline of the server, over a new store in memory: CRDs first, then
namespaces, then everything else in the order of the files. An object that exists already is replaced, and ratcheting
ignores errors in what did not change. The namespaces that objects name need not be in the files.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from noxu.apiserver import loading
from noxu.apiserver.api import codec
from noxu.apiserver.api.errors import ApiError, bad_request
from noxu.apiserver.commands import progress
from noxu.apiserver.control_plane import ControlPlane, assemble, running
from noxu.apiserver.crd import conditions
from noxu.apiserver.features import Features
from noxu.apiserver.manifests import Document, LoadError, in_order, is_crd, read_paths
from noxu.apiserver.registry.draft import Options
from noxu.apiserver.registry.entry import object_at
from noxu.apiserver.registry.resource import Resource
from noxu.apiserver.values import Json, Object
from noxu.storage.memory import MemoryStore
from noxu.storage.types import Progress, no_progress

Result = Literal["valid", "refused", "skipped"]
STRICT: Final = Options(field_manager=loading.MANAGER, field_validation="Strict")
WARN: Final = Options(field_manager=loading.MANAGER, field_validation="Warn")


class Outcome(NamedTuple):
    """The result for one object. `error` is the error with which a server refuses it."""

    document: Document
    namespace: str
    result: Result
    error: ApiError | None = None
    warnings: Sequence[str] = ()


def run(options: argparse.Namespace) -> int:
    """Exit status 0: nothing is refused; 1: an object is refused, or cannot be read."""
    if options.stored:
        from noxu.apiserver.commands import stored

        return stored.run(options)
    with progress.shown("validate", quiet=options.quiet) as report:
        outcomes = asyncio.run(
            validate(
                read_paths(options.files),
                STRICT if options.strict else WARN,
                options.features,
                skip=options.ignore_unknown_kinds,
                report=report,
            )
        )
    if options.output == "json":
        print(codec.pretty(_as_json(outcomes), sort_keys=False).decode())
    else:
        _print_report(outcomes)
    return 1 if any(outcome.result == "refused" for outcome in outcomes) else 0


async def validate(
    documents: Iterable[Document],
    options: Options,
    features: Features,
    *,
    skip: bool = False,
    report: Progress = no_progress,
) -> list[Outcome]:
    """The outcome of each document, in the order of `documents`. `skip`: skip objects of unknown kinds."""
    documents = list(documents)
    positions = {id(document): n for n, document in enumerate(documents)}
    outcomes = []
    async with running(assemble(MemoryStore(), features=features)) as plane:
        for document in progress.each(in_order(documents), report, len(documents)):
            outcome = await _write(plane, document, options, skip=skip)
            outcomes.append((positions[id(document)], outcome))
    return [outcome for _, outcome in sorted(outcomes, key=lambda pair: pair[0])]


async def _write(plane: ControlPlane, document: Document, options: Options, *, skip: bool) -> Outcome:
    warnings: list[str] = []
    namespace = document.namespace
    try:
        if document.error:
            raise bad_request(document.error)
        current = _as_v1(document, warnings)
        resource = loading.resource_of(plane, current.value)
        if resource is not None:
            namespace = loading.namespace_of(resource, current.value)
            await loading.ensure_namespace(plane, namespace)
        elif skip:
            return Outcome(document, namespace, "skipped")
        body = codec.encode(current.value, sort_keys=False)
        codec.check_size(body)
        duplicates = current.strict if options is STRICT else current.duplicates
        await loading.apply(plane, current.value, options, duplicates=duplicates, warnings=warnings)
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


def _print_report(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        print(f"{outcome.document.source}: {_title(outcome)}{outcome.result}")
        for reason in _reasons(outcome.error):
            print(_indented(reason))
        for warning in outcome.warnings:
            print(_indented(f"warning: {warning}"))
    counts = _counts(outcomes)
    objects = counts.pop("objects")
    print(
        f"{objects} object{'' if objects == 1 else 's'}: {', '.join(f'{count} {result}' for result, count in counts.items())}"
    )


def _title(outcome: Outcome) -> str:
    document = outcome.document
    if document.error:
        return ""
    namespace = f"{outcome.namespace}/" if outcome.namespace else ""
    return f"{document.kind} {namespace}{document.name}: "


def _reasons(error: ApiError | None) -> list[str]:
    """The field errors of an Invalid error, one by one; the message of any other error."""
    if error is None:
        return []
    causes = (error.details or {}).get("causes") if error.reason == "Invalid" else None
    if not causes or any("field" not in cause for cause in causes):  # the denial of a policy names no field
        return [error.message]
    return [f"{cause['field']}: {cause['message']}" for cause in causes]


def _indented(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")


def _counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    counts = {"objects": len(outcomes)}
    for result in ("valid", "refused", "skipped"):
        counts[result] = sum(outcome.result == result for outcome in outcomes)
    return counts


def _as_json(outcomes: Sequence[Outcome]) -> Json:
    return {"objects": [_outcome_as_json(outcome) for outcome in outcomes], "summary": _counts(outcomes)}


def _outcome_as_json(outcome: Outcome) -> Object:
    document = outcome.document
    return {
        "file": document.file,
        "document": document.number,
        "apiVersion": document.value.get("apiVersion", ""),
        "kind": document.kind,
        "namespace": outcome.namespace,
        "name": document.name,
        "result": outcome.result,
        "warnings": list(outcome.warnings),
        "status": None if outcome.error is None else outcome.error.status,
    }
