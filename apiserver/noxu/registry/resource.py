"""A resource: one version of a kind as the API serves it, with everything that is compiled for it.

Custom resources, CustomResourceDefinitions, built-in kinds and virtual kinds are all `Resource`s; `type` says which. How
their objects are decoded, read and written is their `Codec`; what a write may change and must satisfy is their
strategy (`registry.strategies`). `Versions` ties the versions of one resource together: objects are stored once, in the
storage version, and read at any served one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from noxu import cel
from noxu.api import codec
from noxu.api.errors import Qualified
from noxu.api.meta import GroupVersionKind
from noxu.apply.managed_fields import RecurringSets
from noxu.crd import types as crd
from noxu.go.structs import Struct, decode
from noxu.kinds.kind import METADATA_LABELS, Kind
from noxu.registry import storage_form
from noxu.registry.offload import LOOP_LIMIT, offload
from noxu.values import Object, cached_property

if TYPE_CHECKING:
    from noxu.apply.tracker import Tracker
    from noxu.cel import RuleValidator
    from noxu.schema.compiled import Compiled
    from noxu.schema.structural import Structural

CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The order in which upstream lists them in discovery."""

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
APPLY_CBOR: Final = "application/apply-patch+cbor"
APPLY_PATCHES: Final = (APPLY_PATCH, APPLY_CBOR)
CUSTOM_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
BUILT_IN_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
"""The media types of patches that kinds accept, in the order in which errors and OpenAPI list them."""


class ResourceType(Enum):
    """The type of a resource, which selects its strategy and its encoding."""

    CUSTOM = auto()
    """Defined by a CustomResourceDefinition: described by a schema, JSON with sorted keys, no protobuf."""
    DEFINITION = auto()
    """customresourcedefinitions themselves."""
    BUILT_IN = auto()
    """Described by a struct table (`noxu.kinds`), stored."""
    VIRTUAL = auto()
    """Described by a struct table; a POST is answered and nothing is stored (access reviews)."""

    __hash__ = object.__hash__  # that of Enum is written in Python


CUSTOM, DEFINITION, BUILT_IN, VIRTUAL = ResourceType


class Converted(NamedTuple):
    """Converted objects, and the weight of further work on them in bytes (a response may be larger than the request)."""

    values: list[Object]
    weight: int


class Converter(Protocol):
    """Converts the objects of one definition through a webhook. `timeout` is in seconds."""

    timeout: int

    async def convert(self, values: Sequence[Object], api_version: str, weight: int) -> Converted:
        """Convert objects, all of one version, to another version. `weight` is their size in bytes.

        The given objects are not changed, the results are not pruned. Raises ApiError.
        """
        ...


class Codec(Protocol):
    """How the objects of a resource are decoded, read and written. All of it is pure."""

    unconditional_update: bool
    """Whether an update may omit the resourceVersion."""

    create_on_update: bool
    """Whether an update of an object that does not exist creates it."""

    struct: Struct | None
    """The struct table of a built-in kind, None for custom resources."""

    def accept(self, resource: Resource, value: Object, *, stored: bool = False, old: Object | None = None) -> bool:
        """The fast path: decode, default and validate a clean object in one pass.

        `old` is an object that it has accepted; parts that are the same object in both, in the same place, are not looked at.

        True: `decode` and `prune` (or `read`, if it is `stored`) would change only the metadata of the object, and with
        defaults it satisfies the schema; its metadata is decoded and its defaults are filled in. False: the object has to
        take the stages one by one; some of its defaults may be filled in already.
        """
        ...

    def decode(self, resource: Resource, value: Object) -> tuple[Object, list[str]]:
        """Decode an object of a request: (the object, the paths of unknown fields in upstream's order).

        Objects of built-in kinds are also pruned. Raises ValueError for a value of the wrong type, with Go's message.
        """
        ...

    def prune(self, resource: Resource, value: Object) -> list[str]:
        """Remove the fields that the schema does not describe, in place; the removed paths. Raises ValueError."""
        ...

    def read(self, resource: Resource, value: Object) -> None:
        """Prune a stored object by the current schema of its version, in place; without defaults."""
        ...

    def prune_mutated(self, resource: Resource, value: Object) -> Object:
        """Prune an object after mutating admission, possibly in place; values of wrong types remain."""
        ...

    def convert(self, resource: Resource, value: Object) -> Object:
        """Convert an object of another version of the resource to this version, possibly in place."""
        ...

    def default(self, resource: Resource, value: Object) -> None:
        """Fill in defaults, in place. Raises ApiError if they make the object too large."""
        ...

    def written(self, value: Object) -> Object:
        """The object in the form in which it is encoded: in the order of declaration, without fields that Go omits if empty."""
        ...

    def reset_fields(self, resource: Resource, subresource: str) -> tuple[str, ...]:
        """The dotted paths that a write to this subresource cannot change, and for which it sets no field manager."""
        ...

    def selectable(self, resource: Resource, value: Object) -> dict[str, str]:
        """The values of the selectable fields, besides metadata.name and metadata.namespace."""
        ...

    def unknown_field_label(self, name: str) -> str:
        """The error for a field that is not selectable."""
        ...


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The fields behind /scale: JSON paths with their leading dot, as in the definition."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


