"""The sockets on which a server listens: an address, Unix sockets, and sockets that another process has opened.

`--host` and `--port` are an address. `--listen unix:PATH` adds a Unix socket, which only its owner may use (mode 0600); it
takes the place of one that a dead server has left, and of nothing else. `--listen fd:N` adds a socket that this process
has inherited, as from systemd; the first of them that is TCP takes the place of `--host` and `--port`. So there is always
an address, which the kubeconfig has.
"""

from __future__ import annotations

import contextlib
import errno
import random
import socket
import stat
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from noxu.api.names import is_loopback
from noxu.config import Config, StartError
from noxu.expressions import expression
from noxu.files import locked
from noxu.process.limits import sentence
from noxu_storage.types import reason

BACKLOG: Final = 1024  # connections that the kernel accepts before the server does
_PLACE: Final = expression(r"(?P<kind>unix|fd):(?P<place>.+)")
_UNIX: Final = getattr(socket, "AF_UNIX", None)
"""None: Windows, whose Python has no Unix sockets."""
_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)
_ADDRESS: Final = expression("[0-9.]+|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*")  # which may be invalid; everything else is a name
_NO_PORT: Final = "no port is free: stop other programs, or let the system give out more (net.ipv4.ip_local_port_range)"
_SIOCGIFADDR: Final = 0x8915  # Linux: the IPv4 address of an interface


class ListenPlace(NamedTuple):
    """A value of `--listen`."""

    kind: str
    place: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}"


class Listeners(NamedTuple):
    """Listening sockets. `main` is TCP; `address` is its address."""

    main: socket.socket
    others: tuple[socket.socket, ...] = ()

    @property
    def address(self) -> str:
        return str(self.main.getsockname()[0])

    @property
    def port(self) -> int:
        return int(self.main.getsockname()[1])

    @property
    def on_loopback(self) -> bool:
        """Whether only programs of this machine can connect."""
        return all(is_local(listener) for listener in (self.main, *self.others))


def parse(text: str) -> ListenPlace:
    """Raises ValueError."""
    match = _PLACE.fullmatch(text)
    if match is None or (match["kind"] == "fd" and not match["place"].isdecimal()):
        raise ValueError("must be unix:PATH or fd:NUMBER")
    return ListenPlace(match["kind"], match["place"])


@contextlib.contextmanager
def opened(config: Config, ports: range | None = None) -> Iterator[Listeners]:
    """The sockets of a server, until the end. `ports`: those of which it has one that is free. Raises StartError."""
    with contextlib.ExitStack() as closing:
        others = []
        for place in map(parse, config.listen):
            if place.kind == "unix":
                others.append(closing.enter_context(unix(Path(place.place))))
            else:
                others.append(closing.enter_context(inherited(int(place.place))))
        main = next((listener for listener in others if listener.family in _INTERNET), None)
        if main is None:
            opening = listen(config.host, config.port) if ports is None else listen_in(config.host, ports)
            main = closing.enter_context(opening)
        yield Listeners(main, tuple(listener for listener in others if listener is not main))


class PortInUse(StartError):
    """Something else listens at the port."""


