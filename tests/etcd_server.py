"""etcd itself, as a process of the tests: in a directory of its own, on free ports, ended with everything it started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests import optional
from tests.timing import HANGS_AFTER, eventually

PROGRAM: Final = optional.program("etcd")


def lacking() -> str:
    """What etcd in tests lacks on this machine, in the form of `optional`; empty: nothing."""
    if PROGRAM is None:
        return "program: etcd"
    missing = [name for name in ("grpc", "google.protobuf") if not optional.has_package(name)]
    return f"package: {missing[0]}" if missing else ""


def free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


class EtcdServer:
    """One member. `kill`, `pause` and `start` again keep its data and its address."""

    def __init__(
        self, directory: Path, *options: str, durable: bool = False, name: str = "test", ports: Sequence[int] = ()
    ) -> None:
        """`durable`: it syncs what it writes, which a test rarely needs. `options` are further ones of etcd.

        `ports`: for clients and for other members; by default free ones.
        """
        self.directory = directory
        self._name = name
        self._options = [*options] if durable else [*options, "--unsafe-no-fsync"]
        client, peer = ports or free_ports(2)
        self.url, self._peer = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
        self.cluster = f"{name}={self._peer}"  # also of other members
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.begin()
        eventually(self.is_healthy)

    def begin(self) -> None:
        """Start it, and do not wait."""
        self.directory.mkdir(parents=True, exist_ok=True)
        assert PROGRAM is not None
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    PROGRAM, "--name", self._name, "--data-dir", str(self.directory / "data"), *self._options,
                    "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                    "--listen-peer-urls", self._peer, "--initial-advertise-peer-urls", self._peer,
                    "--initial-cluster", self.cluster, "--log-level", "error",
                ],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def is_healthy(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.directory / "log").read_text()
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def leads(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/metrics", timeout=5) as answer:
                return "\netcd_server_is_leader 1\n" in answer.read().decode()
        except (OSError, urllib.error.URLError):
            return False

    def crash(self) -> None:
        """Kill it, and lose nothing that it has answered, if no client writes meanwhile.

        A single member of etcd 3.5.1 answers before the write is in its log (etcd-io/etcd#14370), but the next entry of
        the log waits for it. A lease is one, and has no revision.
        """
        body = urllib.request.Request(f"{self.url}/v3/lease/grant", b'{"TTL": 60}')
        urllib.request.urlopen(body, timeout=HANGS_AFTER).close()
        self.kill()

    def signal(self, number: signal.Signals) -> None:
        """To the process and what it started: on some machines `etcd` is a script that starts etcd."""
        assert self.process is not None
        os.killpg(self.process.pid, number)

    def pause(self) -> None:
        """Return when all threads have stopped."""
        self.signal(signal.SIGSTOP)
        eventually(lambda: all(state == "T" for state in self._states()))

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def _states(self) -> Iterator[str]:
        """The states of all threads of the process group: `PID (NAME) STATE PARENT GROUP …`."""
        assert self.process is not None
        for path in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
            try:
                state, _, group = path.read_text().rpartition(")")[2].split()[:3]
            except OSError:
                continue  # it has ended
            if int(group) == self.process.pid:
                yield state

    def kill(self) -> None:
        if self.process is not None:
            self.signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


MEMBERS: Final = ("one", "two", "three")


class EtcdMembers:
    """Three members of one cluster. `url` has those of all.

    Unlike a single member of 3.5.1 (see `EtcdServer.crash`) they may be killed while clients write: what is answered is in
    the logs of two of them.
    """

    def __init__(self, directory: Path) -> None:
        ports = free_ports(2 * len(MEMBERS))  # by one call: the next one may return the same port again
        self.members = [
            EtcdServer(directory / name, name=name, ports=ports[2 * n : 2 * n + 2]) for n, name in enumerate(MEMBERS)
        ]
        self.url = ",".join(member.url for member in self.members)
        cluster = ",".join(member.cluster for member in self.members)
        for member in self.members:
            member.cluster = cluster

    def start(self) -> None:
        for member in self.members:
            member.begin()
        eventually(lambda: all(member.is_healthy() for member in self.members))

    def leader(self) -> EtcdServer:
        """The member that leads; all have to run."""
        found: list[EtcdServer] = []

        def is_found() -> bool:
            found[:] = [member for member in self.members if member.leads()]
            return len(found) == 1

        eventually(is_found)
        return found[0]

    def pause(self) -> None:
        for member in self.members:
            member.pause()

    def resume(self) -> None:
        for member in self.members:
            member.resume()

    def signal(self, number: signal.Signals) -> None:
        for member in self.members:
            member.signal(number)

    def kill(self) -> None:
        for member in self.members:
            member.kill()


@contextmanager
def running_members(directory: Path) -> Iterator[EtcdMembers]:
    members = EtcdMembers(directory)
    try:
        members.start()
        yield members
    finally:
        members.kill()


@contextmanager
def running_etcd(directory: Path, *, durable: bool = False) -> Iterator[EtcdServer]:
    server = EtcdServer(directory, durable=durable)
    try:
        server.start()
        yield server
    finally:
        server.kill()
