"""Read objects: the newest state from the watch cache, older states from the store.

Without a resourceVersion a list shows the newest state. With one it shows that state or a newer one; with `exact`, and on
every page after the first, exactly that state, which comes from the store's history. A `PastReader` reads everything from
there. A page starts after the last key of the previous page, so objects that are created in between do not shift it. The list of a single object, which a field
selector names, has one page whatever its limit: it never has a continue token.

An object whose bytes do not match their checksum is corrupt and cannot be read; all others are read and written as usual. A
list with a corrupt object fails, because a list without it would mean that it does not exist. With the option
`ignoreStoreReadErrorWithClusterBreakingPotential` a corrupt object can be deleted. For readable objects it has no effect, as
in the recordings of the reference, whose feature gate for it is off.
"""

from __future__ import annotations

import asyncio
import base64
import json
import posixpath
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from noxu.api import codec, errors
from noxu.api.errors import ApiError, Qualified
from noxu.api.names import label_name, path_segment_name
from noxu.expressions import expression
from noxu.registry.cache import Collection, WatchCache, entries_of
from noxu.registry.conversion.converters import entries_at, entry_at
from noxu.registry.offload import offload
from noxu.registry.resource import BUILT_IN, Resource
from noxu.registry.storage_form import BUILT_IN_PATHS
from noxu.registry.stored_object import StoredObject, fields_of, key_of, packed_labels
from noxu.values import Json
from noxu_storage.store import Store
from noxu_storage.types import Compacted, Corrupt, FutureRevision, Key, KeyValue, Page, Prefix, Revision

MAX_ERRORS: Final = 100  # upstream's maximum of errors of one list


def storage_key(resource: Resource, key: Key, *, dry_run: bool = False) -> str:
    """The key of an object in etcd, for error messages. A dry run does not know the prefix of all keys."""
    built_in = resource.type is BUILT_IN
    name = (
        BUILT_IN_PATHS.get(resource.collection, resource.plural) if built_in else f"{resource.group}/{resource.plural}"
    )
    collection, prefix = f"/{name}", "/registry" if built_in else "/registry/apiextensions.kubernetes.io"
    return f"{'' if dry_run else prefix}{collection}/{key.partition}{key.name}"


def storage_error(kind: str, code: int, resource: Resource, key: Key, why: str, *, dry_run: bool = False) -> str:
    """The message of an error of the storage layer, which upstream passes on."""
    where = storage_key(resource, key, dry_run=dry_run)
    return f"StorageError: {kind}, Code: {code}, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: {why}"


def unreadable(resource: Resource, key: Key, revision: Revision) -> ApiError:
    """The error for a request that reads or writes a corrupt object."""
    return errors.internal_error(_why_corrupt(resource, key, revision))


def unlistable(resource: Resource, corrupt: Mapping[Key, Revision]) -> ApiError:
    """The error for a list that contains corrupt objects."""
    texts = {key: _why_corrupt(resource, key, revision) for key, revision in sorted(corrupt.items())[:MAX_ERRORS]}
    more = f" (and {len(corrupt) - 1} more)" if len(corrupt) > 1 else ""
    message = (
        f"failed to read one or more {resource.group_resource} from the storage: {next(iter(texts.values()))}{more}"
    )
    causes = [
        {"reason": "UnexpectedServerResponse", "message": text, "field": storage_key(resource, key)}
        for key, text in texts.items()
    ]
    details = {"name": "list", "group": resource.group, "kind": resource.plural, "causes": causes}
    return ApiError(500, message, "StorageReadError", {name: value for name, value in details.items() if value})


def _why_corrupt(resource: Resource, key: Key, revision: Revision) -> str:
    why = (
        f"object not decodable revision={revision}: its bytes do not match their checksum; all corrupt values are "
        "listed by noxu check. Restore the data, or delete the object with ignoreStoreReadErrorWithClusterBreakingPotential=true"
    )
    return storage_error("corrupt object", 7, resource, key, why)


# -- objects ----------------------------------------------------------------------------------------------------------


_COMPONENTS: Final = Qualified("", "componentstatuses")
BLOCK_TIMEOUT: Final = 3.0  # seconds that a request for a future revision waits; upstream's blockTimeout