def listen_in(host: str, ports: range) -> socket.socket:
    """A listening socket at one of these ports that is free. Raises StartError.

    Which one is tried first is random: a client of a server that has ended should not meet the one that comes next.
    """
    first = random.randrange(len(ports))  # noqa: S311 - nothing depends on it
    for port in (*ports[first:], *ports[:first]):
        with contextlib.suppress(PortInUse):
            return listen(host, port)
    raise StartError(f"no port of --tenant-ports {ports[0]}-{ports[-1]} is free: delete tenants, or allow more ports")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises StartError, PortInUse."""
    try:
        encoded = host.encode() if _ADDRESS.fullmatch(host) else host  # of text, Python makes a domain name
        places = socket.getaddrinfo(encoded, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise StartError(f"--host {host}: {getattr(error, 'strerror', None) or error}") from None
    family, _, _, _, address = places[0]
    for_both = address[0] == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(address[:2], family=family, backlog=BACKLOG, dualstack_ipv6=for_both)
    except OSError as error:
        why = reason(error)
        if error.errno == errno.EADDRINUSE:
            why = "another server is using it; choose another --port, or 0 for a free one" if port else _NO_PORT
            raise PortInUse(f"cannot listen on {host}:{port}: {why}") from None
        if error.errno in (errno.EMFILE, errno.ENFILE):
            why = sentence(error)
        raise StartError(f"cannot listen on {host}:{port}: {why}") from None


@contextlib.contextmanager
def unix(path: Path) -> Iterator[socket.socket]:
    """A Unix socket, which is removed at the end, unless another one has taken its place. Raises StartError."""
    if _UNIX is None:
        raise StartError(f"--listen unix:{path}: this platform has no Unix sockets")
    listener = socket.socket(_UNIX, socket.SOCK_STREAM)
    with listener:
        try:
            with locked(path.parent):
                _remove_dead(path)
                listener.bind(str(path))
                path.chmod(0o600)  # before it listens: until then nothing can connect
                listener.listen(BACKLOG)
            identity = _identity(path)
        except OSError as error:
            raise StartError(f"--listen unix:{path}: {error.strerror or error}") from None
        try:
            yield listener
        finally:
            with contextlib.suppress(OSError):
                if _identity(path) == identity:
                    path.unlink()


def inherited(number: int) -> socket.socket:
    """A socket that another process has opened. Raises StartError."""
    try:
        listener = socket.socket(fileno=number)
    except OSError as error:
        raise StartError(f"--listen fd:{number}: {error.strerror or error}") from None
    if listener.type != socket.SOCK_STREAM or listener.family not in (*_INTERNET, _UNIX):
        listener.detach()
        raise StartError(f"--listen fd:{number}: it is neither a TCP nor a Unix socket")
    try:
        listener.set_inheritable(False)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise StartError(f"--listen fd:{number}: {error.strerror or error}") from None
    return listener


def is_unix(listener: socket.socket) -> bool:
    return _UNIX is not None and listener.family == _UNIX


def is_local(listener: socket.socket) -> bool:
    """Whether only programs of this machine can connect to a socket."""
    return is_unix(listener) or is_loopback(str(listener.getsockname()[0]))


def _remove_dead(path: Path) -> None:
    """Remove a Unix socket on which nothing listens. Raises OSError, StartError."""
    assert _UNIX is not None
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise StartError(f"--listen unix:{path}: the file exists, and is not a socket; it is not replaced")
    with socket.socket(_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        failure = probe.connect_ex(str(path))
    if failure != errno.ECONNREFUSED:
        raise StartError(f"--listen unix:{path}: another server is using it")
    path.unlink()


def _identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


# -- addresses --------------------------------------------------------------------------------------------------------


def host_address() -> str:
    """The IPv4 address from which this host would send a packet to another network, "" without such a route.

    No packet is sent: the kernel selects the address when a datagram socket is connected.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1, which is for documentation (RFC 5737)
        except OSError:
            return ""
        address: str = probe.getsockname()[0]
    return "" if is_loopback(address) else address


def own_names() -> Sequence[str]:
    """The name of this host and its addresses, as far as they can be found."""
    name = socket.gethostname()
    try:
        of_name = [str(place[4][0]) for place in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    except OSError:
        of_name = []
    return list(dict.fromkeys([name, *filter(None, [host_address()]), *of_name, *_interface_addresses()]))


def _interface_addresses() -> Iterator[str]:
    """The first IPv4 address of each interface, and all IPv6 addresses that are not link-local, on Linux."""
    try:
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            for _, name in socket.if_nameindex():
                with contextlib.suppress(OSError):  # it has none
                    answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()))
                    yield socket.inet_ntoa(answer[20:24])
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0]))
            if not address.startswith("fe80:"):
                yield address
    except (ImportError, OSError, ValueError):  # another platform
        return
