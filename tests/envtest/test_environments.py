"""Environments of Go's envtest and of Java's kube-api-test, replayed: start, users, restart, and how they end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from noxu.envtest import assets
from tests import etcd_server
from tests.envtest.environments import Environment, Exited, KubeApiTest, ask, started
from tests.optional import needs_platform
from tests.timing import HANGS_AFTER, eventually

pytestmark = needs_platform("process groups", present=hasattr(os, "killpg"))

MANY: Final = 8
NAMESPACES: Final = "/api/v1/namespaces"
MAPS: Final = f"{NAMESPACES}/default/configmaps"

Make = Callable[..., Environment]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that KUBEBUILDER_ASSETS names."""
    folder = tmp_path_factory.mktemp("assets of envtest")
    assets.write(folder)
    return folder


@pytest.fixture
def make(programs: Path, tmp_path: Path) -> Iterator[Make]:
    """`make(**flags)`: an environment that is not started; all are ended after the test."""
    made: list[Environment] = []

    def make(folder: str = "environment", variables: dict[str, str] | None = None, **flags: list[str]) -> Environment:
        named = {name.replace("_", "-"): values for name, values in flags.items()}
        made.append(Environment(programs, tmp_path / folder, named, variables or {}))
        return made[-1]

    yield make
    for each in made:
        each.kill()


@pytest.fixture(scope="module")
def environment(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """A running environment, for tests that leave nothing behind."""
    with started(Environment(programs, tmp_path_factory.mktemp("environment"))) as running:
        yield running


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": "value"}}


def role_binding(role: str, user: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{user}-{role}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }


# -- a running environment


def test_the_namespaces_of_a_cluster_are_there_and_nothing_happens_in_them(environment: Environment) -> None:
    names = {item["metadata"]["name"] for item in environment.ask(NAMESPACES).body["items"]}
    assert names == {"default", "kube-node-lease", "kube-public", "kube-system"}
    assert environment.ask(f"{NAMESPACES}/default/serviceaccounts").body["items"] == []


def test_health_checks_need_no_user_and_everything_else_does(environment: Environment) -> None:
    codes = {
        path: ask(environment.url + path).code for path in ("/healthz", "/readyz", "/livez", "/version", NAMESPACES)
    }
    assert codes == {"/healthz": 200, "/readyz": 200, "/livez": 200, "/version": 200, NAMESPACES: 403}


def test_a_user_may_do_what_roles_allow(environment: Environment) -> None:
    dev = environment.add_user("dev", ["team", "others"])
    refused = environment.ask(MAPS, dev)
    assert (refused.code, refused.body["message"]) == (
        403,
        'configmaps is forbidden: User "dev" cannot list resource "configmaps" in API group "" in the namespace "default"',
    )
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "map-reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
    }
    roles = "/apis/rbac.authorization.k8s.io/v1"
    assert environment.ask(f"{roles}/clusterroles", method="POST", body=role).code == 201
    bindings = f"{roles}/namespaces/default/rolebindings"
    assert environment.ask(bindings, method="POST", body=role_binding("map-reader", "dev")).code == 201
    assert environment.ask(MAPS, dev).code == 200
    assert environment.ask(MAPS, dev, "POST", config_map("a")).code == 403
    assert environment.ask(f"{NAMESPACES}/kube-system/configmaps", dev).code == 403


def test_a_user_of_another_ca_is_no_user(environment: Environment, make: Make) -> None:
    other = make("other")
    with pytest.raises(OSError, match=r"(?i)ssl|alert|reset|closed"):
        environment.ask(NAMESPACES, other.add_user("admin", ["system:masters"]))


def test_the_view_role_is_empty_without_its_controller(environment: Environment) -> None:
    found = environment.ask("/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
    assert (found.code, found.body["rules"]) == (200, None)


def test_a_namespace_is_not_emptied(environment: Environment) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}}
    assert environment.ask(NAMESPACES, method="POST", body=body).code == 201
    assert environment.ask(f"{NAMESPACES}/gone/configmaps", method="POST", body=config_map("a")).code == 201
    assert environment.ask(f"{NAMESPACES}/gone", method="DELETE").body["status"]["phase"] == "Terminating"
    assert environment.ask(f"{NAMESPACES}/gone/configmaps", method="POST", body=config_map("b")).code == 403
    assert environment.ask(f"{NAMESPACES}/gone/configmaps/a").code == 200