class Reader:
    """Reads the objects of all resources."""

    newest: Revision = 0
    """The revision that is the newest for this reader; 0: that of the cache."""

    def __init__(self, store: Store, cache: WatchCache) -> None:
        self.store = store
        self.cache = cache

    def loaded(self, resource: Resource) -> Collection | None:
        """The collection of a resource, None if the cache has not loaded it."""
        return self.cache.collections.get(resource.collection)

    async def collection(self, resource: Resource) -> Collection:
        """The collection of a resource, loaded on first use. Raises StoreError."""
        return self.cache.collections.get(resource.collection) or await self.cache.collection(resource.collection)

    async def get(self, resource: Resource, namespace: str, name: str) -> StoredObject:
        """The newest state of an object at the resource's version. Raises ApiError."""
        collection = self.cache.collections.get(resource.collection) or await self.collection(resource)
        entry = self.find_in(collection, resource, namespace, name)
        return entry if resource.versions.converter is None else await entry_at(entry, resource)

    async def find(self, resource: Resource, namespace: str, name: str) -> StoredObject:
        """The newest state of an object at its stored version. Raises ApiError NotFound."""
        return self.find_in(await self.collection(resource), resource, namespace, name)

    def find_in(self, collection: Collection, resource: Resource, namespace: str, name: str) -> StoredObject:
        """The same in the resource's collection."""
        key = key_of(resource, namespace, name)
        entry = collection.entries.get(key)
        if entry is None:
            if key in collection.corrupt:
                raise unreadable(resource, key, collection.corrupt[key])
            raise _absent(resource, name)
        return entry

    async def stored(self, resource: Resource, namespace: str, name: str) -> StoredObject | None:
        """The newest state of an object at its stored version, None if there is none; its collection is not loaded.

        Raises StoreError.
        """
        key = key_of(resource, namespace, name)
        if (collection := self.loaded(resource)) is not None and key not in collection.corrupt:
            return collection.entries.get(key)
        item = await self.store.get(key)
        return None if item is None else StoredObject(key, item.value, item.revision)

    def size(self, resource: Resource, namespace: str, name: str) -> int:
        """The stored size of an object in bytes; 0 if the cache does not have it."""
        collection = self.loaded(resource) if name else None
        entry = collection.entries.get(key_of(resource, namespace, name)) if collection else None
        return len(entry.stored) if entry else 0

    async def be_consistent(self) -> None:
        """Wait for what other servers with the same store have answered: reads without a resourceVersion show it.

        Raises StoreError.
        """
        if self.store.shared:
            await self.store.catch_up()
            await self.cache.reached(self.store.revision)  # the log has come as far as the store

    async def reached(self, revision: Revision, *, waits: bool = True) -> None:
        """Wait up to BLOCK_TIMEOUT for a future revision. Raises ApiError Timeout, StoreError.

        Without `waits`, only what other servers with the same store have answered is awaited.
        """
        if revision <= self.cache.revision:
            return
        if not waits:
            await self.be_consistent()
            if revision > self.cache.revision:
                raise too_large(revision, self.cache.revision, retry=False)
            return
        try:
            async with asyncio.timeout(BLOCK_TIMEOUT):
                await self.store.catch_up()  # the revision may be one of another server, without an event here
                await self.cache.reached(revision)
        except TimeoutError:
            raise too_large(revision, self.cache.revision) from None


class PastReader(Reader):
    """Reads objects as they were at a revision, from the store: it loads nothing into the cache, and keeps nothing."""

    def __init__(self, store: Store, cache: WatchCache, newest: Revision) -> None:
        super().__init__(store, cache)
        self.newest = newest

    async def get(self, resource: Resource, namespace: str, name: str) -> StoredObject:
        """The state of an object at the resource's version. Raises ApiError Expired after compaction, too; StoreError."""
        key = key_of(resource, namespace, name)
        try:
            item = await self.store.get(key, revision=self.newest)
        except Corrupt as corrupt:
            raise unreadable(resource, key, corrupt.keys.get(key, 0)) from None
        except Compacted:
            raise errors.expired("The requested revision is too old.") from None
        if item is None:
            raise _absent(resource, name)
        [entry] = await entries_of([item])  # an entry of its own, which no other request sees
        return entry if resource.versions.converter is None else await entry_at(entry, resource)

    def size(self, resource: Resource, namespace: str, name: str) -> int:
        """0: nothing is written, so it is not asked."""
        return 0

    async def reached(self, revision: Revision, *, waits: bool = True) -> None:
        """Raises ApiError Timeout for a revision that is in the future of this reader: it will never come."""
        if revision > self.newest:
            raise too_large(revision, self.newest, retry=False)


