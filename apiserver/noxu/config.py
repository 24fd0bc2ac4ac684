"""The configuration of a server, and the version of this program."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from noxu.features import Features, default_plugins

KUBERNETES_VERSION: Final = "1.37.0"
"""The release of Kubernetes whose API this is."""
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 6440
HTTPS_PORT: Final = 443
DEFAULT_DATA: Final = Path(".noxu")
DEFAULT_CONTEXT: Final = "noxu"
DEFAULT_EVENT_TTL: Final = 3600.0  # seconds; upstream's
JITTER: Final = 1.2  # of client-go: candidates for leader wait for up to this many times the retry period longer
REQUEST_TIMEOUT: Final = 60.0  # seconds; upstream's --request-timeout
COMPACT_EVERY: Final = 300.0  # seconds; history that is older than one to two of these is removed, as upstream
MIN_REQUEST_TIMEOUT: Final = 1800  # seconds; upstream's --min-request-timeout
MAX_IN_FLIGHT: Final = 400  # upstream's --max-requests-inflight
MAX_TENANTS: Final = 1000
MAX_NODES: Final = 5000  # simulated; upstream's tested limit of a cluster
EXEC_ANSWERS: Final = ("", "succeed")
"""What a command in a pod answers for which there is no rule; "": it is refused."""
MAX_MUTATING_IN_FLIGHT: Final = 200  # upstream's --max-mutating-requests-inflight
DEFAULT_ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
"""Of tokens of service accounts."""

Durability = Literal["full", "normal", "off"]
Profile = Literal["local", "cluster", "envtest"]
"""What a server does by itself: see controllers.manager."""


class StartError(Exception):
    """The server cannot start. The message has the reason and what to do. Several messages are several arguments."""

    __module__ = "noxu"  # where it is public: tracebacks show that name

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class NotLoadedError(StartError):
    """Objects that are loaded at the start cannot be read or are refused; `keep_going` starts the server without them."""


class ServiceName(NamedTuple):
    """A service reference in the configuration of a webhook."""

    namespace: str
    name: str
    port: int


@dataclass(frozen=True, slots=True)
class Authentication:
    """How users are identified; the names are those of kube-apiserver's options.

    `anonymous_auth` None: as the authorization mode and TLS require. `service_account_issuers`: the first one issues.
    """

    anonymous_auth: bool | None = None
    token_auth_file: Path | None = None
    service_account_key_files: tuple[Path, ...] = ()
    service_account_signing_key_file: Path | None = None
    service_account_issuers: tuple[str, ...] = ()
    service_account_lookup: bool = True
    service_account_max_token_expiration: float = 0.0
    """Seconds; 0: no limit."""
    service_account_jwks_uri: str = ""
    api_audiences: tuple[str, ...] = ()
    requestheader_client_ca_file: Path | None = None
    requestheader_allowed_names: tuple[str, ...] = ()
    requestheader_username_headers: tuple[str, ...] = ("X-Remote-User",)
    requestheader_uid_headers: tuple[str, ...] = ("X-Remote-Uid",)
    requestheader_group_headers: tuple[str, ...] = ("X-Remote-Group",)
    requestheader_extra_headers_prefix: tuple[str, ...] = ("X-Remote-Extra-",)


DEFAULT_AUTHENTICATION: Final = Authentication()


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit log: kube-apiserver's flags --audit-*. Sizes are in megabytes, ages in days; 0 means no limit.

    `log_path`: a file, `-` for stdout, "" for no log. Without a `policy_file` the metadata of everything is recorded.
    """

    policy_file: Path | None = None
    log_path: str = ""
    format: str = "json"
    mode: str = "blocking"
    max_size: int = 100
    max_age: int = 366
    max_backups: int = 100
    compress: bool = False


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The server's own log. `format`: text or json. `level` is one of `logging`. `requests`: a line for each request."""

    format: str = "text"
    level: int = logging.INFO
    requests: bool = False


