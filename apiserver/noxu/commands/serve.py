"""`noxu serve`: run the server until it is stopped.

When it has stopped, everything is written and closed. Then the process ends at once: freeing the objects of a large server
one by one takes seconds.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Final

from noxu import garbage
from noxu.commands import progress
from noxu.config import NotLoadedError, StartError
from noxu.expressions import expression
from noxu.http import lazy_client
from noxu.observability.logs import coloured, shown_on
from noxu.process.signals import Interrupted

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from noxu.control.running import Control
    from noxu.crd.known_definitions import KnownDefinitions
    from noxu.manifests.documents import Document
    from noxu.manifests.manifest_cache import Cache
    from noxu_storage.types import Progress

_NO_NAMESPACE: Final = expression(r'namespaces ".*" not found$')


def run(options: argparse.Namespace) -> int:
    """Exit status 0: stopped; 1: could not start; 130, 143: interrupted before it was ready.

    If it stops in a process of its own, this does not return.
    """
    return serve(options, sys.stdout.write)


def serve(
    options: argparse.Namespace,
    out: Callable[[str], object],
    ready: Callable[[str, Path], object] | None = None,
    made: Callable[[Control], object] | None = None,
) -> int:
    """As `run`; `out`, `ready` and `made` are those of `process.running.run`."""
    if options.own_process:
        lazy_client.install()
    from noxu.process import running  # afterwards: it imports aiohttp

    cache = _cache(options)
    definitions = None if cache is None else cache.known_definitions()
    try:
        # The server is kept until the end, see the module.
        _stopped = running.run(
            options.config,
            out=out,
            around=partial(_loaded, options, cache, definitions),
            compiling=partial(_shown, options, "start", "definitions"),
            read=None if cache is None else cache.reader,
            definitions=definitions,
            ready=ready,
            made=made,
        )
    except StartError as error:
        head = coloured("noxu:", "red", shown=shown_on(sys.stderr))
        for message in error.args:
            print(f"{head} {message}", file=sys.stderr)
        if isinstance(error, NotLoadedError):
            count = f"{len(error.args)} errors" if len(error.args) > 1 else "one error"
            print(f"{head} {count}; --keep-going starts the server without these objects", file=sys.stderr)
            if any(_NO_NAMESPACE.search(message) for message in error.args):
                print(f"{head} --create-namespace creates the namespaces that no file makes", file=sys.stderr)
        return 1
    except Interrupted as error:
        return 128 + error.number  # as shells have it
    if options.own_process:
        sys.stdout.flush()
        garbage.end_process(0)
    return 0


def _shown(options: argparse.Namespace, work: str, unit: str = "objects") -> AbstractContextManager[Progress]:
    """The progress of a work. Without a terminal, lines about it are in the server's log."""
    return progress.shown(work, unit, quiet=options.quiet, say=logging.getLogger("noxu").info)


def _cache(options: argparse.Namespace) -> Cache | None:
    """The cache of parsed manifests and valid definitions; None if it is not needed."""
    if options.no_cache or not options.config.files:
        return None
    from noxu.manifests.manifest_cache import Cache, user_directory  # it knows YAML

    return Cache(user_directory())


def _loaded(
    options: argparse.Namespace,
    cache: Cache | None,
    definitions: KnownDefinitions | None,
    documents: Sequence[Document],
) -> Iterator[Document]:
    """The documents while they are loaded. Afterwards what is known of definitions is kept."""
    if cache is not None:
        cache.tidy()
    with _shown(options, "load") as report:
        yield from progress.each(documents, report, len(documents))
    if cache is not None and definitions is not None:
        cache.keep_known_definitions(definitions)