def _absent(resource: Resource, name: str) -> ApiError:
    if resource.group_resource == _COMPONENTS:  # upstream does not store them (registry/core/componentstatus)
        return errors.plain_error(f"Component not found: {name}")
    return errors.not_found(resource.group_resource, name)


def too_large(revision: Revision, current: Revision, *, retry: bool = True) -> ApiError:
    """The error for a resourceVersion that does not exist yet. `retry`: it has been awaited, and the client may try again."""
    error = errors.timeout(f"Too large resource version: {revision}, current: {current}", 1 if retry else 0)
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    error.details = {"causes": causes, **({"retryAfterSeconds": 1} if retry else {})}
    return error


class Follower(Protocol):
    """A controller whose reaction to a write is awaited before the write is answered."""

    async def settled(self, name: str, /) -> None:
        """Wait until the controller has reconciled the newest state of an object."""
        ...

    async def caught_up(self, *names: str) -> None:
        """Wait until it has tried to reconcile the states of objects (none: of all) that it has now. Raises ApiError."""
        ...


async def be_consistent(reader: Reader, followers: Mapping[str, Follower], definitions: str, name: str) -> None:
    """Make a request see all that was answered before, by whatever server. Raises ApiError, StoreError.

    It may follow the answer of another server: to a new schema, a policy, a binding that is gone. So it waits until this server
    has applied what the store had when it arrived, and has compiled what follows from that. Requests that arrive together share
    one question to the store. `definitions` is the collection of definitions. Of these, that of the request has the `name`;
    others are not waited for.
    """
    await reader.be_consistent()
    first = followers[definitions]
    await first.caught_up(name)
    for follower in dict.fromkeys(followers.values()):
        if follower is not first:
            await follower.caught_up()


# -- lists ------------------------------------------------------------------------------------------------------------


MAX_MATCHED: Final = 128  # entries that selectors match in one iteration of the event loop
MAX_COMPARISONS: Final = 50_000  # comparisons by selectors, likewise
_NOT_BASE64: Final = expression("[^A-Za-z0-9_-]")
HISTORY_PAGE: Final = 1000  # objects that are read from history at a time, if a selector drops some, or made entries


class Labels(Protocol):
    @property
    def cost(self) -> int:
        """The maximum number of comparisons of one match."""
        ...

    def matches(self, labels: dict[str, str] | str, /) -> bool:
        """Whether labels match, which may be packed."""
        ...


class Fields(Protocol):
    @property
    def cost(self) -> int: ...

    def exact(self, name: str, /) -> str | None:
        """The value that is required of a field, None if none is."""
        ...

    def matches(self, fields: dict[str, str], /) -> bool: ...


class Selection(NamedTuple):
    """The objects of a list or watch. `namespace` None: all namespaces; `labels`, `fields` None: all objects."""

    resource: Resource
    namespace: str | None = None
    labels: Labels | None = None
    fields: Fields | None = None

    @property
    def partition(self) -> str | None:
        if not self.resource.namespaced:
            return ""
        return None if self.namespace is None else f"{self.namespace}/"

    @property
    def single(self) -> Key | None:
        """The only key that the field selector allows; None if there may be several, or no object can have it.

        The namespace is that of the path or, without one, of the selector (upstream's Store.ListPredicate).
        """
        name = self.name
        if self.fields is None or name is None or path_segment_name(name):
            return None
        partition = self.partition
        if partition is None:
            namespace = self.fields.exact("metadata.namespace") or ""
            if label_name(namespace):
                return None
            partition = f"{namespace}/"
        return Key(self.resource.collection, partition, name)

    @property
    def name(self) -> str | None:
        """The only name that the field selector allows, None if it allows others."""
        return None if self.fields is None else self.fields.exact("metadata.name")

    @property
    def selects_all(self) -> bool:
        return self.labels is None and self.fields is None

    @property
    def cost(self) -> int:
        """The maximum number of comparisons of one match."""
        return (self.labels.cost if self.labels else 0) + (self.fields.cost if self.fields else 0)

    def is_indexed(self, entry: StoredObject) -> bool:
        """Whether the labels and fields for the selectors are known, so that the entry need not be decoded."""
        if self.labels is not None and entry.labels is None:
            return False
        if self.fields is None or not self.resource.selectable_fields:
            return True
        return entry.fields is not None and entry.fields[0] is self.resource

    def matches(self, entry: StoredObject) -> bool:
        """Whether the selectors match an entry, whatever its namespace."""
        if self.labels is not None and not self.labels.matches(packed_labels(entry)):
            return False
        return self.fields is None or self.fields.matches(fields_of(entry, self.resource))


