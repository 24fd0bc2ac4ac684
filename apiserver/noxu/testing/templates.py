"""The templates of a process: servers with the same manifests and configuration begin with the same one.

A template is made by the first server that needs it, in its event loop; servers of other threads wait. It is named by its
configuration and the content of its manifests, so files that change make another one. The templates that were used last
are kept, as many as MAX_TEMPLATES and MAX_BYTES allow.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from noxu.clock import SYSTEM_CLOCK, Clock
from noxu.config import Config
from noxu.control import kept_templates, templates
from noxu.control.templates import KeptObjects, Template
from noxu.http.webhooks import WebhookClient
from noxu.manifests.manifest_cache import Cache, user_directory
from noxu.testing import sources
from noxu.testing.digests import bytes_of_files, digest_of
from noxu.testing.sources import Source

if TYPE_CHECKING:
    from noxu.manifests.documents import Document

MAX_TEMPLATES: Final = 8
MAX_BYTES: Final = 128 * 1024 * 1024
"""Of the objects of templates; the one that was used last is always kept."""

NOTHING: Final = b"nothing"
"""In place of a digest: there are no manifests."""
NO_CACHE: Final = Cache(None)
MIN_CACHED: Final = 64 * 1024
"""Bytes of files, which may be compressed, from which on what is read of each is kept: one that changes is then read alone."""
MAX_IMPOSSIBLE: Final = 1000
_Name: TypeAlias = tuple[Config, bytes]
"""The configuration of a template, and the digest of its manifests."""
_lock = threading.Lock()
_kept: OrderedDict[_Name, Template] = OrderedDict()  # the one that was used last at the end; with the lock
_impossible: dict[_Name, None] = {}  # of these there is no template: each server loads them
_being_made: dict[_Name, Future[None]] = {}  # with the lock


class Beginning(NamedTuple):
    """What a server begins with: a template, and the documents that it loads then.

    `name` is that of the template which has these documents, None if there can be none. `kept` is what such a template of
    an earlier process has stored: the documents are not read then. `cache` has what is known of their definitions.
    """

    name: _Name | None
    template: Template | None
    documents: Sequence[Document]
    kept: KeptObjects | None = None
    cache: Cache = NO_CACHE

    async def completed(self) -> Beginning:
        """With the template, which is made if it is not there yet. Raises StartError."""
        if self.name is None or self.template is not None:
            return self
        if self.name not in _impossible:
            try:
                template = await _template(self.name, self.documents, self.kept, self.cache)
            except templates.NeverIdle:
                if self.kept is not None:  # which has been idle in another process
                    raise
            else:
                if not templates.has_tokens(template):  # they have to be made by each server
                    return self._replace(template=template, documents=())
            if len(_impossible) >= MAX_IMPOSSIBLE:
                _impossible.clear()
            _impossible[self.name] = None
        return self._replace(template=await _template((self.name[0], NOTHING), ()))


def beginning(config: Config, clock: Clock, given: Sequence[Source]) -> Beginning:
    """What a server with these manifests begins with. They are only read if there is no template yet.

    Raises LoadError, TypeError.
    """
    name, cache = None, NO_CACHE
    if templates.is_possible(config, clock):
        digest = digest_of(given) if given else NOTHING
        if digest:
            name = templates.shared(config), digest
            if name not in _impossible and (found := _find(name)) is not None:
                return Beginning(name, found, ())
            if given and sources.uses_cache:
                cache = Cache(user_directory())
            if given and (kept := kept_templates.find(cache, digest, config, SYSTEM_CLOCK.now())) is not None:
                return Beginning(name, None, (), kept)
    is_large = cache.keeps and bytes_of_files(given) >= MIN_CACHED
    documents = sources.documents(*given, read=cache.reader if is_large else None)
    return Beginning(name, None, documents, cache=cache)


def _find(name: _Name) -> Template | None:
    with _lock:
        if (kept := _kept.get(name)) is not None:
            _kept.move_to_end(name)
        return kept


async def _template(
    name: _Name, documents: Sequence[Document], kept: KeptObjects | None = None, cache: Cache = NO_CACHE
) -> Template:
    """A template, made by one of those who ask for it at the same time. Raises StartError."""
    while (found := _find(name)) is None:
        with _lock:
            made = _being_made.get(name)
            if made is None:
                own = _being_made[name] = Future()
        if made is not None:
            await asyncio.shield(asyncio.wrap_future(made))  # if that fails, this one tries, for errors of its own
            continue
        try:
            found = await _make(name, documents, kept, cache)
            _keep(name, found)
        finally:
            with _lock:
                del _being_made[name]
            own.set_result(None)
    return found


async def _make(name: _Name, documents: Sequence[Document], kept: KeptObjects | None, cache: Cache) -> Template:
    """Raises StartError."""
    (config, digest), caller = name, WebhookClient({})
    try:
        if kept is not None:
            return await templates.make_of(kept, config, caller)
        parent = await _template((config, NOTHING), ()) if documents else None
        definitions = cache.known_definitions() if any(document.packed for document in documents) else None
        template = await templates.make(config, documents, caller, parent, definitions)
    finally:
        await caller.close()
    if definitions is not None:
        cache.keep_known_definitions(definitions)
    if not templates.has_tokens(template):
        await asyncio.to_thread(kept_templates.keep, cache, digest, template)
    return template


def _keep(name: _Name, template: Template) -> None:
    with _lock:
        _kept[name] = template
        while len(_kept) > 1 and (len(_kept) > MAX_TEMPLATES or _size() > MAX_BYTES):
            _kept.popitem(last=False)


def _size() -> int:
    return sum(template.base.bytes for template in _kept.values())
