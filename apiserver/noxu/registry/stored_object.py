"""A stored object, an entry of the cache: one object at one revision, as its stored bytes, or as JSON if those are CBOR.

The stored bytes are also the bytes that are served, except for the resourceVersion, which is not stored (as in etcd) and is
inserted when the object is sent. If the schema of the object's version prunes or defaults what is stored, other bytes are
served. This is determined once per entry and schema, when the entry is first read: the result is its `Rendering`.

A ConfigMap, whose keys are in the order of declaration, and a custom resource, whose keys are sorted:

    {"kind":"ConfigMap",…,"metadata":{"name":"a","uid":"1f2e…","creationTimestamp":…},"data":{…}}
                                                             ^ offset: after the uid
    {"apiVersion":"example.com/v1","kind":"Widget","metadata":{…,"name":"a","uid":"1f2e…"},"spec":{…}}
                                                                           ^ offset: before the uid

At the offset `body_at` inserts `,"resourceVersion":"7"` or `"resourceVersion":"7",`, and joins three pieces of bytes; nothing
is decoded or encoded.

Stored objects that were written before the schema of their version changed take the stages of a read:

    storage → decode → PRUNE → default → (convert) → encode

A read returns the fields that the schema describes *now* (the structural-schema article, "pruning on read"). Objects that
were written under the current schema skip these stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from sys import intern
from typing import Final

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.api.names import pack, unpack
from noxu.apply.managed_fields import RecurringSets
from noxu.expressions import expression
from noxu.go.structs import json_type
from noxu.go.text import go_type
from noxu.registry import storage_form
from noxu.registry.resource import BUILT_IN, DEFINITION, Rendering, Resource, Versions
from noxu.registry.storage_form import CBOR, as_json
from noxu.values import Json, Object
from noxu_storage.types import Key, Revision

NOT_RENDERED: Final = Rendering()
_MAX_RENDERINGS: Final = 1_024  # that entries of a resource share


def key_of(resource: Resource, namespace: str, name: str) -> Key:
    """The key of an object. Keys sort as upstream's `/namespace/name`, so the partition ends with the slash."""
    # interned: one text for all keys of a namespace
    return Key(resource.collection, intern(f"{namespace}/") if namespace else "", name)


class StoredObject:
    """One object at one revision. `stored` is its JSON: the bytes in the store, unless these are CBOR (`is_cbor`).

    `cbor` are the bytes for the store while an entry is written as CBOR, else None. `decoded` is what `stored` has been encoded
    from, while the controller of a definition that is written has not read it. `rendering` is only ever replaced as a
    whole, because a thread may do it.
    """

    __slots__ = (
        "__weakref__",
        "cbor",
        "decoded",
        "fields",
        "is_cbor",
        "key",
        "labels",
        "rendering",
        "revision",
        "stored",
    )

    def __init__(self, key: Key, stored: bytes, revision: Revision) -> None:
        """`stored` may be CBOR."""
        self.key = key
        self.is_cbor = stored.startswith(CBOR)
        self.stored = as_json(stored) if self.is_cbor else stored
        self.cbor: bytes | None = None
        self.decoded: Object | None = None
        self.revision = revision
        self.rendering = NOT_RENDERED
        self.labels: dict[str, str] | str | None = None  # packed
        self.fields: tuple[Resource, dict[str, str]] | None = None

    @property
    def written(self) -> bytes:
        """The bytes for the store."""
        return self.stored if self.cbor is None else self.cbor

    @property
    def namespace(self) -> str:
        return self.key.partition[:-1]

    def with_revision(self, revision: Revision) -> StoredObject:
        """The same object at another revision, for DELETED events."""
        copy = StoredObject(self.key, self.stored, revision)
        copy.is_cbor = self.is_cbor
        # shared: none of them is changed in place
        copy.rendering, copy.labels, copy.fields = self.rendering, self.labels, self.fields
        return copy