class Rendering(NamedTuple):
    """The bytes that a read of an entry (`registry.stored_object`) returns at the version in which the entry is stored.

    `body` None: the stored bytes, as for nearly all entries; those with the same offset share their rendering. `offset` is the
    place in these bytes for the resourceVersion; -1 if the object has to be encoded with it. `valid`: the fast path has found
    that the object satisfies the schema of `resource`, apart from its metadata; False: that is not known.
    """

    resource: Resource | None = None
    body: bytes | None = None
    offset: int = -1
    valid: bool = False


@dataclass(eq=False)
class Resource:
    """One version of one resource.

    It begins with less than 30 attributes: of so many, CPython keeps the names once for all instances. With more, an instance is
    four times as large.
    """

    type: ResourceType
    group: str
    version: str
    plural: str
    singular: str
    kind: str
    list_kind: str
    namespaced: bool
    codec: Codec
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    verbs: Sequence[str] = CUSTOM_VERBS
    subresources: frozenset[str] = frozenset()
    scale: ScalePaths | None = None
    served: bool = True
    deprecation_text: str = ""
    """The warning for requests to a deprecated version, "" if it is not deprecated."""
    columns: Sequence[Object] | None = None
    selectable_fields: Sequence[str] = ()
    """JSON paths without the leading dot, as in field selectors."""
    raw_schema: Object | None = None
    """The schema as declared, until `keep_encoded`; then `declared_schema` decodes it."""
    table: Kind | None = None
    """The rules of a built-in or virtual kind."""
    bodies: Mapping[str, Resource] = field(default_factory=dict)
    """By subresource that acts on the object (`registry.subresources`): the kind of its body."""

    versions: Versions = field(init=False, repr=False)
    collection: str = field(init=False)
    """The storage collection; the same for all versions."""
    api_version: str = field(init=False)
    is_custom: bool = field(init=False)
    """Whether it is of the type CUSTOM. These are encoded with sorted keys, all others in the order of declaration."""
    trackers: dict[str, Tracker] = field(init=False, default_factory=dict, repr=False)
    """The trackers of field ownership by subresource, created by the first write (`registry.ownership`)."""
    renderings: dict[tuple[int, bool], Rendering] = field(init=False, default_factory=dict, repr=False)
    """Those that entries share: by their offsets, and whether the objects are valid."""
    is_stored: bool = field(init=False)
    _encoded_schema: bytes | memoryview = field(init=False, default=b"", repr=False)

    def __post_init__(self) -> None:
        self.api_version = f"{self.group}/{self.version}" if self.group else self.version
        self.is_custom = self.type is CUSTOM
        self.is_stored = self.type is not VIRTUAL

    def copy(self) -> Resource:
        """The same resource, with what has been compiled for it, which may belong to other versions."""
        new = object.__new__(Resource)
        for name, value in vars(self).items():
            setattr(new, name, value)  # one by one: so CPython keeps the names once, see above
        new.trackers, new.renderings = {}, {}  # these refer to the resource itself
        return new

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @cached_property
    def group_resource(self) -> Qualified:
        """The name of the resource in error messages: `widgets.example.com`."""
        return Qualified(self.group, self.plural)

    @cached_property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    @cached_property
    def metadata_labels(self) -> tuple[str, ...]:
        """The field labels of metadata. Custom resources have those that their scope has."""
        if self.table is not None:
            return self.table.metadata_labels
        return METADATA_LABELS if self.namespaced or not self.is_custom else METADATA_LABELS[:1]

    @cached_property
    def schema(self) -> Structural | None:
        """The structural schema with pruned defaults, parsed on first use; None if there is none."""
        declared = self.declared_schema
        if declared is None:
            return None
        schema: Structural = _of_schema("pruning.prune_defaults")(_of_schema("structural.parse")(declared))
        return schema

    @property
    def declared_schema(self) -> Object | None:
        """The schema as the definition has it, None if there is none."""
        encoded = bytes(self._encoded_schema)  # read once: a thread may keep the same bytes in another place meanwhile
        if codec.has_minus_zero(encoded):  # of a float64
            schema: Object = decode(crd.SCHEMA, codec.decode_literals(encoded)).value
            return schema
        return codec.decode_stored(encoded) if encoded else self.raw_schema

    @property
    def schema_text(self) -> bytes:
        """The declared schema in JSON: equal texts are equal schemas. Empty if there is none."""
        encoded = bytes(self._encoded_schema)
        return encoded or (b"" if self.raw_schema is None else codec.encode(self.raw_schema, sort_keys=False))

    @property
    def size(self) -> int:
        """The bytes of the declared schema, if they are kept."""
        return len(self._encoded_schema)

    @cached_property
    def compiled(self) -> Compiled | None:
        """The schema's fast path; None if there is no schema."""
        if self.schema is None:
            return None
        compiled: Compiled = _of_schema("compiled.Compiled")(self.schema)
        return compiled

    @property
    def is_exact(self) -> bool:
        """Whether the fast path accepts only objects without floats (see `Compiled.is_exact`)."""
        return self.compiled is not None and self.compiled.is_exact

    @cached_property
    def rules(self) -> RuleValidator | None:
        """The CEL rules of the schema (x-kubernetes-validations), compiled on first use; None if there are none."""
        if self.schema is None or not self.has_rules:
            return None
        return cel.RuleValidator(self.schema)  # imports the engine, which takes long, and few CRDs need it

    @cached_property
    def has_rules(self) -> bool:
        """Whether the schema has CEL rules."""
        return self.schema is not None and bool(_of_schema("structural.has_rules")(self.schema))

    @cached_property
    def stored_head(self) -> bytes:
        """The first bytes of a stored custom resource, unless a top-level field sorts before metadata."""
        return f'{{"apiVersion":"{self.api_version}","kind":"{self.kind}","metadata":'.encode()

    @cached_property
    def has_embedded(self) -> bool:
        """Whether the schema declares embedded resources."""
        return bool(_of_schema("embedded.has_embedded")(self.schema))

    @cached_property
    def serves_as_stored(self) -> bool:
        """Whether a read returns exactly what a write at this version stored.

        False if a default fills in the status, which a create removes, or contains nulls, which a read drops.
        """
        if _of_schema("defaulting.has_null_default")(self.schema):
            return False
        status = self.schema.properties.get("status") if self.schema is not None and self.has_status else None
        return status is None or status.default is _of_schema("structural.MISSING")

    def keep_encoded(self, definition: bytes = b"", part: memoryview | None = None) -> None:
        """Keep the declared schema as bytes, not decoded, which takes five times their memory: it is seldom needed.

        They are a part of `definition`, the stored bytes of the definition, if that has them: so they are kept once. `part` is
        that part, None: it has to be found.
        """
        if part is not None:
            # a view: the schema's bytes are those of the definition
            self._encoded_schema, self.raw_schema = part, None
            return
        encoded = bytes(self._encoded_schema)
        if self.raw_schema is not None:
            encoded = codec.encode(self.raw_schema, sort_keys=False)
        # the decoded schema goes; readers decode anew
        self._encoded_schema, self.raw_schema = _part_of(definition, encoded), None

    def prepare(self) -> None:
        """Compute the cached properties that every request uses.

        Until Python 3.12 those of all resources have one lock, for which the event loop must not wait while a thread computes.
        """
        attributes = vars(self)
        for name in _PREPARED:
            if name not in attributes:
                computed: cached_property[Any] = vars(Resource)[name]
                attributes[name] = computed.func(self)  # in the instance's dict, where `cached_property` looks first


