"""The flags of kube-apiserver 1.37, and what this server does with each (cmd/kube-apiserver/app/options).

Command lines are written for kube-apiserver, by envtest and by its users, so they are accepted as they are. Flags that
only tune kube-apiserver have no effect. Flags that would change access control in a way that this server does not have
are refused: if they were ignored, a test could pass that proves nothing. A flag that kube-apiserver does not have
either is reported, and has no effect.

The command line of kube-apiserver, read as by pflag (github.com/spf13/pflag): its forms of flags, and its errors.

`--name=value`, `--name value`; booleans are set by their name alone, and never take the next word as their value. `_` in a
name is `-`. Unlike pflag, this accepts names with a single dash, and reports unknown flags instead of refusing them; such a
flag takes the next word as its value unless that is a flag.
"""

from __future__ import annotations

import csv
import ipaddress
from collections import deque
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from noxu.features import FALSE, TRUE
from noxu.go.text import quote
from noxu.go.time import SECOND, parse_duration

# -- the flags ---------------------------------------------------------------------------------------------------------


Kind = Literal["bool", "int", "duration", "ip", "string", "strings", "stringArray"]
"""As pflag calls them. `strings` are separated by commas, and repeating the flag adds values; each use of a `stringArray`
adds one value, whatever it contains. Of the others the last use counts."""

BOOL: Final = "bool"


class Flag(NamedTuple):
    """A flag that has an effect. `says` is its line of the help."""

    kind: Kind
    says: str


HONOURED: Final[dict[str, Flag]] = {
    "advertise-address": Flag("ip", "the address in the endpoints of the service kubernetes (default: of this host)"),
    "anonymous-auth": Flag("bool", "whether requests without credentials are from system:anonymous (default true)"),
    "api-audiences": Flag("strings", "the audiences of tokens for this server (default: its issuers)"),
    "audit-log-compress": Flag("bool", "whether old audit logs are compressed"),
    "audit-log-format": Flag("string", "json or legacy"),
    "audit-log-maxage": Flag("int", "the days for which old audit logs are retained"),
    "audit-log-maxbackup": Flag("int", "the number of old audit logs to retain"),
    "audit-log-maxsize": Flag("int", "the megabytes of an audit log before it is rotated"),
    "audit-log-mode": Flag("string", "blocking, blocking-strict or batch"),
    "audit-log-path": Flag("string", "the audit log; - is the standard output"),
    "audit-policy-file": Flag("string", "the audit policy; without one nothing is recorded"),
    "authorization-mode": Flag("strings", "AlwaysAllow, AlwaysDeny, RBAC or Node (default AlwaysAllow)"),
    "bind-address": Flag("string", "the address to listen on (default 127.0.0.1)"),
    "cert-dir": Flag("string", "the folder of apiserver.crt and apiserver.key, which are made if they are missing"),
    "client-ca-file": Flag("string", "the CAs of client certificates"),
    "cors-allowed-origins": Flag("strings", "regular expressions of the origins of web pages that may use the server"),
    "disable-admission-plugins": Flag("strings", "admission plug-ins not to run"),
    "enable-admission-plugins": Flag("strings", "admission plug-ins to run in addition"),
    "etcd-cafile": Flag("string", "the CAs of an etcd at https://"),
    "etcd-certfile": Flag("string", "the certificate for an etcd at https://"),
    "etcd-keyfile": Flag("string", "the key of --etcd-certfile"),
    "etcd-prefix": Flag("string", "servers with the same prefix share their objects (default /registry)"),
    "etcd-servers": Flag("strings", "the etcd that keeps the objects: that of envtest in its folder, any other itself"),
    "event-ttl": Flag("duration", "the time for which Events are retained (default 1h0m0s)"),
    "external-hostname": Flag("string", "the name of this server in URLs that it writes"),
    "feature-gates": Flag("strings", "GATE=true or GATE=false; those of other features have no effect"),
    "max-mutating-requests-inflight": Flag(
        "int", "writes that are handled at the same time; 0: no limit (default 200)"
    ),
    "max-requests-inflight": Flag("int", "reads that are handled at the same time; 0: no limit (default 400)"),
    "min-request-timeout": Flag("int", "the seconds of a watch without a timeout, at least (default 1800)"),
    "request-timeout": Flag("duration", "the time for a request that is not a watch (default 1m0s)"),
    "requestheader-allowed-names": Flag("strings", "the names of proxies that set the user in headers; none: all"),
    "requestheader-client-ca-file": Flag("string", "the CAs of proxies that set the user in headers"),
    "requestheader-extra-headers-prefix": Flag("strings", "the prefixes of headers with extra fields of the user"),
    "requestheader-group-headers": Flag("strings", "the headers with the groups of the user"),
    "requestheader-uid-headers": Flag("strings", "the headers with the uid of the user"),
    "requestheader-username-headers": Flag("strings", "the headers with the name of the user"),
    "runtime-config": Flag("strings", "GROUP/VERSION=false does not serve a version"),
    "secure-port": Flag("int", "the port of HTTPS (default 6443)"),
    "service-account-issuer": Flag("stringArray", "the issuers of tokens; the first one is that of new tokens"),
    "service-account-jwks-uri": Flag("string", "the URL of the keys of tokens, for the discovery document"),
    "service-account-key-file": Flag("stringArray", "keys or certificates that verify tokens"),
    "service-account-lookup": Flag("bool", "whether the account of a token must exist (default true)"),
    "service-account-max-token-expiration": Flag("duration", "the longest lifetime of a token"),
    "service-account-signing-key-file": Flag("string", "the key that signs tokens"),
    "service-cluster-ip-range": Flag("string", "the network of the addresses of services (default 10.0.0.0/24)"),
    "service-node-port-range": Flag("string", "their node ports (default 30000-32767)"),
    "storage-media-type": Flag("string", "the form of built-in kinds in another etcd (default protobuf)"),
    "tls-cert-file": Flag("string", "the certificate, instead of the one in --cert-dir"),
    "tls-min-version": Flag("string", "VersionTLS12 or VersionTLS13"),
    "tls-private-key-file": Flag("string", "the key of --tls-cert-file"),
    "tls-sni-cert-key": Flag("stringArray", "a certificate for some names, as CERT,KEY or CERT,KEY:NAME,..."),
    "tracing-config-file": Flag("string", "a TracingConfiguration: where spans are sent, over OTLP/HTTP"),
    "token-auth-file": Flag("string", "tokens and their users, as CSV"),
}

