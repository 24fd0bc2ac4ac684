"""Objects that are written in memory: through the registry and the pipeline of the server, over a new store.

CRDs come first, then namespaces, then everything else in the order of the files. An object that exists already is replaced,
and ratcheting ignores errors in what did not change. The namespaces that objects name need not be in the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from noxu.apiserver import loading
from noxu.apiserver.api import codec
from noxu.apiserver.api.errors import ApiError, bad_request
from noxu.apiserver.commands.former import restore_definitions, restore_objects
from noxu.apiserver.commands.outcomes import Outcome, Rules
from noxu.apiserver.commands.progress import each
from noxu.apiserver.control_plane import ControlPlane, assemble, running
from noxu.apiserver.crd import conditions
from noxu.apiserver.manifests import Document, LoadError, in_order, is_crd
from noxu.apiserver.registry import draft, explain
from noxu.apiserver.registry.draft import Options
from noxu.apiserver.registry.entry import object_at
from noxu.apiserver.registry.resource import Resource
from noxu.storage.memory import MemoryStore
from noxu.storage.types import Progress, no_progress

_UNKNOWN: Final = re.compile(r'unknown field "((?:[^"\\]|\\.)*)"')
STRICT: Final = Options(field_manager=loading.MANAGER, field_validation="Strict")
WARN: Final = Options(field_manager=loading.MANAGER, field_validation="Warn")


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
        for n, document in enumerate(each(ordered, report, len(ordered))):
            if n == definitions:
                await restore_objects(plane, old)
            outcome = await _write(plane, document, rules)
            if id(document) in reported:
                outcomes.append(outcome)
    return outcomes


async def _write(plane: ControlPlane, document: Document, rules: Rules) -> Outcome:
    warnings: list[str] = []
    namespace, resource = document.namespace, None
    try:
        current = _as_v1(document, warnings)
        resource = loading.resource_of(plane, current.value)
        if resource is not None:
            namespace = loading.namespace_of(resource, current.value)
            await loading.ensure_namespace(plane, namespace)
        elif rules.ignore_unknown:
            return Outcome(document, namespace, "skipped")
        content = codec.encode(current.value, sort_keys=False)
        codec.check_size(content)
        duplicates = current.strict if rules.strict else current.duplicates
        await loading.write(
            plane,
            current.value,
            content,
            STRICT if rules.strict else WARN,
            duplicates=duplicates,
            outcome=draft.Outcome(warnings=warnings),
        )
    except ApiError as error:
        meant = _meant(resource, [*warnings, error.message])
        return Outcome(document, namespace, "refused", error, warnings, meant=meant)
    if resource is not None and is_crd(current.value):
        warnings += await _not_served(plane, resource, current)
    return Outcome(document, namespace, "valid", None, warnings, meant=_meant(resource, warnings))


def _meant(resource: Resource | None, messages: Iterable[str]) -> dict[str, str]:
    """Advice about the unknown fields that messages name, where a declared one may have been meant."""
    if resource is None or resource.schema is None:
        return {}
    paths = [path for message in messages for path in _UNKNOWN.findall(message)]
    advice = {path: explain.meant(resource.schema, path) for path in paths}
    return {path: f"D{text[1:]}" for path, text in advice.items() if text.startswith("did you mean ")}


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
    if loading.name_of(document.value) in plane.catalog.current.defined:
        return []
    crd = object_at(await plane.reader.get(resource, "", loading.name_of(document.value)), resource)
    if conditions.is_true(crd, conditions.ESTABLISHED):
        return []
    return [
        f"not served: {condition['type']} is {condition['status']}: {condition['message']}"
        for condition in crd["status"]["conditions"] or []
        if condition["status"] != "True"
    ]
