"""A server in this process: health of controllers, compaction, addresses, the kubeconfig, and how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from noxu.config import COMPACT_EVERY, Config, StartError, TlsOptions
from noxu.control.retention import Retention
from noxu.controllers import controller as engine
from noxu.garbage import OF_A_SERVER
from noxu.http.limits import Limits
from noxu.http.request import Received
from noxu.process import server as server_module
from noxu.process.configured import protected
from noxu.process.kubeconfig import claim_kubeconfig, place_of_kubeconfig, published, write_kubeconfig
from noxu.process.running import banner
from noxu.process.server import Server, compact_periodically
from noxu.registry.access import ANONYMOUS, AccessAttributes, User
from noxu.security.kubeconfig import Access, kubeconfig, text
from noxu_storage.memory import MemoryStore
from noxu_storage.store import Store
from noxu_storage.types import Key, Revision, Unavailable
from tests.clocks import ManualClock
from tests.faults.flaky import Served, serving
from tests.http.wire import connected
from tests.timing import eventually_async, hang_guard, loop_turns


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    async with serving(monkeypatch) as running:
        yield running


# -- readyz


async def test_a_controller_that_fails_is_named_by_readyz_and_explained_at_its_own_path(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await served.ask("GET", "/readyz"))[0] == 200
    await served.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    await served.ask("POST", "/api/v1/namespaces/n/configmaps", {"metadata": {"name": "a"}})
    monkeypatch.setattr(engine, "UNHEALTHY_AFTER", 0.05)
    served.store.fail("delete", lambda key: key.name == "a", 1000, Unavailable("the disk is full; make room"))
    assert (await served.ask("DELETE", "/api/v1/namespaces/n"))[0] == 200
    code, text = await eventually_async(lambda: unready(served))
    assert code == 500
    assert "[-]namespace-controller failed: reason withheld\n" in text
    assert "[+]crd-establishing-controller ok\n" in text
    code, text = await served.ask("GET", "/readyz/namespace-controller")
    assert code == 500
    assert "n has failed " in text
    assert " s: the disk is full; make room; the next attempt is within 10 s, see the log of the server" in text
    served.store.planned.clear()
    await eventually_async(lambda: ready(served))


async def unready(served: Served) -> tuple[int, str] | None:
    answer = await served.ask("GET", "/readyz?verbose")
    return answer if answer[0] != 200 else None


async def ready(served: Served) -> bool:
    return await served.ask("GET", "/readyz") == (200, "ok")


# -- compaction


class Compacting:
    """A store that is compacted, and the clock of its compaction."""

    def __init__(self, retention: Retention | None = None) -> None:
        self.store, self.clock, self.key = MemoryStore(), ManualClock(), Key("c", "", "k")
        self.task = asyncio.create_task(compact_periodically(self.store, self.clock, retention))

    async def write(self) -> Revision:
        found = await self.store.get(self.key)
        return await self.store.put(self.key, b"{}", expected=found.revision if found else 0)

    async def interval(self) -> Revision:
        """Let one interval pass. Returns the compacted revision."""
        await loop_turns()
        self.clock.advance(COMPACT_EVERY)
        await loop_turns()
        return self.store.compacted


@pytest.fixture
async def compacting() -> AsyncIterator[Compacting]:
    found = Compacting()
    yield found
    found.task.cancel()


async def test_history_is_removed_after_one_to_two_intervals(compacting: Compacting) -> None:
    await loop_turns()
    first = await compacting.write()
    assert await compacting.interval() < first
    second = await compacting.write()
    assert await compacting.interval() == first
    assert await compacting.interval() == second
    assert await compacting.interval() == second, "nothing new to remove"


async def test_a_longer_history_is_removed_later() -> None:
    """After two to three intervals, for a history of two."""
    compacting = Compacting(Retention(2 * COMPACT_EVERY))
    await loop_turns()
    first = await compacting.write()
    assert await compacting.interval() < first
    second = await compacting.write()
    assert await compacting.interval() < first
    assert await compacting.interval() == first
    assert await compacting.interval() == second
    compacting.task.cancel()


async def test_compaction_continues_after_a_failure(
    compacting: Compacting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: Revision) -> None:
        raise Unavailable("the disk is full")

    await loop_turns()
    first = await compacting.write()
    await compacting.interval()
    with monkeypatch.context() as patch:
        patch.setattr(compacting.store, "compact", fail)
        assert await compacting.interval() < first
    assert "the history is not compacted: the disk is full; the next attempt is in 300 s" in caplog.text
    assert await compacting.interval() == first


# -- what access from elsewhere requires


PROTECTED: list[tuple[str, Config, bool, tuple[TlsOptions | None, tuple[str, ...] | None]]] = [
    ("on loopback nothing", Config(), True, (None, None)),
    ("off loopback TLS and RBAC", Config(), False, (TlsOptions(), ("RBAC",))),
    ("off loopback TLS and the given modes", Config(authorization_modes=("AlwaysAllow",)), False, (TlsOptions(), ("AlwaysAllow",))),
    ("off loopback the given TLS", Config(tls=TlsOptions(directory=Path("a"))), False, (TlsOptions(directory=Path("a")), ("RBAC",))),
    ("in the profile cluster TLS", Config(profile="cluster"), True, (TlsOptions(), None)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "on_loopback", "expected"), [row[1:] for row in PROTECTED], ids=[row[0] for row in PROTECTED]
)
def test_what_is_required(config: Config, on_loopback: bool, expected: object) -> None:
    found = protected(config, on_loopback=on_loopback)
    assert (found.tls, found.authorization_modes) == expected


# -- kubeconfig


def test_the_kubeconfig_exists_only_while_the_server_is_ready(tmp_path: Path) -> None:
    with place_of_kubeconfig(Config(data=tmp_path)) as path:
        assert path == tmp_path / "kubeconfig"
        with published(path, Access(URL)):
            assert path.read_text() == OURS
        assert not path.exists()


def test_the_kubeconfig_is_json_for_people() -> None:
    access = Access("https://127.0.0.1:6443", b"ca", b"certificate", b"key", "token")
    assert text(access) == json.dumps(kubeconfig(access), indent=2) + "\n"


def test_the_kubeconfig_of_a_server_that_runs_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with published(path, Access(URL)):
        with pytest.raises(StartError) as raised:
            claim_kubeconfig(path)
        assert str(raised.value) == (
            f"{path} is the kubeconfig of a server that is running; choose another --kubeconfig"
        )
        assert path.read_text() == OURS


def test_without_a_data_directory_it_is_in_a_temporary_one() -> None:
    with place_of_kubeconfig(Config()) as path:
        assert path.parent.is_dir()
    assert not path.parent.exists()


def test_a_kubeconfig_of_another_program_is_not_touched(tmp_path: Path) -> None:
    other = tmp_path / "config"
    other.write_text(json.dumps({"current-context": "production"}))
    before = other.read_text()
    with pytest.raises(StartError) as raised, place_of_kubeconfig(Config(kubeconfig=other)):
        pass
    assert str(raised.value) == (
        f"{other} exists and was not written by Noxu, so it is not overwritten; choose another --kubeconfig"
    )
    assert other.read_text() == before


URL = "http://127.0.0.1:1"
OURS = text(Access(URL))
SECURE = text(Access("https://127.0.0.1:1", b"ca", b"certificate", b"key", "token"))
NOT_OURS = {
    "YAML": "apiVersion: v1\nkind: Config\ncurrent-context: noxu\n",
    "JSON that mentions the context": json.dumps({"current-context": "noxu", "clusters": []}, indent=2),
    "ours with another token": SECURE.replace('"token": "token"', '"token": 1'),
    "ours without a CA": SECURE.replace('"certificate-authority-data"', '"certificate-authority"'),
    "ours with base64 in lines": SECURE.replace('"client-key-data": "', '"client-key-data": "\\n'),
    "ours with two users": SECURE.replace('"users": [', '"users": [{"name": "noxu", "user": {}}, '),
    "ours with another user": OURS.replace('"user": {}', '"user": {"username": "t"}'),
    "ours with another cluster": OURS.replace('"contexts"', '"extensions": [], "contexts"'),
    "ours in another order": json.dumps(json.loads(OURS), indent=2, sort_keys=True),
    "ours and more": OURS + "---\n",
    "a list": "[]",
    "clusters of another shape": '{"clusters": [1]}',
    "deep JSON": "[" * 60_000,
    "bytes": "\x00\ufffd",
}


@pytest.mark.parametrize("content", NOT_OURS.values(), ids=NOT_OURS)
def test_only_an_unchanged_kubeconfig_of_ours_is_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(StartError, match="was not written by Noxu"), place_of_kubeconfig(Config(kubeconfig=path)):
        pass
    assert path.read_text() == content
    for own in (OURS, SECURE):
        path.write_text(own)
        with place_of_kubeconfig(Config(kubeconfig=path)):
            claim_kubeconfig(path)
            assert not path.exists()


def test_a_file_that_has_replaced_the_kubeconfig_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "config"
    with published(path, Access(URL)):
        path.write_text("current-context: production\n")
    assert path.read_text() == "current-context: production\n"


async def test_a_server_that_cannot_start_leaves_the_kubeconfig_to_the_one_that_runs(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    async with Server(Config(port=0, data=tmp_path)) as running:
        write_kubeconfig(path, running.access())
        claims = []
        for port in (int(running.url.rpartition(":")[2]), 0):  # its address, and its data
            with pytest.raises(StartError, match=r"is using it|is in use"):
                await Server(Config(port=port, data=tmp_path), claimed=lambda: claims.append(1)).__aenter__()
        assert not claims
        assert path.exists()


@pytest.mark.parametrize("kind", ["a FIFO", "a device"])
def test_what_is_no_regular_file_is_neither_read_nor_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "config"
    if kind == "a FIFO":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(StartError, match="was not written by Noxu"), place_of_kubeconfig(Config(kubeconfig=path)):
        pass
    assert path.is_symlink() or path.is_fifo()


async def test_the_data_directory_is_private(tmp_path: Path) -> None:
    async with Server(Config(port=0, data=tmp_path / "data")):
        mode = (tmp_path / "data").stat().st_mode
    assert stat.S_IMODE(mode) == 0o700


async def test_git_ignores_a_data_directory_that_is_made(tmp_path: Path) -> None:
    for _ in range(2):
        async with Server(Config(port=0, data=tmp_path / "data")):
            assert (tmp_path / "data" / ".gitignore").read_text() == "*\n"
    (tmp_path / "own").mkdir()
    async with Server(Config(port=0, data=tmp_path / "own")):
        assert not (tmp_path / "own" / ".gitignore").exists()


@pytest.mark.parametrize(
    ("data", "line"),
    [(None, "in memory, discarded when the server stops"), (Path("d"), "d/noxu.db (full durability)")],
    ids=["memory", "a data directory"],
)
def test_the_banner(data: Path | None, line: str) -> None:
    assert banner(Config(data=data), "http://127.0.0.1:1", Path("/k")) == (
        "Noxu serves the Kubernetes API at http://127.0.0.1:1\n"
        f"  data        {line}\n"
        "  kubeconfig  /k\n\n"
        "  export KUBECONFIG=/k\n"
        "  kubectl api-resources\n\n"
        "Press Ctrl-C to stop the server.\n"
    )


def test_the_banner_names_the_context_and_the_files_that_are_watched() -> None:
    config = Config(
        watch=True, files=tuple(map(Path, "abc")), kustomizations=(Path("d"), Path("e")), merged_context="n"
    )
    lines = banner(config, "http://127.0.0.1:1", Path("/k"), "n in /home/me/.kube/config").splitlines()
    assert lines[3:7] == [
        "  context     n in /home/me/.kube/config",
        "  watching    a, b, c and 2 more",
        "",
        "  kubectl --context n api-resources",
    ]


# -- stop


async def test_stopping_ends_watches_and_leaves_no_task() -> None:
    before = asyncio.all_tasks()
    async with contextlib.AsyncExitStack() as stack:
        running = await stack.enter_async_context(Server(Config(port=0)))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        await session.post(f"{running.url}/api/v1/namespaces", json={"metadata": {"name": "n"}})
        held = {"metadata": {"name": "a", "finalizers": ["example.com/wait"]}}
        await session.post(f"{running.url}/api/v1/namespaces/n/configmaps", json=held)
        await session.delete(f"{running.url}/api/v1/namespaces/n")  # a controller waits for the finalizer
        watch = await session.get(f"{running.url}/api/v1/namespaces?watch=1")
        await watch.content.readline()
        async with hang_guard():
            await running._closing.aclose()
            await watch.read()  # which raises if the connection is closed before the end of the response
    await loop_turns()
    assert {task for task in asyncio.all_tasks() - before if not task.done()} == set()


REQUEST = "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n"
CONNECTIONS: list[tuple[str, bytes, bool]] = [  # what it has sent, and whether that is answered
    ("has sent nothing", b"", False),
    ("is idle after a request", REQUEST.format("/livez").encode(), True),
    ("has sent half a head", b"GET /livez HT", False),
    (
        "has sent half a body",
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
        False,
    ),
    (
        "has sent half a body in chunks",
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{",
        False,
    ),
    ("watches", REQUEST.format("/api/v1/namespaces?watch=1").encode(), True),
    ("does not read its answers", REQUEST.format("/openapi/v2").encode() * 30, True),
]


@pytest.mark.parametrize(("sent", "answered"), [row[1:] for row in CONNECTIONS], ids=[row[0] for row in CONNECTIONS])
async def test_the_stop_does_not_wait_for_a_client_that(
    monkeypatch: pytest.MonkeyPatch, sent: bytes, answered: bool
) -> None:
    monkeypatch.setattr(server_module, "STOP_WITHIN", 3600.0)
    async with hang_guard(), Server(Config(port=0)) as running:
        running.clients.unsent.limits = Limits(min_stalled=0.0)
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", int(running.url.rpartition(":")[2])))
        reader, writer = await asyncio.open_connection(sock=peer, limit=2)
        writer.write(sent)
        if answered:
            assert (await reader.read(12)).startswith(b"HTTP/1.1")
        elif sent:
            await eventually_async(lambda: running.clients.incoming.total)
        else:
            await loop_turns()
        if len(sent) > 1000:
            await eventually_async(lambda: running.app.unsent._stalled)
    writer.close()


async def test_a_request_in_flight_delays_the_stop_by_its_limit_at_most() -> None:
    cancelled: list[str] = []

    async def hang(request: Received) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(request.raw_path)
            raise

    async with hang_guard():
        connection, wire = connected(hang)
        connection.data_received(REQUEST.format("/livez").encode() * 2)
        await loop_turns()
        began = time.monotonic()
        await connection.shutdown(0.05)
        assert time.monotonic() - began >= 0.05
        await eventually_async(lambda: cancelled == ["/livez"])
        assert wire.closed
        connection.connection_lost(None)


async def test_the_stop_waits_for_the_answer_to_a_request_but_not_for_the_next_one() -> None:
    release, asked = asyncio.Event(), 0

    async def answer(request: Received) -> None:
        nonlocal asked
        asked += 1
        await release.wait()
        request.connection.answer(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with hang_guard():
        connection, wire = connected(answer)
        connection.data_received(REQUEST.format("/livez").encode() * 2)
        await loop_turns()
        stopping = asyncio.ensure_future(connection.shutdown(3600.0))
        await loop_turns()
        assert connection.closes
        assert not wire.closed
        release.set()
        await stopping
        assert (asked, wire.sent.count(b"204"), wire.closed) == (1, 1, True)
        connection.connection_lost(None)


async def test_the_first_request_may_come_when_the_listeners_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a connection that was accepted before."""
    closed = socket.socket()
    closed.close()
    async with hang_guard(), Server(Config(port=0)) as running, aiohttp.ClientSession() as session:
        monkeypatch.setattr(running, "listeners", running.listeners._replace(main=closed))
        assert (await session.get(f"{running.url}/livez")).status == 200


