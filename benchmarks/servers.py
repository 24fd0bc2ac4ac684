"""The servers that are measured: any number, each with a name, an address and its processes.

--server NAME=URL|KUBECONFIG[,pids=PID+PID][,ca=FILE][,cert=FILE,key=FILE][,token=TOKEN]   one that runs
--start NAME=PROGRAM     a program that starts one: `PROGRAM DIRECTORY PORT` keeps its data in DIRECTORY, listens on PORT
                         of the loopback address, writes DIRECTORY/kubeconfig, and ends with SIGTERM. It may use the
                         two ports above PORT, too
--checkout NAME=FOLDER   Noxu of a checkout: durable in SQLite, over TLS with a client certificate
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from benchmarks.load import Request, Target, ask
from benchmarks.processes import python_path, with_descendants
from noxu.commands import api_client

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
READY_WITHIN: Final = 60.0  # seconds
STOPS_WITHIN: Final = 20.0  # seconds
OPTIONS: Final = ("pids", "ca", "cert", "key", "token")


class Source(NamedTuple):
    """How a server is reached: it runs (`endpoint`, `pids`), or a command starts it."""

    name: str
    endpoint: api_client.ServerEndpoint | None = None
    pids: tuple[int, ...] = ()
    command: tuple[str, ...] = ()
    folder: Path | None = None
    tls: bool = True


def running(text: str) -> Source:
    """The server of an argument `--server`. Raises ValueError."""
    name, address, options = _parts(text)
    if unknown := sorted(set(options) - set(OPTIONS)):
        raise ValueError(f"{text!r}: no such option: {', '.join(unknown)}; there are {', '.join(OPTIONS)}")
    try:
        pids = tuple(int(pid) for pid in options.get("pids", "").split("+") if pid)
    except ValueError:
        raise ValueError(f"{text!r}: pids are numbers joined by +, such as pids=12+13") from None
    if ("cert" in options) != ("key" in options):
        raise ValueError(f"{text!r}: a client certificate needs both, cert=FILE and key=FILE")
    try:
        if "://" not in address:
            endpoint = api_client.endpoint_from_kubeconfig(Path(address))
        else:
            ca, cert, key = (
                Path(options[each]).read_bytes() if each in options else b"" for each in ("ca", "cert", "key")
            )
            token = f"Bearer {options['token']}" if "token" in options else ""
            endpoint = api_client.ServerEndpoint(address, ca, cert, key, token)
    except (OSError, api_client.RequestError) as error:
        raise ValueError(f"{text!r}: {error}") from None
    if urlsplit(endpoint.url).scheme not in ("http", "https"):
        raise ValueError(f"{text!r}: the URL has to begin with http:// or https://")
    return Source(name, endpoint, pids)


def started_by(text: str) -> Source:
    """The server of an argument `--start`. Raises ValueError."""
    name, program, _ = _parts(text)
    path = Path(program).resolve()
    if not os.access(path, os.X_OK) or path.is_dir():
        raise ValueError(f"{text!r}: {program} is not a program")
    return Source(name, command=(str(path), "{directory}", "{port}"))


def checkout(text: str, *, tls: bool = True) -> Source:
    """The server of an argument `--checkout`. Raises ValueError."""
    name, folder, _ = _parts(text)
    path = Path(folder).resolve()
    if not any((path / package / "__main__.py").exists() for package in ("apiserver/noxu", "noxu")):  # older ones
        raise ValueError(f"{text!r}: {folder} is no checkout of Noxu")
    command = [sys.executable, "-m", "noxu", "serve", "--quiet", "--data", "{directory}/data", "--port", "{port}"]
    command += ["--kubeconfig", "{directory}/kubeconfig", *(["--tls"] if tls else [])]
    return Source(name, command=tuple(command), folder=path, tls=tls)


def _parts(text: str) -> tuple[str, str, dict[str, str]]:
    """`NAME=ADDRESS,option=value`: (name, address, options)."""
    name, found, rest = text.partition("=")
    address, *options = rest.split(",")
    if not name or not found or not address or not all("=" in option for option in options):
        raise ValueError(f"{text!r} is not of the form NAME=ADDRESS[,option=value …]")
    return name, address, dict(option.split("=", 1) for option in options)


class Server:
    """A server that runs. `seconds` is the time from its start until it answered; None if it ran already."""

    def __init__(
        self, source: Source, endpoint: api_client.ServerEndpoint, process: subprocess.Popen[bytes] | None
    ) -> None:
        self.name = source.name
        self._pids = source.pids
        self._process = process
        parts = urlsplit(endpoint.url)
        secure = parts.scheme == "https"
        tls = api_client.ssl_context(endpoint) if secure else None
        headers = f"Authorization: {endpoint.authorization}\r\n" if endpoint.authorization else ""
        self.target = Target(parts.hostname or "", parts.port or (443 if secure else 80), tls, headers)

    @property
    def pids(self) -> list[int]:
        """Its processes."""
        return with_descendants([self._process.pid] if self._process else self._pids)

    def stop(self) -> None:
        if self._process is not None:
            end(self._process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process with its group: first politely."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOPS_WITHIN)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    """A port of the loopback address that is free, as the two above it are."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = int(listener.getsockname()[1])
        try:
            for further in (port + 1, port + 2):
                socket.create_server(("127.0.0.1", further)).close()
        except (OSError, OverflowError):
            continue
        return port


def _launch(source: Source, directory: Path) -> subprocess.Popen[bytes]:
    directory.mkdir(parents=True, exist_ok=True)
    port = str(free_port())
    command = [part.replace("{directory}", str(directory)).replace("{port}", port) for part in source.command]
    environment = os.environ | ({"PYTHONPATH": python_path(source.folder)} if source.folder else {})
    with (directory / "output").open("wb") as output:
        return subprocess.Popen(
            command, cwd=source.folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )


async def start(source: Source, directory: Path) -> Server:
    """Start a server, unless it runs. Returns when it has answered a list of definitions. Raises SystemExit."""
    if source.endpoint is not None:
        return Server(source, source.endpoint, None)
    process = _launch(source, directory)
    kubeconfig = directory / "kubeconfig"
    deadline = time.monotonic() + READY_WITHIN
    server: Server | None = None
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            if server is None and kubeconfig.exists():
                server = Server(source, api_client.endpoint_from_kubeconfig(kubeconfig), process)
            if server is not None:
                await ask(server.target, Request("GET", DEFINITIONS))
                return server
        except (OSError, api_client.RequestError, SystemExit):
            pass
        await asyncio.sleep(0.01)
    end(process)
    raise SystemExit(f"{source.name} did not start: {(directory / 'output').read_text()[-2000:]}")


async def start_all(sources: Sequence[Source], directory: Path) -> list[Server]:
    servers: list[Server] = []
    try:
        for source in sources:
            servers.append(await start(source, directory / source.name))  # noqa: PERF401
    except BaseException:
        for server in servers:
            server.stop()
        raise
    return servers
