"""From flags to the configuration of a server."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from noxu.config import Config, Etcd, Requests
from noxu.envtest import configuration
from noxu.envtest.configuration import RefusedFlags, configure
from noxu.envtest.data_directory import DataDirectory, OtherEtcd
from noxu.envtest.flags import HONOURED, Arguments, parse

REQUIRED = [
    *("--etcd-servers=http://127.0.0.1:1", "--service-account-issuer=https://issuer"),
    *("--service-account-key-file=/k", "--service-account-signing-key-file=/s"),
]


def configured(*words: str, found: DataDirectory | OtherEtcd | None = None, **environment: str) -> Config:
    return configure(parse([*REQUIRED, *words]), environment, found).config


class Recorded(dict[str, list[str]]):
    """The names that were looked up."""

    def __init__(self, values: dict[str, list[str]]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.names.add(str(key))
        return super().__contains__(key)


def test_every_flag_that_the_help_says_to_have_an_effect_is_read() -> None:
    values = Recorded(parse(REQUIRED).values)
    configure(Arguments(values, []), {}, OtherEtcd(("https://127.0.0.1:1",)))
    assert HONOURED.keys() - values.names == set()


def test_the_defaults_are_kube_apiservers() -> None:
    config = configured()
    assert (config.host, config.port, config.profile, config.authorization_modes) == (
        "127.0.0.1",
        6443,
        "envtest",
        ("AlwaysAllow",),
    )
    assert "ServiceAccount" in config.admission_plugins
    assert config.tls is not None
    assert config.tls.directory == Path("/var/run/kubernetes")
    assert config.data is None


STORES = {
    "an etcd that waits for the disk": (DataDirectory(Path("/d"), fsync=True), "full"),
    "an etcd that does not": (DataDirectory(Path("/d"), fsync=False), "off"),
}


@pytest.mark.parametrize(("found", "durability"), STORES.values(), ids=STORES)
def test_objects_are_in_the_data_directory_of(found: DataDirectory, durability: str) -> None:
    config = configured(found=found)
    assert (config.data, config.durability) == (Path("/d/noxu/registry"), durability)


def test_another_etcd_keeps_the_objects_itself() -> None:
    found = OtherEtcd(("https://a:1", "https://b:1"))
    config = configured("--etcd-prefix=/p", "--etcd-cafile=/ca", "--etcd-certfile=/c", "--etcd-keyfile=/k", found=found)
    files = {"ca_file": Path("/ca"), "certificate_file": Path("/c"), "key_file": Path("/k")}
    protobuf = "application/vnd.kubernetes.protobuf"
    assert config.etcd == Etcd(found.urls, "/p", **files, media_type=protobuf)  # type: ignore[arg-type]
    assert config.data is None


def test_the_form_of_built_in_kinds_in_another_etcd() -> None:
    found = OtherEtcd(("https://a:1",))
    config = configured("--storage-media-type=application/json", found=found)
    assert config.etcd is not None
    assert config.etcd.media_type == "application/json"
    with pytest.raises(RefusedFlags) as refused:
        configured("--storage-media-type=application/yaml", found=found)
    assert str(refused.value) == (
        '--storage-media-type "application/yaml" invalid, allowed values: application/json, '
        "application/vnd.kubernetes.protobuf"
    )


PORTS = {"30000-30010": range(30_000, 30_011), "1+0": range(1, 2), "8080": range(8080, 8081)}


@pytest.mark.parametrize(("text", "ports"), PORTS.items(), ids=PORTS)
def test_a_range_of_node_ports(text: str, ports: range) -> None:
    assert configured(f"--service-node-port-range={text}").node_ports == ports


SERVICES = {"10.96.0.0/16": "10.96.0.0/16", "10.1.2.3/24": "10.1.2.0/24", "10.0.0.0/24,fd00::/108": "10.0.0.0/24"}


@pytest.mark.parametrize(("text", "network"), SERVICES.items(), ids=SERVICES)
def test_the_network_of_services(text: str, network: str) -> None:
    assert configured(f"--service-cluster-ip-range={text}").services == network


CONTROLLERS = {
    "the profile envtest": ({}, "envtest", None),
    "another profile": ({"NOXU_PROFILE": "local"}, "local", None),
    "a list": ({"NOXU_CONTROLLERS": "*,-namespace-controller"}, "envtest", ("*", "-namespace-controller")),
    "no controllers": ({"NOXU_CONTROLLERS": "", "NOXU_PROFILE": "local"}, "local", ()),
}


@pytest.mark.parametrize(("environment", "profile", "controllers"), CONTROLLERS.values(), ids=CONTROLLERS)
def test_controllers_are_those_of(environment: dict[str, Any], profile: str, controllers: Any) -> None:
    config = configured(**environment)
    assert config.profile == profile
    if controllers is not None:
        assert config.controllers == controllers


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"NOXU_PROFILE": "nope"}, "NOXU_PROFILE: nope is not one of local, cluster, envtest"),
        (
            {"NOXU_CONTROLLERS": "nope"},
            'NOXU_CONTROLLERS: "nope" is not in the list of known controllers: this server has *',
        ),
        (
            {"NOXU_CONTROLLERS": "job"},
            'NOXU_CONTROLLERS: "job" is a controller of workloads, which run with simulated nodes: add *',
        ),
        (
            {"NOXU_KUBERNETES": "1.28"},
            'NOXU_KUBERNETES: "1.28" is not a known version of Kubernetes: give one of 1.29, *',
        ),
        ({"NOXU_NODES": "some"}, "NOXU_NODES: some is no number of nodes"),
        ({"NOXU_NODES": "9999"}, "NOXU_NODES, *: nodes: 9999 is not a number from 0 to 5000"),
        ({"NOXU_EXEC": "succeed"}, "NOXU_NODES, *: exec is about simulated nodes: add nodes"),
    ],
)
def test_unknown_controllers_are_refused(environment: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedFlags) as refused:
        configured(**environment)
    assert fnmatchcase(str(refused.value), message)


def test_simulated_nodes_come_with_all_controllers() -> None:
    config = configured(NOXU_NODES="3", NOXU_STAGES="a.yaml,b.yaml", NOXU_EXEC="succeed")
    assert (config.nodes, config.stages, config.exec) == (3, (Path("a.yaml"), Path("b.yaml")), "succeed")
    assert (config.profile, config.controllers) == ("envtest", None)  # None: all of them
    assert configured(NOXU_NODES="0", NOXU_CONTROLLERS="job").controllers == ("job",)
    assert (configured().nodes, configured().controllers) == (None, ())


def test_all_reasons_are_told_at_once() -> None:
    with pytest.raises(RefusedFlags) as refused:
        configuration.check(parse([]))
    assert str(refused.value) == (
        "[--etcd-servers must be specified, service-account-issuer is a required flag, "
        "either `--service-account-key-file` or `--service-account-signing-endpoint` must be set, "
        "service-account-signing-key-file and service-account-issuer are required flags]"
    )


LIMITS: dict[str, tuple[list[str], Requests]] = {
    "the defaults": ([], Requests()),
    "a timeout": (["--request-timeout=5s"], Requests(timeout=5.0)),
    "the minimum of watches": (["--min-request-timeout=60"], Requests(min_timeout=60)),
    "requests in flight": (["--max-requests-inflight=0", "--max-mutating-requests-inflight=3"],
                           Requests(max_in_flight=0, max_mutating_in_flight=3)),
    "origins": (["--cors-allowed-origins=^a$,//b:", "--cors-allowed-origins=//c$"],
                Requests(cors_allowed_origins=("^a$", "//b:", "//c$"))),
}  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), LIMITS.values(), ids=LIMITS)
def test_limits_on_requests(words: list[str], expected: Requests) -> None:
    assert configured(*words).requests == expected


ADVERTISED = {"192.0.2.9": "192.0.2.9", "0.0.0.0": "", "2001:DB8::0:1": "2001:db8::1", "": ""}


@pytest.mark.parametrize(("text", "address"), ADVERTISED.items(), ids=ADVERTISED)
def test_the_advertised_address(text: str, address: str) -> None:
    assert configured(f"--advertise-address={text}").advertise_address == address


FAULTY: dict[str, tuple[list[str], str]] = {
    "negative limits": (["--request-timeout=-1s", "--max-requests-inflight=-1"],
                        "[--max-requests-inflight can not be negative value, --request-timeout can not be negative value]"),
    "no room for any request": (["--max-requests-inflight=0", "--max-mutating-requests-inflight=0"],
                                "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to something positive"),
    "an open expression": (["--cors-allowed-origins=example.com"],
                           "--cors-allowed-origins has an invalid regular expression: regular expression does not pin to start/end of host in the origin header"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), FAULTY.values(), ids=FAULTY)
def test_faulty_limits_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(RefusedFlags) as refused:
        configured(*words)
    assert str(refused.value) == message


def test_without_priority_and_fairness_there_may_be_no_limits() -> None:
    words = ["--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--enable-priority-and-fairness=false"]
    assert configured(*words).requests == Requests(max_in_flight=0, max_mutating_in_flight=0)


def test_faults_are_those_of_the_environment() -> None:
    config = configured(NOXU_FAULTS="plan.yaml", NOXU_LATENCY="5ms..20ms")
    assert (config.faults, config.latency) == (Path("plan.yaml"), "5ms..20ms")
    assert not configured().begins_with_faults
