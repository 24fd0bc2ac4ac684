"""Translate the flags of kube-apiserver into the configuration of a server. Reads no file.

Defaults are kube-apiserver's, with two exceptions: without --bind-address the server listens on loopback only, and without
an etcd that listens its objects are in memory. Errors are kube-apiserver's (pkg/controlplane/apiserver/options).

`--runtime-config` says which group versions of built-in kinds clients can use (pkg/server/resourceconfig of
k8s.io/apiserver): `api/all`, `api/ga`, `api/beta` and `api/alpha` select versions by their stability, `GROUP/VERSION` (`v1`
for the core group) selects one and has precedence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network, ip_address
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from noxu import features, releases
from noxu.config import (
    DEFAULT_EVENT_TTL,
    DEFAULT_REQUESTS,
    MIN_REQUEST_TIMEOUT,
    STORAGE_MEDIA_TYPES,
    Audit,
    Authentication,
    Config,
    Etcd,
    LeaderElection,
    Profile,
    Requests,
    TlsOptions,
)
from noxu.controllers import manager
from noxu.envtest.data_directory import DEFAULT_PREFIX, DataDirectory, OtherEtcd
from noxu.envtest.flags import Arguments
from noxu.features import FALSE, GATES, TRUE
from noxu.go.text import quote
from noxu.registry.served_resources import PRIORITIES
from noxu.security import cors

DEFAULT_PORT: Final = 6443
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_CERT_DIR: Final = "/var/run/kubernetes"
DEFAULT_MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
SMALLEST_NETWORK: Final = 8  # addresses
MAX_PORT: Final = 65535
_NO_ROOM: Final = "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; they must add up to something positive"
_PORTS: Final = re.compile(r"(?P<first>\d+)(-(?P<last>\d+)|\+(?P<number>\d+))?")
KUBERNETES: Final = "NOXU_KUBERNETES"
STOP_WITHIN: Final = 0.2  # seconds: envtest waits for the end after each suite


class RefusedFlags(ValueError):
    """The server does not start with these flags. The message has all reasons."""


class ConfiguredServer(NamedTuple):
    """A configuration, and what to say about flags that have no effect although they look as if they had."""

    config: Config
    notes: Sequence[str]


def check(arguments: Arguments) -> None:
    """Raises Refused for what kube-apiserver refuses before it looks at files."""
    faults = []
    port = arguments.number("secure-port", DEFAULT_PORT)
    if not 1 <= port <= 65535:
        faults.append(f"--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0")
    if not arguments.all("etcd-servers"):
        faults.append("--etcd-servers must be specified")
    if not any(arguments.all("service-account-issuer")):
        faults.append("service-account-issuer is a required flag")
    if not arguments.all("service-account-key-file") and not arguments.last("service-account-signing-key-file"):
        faults.append("either `--service-account-key-file` or `--service-account-signing-endpoint` must be set")
    if not arguments.last("service-account-signing-key-file"):
        faults.append("service-account-signing-key-file and service-account-issuer are required flags")
    _refuse(faults)


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise RefusedFlags(faults[0] if len(faults) == 1 else f"[{', '.join(dict.fromkeys(faults))}]")


def address(arguments: Arguments) -> tuple[str, int]:
    """The address and the port to listen on."""
    return arguments.last("bind-address") or DEFAULT_HOST, arguments.number("secure-port", DEFAULT_PORT)


def configure(
    arguments: Arguments, environment: Mapping[str, str], data: DataDirectory | OtherEtcd | None
) -> ConfiguredServer:
    """`data` is the etcd's data directory, or an etcd that keeps the objects; None: in memory. Raises Refused."""
    check(arguments)
    nodes, stages, answer = _workloads(environment)
    profile, controllers = _controllers(environment, nodes)
    plugins, unavailable = _plugins(arguments)
    gates, unknown = _gates(arguments, release_of(environment))
    try:
        disabled, absent = parse(arguments.all("runtime-config"), PRIORITIES)
    except ValueError as error:
        raise RefusedFlags(str(error)) from None
    prefix = arguments.last("etcd-prefix", DEFAULT_PREFIX)
    try:
        modes = features.modes(arguments.all("authorization-mode") or (features.ALWAYS_ALLOW,))
    except ValueError as error:
        raise RefusedFlags(str(error)) from None
    host, port = address(arguments)
    config = Config(
        host=host,
        port=port,
        data=data.of_prefix(prefix) if isinstance(data, DataDirectory) else None,
        durability="full" if not isinstance(data, DataDirectory) or data.fsync else "off",
        etcd=_etcd(arguments, data, prefix) if isinstance(data, OtherEtcd) else None,
        leader_election=LeaderElection(enabled=False if controllers == () else None),
        features=gates,
        nodes=nodes,
        stages=tuple(map(Path, stages)),
        exec=answer,
        event_ttl=arguments.seconds("event-ttl", DEFAULT_EVENT_TTL),
        profile=profile,
        controllers=controllers,
        admission_plugins=plugins,
        tls=_tls(arguments),
        authentication=_authentication(arguments),
        audit=_audit(arguments),
        tracing_config_file=_path(arguments, "tracing-config-file"),
        authorization_modes=modes,
        external_hostname=arguments.last("external-hostname"),
        advertise_address=_advertised(arguments),
        requests=_requests(arguments),
        disabled=disabled,
        services=_services(arguments),
        node_ports=_node_ports(arguments),
        stop_within=STOP_WITHIN,
        faults=Path(environment["NOXU_FAULTS"]) if environment.get("NOXU_FAULTS") else None,
        latency=environment.get("NOXU_LATENCY", ""),
    )
    return ConfiguredServer(config, [*unavailable, *unknown, *absent])