_IGNORED: Final[dict[Kind, str]] = {
    "bool": """
        aggregator-reject-forwarding-redirect allow-privileged alsologtostderr
        audit-log-truncate-enabled contention-profiling debugging emulation-forward-compatible
        enable-aggregator-routing enable-bootstrap-token-auth enable-garbage-collector enable-logs-handler
        enable-priority-and-fairness encryption-provider-config-automatic-reload log-json-split-stream
        log-text-split-stream logtostderr one-output permit-address-sharing permit-port-sharing profiling
        runtime-config-emulation-forward-compatible service-account-extend-token-expiration
        shutdown-send-retry-after skip-headers skip-log-headers watch-cache disable-http2-serving""",
    "int": """
        apiserver-count audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-throttle-burst
        audit-log-truncate-max-batch-size audit-log-truncate-max-event-size default-not-ready-toleration-seconds
        default-unreachable-toleration-seconds default-watch-cache-size delete-collection-workers
        http2-max-streams-per-connection kubelet-port kubelet-read-only-port kubernetes-service-node-port
        lease-reuse-duration-seconds max-connection-bytes-per-sec v""",
    "duration": """
        audit-log-batch-max-wait etcd-compaction-interval etcd-count-metric-poll-period etcd-db-metric-poll-interval
        etcd-healthcheck-timeout etcd-readycheck-timeout kubelet-timeout livez-grace-period log-flush-frequency
        shutdown-delay-duration shutdown-watch-termination-grace-period storage-initialization-timeout""",
    "string": """
        admission-control-config-file audit-log-batch-throttle-qps audit-log-version cloud-config cloud-provider
        debug-socket-path egress-selector-config-file encryption-provider-config
        endpoint-reconciler-type goaway-chance
        kubelet-certificate-authority kubelet-client-certificate kubelet-client-key log-backtrace-at log-dir log-file
        log-file-max-size log-json-info-buffer-size log-text-info-buffer-size logging-format peer-advertise-ip
        peer-advertise-port peer-ca-file proxy-client-cert-file proxy-client-key-file
        show-hidden-metrics-for-version stderrthreshold storage-backend
        strict-transport-security-directives vmodule""",
    "strings": """
        allow-metric-labels allow-metric-labels-manifest disabled-metrics emulated-version etcd-servers-overrides
        kubelet-preferred-address-types min-compatibility-version tls-cipher-suites tls-curve-preferences
        watch-cache-sizes""",
}
IGNORED: Final[dict[str, Kind]] = {name: kind for kind, names in _IGNORED.items() for name in names.split()}
"""The flags of kube-apiserver without an effect."""

