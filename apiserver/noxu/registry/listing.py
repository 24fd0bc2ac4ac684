"""Lists: the state, the selection and the page of objects.

Without a resourceVersion a list shows the newest state. With one it shows that state or a newer one; with `exact`, and on
every page after the first, exactly that state, which comes from the store's history. A page starts after the last key of
the previous page, so objects that are created in between do not shift it. The list of a single object, which a field
selector names, has one page whatever its limit: it never has a continue token.
"""

from __future__ import annotations

import asyncio
import base64
import json
import posixpath
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from noxu.api import codec, errors
from noxu.api.errors import ApiError
from noxu.api.names import label_name, path_segment_name
from noxu.expressions import expression
from noxu.registry import corrupt_objects
from noxu.registry.cache import entries_of
from noxu.registry.conversion.entries import entries_at
from noxu.registry.entry import Entry, fields_of, packed_labels
from noxu.registry.offload import offload
from noxu.registry.reader import Reader, too_large
from noxu.registry.resource import Resource
from noxu.values import Json
from noxu_storage.types import Compacted, FutureRevision, Key, Prefix, Revision

MAX_MATCHED: Final = 128  # entries that selectors match in one iteration of the event loop
MAX_COMPARISONS: Final = 50_000  # comparisons by selectors, likewise
_NOT_BASE64: Final = expression("[^A-Za-z0-9_-]")
HISTORY_PAGE: Final = 1000  # objects that are read from history at a time, if a selector drops some of them


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

    def is_indexed(self, entry: Entry) -> bool:
        """Whether the labels and fields for the selectors are known, so that the entry need not be decoded."""
        if self.labels is not None and entry.labels is None:
            return False
        if self.fields is None or not self.resource.selectable_fields:
            return True
        return entry.fields is not None and entry.fields[0] is self.resource

    def matches(self, entry: Entry) -> bool:
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

    entries: list[Entry]
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
    collection = await reader.collection(selection.resource)
    if corrupt := collection.corrupt_in(selection.partition):
        raise corrupt_objects.unlistable(selection.resource, corrupt)
    if revision:
        await reader.reached(revision, waits=window.waits)
    if exact and revision and not (collection.changed <= revision <= reader.cache.revision):
        return await _history(reader, selection, window.limit, after, revision)
    shown = revision if exact and revision else reader.cache.revision
    limit = 0 if window.revision is None and not window.token else window.limit
    if single is not None:
        found = [collection.entries[single]] if single in collection.entries else []
        return Listing(await select(found, selection), shown)
    if selection.selects_all:
        found, remaining = collection.page(selection.partition, after, limit)  # before others change the collection
        found = await entries_at(found, selection.resource)
        if not remaining:
            return Listing(found, shown)
        return Listing(found, shown, _encode_token(found[-1].key, selection, shown), remaining)
    keys, name = collection.select(selection.partition, after), selection.name
    last = keys[-1] if keys else None
    entries = [collection.entries[key] for key in keys if name is None or key.name == name]
    found = await select(entries, selection, limit)
    if limit and len(found) == limit and found[-1].key != last:
        return Listing(found, shown, _encode_token(found[-1].key, selection, shown))
    return Listing(found, shown)


async def select(entries: list[Entry], selection: Selection, limit: int = 0) -> list[Entry]:
    """The entries that the selectors match, at most `limit` (0: all), at the resource's version. Raises ApiError.

    Other tasks run in between. What `matches` would ask of objects with another name than the selected one is not asked.
    """
    name = selection.name
    matching: list[Entry] = []
    step = max(1, min(MAX_MATCHED, MAX_COMPARISONS // max(1, selection.cost)))
    for start in range(0, len(entries), step):
        some = await entries_at(entries[start : start + step], selection.resource)
        if name is not None:
            some = [entry for entry in some if entry.key.name == name]
        to_decode = sum([len(entry.stored) for entry in some if not selection.is_indexed(entry)])
        matching += await offload(to_decode, _select, some, selection)
        if limit and len(matching) >= limit:
            return matching[:limit]
        await asyncio.sleep(0)
    return matching


def _select(entries: Sequence[Entry], selection: Selection) -> list[Entry]:
    return [entry for entry in entries if selection.matches(entry)]


async def _history(reader: Reader, selection: Selection, limit: int, after: Key | None, revision: Revision) -> Listing:
    prefix = Prefix(selection.resource.collection, selection.partition)
    found: list[Entry] = []
    while True:
        try:
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
        entries = await entries_of(page.items)
        if selection.selects_all:
            token = _encode_token(entries[-1].key, selection, revision) if page.remaining else ""
            entries = await entries_at(entries, selection.resource)
            return Listing(entries, revision, token, page.remaining or None)
        found += await select(entries, selection, limit - len(found) if limit else 0)
        if limit and len(found) == limit and (page.remaining or found[-1].key != entries[-1].key):
            return Listing(found, revision, _encode_token(found[-1].key, selection, revision))
        if not page.remaining:
            return Listing(found, revision)
        after = page.items[-1].key


def _expired(after: Key | None, selection: Selection) -> ApiError:
    if after is None:
        return errors.expired("The resourceVersion for the provided list is too old.")
    error = errors.expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
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