def new_entry(
    key: Key,
    storage: Resource,
    value: Object,
    *,
    served_as_stored: bool = True,
    valid: bool = False,
    exact: bool = False,
    as_cbor: bool = False,
    as_protobuf: bool = False,
) -> StoredObject:
    """The entry for an object of the storage version that is about to be written; it has no revision yet.

    `served_as_stored`: a read returns what is stored; the schema neither prunes nor defaults it. `valid`: as in
    `Rendering`. `exact`: the object has no floats, apart from its metadata. `as_cbor`: store custom resources as CBOR.
    `as_protobuf`: built-in kinds are stored as protobuf, in which an empty list is none.
    """
    if not storage.is_custom:
        value = storage.codec.written(value)
    metadata = value["metadata"]
    if "resourceVersion" in metadata:
        metadata = dict(metadata)
        del metadata["resourceVersion"]
        value = {**value, "metadata": metadata}  # a new object: the draft keeps its own
    stored, offset = _encode(storage, value, exact=exact)
    if as_protobuf and storage.type == BUILT_IN:
        read = as_read_from_protobuf(key.collection, stored)
        if read != stored:
            stored, offset = _encode(storage, codec.decode_stored(read))
    entry = StoredObject(key, stored, 0)
    entry.labels = _shared(metadata.get("labels"))
    if storage.type == DEFINITION and not codec.has_minus_zero(stored):
        entry.decoded = value  # shared with the draft, which is done with it
    if as_cbor and storage.is_custom:
        entry.cbor, entry.is_cbor = storage_form.as_cbor(value), True  # until it is stored; the cache serves its JSON
    if served_as_stored:
        entry.rendering = _as_stored(storage, offset, valid=valid)
    return entry


def as_read_from_protobuf(collection: str, stored: bytes) -> bytes:
    """The JSON of a built-in object as it is read after it was stored as protobuf, in which an empty list is none."""
    from noxu.registry import etcd_built_in  # few servers store protobuf

    return etcd_built_in.as_read(collection, stored)


def new_entry_with_spec(entry: StoredObject, live: Object, storage: Resource, value: Object) -> StoredObject:
    """`new_entry` for an object whose spec is that of the stored object `entry`, which is `live`. Keys are in declared order.

    The bytes of the spec, nearly all of a definition, are copied instead of encoded. They are what remains of the stored
    bytes between everything before and everything after the spec, both encoded again:

        stored  {"kind":"A",…,"metadata":{"name":"a","uid":"1f2e…"},"spec":{"group":…},"status":{"conditions":null}}
                head ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~                 ~~~~~~~~~~~~~~~~~~~~~~~~ tail

    What this server wrote is the same when it is decoded and encoded again; what others store in etcd is brought into this
    form when it is read (`etcd_layout`). An object that is not served as it is stored, such as a v1beta1 definition of
    a data directory, or whose bytes do not have this head and tail, is encoded as a whole.
    """
    spec = stored_spec(entry, live, storage)
    if spec is not None:
        head, tail = _around_spec(storage, value)
        uid = _UID.search(head)
        if uid is not None:
            written = StoredObject(entry.key, b"".join((head, spec, tail)), 0)
            written.labels = _shared(value["metadata"].get("labels"))
            written.rendering = _as_stored(storage, uid.end())
            return written
    return new_entry(entry.key, storage, value)


def stored_spec(entry: StoredObject, live: Object, storage: Resource) -> memoryview | None:
    """The bytes of the spec in an entry that is served as it is stored (see `new_entry_with_spec`), None if they are not found."""
    body, (head, tail) = entry.stored, _around_spec(storage, live)
    size = len(body) - len(head) - len(tail)
    if (
        entry.rendering.body is None
        and entry.rendering.resource
        and size > 0
        and body.startswith(head)
        and body.endswith(tail)
    ):
        return memoryview(body)[len(head) : len(head) + size]  # no copy: it keeps the bytes of the stored object alive
    return None


def _around_spec(storage: Resource, value: Object) -> tuple[bytes, bytes]:
    """The bytes of an object before and after its spec, without its resourceVersion."""
    metadata = {name: item for name, item in value["metadata"].items() if name != "resourceVersion"}
    rest = storage.codec.written({**value, "metadata": metadata, "spec": None})
    names = list(rest)
    at = names.index("spec")
    head = codec.encode({name: rest[name] for name in names[:at]}, sort_keys=False)
    tail = codec.encode({name: rest[name] for name in names[at + 1 :]}, sort_keys=False)
    return head[:-1] + b',"spec":', b"," + tail[1:]