@dataclass(frozen=True, slots=True)
class Requests:
    """Limits on requests, and the web pages that may send them; the names are those of kube-apiserver's flags.

    `timeout`: the seconds for a request that is not long-running. `min_timeout`: a watch lasts one to two times as long,
    unless its client sets a duration. `max_in_flight`: requests that only read, `max_mutating_in_flight`: others that are
    handled at the same time; 0: no limit. `cors_allowed_origins`: regular expressions, see security.cors.
    """

    timeout: float = REQUEST_TIMEOUT
    min_timeout: float = MIN_REQUEST_TIMEOUT
    max_in_flight: int = MAX_IN_FLIGHT
    max_mutating_in_flight: int = MAX_MUTATING_IN_FLIGHT
    cors_allowed_origins: tuple[str, ...] = ()


DEFAULT_REQUESTS: Final = Requests()


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """HTTPS. Without files the server makes a CA and its own certificate.

    `certificate` and `key` are files, or else `directory` has them, `apiserver.crt` and `apiserver.key`; what is not there
    is made there. `named` are values of `--tls-sni-cert-key`. `client_authority` is a file of CAs that certify clients, in
    addition to the server's own; without `own_clients` only these do. `minimum` is a version of TLS in upstream's spelling.
    """

    certificate: Path | None = None
    key: Path | None = None
    directory: Path | None = None
    named: tuple[str, ...] = ()
    client_authority: Path | None = None
    minimum: str = "VersionTLS12"
    own_clients: bool = True


JSON: Final = "application/json"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
STORAGE_MEDIA_TYPES: Final = (JSON, PROTOBUF)