_WEBHOOK: Final = "this server asks no webhook about users and access"
_OIDC: Final = "tokens of OpenID Connect providers are not read"
_INSECURE: Final = "kube-apiserver has had no insecure port since 1.24"
REFUSED: Final[dict[str, str]] = {
    "audit-webhook-config-file": "audit events are not sent to webhooks; there is --audit-log-path",
    "authentication-config": f"{_OIDC}; there are --client-ca-file and --token-auth-file",
    "authentication-token-webhook-config-file": _WEBHOOK,
    "authorization-config": f"{_WEBHOOK}; there is --authorization-mode",
    "authorization-policy-file": "there is no mode ABAC",
    "authorization-webhook-config-file": _WEBHOOK,
    "insecure-bind-address": _INSECURE,
    "insecure-port": _INSECURE,  # 0 is accepted
    "oidc-ca-file": _OIDC,
    "oidc-client-id": _OIDC,
    "oidc-groups-claim": _OIDC,
    "oidc-groups-prefix": _OIDC,
    "oidc-issuer-url": _OIDC,
    "oidc-required-claim": _OIDC,
    "oidc-signing-algs": _OIDC,
    "oidc-username-claim": _OIDC,
    "oidc-username-prefix": _OIDC,
    "service-account-signing-endpoint": "tokens are signed with --service-account-signing-key-file",
}
"""The flags that are refused, with the reason."""

SHORTHANDS: Final = {"h": "help", "v": "v"}


def kind_of(name: str) -> Kind | None:
    """The kind of a flag; None if kube-apiserver has no such flag."""
    if name in HONOURED:
        return HONOURED[name].kind
    if name in ("help", "version"):
        return BOOL
    return IGNORED.get(name, "string" if name in REFUSED else None)


def help_text() -> str:
    """The text of --help. envtest looks in it for the flag insecure-port, which must not begin a line."""
    return "\n".join(_help())


def _help() -> Iterator[str]:
    yield "kube-apiserver of Noxu: the Kubernetes API over the etcd of `noxu envtest`, for tests.\n"
    yield "Usage:\n  kube-apiserver [flags]\n\nFlags:"
    for name, (kind, says) in HONOURED.items():
        yield f"      --{name} {'' if kind == BOOL else kind + ' '}  {says}"
    yield "  -h, --help   print this help"
    yield "      --version   print the version"
    yield "\nFlags without an effect:"
    for name in sorted(IGNORED):
        yield f"      --{name}"
    yield "\nOther flags of kube-apiserver are refused, because a test would not test what they select:"
    for name, why in REFUSED.items():
        yield f"      {name}: {why}"
    yield ""


# -- the command line --------------------------------------------------------------------------------------------------


_INT64: Final = range(-(2**63), 2**63)


class FlagError(ValueError):
    """The command line is invalid."""