def converted_entry(entry: StoredObject, resource: Resource, value: Object) -> StoredObject:
    """The entry as if it were stored at `resource`'s version as `value`, which has no resourceVersion."""
    body, offset = _encode(resource, value)
    converted = StoredObject(entry.key, body, entry.revision)
    converted.rendering = _as_stored(resource, offset)
    converted.labels = _shared(value["metadata"].get("labels"))
    return converted


def taken_object(entry: StoredObject, resource: Resource) -> Object:
    """`object_at` for the first reader of a definition: one that has just been written or is rendered now is decoded already."""
    value, entry.decoded = entry.decoded, None  # taken: the next reader decodes its own
    if value is None and not resource.versions.has(entry.rendering.resource):
        rendering, read = _rendered(entry, resource.versions)
        if rendering.body is None and not codec.has_minus_zero(entry.stored):
            value = read
    if value is None or entry.rendering.resource is not resource:
        return object_at(entry, resource)
    # new maps only where it differs
    return {**value, "metadata": {**value["metadata"], "resourceVersion": str(entry.revision)}}


def object_at(entry: StoredObject, resource: Resource) -> Object:
    """A new copy of the object at `resource`'s version, with its resourceVersion.

    If a webhook converts the resource, the entry must be the result of `conversion.converters.entry_at`.
    """
    rendering = render(entry, resource.versions)
    value = _decode(rendering.resource, entry.stored if rendering.body is None else rendering.body)
    value["metadata"]["resourceVersion"] = str(entry.revision)  # of this copy: the bytes have none
    return value if rendering.resource is resource else resource.codec.convert(resource, value)


def shared_object_at(entry: StoredObject, resource: Resource) -> Object:
    """`object_at`, but its sets of owned fields may be those of other objects, and must not be changed in place."""
    own, body, _, valid = render(entry, resource.versions)
    value = (
        _decode_sharing_owners(body or entry.stored, resource.versions.recurring) if valid and own is resource else None
    )
    if value is None:
        return object_at(entry, resource)
    value["metadata"]["resourceVersion"] = str(entry.revision)  # of this copy; only sets of fields are shared
    return value


_OWNERS: Final = b'"managedFields":[{'
_FIELDS: Final = b'"fieldsV1":'
_MANAGER: Final = b',"manager":"'


def _decode_sharing_owners(body: bytes, recurring: RecurringSets) -> Object | None:
    """A stored object, with sets of owned fields that recur (`apply.managed_fields`) instead of new ones. None if not all do.

    They are half of the containers in a usual object. Each is replaced by its number before the JSON is decoded:

        {…"managedFields":[{…"fieldsV1":{"f:spec":{"f:a":{}}},"manager":"m",…}],…}     stored
                                        ~~~~~~~~~~~~~~~~~~~~~ a set with that JSON is known
        {…"managedFields":[{…"fieldsV1":0,"manager":"m",…}],…}                         decoded; the set takes the place of 0

    If the text is found elsewhere in the object, not all numbers are in its managedFields.
    """
    sets: list[Object] = []
    pieces: list[bytes] = []
    done, at = 0, body.find(_OWNERS)
    while at >= 0 and (at := body.find(_FIELDS, at)) >= 0:
        at += len(_FIELDS)
        end = body.find(_MANAGER, at)
        fields = recurring.set_of(body[at:end]) if end > 0 else None
        if fields is None:
            return None
        pieces += body[done:at], b"%d" % len(sets)  # slices of the shared bytes, joined once at the end
        sets.append(fields)
        done = at = end
    if not sets:
        return None
    value: Object = codec.decode_stored(b"".join((*pieces, body[done:])))
    owners = value["metadata"].get("managedFields") or ()
    if [owner.get("fieldsV1") for owner in owners] != [*range(len(sets))]:
        return None
    for owner, fields in zip(owners, sets, strict=True):
        owner["fieldsV1"] = fields  # shared with other objects of the kind
    return value


def _decode(resource: Resource | None, body: bytes) -> Object:
    if resource is not None and not resource.is_custom and codec.has_minus_zero(body):  # of a float64
        return resource.codec.decode(resource, codec.decode_literals(body))[0]
    value: Object = codec.decode_stored(body)
    return value