@dataclass(frozen=True, slots=True)
class Etcd:
    """Objects are in etcd instead of a file. `servers` are URLs; the files are in PEM.

    `media_type` is the form of built-in kinds, one of STORAGE_MEDIA_TYPES.
    """

    servers: tuple[str, ...]
    prefix: str = "/registry/noxu"
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    username: str = ""
    password_file: Path | None = None
    media_type: str = JSON


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Which of several servers runs the controllers: kube-controller-manager's flags --leader-elect-*, in seconds.

    `enabled` None: there is an election if objects are in etcd.
    """

    enabled: bool | None = None
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


@dataclass(frozen=True, slots=True)
class Config:
    """`data` None keeps everything in memory. `port` 0 selects a free port.

    `annotate_invalid`: annotate stored objects that no longer validate (see controllers.invalid_objects).
    `webhook_services`: the addresses (host:port) of webhooks that refer to a service of a cluster.
    `admission_plugins`: the plug-ins that run.
    `event_ttl`: the seconds for which Events are retained after their last write; 0: until they are deleted.
    `controllers`: the list of kube-controller-manager's controllers to run; None: those of the profile.
    `authorization_modes`: those of --authorization-mode; None: RBAC in the profile cluster, else AlwaysAllow.
    `cluster_signing_cert_file`, `cluster_signing_key_file`: the CA that signs requests for certificates; None: the server's.
    `disabled`: group versions of built-in kinds that clients cannot use.
    `merged_context`: the context to add to the user's own kubeconfig; "": none.
    `faults`: a plan of faults, see control.faults.plans; `latency`: by how much every answer is late, such as `5ms..20ms`.
    `presets`, `fault_rules`: further faults; `fault_seed`: what their chance depends on, None: the seed of the plan.
    `record_requests`: record what clients ask from the start, see control.manners_calls.
    `record`: the file of a recording, see http.recording.
    `clock`: how object time begins, see control.clock.parsed; "": as the system's. `deterministic`: the seed of a server
    whose objects repeat, see control.determinism.
    `services`: the network of the addresses of services; `node_ports`: their node ports.
    `stop_within`: the seconds for which a server that stops waits for the requests that it is answering; None: process.server.STOP_WITHIN.
    `max_tenants`: the number of tenants that the server may have, see control.tenants. `tenant_ports`: theirs; None: any.
    `kinds`: OpenAPI documents, or directories of them, whose kinds are served like custom resources.
    `etcd` None: objects are in `data`; else they are in etcd, and `data` has only keys and the kubeconfig.
    `tls` None: HTTP. `external_hostname`: the name by which clients reach this server; "": its address.
    `files` are loaded at the start, and what `kustomizations`, directories, are built to. `keep_going`: start without those
    of their objects that cannot be read or are refused. `create_namespaces`: create the namespaces that no file makes.
    `watch`: apply what changes in them while the server runs.
    `advertise_address`: the address of the server in the endpoints of the Service `kubernetes`; "": found out.
    `initial`: a file whose objects a new store begins with (`noxu serve --from`), which is only read.
    `history`: the seconds for which older states are kept, and who wrote them; infinite: always; 0: states as for the shortest
    time, and nothing about who wrote them.
    `nodes`: the number of simulated nodes, with which the controllers of workloads run, see noxu.workloads; None: neither.
    `stages`: files with rules for pods, see workloads.kubelet. `exec`: what a command in a pod answers, "succeed", or "" if it
    is refused.
    `listen`: further sockets, see listeners. `exit_with_parent`: stop when the process that has started this one ends.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    data: Path | None = None
    durability: Durability = "full"
    kubeconfig: Path | None = None
    merged_context: str = ""
    files: tuple[Path, ...] = field(default=())
    kustomizations: tuple[Path, ...] = ()
    keep_going: bool = False
    create_namespaces: bool = False
    watch: bool = False
    features: Features = Features()
    annotate_invalid: bool = False
    webhook_services: tuple[tuple[ServiceName, str], ...] = ()
    event_ttl: float = DEFAULT_EVENT_TTL
    profile: Profile = "local"
    controllers: tuple[str, ...] | None = None
    leader_election: LeaderElection = LeaderElection()
    admission_plugins: frozenset[str] = default_plugins(controllers=True)
    kinds: tuple[Path, ...] = ()
    authorization_modes: tuple[str, ...] | None = None
    authentication: Authentication = DEFAULT_AUTHENTICATION
    audit: Audit = Audit()
    log: LogConfig = LogConfig()
    tracing_config_file: Path | None = None
    etcd: Etcd | None = None
    tls: TlsOptions | None = None
    external_hostname: str = ""
    advertise_address: str = ""
    requests: Requests = DEFAULT_REQUESTS
    listen: tuple[str, ...] = ()
    exit_with_parent: bool = False
    cluster_signing_cert_file: Path | None = None
    cluster_signing_key_file: Path | None = None
    disabled: frozenset[tuple[str, str]] = frozenset()
    services: str = "10.0.0.0/24"
    node_ports: range = range(30_000, 32_768)
    stop_within: float | None = None
    max_tenants: int = MAX_TENANTS
    tenant_ports: range | None = None
    clock: str = ""
    faults: Path | None = None
    latency: str = ""
    presets: tuple[str, ...] = ()
    fault_rules: tuple[Mapping[str, Any], ...] = ()
    fault_seed: int | None = None
    record_requests: bool = False
    record: Path | None = None
    deterministic: int | None = None
    history: float = COMPACT_EVERY
    initial: Path | None = None
    nodes: int | None = None
    stages: tuple[Path, ...] = ()
    exec: str = ""

    @property
    def begins_with_faults(self) -> bool:
        return bool(self.faults or self.latency or self.presets or self.fault_rules)


NOT_INSTALLED: Final = "0+unknown"
"""What a checkout says that is run without having been installed: a version by PEP 440."""


@cache
def own_version() -> str:
    from importlib import metadata  # large, and rarely needed

    try:
        return metadata.version("noxu")
    except metadata.PackageNotFoundError:
        return NOT_INSTALLED
