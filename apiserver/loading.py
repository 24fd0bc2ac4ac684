"""Objects written into a registry from manifests, as a client would: in order, what exists already is replaced.

CRDs of v1beta1, which servers dropped in 1.22, become v1 on the way. The notes of what was changed are logged as a
warning; a CRD to which there is no structural form is refused.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from apiserver.api import codec
from apiserver.api.errors import ApiError, bad_request
from apiserver.api.types import Object
from apiserver.manifests import CRD, Document, LoadError, in_order
from apiserver.registry.entry import key_of
from apiserver.registry.pipeline import Draft, Operation, Options
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry
from apiserver.registry.trace import Trace

if TYPE_CHECKING:
    from apiserver.schema.completion import Note

MANAGER: Final = "noxu"
_V1BETA1: Final = "apiextensions.k8s.io/v1beta1"

log = logging.getLogger("noxu")


def ready(documents: Iterable[Document]) -> list[Document]:
    """Documents in the order in which they are to be loaded, CRDs as v1. Raises LoadError."""
    found = []
    for document in in_order(documents):
        try:
            current, notes = as_v1(document)
        except LoadError as error:
            raise LoadError(f"{document.source}: {document.name}: {error}") from None
        if notes:
            changed = "".join(f"\n  {note}" for note in notes)
            log.warning("%s: %s is a v1beta1 CRD, read as v1:%s", document.source, document.name, changed)
        found.append(current)
    return found


def as_v1(document: Document) -> tuple[Document, list[Note]]:
    """A v1beta1 CRD as v1, with what was changed; anything else as it is. Raises LoadError."""
    if document.kind != CRD or document.value.get("apiVersion") != _V1BETA1:
        return document, []
    from apiserver.crd.lint import fix  # few have old CRDs

    fixed = fix(document.value)
    if fixed.crd is None:
        violations = "".join(f"\n  {violation}" for violation in fixed.violations)
        raise LoadError(
            "there is no form of this v1beta1 CRD that servers take, who want v1:"
            f"{violations}\n`noxu lint {document.file}` says what to do"
        )
    return document._replace(value=fixed.crd), fixed.notes


async def load(registry: Registry, documents: Iterable[Document]) -> int:
    """Create or replace every object; how many. Raises LoadError."""
    count = 0
    for document in documents:
        try:
            await apply(registry, document.value)
        except ApiError as error:
            raise LoadError(f"{document.source}: {error.message}") from None
        count += 1
    return count


async def apply(
    registry: Registry,
    value: Object,
    options: Options = Options(field_manager=MANAGER),
    *,
    duplicates: Sequence[str] = (),
    warnings: list[str] | None = None,
    trace: Trace | None = None,
) -> Object:
    """Create an object, or replace the one that is there; as it is stored. Raises ApiError.

    `duplicates` are the decoder's complaints. What clients are warned of is added to `warnings`, also of what is refused,
    and what each stage did to `trace`.
    """
    resource = resource_of(registry, value)
    if resource is None:
        raise bad_request(f"{no_matches(value)}: load its CRD, too")
    told: list[str] = [] if warnings is None else warnings
    if resource.deprecation_text:
        told.append(resource.deprecation_text)
    namespace, name = namespace_of(resource, value), name_of(value)

    async def revise(old: Object) -> Draft:
        sent = _sent(value)
        sent["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        return draft("UPDATE", sent)

    def draft(operation: Operation, sent: Object) -> Draft:
        known_as = name if operation == "UPDATE" else ""
        made = registry.draft(resource, operation, sent, namespace=namespace, name=known_as, options=options)
        made.duplicates, made.warnings, made.trace = list(duplicates), told, trace
        return made

    sent = _sent(value)
    if _take_version(sent):
        told.append(_HAD_VERSION)
    written = None
    if not name or key_of(resource, namespace, name) not in (await registry.collection(resource)).entries:
        try:
            written = await registry.create(draft("CREATE", sent))
        except ApiError as error:
            if error.reason != "AlreadyExists" or not name:
                raise  # else somebody was faster
    written = written or await registry.update(resource, namespace, name, revise)
    stored: Object = codec.decode_stored(written.body(resource))
    return stored


async def ensure_namespace(registry: Registry, name: str) -> None:
    """Objects may go to a namespace that nobody has written down."""
    namespaces = registry.catalog.find("", "v1", "namespaces")
    assert namespaces is not None
    if name and key_of(namespaces, "", name) not in (await registry.collection(namespaces)).entries:
        with contextlib.suppress(ApiError):  # what is wrong with the name, the object's refusal says
            await apply(registry, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


_HAD_VERSION: Final = "metadata.resourceVersion is left out here; servers refuse to create objects that have one"


def _take_version(value: Object) -> bool:
    """Objects that come out of a server know their resourceVersion there, which says nothing elsewhere."""
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and metadata.pop("resourceVersion", None) not in (None, "", "0")


def _sent(value: Object) -> Object:
    """What the pipeline may work on: a copy, as it comes from the wire."""
    copy: Object = codec.decode_stored(codec.encode(value, sort_keys=False))
    return copy


def resource_of(registry: Registry, value: Object) -> Resource | None:
    """The resource that serves objects like this one."""
    api_version, kind = value.get("apiVersion"), value.get("kind")
    for resource in registry.catalog.resources:
        if resource.kind == kind and resource.api_version == api_version:
            return resource
    return None


def no_matches(value: Object) -> str:
    """kubectl's words for an object that no resource serves."""
    return f'no matches for kind "{value.get("kind")}" in version "{value.get("apiVersion", "")}"'


def namespace_of(resource: Resource, value: Object) -> str:
    """The namespace that an object goes to."""
    return (_named(value, "namespace") or "default") if resource.namespaced else ""


def name_of(value: Object) -> str:
    """Empty if there is none yet."""
    return _named(value, "name")


def _named(value: Object, name: str) -> str:
    metadata = value.get("metadata")
    found = metadata.get(name) if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""
