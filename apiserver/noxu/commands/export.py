"""`noxu export`: write objects as YAML that `kubectl apply` and `noxu serve` take.

The objects come from a running server, from a data directory that no server uses, or from etcd. They are cleaned (see
`exported`); definitions come first, then namespaces, then the objects to which others refer. An export that a new
server loads and exports again is the same export.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, NamedTuple, Protocol

from noxu.api import codec
from noxu.api.errors import ApiError
from noxu.commands import exported, progress
from noxu.commands.api_client import ApiClient, RequestError
from noxu.commands.exported import NEVER, Exported, ForeignFile, cleaned, is_made_by_servers, rank
from noxu.commands.places import StoreState, UnusablePlace, opened
from noxu.config import StartError
from noxu.control_plane import WITHOUT_CONTROLLERS, assemble, running
from noxu.crd import conditions
from noxu.registry.builtin import built_in_versions, definitions_resource
from noxu.registry.custom import versions_of
from noxu.registry.resource import Resource, Versions
from noxu.registry.storage_form import as_json, is_temporary
from noxu.registry.stored_object import StoredObject, object_at
from noxu.schema.structural import NoStructuralForm
from noxu.values import Object
from noxu_storage.memory import MemoryStore
from noxu_storage.types import (
    EVERYTHING,
    Corrupt,
    OpenError,
    Prefix,
    Unavailable,
)

MOST_NAMED: Final = 5


class ExportError(Exception):
    """Nothing can be exported; the message says why and what to do."""


class ExportedKind(NamedTuple):
    """A resource, by the names that kubectl knows it by. `has_status`: its status is a subresource."""

    group: str
    plural: str
    kind: str
    namespaced: bool
    has_status: bool
    names: frozenset[str]
    """In lower case, with and without the group."""
    categories: frozenset[str]
    path: str = ""
    versions: Versions | None = None


class ExportSource(Protocol):
    """Where the objects are. Methods raise RequestError, Corrupt, Unavailable."""

    @property
    def failures(self) -> list[str]:
        """What could not be read."""
        ...

    def kinds(self) -> list[ExportedKind]:
        """All kinds of objects that clients can create."""
        ...

    def objects(self, kind: ExportedKind) -> Iterator[Object]: ...


@dataclass
class Left:
    """How many objects are left out, and why."""

    made: int = 0
    owned: int = 0
    deleted: int = 0
    failures: list[str] = field(default_factory=list)


def run(options: argparse.Namespace) -> int:
    """Exit status 0: everything is exported; 1: something is not."""
    left = Left()
    try:
        with _source(options) as source, progress.shown("export", quiet=options.quiet) as report:
            objects = []
            for n, item in enumerate(_exported(source, options, left)):
                report(n, 0)
                objects.append(item)
            left.failures += source.failures
        objects.sort(key=lambda item: (rank(item.group, item.kind), item.group, item.plural, item.namespace, item.name))
        stale = _write(options, objects)
    except (ExportError, ForeignFile, RequestError, StartError, OpenError, Corrupt, Unavailable) as error:
        print(f"noxu: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if options.to is None:
            raise
        print(f"noxu: cannot write {error.filename or options.to}: {error.strerror or error}", file=sys.stderr)
        return 1
    for failure in left.failures:
        print(f"noxu: {failure}", file=sys.stderr)
    if not options.quiet:
        for line in _notes(objects, left, stale):
            print(f"noxu: {line}", file=sys.stderr)
    return 1 if left.failures else 0


def _write(options: argparse.Namespace, objects: Sequence[Exported]) -> list[str]:
    """Write the objects. Returns files of a former export. Raises ForeignFile, OSError."""
    if options.to is None:
        sys.stdout.flush()
        for part in exported.stream(objects):
            sys.stdout.buffer.write(part)
        return []
    if options.to.suffix in exported.SUFFIXES and not options.to.is_dir():
        exported.write_file(options.to, objects)
        return []
    return [str(path) for path in exported.write_folder(options.to, objects)]


def _notes(objects: Sequence[Exported], left: Left, stale: Sequence[str]) -> Iterator[str]:
    parts = [
        f"{count} {why}"
        for count, why in (
            (left.made, "that servers make"),
            (left.owned, "that others own (--owned)"),
            (left.deleted, "being deleted"),
        )
        if count
    ]
    more = f"; left out: {', '.join(parts)}" if parts else ""
    yield f"{len(objects)} object{'' if len(objects) == 1 else 's'} exported{more}"
    if secrets := sum((item.group, item.kind) == ("", "Secret") for item in objects):
        yield f"{secrets} of them {'is a Secret' if secrets == 1 else 'are Secrets'}, whose values anybody can read in YAML"
    if stale:
        named = f"{', '.join(stale[:MOST_NAMED])}{', …' if len(stale) > MOST_NAMED else ''}"
        yield f"of an earlier export, and not of this one: {named}"


def _exported(source: ExportSource, options: argparse.Namespace, left: Left) -> Iterator[Exported]:
    """Raises ExportError."""
    kinds = source.kinds()
    chosen = _chosen(kinds, [name for text in options.kinds for name in text.split(",") if name])
    by_servers = asyncio.run(_made())
    for kind in chosen or [kind for kind in kinds if (kind.group, kind.kind) not in NEVER]:
        if options.namespace and not (kind.namespaced or chosen):
            continue
        for value in source.objects(kind):
            metadata = value["metadata"]
            namespace, name = metadata.get("namespace") or "", metadata["name"]
            if kind.namespaced and options.namespace and namespace not in options.namespace:
                continue
            if not options.labels.matches(metadata.get("labels") or {}):
                continue
            clean = cleaned(value, kind.group, has_status=kind.has_status)
            if metadata.get("deletionTimestamp"):
                left.deleted += 1
            elif is_made_by_servers(value, kind.group) or _is_made(by_servers, kind, namespace, name, clean):
                left.made += 1
            elif metadata.get("ownerReferences") and not options.owned:
                left.owned += 1
            else:
                yield Exported(kind.group, kind.plural, kind.kind, namespace, name, clean)


def _chosen(kinds: Sequence[ExportedKind], names: Sequence[str]) -> list[ExportedKind]:
    """The kinds of these names. Raises ExportError."""
    chosen: dict[tuple[str, str], ExportedKind] = {}
    for name in names:
        same = [kind for kind in kinds if name.lower() in kind.names]
        of_category = [kind for kind in kinds if name.lower() in kind.categories]
        if not same and not of_category:
            near = get_close_matches(name.lower(), sorted({candidate for kind in kinds for candidate in kind.names}), 1)
            raise ExportError(f'there is no resource type "{name}"{f" (did you mean {near[0]}?)" if near else ""}')
        # as kubectl: `events` are those of the core group, `all` is every kind of that category
        for kind in [min(same, key=lambda kind: bool(kind.group))] if same else of_category:
            chosen[kind.group, kind.plural] = kind
    return list(chosen.values())


# -- what a new server has --------------------------------------------------------------------------------------------

Made = dict[tuple[str, str, str, str], Object]


async def _made() -> Made:
    """The objects that a server makes when it starts, and for every namespace, cleaned."""
    by_servers: Made = {}
    async with running(assemble(WITHOUT_CONTROLLERS, MemoryStore())) as plane:
        for resource in plane.served_resources.current.resources:
            if not resource.is_stored or resource.versions.storage is not resource:
                continue
            for entry in (await plane.reader.collection(resource)).entries.values():
                clean = cleaned(object_at(entry, resource), resource.group, has_status=resource.has_status)
                by_servers[resource.group, resource.plural, entry.namespace, entry.key.name] = _unversioned(clean)
    return by_servers


def _is_made(by_servers: Made, kind: ExportedKind, namespace: str, name: str, clean: Object) -> bool:
    expected = by_servers.get((kind.group, kind.plural, namespace, name))
    if (kind.group, kind.kind, name) == ("", "ServiceAccount", "default"):
        metadata = {"name": "default", "namespace": namespace}
        return {**_unversioned(clean), "secrets": None} == {
            "kind": "ServiceAccount",
            "metadata": metadata,
            "secrets": None,
        }
    return expected is not None and _unversioned(clean) == expected


def _unversioned(value: Object) -> Object:
    return {name: content for name, content in value.items() if name != "apiVersion"}


# -- where the objects are --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _source(options: argparse.Namespace) -> Iterator[ExportSource]:
    try:
        with opened(options, "export from it") as place:
            yield RunningServer(place) if isinstance(place, ApiClient) else StoredState(place)
    except UnusablePlace as error:
        raise ExportError(str(error)) from None


class StoredState:
    """What a data directory that no server uses, or etcd, has stored."""

    def __init__(self, state: StoreState) -> None:
        self._state = state
        self._refused: list[str] = []

    @property
    def failures(self) -> list[str]:
        return [
            *self._refused,
            *(
                f"{' '.join(key)}: corrupt at revision {revision}; see `noxu check`"
                for key, revision in self._state.corrupt.items()
            ),
        ]

    def kinds(self) -> list[ExportedKind]:
        definitions = definitions_resource()
        served = [definitions, *built_in_versions()]
        for crd in self._of(definitions.storage):
            if conditions.is_true(crd, conditions.ESTABLISHED):
                try:
                    served.append(versions_of(crd, 0))
                except NoStructuralForm as error:
                    name = crd["metadata"]["name"]
                    self._refused.append(f"{name}: its objects cannot be read: its schema is not structural: {error}")
        kinds = {versions.storage.collection: versions.storage for versions in served}
        if others := self._others(kinds.keys()):
            what = "object is of a kind" if others == 1 else "objects are of kinds"
            self._refused.append(f"{others} {what} that no definition describes: export from a server that serves it")
        return [_kind(resource) for resource in kinds.values() if {"create", "list"} <= set(resource.verbs)]

    def _others(self, served: Collection[str]) -> int:
        """The number of objects of other collections."""
        if self._state.count(EVERYTHING) == sum(self._state.count(Prefix(collection)) for collection in served):
            return 0
        keys = (item.key for item in self._state.values(EVERYTHING))
        return sum(key.collection not in served and not is_temporary(key) for key in keys)

    def objects(self, kind: ExportedKind) -> Iterator[Object]:
        assert kind.versions is not None
        yield from self._of(kind.versions.storage)

    def _of(self, resource: Resource) -> Iterator[Object]:
        for key, stored, revision in self._state.values(Prefix(resource.collection)):
            try:
                value = _decoded(StoredObject(key, stored, revision), resource)
            except (ValueError, LookupError, TypeError, AttributeError, ApiError):  # what another program has written
                self._refused.append(f"{' '.join(key)}: cannot be decoded; see `noxu check`")
            else:
                yield value


def _decoded(entry: StoredObject, resource: Resource) -> Object:
    """An object in the storage version, or in its own if a webhook converts it, which is not called."""
    if resource.versions.converter is None:
        value = object_at(entry, resource)
    else:
        value = codec.decode_stored(as_json(entry.stored))
    if not (isinstance(value["metadata"]["name"], str) and isinstance(value["kind"], str)):
        raise ValueError
    return value


def _kind(resource: Resource) -> ExportedKind:
    names = _names(resource.group, resource.plural, resource.singular, resource.kind, resource.short_names)
    return ExportedKind(
        resource.group,
        resource.plural,
        resource.kind,
        resource.namespaced,
        resource.has_status,
        names,
        frozenset(resource.categories),
        versions=resource.versions,
    )


def _names(group: str, plural: str, singular: str, kind: str, short: Iterable[str]) -> frozenset[str]:
    names = {plural, singular, kind.lower(), *short} - {""}
    return frozenset(names | {f"{name}.{group}" for name in names if group})


class RunningServer:
    """A server, over its API."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self.failures: list[str] = []

    def kinds(self) -> list[ExportedKind]:
        kinds: dict[tuple[str, str], ExportedKind] = {}
        for group, path in self._group_versions():
            try:
                resources = self._client.get(path).get("resources") or []
            except RequestError as error:  # an aggregated API whose server does not answer
                self.failures.append(str(error))
                continue
            with_status = {item["name"].partition("/")[0] for item in resources if item["name"].endswith("/status")}
            for item in resources:
                name = item["name"]
                if "/" in name or (group, name) in kinds or not {"list", "create"} <= set(item.get("verbs") or ()):
                    continue
                names = _names(group, name, item.get("singularName") or "", item["kind"], item.get("shortNames") or ())
                kinds[group, name] = ExportedKind(
                    group,
                    name,
                    item["kind"],
                    bool(item.get("namespaced")),
                    name in with_status,
                    names,
                    frozenset(item.get("categories") or ()),
                    f"{path}/{name}",
                )
        return list(kinds.values())

    def _group_versions(self) -> Iterator[tuple[str, str]]:
        """The groups and the paths of their versions, of each group the preferred one first."""
        yield "", "/api/v1"
        for group in self._client.get("/apis").get("groups") or []:
            preferred = (group.get("preferredVersion") or {}).get("groupVersion")
            paths = [version["groupVersion"] for version in group.get("versions") or []]
            for version in sorted(paths, key=lambda name: name != preferred):
                yield group["name"], f"/apis/{version}"

    def objects(self, kind: ExportedKind) -> Iterator[Object]:
        return self._client.list(kind.path)
