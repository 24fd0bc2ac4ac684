"""Write the objects of manifests in order, as a client would. A writer decides how an existing object changes.

Small objects that cannot affect each other are written at the same time, so that the store commits them together: custom
resources, ConfigMaps and Secrets of different names, and namespaces. Everything else is written alone, after all before it.

    crd  namespace a  namespace b  widget a/x  widget b/y  role  widget a/x
    ^^^  ^^^^^^^^^^^^^^^^^^^^^^^^  ^^^^^^^^^^^^^^^^^^^^^^  ^^^^  ^^^^^^^^^^

An object that is refused does not stop the others, so that all errors are reported at once. An object whose CRD is refused
is not written, and not reported.

CRDs of v1beta1, which Kubernetes 1.22 removed, are converted to v1. Warnings in the log list the changes. A CRD without
a structural form is refused. The error about another version that is not served names those that are.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from noxu.api import codec
from noxu.api.errors import ApiError, bad_request
from noxu.api.field import NIL
from noxu.apply.patch import three_way
from noxu.control_plane import ControlPlane
from noxu.crd.known_definitions import ValidSpecs, digest_of_replacement
from noxu.crd.lint import fix
from noxu.expressions import expression
from noxu.manifests.documents import CRD, Document, LoadError, in_order, is_crd
from noxu.manifests.wording import plain, without_rule
from noxu.registry.access import ANONYMOUS, User
from noxu.registry.draft import ENCODED, Action, Body, Options, Outcome, WriteRequest, Written
from noxu.registry.offload import LOOP_LIMIT
from noxu.registry.persistence import attempt_again
from noxu.registry.resource import DEFINITION, Resource, prepared
from noxu.registry.stored_object import StoredObject, key_of, object_at
from noxu.registry.trace import Trace
from noxu.values import Object
from noxu_storage.types import Key

if TYPE_CHECKING:
    from noxu.crd.known_definitions import KnownDefinitions
    from noxu.schema.completion import CompletionNote

MANAGER: Final = "noxu"
_V1BETA1: Final = "apiextensions.k8s.io/v1beta1"
_YAML_LINE: Final = re.compile(r"^yaml: line \d+: ")  # in the document

log = logging.getLogger("noxu")


def ready(documents: Iterable[Document]) -> list[Document]:
    """Documents in the order in which they are to be loaded, CRDs as v1. Raises LoadError with all errors."""
    decoded, errors = readable(documents)
    if errors:
        raise LoadError(*errors)
    return decoded


def readable(documents: Iterable[Document]) -> tuple[list[Document], list[str]]:
    """The documents that can be read, in the order in which they are to be loaded, CRDs as v1; and all errors."""
    decoded, errors = [], []
    for document in in_order(documents):
        if document.error:
            errors.append(f"{document.place()}: {_YAML_LINE.sub('yaml: ', document.error)}")
            continue
        try:
            current, notes = as_v1(document)
        except LoadError as error:
            errors.append(f"{document.place()}: {document.name}: {error}")
            continue
        if notes:
            log.warning(
                "%s: %s is a v1beta1 CRD, read as v1: `noxu lint --fix --in-place %s` rewrites it",
                document.place(),
                document.name,
                document.file,
            )
        for note in notes:
            log.warning("%s: %s: %s", document.place(), document.name, note)
        decoded.append(current)
    return decoded, errors


def as_v1(document: Document) -> tuple[Document, list[CompletionNote]]:
    """A v1beta1 CRD as v1, and the changes; any other document unchanged. Raises LoadError."""
    if document.kind != CRD or document.value.get("apiVersion") != _V1BETA1:
        return document, []
    fixed = fix(document.value, drop_unknown=True)
    if fixed.crd is None:
        violations = "".join(f"\n  {violation}" for violation in fixed.violations)
        raise LoadError(
            "this v1beta1 CRD has no structural v1 form, which servers require:"
            f"{violations}\n`noxu lint {document.file}` lists the necessary changes"
        )
    return document._replace(value=fixed.crd), fixed.notes


def packed(document: Document) -> Document:
    """The document with its object as JSON, and of the object itself only what identifies it and, if it is a CRD, what it defines.

    Decoded, the objects of a directory take several times the memory of their JSON. What has another form is left as it is:
    malformed objects, and v1beta1 CRDs, which are converted.
    """
    if document.packed:
        return document
    value = document.value
    metadata, spec = value.get("metadata"), value.get("spec")
    if not isinstance(metadata, dict) or value.get("apiVersion") == _V1BETA1:
        return document
    identity: Object = {name: value[name] for name in ("apiVersion", "kind") if name in value}
    identity["metadata"] = {name: metadata[name] for name in _IDENTIFYING if name in metadata}
    if is_crd(value):
        if not isinstance(spec, dict):
            return document
        identity["spec"] = {name: spec[name] for name in ("group", "names") if name in spec}
    return document._replace(value=identity, packed=codec.encode(value, sort_keys=False))


_IDENTIFYING: Final = ("name", "generateName", "namespace", "resourceVersion")


class ObjectWriter(Protocol):
    """How objects are written."""

    async def write(
        self, plane: ControlPlane, document: Document, content: bytes, valid_specs: ValidSpecs | None
    ) -> Written | None:
        """Write the object of a document, whose JSON is `content`. None: it is as it should be. Raises ApiError."""
        ...

    def leave(self, document: Document) -> None:
        """The object of a document is known to be as it should be."""
        ...


class Replacing:
    """Creates objects, or replaces those that exist."""

    async def write(
        self, plane: ControlPlane, document: Document, content: bytes, valid_specs: ValidSpecs | None
    ) -> Written | None:
        written, _ = await write(plane, document.value, content, valid_specs=valid_specs)
        return written

    def leave(self, document: Document) -> None:
        pass


REPLACING: Final = Replacing()


async def load(
    plane: ControlPlane,
    documents: Iterable[Document],
    *,
    skip_unknown: bool = False,
    create_namespaces: bool = False,
    definitions: KnownDefinitions | None = None,
    writer: ObjectWriter = REPLACING,
) -> list[str]:
    """Write every object that is accepted. Returns the errors of the others, in their order.

    `definitions` is what is known of definitions: it saves work, and is added to.
    `skip_unknown`: skip objects of kinds that are not served. `create_namespaces`: create the namespaces of objects that
    do not exist.
    """
    errors: list[str] = []
    refused: set[tuple[str, str]] = set()  # the group and kind of objects whose CRD is refused

    async def load_one(document: Document, content: bytes) -> list[str]:
        try:
            await _write_unless_unchanged(plane, document, content, definitions, writer)
        except ApiError as error:
            if is_crd(document.value):
                refused.add(_defined(document.value))
            return refusals(document, error)
        return []

    async with _writing_together(errors) as together:
        for document in documents:
            if _group_kind(document.value) in refused:
                continue
            resource = resource_of(plane, document.value)
            content = document.packed or codec.encode(document.value, sort_keys=False)
            key = _independent_key(plane, resource, document.value, len(content))
            if key is None or not together.may_have(key):
                await together.finish()
            if skip_unknown and resource is None:
                continue
            if create_namespaces and resource is not None:
                await ensure_namespace(plane, namespace_of(resource, document.value))
            if key is None or resource is None:
                errors += await load_one(document, content)
                continue
            with contextlib.suppress(ApiError):  # which the write raises, too
                # What a first write would wait for is there before it begins, so writes reach the store in their order.
                await prepared(resource.versions)
                await plane.reader.collection(resource)
            await together.begin(key, load_one(document, content))
    return errors


async def _write_unless_unchanged(
    plane: ControlPlane, document: Document, content: bytes, definitions: KnownDefinitions | None, writer: ObjectWriter
) -> None:
    """Write an object, unless it is a definition and known to change nothing. Raises ApiError."""
    if definitions is None:
        await writer.write(plane, document, content, None)
        return
    old = await _unaffected_definition(plane, document.value)
    digest = digest_of_replacement(content, old.stored, plane.features) if old is not None else ""
    if old is not None and definitions.unchanged.has(digest):
        writer.leave(document)
        return
    written = await writer.write(plane, document, content, definitions.valid_specs)
    if old is not None and (written is None or _is_at(written, old.revision)):
        definitions.unchanged.add(digest)


def _is_at(written: Written, revision: int) -> bool:
    return written.entry is not None and written.entry.revision == revision


async def _unaffected_definition(plane: ControlPlane, value: Object) -> StoredObject | None:
    """The stored definition that is replaced, None if there is none, or if admission may have a say in it."""
    resource, name = resource_of(plane, value), name_of(value)
    if resource is None or resource.type is not DEFINITION or not await plane.admission.ignores(resource, plane.reader):
        return None
    return (await plane.reader.collection(resource)).entries.get(key_of(resource, "", name))


MAX_TOGETHER: Final = 64
"""Objects that are written at the same time. The store commits those of a few milliseconds together."""
_NAMESPACES: Final = "/namespaces"
_INDEPENDENT: Final = frozenset({_NAMESPACES, "/configmaps", "/secrets"})
"""The collections of built-in kinds whose objects cannot affect each other, nor custom resources."""


def _independent_key(plane: ControlPlane, resource: Resource | None, value: Object, size: int) -> Key | None:
    """The key of an object that may be written at the same time as others; None: it is written alone.

    Policies, webhooks and quotas may do anything, large objects take much memory and their own time.
    """
    name = name_of(value)
    if resource is None or not name or size > LOOP_LIMIT or not plane.admission.is_idle(plane.reader):
        return None
    if resource.collection not in _INDEPENDENT and not (resource.is_custom and resource.versions.converter is None):
        return None
    return key_of(resource, namespace_of(resource, value), name)


class _Together:
    """Writes that run at the same time: namespaces only, or none of them. Their errors are in the order of the writes."""

    def __init__(self, errors: list[str]) -> None:
        self._errors = errors
        self._running: deque[tuple[Key, asyncio.Task[list[str]]]] = deque()
        self._keys: set[Key] = set()

    def may_have(self, key: Key) -> bool:
        """Whether a write of `key` may run at the same time as these."""
        if not self._running:
            return True
        (first, _), *_ = self._running
        return key not in self._keys and (key.collection == _NAMESPACES) == (first.collection == _NAMESPACES)

    async def begin(self, key: Key, write: Coroutine[None, None, list[str]]) -> None:
        """Begin a write. If there are many, wait for the first one."""
        self._keys.add(key)
        self._running.append((key, asyncio.ensure_future(write)))
        if len(self._running) > MAX_TOGETHER:
            await self._finish_first()

    async def finish(self) -> None:
        """Wait until all are written or refused."""
        while self._running:
            await self._finish_first()

    async def _finish_first(self) -> None:
        key, task = self._running[0]
        self._errors += await task
        self._running.popleft()
        self._keys.remove(key)

    async def cancel(self) -> None:
        """End those that still run."""
        tasks = [task for _, task in self._running]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def _writing_together(errors: list[str]) -> AsyncIterator[_Together]:
    """Writes that have ended when the context is left."""
    together = _Together(errors)
    try:
        yield together
        await together.finish()
    finally:
        await together.cancel()


def refusals(document: Document, error: ApiError) -> list[str]:
    """The texts of an error in plain words, with the file and the lines: one for each field that is invalid."""
    causes = (error.details or {}).get("causes") if error.reason == "Invalid" else None
    if not causes or not all(cause.get("field") for cause in causes):
        value = codec.decode_stored(document.packed) if document.packed else document.value
        said = ((complaint.in_object(value), complaint.text) for complaint in plain(error.message))
        return [f"{document.place(field)}: {f'{field}: ' if field else ''}{text}" for field, text in said]
    head, _, _ = error.message.partition(": ")
    fields = ((cause["field"].removeprefix(NIL), without_rule(cause["message"])) for cause in causes)
    texts = (
        f"{document.place(field)}: {head}: {f'{field}: ' if field else ''}{text}{_advice(document, field, text)}"
        for field, text in fields
    )
    return list(dict.fromkeys(text.replace(NIL, "null") for text in texts))


def _advice(document: Document, field: str, text: str) -> str:
    """What to do about an update that cannot be, in brackets; "" for other errors."""
    if field.startswith("status.storedVersions"):
        return " (objects may be stored in it: `noxu migrate` rewrites them, before the version is removed)"
    if not _CANNOT_CHANGE.search(text):
        return ""
    return _DELETES_ALL if is_crd(document.value) else _DELETE_IT


_CANNOT_CHANGE: Final = expression(r"immutable|may not (be )?change|cannot be changed|updates to .* are forbidden")
_DELETE_IT: Final = " (the object that exists has another value: if the new one is meant, delete the object)"
_DELETES_ALL: Final = " (the definition that exists has another value; deleting it deletes all its objects, too)"


def _group_kind(value: Object) -> tuple[str, str]:
    return str(value.get("apiVersion", "")).rpartition("/")[0], str(value.get("kind"))


def _defined(crd: Object) -> tuple[str, str]:
    """The group and kind that a CRD defines, which may be invalid."""
    spec = crd.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("names"), dict):
        return "", ""
    return str(spec.get("group")), str(spec["names"].get("kind"))


async def apply(
    plane: ControlPlane,
    value: Object,
    options: Options = Options(field_manager=MANAGER),
    *,
    duplicates: Sequence[str] = (),
    trace: Trace | None = None,
    replacement: Replacement | None = None,
) -> Object:
    """Create an object, or replace the existing one. Returns the stored object. Raises ApiError.

    `duplicates` are the decoder's messages about duplicate keys. The steps of the write are appended to `trace`.
    `replacement`: see `write`.
    """
    content = codec.encode(value, sort_keys=False)
    written, resource = await write(
        plane, value, content, options, duplicates=duplicates, trace=trace, replacement=replacement
    )
    applied: Object = codec.decode_stored(written.body(resource))
    return applied


Replacement = Callable[[Object, Object, Resource], Object]
"""(the object that is sent, the existing one, their resource) → the object that replaces it, with the same resourceVersion."""


async def write(
    plane: ControlPlane,
    value: Object,
    content: bytes,
    options: Options = Options(field_manager=MANAGER),
    *,
    duplicates: Sequence[str] = (),
    outcome: Outcome | None = None,
    trace: Trace | None = None,
    valid_specs: ValidSpecs | None = None,
    replacement: Replacement | None = None,
    user: User = ANONYMOUS,
) -> tuple[Written, Resource]:
    """`apply` for an object of which `value` has at least what identifies it, and `content` is the JSON. Raises ApiError.

    Warnings are added to `outcome`, even if the object is refused. `replacement` makes what replaces an object that exists;
    None: `replacing`. `user`: who writes, for admission.
    """
    resource = resource_of(plane, value)
    if resource is None:
        raise bad_request(f"{no_matches(value)}: {_instead(plane, value)}")
    outcome = outcome or Outcome()
    if resource.deprecation_text:
        outcome.warnings.append(resource.deprecation_text)
    namespace, name = namespace_of(resource, value), name_of(value)
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and "resourceVersion" in metadata:  # an exported object has one
        content = _without_resource_version(content)
        if metadata["resourceVersion"] not in (None, "", "0"):
            outcome.warnings.append(_VERSION_REMOVED)
    request = WriteRequest(
        Action.CREATE,
        resource,
        namespace,
        body=Body(content, ENCODED, tuple(duplicates)),
        options=options,
        user=user,
        features=plane.features,
        valid_specs=valid_specs,
    )
    written = None
    if not name or key_of(resource, namespace, name) not in (await plane.reader.collection(resource)).entries:
        try:
            written = await plane.writer.write(request, outcome, trace)
        except ApiError as error:
            if error.reason != "AlreadyExists" or not name:
                raise  # otherwise another writer has created it in the meantime

    def replaced(old: Object) -> Object:
        sent: Object = codec.decode_stored(content)
        return (replacement or replacing)(sent, old, resource)

    written = written or await update(plane, request, name, replaced, outcome, trace)
    return written, resource


def replacing(sent: Object, old: Object, resource: Resource) -> Object:
    """What replaces an object, so that a file that is loaded again changes nothing.

    It has the version of the old one and, if it has a uid, also that one: an exported object has those of another object. The
    specs of pods and Jobs are immutable, and admission and the server have added to them: specs are patched, as kubectl does.
    """
    replacement: Object = {**sent, "metadata": dict(sent["metadata"])}
    spec = sent.get("spec")
    if (resource.group, resource.kind) in _IMMUTABLE and resource.table is not None and isinstance(spec, dict):
        replacement["spec"] = three_way({}, {"spec": spec}, old, resource.table.struct)["spec"]
    replacement["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if "uid" in replacement["metadata"]:
        replacement["metadata"]["uid"] = old["metadata"]["uid"]
    return replacement


_IMMUTABLE: Final = {("", "Pod"), ("batch", "Job")}


async def update(
    plane: ControlPlane,
    request: WriteRequest,
    name: str,
    change: Callable[[Object], Object],
    outcome: Outcome | None = None,
    trace: Trace | None = None,
) -> Written:
    """Replace an object by the result of `change`, again after a conflict with another writer. Raises ApiError.

    The result of `change` has the resourceVersion of its argument.
    """
    resource, reader, attempts = request.resource, plane.reader, 1
    while True:
        entry = await reader.get(resource, request.namespace, name)
        body = request.body._replace(content=change(object_at(entry, resource)))
        try:
            return await plane.writer.write(
                request._replace(action=Action.REPLACE, name=name, body=body), outcome, trace
            )
        except ApiError as error:
            newest = (await reader.find(resource, request.namespace, name)).revision
            if error.reason != "Conflict" or newest == entry.revision:
                raise
        attempts = await attempt_again(attempts, resource.group_resource, name)


async def ensure_namespace(plane: ControlPlane, name: str) -> None:
    """Create a namespace if it does not exist: manifests may lack the namespaces of their objects."""
    namespaces = plane.served_resources.current.find("", "v1", "namespaces")
    assert namespaces is not None
    if name and key_of(namespaces, "", name) not in (await plane.reader.collection(namespaces)).entries:
        with contextlib.suppress(ApiError):  # an invalid name is reported when the object is refused
            await apply(plane, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


_VERSION_REMOVED: Final = "metadata.resourceVersion is removed; servers refuse to create objects that have one"


def _without_resource_version(content: bytes) -> bytes:
    value = codec.decode_stored(content)
    del value["metadata"]["resourceVersion"]
    return codec.encode(value, sort_keys=False)


def resource_of(plane: ControlPlane, value: Object) -> Resource | None:
    """The resource of an object's apiVersion and kind, None if it is not served."""
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    return plane.served_resources.current.find_kind(api_version, kind)


def no_matches(value: Object) -> str:
    """kubectl's message for an object whose kind is not served."""
    return f'no matches for kind "{value.get("kind")}" in version "{value.get("apiVersion", "")}"'


def _instead(plane: ControlPlane, value: Object) -> str:
    """What to do about an object whose kind is not served in its version."""
    group, kind = _group_kind(value)
    is_kubernetes = "." not in group or group.endswith(".k8s.io")
    served = sorted(
        resource.api_version
        for resource in plane.served_resources.current.resources
        if resource.kind == kind and (resource.group == group or (is_kubernetes and not resource.is_custom))
    )
    if served:
        return f"it is served in {' and '.join(served)}: change the apiVersion, and the fields that differ"
    return "load its CRD, too"


def namespace_of(resource: Resource, value: Object) -> str:
    """The namespace in which an object is written, empty if it is cluster-scoped."""
    return (_named(value, "namespace") or "default") if resource.namespaced else ""


def name_of(value: Object) -> str:
    """The name of an object, empty if it has none."""
    return _named(value, "name")


def _named(value: Object, name: str) -> str:
    metadata = value.get("metadata")
    text = metadata.get(name) if isinstance(metadata, dict) else None
    return text if isinstance(text, str) else ""