def _of_schema(place: str) -> Any:
    """A name of `noxu.schema`, which servers import with the first definition: all of it takes 40 ms."""
    module, _, name = place.partition(".")
    return getattr(import_module(f"noxu.schema.{module}"), name)


_PREPARED: Final = ("schema", "has_embedded", "serves_as_stored")
_BEFORE_SCHEMA: Final = b'"openAPIV3Schema":'


def _part_of(definition: bytes, schema: bytes) -> bytes | memoryview:
    """The part of a definition that is the encoded schema; the schema itself if there is none.

        definition   …{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true…
                                                               ^~~~~~~~~~~~~~~~~ schema

    A schema may describe definitions, so what precedes the part may occur in other places, too.
    """
    at = definition.find(_BEFORE_SCHEMA) if schema else -1
    while at >= 0:
        at += len(_BEFORE_SCHEMA)
        if definition.startswith(schema, at):
            return memoryview(definition)[at : at + len(schema)]  # shared with the stored definition
        at = definition.find(_BEFORE_SCHEMA, at)
    return schema


Path: TypeAlias = tuple[str, str, str]
"""Group, version and plural."""


class Versions:
    """All versions of one resource.

    `since` is the revision at which the resource began to be served in this form; no watch starts before it.
    `terminating`: its definition is being deleted, and no object may be created. `deletes_instances`: the condition
    Terminating is true, and discovery lists fewer verbs. `converter` converts objects to another
    version through a webhook; None if the codecs convert. `is_prepared`: what requests use is compiled; `preparing` does so.
    `is_shared`: several servers have them, and add only what is compiled (`LiveResources.own` gives a copy).
    `recurring` are the sets of owned fields that its objects share. `digest` is that of the definition that they come from,
    None for built-in kinds: those with the same digest serve the same.
    """

    converter: Converter | None = None
    is_prepared = False
    is_shared = False
    preparing: asyncio.Task[None] | None = None
    digest: bytes | None = None

    def __init__(self, resources: Sequence[Resource], storage: Resource, since: int = 0) -> None:
        self.storage = storage
        self.since = since
        self.terminating = False
        self.deletes_instances = False
        self.recurring = RecurringSets()
        name_of = storage_form.custom_collection if storage.is_custom else storage_form.built_in_collection
        self.collection = name_of(storage.group, storage.plural)
        self._by_api_version = {resource.api_version: resource for resource in resources}
        for resource in resources:
            # a resource belongs to one `Versions` for good
            resource.versions, resource.collection = self, self.collection

    @property
    def all(self) -> Iterable[Resource]:
        return self._by_api_version.values()

    @cached_property
    def served(self) -> Mapping[Path, Resource]:
        """The served versions by their paths."""
        return {(version.group, version.version, version.plural): version for version in self.all if version.served}

    @cached_property
    def group_versions(self) -> frozenset[tuple[str, str]]:
        """The groups and versions that are served."""
        return frozenset((group, version) for group, version, _ in self.served)

    def copy(self) -> Versions:
        """The same versions for one server, which may change them. Compiled schemas are shared."""
        copies = {resource: resource.copy() for resource in self.all}
        versions = Versions(list(copies.values()), copies[self.storage], self.since)
        versions.terminating, versions.deletes_instances = self.terminating, self.deletes_instances
        versions.converter, versions.is_prepared, versions.digest = self.converter, self.is_prepared, self.digest
        return versions

    def has(self, resource: Resource | None) -> bool:
        """Whether it is one of these versions."""
        return resource is not None and resource.versions is self

    def find(self, api_version: str) -> Resource | None:
        return self._by_api_version.get(api_version)

    def keep_encoded(self, definition: bytes = b"", parts: Mapping[str, memoryview] | None = None) -> None:
        """Keep the declared schemas of custom resources as parts of their definition's bytes.

        `parts` are those by version, None: they have to be found.
        """
        for resource in self.all:
            resource.keep_encoded(definition, parts.get(resource.version) if parts else None)

    def prepare(self) -> None:
        """Compute what requests for any version use, because objects may be stored in any."""
        for resource in self.all:
            resource.prepare()
        self.is_prepared = True  # after all of them: requests no longer wait

    def of(self, value: Object) -> Resource:
        """The version of a stored object, or the storage version if its own version no longer exists."""
        return self._by_api_version.get(value.get("apiVersion", ""), self.storage)


async def prepared(versions: Versions) -> None:
    """Return when what is compiled from the schemas of a resource is made. Raises ApiError Timeout if that takes too long.

    It is made at the first request: a server may have hundreds of definitions and use a few. Until then a resource has its
    names, columns and selectable fields; its schemas are bytes of the stored definition (`Resource.keep_encoded`). The requests
    that arrive meanwhile wait for the same work. Whatever uses a resource without a request finds the same, as every part is
    also computed when it is used.
    """
    if versions.is_prepared:
        return
    size = sum(resource.size for resource in versions.all)
    if size <= LOOP_LIMIT:
        versions.prepare()
        return
    if versions.preparing is None or versions.preparing.get_loop() is not asyncio.get_running_loop():
        # a server in another thread may do the same: both find the same
        versions.preparing = asyncio.ensure_future(_prepare(versions, size))
    await asyncio.shield(versions.preparing)


async def _prepare(versions: Versions, size: int) -> None:
    try:
        await offload(size, versions.prepare)
    finally:
        versions.preparing = None