def _path(arguments: Arguments, flag: str) -> Path | None:
    text = arguments.last(flag)
    return Path(text) if text else None


def _all(arguments: Arguments, flag: str, default: tuple[str, ...]) -> tuple[str, ...]:
    return arguments.all(flag) if arguments.has(flag) else default


def _tls(arguments: Arguments) -> TlsOptions:
    return TlsOptions(
        certificate=_path(arguments, "tls-cert-file"),
        key=_path(arguments, "tls-private-key-file"),
        directory=Path(arguments.last("cert-dir") or DEFAULT_CERT_DIR),
        named=arguments.all("tls-sni-cert-key"),
        client_authority=_path(arguments, "client-ca-file"),
        own_clients=False,
        minimum=arguments.last("tls-min-version") or TlsOptions().minimum,
    )


def _authentication(arguments: Arguments) -> Authentication:
    signing = arguments.last("service-account-signing-key-file")
    default = Authentication()
    return Authentication(
        anonymous_auth=arguments.is_set("anonymous-auth") if arguments.has("anonymous-auth") else None,
        token_auth_file=_path(arguments, "token-auth-file"),
        service_account_key_files=tuple(map(Path, arguments.all("service-account-key-file"))),
        service_account_signing_key_file=Path(signing) if signing else None,
        service_account_issuers=arguments.all("service-account-issuer"),
        service_account_lookup=arguments.is_set("service-account-lookup", default=True),
        service_account_max_token_expiration=arguments.seconds("service-account-max-token-expiration", 0.0),
        service_account_jwks_uri=arguments.last("service-account-jwks-uri"),
        api_audiences=arguments.all("api-audiences"),
        requestheader_client_ca_file=_path(arguments, "requestheader-client-ca-file"),
        requestheader_allowed_names=arguments.all("requestheader-allowed-names"),
        requestheader_username_headers=_all(
            arguments, "requestheader-username-headers", default.requestheader_username_headers
        ),
        requestheader_uid_headers=_all(arguments, "requestheader-uid-headers", default.requestheader_uid_headers),
        requestheader_group_headers=_all(arguments, "requestheader-group-headers", default.requestheader_group_headers),
        requestheader_extra_headers_prefix=_all(
            arguments, "requestheader-extra-headers-prefix", default.requestheader_extra_headers_prefix
        ),
    )


def _advertised(arguments: Arguments) -> str:
    """The address of --advertise-address, "" if it is the one that means all."""
    text = arguments.last("advertise-address")
    return "" if text and ip_address(text).is_unspecified else text