def body_at(entry: StoredObject, resource: Resource) -> bytes:
    """The object at `resource`'s version as JSON, with its resourceVersion. For entries see `object_at`."""
    rendering = entry.rendering
    own, body, offset, _ = rendering if rendering.resource is resource else render(entry, resource.versions)
    if resource is not own or offset < 0:
        value = _insert_resource_version(object_at(entry, resource), resource)
        return codec.encode(value, sort_keys=resource.is_custom)
    body = body or entry.stored
    if resource.is_custom:
        return b'%b"resourceVersion":"%d",%b' % (body[:offset], entry.revision, body[offset:])
    return b'%b,"resourceVersion":"%d"%b' % (body[:offset], entry.revision, body[offset:])


def bodies_at(entries: Sequence[StoredObject], resource: Resource) -> list[bytes]:
    """`body_at` of each entry. Sorted objects that are rendered at this version, nearly all of a list, cost no call each."""
    if not resource.is_custom:
        return [body_at(entry, resource) for entry in entries]
    return [
        b'%b"resourceVersion":"%d",%b' % ((served := body or entry.stored)[:offset], entry.revision, served[offset:])
        if own is resource and offset >= 0
        else body_at(entry, resource)
        for entry, (own, body, offset, _) in [(entry, entry.rendering) for entry in entries]
    ]


def body_parts(entry: StoredObject, resource: Resource) -> tuple[bytes | memoryview, ...]:
    """Like `body_at`, as parts that refer to the bytes of the rendering instead of copying them. It must be rendered."""
    body, offset = served_bytes(entry), entry.rendering.offset
    version = b'"resourceVersion":"%d",' if resource.is_custom else b',"resourceVersion":"%d"'
    view = memoryview(body)  # the answer's parts are the stored bytes themselves
    return view[:offset], version % entry.revision, view[offset:]


def body_before_storage(entry: StoredObject, resource: Resource, version: str) -> bytes:
    """Like `body_at`, for an object that is not stored (a dry run). `version` is its resourceVersion, "" if it has none."""
    own = render(entry, resource.versions).resource
    if resource is own and not version:
        return served_bytes(entry)
    value = object_at(entry, resource)
    if version:
        value["metadata"]["resourceVersion"] = version
        value = _insert_resource_version(value, resource)
    else:
        del value["metadata"]["resourceVersion"]
    return codec.encode(value, sort_keys=resource.is_custom)


def _insert_resource_version(value: Object, resource: Resource) -> Object:
    return value if resource.is_custom else in_declared_order(value)


def in_declared_order(value: Object) -> Object:
    """An object with its resourceVersion in its place in the order of declaration: after the uid."""
    metadata = dict(value["metadata"])
    version = metadata.pop("resourceVersion", None)
    if version is None:
        return value
    ordered: Object = {}
    for name, item in metadata.items():
        ordered[name] = item
        if name == "uid":
            ordered["resourceVersion"] = version
    ordered.setdefault("resourceVersion", version)
    return {name: ordered if name == "metadata" else item for name, item in value.items()}


def is_rendered(entry: StoredObject, resource: Resource) -> bool:
    """Whether `body_at` only has to insert the resourceVersion."""
    return entry.rendering.resource is resource and entry.rendering.offset >= 0


def unrendered_size(entries: Sequence[StoredObject], resource: Resource) -> int:
    """The bytes of those that `is_rendered` is false for, which `bodies_at` decodes: one question for a portion of a list."""
    return sum(
        [
            len(entry.stored)
            for entry in entries
            if entry.rendering.resource is not resource or entry.rendering.offset < 0
        ]
    )


def is_valid(entry: StoredObject | None, resource: Resource) -> bool:
    """Whether the fast path has found that an object satisfies the schema of this version, at which it is stored."""
    return entry is not None and entry.rendering.valid and entry.rendering.resource is resource


def render(entry: StoredObject, versions: Versions) -> Rendering:
    """The rendering of an entry under the current schema of its version, which is kept in the entry.

    Raises ApiError if that version no longer exists, or the entry cannot be decoded.
    """
    rendering, own = entry.rendering, entry.rendering.resource
    return rendering if own is not None and own.versions is versions else _rendered(entry, versions)[0]


