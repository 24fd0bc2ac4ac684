"""Tenants: whole servers beside their parent, never more open than it, and of no consequence elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import gc
import os
import socket
import threading
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from noxu.api.errors import ApiError
from noxu.config import Audit, Authentication, Config, LeaderElection, LogConfig, StartError, TlsOptions
from noxu.control import templates
from noxu.http.clients import MIN_CONNECTIONS
from noxu.http.recent_requests import RecentRequests
from noxu.process import listeners
from noxu.process.running import new_loop_factory
from noxu.process.server import Server
from noxu.process.tenancy import config_of
from noxu.registry.access import User
from noxu.security.certificates import encode_key, new_authority, new_key
from noxu.security.kubeconfig import Access
from noxu.testing.client import UserClient
from noxu.testing.sources import documents
from noxu.values import Json
from tests.controllers.test_certificate_signing import asked
from tests.definitions import widgets
from tests.rows import rows
from tests.timing import eventually_async, hang_guard, loop_turns

PLAIN = Config(port=0)
RBAC = Config(port=0, authorization_modes=("RBAC",))
TLS = Config(port=0, tls=TlsOptions())
TLS_RBAC = Config(port=0, tls=TlsOptions(), authorization_modes=("RBAC",))
SECURED = [("RBAC over HTTP", RBAC), ("TLS", TLS), ("RBAC over TLS", TLS_RBAC)]
NAMESPACES, MAPS = "/api/v1/namespaces", "/api/v1/namespaces/default/configmaps"


@contextlib.asynccontextmanager
async def asking(access: Access) -> AsyncIterator[UserClient]:
    client = UserClient(access, RecentRequests())
    try:
        yield client
    finally:
        await client.close()


async def ask(access: Access, method: str, path: str, value: Json = None) -> Any:
    """The answer, or the code of the error; 0 for a handshake that fails."""
    async with asking(access) as client:
        try:
            return (await client.send(method, path, value=value)).value
        except ApiError as error:
            return error.code
        except aiohttp.ClientConnectionError:
            return 0


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def open_files() -> set[str]:
    """The numbers of the files that this process has open."""
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def names(listed: Any) -> set[str]:
    return {each["metadata"]["name"] for each in listed["items"]}


# -- a server of its own


async def test_a_tenant_has_objects_definitions_and_revisions_of_its_own() -> None:
    async with (
        Server(PLAIN) as parent,
        parent.tenant(documents=documents(widgets())) as first,
        parent.tenant() as second,
    ):
        await ask(first.access(), "POST", MAPS, config_map("of-the-first"))
        await ask(parent.access(), "POST", MAPS, config_map("of-the-parent"))
        found = {server: names(await ask(server.access(), "GET", MAPS)) for server in (parent, first, second)}
        own = {server: found[server] - {"kube-root-ca.crt"} for server in found}
        assert own == {parent: {"of-the-parent"}, first: {"of-the-first"}, second: set()}
        groups = [names_of_groups(await ask(server.access(), "GET", "/apis")) for server in (parent, first, second)]
        assert ["example.com" in each for each in groups] == [False, True, False]
        assert len({server.url for server in (parent, first, second)}) == 3
        assert first.plane.store.revision != second.plane.store.revision


def names_of_groups(listed: Any) -> set[str]:
    return {group["name"] for group in listed["groups"]}


async def test_a_tenant_needs_no_thread_and_a_single_file() -> None:
    async with Server(PLAIN) as parent, parent.tenant():  # the second one imports nothing any more
        threads, files, tasks = threading.active_count(), open_files(), len(asyncio.all_tasks())
        async with parent.tenant():
            assert threading.active_count() == threads
            assert len(open_files() - files) == 1
        await loop_turns()
        assert open_files() == files
        assert len(asyncio.all_tasks()) == tasks


OWN: list[tuple[str, dict[str, Any]]] = [
    ("a data directory", {"data": Path("data")}),
    ("etcd", {"etcd": object()}),
    ("a kubeconfig", {"kubeconfig": Path("kubeconfig")}),
    ("a context in the kubeconfig of the user", {"merged_context": "noxu"}),
    ("files", {"files": (Path("crds"),)}),
    ("files that are watched", {"watch": True, "files": (Path("crds"),)}),
    ("kustomizations", {"kustomizations": (Path("base"),)}),
    ("an audit log", {"audit": Audit(log_path="audit.log")}),
    ("further sockets", {"listen": ("unix:noxu.sock",)}),
    ("a parent process", {"exit_with_parent": True}),
    ("faults", {"faults": Path("plan.yaml"), "latency": "5ms"}),
    ("the objects of a file", {"initial": Path("state.db")}),
    ("an election", {"leader_election": LeaderElection(enabled=True)}),
    ("a CA in files", {"cluster_signing_cert_file": Path("ca.crt"), "cluster_signing_key_file": Path("ca.key")}),
]


@rows("changed", [row for _, row in OWN], ids=[name for name, _ in OWN])
def test_a_tenant_does_not_have_its_parents(changed: dict[str, Any]) -> None:
    with listeners.opened(PLAIN) as opened:
        assert config_of(dataclasses.replace(PLAIN, **changed), opened) == config_of(PLAIN, opened)


SAME: list[tuple[str, dict[str, Any]]] = [
    ("profile", {"profile": "envtest"}),
    ("TLS", {"tls": TlsOptions()}),
    ("modes of authorization", {"authorization_modes": ("RBAC",)}),
    ("users", {"authentication": Authentication(anonymous_auth=False)}),
    ("name for clients", {"external_hostname": "noxu.test"}),
    ("address", {"host": "localhost"}),
    ("lines for requests", {"log": LogConfig(requests=True)}),
]


@rows("changed", [row for _, row in SAME], ids=[name for name, _ in SAME])
def test_a_tenant_has_its_parents(changed: dict[str, Any]) -> None:
    with listeners.opened(PLAIN) as opened:
        mine = config_of(dataclasses.replace(PLAIN, **changed), opened)
    for name, value in changed.items():
        assert getattr(mine, name) == value


async def test_a_tenant_listens_where_its_parent_does_also_on_a_socket_that_was_inherited() -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as inherited:
        config = dataclasses.replace(PLAIN, listen=(f"fd:{os.dup(inherited.fileno())}",))
        async with Server(config) as parent, parent.tenant() as tenant:
            assert (parent.listeners.address, tenant.listeners.address) == ("::1", "::1")
            assert tenant.listeners.port not in (0, parent.listeners.port)


# -- never more open than its parent


async def test_without_authentication_a_tenant_needs_none() -> None:
    async with Server(PLAIN) as parent, parent.tenant() as tenant:
        assert tenant.access() == Access(tenant.url)
        assert tenant.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("config", [config for _, config in SECURED], ids=[name for name, _ in SECURED])
async def test_a_tenant_needs_credentials_as_its_parent_does(config: Config) -> None:
    async with Server(config) as parent, parent.tenant() as tenant:
        for server in (parent, tenant):
            assert names(await ask(server.access(), "GET", NAMESPACES)) >= {"default"}
            anonymous = Access(server.url, server.access().certificate_authority)
            assert await ask(anonymous, "GET", NAMESPACES) in (401, 403)


@pytest.mark.parametrize("config", [config for _, config in SECURED], ids=[name for name, _ in SECURED])
async def test_the_administrator_of_a_tenant_is_unknown_elsewhere(config: Config) -> None:
    async with Server(config) as parent, parent.tenant() as tenant, parent.tenant() as other:
        for server in (parent, other):
            elsewhere = dataclasses.replace(tenant.access(), url=server.url)
            assert await ask(elsewhere, "GET", NAMESPACES) in (0, 401, 403)


async def test_clients_need_one_ca_for_all() -> None:
    async with Server(TLS) as parent, parent.tenant() as tenant:
        assert tenant.access().certificate_authority == parent.access().certificate_authority
        root = await ask(tenant.access(), "GET", f"{MAPS}/kube-root-ca.crt")
        assert root["data"]["ca.crt"].encode() == parent.access().certificate_authority


async def test_the_users_of_the_parents_files_and_certificates_are_known_to_a_tenant(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("secret,jane,1\n")
    config = dataclasses.replace(TLS_RBAC, authentication=Authentication(token_auth_file=tokens))
    async with Server(config) as parent:
        tokens.unlink()  # it is read once
        async with parent.tenant() as tenant:
            authority = parent.access().certificate_authority
            with_token = Access(tenant.url, authority, token="secret")
            assert parent.secured is not None
            issued = parent.secured.own().authority.issue_client("ann", ["system:masters"])
            with_certificate = Access(tenant.url, authority, issued.certificate, issued.key)
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            found = [
                await ask(access, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
                for access in (with_token, with_certificate)
            ]
            assert [each["status"]["userInfo"]["username"] for each in found] == ["jane", "ann"]
            assert await ask(with_token, "GET", NAMESPACES) == 403  # what they may do is for its own roles to say


async def test_a_tenant_serves_the_certificate_of_its_parents_files_and_knows_the_clients_of_its_cas(
    tmp_path: Path,
) -> None:
    serving, clients = new_authority(), new_authority()
    certified = serving.issue_server(["127.0.0.1"])
    files = {"crt": certified.certificate, "key": certified.key, "ca": clients.certificate}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    options = TlsOptions(
        certificate=tmp_path / "crt", key=tmp_path / "key", client_authority=tmp_path / "ca", own_clients=False
    )
    ann = clients.issue_client("ann", ["system:masters"])
    async with Server(Config(port=0, tls=options)) as parent, parent.tenant() as tenant:
        for server in (parent, tenant):
            access = Access(server.url, serving.certificate, ann.certificate, ann.key)
            assert names(await ask(access, "GET", NAMESPACES)) >= {"default"}
        own = dataclasses.replace(tenant.access(), certificate_authority=serving.certificate)
        assert names(await ask(own, "GET", NAMESPACES)) >= {"default"}
        assert await ask(dataclasses.replace(own, url=parent.url), "GET", NAMESPACES) == 0


async def test_the_users_of_a_tenant_are_unknown_to_its_parent() -> None:
    async with Server(RBAC) as parent, parent.tenant() as tenant:
        token = tenant.plane.static_tokens.issue(User("ann", "", ("system:masters",)))
        assert names(await ask(Access(tenant.url, token=token), "GET", NAMESPACES)) >= {"default"}
        assert await ask(Access(parent.url, token=token), "GET", NAMESPACES) == 401


async def test_tokens_of_service_accounts_are_signed_with_a_key_of_the_tenant() -> None:
    async with Server(RBAC) as parent, parent.tenant() as tenant:
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = (await ask(tenant.access(), "POST", path, body))["status"]["token"]
        assert await ask(Access(tenant.url, token=token), "GET", NAMESPACES) == 403
        assert await ask(Access(parent.url, token=token), "GET", NAMESPACES) == 401


async def test_a_certificate_that_a_tenant_signs_is_for_that_tenant() -> None:
    async with Server(TLS_RBAC) as parent, parent.tenant() as tenant, asking(tenant.access()) as client:
        path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        key, pem = new_request("CN=ann")
        await client.send("POST", path, value=asked(request=b64encode(pem).decode()))
        approved = (await client.send("GET", f"{path}/r")).value
        approved["status"] = {
            "conditions": [{"type": "Approved", "status": "True", "reason": "Test", "message": "test"}]
        }
        await client.send("PUT", f"{path}/r/approval", value=approved)

        async def signed() -> str:
            found = await client.send("GET", f"{path}/r")
            return found.value["status"].get("certificate", "")

        certificate = b64decode(await eventually_async(signed))
        ann = Access("", parent.access().certificate_authority, certificate, key)
        assert await ask(dataclasses.replace(ann, url=tenant.url), "GET", NAMESPACES) == 403  # known, without rights
        assert await ask(dataclasses.replace(ann, url=parent.url), "GET", NAMESPACES) == 0


def new_request(subject: str) -> tuple[bytes, bytes]:
    """A key, and a request for its certificate; in PEM."""
    key = new_key()
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name.from_rfc4514_string(subject))
    return encode_key(key), builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


# -- what servers of one process share


async def test_a_tenants_connections_count_among_those_of_its_parent() -> None:
    async with Server(PLAIN) as parent, parent.tenant() as tenant, asking(tenant.access()) as client:
        await client.send("GET", "/version")
        assert (len(parent.clients.connections), len(tenant.clients.connections)) == (1, 1)
        async with asking(parent.access()) as own:
            await own.send("GET", "/version")
            assert (len(parent.clients.connections), len(tenant.clients.connections)) == (2, 1)
            async with parent.tenant():
                pass
            await own.send("GET", "/version")  # that another server stops does not matter


async def test_beyond_the_limit_of_the_process_an_idle_connection_of_any_server_is_closed() -> None:
    async with Server(PLAIN) as parent, parent.tenant() as tenant, asking(tenant.access()) as client:
        await client.send("GET", "/version")
        parent.clients.connections.limit = 1
        async with asking(parent.access()) as own:
            await own.send("GET", "/version")
            assert len(parent.clients.connections) == 1
            await loop_turns()
            assert len(tenant.clients.connections) == 0


async def test_the_socket_of_a_tenant_is_one_connection_less_for_clients() -> None:
    async with Server(PLAIN) as parent:
        before = parent.clients.connections.limit
        async with parent.tenant():
            assert parent.clients.connections.limit == before - 1
        assert parent.clients.connections.limit == before


async def test_there_is_no_tenant_where_there_are_too_few_files() -> None:
    async with Server(PLAIN) as parent:
        parent.clients.connections.limit = MIN_CONNECTIONS
        with pytest.raises(StartError, match=r"may not open more files: raise the limit \(ulimit -n\)"):
            await parent.tenant().__aenter__()
        assert parent.clients.connections.limit == MIN_CONNECTIONS


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.EADDRINUSE, "no port is free"),
        (errno.EMFILE, "raise the limit"),
    ],
    ids=["no port is free", "no file is free"],
)
async def test_without_a_socket_nothing_is_left(number: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> socket.socket:
        raise OSError(number, os.strerror(number))

    async with Server(PLAIN) as parent, parent.tenant():
        files, limit = open_files(), parent.clients.connections.limit
        monkeypatch.setattr(socket, "create_server", refuse)
        with pytest.raises(StartError, match=text):
            await parent.tenant().__aenter__()
        assert (open_files(), parent.clients.connections.limit) == (files, limit)


async def test_tenants_have_the_ports_that_the_server_gives_them() -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        async with Server(dataclasses.replace(PLAIN, tenant_ports=range(port, port + 1))) as parent:
            with pytest.raises(StartError, match=f"no port of --tenant-ports {port}-{port} is free: delete tenants"):
                await parent.tenant().__aenter__()
            used.close()
            async with parent.tenant() as tenant:
                assert tenant.listeners.port == port
                with pytest.raises(StartError, match="no port of --tenant-ports"):
                    await parent.tenant().__aenter__()
            async with parent.tenant() as tenant:
                assert tenant.listeners.port == port


# -- how it stops


async def test_a_client_that_reads_nothing_does_not_keep_a_tenant() -> None:
    async with Server(PLAIN) as parent:
        files = open_files()
        tenant = await parent.tenant().__aenter__()
        for number in range(3):
            value = {**config_map(f"large-{number}"), "data": {"a": "a" * 1_000_000}}
            await ask(tenant.access(), "POST", MAPS, value)
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.setblocking(False)
            await asyncio.get_running_loop().sock_connect(silent, ("127.0.0.1", tenant.listeners.port))
            await asyncio.get_running_loop().sock_sendall(
                silent, f"GET {MAPS} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
            )
            await eventually_async(lambda: tenant.clients.unsent.total)
            async with hang_guard():
                await tenant.__aexit__(None, None, None)
            await loop_turns()
            assert open_files() - files == {str(silent.fileno())}
            assert parent.clients.unsent.total == 0
            assert len(parent.clients.connections) == 0


def test_a_connection_that_is_accepted_while_it_stops_is_closed() -> None:
    """The kernel has made it before the server stops, and the event loop finds it afterwards.

    With the loop of servers: asyncio's own forgets such a connection without closing it.
    """

    async def run() -> None:
        async with Server(PLAIN) as parent, parent.tenant():
            for turns in range(20):
                tenant = await parent.tenant().__aenter__()
                with socket.create_connection(("127.0.0.1", tenant.listeners.port)) as late:
                    late.setblocking(False)
                    await loop_turns(turns)
                    await tenant.__aexit__(None, None, None)
                    await loop_turns()
                    assert len(parent.clients.connections) == 0
                    async with hang_guard():
                        with contextlib.suppress(ConnectionResetError):
                            assert await asyncio.get_running_loop().sock_recv(late, 1) == b""

    with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
        runner.run(run())


async def test_watches_of_a_tenant_end_with_it() -> None:
    async with Server(PLAIN) as parent:
        tenant = await parent.tenant().__aenter__()
        async with asking(tenant.access()) as client:
            watch = await client.stream(MAPS, {"watch": "1", "resourceVersion": "0"})
            async with hang_guard():
                await tenant.__aexit__(None, None, None)
                with contextlib.suppress(aiohttp.ClientPayloadError):
                    await watch.content.read()
        assert len(parent.clients.connections) == 0


@pytest.mark.parametrize("begins_with_template", [False, True], ids=["new", "from a template"])
def test_the_memory_of_a_tenant_is_free_when_it_has_stopped(begins_with_template: bool) -> None:
    """Without collecting garbage, which a server does seldom. With the loop of servers: asyncio's keeps contexts of timers."""

    async def live(parent: Server, template: templates.Template | None) -> None:
        async with parent.tenant(template) as tenant, asking(tenant.access()) as client:
            for path in ("/readyz", "/metrics", "/openapi/v3", MAPS):
                await (await client.stream(path, {})).read()
            await client.send("POST", MAPS, value=config_map("a"))
            watch = await client.stream(MAPS, {"watch": "1", "resourceVersion": "0"})
            await watch.content.readany()
            watch.close()
        await loop_turns()

    async def left() -> Counter[type]:
        async with Server(PLAIN) as parent:
            loaded = documents(widgets())
            template = await templates.make(parent.tenants_config, loaded) if begins_with_template else None
            await live(parent, template)
            gc.collect()
            gc.disable()
            try:
                before = Counter(map(type, gc.get_objects()))
                for _ in range(10):
                    await live(parent, template)
                return Counter(map(type, gc.get_objects())) - before
            finally:
                gc.enable()

    with asyncio.Runner(loop_factory=new_loop_factory()) as runner:
        found = runner.run(left())
    kinds = {kind: count for kind, count in found.items() if kind.__module__.startswith("noxu") and count >= 10}
    assert kinds == {}