def _requests(arguments: Arguments) -> Requests:
    """Raises Refused."""
    default = DEFAULT_REQUESTS
    requests = Requests(
        timeout=arguments.seconds("request-timeout", default.timeout),
        min_timeout=arguments.number("min-request-timeout", MIN_REQUEST_TIMEOUT),
        max_in_flight=arguments.number("max-requests-inflight", default.max_in_flight),
        max_mutating_in_flight=arguments.number("max-mutating-requests-inflight", default.max_mutating_in_flight),
        cors_allowed_origins=arguments.all("cors-allowed-origins"),
    )
    limits = {
        "max-requests-inflight": requests.max_in_flight,
        "max-mutating-requests-inflight": requests.max_mutating_in_flight,
        "request-timeout": requests.timeout,
        "min-request-timeout": requests.min_timeout,
    }
    faults = [f"--{name} can not be negative value" for name, value in limits.items() if value < 0]
    if not requests.max_in_flight and not requests.max_mutating_in_flight and _has_flow_control(arguments):
        faults.append(_NO_ROOM)
    if requests.cors_allowed_origins:
        try:
            cors.check(requests.cors_allowed_origins)
        except ValueError as error:
            faults.append(str(error))
    _refuse(faults)
    return requests


def _has_flow_control(arguments: Arguments) -> bool:
    return arguments.is_set("enable-priority-and-fairness", default=True)


def _audit(arguments: Arguments) -> Audit:
    default = Audit()
    return Audit(
        policy_file=_path(arguments, "audit-policy-file"),
        log_path=arguments.last("audit-log-path"),
        format=arguments.last("audit-log-format", default.format),
        mode=arguments.last("audit-log-mode", default.mode),
        max_size=arguments.number("audit-log-maxsize", default.max_size),
        max_age=arguments.number("audit-log-maxage", default.max_age),
        max_backups=arguments.number("audit-log-maxbackup", default.max_backups),
        compress=arguments.is_set("audit-log-compress"),
    )


def _etcd(arguments: Arguments, servers: OtherEtcd, prefix: str) -> Etcd:
    """Raises Refused."""
    media_type = arguments.last("storage-media-type", DEFAULT_MEDIA_TYPE)
    if media_type not in STORAGE_MEDIA_TYPES:
        allowed = ", ".join(sorted(STORAGE_MEDIA_TYPES))
        raise RefusedFlags(f"--storage-media-type {quote(media_type)} invalid, allowed values: {allowed}")
    return Etcd(
        servers.urls,
        prefix,
        ca_file=_path(arguments, "etcd-cafile"),
        certificate_file=_path(arguments, "etcd-certfile"),
        key_file=_path(arguments, "etcd-keyfile"),
        media_type=media_type,
    )


def _workloads(environment: Mapping[str, str]) -> tuple[int | None, Sequence[str], str]:
    """The number of simulated nodes, files of stages, and what commands in pods answer. Raises RefusedFlags."""
    text, answer = environment.get("NOXU_NODES", ""), environment.get("NOXU_EXEC", "")
    stages = [path for path in environment.get("NOXU_STAGES", "").split(",") if path]
    if text and not text.isdecimal():
        raise RefusedFlags(f"NOXU_NODES: {text} is no number of nodes")
    nodes = int(text) if text else None
    try:
        manager.check_workloads(nodes, stages=bool(stages), exec=answer)
    except ValueError as error:
        raise RefusedFlags(f"NOXU_NODES, NOXU_STAGES, NOXU_EXEC: {error}") from None
    return nodes, stages, answer


def _controllers(environment: Mapping[str, str], nodes: int | None) -> tuple[Profile, tuple[str, ...] | None]:
    """The profile and the list of controllers, from NOXU_PROFILE and NOXU_CONTROLLERS; None: all, for simulated nodes."""
    profile = environment.get("NOXU_PROFILE") or "envtest"
    listed = environment.get("NOXU_CONTROLLERS")
    controllers = None if listed is None else tuple(filter(None, listed.split(",")))
    for name, profile_controllers in manager.PROFILES.items():
        if name == profile:
            try:
                manager.check_controllers(controllers or (), has_nodes=nodes is not None)
            except ValueError as error:
                raise RefusedFlags(f"NOXU_CONTROLLERS: {error}") from None
            return name, profile_controllers if controllers is None and nodes is None else controllers
    raise RefusedFlags(f"NOXU_PROFILE: {profile} is not one of {', '.join(manager.PROFILES)}")


def _plugins(arguments: Arguments) -> tuple[frozenset[str], list[str]]:
    """The plug-ins that run: all that kube-apiserver enables by default, ServiceAccount among them."""
    enable = arguments.all("enable-admission-plugins")
    here = [name for name in enable if name not in features.OF_KUBE_APISERVER]
    notes = [
        f"--enable-admission-plugins: this server does not have {name}; it has no effect"
        for name in enable
        if name in features.OF_KUBE_APISERVER
    ]
    try:
        return features.select_plugins(here, arguments.all("disable-admission-plugins"), controllers=True), notes
    except ValueError as error:
        raise RefusedFlags(str(error)) from None