def _rendered(entry: StoredObject, versions: Versions) -> tuple[Rendering, Object]:
    """Render an entry: (the rendering, the object that was rendered). Raises ApiError as `render`."""
    value = _stored_value(entry)
    own = versions.of(value)
    if own.is_custom and value.get("apiVersion") != own.api_version:
        raise errors.plain_error(f"request to convert CR from an invalid group/version: {value.get('apiVersion')}")
    if own.type == BUILT_IN and not value.get("apiVersion"):
        raise errors.plain_error(f"Object 'apiVersion' is missing in '{entry.stored.decode(errors='replace')}'")
    body, offset, valid = _served(own, value)
    if body == entry.stored:
        rendering = _as_stored(own, offset, valid=valid)
    else:
        rendering = Rendering(own, body, offset, valid)
    entry.rendering = rendering  # one assignment: a thread that reads it sees the old or the new one
    return rendering, value


def _as_stored(resource: Resource, offset: int, *, valid: bool = False) -> Rendering:
    """The rendering of an entry that is served as it is stored."""
    shared, key = resource.renderings, (offset, valid)
    rendering = shared.get(key)
    if rendering is None:
        if len(shared) >= _MAX_RENDERINGS:
            shared.clear()  # entries keep theirs; new ones are shared anew
        rendering = shared[key] = Rendering(resource, None, offset, valid)  # shared by all entries with this offset
    return rendering


def served_bytes(entry: StoredObject) -> bytes:
    """The bytes of an entry that is rendered, without a resourceVersion."""
    body = entry.rendering.body
    return entry.stored if body is None else body


def is_readable(entry: StoredObject, versions: Versions) -> bool:
    """Whether `render` can decode an entry: other programs that use the same etcd may store anything."""
    try:
        render(entry, versions)
    except ApiError as error:
        return error.code != HTTPStatus.INTERNAL_SERVER_ERROR  # others are about the request, such as a deadline
    return True


def _served(own: Resource, value: Object) -> tuple[bytes, int, bool]:
    """A stored object as it is served: what `_encode` returns, and whether the fast path has accepted it.

    Raises ApiError: its fields may have any type.
    """
    try:
        valid = read(own, value)
        return *_encode(own, value), valid
    except ValueError as error:
        if own.is_custom:
            raise
        raise errors.plain_error(str(error)) from None
    except (AttributeError, KeyError, TypeError) as bug:
        if own.is_custom:
            raise
        try:
            own.codec.decode(own, value)
        except ValueError as error:
            raise errors.plain_error(str(error)) from bug
        raise


def _stored_json(entry: StoredObject) -> Json:
    """What is stored. Raises ApiError."""
    try:
        return codec.decode_stored(entry.stored)
    except ValueError as error:
        raise errors.plain_error(str(error)) from None


def _stored_value(entry: StoredObject) -> Object:
    """The stored object. Raises ApiError: other programs that use the same etcd may store anything."""
    value = _stored_json(entry)
    if isinstance(value, dict) and isinstance(value.get("kind"), str) and value["kind"]:
        metadata = value.get("metadata")
        if isinstance(metadata, dict):
            return value
        if metadata is None:
            return {**value, "metadata": {}}
        raise errors.plain_error(f"invalid metadata: expected object, got {go_type(metadata)}")
    if value is None or isinstance(value, dict):
        raise errors.plain_error(f"Object 'Kind' is missing in '{entry.stored.decode(errors='replace')}'")
    raise errors.plain_error(f"json: cannot unmarshal {json_type(value)} into Go value of type {go_type({})}")


_UID: Final = expression(rb'"uid":"[^"\\]*"')


_IDENTITY: Final = ("apiVersion", "kind", "metadata")


def _encode(resource: Resource, value: Object, *, exact: bool = False) -> tuple[bytes, int]:
    """(JSON, the offset for the resourceVersion, or -1 if it cannot be determined cheaply). `exact`: as in `new_entry`.

    With sorted keys the resourceVersion precedes the uid, which is the last key of the metadata; the metadata is encoded
    separately, so that a "uid" elsewhere is not taken for it. In the order of declaration it follows the uid, before which
    there are only name, generateName and namespace, none of which contains a quote. In an object without a uid, the first
    or last "uid" is a label or that of an owner.
    """
    if not resource.is_custom:
        encoded = codec.encode(value, sort_keys=False)
        uid = _UID.search(encoded) if "uid" in value["metadata"] else None
        return encoded, uid.end() if uid else -1
    rest = dict(value)  # a copy of the top level: the caller's object stays whole
    for name in _IDENTITY:
        rest.pop(name, None)
    if (rest and min(rest) < "metadata") or not _is_of(value, resource):
        return codec.encode(value, sort_keys=True), -1
    head = resource.stored_head
    metadata = (exact and _encode_exact_metadata(value["metadata"], resource.versions.recurring)) or codec.encode(
        value["metadata"], sort_keys=True
    )
    offset = metadata.rfind(b'"uid":"') if "uid" in value["metadata"] else -1
    end = b"}"
    if rest:
        end = b"," + ((exact and codec.encode_exact(rest)) or codec.encode(rest, sort_keys=True))[1:]
    return head + metadata + end, len(head) + offset if offset > 0 else -1


