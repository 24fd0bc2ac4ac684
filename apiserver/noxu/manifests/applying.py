"""Apply the objects of manifests as `kubectl apply` does, so that a restart of the server keeps the changes of others.

An object that does not exist is created, with kubectl's annotation of its last applied configuration. One that exists gets
the fields of the file, and loses those that only the last configuration had (`apply.patch`); fields that others have set,
and the file does not, stay. So a later `kubectl apply` of the same file changes nothing, and has nothing to warn about.

Why not server-side apply: it would leave no annotation, which `kubectl apply` misses with a warning for every object, and a
field that a file no longer has would stay if anybody else had set it to the same value; `kubectl apply --server-side` after
a change of a file would conflict with the manager of the server, while it takes over from an annotation silently.

An object whose annotations would exceed what servers accept has no such annotation: the fields of this manager are then
the configuration that was applied last. The same holds for objects that earlier versions of Noxu have loaded, if
neither servers nor admission add fields to their kind.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.apply import fieldset, managed_fields
from noxu.apply.managed_fields import leaves, owned_part, value_at
from noxu.apply.merging import ANNOTATION, MAX_ANNOTATIONS
from noxu.apply.patch import three_way
from noxu.control_plane import ControlPlane
from noxu.manifests.documents import Document
from noxu.manifests.loading import MANAGER, name_of, namespace_of, resource_of, write
from noxu.registry.draft import ENCODED, Action, Body, Options, WriteRequest, Written
from noxu.registry.reader import key_of
from noxu.registry.resource import DEFINITION, Resource
from noxu.registry.stored_object import object_at
from noxu.values import Json, Object, equal

if TYPE_CHECKING:
    from noxu.crd.known_definitions import ValidSpecs

_PLAIN: Final = frozenset({"/configmaps", "/secrets"})
"""Collections of built-in kinds whose objects have only the fields that clients have sent."""
MOST_TITLES: Final = 5
"""Objects that are named in a line."""
_MOST_NAMED: Final = 20
"""Fields that are named of one object."""
_STATUS: Final = "f:status"
_NOT_NAMED: Final = (
    ("f:metadata", "f:annotations", f"f:{ANNOTATION}"),
    ("f:metadata", "f:managedFields"),
    ("f:metadata", "f:resourceVersion"),
    ("f:metadata", "f:generation"),
)

log = logging.getLogger("noxu")


class AppliedObject(NamedTuple):
    """What became of an object. `result` is kubectl's word for it.

    `changed`: the fields that have changed. `kept` and `lost`: fields that others had set, each with the manager in brackets.
    """

    result: str
    changed: list[str] = []  # noqa: RUF012 - never changed
    kept: list[str] = []  # noqa: RUF012
    lost: list[str] = []  # noqa: RUF012


class Applying:
    """Applies documents, and counts what became of their objects. `done` collects those that are applied."""

    def __init__(self, done: list[Document] | None = None) -> None:
        self._done = done
        self._titles: list[str] = []
        self.results = {"created": 0, "configured": 0, "unchanged": 0}
        self.kept = 0
        self.lost = 0

    async def write(
        self, plane: ControlPlane, document: Document, content: bytes, valid_specs: ValidSpecs | None
    ) -> Written | None:
        """Apply an object, whose JSON is `content`. None: nothing was written. Raises ApiError."""
        applied, written = await _apply(plane, document, content, valid_specs)
        self._count(document, applied)
        return written

    def leave(self, document: Document) -> None:
        """An object is known to be as its document wants it."""
        self._count(document, AppliedObject("unchanged"))

    def _count(self, document: Document, applied: AppliedObject) -> None:
        self.results[applied.result] += 1
        self.kept += bool(applied.kept)
        self.lost += bool(applied.lost)
        if self._done is not None:
            self._done.append(document)
        if len(self._titles) <= MOST_TITLES:
            self._titles.append(f"{title(document)} {applied.result}")
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s: %s %s", document.place(), title(document), _described(applied))

    @property
    def summary(self) -> str:
        """What became of all objects, in one line."""
        total = sum(self.results.values())
        counts = ", ".join(f"{count} {result}" for result, count in self.results.items() if count)
        text = f"{total} object{'' if total == 1 else 's'} applied: {counts}" if total else "no object applied"
        return text + self._others

    @property
    def named(self) -> str:
        """The same for a few objects, with their names."""
        return self.summary if len(self._titles) > MOST_TITLES else ", ".join(self._titles) + self._others

    @property
    def _others(self) -> str:
        others = [
            f"{what} in {count} object{'' if count == 1 else 's'}"
            for what, count in (("left alone", self.kept), ("overwritten", self.lost))
            if count
        ]
        return f"; changes of others: {', '.join(others)} (--verbose names them)" if others else ""


def title(document: Document) -> str:
    """`Widget attic/large`."""
    return f"{document.kind} {f'{document.namespace}/' if document.namespace else ''}{document.name}".rstrip()


def _described(applied: AppliedObject) -> str:
    parts = [
        f"{what}{_some(fields)}"
        for what, fields in (("", applied.changed), ("left alone: ", applied.kept), ("overwritten: ", applied.lost))
        if fields
    ]
    return f"{applied.result}{': ' if parts else ''}{'; '.join(parts)}"


def _some(fields: list[str]) -> str:
    more = f", and {len(fields) - _MOST_NAMED} more" if len(fields) > _MOST_NAMED else ""
    return ", ".join(fields[:_MOST_NAMED]) + more


async def _apply(
    plane: ControlPlane, document: Document, content: bytes, valid_specs: ValidSpecs | None
) -> tuple[AppliedObject, Written | None]:
    """Raises ApiError."""
    value = document.value
    resource, name = resource_of(plane, value), name_of(value)
    configuration = None
    if resource is not None and name:
        configuration = with_last_applied(codec.decode_stored(content), namespace_of(resource, value))
    if resource is None or configuration is None:  # an object that is refused, or whose name is generated
        written, _ = await write(plane, value, content, valid_specs=valid_specs)
        return AppliedObject("created"), written
    request = WriteRequest(
        Action.CREATE,
        resource,
        namespace_of(resource, value),
        options=Options(field_manager=MANAGER),
        features=plane.features,
        valid_specs=valid_specs,
    )
    stored = (await plane.reader.collection(resource)).entries
    if key_of(resource, request.namespace, name) not in stored:
        body = Body(codec.encode(configuration, sort_keys=False), ENCODED)
        try:
            return AppliedObject("created"), await plane.writer.write(request._replace(body=body))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise  # otherwise another writer has created it in the meantime
    return await _update(plane, request, document, configuration)


async def _update(
    plane: ControlPlane, request: WriteRequest, document: Document, configuration: Object
) -> tuple[AppliedObject, Written | None]:
    """Apply to an object that exists, again after a conflict with another writer. Raises ApiError."""
    resource, reader, name = request.resource, plane.reader, name_of(configuration)
    while True:
        entry = await reader.get(resource, request.namespace, name)
        live = object_at(entry, resource)
        wanted = applied_to(live, configuration, resource)
        is_same = equal(wanted, live)
        if live["metadata"].get("deletionTimestamp"):
            what = "the next start creates it again" if is_same else "it is changed nevertheless"
            log.warning("%s: %s is being deleted; %s", document.place(), title(document), what)
        if is_same:
            return _compared(live, wanted, configuration, "unchanged"), None
        body = Body(wanted, ENCODED)
        try:
            written = await plane.writer.write(request._replace(action=Action.REPLACE, name=name, body=body))
        except ApiError as error:
            newest = (await reader.find(resource, request.namespace, name)).revision
            if error.reason != "Conflict" or newest == entry.revision:
                raise
            continue
        if written.entry is not None and written.entry.revision == entry.revision:
            return _compared(live, live, configuration, "unchanged"), written
        return _compared(live, codec.decode_stored(written.body(resource)), configuration, "configured"), written


# -- the configuration ------------------------------------------------------------------------------------------------


def with_last_applied(sent: Object, namespace: str) -> Object | None:
    """The object as `kubectl apply` would create it: with its namespace, and the annotation of itself.

    Without the annotation if that would be too large; None if the object is malformed. An exported object has the
    resourceVersion and uid of another object.
    """
    metadata = sent.get("metadata")
    if not isinstance(metadata, dict):
        return None
    annotations = {} if metadata.get("annotations") is None else metadata["annotations"]
    if not isinstance(annotations, dict):
        return None
    own = {name: text for name, text in annotations.items() if name != ANNOTATION}
    metadata = {
        name: item for name, item in metadata.items() if name not in ("resourceVersion", "uid", "managedFields")
    }
    if namespace:
        metadata["namespace"] = namespace
    annotated = {**sent, "metadata": {**metadata, "annotations": own}}
    text = codec.encode(annotated, sort_keys=True).decode() + "\n"
    if _size(own) + len(ANNOTATION) + len(text.encode()) > MAX_ANNOTATIONS:
        return {**sent, "metadata": metadata}
    metadata["annotations"] = {**own, ANNOTATION: text}
    return {**sent, "metadata": metadata}


def _size(annotations: Object) -> int:
    """As upstream counts it, in bytes."""
    return sum(len(str(name).encode()) + len(str(text).encode()) for name, text in annotations.items())


def applied_to(live: Object, configuration: Object, resource: Resource) -> Object:
    """What an object becomes if a configuration (`with_last_applied`) is applied to it."""
    kind = None if resource.table is None else resource.table.struct
    merged = three_way(_last_applied(live, resource), configuration, live, kind)
    annotations = merged["metadata"].get("annotations") or {}
    if ANNOTATION in annotations and ANNOTATION not in (configuration["metadata"].get("annotations") or {}):
        kept = {name: text for name, text in annotations.items() if name != ANNOTATION}  # that one is outdated
        merged = {**merged, "metadata": {**merged["metadata"], "annotations": kept}}
    return merged


def _last_applied(live: Object, resource: Resource) -> Object:
    """The configuration that was applied last, of which objects without the annotation have what this manager owns."""
    text = (live["metadata"].get("annotations") or {}).get(ANNOTATION)
    if text is not None:
        try:
            last = codec.decode_json(text.encode()).value
        except ValueError:
            return {}
        return last if isinstance(last, dict) and isinstance(last.get("metadata", {}), (dict, type(None))) else {}
    if not resource.is_custom and resource.type is not DEFINITION and resource.collection not in _PLAIN:
        return {}
    try:
        managers = managed_fields.decode(live["metadata"].get("managedFields"))
    except managed_fields.InvalidEntries:
        return {}
    fields = [
        owned.fields for manager, owned in managers.items() if manager.name == MANAGER and not manager.subresource
    ]
    return owned_part(live, fieldset.united(fields)) if fields else {}


# -- what became of fields --------------------------------------------------------------------------------------------


def _compared(live: Object, written: Object, configuration: Object, result: str) -> AppliedObject:
    """What became of an object: `live` before, `written` after a configuration was applied to it."""
    kept, lost = [], []
    for manager, path in _of_others(live):
        field = f"{fieldset.describe(path, stored=False).removeprefix('.')} ({manager})"
        old, new = value_at(live, path), value_at(written, path)
        if not equal(old, new):
            lost.append(field)
        elif old and not value_at(configuration, path):
            kept.append(field)
    is_shown = result == "configured" and log.isEnabledFor(logging.DEBUG)
    return AppliedObject(result, list(_changes(live, written)) if is_shown else [], kept, lost)


def _of_others(live: Object) -> Iterator[tuple[str, fieldset.Path]]:
    """The fields that others have set, except for those of status."""
    managed = live["metadata"].get("managedFields") or []
    if all(entry.get("manager") == MANAGER for entry in managed):
        return
    try:
        managers = managed_fields.decode(managed)
    except managed_fields.InvalidEntries:
        return
    for manager, owned in managers.items():
        if manager.name != MANAGER and manager.subresource != "status":
            for path in leaves(owned.fields):
                if path[0] != _STATUS and path not in _NOT_NAMED:
                    yield manager.name or "unknown", path


def _changes(old: Object, new: Object) -> Iterator[str]:
    """The paths of fields that differ; lists are compared as a whole."""
    todo: list[tuple[fieldset.Path, Object, Object]] = [((), old, new)]
    while todo:
        path, before, after = todo.pop()
        for name in {**before, **after}:
            inner = (*path, fieldset.field(name))
            left: Json = before.get(name)
            right: Json = after.get(name)
            if isinstance(left, dict) and isinstance(right, dict):
                todo.append((inner, left, right))
            elif not (inner in _NOT_NAMED or inner[0] == _STATUS or equal(left, right)):
                yield fieldset.describe(inner).removeprefix(".")
