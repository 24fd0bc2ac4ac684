"""Lists: which state, which objects, which page.

Without a resourceVersion a list is the newest state. A resourceVersion asks for that state or a newer one, or with
`exact` (and always on the pages that continue a list) for exactly that state, which comes from the store's history.
Pages go on behind the last key seen, so what was created meanwhile does not shift them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import posixpath
import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from apiserver.api import codec, errors
from apiserver.api.errors import ApiError
from apiserver.api.types import Json
from apiserver.registry import damage
from apiserver.registry.conversion_entries import entries_at
from apiserver.registry.entry import Entry, fields_of, labels_of
from apiserver.registry.heavy import work
from apiserver.registry.resource import Resource
from apiserver.registry.store import Registry
from storage.types import Compacted, FutureRevision, Key, Prefix, Revision

FRESHNESS_DEADLINE: Final = 3.0  # seconds that a request for a future revision waits; upstream's blockTimeout
COMPARISONS: Final = 50_000  # by selectors, likewise
PORTION: Final = 128  # entries that are looked at before others get their turn
_NOT_BASE64: Final = re.compile("[^A-Za-z0-9_-]")
PAGE: Final = 1000  # how much history is read at once where a selector drops some of it


class Labels(Protocol):
    @property
    def cost(self) -> int:
        """How many comparisons a look takes, at most."""
        ...

    def matches(self, labels: dict[str, str], /) -> bool: ...


class Fields(Protocol):
    @property
    def cost(self) -> int: ...

    def matches(self, fields: dict[str, str], /) -> bool: ...


class Selection(NamedTuple):
    """What a list or watch is about. `namespace` None: all of them. None selects everything."""

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
    def everything(self) -> bool:
        return self.labels is None and self.fields is None

    @property
    def cost(self) -> int:
        """How many comparisons it takes to see whether the selectors match, at most."""
        return (self.labels.cost if self.labels else 0) + (self.fields.cost if self.fields else 0)

    def knows(self, entry: Entry) -> bool:
        """Is what the selectors look at already known, so that the entry need not be decoded?"""
        if self.labels is not None and entry.labels is None:
            return False
        return self.fields is None or (entry.fields is not None and entry.fields[0] is self.resource)

    def wants(self, entry: Entry) -> bool:
        """Do the selectors match? (Scope is not asked.)"""
        if self.labels is not None and not self.labels.matches(labels_of(entry)):
            return False
        return self.fields is None or self.fields.matches(fields_of(entry, self.resource))


class Window(NamedTuple):
    """Which state and which page; already validated. `revision` 0 is the newest, None any that is at hand."""

    revision: Revision | None = 0
    exact: bool = False
    limit: int = 0
    token: str = ""


class Listing(NamedTuple):
    """One page. `remaining` is None where it is not known or nothing remains."""

    entries: list[Entry]
    revision: Revision
    token: str = ""
    remaining: int | None = None


async def list_entries(registry: Registry, selection: Selection, window: Window) -> Listing:
    """Raises ApiError: BadRequest for a bad token, Expired after compaction, Timeout for a future revision."""
    after, revision, exact = None, window.revision, window.exact
    if window.token:
        after, token_revision = decode_token(window.token, selection)
        revision, exact = (0, False) if token_revision < 0 else (token_revision, True)
    collection = await registry.collection(selection.resource)
    if damaged := collection.damage(selection.partition):
        raise damage.unlistable(selection.resource, damaged)
    if revision:
        await fresh(registry, revision)
    if exact and revision and not (collection.changed <= revision <= registry.cache.revision):
        return await _history(registry, selection, window.limit, after, revision)
    shown = revision if exact and revision else registry.cache.revision
    limit = 0 if window.revision is None and not window.token else window.limit
    keys = collection.select(selection.partition, after)
    if selection.everything:
        found = [collection.entries[key] for key in (keys[:limit] if limit else keys)]
        found = await entries_at(found, selection.resource)
        if len(found) == len(keys):
            return Listing(found, shown)
        return Listing(found, shown, _encode_token(found[-1].key, selection, shown), len(keys) - limit)
    entries = [collection.entries[key] for key in keys]
    found = await wanted(entries, selection, limit)
    if limit and len(found) == limit and found[-1].key != entries[-1].key:
        return Listing(found, shown, _encode_token(found[-1].key, selection, shown))
    return Listing(found, shown)


async def wanted(entries: list[Entry], selection: Selection, limit: int = 0) -> list[Entry]:
    """Those of the entries that selectors match, at most `limit` (0: all), as they read at the resource's version.

    Others get their turn in between. Raises ApiError.
    """
    found: list[Entry] = []
    portion = max(1, min(PORTION, COMPARISONS // max(1, selection.cost)))
    for start in range(0, len(entries), portion):
        some = await entries_at(entries[start : start + portion], selection.resource)
        unknown = sum([len(entry.stored) for entry in some if not selection.knows(entry)])
        found += await work(unknown, _wanted, some, selection)
        if limit and len(found) >= limit:
            return found[:limit]
        await asyncio.sleep(0)
    return found


def _wanted(entries: Sequence[Entry], selection: Selection) -> list[Entry]:
    return [entry for entry in entries if selection.wants(entry)]


async def fresh(registry: Registry, revision: Revision) -> None:
    """Wait a little for a revision that does not exist yet."""
    try:
        async with asyncio.timeout(FRESHNESS_DEADLINE):
            await registry.cache.reached(revision)
    except TimeoutError:
        raise too_large(revision, registry.cache.revision) from None


def too_large(revision: Revision, current: Revision) -> ApiError:
    error = errors.timeout(f"Too large resource version: {revision}, current: {current}", 1)
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    error.details = {"causes": causes, "retryAfterSeconds": 1}
    return error


async def _history(
    registry: Registry, selection: Selection, limit: int, after: Key | None, revision: Revision
) -> Listing:
    prefix = Prefix(selection.resource.collection, selection.partition)
    found: list[Entry] = []
    while True:
        try:
            page = await registry.store.list(
                prefix, revision=revision, limit=limit if selection.everything else PAGE if limit else 0, after=after
            )
        except Compacted:
            raise _expired(after, selection) from None
        except FutureRevision as future:
            raise too_large(revision, future.current) from None
        entries = [Entry(item.key, item.value, item.revision) for item in page.items]
        if selection.everything:
            token = _encode_token(entries[-1].key, selection, revision) if page.remaining else ""
            entries = await entries_at(entries, selection.resource)
            return Listing(entries, revision, token, page.remaining or None)
        found += await wanted(entries, selection, limit - len(found) if limit else 0)
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


# -- continue tokens: base64url of {"v", "rv", "start"}, as upstream's; clients must not look inside, some do ---------


def _encode_token(last: Key, selection: Selection, revision: Revision) -> str:
    path = f"/{last.name}" if selection.partition is not None else f"/{last.partition}{last.name}"
    token = {"v": "meta.k8s.io/v1", "rv": revision, "start": f"{path}\0"}
    text = json.dumps(token, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def decode_token(token: str, selection: Selection) -> tuple[Key, Revision]:
    """The key to go on behind, and the state to show (-1: the newest). Raises ApiError."""
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