class Arguments(NamedTuple):
    """The `values` of each flag, in the order of its uses; `notes` are about flags that kube-apiserver does not have."""

    values: dict[str, list[str]]
    notes: list[str]

    def has(self, name: str) -> bool:
        return name in self.values

    def last(self, name: str, default: str = "") -> str:
        return self.values.get(name, [default])[-1]

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(self.values.get(name, ()))

    def number(self, name: str, default: int) -> int:
        return int(self.last(name, str(default)), 0)

    def is_set(self, name: str, *, default: bool = False) -> bool:
        return self.last(name, "true" if default else "false") in TRUE

    def seconds(self, name: str, default: float) -> float:
        return parse_duration(self.last(name)) / SECOND if self.has(name) else default


def parse(words: list[str]) -> Arguments:
    """Reads no further than --help and --version. Raises FlagError."""
    arguments = Arguments({}, [])
    others: list[str] = []
    remaining = deque(words)
    while remaining and not (arguments.is_set("help") or arguments.has("version")):
        word = remaining.popleft()
        if word == "--":
            others += remaining
            break
        if word.startswith("-") and word != "-":
            _read(word, remaining, arguments)
        elif word:
            others.append(word)
    if others and not (arguments.is_set("help") or arguments.has("version")):
        listed = " ".join(quote(word) for word in others)
        raise FlagError(f'"kube-apiserver" does not take any arguments, got [{listed}]')
    return arguments


def _read(word: str, remaining: deque[str], arguments: Arguments) -> None:
    """Read one flag, and its value from `remaining` if it is another word."""
    name, value = _name_and_value(word)
    kind = kind_of(name)
    if kind is None:
        if value is None and remaining and not remaining[0].startswith("-"):
            remaining.popleft()
        arguments.notes.append(f"unknown flag: --{name}; it has no effect")
        return
    if value is None and kind == BOOL:
        value = "true"
    elif value is None and not remaining:
        shown = f"'{name}' in -{name}" if name in SHORTHANDS and not word.startswith("--") else f"--{name}"
        raise FlagError(f"flag needs an argument: {shown}")
    elif value is None:
        value = remaining.popleft()
    if name in REFUSED and not (name == "insecure-port" and value == "0"):
        raise FlagError(f"--{name} is not available: {REFUSED[name]}")
    try:
        values = [value] if name == "version" else _values(kind, value)  # --version=raw
    except ValueError as error:
        flag = f"-{name}, --{name}" if name in SHORTHANDS else f"--{name}"
        raise FlagError(f"invalid argument {quote(value)} for {quote(flag)} flag: {error}") from None
    arguments.values.setdefault(name, []).extend(values)


def _name_and_value(word: str) -> tuple[str, str | None]:
    """The name of the flag in its usual form, and the value that follows `=` or a shorthand."""
    dashes = 2 if word.startswith("--") else 1
    name, equals, value = word[dashes:].partition("=")
    if not name or name.startswith("-"):
        raise FlagError(f"bad flag syntax: {word}")
    name = name.replace("_", "-")
    if dashes == 1 and name[0] in SHORTHANDS and kind_of(name) is None:
        return SHORTHANDS[name[0]], word[2:]  # -v4
    return SHORTHANDS.get(name, name) if dashes == 1 else name, value if equals else None


def _values(kind: Kind, text: str) -> list[str]:
    """The values that one use of a flag adds. Raises ValueError."""
    match kind:
        case "bool" if text not in TRUE | FALSE:
            raise ValueError(f"strconv.ParseBool: parsing {quote(text)}: invalid syntax")
        case "int":
            _check_integer(text)
        case "duration":
            parse_duration(text)
        case "ip" if text:
            return [_address(text)]
        case "strings":
            return _comma_separated(text)
    return [text]


def _check_integer(text: str) -> None:
    try:
        number = int(text, 0)
    except ValueError:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: invalid syntax") from None
    if number not in _INT64:
        raise ValueError(f"strconv.ParseInt: parsing {quote(text)}: value out of range")


def _address(text: str) -> str:
    """An IP address in its shortest form."""
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise ValueError(f"failed to parse IP: {quote(text)}") from None


def _comma_separated(text: str) -> list[str]:
    """One line of CSV, as Go's encoding/csv reads it."""
    try:
        return next(csv.reader(text.splitlines(), strict=True), [])
    except csv.Error as error:
        raise ValueError(str(error)) from None
