"""Objects that are written in memory: through the registry and the pipeline of the server, over a new store.

CRDs come first, then namespaces, then everything else in the order of the files. An object that exists already is
updated as kubectl does it (see `updates`), and ratcheting ignores errors in unchanged fields. The namespaces that
objects name need not be in the files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from noxu.api import codec
from noxu.api.errors import ApiError, bad_request
from noxu.commands.findings import DocumentOutcome, WriteRules
from noxu.commands.progress import each
from noxu.commands.results import Shard
from noxu.commands.updates import Configurations, Update, restore_definitions, restore_objects
from noxu.control_plane import WITHOUT_CONTROLLERS, ControlPlane, assemble, running
from noxu.crd import conditions, lint
from noxu.features import Features
from noxu.manifests import loading
from noxu.manifests.documents import Document, LoadError, in_order, is_crd
from noxu.registry import draft, explain
from noxu.registry.draft import Options
from noxu.registry.offload import without_threads
from noxu.registry.resource import Resource
from noxu.registry.stored_object import object_at
from noxu.schema.narrowing import Narrowing
from noxu.schema.structural import keeping
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import Progress, no_progress

R = TypeVar("R")
STRICT: Final = Options(field_manager=loading.MANAGER, field_validation="Strict")
WARN: Final = Options(field_manager=loading.MANAGER, field_validation="Warn")


async def results(
    shard: Shard,
    features: Features,
    write: Callable[[ControlPlane, Document, Configurations], Awaitable[R]],
    report: Progress,
) -> list[tuple[Document, R]]:
    """What `write` returns for the shard's documents, in the order in which it is called for them.

    The former objects are stored at first: those of former CRDs before the new CRDs are written, the others after that.
    `write` is called for the shared documents, too, with the configurations that objects were written from.
    """
    outcomes = []
    configurations = Configurations()
    reported = {id(document) for document in shard.documents}
    async with running(assemble(replace(WITHOUT_CONTROLLERS, features=features), MemoryStore())) as plane:
        await restore_definitions(plane, shard.old, configurations)
        left = await restore_objects(plane, shard.old, configurations)
        ordered = in_order([*shard.shared, *shard.documents])
        definitions = sum(is_crd(document.value) for document in ordered)
        for n, document in enumerate(each(ordered, report, len(ordered))):
            if n == definitions:
                await restore_objects(plane, left, configurations)
            result = await write(plane, document, configurations)
            if id(document) in reported:
                outcomes.append((document, result))
    return outcomes


async def validate(
    shard: Shard, rules: WriteRules, report: Progress = no_progress
) -> list[tuple[Document, DocumentOutcome]]:
    """The outcome of each document, in the order in which they are written."""
    with without_threads(), keeping():
        return await results(shard, rules.features, partial(_write, rules=rules), report)


def update_of(plane: ControlPlane, value: Object, configurations: Configurations) -> tuple[Update, Callable[[], None]]:
    """How an object is updated, if it exists; and what is to be called when the object is written."""
    resource = loading.resource_of(plane, value)
    if resource is None:
        return Update({}), lambda: None
    namespace, name = loading.namespace_of(resource, value), loading.name_of(value)
    update = Update(configurations.last(resource, namespace, name))
    return update, partial(configurations.add, resource, namespace, name, value)


async def _write(
    plane: ControlPlane, document: Document, configurations: Configurations, rules: WriteRules
) -> DocumentOutcome:
    outcome = draft.Outcome()
    warnings = outcome.warnings
    namespace, resource = document.namespace, None
    update, narrowings = Update({}), list[Narrowing]()
    try:
        current = _as_v1(document, warnings)
        resource = loading.resource_of(plane, current.value)
        if resource is not None:
            namespace = loading.namespace_of(resource, current.value)
            await loading.ensure_namespace(plane, namespace)
        elif rules.ignore_unknown:
            return DocumentOutcome(document, namespace, "skipped")
        content = codec.encode(current.value, sort_keys=False)
        codec.check_size(content)
        duplicates = current.strict if rules.strict else current.duplicates
        update, written = update_of(plane, current.value, configurations)
        if is_crd(current.value) and update.last:
            narrowings = lint.upgrade(update.last, current.value)
        await loading.write(
            plane,
            current.value,
            content,
            STRICT if rules.strict else WARN,
            duplicates=duplicates,
            outcome=outcome,
            replacement=update,
        )
        written()
    except ApiError as error:
        more = await _more(plane, document, update, outcome) if rules.strict else None
        return DocumentOutcome(
            document,
            namespace,
            "refused",
            error,
            warnings,
            meant=_meant(resource, outcome),
            update=update.verb,
            more=more,
            narrowings=narrowings,
        )
    if resource is not None and is_crd(current.value):
        warnings += await _not_served(plane, resource, current)
    return DocumentOutcome(
        document,
        namespace,
        "valid",
        None,
        warnings,
        meant=_meant(resource, outcome),
        update=update.verb,
        narrowings=narrowings,
    )


async def _more(plane: ControlPlane, document: Document, update: Update, outcome: draft.Outcome) -> ApiError | None:
    """Why an object with unknown or repeated fields would be refused without them, None if it would not be."""
    if not (outcome.unknown or outcome.complaints):
        return None
    current, _ = loading.as_v1(document)
    content = codec.encode(current.value, sort_keys=False)
    try:
        await loading.write(plane, current.value, content, WARN._replace(dry_run=True), replacement=update)
    except ApiError as error:
        return error
    return None


def _meant(resource: Resource | None, outcome: draft.Outcome) -> dict[str, str]:
    """Advice about unknown fields, where a declared one may have been meant."""
    if resource is None:
        return {}
    meanings = {path: explain.meant_in(resource, path) for path in outcome.unknown}
    return {path: f"Did you mean {meant}?" for path, meant in meanings.items() if meant}


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
    if loading.name_of(document.value) in plane.served_resources.current.defined:
        return []
    crd = object_at(await plane.reader.get(resource, "", loading.name_of(document.value)), resource)
    if conditions.is_true(crd, conditions.ESTABLISHED):
        return []
    return [
        f"not served: {condition['type']} is {condition['status']}: {condition['message']}"
        for condition in crd["status"]["conditions"] or []
        if condition["status"] != "True"
    ]