async def test_a_server_that_cannot_start_leaves_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    before = asyncio.all_tasks()

    async def open_store(_: Config, before: Store | None = None) -> MemoryStore:
        raise StartError("planned")

    monkeypatch.setattr(server_module, "open_store", open_store)
    with pytest.raises(StartError, match="planned"):
        await Server(Config(port=0)).__aenter__()
    assert asyncio.all_tasks() == before


# -- Python's garbage collector


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="it has no generation 1")
def test_a_collection_that_is_not_a_full_one_visits_few_objects() -> None:
    """It stops the event loop for half a microsecond for each of them."""
    visited: list[int] = []

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] < 2:
            visited.append(sum(len(gc.get_objects(generation)) for generation in range(info["generation"] + 1)))

    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(*OF_A_SERVER)
    gc.callbacks.append(count)
    try:
        kept = [[] for _ in range(500_000)]  # type: ignore[var-annotated]
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*before)
    assert len(kept) == 500_000
    assert 20_000 < max(visited) < 100_000


async def test_the_profile_cluster_has_tls_and_rbac() -> None:
    async with Server(Config(port=0, profile="cluster")) as running:
        assert running.url.startswith("https://127.0.0.1:")
        assert running.access().client_certificate
        anonymous = AccessAttributes(ANONYMOUS, "list", "", "v1", "namespaces")
        assert not running.plane.authorize(anonymous).allowed
        assert running.plane.authorize(anonymous._replace(user=User("a", groups=("system:masters",)))).allowed
        assert "clusterrole-aggregation-controller" in {one.name for one in running.plane.all_controllers}
