"""The profile `replicas` of docker-compose.yml: three members of etcd, two servers, a load balancer.

No engine of containers is needed: the commands of the services run as processes, with other addresses and directories. So
does haproxy where it is installed. Elsewhere a balancer of this file does what haproxy's configuration says: it hands on
connections as they are, to servers whose /readyz answers 200.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from noxu import cli
from noxu.commands.api_client import ApiClient, RequestError, endpoint_from_kubeconfig
from tests import etcd_server
from tests.etcd_server import free_ports
from tests.optional import require_program
from tests.timing import HANGS_AFTER, eventually

ROOT: Final = Path(__file__).parents[2]
COMPOSE: Final = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: Final[dict[str, Any]] = {
    name: service for name, service in COMPOSE["services"].items() if service.get("profiles") == ["replicas"]
}
MEMBERS: Final = ("etcd-1", "etcd-2", "etcd-3")
SERVERS: Final = ("noxu-1", "noxu-2")
CONFIG: Final = COMPOSE["configs"]["balancer"]["content"]


def options(service: str) -> dict[str, str]:
    """The options of a command, all of which are --NAME=VALUE."""
    pairs = [argument.removeprefix("--").partition("=") for argument in SERVICES[service]["command"][1:]]
    return {name: value for name, _, value in pairs}


def test_the_services_of_the_profile() -> None:
    assert tuple(SERVICES) == (*MEMBERS, *SERVERS, "balancer")
    assert [name for name, service in COMPOSE["services"].items() if "profiles" not in service] == ["noxu"]


def test_everything_that_services_refer_to_is_declared() -> None:
    for name, service in SERVICES.items():
        for reference in service.get("volumes", []):
            assert reference.partition(":")[0] in COMPOSE["volumes"], name
        for network in service.get("networks", ["default"]):
            assert network in COMPOSE["networks"], name
        for needed, how in service.get("depends_on", {}).items():
            assert needed in SERVICES, name
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in SERVICES[needed]


def test_only_servers_reach_etcd_and_only_the_balancer_is_published() -> None:
    assert COMPOSE["networks"]["etcd"]["internal"] is True
    on_etcd = [name for name, service in SERVICES.items() if "etcd" in service.get("networks", [])]
    assert on_etcd == [*MEMBERS, *SERVERS]
    assert all(SERVICES[name]["networks"] == ["etcd"] for name in MEMBERS)
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"balancer": ["127.0.0.1:6441:6440"]}, "not for other machines"


def test_the_balancer_asks_the_name_server_of_its_container() -> None:
    """Its address is that of the engine: 127.0.0.11 with Docker, the gateway of a network with podman."""
    resolvers = CONFIG.partition("resolvers ")[2].splitlines()[1:]
    assert resolvers[0].split("#")[0].strip() == "parse-resolv-conf"
    assert "nameserver" not in CONFIG


def test_the_members_are_those_of_one_cluster() -> None:
    cluster = ",".join(f"{name}=http://{name}:2380" for name in MEMBERS)
    for name in MEMBERS:
        given = options(name)
        assert given["name"] == name
        assert given["initial-cluster"] == cluster
        assert (given["advertise-client-urls"], given["initial-advertise-peer-urls"]) == (
            f"http://{name}:2379",
            f"http://{name}:2380",
        )
        assert SERVICES[name]["volumes"] == [f"{name}:{given['data-dir']}"]
    assert len({options(name)["initial-cluster-token"] for name in MEMBERS}) == 1


def test_the_version_of_etcd_has_correct_progress() -> None:
    pytest.importorskip("noxu_storage.etcd.channel", reason="package: grpc")
    from noxu_storage.etcd.store import has_correct_progress

    for name in MEMBERS:
        assert has_correct_progress(SERVICES[name]["image"].partition(":v")[2])


@pytest.mark.parametrize("name", MEMBERS)
def test_etcd_knows_the_options(name: str) -> None:
    program = require_program("etcd")
    ran = subprocess.run([program, "--help"], check=True, capture_output=True, text=True, timeout=HANGS_AFTER)
    known = set(re.findall(r"--([a-z-]+)", ran.stdout + ran.stderr))
    assert set(options(name)) <= known


def test_the_servers_have_the_same_command_which_the_program_accepts() -> None:
    first, second = (SERVICES[name] for name in SERVERS)
    assert first == second
    config = cli.options_of("serve", first["command"][1:]).config
    assert config.etcd.servers == tuple(f"http://{name}:2379" for name in MEMBERS)
    assert config.external_hostname == "balancer"
    assert first["volumes"] == [f"noxu-pki:{config.data}/pki"]
    assert first["healthcheck"] == COMPOSE["services"]["noxu"]["healthcheck"]


def test_the_user_of_the_image_may_write_where_the_shared_volume_is_mounted() -> None:
    assert "install -d -o noxu -m 700 /data/pki" in (ROOT / "Dockerfile").read_text()


def test_the_balancer_knows_the_servers_and_asks_whether_they_are_ready() -> None:
    servers = re.findall(r"^ +server (\S+) (\S+)$", CONFIG, re.MULTILINE)
    assert servers == [(name, f"{name}:{options(name)['port']}") for name in SERVERS]
    assert re.findall(r"mode (\w+)", CONFIG) == ["tcp"]
    assert re.search(r"http-check send meth GET uri /readyz ", CONFIG)
    assert SERVICES["balancer"]["configs"] == [
        {"source": "balancer", "target": "/usr/local/etc/haproxy/haproxy.cfg"},
    ]
    assert SERVICES["balancer"]["ports"][0].rpartition(":")[2] == re.findall(r"bind :(\d+)", CONFIG)[0]


# -- the services as processes


class Processes:
    """The services, under addresses and in directories of this machine."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        ports = free_ports(2 * len(MEMBERS) + len(SERVERS) + 1)
        self._texts = {"/etcd-data": str(directory / "etcd"), "=balancer": "=localhost"}
        for name in MEMBERS:
            client, peer = ports.pop(), ports.pop()
            self._texts |= {f"http://{name}:2379": f"http://127.0.0.1:{client}"}
            self._texts |= {f"http://{name}:2380": f"http://127.0.0.1:{peer}"}
        self.ports = {name: ports.pop() for name in SERVERS}
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def data(self, name: str) -> Path:
        return self.directory / name

    def command(self, name: str) -> list[str]:
        texts = self._texts | {
            "http://0.0.0.0:2379": self._texts.get(f"http://{name}:2379", ""),
            "http://0.0.0.0:2380": self._texts.get(f"http://{name}:2380", ""),
            "=/etcd-data": f"={self.data(name)}",
            "=/data": f"={self.data(name)}",
            "=6440": f"={self.ports.get(name, 0)}",
        }
        pattern = re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True))))
        program, *arguments = (pattern.sub(lambda found: texts[found[0]], text) for text in SERVICES[name]["command"])
        if name in SERVERS:
            return [sys.executable, "-m", "noxu", program, *arguments]
        assert etcd_server.PROGRAM is not None
        return [etcd_server.PROGRAM, *arguments, "--unsafe-no-fsync", "--log-level=error"]

    def start(self, name: str) -> None:
        with (self.directory / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                self.command(name), cwd=ROOT, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # on some machines `etcd` is a script that starts etcd
        process.wait(HANGS_AFTER)

    def member_is_healthy(self, name: str) -> bool:
        with contextlib.suppress(OSError):
            url = self._texts[f"http://{name}:2379"]
            return bool(urllib.request.urlopen(f"{url}/health", timeout=5).status == 200)
        return False

    def is_ready(self, name: str) -> bool:
        """As haproxy asks."""
        unverified = ssl._create_unverified_context()
        with contextlib.suppress(OSError):
            url = f"https://127.0.0.1:{self.ports[name]}/readyz"
            return bool(urllib.request.urlopen(url, context=unverified, timeout=5).status == 200)
        return False

    def kubeconfig(self, name: str) -> Path:
        return self.data(name) / "kubeconfig"


class Balancer(socketserver.ThreadingTCPServer):
    """Hands on each connection to a server that is ready."""

    daemon_threads = True

    def __init__(self, processes: Processes) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.processes = processes


class Connection(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        balancer = self.server
        assert isinstance(balancer, Balancer)
        ready = [name for name in SERVERS if balancer.processes.is_ready(name)]
        if not ready:
            return
        port = balancer.processes.ports[random.choice(ready)]
        with socket.create_connection(("127.0.0.1", port)) as server, contextlib.suppress(OSError):
            other = {server: self.request, self.request: server}
            while True:
                for found in select.select(list(other), [], [])[0]:
                    data = found.recv(65536)
                    if not data:
                        return
                    other[found].sendall(data)


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    if reason := etcd_server.lacking():
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("replicas")
    processes = Processes(directory)
    shared = directory / "noxu-pki"
    shared.mkdir(mode=0o700)
    for name in SERVERS:
        processes.data(name).mkdir()
        (processes.data(name) / "pki").symlink_to(shared)
    try:
        for name in MEMBERS:
            processes.start(name)
        for name in MEMBERS:
            eventually(lambda name=name: processes.member_is_healthy(name))
        for name in SERVERS:  # at the same time, with an empty volume
            processes.start(name)
        for name in SERVERS:
            log = directory / f"{name}.log"
            eventually(lambda name=name: processes.kubeconfig(name).exists() or processes.running[name].poll())
            assert processes.running[name].poll() is None, log.read_text()
        yield processes
    finally:
        for name in list(processes.running):
            processes.kill(name)


def haproxy_configuration(processes: Processes, port: int) -> str:
    """The configuration of the balancer, with addresses of this machine."""
    addresses = {"bind :6440": f"bind 127.0.0.1:{port}"}
    addresses |= {f" {name}:{options(name)['port']}": f" 127.0.0.1:{processes.ports[name]}" for name in SERVERS}
    configuration = CONFIG
    for address, other in addresses.items():
        assert address in configuration
        configuration = configuration.replace(address, other)
    return configuration


@contextlib.contextmanager
def haproxy(processes: Processes, program: str) -> Iterator[str]:
    """Where haproxy is. It stays in the foreground."""
    [port] = free_ports(1)
    file = processes.directory / "haproxy.cfg"
    file.write_text(haproxy_configuration(processes, port))
    with subprocess.Popen([program, "-db", "-f", str(file)], stderr=subprocess.DEVNULL) as process:
        try:
            url = f"https://localhost:{port}"
            eventually(lambda: write(processes, url, "a") in (201, 409) or process.poll() is not None)
            assert process.poll() is None, "haproxy refuses its configuration"
            yield url
        finally:
            process.kill()


@pytest.fixture(scope="module")
def url(processes: Processes) -> Iterator[str]:
    """Where the balancer is."""
    if program := shutil.which("haproxy"):
        with haproxy(processes, program) as url:
            yield url
        return
    with Balancer(processes) as balancer:
        thread = threading.Thread(target=balancer.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"https://localhost:{balancer.server_address[1]}"
        balancer.shutdown()
        thread.join()


def client(processes: Processes, name: str, url: str = "") -> ApiClient:
    """A client with the kubeconfig of a server, of the balancer or of that server."""
    endpoint = endpoint_from_kubeconfig(processes.kubeconfig(name))
    return ApiClient(endpoint._replace(url=url or f"https://localhost:{processes.ports[name]}"))


def test_the_servers_have_one_authority(processes: Processes) -> None:
    found = [endpoint_from_kubeconfig(processes.kubeconfig(name)) for name in SERVERS]
    assert found[0].certificate_authority == found[1].certificate_authority
    assert {path.name for path in (processes.directory / "noxu-pki").iterdir()} >= {"ca.crt", "ca.key", "apiserver.crt"}


def test_each_server_accepts_the_tokens_and_certificates_of_the_other(processes: Processes) -> None:
    for issuer, other in (SERVERS, SERVERS[::-1]):
        with contextlib.closing(client(processes, issuer)) as own:
            eventually(
                lambda own=own: own.send("GET", "/api/v1/namespaces/default/serviceaccounts/default").status == 200
            )
            path = "/api/v1/namespaces/default/serviceaccounts/default/token"
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            issued = own.send("POST", path, value=request)
            assert issued.status == 201, issued.message
        token = (issued.value or {})["status"]["token"]
        authority = endpoint_from_kubeconfig(processes.kubeconfig(other)).certificate_authority
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        of_token = endpoint_from_kubeconfig(processes.kubeconfig(other))._replace(
            url=f"https://localhost:{processes.ports[other]}", certificate_authority=authority, client_certificate=b"",
            client_key=b"", authorization=f"Bearer {token}",
        )  # fmt: skip
        of_certificate = endpoint_from_kubeconfig(processes.kubeconfig(issuer))._replace(url=of_token.url)
        for endpoint, user in (
            (of_token, "system:serviceaccount:default:default"),
            (of_certificate, "kubernetes-admin"),
        ):
            with contextlib.closing(ApiClient(endpoint)) as asking:
                reply = asking.send("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", value=review)
            assert (reply.value or {})["status"]["userInfo"]["username"] == user, reply.message


@pytest.mark.slow
def test_a_check_compares_the_members(processes: Processes) -> None:
    [urls] = [text.removeprefix("--") for text in processes.command(SERVERS[0]) if text.startswith("--etcd-servers=")]
    ran = subprocess.run(
        [sys.executable, "-m", "noxu", "check", f"--{urls}"], check=False, cwd=ROOT, capture_output=True, text=True,
        timeout=HANGS_AFTER,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert ran.stdout.endswith("\nno problems found\n")


def write(processes: Processes, url: str, name: str) -> int:
    """The status of a new connection's request to create a ConfigMap, 0 without an answer."""
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    with contextlib.closing(client(processes, SERVERS[0], url)) as asking, contextlib.suppress(RequestError):
        return asking.send("POST", "/api/v1/namespaces/default/configmaps", value=value).status
    return 0


def names(processes: Processes, url: str) -> list[str]:
    with contextlib.closing(client(processes, SERVERS[0], url)) as asking:
        found = asking.get("/api/v1/namespaces/default/configmaps")
    return [item["metadata"]["name"] for item in found["items"] if item["metadata"]["name"] != "kube-root-ca.crt"]


@pytest.mark.slow
def test_writes_go_on_without_a_member_and_without_a_server(processes: Processes, url: str) -> None:
    """The last test: it ends processes."""
    assert write(processes, url, "a") in (201, 409)
    processes.kill(MEMBERS[0])
    eventually(lambda: write(processes, url, "b") in (201, 409))
    processes.kill(SERVERS[0])
    assert write(processes, url, "c") in (201, 409), "a refused connection goes to the other server"
    assert names(processes, url) == ["a", "b", "c"]
    processes.start(SERVERS[0])
    eventually(lambda: processes.is_ready(SERVERS[0]))
    processes.kill(SERVERS[1])
    eventually(lambda: write(processes, url, "d") in (201, 409))  # when the balancer knows
    assert names(processes, url) == ["a", "b", "c", "d"]
    assert json.loads(processes.kubeconfig(SERVERS[0]).read_text())["clusters"]