def test_tokens_of_accounts_are_of_the_issuer(environment: Environment) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    accounts = f"{NAMESPACES}/default/serviceaccounts"
    assert environment.ask(accounts, method="POST", body=account).code == 201
    issued = environment.ask(f"{accounts}/robot/token", method="POST", body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})  # fmt: skip
    token = issued.body["status"]["token"]
    found = ask(environment.url + MAPS, headers={"Authorization": f"Bearer {token}"})
    assert found.code == 403
    assert 'User "system:serviceaccount:default:robot" cannot list' in found.body["message"]
    assert issued.body["spec"]["audiences"] == [f"{environment.url}/"]


# -- starting and stopping


def test_it_stops_with_open_watches_and_leaves_nothing(make: Make) -> None:
    environment = make()
    environment.start()
    with environment.watching(f"{MAPS}?watch=1") as watch:
        environment.stop()
        assert watch.read() == b""
    assert environment.server.process.returncode == 0
    assert environment.etcd.process.returncode == -signal.SIGTERM
    files = sorted(path.name for path in environment.certificates.iterdir())
    assert files == ["apiserver.crt", "apiserver.key", "client-cert-auth-ca.crt", "sa-signer.crt", "sa-signer.key"]
    assert sorted(path.name for path in environment.data.rglob("*") if path.is_file()) == [".gitignore", "noxu.db"]
    with socket.create_server(("127.0.0.1", environment.port)):  # the port is free
        pass


