"""Where a server listens: addresses, Unix sockets, inherited sockets."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from noxu.config import Config, StartError
from noxu.process import listeners
from noxu.process.listeners import host_address, inherited, listen, opened, own_names, parse, unix

# -- addresses


def test_a_platform_without_unix_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "_UNIX", None)
    with pytest.raises(StartError, match="this platform has no Unix sockets"), unix(tmp_path / "s"):
        pass
    with listeners.listen("127.0.0.1", 0) as listener:
        assert listeners.is_local(listener)
        assert not listeners.is_unix(listener)


@pytest.mark.parametrize(("host", "on_loopback"), [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False)])
def test_the_address(host: str, on_loopback: bool) -> None:
    with opened(Config(host=host, port=0)) as found:
        assert found.port > 0
        assert found.on_loopback == on_loopback


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_all_ipv6_addresses_include_those_of_ipv4() -> None:
    with opened(Config(host="::", port=0)) as found, socket.create_connection(("127.0.0.1", found.port)):
        assert not found.on_loopback


@pytest.mark.parametrize("host", ["unknown.invalid", "a" * 70, "192.0.2.1"])
def test_an_address_that_is_not_the_hosts(host: str) -> None:
    with pytest.raises(StartError, match=host):
        listen(host, 0)


def test_a_port_that_is_in_use() -> None:
    with contextlib.closing(listen("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(StartError) as raised:
            listen("127.0.0.1", port)
    assert str(raised.value) == (
        f"cannot listen on 127.0.0.1:{port}: another server is using it; choose another --port, or 0 for a free one"
    )


def test_a_refusal_by_the_system_is_named_once() -> None:
    with pytest.raises(StartError) as raised:
        listen("192.0.2.1", 1)
    assert str(raised.value) == f"cannot listen on 192.0.2.1:1: {os.strerror(errno.EADDRNOTAVAIL)}"


# -- values of --listen


@pytest.mark.parametrize("text", ["unix:/a/b", "unix:a:b", "fd:3"])
def test_places(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize("text", ["", "unix:", "fd:", "fd:x", "fd:-1", "127.0.0.1:80", "/a"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(ValueError, match="must be unix:PATH or fd:NUMBER"):
        parse(text)


# -- Unix sockets


def test_only_the_owner_may_use_a_unix_socket_which_is_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with opened(Config(port=0, listen=(f"unix:{path}",))) as found:
        assert found.on_loopback
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_ISSOCK(path.stat().st_mode)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    assert not path.exists()


def test_a_socket_that_a_dead_server_has_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    with unix(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def a_file(path: Path) -> object:
    return path.write_text("content")


def a_link(path: Path) -> object:
    (path.parent / "content").write_text("content")
    return path.symlink_to(path.parent / "content")


KEPT: dict[str, Callable[[Path], object]] = {
    "a file": a_file,
    "a link to a file": a_link,
    "a directory": lambda path: path.mkdir(),
    "a FIFO": os.mkfifo,
}


@pytest.mark.parametrize("make", KEPT.values(), ids=KEPT)
def test_what_is_no_socket_is_kept(tmp_path: Path, make: Callable[[Path], object]) -> None:
    path = tmp_path / "s"
    make(path)
    before = path.lstat()
    with pytest.raises(StartError, match="the file exists, and is not a socket; it is not replaced"), unix(path):
        pass
    assert path.lstat().st_ino == before.st_ino


def test_a_socket_on_which_another_server_listens_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with unix(path), socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(StartError, match="another server is using it"), unix(path):
            pass
        client.connect(str(path))


def test_a_socket_that_has_taken_its_place_is_not_removed(tmp_path: Path) -> None:
    path, other = tmp_path / "s", tmp_path / "other"
    with unix(path):
        other.touch()
        other.rename(path)
    assert path.exists()


@pytest.mark.parametrize("path", ["none/s", "x" * 200])
def test_a_path_that_cannot_be_used(tmp_path: Path, path: str) -> None:
    with pytest.raises(StartError, match=f"--listen unix:{tmp_path}"), unix(tmp_path / path):
        pass


# -- inherited sockets


def test_an_inherited_tcp_socket_takes_the_place_of_host_and_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as made:
        config = Config(host="192.0.2.1", listen=(f"unix:{tmp_path / 's'}", f"fd:{os.dup(made.fileno())}"))
        with opened(config) as found:
            assert found.main.getsockname() == made.getsockname()
            assert [each.family for each in found.others] == [socket.AF_UNIX]
            assert not found.main.get_inheritable()


def test_an_inherited_unix_socket_is_a_further_one(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "s"))  # it does not listen yet
        with opened(Config(port=0, listen=(f"fd:{os.dup(made.fileno())}",))) as found:
            assert found.address == "127.0.0.1"
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(tmp_path / "s"))
    assert (tmp_path / "s").exists(), "another process has made it"


def test_an_inherited_socket_off_loopback_is_recognised() -> None:
    with (
        socket.create_server(("0.0.0.0", 0)) as made,
        opened(Config(listen=(f"fd:{os.dup(made.fileno())}",))) as found,
    ):
        assert not found.on_loopback


def test_what_is_no_inherited_socket(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="fd:9999: Bad file descriptor"):
        inherited(9999)
    with (tmp_path / "file").open("w") as file, pytest.raises(StartError, match=f"fd:{file.fileno()}: "):
        inherited(file.fileno())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        with pytest.raises(StartError, match="it is neither a TCP nor a Unix socket"):
            inherited(datagrams.fileno())
        assert datagrams.getsockname(), "it is still open"


# -- names of the host


class _Probe(socket.socket):
    """A datagram socket of a host with one address; "": it has no route."""

    address_of_host = ""

    def connect(self, address: object) -> None:
        if not self.address_of_host:
            raise OSError("Network is unreachable")

    def getsockname(self) -> tuple[str, int]:
        return self.address_of_host, 50_000


@pytest.mark.parametrize(("has", "found"), [("192.0.2.7", "192.0.2.7"), ("127.0.0.1", ""), ("", "")])
def test_the_address_of_the_host_is_not_on_loopback(monkeypatch: pytest.MonkeyPatch, has: str, found: str) -> None:
    monkeypatch.setattr(_Probe, "address_of_host", has)
    monkeypatch.setattr(socket, "socket", _Probe)
    assert host_address() == found


def test_the_names_of_the_host() -> None:
    found = own_names()
    assert found[0] == socket.gethostname()
    assert len(set(found)) == len(found)


def test_a_host_without_name_service_has_the_addresses_of_its_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no name service")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "eth0")])
    monkeypatch.setattr(pytest.importorskip("fcntl"), "ioctl", lambda *_: bytes(20) + socket.inet_aton("192.0.2.9"))
    assert "192.0.2.9" in own_names()
