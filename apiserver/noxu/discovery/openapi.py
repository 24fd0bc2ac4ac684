"""The published OpenAPI documents: /openapi/v3, one document for each group version, and /openapi/v2 with everything.

Upstream builds them in controllers, about a second after a definition is established; here they are built on request,
from the current served resources. A document is cached as long as its resources are the same. /openapi/v2 changes with
every definition, so the parts of each resource are cached as well, encoded, and unchanged parts are not compressed
again (`GzipPieces`). The cache has limits: MAX_KEPT bytes of documents, of which those that were used last remain, and
MAX_PARTS of parts.

The index names each document by a hash. Upstream's is that of its JSON; this one is that of the sources of the JSON:
the declarations of its resources, and the version of this program. So the index builds no document: with 6,000 group
versions, each takes a millisecond, and 15 KB.

Building takes some 50 ms for a definition of 1 MB. `Published.kept` never builds, and `Published.build` may be called in
a thread.

`GzipPieces` compresses a document in pieces, most of which were in the document before a change: only the neighbours of
the new ones are compressed again.

Pieces are compressed in groups. A group ends with a piece whose first bytes say so, whatever stands before it, so that
a new piece changes one group:

    before   a b c| d e| f g|         b' is new:   a b' c| d e| f g|

Each group ends at a byte (Z_SYNC_FLUSH) and refers to nothing before it, so that groups are put together to one stream
(RFC 1952):

    header | the blocks of group 1 | the blocks of group 2 | … | an empty last block | CRC-32 and size of the whole
"""

from __future__ import annotations

import hashlib
import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias
from weakref import WeakKeyDictionary, ref

from noxu.api import codec
from noxu.config import own_version
from noxu.cpu_budget import spend
from noxu.discovery import openapi_definitions as definitions
from noxu.discovery import openapi_paths as paths
from noxu.discovery import openapi_proto as proto
from noxu.discovery import openapi_schemas as schemas
from noxu.discovery.openapi_proto import ProtoWriter
from noxu.discovery.openapi_texts import KINDS
from noxu.registry.resource import Resource
from noxu.registry.served_resources import ServedResources
from noxu.releases import NEWEST, named
from noxu.values import Json, Object

LEVEL: Final = 1  # upstream's
ENDS: Final = 16  # one of so many pieces ends a group
WINDOW: Final = 32 * 1024  # bytes that deflate refers to: a longer piece ends a group
_BEGINNING: Final = 128  # bytes; a shorter piece, such as a comma, never ends a group
_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"  # deflate, no time, the fastest level, any system
_LAST_BLOCK: Final = b"\x03\x00"

_Group: TypeAlias = tuple[bytes, ...]


class GzipPieces:
    """Compresses the versions of a document, one after the other, in any thread."""

    def __init__(self) -> None:
        self._blocks: dict[_Group, bytes] = {}  # of the last version

    def of(self, pieces: Sequence[bytes]) -> bytes:
        """The gzip of the pieces together."""
        kept, groups = self._blocks, list(_groups(pieces))
        self._blocks = used = {group: kept.get(group) or _blocks(group) for group in groups}
        size = checksum = 0
        for piece in pieces:
            size += len(piece)
            checksum = zlib.crc32(piece, checksum)
        end = struct.pack("<II", checksum, size & 0xFFFFFFFF)
        return b"".join((_HEADER, *(used[group] for group in groups), _LAST_BLOCK, end))


def _groups(pieces: Iterable[bytes]) -> Iterator[_Group]:
    group: list[bytes] = []
    for piece in pieces:
        group.append(piece)
        if len(piece) > WINDOW or (len(piece) >= _BEGINNING and zlib.crc32(piece[:_BEGINNING]) % ENDS == 0):
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)


def _blocks(group: _Group) -> bytes:
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b"".join([*map(compressor.compress, group), compressor.flush(zlib.Z_SYNC_FLUSH)])


ROOT: Final = "/openapi/v3"
VERSION: Final = "version"
"""The path of the document for /version, which is listed with those of group versions."""