def _services(arguments: Arguments) -> str:
    """The network of the addresses of services: the first one of --service-cluster-ip-range."""
    written = arguments.last("service-cluster-ip-range")
    if not written:
        return Config().services
    try:
        network = IPv4Network(written.split(",")[0].strip(), strict=False)
    except ValueError:
        raise RefusedFlags(f"--service-cluster-ip-range: {written} is not a network of IPv4") from None
    if network.num_addresses < SMALLEST_NETWORK:
        raise RefusedFlags(f"the service cluster IP range must be at least {SMALLEST_NETWORK} IP addresses")
    return str(network)


def _node_ports(arguments: Arguments) -> range:
    """FIRST-LAST, FIRST+NUMBER, or one port."""
    written = arguments.last("service-node-port-range")
    if not written:
        return Config().node_ports
    match = _PORTS.fullmatch(written)
    if match is None:
        raise RefusedFlags(f"--service-node-port-range: {written} is not FIRST-LAST or FIRST+NUMBER")
    first = int(match["first"])
    last = first + int(match["number"]) if match["number"] else int(match["last"] or first)
    if not 0 < first <= last <= MAX_PORT:
        raise RefusedFlags(f"--service-node-port-range: {written} is not within 1-{MAX_PORT}")
    return range(first, last + 1)


def release_of(environment: Mapping[str, str]) -> int:
    """The release of Kubernetes that NOXU_KUBERNETES names. Raises RefusedFlags."""
    text = environment.get(KUBERNETES)
    try:
        return releases.parse(text) if text else releases.NEWEST
    except ValueError as error:
        raise RefusedFlags(f"{KUBERNETES}: {error}") from None


def _gates(arguments: Arguments, release: int) -> tuple[features.Features, list[str]]:
    """The feature gates that are known here; a note for each of the others."""
    here, notes = [], []
    for item in arguments.all("feature-gates"):
        gate = item.partition("=")[0].strip()
        if gate in GATES or "=" not in item:
            here.append(item)
        elif gate:
            notes.append(f"--feature-gates: this server does not have {gate}; it has no effect")
    try:
        return features.parse_gates(here, release), notes
    except ValueError as error:
        raise RefusedFlags(str(error)) from None


# -- --runtime-config --------------------------------------------------------------------------------------------------


GroupVersion: TypeAlias = tuple[str, str]

_STABILITIES: Final = {
    "api/all": re.compile(r".*"),
    "api/ga": re.compile(r"v\d+"),
    "api/beta": re.compile(r"v\d+beta\d+"),
    "api/alpha": re.compile(r"v\d+alpha\d+"),
}
_VERSION: Final = re.compile(r"v\d+((alpha|beta)\d+)?")


class RuntimeConfig(NamedTuple):
    """`disabled`: the group versions that clients cannot use. `notes`: what has no effect."""

    disabled: frozenset[GroupVersion]
    notes: Sequence[str]


def parse(items: Iterable[str], served: Iterable[GroupVersion]) -> RuntimeConfig:
    """`items` are the values of the flag, `KEY=BOOL` or `KEY`; `served` are all group versions. Raises ValueError."""
    served = tuple(served)
    enabled = dict.fromkeys(served, True)
    notes = []
    chosen = {
        key.strip(): _boolean(key, equals, value) for key, equals, value in (item.partition("=") for item in items)
    }
    for key, stability in _STABILITIES.items():
        if key in chosen:
            enabled |= {pair: chosen[key] for pair in served if stability.fullmatch(pair[1])}
    for key in chosen.keys() - _STABILITIES.keys():
        group, _, version = key.rpartition("/")
        if (group, version) in enabled:
            enabled[group, version] = chosen[key]
        elif not _VERSION.fullmatch(version):  # GROUP/VERSION/RESOURCE selects one resource
            notes.append(f"--runtime-config: {key} is not GROUP/VERSION; it has no effect")
        elif chosen[key]:
            notes.append(f"--runtime-config: this server does not have {key}")
    return RuntimeConfig(frozenset(pair for pair in served if not enabled[pair]), sorted(notes))


def _boolean(key: str, equals: str, value: str) -> bool:
    value = value.strip()
    if not equals or not value:
        return True
    if value not in TRUE | FALSE:
        raise ValueError(f"runtime-config invalid value {quote(f'{key}={value}')}")
    return value in TRUE
