"""`noxu validate`: what would a server say to these objects?

It is the server that says it: its registry and its pipeline, over a store in memory that is new and gone afterwards.
Objects are written as a client would: CRDs first, then namespaces, then everything else in the order of the files. An
object that is there already is replaced, and ratcheting excuses what did not change. The namespaces that objects name
need not be among the files.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from apiserver import loading, server
from apiserver.api import codec
from apiserver.api.errors import ApiError, bad_request
from apiserver.api.types import Json, Object
from apiserver.crd import conditions
from apiserver.features import Features
from apiserver.manifests import Document, LoadError, in_order, is_crd, read_paths
from apiserver.registry.entry import object_at
from apiserver.registry.pipeline import Options
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry
from storage.memory import MemoryStore

Result = Literal["valid", "refused", "skipped"]
STRICT: Final = Options(field_manager=loading.MANAGER, field_validation="Strict")
WARN: Final = Options(field_manager=loading.MANAGER, field_validation="Warn")


class Outcome(NamedTuple):
    """What became of one object. `error` is what a server answers who refuses it."""

    document: Document
    namespace: str
    result: Result
    error: ApiError | None = None
    warnings: Sequence[str] = ()


def run(given: argparse.Namespace) -> int:
    """0: nothing is refused; 1: something is, or cannot be read."""
    if given.stored:
        from apiserver.commands import stored

        return stored.run(given)
    options = STRICT if given.strict else WARN
    outcomes = asyncio.run(validate(read_paths(given.files), options, given.features, skip=given.ignore_unknown_kinds))
    if given.output == "json":
        print(codec.pretty(_as_json(outcomes), sort_keys=False).decode())
    else:
        _tell(outcomes)
    return 1 if any(outcome.result == "refused" for outcome in outcomes) else 0


async def validate(
    documents: Iterable[Document], options: Options, features: Features, *, skip: bool = False
) -> list[Outcome]:
    """What becomes of each document, in the order in which they are given. `skip`: objects of unknown kinds."""
    given = list(documents)
    places = {id(document): n for n, document in enumerate(given)}
    outcomes = []
    async with server.at_work(MemoryStore(), features=features) as registry:
        for document in in_order(given):
            outcome = await _judge(registry, document, options, skip=skip)
            outcomes.append((places[id(document)], outcome))
    return [outcome for _, outcome in sorted(outcomes, key=lambda pair: pair[0])]


async def _judge(registry: Registry, document: Document, options: Options, *, skip: bool) -> Outcome:
    warnings: list[str] = []
    namespace = document.namespace
    try:
        if document.error:
            raise bad_request(document.error)
        current = _as_v1(document, warnings)
        resource = loading.resource_of(registry, current.value)
        if resource is not None:
            namespace = loading.namespace_of(resource, current.value)
            await loading.ensure_namespace(registry, namespace)
        elif skip:
            return Outcome(document, namespace, "skipped")
        body = codec.encode(current.value, sort_keys=False)
        codec.check_size(body)
        duplicates = current.strict if options is STRICT else current.duplicates
        await loading.apply(registry, current.value, options, duplicates=duplicates, warnings=warnings)
    except ApiError as error:
        return Outcome(document, namespace, "refused", error, warnings)
    if resource is not None and is_crd(current.value):
        warnings += await _not_served(registry, resource, current)
    return Outcome(document, namespace, "valid", None, warnings)


def _as_v1(document: Document, warnings: list[str]) -> Document:
    """Raises ApiError."""
    try:
        current, notes = loading.as_v1(document)
    except LoadError as error:
        raise bad_request(str(error)) from None
    warnings += map(str, notes)
    return current


async def _not_served(registry: Registry, resource: Resource, document: Document) -> list[str]:
    """Why an accepted CRD is not served: other names are in the way, for example."""
    crd = object_at(await registry.get(resource, "", loading.name_of(document.value)), resource)
    if conditions.is_true(crd, conditions.ESTABLISHED):
        return []
    return [
        f"not served: {one['type']} is {one['status']}: {one['message']}"
        for one in crd["status"]["conditions"] or []
        if one["status"] != "True"
    ]


# -- telling ----------------------------------------------------------------------------------------------------------


def _tell(outcomes: Sequence[Outcome]) -> None:
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
    """Field errors one by one, as they are joined in the message; any other refusal is its message."""
    if error is None:
        return []
    causes = (error.details or {}).get("causes") if error.reason == "Invalid" else None
    if not causes or any("field" not in cause for cause in causes):  # a policy's denial names no field
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