class Window(NamedTuple):
    """The state and the page of a list; validated. `revision` 0 is the newest state, None the one in the watch cache.

    `waits`: a future revision is awaited for a moment, as the watch cache does. Upstream asks the store itself, which refuses
    it at once, for a page or the exact state of a single object.
    """

    revision: Revision | None = 0
    exact: bool = False
    limit: int = 0
    token: str = ""
    waits: bool = True


class Listing(NamedTuple):
    """One page. `remaining` is None if it is unknown or nothing remains."""

    entries: list[StoredObject]
    revision: Revision
    token: str = ""
    remaining: int | None = None


async def list_entries(reader: Reader, selection: Selection, window: Window) -> Listing:
    """Raises ApiError: BadRequest for a bad token, Expired after compaction, Timeout for a future revision."""
    after, revision, exact = None, window.revision, window.exact
    single = None if window.token else selection.single
    if window.token:
        after, token_revision = decode_token(window.token, selection)
        revision, exact = (0, False) if token_revision < 0 else (token_revision, True)
    elif single is not None:
        window = window._replace(limit=0)
    if reader.newest:  # nothing of the past is in the cache
        await reader.reached(revision or 0)
        limit = 0 if window.revision is None and not window.token else window.limit
        return await _history(reader, selection, limit, after, revision if exact and revision else reader.newest)
    collection = await reader.collection(selection.resource)
    if collection.corrupt and (corrupt := collection.corrupt_in(selection.partition)):
        raise unlistable(selection.resource, corrupt)
    if revision:
        await reader.reached(revision, waits=window.waits)
    if exact and revision and not (collection.changed <= revision <= reader.cache.revision):
        return await _history(reader, selection, window.limit, after, revision)
    shown = revision if exact and revision else reader.cache.revision
    limit = 0 if window.revision is None and not window.token else window.limit
    if single is not None:
        selected = [collection.entries[single]] if single in collection.entries else []
        return Listing(await select(selected, selection), shown)
    if selection.selects_all:
        selected, remaining = collection.page(selection.partition, after, limit)  # before others change the collection
        if not _are_at(selected, selection.resource):
            selected = await entries_at(selected, selection.resource)
        if not remaining:
            return Listing(selected, shown)
        return Listing(selected, shown, _encode_token(selected[-1].key, selection, shown), remaining)
    # the collection's own list, perhaps: read before this waits
    keys, name = collection.select(selection.partition, after), selection.name
    last = keys[-1] if keys else None
    # a new list: the state of one revision
    entries = [collection.entries[key] for key in keys if name is None or key.name == name]
    selected = await select(entries, selection, limit)
    if limit and len(selected) == limit and selected[-1].key != last:
        return Listing(selected, shown, _encode_token(selected[-1].key, selection, shown))
    return Listing(selected, shown)


def _are_at(entries: Sequence[StoredObject], resource: Resource) -> bool:
    """Whether objects, nearly all of them, are known to need no conversion and no rendering."""
    return resource.versions.converter is None and {entry.rendering.resource for entry in entries} <= {resource}