def _encode_exact_metadata(metadata: Object, recurring: RecurringSets) -> bytes | None:
    """Metadata in the form of `meta.coerce` as JSON, with the known JSON of its fieldsV1. None if that is not known.

    In that form there are no floats, except possibly in fieldsV1 that are no sets of fields.
    """
    if "managedFields" in metadata:
        owners = []
        for owner in metadata["managedFields"]:
            text = recurring.json_of(owner.get("fieldsV1"))
            if text is None:
                return None
            owners.append({**owner, "fieldsV1": codec.Encoded(text)})
        metadata = {**metadata, "managedFields": owners}  # a copy: `Encoded` is for the encoder only
    return codec.encode_exact(metadata)


def _is_of(value: Object, resource: Resource) -> bool:
    return bool(value.get("apiVersion") == resource.api_version and value.get("kind") == resource.kind)


_MAX_SHARED: Final = 1_024  # sets of labels
_sets: Final[dict[str, str]] = {}


def _shared(labels: dict[str, str] | None) -> dict[str, str] | str:
    """Packed labels. Those that many objects have are kept once."""
    if not labels:
        return ""  # as `pack` would: most objects have none
    packed = pack(labels)
    if not isinstance(packed, str):
        return packed
    if len(_sets) >= _MAX_SHARED:
        _sets.clear()
    return _sets.setdefault(packed, packed)  # the text that others keep already


def packed_labels(entry: StoredObject) -> dict[str, str] | str:
    """The labels of an object, packed if they can be; none if they are malformed. Raises ApiError if it is not JSON."""
    if entry.labels is None:
        value = _stored_json(entry)
        metadata = value.get("metadata") if isinstance(value, dict) else None
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        entry.labels = _shared(labels if isinstance(labels, dict) else None)
    return entry.labels


def labels_of(entry: StoredObject) -> dict[str, str]:
    """The labels of an object, {} if it has none or they are malformed. Raises ApiError if it is not JSON."""
    return unpack(packed_labels(entry))


def fields_of(entry: StoredObject, resource: Resource) -> dict[str, str]:
    """The fields for field selectors as text: metadata.name, metadata.namespace, and the resource's selectable fields."""
    if entry.fields is not None and entry.fields[0] is resource:
        return entry.fields[1]
    _, partition, name = entry.key
    values = {"metadata.name": name}
    if resource.namespaced:
        values["metadata.namespace"] = partition[:-1]
    if resource.selectable_fields:  # what the key says is not kept: 350 bytes that are made again in no time
        values |= resource.codec.selectable(resource, object_at(entry, resource))
        entry.fields = (resource, values)  # with its resource: another version's fields are never taken for these
    return values


# -- the stages of a read ---------------------------------------------------------------------------------------------


def prune_stored(resource: Resource, value: Object) -> None:
    """Remove fields that the schema no longer describes, and nulls in fields that are not nullable."""
    resource.codec.read(resource, value)


def default_stored(resource: Resource, value: Object) -> None:
    """Fill in defaults that were added to the schema, as far as they do not make the object too large."""
    with suppress(ApiError):
        resource.codec.default(resource, value)


READ_STAGES: Final[tuple[Callable[[Resource, Object], None], ...]] = (prune_stored, default_stored)


def read(resource: Resource, value: Object) -> bool:
    """Prune and default a stored object of this version, in place. Whether the fast path has accepted it."""
    if resource.codec.accept(resource, value, stored=True):
        return True  # the fast path: nothing to prune, and defaults are filled in
    for stage in READ_STAGES:
        stage(resource, value)
    return False