MAX_KEPT: Final = 32 * 1024 * 1024  # bytes of documents; the one that was built last is kept in any case
MAX_PARTS: Final = 16 * 1024 * 1024  # bytes of the parts of /openapi/v2, in both forms
_PER_RESOURCE: Final = 500  # units of work for the budget
_CUSTOM_INFO: Final = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_TITLE: Final = "Kubernetes"


class DocumentForm(Enum):
    """The encoding of a document."""

    JSON = "json"
    PROTOBUF = "protobuf"


class DocumentKey(NamedTuple):
    """Identifies a document. `path` is `apis/GROUP/VERSION`, `api/VERSION` or VERSION; "" for the index and for v2."""

    style: str
    path: str = ""
    form: DocumentForm = DocumentForm.JSON


INDEX: Final = DocumentKey(schemas.V3)


class PublishedDocument(NamedTuple):
    """`hash` is the same for both forms. `compress` makes the body with gzip; None: no faster than of any bytes."""

    body: bytes
    hash: str
    made: datetime
    compress: Callable[[], bytes] | None = None

    def url(self, path: str) -> str:
        """The URL of this content, which never changes."""
        return _url(path, self.hash)


def _url(path: str, hash_: str) -> str:
    return f"{ROOT}/{path}?hash={hash_}"