async def select(entries: list[StoredObject], selection: Selection, limit: int = 0) -> list[StoredObject]:
    """The entries that the selectors match, at most `limit` (0: all), at the resource's version. Raises ApiError.

    Other tasks run in between. What `matches` would ask of objects with another name than the selected one is not asked.
    """
    name = selection.name
    matching: list[StoredObject] = []
    step = max(1, min(MAX_MATCHED, MAX_COMPARISONS // max(1, selection.cost)))
    for start in range(0, len(entries), step):
        some = await entries_at(entries[start : start + step], selection.resource)
        if name is not None:
            some = [entry for entry in some if entry.key.name == name]
        to_decode = sum([len(entry.stored) for entry in some if not selection.is_indexed(entry)])
        # a thread fills labels and fields of the entries, each at once
        matching += await offload(to_decode, _select, some, selection)
        if limit and len(matching) >= limit:
            return matching[:limit]
        await asyncio.sleep(0)
    return matching


def _select(entries: Sequence[StoredObject], selection: Selection) -> list[StoredObject]:
    return [entry for entry in entries if selection.matches(entry)]


async def _history(reader: Reader, selection: Selection, limit: int, after: Key | None, revision: Revision) -> Listing:
    prefix = Prefix(selection.resource.collection, selection.partition)
    single = selection.single if after is None else None
    selected: list[StoredObject] = []
    while True:
        try:
            if single is not None:  # one key, instead of all in which it is looked for
                item = await reader.store.get(single, revision=revision)
                page = Page([item] if item else [], revision, 0)
            else:
                page = await reader.store.list(
                    prefix,
                    revision=revision,
                    limit=limit if selection.selects_all else HISTORY_PAGE if limit else 0,
                    after=after,
                )
        except Compacted:
            raise _expired(after, selection) from None
        except FutureRevision as future:
            raise too_large(revision, future.current) from None
        except Corrupt as corrupt:
            if not corrupt.keys:
                raise
            raise unlistable(selection.resource, corrupt.keys) from None
        if selection.selects_all:
            token = _encode_token(page.items[-1].key, selection, revision) if page.remaining else ""
            entries = await _past_entries(page.items, selection.resource)
            return Listing(entries, revision, token, page.remaining or None)
        entries = await _past_entries(page.items, None)
        selected += await select(entries, selection, limit - len(selected) if limit else 0)
        if limit and len(selected) == limit and (page.remaining or selected[-1].key != entries[-1].key):
            return Listing(selected, revision, _encode_token(selected[-1].key, selection, revision))
        if not page.remaining:
            return Listing(selected, revision)
        after = page.items[-1].key  # the next page of the same revision


async def _past_entries(items: Sequence[KeyValue], resource: Resource | None) -> list[StoredObject]:
    """The entries of states, at the version of a resource (None: as they are stored). Other tasks run in between."""
    entries: list[StoredObject] = []
    for start in range(0, len(items), HISTORY_PAGE):
        some = await entries_of(items[start : start + HISTORY_PAGE])
        entries += some if resource is None else await entries_at(some, resource)
        await asyncio.sleep(0)
    return entries


def _expired(after: Key | None, selection: Selection) -> ApiError:
    if after is None:
        return errors.expired("The resourceVersion for the provided list is too old.")
    error = errors.expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    # the rest of the newest state, from the same key
    error.metadata = {"continue": _encode_token(after, selection, -1)}
    return error


# -- continue tokens: base64url of {"v", "rv", "start"}, as upstream's; clients should not look inside, but some do ---------


def _encode_token(last: Key, selection: Selection, revision: Revision) -> str:
    path = f"/{last.name}" if selection.partition is not None else f"/{last.partition}{last.name}"
    token = {"v": "meta.k8s.io/v1", "rv": revision, "start": f"{path}\0"}
    text = json.dumps(token, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decode_token(token: str, selection: Selection) -> tuple[Key, Revision]:
    """(The last key of the previous page, the revision of the list or -1 for the newest). Raises ApiError."""
    parsed = _parse_token(token)
    version, revision, start = parsed.get("v", ""), parsed.get("rv", 0), parsed.get("start", "")
    if version != "meta.k8s.io/v1":
        raise _bad_token(f": server does not recognize this encoded version {version}")
    if not isinstance(revision, int) or revision == 0:
        raise _bad_token(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise _bad_token(": encoded start key empty (version meta.k8s.io/v1)")
    path = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(path) != path:
        raise _bad_token(f": {start}")
    partition, _, name = path[1:].rpartition("/")
    partition = f"{partition}/" if partition else ""
    if selection.partition is not None:
        partition, name = selection.partition, path[1:]
    return Key(selection.resource.collection, partition, name.removesuffix("\0")), revision


def _parse_token(token: str) -> dict[str, Json]:
    bad = _NOT_BASE64.search(token)
    if bad is not None or len(token) % 4 == 1:
        raise _bad_token(f": illegal base64 data at input byte {bad.start() if bad else len(token) - 1}")
    text = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_")
    try:
        value = codec.decode_json(text).value
    except ValueError as error:
        raise _bad_token(f": {error}") from None
    return value if isinstance(value, dict) else {}


def _bad_token(why: str) -> ApiError:
    return errors.bad_request(f"invalid continue token: continue key is not valid{why}")
