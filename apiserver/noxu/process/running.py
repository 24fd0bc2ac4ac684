"""The process of a server: read its files, run it until a signal stops it, and print how to use it.

A server in a process of its own has the garbage collector for itself: see `noxu.garbage`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from noxu import garbage
from noxu.config import Config, StartError
from noxu.http.clients import raise_file_limit
from noxu.observability import logs
from noxu.observability.logs import coloured, shown_on
from noxu.process import limits, signals
from noxu.process.kubeconfig import claim_kubeconfig, place_of_kubeconfig, published
from noxu.process.server import Server, Shown

if TYPE_CHECKING:
    from noxu.control.running import Control
    from noxu.crd.known_definitions import KnownDefinitions
    from noxu.manifests.documents import Document, Read
    from noxu.manifests.watch import FileWatch
    from noxu.process.merged_kubeconfig import UsersKubeconfig

MOST_WATCHED: Final = 3  # files that are named

log = logging.getLogger("noxu")


def run(
    config: Config,
    out: Callable[[str], object] = sys.stdout.write,
    around: Callable[[Sequence[Document]], Iterable[Document]] = iter,
    compiling: Shown | None = None,
    read: Read | None = None,
    definitions: KnownDefinitions | None = None,
    ready: Callable[[str, Path], object] | None = None,
    made: Callable[[Control], object] | None = None,
) -> Server:
    """Serve until SIGINT or SIGTERM, and return the stopped server, which has all its objects. Raises StartError.

    `ready` gets the URL and the kubeconfig as soon as both can be used, before `out` gets the text about them. `made` gets
    the control of the server before that starts. `around` iterates over the documents of the configuration while they are
    loaded. `read` reads their files, None: as `documents.contents_of`. `compiling` and `definitions`: see `Server`.
    """
    parent = os.getppid() if config.exit_with_parent else 0
    logs.configure(config.log.format, config.log.level)
    watch, documents = _files(config, read)
    loaded = around(documents) if documents else ()
    del documents  # when they are loaded, their memory is given back
    _raise_file_limit()
    with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
        return runner.run(_main(config, loaded, out, parent, compiling, definitions, watch, read, ready, made))


def _files(config: Config, read: Read | None) -> tuple[FileWatch | None, list[Document]]:
    """What watches the files, if it is asked for, and what they contain. Raises StartError."""
    if not config.files and not config.kustomizations:
        return None, []
    from noxu.manifests import served_files, watch  # they know YAML

    watching = None
    if config.watch:  # from before the files are read
        watching = watch.FileWatch(config.files, config.kustomizations, create_namespaces=config.create_namespaces)
    return watching, served_files.read_documents(config, read)


def _raise_file_limit() -> None:
    """Raises StartError if even the highest limit is too low."""
    raise_file_limit()
    if too_few := limits.too_few_files():
        raise StartError(too_few)


def run_quietly(config: Config, ready: Callable[[str], object], parent: int = 0) -> Server:
    """Like `run`, without a kubeconfig. `ready` gets the URL. `parent`: see `_main`. Raises StartError."""
    logs.configure(config.log.format, config.log.level)
    _raise_file_limit()
    server = Server(config, own_process=True)
    with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
        return runner.run(_until_stopped(server, lambda: ready(server.url), parent))


def new_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: it halves the cost of the event loop. None: asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that no code handles. asyncio reports every second that it cannot accept connections: in one line."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        log.warning("connections wait, and are not accepted: %s", error.strerror)
    else:
        loop.default_exception_handler(context)


async def _main(
    config: Config,
    documents: Iterable[Document],
    out: Callable[[str], object],
    parent: int,
    compiling: Shown | None,
    definitions: KnownDefinitions | None,
    watch: FileWatch | None,
    read: Read | None,
    announce: Callable[[str, Path], object] | None,
    made: Callable[[Control], object] | None,
) -> Server:
    """`parent`: the process with which the server stops, 0 for none."""
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(place_of_kubeconfig(config))
        users = _users_kubeconfig() if config.merged_context else None

        def claim() -> None:
            claim_kubeconfig(path)
            if users is not None:
                users.check(config.merged_context, path.resolve())

        server = Server(
            config,
            documents,
            claimed=claim,
            compiling=compiling,
            definitions=definitions,
            watch=watch,
            own_process=True,
        )
        server.read = read
        if made is not None:
            made(server.control)

        def ready() -> None:
            if config.files or config.kustomizations:  # any other start leaves a few hundred objects as garbage
                gc.collect()
                limits.give_back()
            stack.enter_context(published(path, server.access()))
            context = ""
            if users is not None:
                is_current = stack.enter_context(users.merged(config.merged_context, path.resolve(), server.access()))
                context = f"{config.merged_context}{', the current one,' if is_current else ''} in {users.file}"
            if announce is not None:
                announce(server.url, path.resolve())
            out(
                banner(
                    config, server.url, path, context, console=console_of(server), shows_colours=shown_on(sys.stdout)
                )
            )
            sys.stdout.flush()

        return await _until_stopped(server, ready, parent)


async def _until_stopped(server: Server, ready: Callable[[], object], parent: int = 0) -> Server:
    """Run a server until a signal, and return it. `ready` is called when it has started. Raises Interrupted before that."""
    stop = asyncio.Event()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    is_ready, received = False, 0

    def react(number: int) -> None:
        nonlocal received
        received = received or number
        stop.set()
        if not is_ready:
            task.cancel()

    loop.set_exception_handler(_report)
    watching = asyncio.ensure_future(_stop_with(parent, react)) if parent else None
    signals.on_stop(loop, react)
    signals.end_if_stuck(loop)
    try:
        async with server:
            ready()
            is_ready = True
            garbage.begin(garbage.OF_A_SERVER)
            await stop.wait()
    except asyncio.CancelledError:
        if received:
            raise signals.Interrupted(received) from None
        raise
    if watching is not None:
        watching.cancel()
    return server


async def _stop_with(parent: int, react: Callable[[int], object]) -> None:
    await signals.parent_ended(parent)
    log.info("the server stops: the process that has started it has ended")
    react(signal.SIGTERM)


def _users_kubeconfig() -> UsersKubeconfig:
    """Raises StartError."""
    from noxu.process.merged_kubeconfig import users_kubeconfig  # few servers need it, and it knows YAML

    try:
        return users_kubeconfig(os.environ, Path.home())
    except RuntimeError as error:
        raise StartError(f"--merge-kubeconfig: {error}; set KUBECONFIG") from None


def _watched(config: Config) -> str:
    """The first of the files and kustomizations that are watched."""
    paths = [*map(str, config.files), *(f"-k {path}" for path in config.kustomizations)]
    return ", ".join(paths[:MOST_WATCHED]) + (
        f" and {len(paths) - MOST_WATCHED} more" if len(paths) > MOST_WATCHED else ""
    )


def _faults(config: Config) -> str:
    """The faults that a server begins with."""
    latency = f"every answer is late by {config.latency}" if config.latency else ""
    return "; ".join(filter(None, (str(config.faults or ""), latency)))


def console_of(server: Server) -> str:
    """The address of the console, with the token for changes. Where users are authenticated, they need none."""
    is_anonymous = server.plane.authenticator.allows_anonymous
    return f"{server.url}/_noxu/{f'#token={server.control.token}' if is_anonymous else ''}"


def banner(
    config: Config, url: str, path: Path, context: str = "", *, console: str = "", shows_colours: bool = False
) -> str:
    """What `noxu serve` prints when the server is ready. `context` is a context of another kubeconfig, `console` an address."""

    def bold(text: str) -> str:
        return coloured(text, "bold", shown=shows_colours)

    location = (
        f"etcd at {', '.join(config.etcd.servers)} under {config.etcd.prefix}"
        if config.etcd
        else f"{config.data / 'noxu.db'} ({config.durability} durability)"
        if config.data
        else "in memory, discarded when the server stops"
    )
    commands = (
        [f"kubectl --context {config.merged_context} api-resources"]
        if context
        else [f"export KUBECONFIG={path.resolve()}", "kubectl api-resources"]
    )
    return (
        f"Noxu serves the Kubernetes API at {bold(url)}\n"
        f"{''.join(f'  also at     {place}{chr(10)}' for place in config.listen)}"
        f"  data        {location}\n"
        f"  kubeconfig  {path}\n"
        f"{f'  context     {context}{chr(10)}' if context else ''}"
        f"{f'  faults      {_faults(config)}{chr(10)}' if config.faults or config.latency else ''}"
        f"{f'  watching    {_watched(config)}{chr(10)}' if config.watch else ''}"
        f"{f'  console     {console}{chr(10)}' if console else ''}\n"
        f"{''.join(f'  {bold(command)}{chr(10)}' for command in commands)}\n"
        f"Press Ctrl-C to stop the server.\n"
    )