def _hash(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha512()
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest().upper()


class Published:
    """The documents of served resources that change. `cbor`: the feature gate CBORServingAndStorage; `release`: of Kubernetes.

    It keeps no resource alive: nothing remains of a deleted definition but its part of documents, until these are made again.
    """

    def __init__(self, now: Callable[[], datetime], *, cbor: bool = False, release: int = NEWEST) -> None:
        self._now = now
        self._cbor = cbor
        self._release = release
        self._building = threading.Lock()
        self._kept: OrderedDict[DocumentKey, _Kept] = OrderedDict()  # those that were used last are at the end
        self._digests: WeakKeyDictionary[Resource, bytes] = WeakKeyDictionary()
        self._made: dict[str, tuple[str, datetime]] = {}
        """By path: the hash of a document of v3, and since when it is the hash."""
        self._parts_size = 0  # bytes; those of resources that are gone, too, until the next document
        self._gzip = {form: GzipPieces() for form in DocumentForm}  # of v2
        self._shared: dict[DocumentForm, dict[str, bytes]] = {form: {} for form in DocumentForm}
        """The definitions of built-in types in v2."""
        self._parts: WeakKeyDictionary[Resource, dict[DocumentForm, _ResourceParts]] = WeakKeyDictionary()
        self._seen: WeakKeyDictionary[ServedResources, dict[str, tuple[Resource, ...]]] = WeakKeyDictionary()

    def exists(self, served_resources: ServedResources, path: str) -> bool:
        """Whether there is a document for this group version."""
        return path == VERSION or path in self._group_versions(served_resources)

    def kept(self, served_resources: ServedResources, key: DocumentKey) -> PublishedDocument | None:
        """The cached document, None if there is none or it is outdated."""
        entry = self._kept.get(key)
        if entry is None:
            return None
        if entry.served_resources() is not served_resources:
            if entry.resources != _references(self._resources(served_resources, key)):
                return None
            entry = self._kept[key] = entry._replace(served_resources=ref(served_resources))
        self._kept.move_to_end(key)
        return entry.document

    def build(self, served_resources: ServedResources, key: DocumentKey) -> PublishedDocument:
        """The document. May be called in a thread; only one document is built at a time."""
        with self._building:
            return self._document(served_resources, key)

    def _document(self, served_resources: ServedResources, key: DocumentKey) -> PublishedDocument:
        cached = self.kept(served_resources, key)
        if cached is not None:
            return cached
        resources = self._resources(served_resources, key)
        shared: PublishedDocument | None = served_resources.documents.get((key, self._cbor))
        if shared is not None:  # another server has made it
            document = shared._replace(made=self._now())
            self._keep(key, _Kept(ref(served_resources), _references(resources), document))
            return document
        pieces = self._pieces(served_resources, key, resources)
        body = b"".join(pieces)
        if key.path:
            document = PublishedDocument(body, *self._hash(key.path, resources))
        elif key.form is DocumentForm.PROTOBUF:
            document = self._document(served_resources, key._replace(form=DocumentForm.JSON))._replace(body=body)
        else:
            document = PublishedDocument(body, _hash([body]), self._now())
        compress = partial(self._gzip[key.form].of, pieces) if key.style == schemas.V2 else None
        document = document._replace(compress=compress)
        self._keep(key, _Kept(ref(served_resources), _references(resources), document))
        served_resources.documents.add((key, self._cbor), document, len(body))
        return document

    def _keep(self, key: DocumentKey, entry: _Kept) -> None:
        """Keep a document, and drop those for which there is no room; the index is the only one that is always kept."""
        self._kept[key] = entry
        self._kept.move_to_end(key)
        size = sum(len(cached.document.body) for cached in list(self._kept.values()))  # the loop may use one meanwhile
        for old in list(self._kept):
            if size <= MAX_KEPT:
                return
            if old not in (key, INDEX):
                size -= len(self._kept.pop(old).document.body)

    def _hash(self, path: str, resources: Iterable[Resource]) -> tuple[str, datetime]:
        """The hash of a document of v3, and the time since when it has this content."""
        parts = sorted(map(self._digest, resources))
        digest = _hash([own_version().encode(), b"%d.%d" % (self._cbor, self._release), path.encode(), *parts])
        entry = self._made.get(path)
        if entry is None or entry[0] != digest:
            entry = self._made[path] = digest, self._now()
        return entry

    def _digest(self, resource: Resource) -> bytes:
        """The digest of a declaration: of all that documents show of a resource. Built-in ones are the same in one version."""
        digest = self._digests.get(resource)
        if digest is None:
            shown = (
                resource.is_custom,
                resource.api_version,
                resource.plural,
                resource.kind,
                resource.list_kind,
                resource.namespaced,
                tuple(resource.verbs),
                sorted(resource.subresources),
                tuple(resource.selectable_fields),
            )
            digest = hashlib.sha256(repr(shown).encode("utf-8", "surrogatepass") + resource.schema_text).digest()
            self._digests[resource] = digest
        return digest

    def _pieces(
        self, served_resources: ServedResources, key: DocumentKey, resources: Sequence[Resource]
    ) -> list[bytes]:
        if key == INDEX:
            return [self._index(served_resources)]
        if key.path == VERSION:
            return _version_document(key.form, self._release)
        if key.style == schemas.V3:
            parts = [_resource_parts(resource, _V3[key.form], cbor=self._cbor) for resource in resources]
            return _assemble(_V3[key.form], parts, resources, self._release)
        self._parts_size = sum(parts.size for forms in self._parts.values() for parts in forms.values())
        own = [self._kept_parts(resource, key.form) for resource in resources]
        return _assemble(_V2[key.form], own, resources, self._release, self._shared[key.form])

    def _index(self, served_resources: ServedResources) -> bytes:
        """The index of documents."""
        group_versions = self._group_versions(served_resources)
        self._forget(group_versions)
        urls: Object = {}
        for path in sorted((*group_versions, VERSION)):
            resources = group_versions.get(path, ())
            spend(_PER_RESOURCE * len(resources))
            urls[path] = {"serverRelativeURL": _url(path, self._hash(path, resources)[0])}
        return codec.encode({"paths": urls}, sort_keys=False)

    def _forget(self, group_versions: Mapping[str, object]) -> None:
        """Drop the documents of group versions that do not exist any more."""
        for key in [
            key for key in list(self._kept) if key.path not in ("", VERSION) and key.path not in group_versions
        ]:
            del self._kept[key]
        for path in [path for path in self._made if path != VERSION and path not in group_versions]:
            del self._made[path]

    def _kept_parts(self, resource: Resource, form: DocumentForm) -> _ResourceParts:
        parts = self._parts.get(resource, {}).get(form)
        if parts is None:
            parts = _resource_parts(resource, _V2[form], cbor=self._cbor)
            if self._parts_size + parts.size <= MAX_PARTS:
                self._parts.setdefault(resource, {})[form] = parts
                self._parts_size += parts.size
        return parts

    def _resources(self, served_resources: ServedResources, key: DocumentKey) -> tuple[Resource, ...]:
        """The resources of a document."""
        if not key.path:
            return tuple(served_resources.resources)
        return self._group_versions(served_resources).get(key.path, ())

    def _group_versions(self, served_resources: ServedResources) -> dict[str, tuple[Resource, ...]]:
        """The resources of each group version, by path."""
        seen = self._seen.get(served_resources)
        if seen is not None:
            return seen
        by_path: dict[str, list[Resource]] = {}
        for resource in served_resources.resources:
            by_path.setdefault(f"{'apis' if resource.group else 'api'}/{resource.api_version}", []).append(resource)
        frozen = {path: tuple(resources) for path, resources in by_path.items()}
        self._seen[served_resources] = frozen
        return frozen


_References: TypeAlias = tuple["ref[Resource]", ...]


class _Kept(NamedTuple):
    """A document, the served resources for which it was last found right, and its resources."""

    served_resources: ref[ServedResources]
    resources: _References
    document: PublishedDocument


def _references(resources: Iterable[Resource]) -> _References:
    """References to resources, which are equal if the resources exist and are the same."""
    return tuple(map(ref, resources))


# -- assembly ----------------------------------------------------------------------------------


class _Paths(Protocol):
    def __call__(self, resource: Resource, /, *, cbor: bool) -> Mapping[str, Object]: ...


class _Style(NamedTuple):
    """The differences between the versions and forms of OpenAPI."""

    prefix: str
    definition: Callable[[str, int], Object]
    paths: _Paths
    head: Callable[[Object], Object]
    writer: ProtoWriter


_Entries: TypeAlias = dict[str, bytes]
"""Encoded path items or schemas with their names, by name."""


class _ResourceParts(NamedTuple):
    """The path items, the definitions of a custom resource, and the names of other definitions that it needs."""

    paths: _Entries
    schemas: _Entries
    refers: frozenset[str]

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(map(len, self.paths.values())) + sum(map(len, self.schemas.values()))


def _resource_parts(resource: Resource, style: _Style, *, cbor: bool) -> _ResourceParts:
    spend(_PER_RESOURCE)
    writer = style.writer
    items = {
        path: writer.path_entry(path, writer.path_item(item)) for path, item in style.paths(resource, cbor=cbor).items()
    }
    refers = paths.referred(resource)
    own: _Entries = {}
    if paths.is_custom(resource):
        kind, list_kind = paths.kind_name(resource), paths.list_name(resource)
        own[kind] = _definition(style, kind, schemas.kind_schema(resource, style.prefix))
        own[list_kind] = _definition(style, list_kind, schemas.list_schema(resource, style.prefix))
        refers |= {definitions.OBJECT_META, definitions.LIST_META}
    return _ResourceParts(items, own, frozenset(refers - own.keys()))


def _definition(style: _Style, name: str, schema: Object) -> bytes:
    return style.writer.schema_entry(name, style.writer.schema(schema))


def _assemble(
    style: _Style,
    parts: Iterable[_ResourceParts],
    resources: Iterable[Resource],
    release: int,
    shared: _Entries | None = None,
) -> list[bytes]:
    """The pieces of a document. `shared` are definitions of built-in types, which are added to it."""
    shared = {} if shared is None else shared
    items: _Entries = {}
    own: _Entries = {}
    refers: set[str] = set()
    for part in parts:
        items |= part.paths
        own |= part.schemas
        refers |= part.refers
    for name in definitions.reached(refers, release):
        if name not in shared:
            shared[name] = _definition(style, name, style.definition(name, release))
        own[name] = shared[name]
    info = _CUSTOM_INFO if all(map(paths.is_custom, resources)) else _info(release)
    return style.writer.document(style.head(info), _in_order(items), _in_order(own))


def _in_order(entries: _Entries) -> list[bytes]:
    return [entries[name] for name in sorted(entries)]


def _info(release: int) -> Object:
    return {"title": _TITLE, "version": f"v{named(release)}"}


def _version_document(form: DocumentForm, release: int) -> list[bytes]:
    """The document for /version."""
    style = _V3[form]
    name = "io.k8s.apimachinery.pkg.version.Info"
    fields = (
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    )
    info = {
        "description": KINDS["Info"],
        "type": "object",
        "required": list(fields),
        "properties": {field: {"type": "string", "default": ""} for field in sorted(fields)},
    }
    operation = {
        "tags": ["version"],
        "description": "The version of the server.",
        "operationId": "getCodeVersion",
        "responses": {"200": {"description": "OK", "content": {paths.JSON: {"schema": {"$ref": schemas.V3 + name}}}}},
    }
    item = style.writer.path_entry("/version/", style.writer.path_item({"get": operation}))
    return style.writer.document(style.head(_info(release)), [item], [_definition(style, name, info)])


def _encode(value: Object) -> bytes:
    return codec.encode(value, sort_keys=False)


def _json_entry(name: str, value: bytes) -> bytes:
    """A member of a JSON object: `"a":1`."""
    return codec.encode(name, sort_keys=False) + b":" + value


def _members(values: Object, encode: Callable[[Json], bytes]) -> bytes:
    return b",".join([_json_entry(name, encode(value)) for name, value in values.items()])


def _separated(entries: Sequence[bytes]) -> Iterator[bytes]:
    """The members of an object in pieces: b'"a":1', b",", b'"b":2'."""
    for n, entry in enumerate(entries):
        if n:
            yield b","
        yield entry


def _json_v2(head: Object, items: Sequence[bytes], own: Sequence[bytes]) -> list[bytes]:
    """`{"swagger":"2.0","info":…,"paths":{…},"definitions":{…},"parameters":…}` in pieces."""
    before = {name: value for name, value in head.items() if name != "parameters"}
    return [
        b"{" + _members(before, codec.encode_unescaped) + b',"paths":{',
        *_separated(items),
        b'},"definitions":{',
        *_separated(own),
        b'},"parameters":' + codec.encode_unescaped(head["parameters"]) + b"}",
    ]


def _json_v3(head: Object, items: Sequence[bytes], own: Sequence[bytes]) -> list[bytes]:
    """`{"openapi":"3.0.0","info":…,"paths":{…},"components":{"schemas":{…}}}` in pieces."""
    return [
        b"{" + _members(head, _encode) + b',"paths":{',
        *_separated(items),
        b'},"components":{"schemas":{',
        *_separated(own),
        b"}}}",
    ]


def _head_v2(info: Object) -> Object:
    return {"swagger": "2.0", "info": info, "parameters": paths.shared_parameters()}


def _head_v3(info: Object) -> Object:
    return {"openapi": "3.0.0", "info": info}


def _definition_v3(name: str, release: int) -> Object:
    return definitions.in_v3(name, schemas.V3, release)


_V2: Final = {
    form: _Style(schemas.V2, definitions.in_v2, paths.v2, _head_v2, writer)
    for form, writer in (
        (
            DocumentForm.JSON,
            ProtoWriter(codec.encode_unescaped, codec.encode_unescaped, _json_entry, _json_entry, _json_v2),
        ),
        (DocumentForm.PROTOBUF, proto.V2),
    )
}
_V3: Final = {
    form: _Style(schemas.V3, _definition_v3, paths.v3, _head_v3, writer)
    for form, writer in (
        (DocumentForm.JSON, ProtoWriter(_encode, _encode, _json_entry, _json_entry, _json_v3)),
        (DocumentForm.PROTOBUF, proto.V3),
    )
}
