"""A stand-in for etcd: it answers that it is healthy, and names the folder for the objects of kube-apiserver.

envtest starts etcd and waits for `GET /health` before it starts kube-apiserver with the URL. So the life of this process is
that of the objects: a kube-apiserver that is started again with the same URL, or with the folder of an earlier one, finds
them. It stores nothing itself, and speaks no gRPC: to a client of etcd the service is unavailable. It ends with the process
that has started it, unless NOXU_EXIT_WITH_PARENT is false: a test that is killed leaves nothing behind.

This file is run as a script without site-packages, and imports four modules of the standard library: it starts in 25 ms.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys

MAX_REQUEST = 16 * 1024  # bytes of a request line with its headers
MAX_CONNECTIONS = 128  # beyond them, the oldest is closed
BACKLOG = 128
DATA_PATH = "/_noxu/data-dir"
"""Private: `unsafe-no-fsync` or `fsync` in a line, then the data directory."""

DEFAULT_URL = "http://localhost:2379"
HELP = """etcd of Noxu: a stand-in for tests, which stores nothing itself; the kube-apiserver of the same folder keeps its objects in
the data directory.

Usage:

  etcd [flags]

Flags:
  --data-dir 'default.etcd'
    The folder in which kube-apiserver keeps its objects.
  --listen-client-urls 'http://localhost:2379'
    The address to listen on, on loopback only. Of several URLs the first one counts.
  --unsafe-no-fsync
    Do not wait for the disk: a power failure may lose objects.
  --help, --version

All other flags of etcd have no effect.
"""
VERSION = """etcd Version: 3.6.5
Git SHA: noxu
Go Version: none
Go OS/Arch: linux/amd64
"""
EXIT_WITH_PARENT = "NOXU_EXIT_WITH_PARENT"
PARENT = "NOXU_PARENT"
"""In which the launcher says who has started it."""
PARENT_POLL = 1000  # milliseconds
_FALSE = ("0", "f", "F", "false", "FALSE", "False")
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_BOOLEANS = (  # those that test suites set
    *("unsafe-no-fsync", "force-new-cluster", "strict-reconfig-check", "pre-vote", "auto-tls", "client-cert-auth"),
    *("peer-auto-tls", "peer-client-cert-auth", "enable-pprof", "debug", "help", "h", "version"),
)

TEXTS = {
    "/health": ("application/json", b'{"health":"true","reason":""}'),
    "/readyz": ("text/plain; charset=utf-8", b"ok\n"),
    "/livez": ("text/plain; charset=utf-8", b"ok\n"),
    "/version": (
        "application/json",
        b'{"etcdserver":"3.6.5","etcdcluster":"3.6.0","storage":"3.6.0"}',
    ),
    "/metrics": ("text/plain; version=0.0.4; charset=utf-8", b""),
}


def flags(words: list[str]) -> dict[str, str]:
    """The flags of a command line, as Go's package flag reads them: one dash or two. Unknown ones are among them."""
    values: dict[str, str] = {}
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        if not word.startswith("-"):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals and name in _BOOLEANS:
            value = "true"
        elif not equals and remaining and not remaining[0].startswith("-"):
            value = remaining.pop(0)
        values[name] = value
    return values


def address(urls: str) -> tuple[str, int]:
    """The host and the port of the first URL. Raises ValueError."""
    url = urls.split(",")[0]
    scheme, _, rest = url.partition("://")
    host, _, port = rest.rstrip("/").rpartition(":")
    if scheme != "http" or not host or not port.isdecimal():
        raise ValueError(f"--listen-client-urls: {url!r} is not http://HOST:PORT, the only form that this etcd knows")
    return host.strip("[]"), int(port)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket on loopback. Raises OSError."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - not listened on
        _report(f"{host} is every address of this host; listening on 127.0.0.1 only")
    host = host if host.startswith("127.") or host == "::1" else "127.0.0.1"
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def answer(request: bytes, data: bytes) -> bytes:
    """The whole answer to a request. `data` is that of DATA_PATH."""
    method, _, rest = request.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    kind, text = ("text/plain", data) if path == DATA_PATH else TEXTS.get(path, ("text/plain; charset=utf-8", None))
    status = "200 OK"
    if text is None:
        status, text = "404 Not Found", b"404 page not found\n"
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (b"" if method == "HEAD" else text)


def parent() -> int:
    """The process with which this one ends, 0 for none. The launcher passes it on, since it may have ended meanwhile."""
    if os.environ.get(EXIT_WITH_PARENT, "true") in _FALSE:
        return 0
    launcher = os.environ.get(PARENT, "")
    return int(launcher) if launcher.isdecimal() else os.getppid()


def serve(listener: socket.socket, data: bytes, parent: int = 0) -> None:
    """Answer requests until the process is killed, or its `parent` ends. Whatever a client sends, the others are answered."""
    poll = select.poll()
    poll.register(listener.fileno(), select.POLLIN)
    timeout = None
    if parent:
        timeout = PARENT_POLL
        if hasattr(os, "pidfd_open"):  # Linux
            try:
                poll.register(os.pidfd_open(parent), select.POLLIN)  # until the end of the process
                timeout = None
            except OSError:
                pass  # it has ended
    received: dict[int, tuple[socket.socket, bytearray]] = {}

    def close(number: int) -> None:
        poll.unregister(number)
        received.pop(number)[0].close()

    while True:
        ready = poll.poll(timeout)
        if parent and os.getppid() != parent:
            return
        for number, _ in ready:
            if number == listener.fileno():
                try:
                    connection, _ = listener.accept()
                except OSError:  # the client is gone, or there are no descriptors left
                    if received:
                        close(next(iter(received)))
                    continue
                connection.setblocking(False)
                if len(received) >= MAX_CONNECTIONS:
                    close(next(iter(received)))
                received[connection.fileno()] = connection, bytearray()
                poll.register(connection, select.POLLIN)
            elif number in received:
                connection, request = received[number]
                try:
                    part = connection.recv(MAX_REQUEST)
                    request += part
                    if b"\r\n\r\n" in request and not request.startswith(b"PRI "):  # HTTP/2 begins with PRI
                        connection.send(answer(bytes(request), data))
                        connection.shutdown(socket.SHUT_WR)
                        part = b""
                except BlockingIOError:
                    continue
                except OSError:
                    part = b""
                if not part or len(request) > MAX_REQUEST or request.startswith(b"PRI "):
                    close(number)


def _report(text: str) -> None:
    sys.stderr.write(f"etcd: {text}\n")


def main(words: list[str]) -> int:
    """Returns if it cannot start, or at the end of its parent."""
    values = flags(words)
    for name, text in (("help", HELP), ("h", HELP), ("version", VERSION)):
        if name in values:
            sys.stdout.write(text)
            return 0
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)  # nothing has to be written: the process just ends
    folder = values.get("data-dir") or os.environ.get("ETCD_DATA_DIR") or "default.etcd"
    urls = values.get("listen-client-urls") or os.environ.get("ETCD_LISTEN_CLIENT_URLS") or DEFAULT_URL
    mode = "unsafe-no-fsync" if values.get("unsafe-no-fsync") in _TRUE else "fsync"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib takes as long to import as all else
        listener = listen(*address(urls))
    except (OSError, OverflowError, ValueError) as error:
        _report(f"cannot start: {error}")
        return 1
    with_parent = parent()
    serve(listener, f"{mode}\n{os.path.abspath(folder)}".encode("utf-8", "surrogateescape"), with_parent)  # noqa: PTH100
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