PARENT: Final = """
import json, subprocess, sys, time
print([subprocess.Popen(words, process_group=0).pid for words in json.loads(sys.argv[1])], flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("value", ["", "false"])
def test_the_programs_end_with_the_test_that_has_started_them(make: Make, value: str) -> None:
    """A test binary that is killed cannot end them; NOXU_EXIT_WITH_PARENT=false keeps them."""
    environment = make(authorization_mode=["AlwaysAllow"], anonymous_auth=["true"])
    environment.prepare()
    etcd = [str(environment.assets / "etcd"), f"--listen-client-urls={environment.etcd_url}"]
    commands = json.dumps([[*etcd, f"--data-dir={environment.data}"], environment.command()])
    with (environment.folder / "log").open("ab") as log:
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, commands],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | ({"NOXU_EXIT_WITH_PARENT": value} if value else {}),
        )
    assert parent.stdout is not None
    children = json.loads(parent.stdout.readline())
    try:
        eventually(lambda: _answers(f"{environment.url}/healthz"))
        parent.kill()
        parent.wait(HANGS_AFTER)
        if value:
            assert _answers(f"{environment.url}/healthz")
            assert _answers(f"{environment.etcd_url}/health")
        else:
            eventually(lambda: not _answers(f"{environment.url}/healthz"))
            eventually(lambda: not _answers(f"{environment.etcd_url}/health"))
    finally:
        parent.stdout.close()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


def _answers(url: str) -> bool:
    try:
        return ask(url).code in (200, 401)
    except (OSError, http.client.HTTPException):
        return False


RESTARTS: Final = {"after SIGTERM": "stop", "after SIGKILL": "kill"}


@pytest.mark.slow
@pytest.mark.parametrize("end", RESTARTS.values(), ids=RESTARTS)
def test_a_server_on_the_same_etcd_has_the_objects(make: Make, end: str) -> None:
    environment = make()
    environment.start()
    assert environment.ask(MAPS, method="POST", body=config_map("kept")).code == 201
    getattr(environment.server, end)()
    environment.start_server()
    assert environment.ask(f"{MAPS}/kept").body["data"] == {"key": "value"}


@pytest.mark.slow
def test_an_etcd_in_the_folder_of_an_earlier_one_has_the_objects(make: Make) -> None:
    environment = make()
    environment.start()
    environment.ask(MAPS, method="POST", body=config_map("kept"))
    environment.stop()
    environment.start()
    assert environment.ask(f"{MAPS}/kept").code == 200


@pytest.mark.slow
def test_prefixes_have_objects_of_their_own(make: Make) -> None:
    environment, second = make(), make("second", etcd_prefix=["/second"])
    environment.start()
    second.etcd_url = environment.etcd_url
    second.start_server()
    second.ask(MAPS, method="POST", body=config_map("a"))
    assert [each.ask(f"{MAPS}/a").code for each in (environment, second)] == [404, 200]


@pytest.mark.slow
def test_a_second_server_with_the_same_prefix_is_refused(make: Make) -> None:
    environment, second = make(), make("second")
    environment.start()
    second.etcd_url = environment.etcd_url
    with pytest.raises(Exited, match=r"another kube-apiserver uses this etcd with --etcd-prefix=/registry"):
        second.start_server()


@pytest.mark.slow
def test_without_an_etcd_objects_are_in_memory(make: Make) -> None:
    environment = make()
    environment.start_server()
    assert "--etcd-servers: none of them listens; objects are in memory" in environment.server.log.read_text()


@pytest.mark.slow
def test_what_is_no_etcd_prevents_the_start(make: Make) -> None:
    environment = make()
    with socket.create_server(("127.0.0.1", 0)) as other:
        environment.etcd_url = f"https://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(Exited, match="etcd"):
            environment.start_server()


@pytest.mark.slow
@pytest.mark.skipif(bool(etcd_server.lacking()), reason=etcd_server.lacking() or "etcd is there")
def test_another_etcd_keeps_the_objects(make: Make, tmp_path: Path) -> None:
    """Two servers have the same objects at the same time, each with the controllers of kube-apiserver only."""
    environment, second = make(), make("second")
    with etcd_server.running_etcd(tmp_path / "etcd") as etcd:
        environment.etcd_url = second.etcd_url = etcd.url
        environment.start_server()
        assert environment.ask(MAPS, method="POST", body=config_map("a")).code == 201
        second.start_server()
        assert second.ask(f"{MAPS}/a").body["data"] == {"key": "value"}
        environment.server.stop()
        environment.start_server()
        assert environment.ask(f"{MAPS}/a").code == 200
        leases = environment.ask("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").body["items"]
        assert [one["metadata"]["name"] for one in leases if not one["metadata"]["name"].startswith("apiserver-")] == []
        for each in (environment, second):
            each.server.stop()
    assert not any(file.suffix == ".db" for each in (environment, second) for file in each.folder.rglob("*"))


@pytest.mark.slow
def test_an_etcd_that_syncs_has_a_durable_store(make: Make) -> None:
    environment = make()
    environment.start()
    [file] = environment.data.rglob("noxu.db")
    environment.stop()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.slow
def test_environments_run_side_by_side(make: Make) -> None:
    environments = [make(f"environment {number}") for number in range(MANY)]
    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(Environment.start, environments))
        for number, each in enumerate(environments):
            assert each.ask(MAPS, method="POST", body=config_map(f"of-{number}")).code == 201
        names = [[item["metadata"]["name"] for item in each.ask(MAPS).body["items"]] for each in environments]
        assert names == [[f"of-{number}"] for number in range(MANY)]
        list(pool.map(Environment.stop, environments))


# -- flags


ACCEPTED: Final[dict[str, dict[str, list[str]]]] = {
    "a plug-in that is off by default": {"enable_admission_plugins": ["OwnerReferencesPermissionEnforcement"]},
    "a plug-in that this server lacks": {"enable_admission_plugins": ["NodeRestriction"]},
    "a feature gate that this server lacks": {"feature_gates": ["APIServerTracing=false"]},
    "a value-less flag": {"allow_privileged": [""]},
    "a flag that kube-apiserver lacks": {"nope": ["1"]},
    "an audit policy": {"audit_policy_file": ["{folder}/policy.yaml"], "audit_log_path": ["{folder}/audit.log"]},
    "a token file": {"token_auth_file": ["{folder}/tokens.csv"]},
    "two modes of authorization": {"authorization_mode": ["Node,RBAC"]},
}


@pytest.mark.slow
@pytest.mark.parametrize("flags", ACCEPTED.values(), ids=ACCEPTED)
def test_it_starts_with(make: Make, tmp_path: Path, flags: dict[str, list[str]]) -> None:
    (tmp_path / "policy.yaml").write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
    (tmp_path / "tokens.csv").write_text('secret,dev,1,"system:masters"\n')
    environment = make(**{name: [value.format(folder=tmp_path) for value in values] for name, values in flags.items()})
    environment.start()
    if "token_auth_file" in flags:
        assert ask(environment.url + MAPS, headers={"Authorization": "Bearer secret"}).code == 200
    if "audit_log_path" in flags:
        eventually(lambda: '"kind":"Event"' in (tmp_path / "audit.log").read_text())


@pytest.mark.slow
def test_runtime_config_hides_a_group_version(make: Make) -> None:
    environment = make(runtime_config=["policy/v1=false,autoscaling/v1=false"])
    environment.start()
    assert environment.ask("/apis/policy/v1/poddisruptionbudgets").code == 404
    groups = {each["name"]: each["versions"] for each in environment.ask("/apis").body["groups"]}
    assert "policy" not in groups
    assert [version["version"] for version in groups["autoscaling"]] == ["v2"]
    services = environment.ask("/apis/apiregistration.k8s.io/v1/apiservices").body["items"]
    assert "v1.policy" not in {each["metadata"]["name"] for each in services}


@pytest.mark.slow
def test_services_have_addresses_and_ports_of_their_ranges(make: Make) -> None:
    environment = make(service_cluster_ip_range=["192.168.100.0/29"], service_node_port_range=["31000+1"])
    environment.start()
    services = f"{NAMESPACES}/default/services"
    assert environment.ask(f"{services}/kubernetes").body["spec"]["clusterIP"] == "192.168.100.1"
    assert environment.ask("/apis/networking.k8s.io/v1/ipaddresses/192.168.100.1").code == 200
    found = environment.ask("/apis/networking.k8s.io/v1/servicecidrs/kubernetes")
    assert found.body["spec"]["cidrs"] == ["192.168.100.0/29"]
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}  # fmt: skip
    spec = environment.ask(services, method="POST", body=body).body["spec"]
    assert spec["clusterIP"].startswith("192.168.100.")
    assert spec["ports"][0]["nodePort"] in (31000, 31001)


@pytest.mark.slow
def test_the_environment_selects_controllers(make: Make, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    environment = make(variables={"NOXU_PROFILE": "cluster", "NOXU_LOG": str(log)})
    environment.start()
    assert environment.ask(f"{NAMESPACES}/default/serviceaccounts/default").code == 200
    assert "Serving securely on" in log.read_text()
    assert environment.server.log.read_text() == ""


REFUSED: Final[dict[str, tuple[dict[str, list[str]], str]]] = {
    "without an issuer": ({"service_account_issuer": []}, r'err="service-account-issuer is a required flag"'),
    "without keys": (
        {"service_account_key_file": [], "service_account_signing_key_file": []},
        r"either `--service-account-key-file` or `--service-account-signing-endpoint` must be set",
    ),
    "without an etcd": ({"etcd_servers": []}, r"--etcd-servers must be specified"),
    "with a CA that is not there": ({"client_ca_file": ["/no/ca.crt"]}, r"/no/ca\.crt"),
    "with a key that is not there": ({"service_account_key_file": ["/no/sa.key"]}, r"/no/sa\.key"),
    "with an unknown mode": ({"authorization_mode": ["Nope"]}, r'authorization-mode \\"Nope\\" is not a valid mode'),
    "with an unknown plug-in": ({"enable_admission_plugins": ["Nope"]}, r'plugin \\"Nope\\" is unknown'),
    "with a flag of users elsewhere": (
        {"oidc_issuer_url": ["https://x"]},
        r"Error: --oidc-issuer-url is not available",
    ),
    "with a port out of range": ({"secure_port": ["70000"]}, r"--secure-port 70000 must be between 1 and 65535"),
    "with a small network": (
        {"service_cluster_ip_range": ["10.0.0.0/30"]},
        r"the service cluster IP range must be at least 8 IP addresses",
    ),
    "with ports that are no range": ({"service_node_port_range": ["a-b"]}, r"a-b is not FIRST-LAST or FIRST\+NUMBER"),
    "with a value of the wrong type": ({"event_ttl": ["1"]}, r'time: missing unit in duration "1"'),
}


@pytest.mark.slow(every=11)
@pytest.mark.parametrize(("flags", "message"), REFUSED.values(), ids=REFUSED)
def test_it_does_not_start(make: Make, flags: dict[str, list[str]], message: str) -> None:
    environment = make(**flags)
    environment.start_etcd()
    with pytest.raises(Exited, match=message):
        environment.start_server()
    assert environment.server.process.returncode == 1


def test_a_port_in_use_is_an_error_at_once(make: Make) -> None:
    environment = make()
    environment.start_etcd()
    with socket.create_server(("127.0.0.1", environment.port)):
        environment.prepare()
        ran = subprocess.run(environment.command(), check=False, capture_output=True, text=True, timeout=HANGS_AFTER)
    assert ran.returncode == 1
    assert f"failed to listen on 127.0.0.1:{environment.port}: address already in use" in ran.stderr


# -- Java's kube-api-test


@pytest.mark.slow
def test_kube_api_test_runs_twice_with_its_certificates(programs: Path, tmp_path: Path) -> None:
    for run in ("first", "second"):
        data = tmp_path / run
        data.mkdir()
        environment = KubeApiTest(tmp_path / "kubeapitest", programs, ["--min-request-timeout", "300"])
        try:
            environment.start(data)
            found = environment.get_default_namespace()
            assert (found.returncode, found.stdout.split()[-3 if len(found.stdout.split()) % 3 == 0 else -2]) == (
                0,
                "default",
            )
            assert environment.ask(MAPS, "POST", config_map("a")).code == 201
            pids = [environment.server.process.pid, environment.etcd.process.pid]
        finally:
            environment.stop()
        assert [_is_running(pid) for pid in pids] == [False, False]


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
